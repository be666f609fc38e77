/* The CPU device: kernels in f32 with portable C, oneDNN for products and convolutions. */
#ifndef BACKEND_CPU_CPU_H
#define BACKEND_CPU_CPU_H

#include "base/team.h"
#include "graph/backend.h"

struct bk_dev {
    hone_ctx *ctx;
    struct team *team; /* for kernels of a few microseconds */
    void *dnnl;        /* the engine of oneDNN, in builds with it */
};

/* Fewer elements than this are not worth waking threads for. */
#define CPU_GRAIN 16384

#define CPU_PRAGMA(x) _Pragma(#x)
/* Iterations of the loop do not depend on each other; it becomes vector code. */
#define CPU_SIMD CPU_PRAGMA(omp simd)

/* The widest vectors that this machine has, of those that kernels are compiled for. */
enum cpu_vectors { CPU_PLAIN, CPU_AVX2, CPU_AVX512 };
enum cpu_vectors cpu_vectors(void);

/* Items of a kernel, handed out to the team of the device in order; see base/team.h. */
void cpu_share(const struct bk_io *io, team_fn fn, void *arg, int32_t items);

/* A loop over [from, to), part of a loop over [0, n). */
typedef void (*cpu_range_fn)(void *arg, int64_t from, int64_t to);
/* Runs it in as many parts as there are threads; in one where `work` elements are less than CPU_GRAIN. Parts are the
 * same whenever n and the threads are, so a part meets the same elements, in the same core's cache, from one kernel to
 * the next. */
void cpu_split(const struct bk_io *io, int64_t n, int64_t work, cpu_range_fn fn, void *arg);

/* Sets how many threads OpenMP gives to the calling thread, for libraries that ask it; returns the number before. 1
 * without OpenMP. */
int cpu_team(int threads);

/* kernels.def lists them: KERNEL(name) is `const struct bk_kernel cpu_<name>`. */
#define KERNEL(name) extern const struct bk_kernel cpu_##name;
#include "backend/cpu/kernels.def"
#undef KERNEL

extern const struct bk_def bk_cpu;

#endif
