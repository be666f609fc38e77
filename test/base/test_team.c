/* The team: every item once, whoever runs it; runs that follow closely and after a pause; runs inside runs; items that
 * wait for each other; signals. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/ctx.h"
#include "base/team.h"
#include "check.h"

enum { ITEMS = 64 };

struct loop {
    int count[ITEMS]; /* plain ints: a second visitor would be a data race */
    struct team *team;
    atomic_int inner;
};

static void count_item(void *arg, int32_t item)
{
    ((struct loop *)arg)->count[item]++;
}

static void inner_item(void *arg, int32_t item)
{
    atomic_fetch_add(&((struct loop *)arg)->inner, item);
}

static void nested_item(void *arg, int32_t item)
{
    struct loop *l = arg;
    (void)item;
    team_run(l->team, inner_item, l, 4); /* 0 + 1 + 2 + 3 */
}

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000L}, NULL);
}

static void items(struct check *c)
{
    static const int32_t sizes[] = {0, 1, 2, 3, 7, ITEMS};
    for (int threads = 1; threads <= 4; threads++) {
        if (!check_case(c, "each item once, %d threads", threads))
            continue;
        hone_ctx *ctx = hone_ctx_create(&(hone_ctx_options){.threads = threads}, NULL);
        struct loop l = {.team = team_create(ctx, threads, NULL)};
        int expected[ITEMS] = {0};
        CHECK(c, l.team && team_threads(l.team) == threads);
        for (int run = 0; run < 3000 && l.team; run++) {
            const int32_t n = sizes[run % 6];
            team_run(l.team, count_item, &l, n);
            for (int32_t i = 0; i < n; i++)
                expected[i]++;
            if (run % 1000 == 999)
                pause_ms(2); /* they sleep by then */
        }
        for (int i = 0; i < ITEMS; i++)
            CHECK(c, l.count[i] == expected[i]);
        team_destroy(l.team);
        hone_ctx_destroy(ctx);
    }
}

static void nested(struct check *c)
{
    if (!check_case(c, "a run inside a run is done by its caller"))
        return;
    hone_ctx *ctx = hone_ctx_create(&(hone_ctx_options){.threads = 3}, NULL);
    struct loop l = {.team = team_create(ctx, 3, NULL)};
    for (int run = 0; run < 50; run++)
        team_run(l.team, nested_item, &l, 8);
    CHECK(c, atomic_load(&l.inner) == 50 * 8 * 6);
    team_destroy(l.team);
    hone_ctx_destroy(ctx);
}

/* Runs of few items and of more, close behind each other: a thread that comes late from one must not take an item of
 * the next twice. */
static void changing_sizes(struct check *c)
{
    enum { RUNS = 200000 };
    if (!check_case(c, "runs of changing sizes, close behind each other"))
        return;
    hone_ctx *ctx = hone_ctx_create(&(hone_ctx_options){.threads = 2}, NULL);
    struct loop l = {.team = team_create(ctx, 2, NULL)};
    for (int run = 0; run < RUNS; run++)
        team_run(l.team, count_item, &l, run % 2 ? 7 : 2);
    for (int i = 0; i < 7; i++)
        CHECK_MSG(c, l.count[i] == (i < 2 ? RUNS : RUNS / 2), "item %d: %d times", i, l.count[i]);
    team_destroy(l.team);
    hone_ctx_destroy(ctx);
}

/* --- items that wait for each other: so many threads there must be --- */

struct meeting {
    atomic_int here;
    int wanted;
    bool done[4];
};

static void meet(void *arg, int32_t item)
{
    struct meeting *m = arg;
    const uint64_t until = clock_ns() + 3000000000u;
    atomic_fetch_add(&m->here, 1);
    while (atomic_load(&m->here) < m->wanted && clock_ns() < until)
        sched_yield();
    m->done[item] = true;
}

static void slow_but_the_first(void *arg, int32_t item)
{
    if (item)
        pause_ms(3);
    ((struct meeting *)arg)->done[item] = true;
}

/* How many items of `n` are not done when the run returns, or did not meet the others. */
static int missing(struct team *t, team_fn fn, int n)
{
    struct meeting m = {.wanted = n};
    team_run(t, fn, &m, n);
    int bad = fn == meet && atomic_load(&m.here) != n;
    for (int i = 0; i < n; i++)
        bad += !m.done[i];
    return bad;
}

static void together(struct check *c)
{
    for (int threads = 2; threads <= 4; threads++) {
        if (!check_case(c, "all of %d threads take part, also after they slept", threads))
            continue;
        hone_ctx *ctx = hone_ctx_create(&(hone_ctx_options){.threads = threads}, NULL);
        struct team *t = team_create(ctx, threads, NULL);
        bool came = true;
        for (int i = 0; i < 6 && came; i++) {
            const uint64_t before = clock_ns();
            CHECK(c, missing(t, meet, threads) == 0);
            came = CHECK_MSG(c, clock_ns() - before < 2500000000u, "run %d: somebody did not come", i);
            CHECK(c, missing(t, slow_but_the_first, threads) == 0);
            if (i % 2)
                pause_ms(3);
        }
        team_destroy(t);
        hone_ctx_destroy(ctx);
    }
}

static void look_at_signals(void *arg, int32_t item)
{
    sigset_t set;
    meet(arg, item);
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    ((struct meeting *)arg)->done[item] = sigismember(&set, SIGINT);
}

static void signals(struct check *c)
{
    if (!check_case(c, "signals are left to other threads"))
        return;
    hone_ctx *ctx = hone_ctx_create(&(hone_ctx_options){.threads = 3}, NULL);
    struct team *t = team_create(ctx, 3, NULL);
    struct meeting m = {.wanted = 3};
    sigset_t set;
    team_run(t, look_at_signals, &m, 3);
    CHECK(c, m.done[0] + m.done[1] + m.done[2] == 2); /* the caller is one of them */
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    CHECK(c, !sigismember(&set, SIGINT));
    team_destroy(t);
    hone_ctx_destroy(ctx);
}

static void refusals(struct check *c)
{
    if (!check_case(c, "more threads than the budget, and none"))
        return;
    hone_ctx *ctx = hone_ctx_create(&(hone_ctx_options){.threads = 2}, NULL);
    for (int threads = 0; threads <= 3; threads += 3) {
        hone_err err = {0};
        CHECK(c, !team_create(ctx, threads, &err) && err.code == HONE_E_ARG);
    }
    hone_ctx_destroy(ctx);
}

void suite_team(struct check *c)
{
    items(c);
    nested(c);
    changing_sizes(c);
    together(c);
    signals(c);
    refusals(c);
}
