/* Files of tensors: opening, the rules that bind all entries together, the index. */
#include "io/safetensors.h"

#include <inttypes.h>
#include <string.h>

#include "base/ctx.h"
#include "base/err.h"
#include "base/text.h"

/* --- element types --- */

const struct st_dtype st_dtypes[] = {
    {"F32", 32, HONE_F32},
    {"F16", 16, HONE_F16},
    {"BF16", 16, HONE_BF16},
    {"F64", 64, HONE_F64},
    {"I32", 32, HONE_I32},
    {"I64", 64, HONE_I64},
    {"U8", 8, HONE_U8},
    {"I8", 8, HONE_I8},
    {"BOOL", 8, HONE_BOOL},
    {"F8_E5M2", 8, HONE_DTYPES},
    {"F8_E4M3", 8, HONE_DTYPES},
    {"F8_E8M0", 8, HONE_DTYPES},
    {"F8_E4M3FNUZ", 8, HONE_DTYPES},
    {"F8_E5M2FNUZ", 8, HONE_DTYPES},
    {"F4", 4, HONE_DTYPES},
    {"F6_E2M3", 6, HONE_DTYPES},
    {"F6_E3M2", 6, HONE_DTYPES},
    {"I16", 16, HONE_DTYPES},
    {"U16", 16, HONE_DTYPES},
    {"U32", 32, HONE_DTYPES},
    {"C64", 64, HONE_DTYPES}, /* two floats */
    {"U64", 64, HONE_DTYPES},
};
#define N_DTYPES ((int)(sizeof st_dtypes / sizeof st_dtypes[0]))

int st_dtype_find(const char *name)
{
    for (int i = 0; i < N_DTYPES; i++)
        if (!strcmp(st_dtypes[i].name, name))
            return i;
    return -1;
}

int st_dtype_of(hone_dtype t)
{
    for (int i = 0; i < N_DTYPES; i++)
        if (st_dtypes[i].held == t && t != HONE_DTYPES)
            return i;
    return -1;
}

/* --- small things --- */

const char *st_quote(char buf[ST_QUOTED], const char *name)
{
    static const char gap[] = "...";
    size_t n = strlen(name), head = n, tail = n;
    if (n >= ST_QUOTED) { /* the ends of long names tell more than their middles */
        head = text_utf8(name, 40);
        tail = n - (ST_QUOTED - 40 - sizeof gap);
        while (((unsigned char)name[tail] & 0xC0) == 0x80)
            tail++;
    }
    memcpy(buf, name, head);
    size_t at = head;
    if (tail > head) {
        memcpy(buf + at, gap, sizeof gap - 1);
        at += sizeof gap - 1;
    }
    memcpy(buf + at, name + tail, n - tail);
    at += n - tail;
    buf[at] = '\0';
    for (size_t i = 0; i < at; i++) /* a name could speak to the terminal; 0xC2 0x80 to 0x9F are controls as well */
        if ((unsigned char)buf[i] < 0x20 || buf[i] == 0x7F)
            buf[i] = '?';
        else if ((unsigned char)buf[i] == 0xC2 && (unsigned char)buf[i + 1] < 0xA0)
            buf[i] = buf[i + 1] = '?';
    return buf;
}

/* Merge sort from runs of one up. */
void st_sort(void **v, void **scratch, size_t n, st_compare compare)
{
    for (size_t run = 1; run < n; run *= 2)
        for (size_t from = 0; from + run < n; from += 2 * run) {
            const size_t mid = from + run, to = mid + run < n ? mid + run : n;
            if (compare(v[mid - 1], v[mid]) <= 0)
                continue; /* most files are written in order */
            memcpy(scratch, v + from, run * sizeof *v);
            for (size_t a = 0, b = mid, at = from; a < run; at++)
                v[at] = b < to && compare(scratch[a], v[b]) > 0 ? v[b++] : scratch[a++];
        }
}

static int by_offset(const void *a, const void *b)
{
    const struct st_entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end; /* those without elements first */
}

static int by_name(const void *a, const void *b)
{
    return strcmp(st_name(a), st_name(b));
}

static int by_key(const void *a, const void *b)
{
    const struct st_pair *x = a, *y = b;
    return strcmp(x->key, y->key);
}

/* --- the rules over all entries --- */

static hone_status no_memory(const struct hone_tensors *t, hone_err *err)
{
    return err_set(err, HONE_E_NOMEM, t->where, "no memory for an index of %zu tensors and %zu metadata", t->n,
                   t->n_pairs);
}

/* The arrays by_offset, by_name and pairs, sorted. */
static hone_status make_index(struct hone_tensors *t, hone_err *err)
{
    struct mem *m = &t->ctx->mem;
    t->by_offset = mem_array(m, t->n, sizeof *t->by_offset);
    t->by_name = mem_array(m, t->n, sizeof *t->by_name);
    t->pairs = mem_array(m, t->n_pairs, sizeof *t->pairs);
    void **scratch = mem_array(m, t->n > t->n_pairs ? t->n : t->n_pairs, sizeof *scratch);
    if (!t->by_offset || !t->by_name || !t->pairs || !scratch) {
        mem_free(m, scratch);
        return no_memory(t, err);
    }
    size_t i = 0;
    for (struct st_entry *e = t->first; e; e = e->next, i++)
        t->by_offset[i] = t->by_name[i] = e;
    i = 0;
    for (struct st_pair *p = t->first_pair; p; p = p->next, i++)
        t->pairs[i] = p;
    st_sort(t->by_name, scratch, t->n, by_name);
    memcpy(t->by_offset, t->by_name, t->n * sizeof *t->by_name); /* equal offsets are ordered by name */
    st_sort(t->by_offset, scratch, t->n, by_offset);
    st_sort(t->pairs, scratch, t->n_pairs, by_key);
    for (i = 0; i < t->n; i++) {
        struct st_entry *e = t->by_offset[i];
        e->index = (uint32_t)i;
    }
    mem_free(m, scratch);
    return HONE_OK;
}

static hone_status check_names(const struct hone_tensors *t, hone_err *err)
{
    char q[ST_QUOTED];
    for (size_t i = 1; i < t->n; i++)
        if (by_name(t->by_name[i - 1], t->by_name[i]) == 0)
            return err_set(err, HONE_E_FORMAT, t->where, "tensor \"%s\" stands twice in the header",
                           st_quote(q, st_name(t->by_name[i])));
    for (size_t i = 1; i < t->n_pairs; i++)
        if (by_key(t->pairs[i - 1], t->pairs[i]) == 0)
            return err_set(err, HONE_E_FORMAT, t->where, "key \"%s\" stands twice in " ST_METADATA,
                           st_quote(q, ((const struct st_pair *)t->pairs[i])->key));
    return HONE_OK;
}

/* The tensors cover the data section from its first byte to its last, each byte once. */
static hone_status check_cover(const struct hone_tensors *t, hone_err *err)
{
    char q[ST_QUOTED];
    const uint64_t room = t->size - t->data;
    uint64_t end = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct st_entry *e = t->by_offset[i];
        if (e->begin != end)
            return err_set(err, HONE_E_FORMAT, t->where,
                           "tensor \"%s\": data_offsets begin at %" PRIu64 ", but %s %" PRIu64 ": %s",
                           st_quote(q, st_name(e)), e->begin,
                           i ? "the tensor before it ends at" : "the first must be at", end,
                           e->begin > end ? "a hole" : "an overlap");
        end = e->end;
    }
    if (end > room)
        return err_set(err, HONE_E_FORMAT, t->where,
                       "is cut short: its tensors need %" PRIu64 " bytes of data; after the header there are %" PRIu64,
                       end, room);
    if (end < room)
        return err_set(err, HONE_E_FORMAT, t->where,
                       "%" PRIu64 " bytes after the last tensor, which belong to none (data of %" PRIu64
                       " bytes, tensors end at %" PRIu64 ")",
                       room - end, room, end);
    return HONE_OK;
}

/* --- opening --- */

hone_status st_bytes(const struct hone_tensors *t, void *out, size_t n, uint64_t at, hone_err *err)
{
    if (!t->bytes)
        return file_in_read(&t->file, out, n, at, err);
    if (n)
        memcpy(out, t->bytes + at, n);
    return HONE_OK;
}

static hone_status index_file(struct hone_tensors *t, hone_err *err)
{
    unsigned char b[8];
    uint64_t n = 0;
    if (t->size < sizeof b)
        return err_set(err, HONE_E_FORMAT, t->where,
                       "has %" PRIu64 " bytes; a file of tensors begins with 8 for the length of its header", t->size);
    hone_status s = st_bytes(t, b, sizeof b, 0, err);
    if (s != HONE_OK)
        return s;
    for (int i = 7; i >= 0; i--)
        n = n << 8 | b[i];
    if (n > ST_HEADER_MAX)
        return err_set(err, HONE_E_FORMAT, t->where,
                       "claims a header of %" PRIu64 " bytes; the format allows %u (is it a file of tensors?)", n,
                       ST_HEADER_MAX);
    if (n > t->size - sizeof b)
        return err_set(err, HONE_E_FORMAT, t->where,
                       "is cut short: claims a header of %" PRIu64 " bytes, and has %" PRIu64 " after its first 8", n,
                       t->size - sizeof b);
    t->data = sizeof b + n;
    s = st_header(t, n, err);
    if (s == HONE_OK)
        s = make_index(t, err);
    if (s == HONE_OK)
        s = check_names(t, err);
    return s == HONE_OK ? check_cover(t, err) : s;
}

static hone_tensors *create(hone_ctx *ctx, const char *where, hone_err *err)
{
    hone_tensors *t = mem_alloc(&ctx->mem, sizeof *t);
    if (!t) {
        err_set(err, HONE_E_NOMEM, where, "no memory to open it");
        return NULL;
    }
    t->ctx = ctx;
    t->file.fd = -1;
    arena_init(&t->arena, &ctx->mem);
    file_where(t->where, where);
    return t;
}

hone_tensors *hone_tensors_open(hone_ctx *ctx, const char *path, hone_err *err)
{
    if (err_is(err))
        return NULL;
    hone_tensors *t = create(ctx, path, err);
    if (!t)
        return NULL;
    hone_status s = file_in_open(&t->file, path, err);
    t->size = t->file.size;
    if (s == HONE_OK)
        s = index_file(t, err);
    if (s == HONE_OK)
        return t;
    hone_tensors_close(t);
    return NULL;
}

hone_tensors *hone_tensors_from_memory(hone_ctx *ctx, const void *bytes, size_t n, hone_err *err)
{
    if (err_is(err))
        return NULL;
    hone_tensors *t = create(ctx, "tensors in memory", err);
    if (!t)
        return NULL;
    t->bytes = n ? bytes : (const unsigned char *)"";
    t->size = n;
    if (index_file(t, err) == HONE_OK)
        return t;
    hone_tensors_close(t);
    return NULL;
}

void hone_tensors_close(hone_tensors *t)
{
    if (!t)
        return;
    struct mem *m = &t->ctx->mem;
    file_in_close(&t->file);
    mem_free(m, t->by_offset);
    mem_free(m, t->by_name);
    mem_free(m, t->pairs);
    arena_finish(&t->arena);
    mem_free(m, t);
}
