/* What an open file of tensors holds; shared by the files safetensors*.c. */
#ifndef IO_SAFETENSORS_H
#define IO_SAFETENSORS_H

#include <string.h>

#include "base/mem.h"
#include "hone/io.h"
#include "io/file.h"

#define ST_HEADER_MAX 100000000u /* bytes of JSON that the format allows */
#define ST_METADATA   "__metadata__"

/* An element type of the format. */
struct st_dtype {
    const char *name;
    unsigned bits;
    hone_dtype held; /* HONE_DTYPES: hone has none like it */
};

extern const struct st_dtype st_dtypes[];
int st_dtype_find(const char *name); /* index; -1: the format has no such type */
int st_dtype_of(hone_dtype t);       /* index; -1: t is no type */

/* One tensor, in one piece of the arena: its dimensions, then its name. */
struct st_entry {
    struct st_entry *next; /* in the order of the header */
    uint64_t begin, end;   /* bytes of the data section */
    uint32_t rank, index;  /* index: by begin */
    int dtype;             /* of st_dtypes */
    uint64_t dim[];        /* st_dims(e) of them */
};

/* One pair of the metadata. */
struct st_pair {
    struct st_pair *next;
    char key[]; /* closed by NUL; the value behind it as well */
};

struct hone_tensors {
    hone_ctx *ctx;
    struct arena arena;         /* entries and pairs */
    struct file_in file;        /* fd -1: bytes in memory */
    const unsigned char *bytes; /* borrowed; NULL: a file */
    uint64_t size, data;        /* of the file, in bytes; where the data section begins */
    struct st_entry *first;
    struct st_pair *first_pair;
    void **by_offset, **by_name; /* the entries, sorted */
    void **pairs;                /* the pairs by key */
    size_t n, n_pairs;
    char where[FILE_WHERE];
};

/* Dimensions kept: a tensor of a higher rank cannot be read, and none of its are. */
static inline uint32_t st_dims(const struct st_entry *e)
{
    return e->rank <= HONE_MAX_RANK ? e->rank : 0;
}

static inline const char *st_name(const struct st_entry *e)
{
    return (const char *)(e->dim + st_dims(e));
}

static inline const char *st_value(const struct st_pair *p)
{
    return p->key + strlen(p->key) + 1;
}

/* A name for messages: without control characters, its middle left out if it is long. */
#define ST_QUOTED 100
const char *st_quote(char buf[ST_QUOTED], const char *name);

/* n bytes of the file from byte `at`; they are inside it. */
hone_status st_bytes(const struct hone_tensors *t, void *out, size_t n, uint64_t at, hone_err *err);

/* Parses the `n` bytes of header behind byte 8 into first, first_pair, n and n_pairs. Each entry's size fits its shape.
 */
hone_status st_header(struct hone_tensors *t, uint64_t n, hone_err *err);

/* Sorts n pointers, stably, in time n log n whatever they are; scratch: room for n. */
typedef int (*st_compare)(const void *a, const void *b);
void st_sort(void **v, void **scratch, size_t n, st_compare compare);

#endif
