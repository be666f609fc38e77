/* A pool of threads with one loop at a time. */
#define _POSIX_C_SOURCE 200809L
#include "base/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/ctx.h"
#include "base/err.h"

struct worker {
    pthread_t thread;
    struct pool *pool;
    int index;
};

struct pool {
    struct mem *mem;
    int workers, started; /* wanted, the caller among them; threads that run */
    atomic_flag busy;     /* a run is under way */
    pthread_mutex_t lock; /* over all that follows */
    pthread_cond_t work, done;
    uint64_t turn; /* counts the runs; a worker that has seen a smaller one has work */
    int left;      /* threads that have not finished this turn */
    bool quit;
    pool_fn fn;
    void *arg;
    size_t items;
    struct worker worker[];
};

/* The first items % workers of them take one item more. */
static void do_share(pool_fn fn, void *arg, size_t items, int index, int workers)
{
    const size_t k = (size_t)index, n = (size_t)workers, base = items / n, more = items % n;
    const size_t from = k * base + (k < more ? k : more), to = from + base + (k < more);
    for (size_t i = from; i < to; i++)
        fn(arg, i, index);
}

static void *work_loop(void *self)
{
    const struct worker *w = self;
    struct pool *p = w->pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->turn == seen && !p->quit)
            pthread_cond_wait(&p->work, &p->lock);
        if (p->quit)
            break;
        seen = p->turn;
        const pool_fn fn = p->fn;
        void *const arg = p->arg;
        const size_t items = p->items;
        pthread_mutex_unlock(&p->lock);
        do_share(fn, arg, items, w->index, p->workers);
        pthread_mutex_lock(&p->lock);
        if (--p->left == 0)
            pthread_cond_signal(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Starts the threads with all signals blocked, which they inherit. Returns 0 or the system's error. */
static int start(struct pool *p)
{
    sigset_t all, before;
    int bad = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    for (int i = 1; i < p->workers && !bad; i++) {
        p->worker[i] = (struct worker){.pool = p, .index = i};
        bad = pthread_create(&p->worker[i].thread, NULL, work_loop, &p->worker[i]);
        p->started += !bad;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return bad;
}

struct pool *pool_create(hone_ctx *ctx, int workers, hone_err *err)
{
    if (err_is(err))
        return NULL;
    const int n = workers ? workers : ctx->threads;
    if (n < 1 || n > ctx->threads) {
        err_set(err, HONE_E_ARG, "pool", "workers must be 0 (the core budget) to %d, the core budget; got %d",
                ctx->threads, workers);
        return NULL;
    }
    struct pool *p = mem_alloc(&ctx->mem, sizeof *p + (size_t)n * sizeof p->worker[0]);
    if (!p) {
        err_set(err, HONE_E_NOMEM, "pool", "no memory for %d workers", n);
        return NULL;
    }
    p->mem = &ctx->mem;
    p->workers = n;
    atomic_flag_clear(&p->busy);
    /* with default attributes these three only set memory; a failure is told by the code all the same */
    int bad = pthread_mutex_init(&p->lock, NULL);
    bad = bad ? bad : pthread_cond_init(&p->work, NULL);
    bad = bad ? bad : pthread_cond_init(&p->done, NULL);
    if (bad) {
        err_set(err, HONE_E_DEVICE, "pool", "no lock from the system (error %d)", bad);
        mem_free(&ctx->mem, p);
        return NULL;
    }
    bad = start(p);
    if (bad) {
        err_set(err, HONE_E_DEVICE, "pool", "the system gave %d of %d threads (error %d)", p->started, n - 1, bad);
        pool_destroy(p);
        return NULL;
    }
    return p;
}

void pool_destroy(struct pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 1; i <= p->started; i++)
        pthread_join(p->worker[i].thread, NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    mem_free(p->mem, p);
}

int pool_workers(const struct pool *p)
{
    return p->workers;
}

hone_status pool_run(struct pool *p, pool_fn fn, void *arg, size_t items)
{
    if (atomic_flag_test_and_set(&p->busy))
        return HONE_E_STATE;
    if (p->started && items > 1) {
        pthread_mutex_lock(&p->lock);
        p->fn = fn;
        p->arg = arg;
        p->items = items;
        p->left = p->started;
        p->turn++;
        pthread_cond_broadcast(&p->work);
        pthread_mutex_unlock(&p->lock);
    }
    do_share(fn, arg, items, 0, p->workers);
    if (p->started && items > 1) {
        pthread_mutex_lock(&p->lock);
        while (p->left)
            pthread_cond_wait(&p->done, &p->lock);
        pthread_mutex_unlock(&p->lock);
    }
    atomic_flag_clear(&p->busy);
    return HONE_OK;
}
