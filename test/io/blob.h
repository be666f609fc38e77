/* Files of tensors made by hand, and an allocator that fails on purpose. */
#ifndef TEST_IO_BLOB_H
#define TEST_IO_BLOB_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hone/io.h"

struct blob {
    unsigned char *p;
    size_t n;
};

/* The length n_claimed, the header, n_data bytes 0, 1, 2 ... (mod 2, so that they are good bools) */
static inline struct blob make_n(uint64_t n_claimed, const char *header, size_t n_header, size_t n_data)
{
    struct blob b = {malloc(8 + n_header + n_data + 1), 8 + n_header + n_data};
    for (int i = 0; i < 8; i++)
        b.p[i] = (unsigned char)(n_claimed >> 8 * i);
    memcpy(b.p + 8, header, n_header);
    for (size_t i = 0; i < n_data; i++)
        b.p[8 + n_header + i] = i & 1;
    return b;
}

static inline struct blob make(const char *header, size_t n_data)
{
    return make_n(strlen(header), header, strlen(header), n_data);
}

/* The bytes go into a file and are opened there. */
static inline hone_tensors *open_in_file(hone_ctx *ctx, struct blob b, hone_err *err)
{
    char path[] = "/tmp/hone-tensors-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, b.p, b.n) != (ssize_t)b.n)
        return NULL;
    close(fd);
    hone_tensors *t = hone_tensors_open(ctx, path, err);
    unlink(path);
    return t;
}

/* An allocator that fails at the n-th call and counts what is out. */
struct failing {
    long calls, fail_at, live;
};

static inline void *fail_alloc(void *user, size_t bytes)
{
    struct failing *f = user;
    if (++f->calls == f->fail_at)
        return NULL;
    f->live++;
    return malloc(bytes);
}

static inline void fail_release(void *user, void *p)
{
    ((struct failing *)user)->live--;
    free(p);
}

#endif
