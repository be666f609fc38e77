/* Errors as values: setting them, naming them. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *hone_status_name(hone_status code)
{
    static const char *const names[] = {
        [HONE_OK] = "ok",
        [HONE_E_ARG] = "arg",
        [HONE_E_SHAPE] = "shape",
        [HONE_E_CONFIG] = "config",
        [HONE_E_NOMEM] = "nomem",
        [HONE_E_IO] = "io",
        [HONE_E_FORMAT] = "format",
        [HONE_E_DEVICE] = "device",
        [HONE_E_UNSUPPORTED] = "unsupported",
        [HONE_E_NONFINITE] = "nonfinite",
        [HONE_E_STATE] = "state",
        [HONE_E_BUSY] = "busy",
    };
    if ((unsigned)code >= sizeof names / sizeof names[0] || !names[code])
        return "unknown";
    return names[code];
}

hone_status err_set(hone_err *err, hone_status code, const char *where, const char *fmt, ...)
{
    if (!err || err->code != HONE_OK)
        return code;
    err->code = code;
    snprintf(err->where, sizeof err->where, "%s", where ? where : "");
    va_list ap;
    va_start(ap, fmt);
    if (vsnprintf(err->text, sizeof err->text, fmt, ap) < 0)
        err->text[0] = '\0';
    va_end(ap);
    return code;
}

_Noreturn void err_bug(const char *file, int line, const char *msg)
{
    fprintf(stderr, "hone: bug at %s:%d: %s\n", file, line, msg);
    abort();
}
