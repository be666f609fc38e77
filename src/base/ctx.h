/* What a hone_ctx holds. */
#ifndef BASE_CTX_H
#define BASE_CTX_H

#include "base/mem.h"
#include "hone/base.h"

struct hone_ctx {
    struct mem mem;
    hone_log_fn log;
    void *log_user;
    int threads;
    _Atomic uint64_t next_id; /* numbers for objects that must be told apart */
};

/* Formats one line and hands it to the context's sink, if there is one. */
void ctx_log(const hone_ctx *ctx, hone_log_level level, const char *fmt, ...) HONE_PRINTF(3, 4);

#endif
