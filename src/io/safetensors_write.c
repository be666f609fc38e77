/* Files of tensors: writing one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/ctx.h"
#include "base/err.h"
#include "base/text.h"
#include "io/safetensors.h"

/* --- checks --- */

/* A name or key; `what` for the message. */
static hone_status check_name(const char *where, const char *what, const char *name, hone_err *err)
{
    char q[ST_QUOTED];
    if (!name)
        return err_set(err, HONE_E_ARG, where, "%s without a name", what);
    const size_t n = strlen(name);
    if (text_utf8(name, n) != n)
        return err_set(err, HONE_E_ARG, where, "%s: its name is not UTF-8 from byte %zu on", what, text_utf8(name, n));
    if (n > HONE_TENSOR_NAME_MAX)
        return err_set(err, HONE_E_ARG, where, "%s \"%s\": a name of %zu bytes; at most %d", what, st_quote(q, name), n,
                       HONE_TENSOR_NAME_MAX);
    return HONE_OK;
}

/* Bytes of data of a checked source. */
static uint64_t bytes_of(const hone_tensor_source *s)
{
    return (uint64_t)hone_numel(&s->type.shape) * hone_dtype_size(s->type.dtype);
}

static hone_status check_source(const char *where, const hone_tensor_source *s, uint64_t *total, hone_err *err)
{
    char q[ST_QUOTED], shape[96];
    hone_status st = check_name(where, "a tensor", s->name, err);
    if (st != HONE_OK)
        return st;
    st_quote(q, s->name);
    if (!strcmp(s->name, ST_METADATA))
        return err_set(err, HONE_E_ARG, where, "a tensor cannot be called \"" ST_METADATA "\"");
    const size_t size = hone_dtype_size(s->type.dtype);
    if (st_dtype_of(s->type.dtype) < 0)
        return err_set(err, HONE_E_SHAPE, where, "tensor \"%s\": %d is no element type", q, (int)s->type.dtype);
    const bool ranked = s->type.shape.rank >= 0 && s->type.shape.rank <= HONE_MAX_RANK;
    const int64_t n = ranked ? hone_numel(&s->type.shape) : -1;
    if (!ranked)
        return err_set(err, HONE_E_SHAPE, where, "tensor \"%s\": rank %d; wanted 0 to %d", q, s->type.shape.rank,
                       HONE_MAX_RANK);
    if (n < 0 || (uint64_t)n > UINT64_MAX / 8 / size || (uint64_t)n * size > UINT64_MAX / 8 - *total)
        return err_set(err, HONE_E_SHAPE, where, "tensor \"%s\": bad shape %s", q,
                       hone_shape_text(&s->type.shape, shape, sizeof shape));
    if (n > 0 && !s->data)
        return err_set(err, HONE_E_ARG, where, "tensor \"%s\": no data", q);
    *total += (uint64_t)n * size;
    const unsigned char *b = s->data;
    for (int64_t k = 0; s->type.dtype == HONE_BOOL && k < n; k++)
        if (b[k] > 1)
            return err_set(err, HONE_E_FORMAT, where, "tensor \"%s\", element %" PRId64 ": a bool of %u; wanted 0 or 1",
                           q, k, b[k]);
    return HONE_OK;
}

/* --- order --- */

struct plan {
    char where[FILE_WHERE];
    void **tensors;  /* const hone_tensor_source *, in the order of the file */
    void **metadata; /* const hone_metadata *, by key */
    size_t n, n_metadata;
};

static int by_name(const void *a, const void *b)
{
    const hone_tensor_source *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int by_size(const void *a, const void *b)
{
    const hone_tensor_source *x = a, *y = b;
    return (int)hone_dtype_size(y->type.dtype) - (int)hone_dtype_size(x->type.dtype);
}

static int by_key(const void *a, const void *b)
{
    const hone_metadata *x = a, *y = b;
    return strcmp(x->key, y->key);
}

static hone_status order(struct plan *p, void **scratch, hone_err *err)
{
    char q[ST_QUOTED];
    st_sort(p->tensors, scratch, p->n, by_name);
    for (size_t i = 1; i < p->n; i++)
        if (by_name(p->tensors[i - 1], p->tensors[i]) == 0)
            return err_set(err, HONE_E_ARG, p->where, "two tensors are called \"%s\"",
                           st_quote(q, ((const hone_tensor_source *)p->tensors[i])->name));
    st_sort(p->tensors, scratch, p->n, by_size); /* stable: names stay in order */
    st_sort(p->metadata, scratch, p->n_metadata, by_key);
    for (size_t i = 1; i < p->n_metadata; i++)
        if (by_key(p->metadata[i - 1], p->metadata[i]) == 0)
            return err_set(err, HONE_E_ARG, p->where, "two metadata have the key \"%s\"",
                           st_quote(q, ((const hone_metadata *)p->metadata[i])->key));
    return HONE_OK;
}

/* --- the header --- */

/* Written twice: first without a file, to learn its length. */
struct emit {
    struct file_out *file; /* NULL: count */
    uint64_t n;
};

static void put(struct emit *e, const char *s, size_t n)
{
    if (e->file)
        file_out_write(e->file, s, n);
    e->n += n;
}

static void put_text(struct emit *e, const char *s)
{
    put(e, s, strlen(s));
}

static void put_u64(struct emit *e, uint64_t v)
{
    char buf[24];
    put(e, buf, (size_t)snprintf(buf, sizeof buf, "%" PRIu64, v));
}

/* A text in quotes. Only what JSON demands is escaped. */
static void put_json(struct emit *e, const char *s)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    char buf[8];
    put(e, "\"", 1);
    for (const char *from = s;; s++) {
        if ((unsigned char)*s >= 0x20 && *s != '"' && *s != '\\')
            continue;
        put(e, from, (size_t)(s - from));
        from = s + 1;
        if (!*s)
            break;
        const char *p = strchr(plain, *s);
        const int n = p ? snprintf(buf, sizeof buf, "\\%c", letter[p - plain])
                        : snprintf(buf, sizeof buf, "\\u%04x", (unsigned char)*s);
        put(e, buf, (size_t)n);
    }
    put(e, "\"", 1);
}

static void put_header(struct emit *e, const struct plan *p)
{
    uint64_t at = 0;
    put(e, "{", 1);
    if (p->n_metadata)
        put_text(e, "\"" ST_METADATA "\":{");
    for (size_t i = 0; i < p->n_metadata; i++) {
        const hone_metadata *m = p->metadata[i];
        put(e, ",", i > 0);
        put_json(e, m->key);
        put(e, ":", 1);
        put_json(e, m->value);
    }
    if (p->n_metadata)
        put_text(e, p->n ? "}," : "}");
    for (size_t i = 0; i < p->n; i++) {
        const hone_tensor_source *s = p->tensors[i];
        put(e, ",", i > 0);
        put_json(e, s->name);
        put_text(e, ":{\"dtype\":\"");
        put_text(e, st_dtypes[st_dtype_of(s->type.dtype)].name);
        put_text(e, "\",\"shape\":[");
        for (int k = 0; k < s->type.shape.rank; k++) {
            put(e, ",", k > 0);
            put_u64(e, (uint64_t)s->type.shape.dim[k]);
        }
        put_text(e, "],\"data_offsets\":[");
        put_u64(e, at);
        put(e, ",", 1);
        at += bytes_of(s);
        put_u64(e, at);
        put_text(e, "]}");
    }
    put(e, "}", 1);
}

static hone_status write_file(struct mem *m, const char *path, const struct plan *p, hone_err *err)
{
    struct emit count = {0};
    struct file_out f;
    unsigned char length[8];
    put_header(&count, p);
    const uint64_t n = (count.n + 7) / 8 * 8;
    if (n > ST_HEADER_MAX)
        return err_set(err, HONE_E_UNSUPPORTED, p->where,
                       "%zu tensors and %zu metadata need a header of %" PRIu64 " bytes; the format allows %u", p->n,
                       p->n_metadata, n, ST_HEADER_MAX);
    hone_status s = file_out_open(&f, m, path, err);
    if (s != HONE_OK)
        return s;
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(n >> 8 * i);
    file_out_write(&f, length, sizeof length);
    put_header(&(struct emit){.file = &f}, p);
    file_out_write(&f, "       ", (size_t)(n - count.n));
    for (size_t i = 0; i < p->n; i++)
        file_out_write(&f, ((const hone_tensor_source *)p->tensors[i])->data, (size_t)bytes_of(p->tensors[i]));
    return file_out_commit(&f);
}

hone_status hone_tensors_write(hone_ctx *ctx, const char *path, const hone_tensor_source *tensors, size_t n,
                               const hone_metadata *metadata, size_t n_metadata, hone_err *err)
{
    struct mem *m = &ctx->mem;
    struct plan p = {.n = n, .n_metadata = n_metadata};
    hone_status s = HONE_OK;
    uint64_t total = 0;
    if (err_is(err))
        return err->code;
    file_where(p.where, path);
    for (size_t i = 0; i < n && s == HONE_OK; i++)
        s = check_source(p.where, &tensors[i], &total, err);
    for (size_t i = 0; i < n_metadata && s == HONE_OK; i++) {
        const char *v = metadata[i].value;
        s = check_name(p.where, "metadata", metadata[i].key, err);
        if (s == HONE_OK && (!v || text_utf8(v, strlen(v)) != strlen(v)))
            s = err_set(err, HONE_E_ARG, p.where, "metadata \"%.80s\": the value is %s", metadata[i].key,
                        v ? "not UTF-8" : "missing");
    }
    if (s != HONE_OK)
        return s;
    p.tensors = mem_array(m, n, sizeof *p.tensors);
    p.metadata = mem_array(m, n_metadata, sizeof *p.metadata);
    void **scratch = mem_array(m, n > n_metadata ? n : n_metadata, sizeof *scratch);
    if (p.tensors && p.metadata && scratch) {
        for (size_t i = 0; i < n; i++)
            p.tensors[i] = (void *)&tensors[i];
        for (size_t i = 0; i < n_metadata; i++)
            p.metadata[i] = (void *)&metadata[i];
        s = order(&p, scratch, err);
        if (s == HONE_OK)
            s = write_file(m, path, &p, err);
    } else {
        s = err_set(err, HONE_E_NOMEM, p.where, "no memory to order %zu tensors and %zu metadata", n, n_metadata);
    }
    mem_free(m, p.tensors);
    mem_free(m, p.metadata);
    mem_free(m, scratch);
    return s;
}
