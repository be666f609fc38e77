/* Counted allocation, arenas, and the budget of planned memory. */
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* Each block is preceded by its size and the pointer that the allocator gave. */
struct mem_head {
    void *raw;
    size_t size;
};

static void *libc_alloc(void *user, size_t bytes)
{
    (void)user;
    return malloc(bytes);
}

static void libc_release(void *user, void *p)
{
    (void)user;
    free(p);
}

void mem_init(struct mem *m, const hone_allocator *a, size_t budget)
{
    static const hone_allocator libc = {libc_alloc, libc_release, NULL};
    m->a = a ? *a : libc;
    atomic_init(&m->calls, 0);
    atomic_init(&m->live, 0);
    atomic_init(&m->peak, 0);
    atomic_init(&m->planned, 0);
    m->budget = budget;
}

void *mem_alloc(struct mem *m, size_t n)
{
    const size_t extra = sizeof(struct mem_head) + MEM_ALIGN;
    atomic_fetch_add(&m->calls, 1);
    if (n > SIZE_MAX - extra)
        return NULL;
    void *raw = m->a.alloc(m->a.user, n + extra);
    if (!raw)
        return NULL;
    uintptr_t at = ((uintptr_t)raw + sizeof(struct mem_head) + MEM_ALIGN - 1) & ~(uintptr_t)(MEM_ALIGN - 1);
    struct mem_head *head = (struct mem_head *)at - 1;
    head->raw = raw;
    head->size = n;
    memset((void *)at, 0, n);
    size_t live = atomic_fetch_add(&m->live, n) + n, peak = atomic_load(&m->peak);
    while (live > peak && !atomic_compare_exchange_weak(&m->peak, &peak, live)) {}
    return (void *)at;
}

void *mem_array(struct mem *m, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        return NULL;
    return mem_alloc(m, count * size);
}

void *mem_grow(struct mem *m, void *p, size_t old_n, size_t new_n)
{
    void *q = mem_alloc(m, new_n);
    if (q && p) {
        memcpy(q, p, old_n < new_n ? old_n : new_n);
        mem_free(m, p);
    }
    return q;
}

void mem_free(struct mem *m, void *p)
{
    if (!p)
        return;
    struct mem_head *head = (struct mem_head *)p - 1;
    atomic_fetch_sub(&m->live, head->size);
    m->a.release(m->a.user, head->raw);
}

hone_status mem_reserve(struct mem *m, size_t n, const char *where, const char *advice, hone_err *err)
{
    const double gib = 1024.0 * 1024.0 * 1024.0;
    size_t now = atomic_load(&m->planned);
    do {
        if (n > m->budget || now > m->budget - n)
            return err_set(err, HONE_E_NOMEM, where, "needs %.3g GiB of %.3g left (%.3g planned before)%s%s", n / gib,
                           (m->budget - (now < m->budget ? now : m->budget)) / gib, now / gib, advice ? "; " : "",
                           advice ? advice : "");
    } while (!atomic_compare_exchange_weak(&m->planned, &now, now + n));
    return HONE_OK;
}

void mem_unreserve(struct mem *m, size_t n)
{
    atomic_fetch_sub(&m->planned, n);
}

/* --- arena --- */

#define ARENA_BLOCK 16384
#define ARENA_ALIGN 16

struct arena_block {
    struct arena_block *next;
    size_t size, used;
};

void arena_init(struct arena *a, struct mem *m)
{
    *a = (struct arena){.m = m};
}

void *arena_alloc(struct arena *a, size_t n)
{
    const size_t head = (sizeof(struct arena_block) + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (n > SIZE_MAX / 2)
        return NULL;
    n = (n + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    struct arena_block *b = a->head;
    if (!b || b->size - b->used < n) {
        size_t size = n > ARENA_BLOCK ? n : ARENA_BLOCK;
        b = mem_alloc(a->m, head + size);
        if (!b)
            return NULL;
        b->size = size;
        b->next = a->head;
        a->head = b;
    }
    void *p = (char *)b + head + b->used;
    b->used += n;
    a->used += n;
    if (a->used > a->high)
        a->high = a->used;
    return p;
}

char *arena_text(struct arena *a, const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = arena_alloc(a, n);
    return p ? memcpy(p, s, n) : NULL;
}

void arena_finish(struct arena *a)
{
    for (struct arena_block *b = a->head, *next; b; b = next) {
        next = b->next;
        mem_free(a->m, b);
    }
    a->head = NULL;
    a->used = 0;
}
