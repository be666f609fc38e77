/* The team: every item once, whoever runs it; runs that follow closely and after a pause; runs inside runs. */
#define _POSIX_C_SOURCE 200809L
#include <stdatomic.h>
#include <time.h>

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
    refusals(c);
}
