/* Counts the calls of the C allocator in the whole process, those of libraries included, for `hone bench`: the program
 * defines the functions itself and hands them on to those of glibc. A sanitizer has an allocator of its own, and other
 * C libraries have no second name for theirs: there nothing is counted.
 * The one mutable object of file scope: the allocator has no argument that a counter could hang on. */
#include <errno.h>
#ifdef __linux__
#include <malloc.h>
#endif
#include <stdatomic.h>
#include <stdlib.h>

#include "cli/bench.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

#if defined(__GLIBC__) && defined(__GNUC__) && !defined(SANITIZED)
#define OURS __attribute__((visibility("default")))

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t n);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static atomic_uint_fast64_t calls;

static void count(void)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

OURS void *malloc(size_t n)
{
    count();
    return __libc_malloc(n);
}

OURS void *calloc(size_t k, size_t n)
{
    count();
    return __libc_calloc(k, n);
}

OURS void *realloc(void *p, size_t n)
{
    count();
    return __libc_realloc(p, n);
}

OURS void *aligned_alloc(size_t align, size_t n)
{
    count();
    return __libc_memalign(align, n);
}

OURS void *memalign(size_t align, size_t n)
{
    count();
    return __libc_memalign(align, n);
}

OURS int posix_memalign(void **p, size_t align, size_t n)
{
    count();
    if (!align || align & (align - 1) || align % sizeof(void *))
        return EINVAL;
    void *got = __libc_memalign(align, n);
    if (!got)
        return ENOMEM;
    *p = got;
    return 0;
}

int64_t bench_allocations(void)
{
    return (int64_t)atomic_load_explicit(&calls, memory_order_relaxed);
}
#else
int64_t bench_allocations(void)
{
    return -1;
}
#endif
