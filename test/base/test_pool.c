/* The pool: every item once, the same worker each time, refusals, and what happens when memory or threads run out. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "base/ctx.h"
#include "base/pool.h"
#include "check.h"

#define ITEMS 1000

struct loop {
    int count[ITEMS];  /* plain ints: a second visitor would be a data race */
    int worker[ITEMS]; /* who did it */
    pthread_t thread[ITEMS];
    struct pool *pool;
    atomic_int refused, inner;
};

static void count_item(void *arg, size_t item, int worker)
{
    struct loop *l = arg;
    l->count[item]++;
    l->worker[item] = worker;
    l->thread[item] = pthread_self();
}

static void inner_item(void *arg, size_t item, int worker)
{
    (void)item;
    (void)worker;
    atomic_fetch_add(&((struct loop *)arg)->inner, 1);
}

static void nested_item(void *arg, size_t item, int worker)
{
    struct loop *l = arg;
    (void)item;
    (void)worker;
    atomic_fetch_add(&l->refused, pool_run(l->pool, inner_item, l, 3) == HONE_E_STATE);
}

static hone_ctx *context(int threads)
{
    return hone_ctx_create(&(hone_ctx_options){.threads = threads}, NULL);
}

static void items(struct check *c)
{
    static const size_t sizes[] = {0, 1, 2, 3, 7, 8, 9, 100, ITEMS};
    for (int workers = 1; workers <= 8; workers = workers < 4 ? workers + 1 : workers * 2) {
        if (!check_case(c, "each item once, %d workers", workers))
            continue;
        hone_ctx *ctx = context(workers);
        struct pool *p = pool_create(ctx, 0, NULL);
        static struct loop l;
        CHECK(c, p && pool_workers(p) == workers);
        const uint64_t before = hone_ctx_mem(ctx).allocations;
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            pthread_t first[ITEMS];
            int who[ITEMS], load[8] = {0};
            memset(&l, 0, sizeof l);
            for (int again = 1; again <= 3; again++) {
                CHECK(c, pool_run(p, count_item, &l, sizes[s]) == HONE_OK);
                for (size_t i = 0; i < ITEMS; i++)
                    CHECK(c, l.count[i] == (i < sizes[s] ? again : 0));
                if (again == 1) {
                    memcpy(first, l.thread, sizeof first);
                    memcpy(who, l.worker, sizeof who);
                }
                for (size_t i = 0; i < sizes[s]; i++)
                    CHECK(c, l.worker[i] == who[i] && pthread_equal(l.thread[i], first[i]));
            }
            /* contiguous and even */
            for (size_t i = 0; i < sizes[s]; i++) {
                CHECK(c, i == 0 || who[i] == who[i - 1] || who[i] == who[i - 1] + 1);
                load[who[i]]++;
            }
            for (int w = 0; w < workers; w++)
                CHECK(c, load[w] == (int)(sizes[s] / (size_t)workers) + ((size_t)w < sizes[s] % (size_t)workers));
        }
        CHECK(c, hone_ctx_mem(ctx).allocations == before);
        pool_destroy(p);
        CHECK(c, hone_ctx_mem(ctx).live_bytes == 0);
        hone_ctx_destroy(ctx);
    }
}

static void refusals(struct check *c)
{
    hone_ctx *ctx = context(4);
    if (check_case(c, "a nested run is refused")) {
        static struct loop l;
        struct pool *p = pool_create(ctx, 3, NULL);
        l.pool = p;
        CHECK(c, pool_run(p, nested_item, &l, 50) == HONE_OK);
        CHECK(c, atomic_load(&l.refused) == 50 && atomic_load(&l.inner) == 0);
        CHECK(c, pool_run(p, inner_item, &l, 50) == HONE_OK && atomic_load(&l.inner) == 50);
        pool_destroy(p);
    }
    if (check_case(c, "bad numbers of workers")) {
        static const int bad[] = {-1, 5, 1 << 30};
        for (int i = 0; i < 3; i++) {
            hone_err e = {0};
            CHECK(c, pool_create(ctx, bad[i], &e) == NULL && e.code == HONE_E_ARG && strstr(e.text, "got"));
        }
        hone_err e = {.code = HONE_E_IO};
        CHECK(c, pool_create(ctx, 2, &e) == NULL && e.code == HONE_E_IO);
        pool_destroy(NULL);
    }
    hone_ctx_destroy(ctx);
}

/* --- when things run out --- */

struct failing {
    int left; /* allocations that still succeed */
};

static void *failing_alloc(void *user, size_t n)
{
    struct failing *f = user;
    return f->left-- > 0 ? malloc(n) : NULL;
}

static void failing_release(void *user, void *p)
{
    (void)user;
    free(p);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifndef SANITIZED
/* An emulator may take a limit and not keep it. */
static bool can_map(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p != MAP_FAILED && munmap(p, n) == 0;
}
#endif

static void running_out(struct check *c)
{
    if (check_case(c, "each allocation failing")) {
        bool made = false;
        for (int n = 1; n < 10 && !made; n++) {
            struct failing f = {n}; /* the first is the context's */
            hone_allocator a = {failing_alloc, failing_release, &f};
            hone_err e = {0};
            hone_ctx *ctx = hone_ctx_create(&(hone_ctx_options){.allocator = &a, .threads = 4}, &e);
            struct pool *p = pool_create(ctx, 4, &e);
            made = p != NULL;
            CHECK(c, made ? e.code == HONE_OK : e.code == HONE_E_NOMEM && e.text[0]);
            CHECK(c, made || n < 2);
            pool_destroy(p);
            CHECK(c, hone_ctx_mem(ctx).live_bytes == 0);
            hone_ctx_destroy(ctx);
        }
        CHECK(c, made);
    }
    if (check_case(c, "the system gives too few threads")) {
#ifdef SANITIZED
        check_skip(c, "a sanitizer needs the address space");
#else
        /* no address space for 200 stacks: some threads start, one does not, and those that did are taken down */
        hone_ctx *ctx = context(200);
        struct rlimit old, tight;
        hone_err e = {0};
        getrlimit(RLIMIT_AS, &old);
        tight = old;
        tight.rlim_cur = (rlim_t)1 << 30;
        if (setrlimit(RLIMIT_AS, &tight) != 0 || can_map((size_t)1 << 30)) {
            setrlimit(RLIMIT_AS, &old);
            check_skip(c, "the address space cannot be limited here");
        } else {
            struct pool *p = pool_create(ctx, 0, &e);
            setrlimit(RLIMIT_AS, &old);
            CHECK(c, p == NULL && e.code == HONE_E_DEVICE);
            CHECK_MSG(c, strstr(e.text, "of 199 threads") != NULL, "(%s)", e.text);
            CHECK(c, hone_ctx_mem(ctx).live_bytes == 0);
            pool_destroy(p);
        }
        hone_ctx_destroy(ctx);
#endif
    }
}

/* --- threads and signals --- */

static void signal_item(void *arg, size_t item, int worker)
{
    sigset_t set;
    bool *blocked = arg;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    (void)worker;
    blocked[item] = sigismember(&set, SIGINT);
}

/* Fights for the pool with the other thread; counts its own runs that were let in. */
static void *rival(void *arg)
{
    struct loop *l = arg;
    intptr_t runs = 0;
    for (int i = 0; i < 2000; i++)
        runs += pool_run(l->pool, count_item, l, 16) == HONE_OK;
    return (void *)runs;
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One item sleeps: the caller's own, so that the threads wait, or a thread's, so that the caller does. */
static void nap_item(void *arg, size_t item, int worker)
{
    (void)worker;
    if (item == *(const size_t *)arg)
        nanosleep(&(struct timespec){0, 100000000}, NULL);
}

static void threads(struct check *c)
{
    static struct loop l;
    hone_ctx *ctx = context(8);
    struct pool *p = pool_create(ctx, 0, NULL);
    if (check_case(c, "signals are left to other threads")) {
        bool blocked[8] = {false};
        CHECK(c, pool_run(p, signal_item, blocked, 8) == HONE_OK);
        for (int i = 0; i < 8; i++)
            CHECK(c, blocked[i] == (i > 0));
    }
    if (check_case(c, "stress")) {
        memset(&l, 0, sizeof l);
        for (int i = 0; i < 2000; i++)
            CHECK(c, pool_run(p, count_item, &l, (size_t)(i % 40)) == HONE_OK);
        long sum = 0;
        for (int i = 0; i < ITEMS; i++)
            sum += l.count[i];
        CHECK(c, sum == 50 * (39 * 40 / 2));
        for (int i = 0; i < 50; i++) { /* made, run and taken down */
            struct pool *q = pool_create(ctx, 1 + i % 8, NULL);
            CHECK(c, q && pool_run(q, count_item, &l, (size_t)i) == HONE_OK);
            pool_destroy(q);
        }
    }
    if (check_case(c, "two callers")) {
        pthread_t t;
        void *other = NULL;
        memset(&l, 0, sizeof l);
        l.pool = p;
        CHECK(c, pthread_create(&t, NULL, rival, &l) == 0);
        intptr_t mine = (intptr_t)rival(&l);
        pthread_join(t, &other);
        CHECK(c, mine > 0 || other != NULL);
        for (int i = 0; i < 16; i++)
            CHECK(c, l.count[i] == mine + (intptr_t)other);
    }
    if (check_case(c, "waiting costs no processor time")) {
        for (size_t sleeper = 0; sleeper < 8; sleeper += 7) {
            double before = cpu_seconds();
            CHECK(c, pool_run(p, nap_item, &sleeper, 8) == HONE_OK);
            CHECK_MSG(c, cpu_seconds() - before < 0.05, "(item %zu: %.3f s)", sleeper, cpu_seconds() - before);
        }
    }
    pool_destroy(p);
    hone_ctx_destroy(ctx);
}

void suite_pool(struct check *c)
{
    items(c);
    refusals(c);
    running_out(c);
    threads(c);
}
