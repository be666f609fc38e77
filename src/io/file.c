/* Files: positioned reads, and writing by a temporary name, sync and rename. */
#define _FILE_OFFSET_BITS 64
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

#define ROOM      65536             /* bytes gathered before a write */
#define CALL_MAX  ((size_t)1 << 30) /* bytes of one system call; Linux takes no more than 2^31 - 4096 */
#define TEMP_LEAF 180               /* bytes of the file's name in the temporary one: names end at 255 */
#define TEMP_NAME (TEMP_LEAF + 64)

void file_where(char where[FILE_WHERE], const char *path)
{
    size_t n = strlen(path);
    if (n < FILE_WHERE)
        memcpy(where, path, n + 1);
    else
        snprintf(where, FILE_WHERE, "...%s", path + n - (FILE_WHERE - 4));
}

hone_status file_fail(hone_err *err, const char *where, const char *what, int code)
{
    char text[128];
    if (strerror_r(code, text, sizeof text))
        snprintf(text, sizeof text, "error %d", code);
    return err_set(err, HONE_E_IO, where, "%s: %s", what, text);
}

/* --- reading --- */

hone_status file_in_open(struct file_in *f, const char *path, hone_err *err)
{
    struct stat st;
    file_where(f->where, path);
    f->size = 0;
    do /* without O_NONBLOCK, a pipe that nobody writes to would hold us here */
        f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (f->fd < 0 && errno == EINTR);
    if (f->fd < 0)
        return file_fail(err, f->where, "cannot open", errno);
    hone_status s = HONE_OK;
    if (fstat(f->fd, &st))
        s = file_fail(err, f->where, "cannot tell its size", errno);
    else if (!S_ISREG(st.st_mode))
        s = err_set(err, HONE_E_IO, f->where, "is %s; wanted a regular file",
                    S_ISDIR(st.st_mode) ? "a folder" : "a pipe, socket or device");
    else
        f->size = (uint64_t)st.st_size;
    if (s != HONE_OK)
        file_in_close(f);
    return s;
}

hone_status file_in_read(const struct file_in *f, void *out, size_t n, uint64_t at, hone_err *err)
{
    unsigned char *to = out;
    while (n) {
        ssize_t got = pread(f->fd, to, n < CALL_MAX ? n : CALL_MAX, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return file_fail(err, f->where, "cannot read", errno);
        if (got == 0)
            return err_set(err, HONE_E_IO, f->where,
                           "ends at or before byte %" PRIu64 " but had %" PRIu64
                           " bytes when it was opened; something cut it short meanwhile",
                           at, f->size);
        to += got;
        n -= (size_t)got;
        at += (uint64_t)got;
    }
    return HONE_OK;
}

void file_in_close(struct file_in *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

/* --- writing --- */

static hone_status out_fail(struct file_out *f, const char *what)
{
    return f->status = file_fail(f->err, f->where, what, errno);
}

/* Frees all but the temporary file's name in the folder. */
static void out_finish(struct file_out *f)
{
    if (f->fd >= 0)
        close(f->fd);
    if (f->dir >= 0)
        close(f->dir);
    f->fd = f->dir = -1;
    mem_free(f->m, f->temp);
    mem_free(f->m, f->room);
    f->temp = NULL;
    f->room = NULL;
}

/* Opens the folder of `path` and points f->leaf at the name in it. */
static hone_status open_folder(struct file_out *f, const char *path)
{
    const char *slash = strrchr(path, '/');
    f->leaf = slash ? slash + 1 : path;
    if (!*f->leaf || !strcmp(f->leaf, ".") || !strcmp(f->leaf, ".."))
        return f->status = err_set(f->err, HONE_E_ARG, f->where, "wanted the path of a file");
    size_t n = !slash ? 1 : slash == path ? 1 : (size_t)(slash - path);
    char *folder = mem_alloc(f->m, n + 1);
    if (!folder)
        return f->status = err_set(f->err, HONE_E_NOMEM, f->where, "no memory for a path of %zu bytes", n);
    memcpy(folder, slash ? path : ".", n);
    f->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    mem_free(f->m, folder);
    return f->dir < 0 ? out_fail(f, "cannot open its folder") : HONE_OK;
}

/* A new file beside the old one, not more open to others than the old one is. */
static hone_status open_temp(struct file_out *f)
{
    struct stat st;
    mode_t mode = 0666;
    bool old = fstatat(f->dir, f->leaf, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (old && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return f->status = err_set(f->err, HONE_E_ARG, f->where, "is not a regular file; it is not replaced");
    if (old && S_ISREG(st.st_mode))
        mode = st.st_mode & 0777;
    else
        old = false;
    for (int k = 0; k < 1000; k++) {
        snprintf(f->temp, TEMP_NAME, ".%.*s.%ld-%d.tmp", TEMP_LEAF, f->leaf, (long)getpid(), k);
        f->fd = openat(f->dir, f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (f->fd >= 0 || (errno != EEXIST && errno != EINTR))
            break;
    }
    if (f->fd < 0)
        return out_fail(f, "cannot create a temporary file in its folder");
    if (old)
        (void)fchmod(f->fd, mode); /* the mask may have taken bits away; where there are no modes this fails */
    return HONE_OK;
}

hone_status file_out_open(struct file_out *f, struct mem *m, const char *path, hone_err *err)
{
    *f = (struct file_out){.m = m, .fd = -1, .dir = -1, .err = err};
    file_where(f->where, path);
    f->temp = mem_alloc(m, TEMP_NAME);
    f->room = mem_alloc(m, ROOM);
    if (!f->temp || !f->room)
        f->status = err_set(err, HONE_E_NOMEM, f->where, "no memory for writing (%d bytes)", ROOM + TEMP_NAME);
    else if (open_folder(f, path) == HONE_OK)
        open_temp(f);
    if (f->status != HONE_OK)
        out_finish(f);
    return f->status;
}

static void write_all(struct file_out *f, const unsigned char *from, size_t n)
{
    while (n && f->status == HONE_OK) {
        ssize_t put = write(f->fd, from, n < CALL_MAX ? n : CALL_MAX);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            errno = put == 0 ? EIO : errno;
            char what[64];
            snprintf(what, sizeof what, "cannot write after byte %" PRIu64, f->written);
            out_fail(f, what);
            return;
        }
        from += put;
        n -= (size_t)put;
        f->written += (uint64_t)put;
    }
}

static void flush(struct file_out *f)
{
    write_all(f, f->room, f->n_room);
    f->n_room = 0;
}

void file_out_write(struct file_out *f, const void *bytes, size_t n)
{
    if (f->status != HONE_OK || n == 0)
        return;
    if (n > ROOM - f->n_room)
        flush(f);
    if (n >= ROOM) {
        write_all(f, bytes, n);
        return;
    }
    memcpy(f->room + f->n_room, bytes, n);
    f->n_room += n;
}

hone_status file_out_commit(struct file_out *f)
{
    flush(f);
    if (f->status == HONE_OK && fsync(f->fd))
        out_fail(f, "cannot sync");
    if (f->status == HONE_OK) {
        int fd = f->fd;
        f->fd = -1; /* a failed close has closed it all the same */
        if (close(fd))
            out_fail(f, "cannot close");
    }
    if (f->status == HONE_OK && renameat(f->dir, f->temp, f->dir, f->leaf))
        out_fail(f, "cannot put the new file in the place of the old");
    if (f->status != HONE_OK) {
        file_out_abort(f);
        return f->status;
    }
    if (fsync(f->dir) && errno != EINVAL && errno != ENOTSUP) /* some file systems have no sync of folders */
        out_fail(f, "the new file is in place, but its folder cannot be synced: it may not outlive a power cut");
    out_finish(f);
    return f->status;
}

void file_out_abort(struct file_out *f)
{
    if (f->dir >= 0)
        unlinkat(f->dir, f->temp, 0);
    out_finish(f);
}
