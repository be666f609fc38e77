/* Errors as values; see hone/base.h for the rules. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "hone/base.h"

/* Set `err` (if not NULL and not set before) to code, where and the formatted text; returns `code`. A failure to
 * format truncates. `where` may be NULL. */
hone_status err_set(hone_err *err, hone_status code, const char *where, const char *fmt, ...) HONE_PRINTF(4, 5);

/* True if `err` holds a failure already: the callee must then do nothing. */
static inline bool err_is(const hone_err *err)
{
    return err && err->code != HONE_OK;
}

/* A contract inside hone is broken: a bug of ours, never the user's. Always on, never around a call that works. */
#define HONE_BUG(cond, msg)                                                                                            \
    do {                                                                                                               \
        if (cond)                                                                                                      \
            err_bug(__FILE__, __LINE__, msg);                                                                          \
    } while (0)
_Noreturn void err_bug(const char *file, int line, const char *msg);

#endif
