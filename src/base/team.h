/* Threads for short loops that follow each other closely: a member that has nothing to do looks for work for a bounded
 * time (TEAM_SPIN_NS) and sleeps then. For kernels of a decision, which take a few microseconds each and would spend
 * most of their time in waking threads of a pool. */
#ifndef BASE_TEAM_H
#define BASE_TEAM_H

#include "hone/base.h"

struct team;

/* How long a member looks for work before it sleeps. */
enum { TEAM_SPIN_NS = 100000 };

/* One item of a loop, run once, by any thread of the team; items must not depend on each other. */
typedef void (*team_fn)(void *arg, int32_t item);

/* `threads`, the caller of team_run among them, at least 1. Owns: the result. Errors as those of pool_create. The
 * threads leave signals to the program's others. */
struct team *team_create(hone_ctx *ctx, int threads, hone_err *err);
void team_destroy(struct team *t); /* Nullable: t. No run may be under way. */
int team_threads(const struct team *t);

/* Runs fn for each item in [0, items) and returns when all are done; what they wrote is then seen by the caller. Items
 * are handed out one by one in order, so a thread that is late leaves its part to the others and the result may not
 * depend on which thread runs which. Allocates nothing. If another run of this team is under way, the caller does all
 * by itself. */
void team_run(struct team *t, team_fn fn, void *arg, int32_t items);

#endif
