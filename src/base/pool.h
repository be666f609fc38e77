/* Threads that share the items of a loop. For the environments; nothing here knows what an item is. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "hone/base.h"

struct pool;

/* Called once for each item in [0, items), by one of the pool's workers, 0 <= worker < pool_workers. */
typedef void (*pool_fn)(void *arg, size_t item, int worker);

/* `workers` threads, the caller of pool_run among them as worker 0; 0: as many as the context's core budget, which may
 * not be exceeded (HONE_E_ARG). HONE_E_NOMEM, HONE_E_DEVICE: no memory, or no more threads from the system.
 * Owns: the result, freed by pool_destroy, which waits for the threads to end. They sleep while there is no work, and
 * leave signals to the program's other threads. */
struct pool *pool_create(hone_ctx *ctx, int workers, hone_err *err);
void pool_destroy(struct pool *p); /* Nullable: p. No run may be under way. */
int pool_workers(const struct pool *p);

/* Runs fn for each item and returns when all are done; what the items wrote is then seen by the caller. Each worker
 * takes one contiguous range, the same whenever `items` is the same, in order; so an item meets the same thread each
 * time (but for worker 0, which is whoever calls). Allocates nothing; waits without spinning. HONE_E_STATE, and no item
 * is run: another run of this pool is under way, as it is for one of its items. */
hone_status pool_run(struct pool *p, pool_fn fn, void *arg, size_t items);

#endif
