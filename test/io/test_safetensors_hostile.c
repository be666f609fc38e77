/* Files of tensors: damaged and hostile bytes, failing allocations, bounded memory. */
#include <stdio.h>

#include "check.h"
#include "io/blob.h"

static const char small[] = "{\"__metadata__\":{\"k\":\"\\u00e9\"},"
                            "\"a\":{\"dtype\":\"F16\",\"shape\":[1,2],\"data_offsets\":[1,5]},"
                            "\"b\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[0,1]}}";

/* Uses all of an open file; whatever it says, nothing may go wrong. */
static void use(struct check *c, const hone_tensors *t)
{
    unsigned char out[64];
    float f[64];
    for (size_t i = 0; i < hone_tensors_count(t); i++) {
        hone_tensor_info info = hone_tensors_at(t, i);
        CHECK(c, hone_tensors_find(t, info.name, NULL) == (int64_t)i);
        if (info.bytes <= sizeof out)
            hone_tensors_read(t, i, out, (size_t)info.bytes, NULL);
        hone_tensors_read_f32(t, i, f, (size_t)info.bytes / 2, NULL);
    }
    for (size_t i = 0; i < hone_tensors_metadata_count(t); i++)
        CHECK(c, hone_tensors_metadata(t, hone_tensors_metadata_key(t, i)) == hone_tensors_metadata_value(t, i));
}

static void damage(struct check *c, hone_ctx *ctx)
{
    struct blob b = make(small, 5);
    if (check_case(c, "cut off at every length"))
        for (size_t n = 0; n <= b.n; n++) {
            unsigned char *cut = malloc(n + 1); /* of its exact size, so that a reader past the end is caught */
            struct blob whole = {cut, n};
            hone_err e = {0};
            memcpy(cut, b.p, n);
            hone_tensors *t = hone_tensors_from_memory(ctx, cut, n, &e);
            CHECK_MSG(c, (t != NULL) == (n == b.n) && (t || e.code == HONE_E_FORMAT), "%zu: %s", n, e.text);
            hone_tensors_close(t);
            e = (hone_err){0};
            t = open_in_file(ctx, whole, &e);
            CHECK_MSG(c, (t != NULL) == (n == b.n) && (t || e.code == HONE_E_FORMAT), "%zu: %s", n, e.text);
            hone_tensors_close(t);
            free(cut);
        }
    if (check_case(c, "every byte with every value")) {
        size_t opened = 0;
        for (size_t i = 0; i < b.n; i++)
            for (int v = 1; v < 256; v++) {
                b.p[i] ^= (unsigned char)v;
                hone_tensors *t = hone_tensors_from_memory(ctx, b.p, b.n, NULL);
                if (t)
                    use(c, t);
                opened += t != NULL;
                hone_tensors_close(t);
                b.p[i] ^= (unsigned char)v;
            }
        CHECK_MSG(c, opened > 5 * 255 && opened < b.n * 255 / 4, "%zu", opened);
        CHECK(c, hone_ctx_mem(ctx).live_bytes == 0);
    }
    free(b.p);
}

static void no_memory(struct check *c)
{
    if (!check_case(c, "every allocation fails once"))
        return;
    for (int in_file = 0; in_file < 2; in_file++) {
        struct failing f = {0};
        const hone_allocator a = {fail_alloc, fail_release, &f};
        hone_ctx *ctx = hone_ctx_create(&(hone_ctx_options){.allocator = &a}, NULL);
        struct blob b = make(small, 5);
        hone_tensors *t = NULL;
        long n = 0;
        while (!t && n < 100) {
            hone_err e = {0};
            f.calls = 0;
            f.fail_at = ++n;
            t = in_file ? open_in_file(ctx, b, &e) : hone_tensors_from_memory(ctx, b.p, b.n, &e);
            CHECK_MSG(c, t || (e.code == HONE_E_NOMEM && e.text[0] && f.live == 1), "%ld: %s", n, e.text);
        }
        CHECK_MSG(c, n > 6 && n < 20, "%ld", n);
        hone_tensors_close(t);
        CHECK(c, f.live == 1); /* the context */
        hone_ctx_destroy(ctx);
        free(b.p);
    }
}

/* --- memory --- */

/* `head`, then `piece` until there are `bytes`; a "%" in piece becomes a number of seven digits that counts up. */
static struct blob junk(const char *head, const char *piece, size_t bytes, const char *tail)
{
    const size_t k = strlen(piece), nt = strlen(tail);
    const char *mark = strchr(piece, '%');
    const size_t step = mark ? k + 6 : k;
    struct blob b = {malloc(8 + bytes + step + nt + 8), 8};
    size_t at = 8 + (size_t)sprintf((char *)b.p + 8, "%s", head);
    for (unsigned i = 1000000; at + step + nt <= 8 + bytes; i++, at += step) {
        if (mark)
            sprintf((char *)b.p + at, "%.*s%07u%s", (int)(mark - piece), piece, i, mark + 1);
        else
            memcpy(b.p + at, piece, k);
    }
    memcpy(b.p + at, tail, nt);
    b.n = at + nt;
    for (int i = 0; i < 8; i++)
        b.p[i] = (unsigned char)((uint64_t)(b.n - 8) >> 8 * i);
    return b;
}

static void hostile(struct check *c, const char *name, struct blob b, bool in_file, double factor, hone_status code)
{
    if (check_case(c, "memory: %s", name)) {
        hone_ctx *ctx = hone_ctx_create(NULL, NULL);
        hone_err e = {0};
        hone_tensors *t = in_file ? open_in_file(ctx, b, &e) : hone_tensors_from_memory(ctx, b.p, b.n, &e);
        CHECK_MSG(c, e.code == code && (t != NULL) == (code == HONE_OK), "%s", e.text);
        const double limit = factor * (double)b.n + 256 * 1024, peak = (double)hone_ctx_mem(ctx).peak_bytes;
        CHECK_MSG(c, peak <= limit, "%.0f bytes for a header of %zu", peak, b.n);
        hone_tensors_close(t);
        CHECK(c, hone_ctx_mem(ctx).live_bytes == 0);
        hone_ctx_destroy(ctx);
    }
    free(b.p);
}

static void memory(struct check *c)
{
    const size_t mb = 1000000;
    hostile(c, "junk", junk("{", "\"a\":{\"dtype\"", 20 * mb, ""), false, 0, HONE_E_FORMAT);
    hostile(c, "one name over and over",
            junk("{", "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},", 20 * mb,
                 "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}"),
            true, 2, HONE_E_FORMAT);
    hostile(c, "many entries",
            junk("{", "\"%\":{\"dtype\":\"U8\",\"shape\":[0,1,1,1,1,1,1,1],\"data_offsets\":[0,0]},", 2 * mb,
                 "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}"),
            true, 4, HONE_OK);
    hostile(c, "much metadata", junk("{\"__metadata__\":{", "\"%\":\"\",", 2 * mb, "\"a\":\"\"}}"), false, 4, HONE_OK);
    hostile(c, "a long value", junk("{\"__metadata__\":{\"a\":\"", "\\u00e9xyz", 4 * mb, "\"}}"), true, 1, HONE_OK);
    hostile(c, "a long name", junk("{\"", "longer", 20 * mb, "\":1}"), true, 0, HONE_E_UNSUPPORTED);
    hostile(c, "a long shape", junk("{\"a\":{\"shape\":[", "1,", 20 * mb, "1]}}"), true, 0, HONE_E_FORMAT);
    hostile(c, "depth", junk("{\"a\":", "[", 2 * mb, ""), true, 0, HONE_E_FORMAT);
    hostile(c, "white space", junk("{", " ", 20 * mb, "}"), true, 0, HONE_OK);
}

/* A header of many buffers, read from a file, says what it says in memory. */
static void buffers(struct check *c, hone_ctx *ctx)
{
    if (!check_case(c, "a header of many buffers"))
        return;
    struct blob b =
        junk("{\"__metadata__\":{\"k\":\"v\"},",
             "\"\\u00e9\xF0\x9F\x98\x80\\ud83d\\ude00%\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},",
             300000, "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}");
    hone_err e = {0};
    hone_tensors *m = hone_tensors_from_memory(ctx, b.p, b.n, &e), *f = open_in_file(ctx, b, &e);
    if (CHECK_MSG(c, m && f, "%s", e.text) && CHECK(c, hone_tensors_count(m) > 3000)) {
        CHECK(c, hone_tensors_count(m) == hone_tensors_count(f));
        for (size_t i = 0; i < hone_tensors_count(m); i++)
            CHECK(c, !strcmp(hone_tensors_at(m, i).name, hone_tensors_at(f, i).name));
        CHECK(c, hone_tensors_find(f,
                                   "\xC3\xA9\xF0\x9F\x98\x80\xF0\x9F\x98\x80"
                                   "1002000",
                                   NULL) == 2001);
    }
    hone_tensors_close(m);
    hone_tensors_close(f);
    free(b.p);
}

void suite_safetensors_hostile(struct check *c)
{
    hone_ctx *ctx = hone_ctx_create(NULL, NULL);
    damage(c, ctx);
    no_memory(c);
    memory(c);
    buffers(c, ctx);
    hone_ctx_destroy(ctx);
}
