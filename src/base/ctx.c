/* The context: memory, log, core budget. */
#define _GNU_SOURCE
#include "base/ctx.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"

/* Cores that this process may run on (a container or taskset may leave fewer than the machine has). */
static int cores(void)
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

static size_t machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : SIZE_MAX;
}

hone_ctx *hone_ctx_create(const hone_ctx_options *options, hone_err *err)
{
    static const hone_ctx_options zero = {0};
    const hone_ctx_options *o = options ? options : &zero;
    if (err_is(err))
        return NULL;
    if (o->threads < 0 || o->threads > 4096) {
        err_set(err, HONE_E_ARG, "ctx", "threads must be 0 (all cores) to 4096; got %d", o->threads);
        return NULL;
    }
    struct mem m;
    mem_init(&m, o->allocator, o->memory_budget ? o->memory_budget : machine_memory());
    hone_ctx *ctx = mem_alloc(&m, sizeof *ctx);
    if (!ctx) {
        err_set(err, HONE_E_NOMEM, "ctx", "no memory for a context");
        return NULL;
    }
    mem_init(&ctx->mem, &m.a, m.budget); /* the context itself is not counted */
    ctx->log = o->log;
    ctx->log_user = o->log_user;
    ctx->threads = o->threads ? o->threads : cores();
    return ctx;
}

void hone_ctx_destroy(hone_ctx *ctx)
{
    if (!ctx)
        return;
    struct mem m;
    mem_init(&m, &ctx->mem.a, 0);
    mem_free(&m, ctx);
}

hone_mem_stats hone_ctx_mem(const hone_ctx *ctx)
{
    const struct mem *m = &ctx->mem;
    return (hone_mem_stats){atomic_load(&m->calls), atomic_load(&m->live), atomic_load(&m->peak),
                            atomic_load(&m->planned)};
}

int hone_ctx_threads(const hone_ctx *ctx)
{
    return ctx->threads;
}

void ctx_log(const hone_ctx *ctx, hone_log_level level, const char *fmt, ...)
{
    char line[1024];
    if (!ctx->log)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    ctx->log(ctx->log_user, level, line);
}
