/* Loops over a range compiled for AVX-512, AVX2 and plainly; the widest that the machine has is taken. */
#ifndef BACKEND_CPU_WIDE_H
#define BACKEND_CPU_WIDE_H

#include "backend/cpu/cpu.h"

#define WIDE_INLINE static inline __attribute__((always_inline))

/* Loops over slabs that lie beyond the caches take WIDE_BLOCK elements at a time and ask for the memory of those that
 * come WIDE_AHEAD later: a core looks ahead by itself in few streams only, and never beyond a page. */
enum { WIDE_BLOCK = 64, WIDE_AHEAD = 256, WIDE_LINE = 16 };

WIDE_INLINE void wide_ask(const float *block)
{
    for (int i = 0; i < WIDE_BLOCK; i += WIDE_LINE)
        __builtin_prefetch(block + WIDE_AHEAD + i);
}

/* WIDE(name) makes of `WIDE_INLINE void name_body(void *arg, int64_t from, int64_t to)` a function name_wide() that
 * gives the version to run. What the body calls must be inlined, or it keeps the instructions of the build. */
#if defined(__x86_64__)
#define WIDE(name)                                                                                                     \
    __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma"))) static void name##_avx512(                       \
        void *arg, int64_t from, int64_t to)                                                                           \
    {                                                                                                                  \
        name##_body(arg, from, to);                                                                                    \
    }                                                                                                                  \
    __attribute__((target("avx2,fma"))) static void name##_avx2(void *arg, int64_t from, int64_t to)                   \
    {                                                                                                                  \
        name##_body(arg, from, to);                                                                                    \
    }                                                                                                                  \
    static void name##_plain(void *arg, int64_t from, int64_t to)                                                      \
    {                                                                                                                  \
        name##_body(arg, from, to);                                                                                    \
    }                                                                                                                  \
    static cpu_range_fn name##_wide(void)                                                                              \
    {                                                                                                                  \
        const enum cpu_vectors v = cpu_vectors();                                                                      \
        return v == CPU_AVX512 ? name##_avx512 : v == CPU_AVX2 ? name##_avx2 : name##_plain;                           \
    }
#else
#define WIDE(name)                                                                                                     \
    static void name##_plain(void *arg, int64_t from, int64_t to)                                                      \
    {                                                                                                                  \
        name##_body(arg, from, to);                                                                                    \
    }                                                                                                                  \
    static cpu_range_fn name##_wide(void)                                                                              \
    {                                                                                                                  \
        return name##_plain;                                                                                           \
    }
#endif

#endif
