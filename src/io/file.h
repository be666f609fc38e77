/* Files: reading at an offset, and writing that replaces a file whole or not at all. */
#ifndef IO_FILE_H
#define IO_FILE_H

#include "base/mem.h"
#include "hone/base.h"

#define FILE_WHERE 96 /* as hone_err.where */

/* `path` for hone_err.where: the end of a long one, which holds the file's name. */
void file_where(char where[FILE_WHERE], const char *path);

/* --- reading --- */

struct file_in {
    int fd;        /* -1: none */
    uint64_t size; /* bytes, when it was opened */
    char where[FILE_WHERE];
};

/* HONE_E_IO: "what: the system's words for `code`". */
hone_status file_fail(hone_err *err, const char *where, const char *what, int code);

/* Opens a regular file; anything else (a folder, a pipe) is refused without waiting on it. */
hone_status file_in_open(struct file_in *f, const char *path, hone_err *err);
/* n bytes from byte `at`. A file that has become shorter is HONE_E_IO. Thread: any number at once. */
hone_status file_in_read(const struct file_in *f, void *out, size_t n, uint64_t at, hone_err *err);
void file_in_close(struct file_in *f);

/* --- writing --- */

/* The first failure stays: later writes do nothing, and file_out_commit tells it. */
struct file_out {
    struct mem *m;
    int fd, dir;         /* the temporary file and its folder; -1: none */
    const char *leaf;    /* the file's name in its folder; borrowed from the path */
    char *temp;          /* the temporary name in the folder */
    unsigned char *room; /* small writes gather here */
    size_t n_room;
    uint64_t written;
    hone_status status;
    hone_err *err;
    char where[FILE_WHERE];
};

/* `path` and `err` are borrowed until commit or abort. On failure nothing is left to abort. */
hone_status file_out_open(struct file_out *f, struct mem *m, const char *path, hone_err *err);
void file_out_write(struct file_out *f, const void *bytes, size_t n);
/* Sync, rename, sync the folder. Frees all in any case; if it fails before the rename, the old file stands. */
hone_status file_out_commit(struct file_out *f);
/* Drops the temporary file and frees all. */
void file_out_abort(struct file_out *f);

#endif
