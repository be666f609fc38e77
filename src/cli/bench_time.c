/* Timing runs, one by one. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/ctx.h"
#include "base/err.h"
#include "cli/bench.h"

static const double WARM = 0.3, WHOLE = 3; /* seconds */
enum { WARM_RUNS = 2, LEAST = 20, MOST = 100000 };

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Value below which the share q of n sorted values lies. */
static double quantile(const double *sorted, int n, double q)
{
    const double at = q * (n - 1);
    const int i = (int)at, j = i + 1 < n ? i + 1 : i;
    return sorted[i] + (at - i) * (sorted[j] - sorted[i]);
}

/* Runs until everything is in its place; the time of the last run, in seconds. */
static double warm_up(struct bench *b, uint64_t *count, hone_err *err)
{
    const double begin = clock_seconds();
    double last = 0;
    for (int i = 0; i < WARM_RUNS || clock_seconds() - begin < WARM; i++) {
        const double from = clock_seconds();
        if (bench_once(b, (*count)++, err) != HONE_OK)
            return 0;
        last = clock_seconds() - from;
    }
    return last;
}

hone_status bench_time(struct bench *b, struct bench_timing *t, hone_err *err)
{
    uint64_t count = 0;
    const double one = warm_up(b, &count, err);
    if (err_is(err))
        return err->code;
    const double wanted = WHOLE / (one > 1e-6 ? one : 1e-6);
    t->repeats = b->o.repeats ? (int)b->o.repeats : wanted < LEAST ? LEAST : wanted > MOST ? MOST : (int)wanted;
    double *ms = mem_array(&b->ctx->mem, (size_t)t->repeats, sizeof *ms);
    if (!ms)
        return err_set(err, HONE_E_NOMEM, "bench", "no memory for %d times", t->repeats);
    const uint64_t own = hone_ctx_mem(b->ctx).allocations;
    const int64_t all = bench_allocations();
    for (int i = 0; i < t->repeats && !err_is(err); i++) {
        const uint64_t from = clock_ns();
        bench_once(b, count++, err);
        ms[i] = 1e-6 * (double)(clock_ns() - from);
    }
    t->allocations = hone_ctx_mem(b->ctx).allocations - own;
    t->process_allocations = all < 0 ? -1 : bench_allocations() - all;
    t->mean = 0;
    for (int i = 0; i < t->repeats; i++)
        t->mean += ms[i] / t->repeats;
    qsort(ms, (size_t)t->repeats, sizeof *ms, by_value);
    t->min = ms[0];
    t->p50 = quantile(ms, t->repeats, 0.5);
    t->p99 = quantile(ms, t->repeats, 0.99);
    mem_free(&b->ctx->mem, ms);
    return err->code;
}
