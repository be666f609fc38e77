/* A team of threads. One word, `next`, says everything: the number of the run above, the next item below. A thread
 * takes an item by advancing it. Between runs it is closed: before what belongs to a run is changed, so that a thread
 * which has read something of the next run cannot take an item of the last one. */
#define _POSIX_C_SOURCE 200809L
#include "base/team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/ctx.h"
#include "base/err.h"

#define CLOSED UINT32_MAX /* as an item: there is none to take */

struct team {
    struct mem *mem;
    int threads, started; /* wanted, the caller among them; threads that run */
    atomic_flag busy;
    _Atomic team_fn fn; /* these three belong to the run that `next` names */
    void *_Atomic arg;
    _Atomic int32_t items;
    _Alignas(64) _Atomic uint64_t next; /* run << 32 | item */
    _Alignas(64) _Atomic int32_t done;  /* items of this run that are finished */
    _Alignas(64) _Atomic int sleepers;
    _Atomic bool quit;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread[];
};

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Takes items of run `run` until there are none. What belongs to the run is read between looking at `next` and
 * advancing it, which fails if the run ended meanwhile. */
static void work(struct team *t, uint64_t run)
{
    for (;;) {
        uint64_t at = atomic_load(&t->next);
        const uint32_t item = at & UINT32_MAX;
        const team_fn fn = atomic_load_explicit(&t->fn, memory_order_acquire);
        void *const arg = atomic_load_explicit(&t->arg, memory_order_acquire);
        if (at >> 32 != run || item >= (uint32_t)atomic_load_explicit(&t->items, memory_order_acquire))
            return;
        if (!atomic_compare_exchange_strong(&t->next, &at, at + 1))
            continue;
        fn(arg, (int32_t)item);
        atomic_fetch_add_explicit(&t->done, 1, memory_order_release);
    }
}

/* The number of the next run after `seen`; false: the team ends. */
static bool wait_for_run(struct team *t, uint64_t *seen)
{
    const uint64_t until = clock_ns() + TEAM_SPIN_NS;
    for (int i = 1; (i & 63) || clock_ns() < until; i++) {
        const uint64_t run = atomic_load_explicit(&t->next, memory_order_acquire) >> 32;
        if (run != *seen) {
            *seen = run;
            return true;
        }
        if (atomic_load_explicit(&t->quit, memory_order_relaxed))
            return false;
        relax();
    }
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->sleepers, 1);
    uint64_t run;
    while ((run = atomic_load(&t->next) >> 32) == *seen && !atomic_load(&t->quit))
        pthread_cond_wait(&t->wake, &t->lock);
    atomic_fetch_sub(&t->sleepers, 1);
    pthread_mutex_unlock(&t->lock);
    const bool more = run != *seen;
    *seen = run;
    return more;
}

static void *member(void *self)
{
    struct team *t = self;
    uint64_t seen = 0;
    while (wait_for_run(t, &seen))
        work(t, seen);
    return NULL;
}

/* Starts the threads with all signals blocked, which they inherit. Returns 0 or the system's error. */
static int start(struct team *t)
{
    sigset_t all, before;
    int bad = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    for (int i = 0; i < t->threads - 1 && !bad; i++) {
        bad = pthread_create(&t->thread[i], NULL, member, t);
        t->started += !bad;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return bad;
}

struct team *team_create(hone_ctx *ctx, int threads, hone_err *err)
{
    if (err_is(err))
        return NULL;
    if (threads < 1 || threads > ctx->threads) {
        err_set(err, HONE_E_ARG, "team", "threads must be 1 to %d, the core budget; got %d", ctx->threads, threads);
        return NULL;
    }
    struct team *t = mem_alloc(&ctx->mem, sizeof *t + (size_t)threads * sizeof t->thread[0]);
    if (!t) {
        err_set(err, HONE_E_NOMEM, "team", "no memory for %d threads", threads);
        return NULL;
    }
    t->mem = &ctx->mem;
    t->threads = threads;
    atomic_flag_clear(&t->busy);
    int bad = pthread_mutex_init(&t->lock, NULL);
    if (!bad && (bad = pthread_cond_init(&t->wake, NULL)) != 0)
        pthread_mutex_destroy(&t->lock);
    if (bad) {
        err_set(err, HONE_E_DEVICE, "team", "no lock from the system (error %d)", bad);
        mem_free(&ctx->mem, t);
        return NULL;
    }
    bad = start(t);
    if (bad) {
        err_set(err, HONE_E_DEVICE, "team", "the system gave %d of %d threads (error %d)", t->started, threads - 1,
                bad);
        team_destroy(t);
        return NULL;
    }
    return t;
}

void team_destroy(struct team *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->quit, true);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < t->started; i++)
        pthread_join(t->thread[i], NULL);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    mem_free(t->mem, t);
}

int team_threads(const struct team *t)
{
    return t->threads;
}

/* Waits for items that others have taken. They run by now, so this is short, unless their thread lost its core. */
static void wait_done(struct team *t, int32_t items)
{
    for (int i = 1; atomic_load_explicit(&t->done, memory_order_acquire) < items; i++)
        if (i % 4096)
            relax();
        else
            sched_yield();
}

void team_run(struct team *t, team_fn fn, void *arg, int32_t items)
{
    if (items < 2 || !t->started || atomic_flag_test_and_set_explicit(&t->busy, memory_order_acquire)) {
        for (int32_t i = 0; i < items; i++)
            fn(arg, i);
        return;
    }
    const uint64_t last = atomic_load(&t->next) >> 32, run = (last + 1) & UINT32_MAX;
    atomic_store(&t->next, last << 32 | CLOSED);
    atomic_store_explicit(&t->fn, fn, memory_order_release);
    atomic_store_explicit(&t->arg, arg, memory_order_release);
    atomic_store_explicit(&t->items, items, memory_order_release);
    atomic_store_explicit(&t->done, 0, memory_order_relaxed);
    atomic_store(&t->next, run << 32);
    if (atomic_load(&t->sleepers)) {
        pthread_mutex_lock(&t->lock);
        pthread_cond_broadcast(&t->wake);
        pthread_mutex_unlock(&t->lock);
    }
    work(t, run);
    wait_done(t, items);
    atomic_flag_clear_explicit(&t->busy, memory_order_release);
}
