/* Fuzzing of files of tensors: any bytes are refused with a message, or open to a file that keeps its promises. */
#include <stdlib.h>
#include <string.h>

#include "hone/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* What holds for every file that opens; the process dies if it does not. */
static void want(int ok)
{
    if (!ok)
        abort();
}

static void read_one(const hone_tensors *t, size_t i, const hone_tensor_info *info)
{
    if (info->bytes > 1 << 20)
        return;
    unsigned char *out = malloc((size_t)info->bytes + 1);
    float *f = malloc(((size_t)info->bytes + 1) * sizeof *f);
    if (out && f) {
        hone_err e = {0};
        const hone_status s = hone_tensors_read(t, i, out, (size_t)info->bytes, &e);
        const bool held = info->type.dtype != HONE_DTYPES && info->type.shape.rank >= 0;
        want(s == HONE_OK || s == (held ? HONE_E_FORMAT : HONE_E_UNSUPPORTED));
        want(s == HONE_OK || e.text[0]);
        if (held) {
            const int64_t k = hone_numel(&info->type.shape);
            want(k >= 0 && (uint64_t)k * hone_dtype_size(info->type.dtype) == info->bytes);
            hone_tensors_read_f32(t, i, f, (size_t)k, NULL);
        }
    }
    free(out);
    free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    hone_err e = {0};
    hone_ctx *ctx = hone_ctx_create(NULL, NULL);
    hone_tensors *t = hone_tensors_from_memory(ctx, bytes, n, &e);
    want(t ? e.code == HONE_OK : e.code != HONE_OK && e.text[0]);
    if (t) {
        uint64_t end = n;
        for (size_t i = hone_tensors_count(t); i-- > 0;) {
            const hone_tensor_info info = hone_tensors_at(t, i);
            want(info.offset + info.bytes == end && hone_tensors_find(t, info.name, NULL) == (int64_t)i);
            end = info.offset;
            read_one(t, i, &info);
        }
        for (size_t i = 0; i < hone_tensors_metadata_count(t); i++)
            want(hone_tensors_metadata(t, hone_tensors_metadata_key(t, i)) == hone_tensors_metadata_value(t, i));
    }
    want(hone_ctx_mem(ctx).peak_bytes <= 4 * n + 256 * 1024);
    hone_tensors_close(t);
    want(hone_ctx_mem(ctx).live_bytes == 0);
    hone_ctx_destroy(ctx);
    return 0;
}
