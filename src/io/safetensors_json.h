/* The pieces of JSON that the header of a file of tensors is made of, read as a stream: no tree, no recursion, a fixed
 * buffer. What stands between the pieces is the business of safetensors_header.c. */
#ifndef IO_SAFETENSORS_JSON_H
#define IO_SAFETENSORS_JSON_H

#include "hone/base.h"
#include "io/file.h"

#define JSON_ROOM 65536 /* bytes read from a file at once */

/* After a failure every call fails; the hone_err tells the first one. */
struct json {
    const struct file_in *file; /* NULL: all of the header is at buf */
    uint64_t base;              /* of the header's first byte in the file */
    uint64_t size, at;          /* bytes of header; the next one to read */
    const unsigned char *buf;   /* header bytes [buf_at, buf_at + n_buf) */
    uint64_t buf_at, n_buf;
    unsigned char *room; /* JSON_ROOM bytes, if there is a file */
    const char *where;   /* the file, for messages */
    char subject[160];   /* what is being read, for messages: ` of tensor "a"`; may be empty */
    hone_status status;
    hone_err *err;
};

/* Sets the error "header byte N<subject>: <text>"; returns false. */
bool json_fail(struct json *j, hone_status code, const char *fmt, ...) HONE_PRINTF(3, 4);

/* The next byte after white space, not taken; -1 at the end and after a failure. */
int json_peek(struct json *j);
/* The end of the header, white space apart; -1 of json_peek that is not a failure. */
bool json_end(struct json *j);
/* Takes the mark c (after white space), or fails. */
bool json_mark(struct json *j, char c);
/* After a member: true with *more set if ',' follows, cleared if `close` does; both are taken. */
bool json_more(struct json *j, char close, bool *more);
/* Takes `null` if it is next. */
bool json_null(struct json *j);

/* A text, its escapes decoded, closed by NUL and cut off (between characters) where cap bytes end; cap 0: only
 * measured. *n: its whole length in bytes, the NUL apart; n >= cap if it was cut. A NUL inside (\u0000) is
 * HONE_E_UNSUPPORTED. */
bool json_text(struct json *j, char *out, size_t cap, size_t *n);

/* A whole number below 2^64, written plainly: no sign, fraction, exponent or leading zero. */
bool json_u64(struct json *j, uint64_t *v);

#endif
