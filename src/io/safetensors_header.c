/* The header of a file of tensors: the grammar of its JSON, and what each entry must satisfy by itself. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/ctx.h"
#include "base/err.h"
#include "io/safetensors.h"
#include "io/safetensors_json.h"

enum { HAS_DTYPE = 1, HAS_SHAPE = 2, HAS_OFFSETS = 4, HAS_ALL = 7 };

/* The parser, and the entry that it is in. */
struct header {
    struct json json;
    struct hone_tensors *t;
    struct st_entry **last;
    struct st_pair **last_pair;
    bool metadata; /* seen */
    /* the entry */
    char name[HONE_TENSOR_NAME_MAX + 1], quoted[ST_QUOTED];
    size_t n_name;
    int has, dtype;
    uint64_t begin, end, rank, dim[HONE_MAX_RANK], numel;
    bool overflow; /* of numel */
    unsigned char room[JSON_ROOM];
};

/* A name or key into h->name, and its ':'. */
static bool name(struct header *h)
{
    struct json *j = &h->json;
    if (!json_text(j, h->name, sizeof h->name, &h->n_name))
        return false;
    st_quote(h->quoted, h->name);
    if (h->n_name >= sizeof h->name)
        return json_fail(j, HONE_E_UNSUPPORTED,
                         "the name that begins \"%.40s\" is %zu bytes long; at most %d are taken", h->quoted, h->n_name,
                         HONE_TENSOR_NAME_MAX);
    return json_mark(j, ':');
}

/* --- one entry --- */

static bool dtype(struct header *h)
{
    char name[48], quoted[ST_QUOTED]; /* what is cut off is no type */
    size_t n;
    struct json *j = &h->json;
    if (!json_text(j, name, sizeof name, &n))
        return false;
    h->dtype = st_dtype_find(name);
    return h->dtype >= 0 || json_fail(j, HONE_E_FORMAT, "the format has no dtype \"%s\"", st_quote(quoted, name));
}

/* The product is taken in the order of the dimensions, so [2^63, 4, 0] overflows and [0, 2^63, 4] does not. */
static bool shape(struct header *h)
{
    struct json *j = &h->json;
    bool more = true;
    uint64_t d;
    h->rank = 0;
    h->numel = 1;
    h->overflow = false;
    if (!json_mark(j, '['))
        return false;
    if (json_peek(j) == ']')
        return json_mark(j, ']');
    while (more) {
        if (!json_u64(j, &d) || !json_more(j, ']', &more))
            return false;
        if (h->rank < HONE_MAX_RANK)
            h->dim[h->rank] = d;
        h->rank++;
        h->overflow = h->overflow || (d && h->numel > UINT64_MAX / d);
        h->numel *= d;
    }
    return true;
}

static bool offsets(struct header *h)
{
    struct json *j = &h->json;
    return json_mark(j, '[') && json_u64(j, &h->begin) && json_mark(j, ',') && json_u64(j, &h->end) &&
           json_mark(j, ']');
}

static bool field(struct header *h)
{
    struct json *j = &h->json;
    char key[48], quoted[ST_QUOTED]; /* what is cut off is no field */
    size_t n;
    if (!json_text(j, key, sizeof key, &n))
        return false;
    int has = !strcmp(key, "dtype")          ? HAS_DTYPE
              : !strcmp(key, "shape")        ? HAS_SHAPE
              : !strcmp(key, "data_offsets") ? HAS_OFFSETS
                                             : 0;
    if (!has)
        return json_fail(j, HONE_E_FORMAT, "unknown field \"%s\"; an entry has dtype, shape and data_offsets",
                         st_quote(quoted, key));
    if (h->has & has)
        return json_fail(j, HONE_E_FORMAT, "field \"%s\" twice", key);
    h->has |= has;
    if (!json_mark(j, ':'))
        return false;
    return has == HAS_DTYPE ? dtype(h) : has == HAS_SHAPE ? shape(h) : offsets(h);
}

/* The size that dtype and shape ask for, against the offsets. */
static bool fits(struct header *h)
{
    struct json *j = &h->json;
    const struct st_dtype *d = &st_dtypes[h->dtype];
    const char *name = h->quoted;
    hone_status s = HONE_OK;
    if (h->end < h->begin)
        s = err_set(j->err, HONE_E_FORMAT, j->where,
                    "tensor \"%s\": data_offsets run backwards, from %" PRIu64 " to %" PRIu64, name, h->begin, h->end);
    else if (h->overflow || h->numel > UINT64_MAX / d->bits)
        s = err_set(j->err, HONE_E_FORMAT, j->where,
                    "tensor \"%s\": its size in bits (%" PRIu64 " dimensions of %s) overflows 64 bits", name, h->rank,
                    d->name);
    else if (h->numel * d->bits % 8)
        s = err_set(j->err, HONE_E_FORMAT, j->where,
                    "tensor \"%s\": %" PRIu64 " elements of %s are %" PRIu64 " bits, which do not end on a byte", name,
                    h->numel, d->name, h->numel * d->bits);
    else if (h->numel * d->bits / 8 != h->end - h->begin)
        s = err_set(j->err, HONE_E_FORMAT, j->where,
                    "tensor \"%s\": %" PRIu64 " elements of %s are %" PRIu64 " bytes, but data_offsets from %" PRIu64
                    " to %" PRIu64 " hold %" PRIu64,
                    name, h->numel, d->name, h->numel * d->bits / 8, h->begin, h->end, h->end - h->begin);
    j->status = s;
    return s == HONE_OK;
}

static bool keep(struct header *h)
{
    const uint32_t dims = h->rank <= HONE_MAX_RANK ? (uint32_t)h->rank : 0;
    struct st_entry *e = arena_alloc(&h->t->arena, sizeof *e + dims * sizeof e->dim[0] + h->n_name + 1);
    if (!e)
        return json_fail(&h->json, HONE_E_NOMEM, "no memory for entry %zu", h->t->n);
    e->begin = h->begin;
    e->end = h->end;
    e->rank = (uint32_t)h->rank; /* a header of 10^8 bytes holds fewer than 2^32 numbers */
    e->dtype = h->dtype;
    memcpy(e->dim, h->dim, dims * sizeof e->dim[0]);
    memcpy(e->dim + dims, h->name, h->n_name + 1);
    *h->last = e;
    h->last = &e->next;
    h->t->n++;
    return true;
}

static bool entry(struct header *h)
{
    struct json *j = &h->json;
    bool more = true;
    h->has = 0;
    snprintf(j->subject, sizeof j->subject, ", tensor \"%s\"", h->quoted);
    if (!json_mark(j, '{'))
        return false;
    if (json_peek(j) == '}')
        json_mark(j, '}');
    else
        while (more)
            if (!field(h) || !json_more(j, '}', &more))
                return false;
    if (h->has != HAS_ALL)
        return json_fail(j, HONE_E_FORMAT, "no %s",
                         !(h->has & HAS_DTYPE)   ? "dtype"
                         : !(h->has & HAS_SHAPE) ? "shape"
                                                 : "data_offsets");
    if (!fits(h) || !keep(h))
        return false;
    j->subject[0] = '\0';
    return true;
}

/* --- metadata --- */

/* Values may be long: they are measured, then read again into a piece of their size. */
static bool pair(struct header *h)
{
    struct json *j = &h->json;
    size_t n, n_again;
    if (!name(h))
        return false;
    snprintf(j->subject, sizeof j->subject, ", key \"%s\" of " ST_METADATA, h->quoted);
    const uint64_t at = j->at;
    if (!json_text(j, NULL, 0, &n))
        return false;
    struct st_pair *p = arena_alloc(&h->t->arena, sizeof *p + h->n_name + 1 + n + 1);
    if (!p)
        return json_fail(j, HONE_E_NOMEM, "no memory for %zu bytes of metadata", n);
    memcpy(p->key, h->name, h->n_name + 1);
    j->at = at;
    if (!json_text(j, p->key + h->n_name + 1, n + 1, &n_again))
        return false;
    if (n_again != n)
        return json_fail(j, HONE_E_IO, "the file changed while it was read");
    *h->last_pair = p;
    h->last_pair = &p->next;
    h->t->n_pairs++;
    snprintf(j->subject, sizeof j->subject, ", " ST_METADATA);
    return true;
}

static bool metadata(struct header *h)
{
    struct json *j = &h->json;
    bool more = true;
    snprintf(j->subject, sizeof j->subject, ", " ST_METADATA);
    if (h->metadata)
        return json_fail(j, HONE_E_FORMAT, "twice in one header");
    h->metadata = true;
    if (json_null(j)) /* the format's own reader takes it for none */
        more = false;
    else if (!json_mark(j, '{'))
        return false;
    else if (json_peek(j) == '}')
        more = !json_mark(j, '}');
    while (more)
        if (!pair(h) || !json_more(j, '}', &more))
            return false;
    j->subject[0] = '\0';
    return j->status == HONE_OK;
}

/* --- the whole --- */

static bool members(struct header *h)
{
    struct json *j = &h->json;
    bool more = true;
    if (json_peek(j) < 0 || j->at != 0) /* white space may follow the object, not precede it */
        return json_fail(j, HONE_E_FORMAT, "a header must begin with '{'");
    if (!json_mark(j, '{'))
        return false;
    if (json_peek(j) == '}')
        more = !json_mark(j, '}');
    while (more) {
        if (!name(h))
            return false;
        if (strcmp(h->name, ST_METADATA) ? !entry(h) : !metadata(h))
            return false;
        if (!json_more(j, '}', &more))
            return false;
    }
    return json_end(j) || json_fail(j, HONE_E_FORMAT, "bytes after the header's closing '}' that are not white space");
}

hone_status st_header(struct hone_tensors *t, uint64_t n, hone_err *err)
{
    struct header *h = mem_alloc(&t->ctx->mem, sizeof *h);
    if (!h)
        return err_set(err, HONE_E_NOMEM, t->where, "no memory to parse a header (%zu bytes)", sizeof *h);
    h->t = t;
    h->last = &t->first;
    h->last_pair = &t->first_pair;
    h->json = (struct json){.base = 8, .size = n, .where = t->where, .err = err, .room = h->room};
    if (t->bytes) {
        h->json.buf = t->bytes + 8;
        h->json.n_buf = n;
    } else {
        h->json.file = &t->file;
    }
    members(h);
    hone_status s = h->json.status;
    mem_free(&t->ctx->mem, h);
    return s;
}
