/* Files of tensors: looking things up in an open one, and reading data. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "io/safetensors.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements are little-endian in files and are copied as they are"
#endif

/* --- looking up --- */

size_t hone_tensors_count(const hone_tensors *t)
{
    return t->n;
}

/* False: hone cannot hold this shape. */
static bool shape_of(const struct st_entry *e, hone_shape *shape)
{
    *shape = (hone_shape){.rank = -1};
    if (e->rank > HONE_MAX_RANK)
        return false;
    for (uint32_t i = 0; i < e->rank; i++) {
        if (e->dim[i] > INT64_MAX)
            return false;
        shape->dim[i] = (int64_t)e->dim[i];
    }
    shape->rank = (int)e->rank;
    return true;
}

hone_tensor_info hone_tensors_at(const hone_tensors *t, size_t i)
{
    hone_tensor_info info = {.type = {HONE_DTYPES, {.rank = -1}}};
    if (i >= t->n)
        return info;
    const struct st_entry *e = t->by_offset[i];
    info.name = st_name(e);
    info.file_dtype = st_dtypes[e->dtype].name;
    info.type.dtype = st_dtypes[e->dtype].held;
    shape_of(e, &info.type.shape);
    info.rank = e->rank;
    info.bytes = e->end - e->begin;
    info.offset = t->data + e->begin;
    return info;
}

#define NEAR_MAX 4096 /* names tried for a hint, so that asking a hostile file for a name stays cheap */

int64_t hone_tensors_find(const hone_tensors *t, const char *name, hone_err *err)
{
    size_t lo = 0, hi = t->n;
    char q[ST_QUOTED], q_near[ST_QUOTED];
    if (err_is(err))
        return -1;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const struct st_entry *e = t->by_name[mid];
        const int c = strcmp(name, st_name(e));
        if (c == 0)
            return e->index;
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    if (!err)
        return -1;
    struct text_near near;
    text_near_start(&near, name);
    for (size_t i = 0; i < t->n && i < NEAR_MAX; i++)
        text_near_try(&near, st_name(t->by_name[i]));
    err_set(err, HONE_E_ARG, t->where, "no tensor \"%s\" among its %zu%s%s%s", st_quote(q, name), t->n,
            near.best ? "; did you mean \"" : "", near.best ? st_quote(q_near, near.best) : "", near.best ? "\"?" : "");
    return -1;
}

size_t hone_tensors_metadata_count(const hone_tensors *t)
{
    return t->n_pairs;
}

const char *hone_tensors_metadata_key(const hone_tensors *t, size_t i)
{
    const struct st_pair *p = i < t->n_pairs ? t->pairs[i] : NULL;
    return p ? p->key : NULL;
}

const char *hone_tensors_metadata_value(const hone_tensors *t, size_t i)
{
    return i < t->n_pairs ? st_value(t->pairs[i]) : NULL;
}

const char *hone_tensors_metadata(const hone_tensors *t, const char *key)
{
    size_t lo = 0, hi = t->n_pairs;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const struct st_pair *p = t->pairs[mid];
        const int c = strcmp(key, p->key);
        if (c == 0)
            return st_value(p);
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

/* --- reading --- */

/* The entry, if hone can hold it; else NULL with the reason in *status and err. */
static const struct st_entry *readable(const hone_tensors *t, size_t i, hone_status *status, hone_err *err)
{
    char q[ST_QUOTED];
    hone_shape shape;
    if (err_is(err)) {
        *status = err->code;
        return NULL;
    }
    if (i >= t->n) {
        *status = err_set(err, HONE_E_ARG, t->where, "wanted tensor %zu; it has %zu", i, t->n);
        return NULL;
    }
    const struct st_entry *e = t->by_offset[i];
    *status = HONE_OK;
    if (st_dtypes[e->dtype].held == HONE_DTYPES)
        *status = err_set(err, HONE_E_UNSUPPORTED, t->where, "tensor \"%s\" is of dtype %s, which hone cannot hold",
                          st_quote(q, st_name(e)), st_dtypes[e->dtype].name);
    else if (e->rank > HONE_MAX_RANK)
        *status = err_set(err, HONE_E_UNSUPPORTED, t->where, "tensor \"%s\" has %" PRIu32 " dimensions; hone holds %d",
                          st_quote(q, st_name(e)), e->rank, HONE_MAX_RANK);
    else if (!shape_of(e, &shape))
        *status = err_set(err, HONE_E_UNSUPPORTED, t->where, "tensor \"%s\" has a dimension above 2^63 - 1",
                          st_quote(q, st_name(e)));
    return *status == HONE_OK ? e : NULL;
}

hone_status hone_tensors_read(const hone_tensors *t, size_t i, void *out, size_t bytes, hone_err *err)
{
    char q[ST_QUOTED];
    hone_status s;
    const struct st_entry *e = readable(t, i, &s, err);
    if (!e)
        return s;
    if (bytes != e->end - e->begin)
        return err_set(err, HONE_E_SHAPE, t->where, "tensor \"%s\" has %" PRIu64 " bytes; there is room for %zu",
                       st_quote(q, st_name(e)), e->end - e->begin, bytes);
    s = st_bytes(t, out, bytes, t->data + e->begin, err);
    if (s != HONE_OK || st_dtypes[e->dtype].held != HONE_BOOL)
        return s;
    const unsigned char *b = out;
    for (size_t k = 0; k < bytes; k++)
        if (b[k] > 1)
            return err_set(err, HONE_E_FORMAT, t->where, "tensor \"%s\", element %zu: a bool of %u; wanted 0 or 1",
                           st_quote(q, st_name(e)), k, b[k]);
    return HONE_OK;
}

/* IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits. */
static float from_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
    float f;
    if (exponent == 0) { /* zero and subnormal numbers: fraction * 2^-24, exact in a float */
        f = (float)fraction * 0x1p-24f;
        return sign ? -f : f;
    }
    const uint32_t bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
    memcpy(&f, &bits, sizeof f);
    return f;
}

#define PIECE 1024 /* elements converted at once */

/* One piece of n elements of the held type at `b`. Returns n, or the number of the first one that a float cannot hold.
 */
static size_t convert(hone_dtype from, const unsigned char *b, size_t n, float *out)
{
    for (size_t k = 0; k < n; k++) {
        uint16_t h;
        uint32_t u;
        double d;
        switch (from) {
        case HONE_F64:
            memcpy(&d, b + 8 * k, sizeof d);
            /* from the middle between the greatest float and 2^128 on, rounding to nearest would give infinity */
            if (isfinite(d) && fabs(d) >= 0x1.ffffffp127)
                return k;
            out[k] = (float)d;
            break;
        case HONE_F16:
            memcpy(&h, b + 2 * k, sizeof h);
            out[k] = from_f16(h);
            break;
        default: /* HONE_BF16: the upper half of a float */
            memcpy(&h, b + 2 * k, sizeof h);
            u = (uint32_t)h << 16;
            memcpy(out + k, &u, sizeof u);
        }
    }
    return n;
}

hone_status hone_tensors_read_f32(const hone_tensors *t, size_t i, float *out, size_t n, hone_err *err)
{
    char q[ST_QUOTED];
    unsigned char piece[PIECE * sizeof(double)];
    hone_status s;
    const struct st_entry *e = readable(t, i, &s, err);
    if (!e)
        return s;
    const hone_dtype held = st_dtypes[e->dtype].held;
    const size_t size = hone_dtype_size(held);
    if (held != HONE_F32 && held != HONE_F16 && held != HONE_BF16 && held != HONE_F64)
        return err_set(err, HONE_E_SHAPE, t->where, "tensor \"%s\" is of dtype %s; wanted F32, F16, BF16 or F64",
                       st_quote(q, st_name(e)), st_dtypes[e->dtype].name);
    if (n != (e->end - e->begin) / size)
        return err_set(err, HONE_E_SHAPE, t->where, "tensor \"%s\" has %" PRIu64 " elements; there is room for %zu",
                       st_quote(q, st_name(e)), (e->end - e->begin) / size, n);
    if (held == HONE_F32)
        return st_bytes(t, out, n * size, t->data + e->begin, err);
    for (size_t at = 0; at < n && s == HONE_OK; at += PIECE) {
        const size_t k = n - at < PIECE ? n - at : PIECE;
        s = st_bytes(t, piece, k * size, t->data + e->begin + at * size, err);
        const size_t done = s == HONE_OK ? convert(held, piece, k, out + at) : k;
        if (done < k)
            s = err_set(err, HONE_E_NONFINITE, t->where, "tensor \"%s\", element %zu: an F64 beyond the range of F32",
                        st_quote(q, st_name(e)), at + done);
    }
    return s;
}
