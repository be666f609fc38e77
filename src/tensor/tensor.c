/* Element types and shapes: arithmetic only. */
#include "hone/tensor.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} types[HONE_DTYPES] = {
    [HONE_F32] = {"f32", 4}, [HONE_F16] = {"f16", 2}, [HONE_BF16] = {"bf16", 2},
    [HONE_F64] = {"f64", 8}, [HONE_I32] = {"i32", 4}, [HONE_I64] = {"i64", 8},
    [HONE_U8] = {"u8", 1},   [HONE_I8] = {"i8", 1},   [HONE_BOOL] = {"bool", 1},
};

size_t hone_dtype_size(hone_dtype t)
{
    return (unsigned)t < HONE_DTYPES ? types[t].size : 0;
}

const char *hone_dtype_name(hone_dtype t)
{
    return (unsigned)t < HONE_DTYPES ? types[t].name : "none";
}

int64_t hone_numel(const hone_shape *s)
{
    int64_t n = 1;
    bool empty = false;
    if (s->rank < 0 || s->rank > HONE_MAX_RANK)
        return -1;
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[i] < 0)
            return -1;
        if (s->dim[i] == 0)
            empty = true;
        else if (n > INT64_MAX / s->dim[i])
            return -1;
        else
            n *= s->dim[i];
    }
    return empty ? 0 : n;
}

bool hone_shape_equal(const hone_shape *a, const hone_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

char *hone_shape_text(const hone_shape *s, char *buf, size_t n)
{
    size_t at = 0;
    if (n == 0)
        return buf;
    buf[0] = '\0';
    if (s->rank < 0 || s->rank > HONE_MAX_RANK) {
        snprintf(buf, n, "[?]");
        return buf;
    }
    for (int i = 0; i <= s->rank && at < n; i++) {
        const char *open = i == 0 ? "[" : i < s->rank ? "," : "";
        int w = i < s->rank ? snprintf(buf + at, n - at, "%s%lld", open, (long long)s->dim[i])
                            : snprintf(buf + at, n - at, "%s]", open);
        at += w > 0 ? (size_t)w : 0;
    }
    return buf;
}
