/* What the machine reaches: products of matrices by the device's own kernel, and reading memory. */
#include <pthread.h>

#include "base/clock.h"
#include "base/ctx.h"
#include "base/err.h"
#include "cli/bench.h"
#include "hone/ops.h"
#include "hone/random.h"

/* --- products --- */

/* Best of some products [n,n] [n,n], GFLOP/s. */
static hone_status product(struct bench *b, int64_t n, float *data, double *best, hone_err *err)
{
    const void *in[] = {data, data + n * n};
    hone_graph *g = hone_graph_create(b->ctx, err);
    if (g)
        hone_output(hone_matmul(hone_input(g, "x", HONE_F32, HONE_SHAPE(n, n)),
                                hone_input(g, "y", HONE_F32, HONE_SHAPE(n, n)), false, false),
                    "z");
    hone_program *p = g ? hone_compile(b->device, g, &(hone_compile_options){.name = "peak"}, err) : NULL;
    hone_graph_destroy(g);
    if (p)
        hone_program_profile(p, true, err);
    const double begin = clock_seconds();
    for (int i = 0; p && !err_is(err) && (i < 4 || clock_seconds() - begin < 0.25); i++)
        if (hone_run(p, &(hone_run_args){.inputs = in}, err) == HONE_OK)
            hone_wait(p, err);
    for (int i = 0; p && i < hone_program_profile_rows(p); i++) {
        const hone_profile_row r = hone_program_profile_row(p, i);
        const double rate = r.min_ns ? r.flops / (double)r.min_ns : 0;
        *best = rate > *best ? rate : *best;
    }
    hone_program_destroy(p);
    return err->code;
}

hone_status bench_peak_flops(struct bench *b, double *gflops, hone_err *err)
{
    static const int64_t sizes[] = {512, 1024};
    float *data = mem_array(&b->ctx->mem, 2 * 1024 * 1024, sizeof *data);
    if (!data)
        return err_set(err, HONE_E_NOMEM, "bench", "no memory for two matrices");
    hone_fill_uniform(data, 2 * 1024 * 1024, 1, hone_stream("peak"), 0, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        product(b, sizes[i], data, gflops, err);
    mem_free(&b->ctx->mem, data);
    return err->code;
}

/* --- reading --- */

#if defined(__GNUC__)
typedef float vec __attribute__((vector_size(64)));
enum { STEP = 8 * 16, AHEAD = 16 }; /* floats of one turn; vectors that are asked for before they are needed */

/* Four streams of a quarter each, which a core fetches faster than one; eight sums hide the latency of an addition. */
static inline __attribute__((always_inline)) float sum(const float *p, size_t n)
{
    const size_t quarter = n / 64;
    vec a[8] = {0};
    for (const vec *v = (const vec *)(const void *)p, *end = v + quarter; v < end; v += 2)
        for (int k = 0; k < 4; k++) {
            __builtin_prefetch(v + k * quarter + AHEAD);
            __builtin_prefetch(v + k * quarter + AHEAD + 1);
            a[2 * k] += v[k * quarter];
            a[2 * k + 1] += v[k * quarter + 1];
        }
    for (int k = 1; k < 8; k++)
        a[0] += a[k];
    float all = 0;
    for (int i = 0; i < 16; i++)
        all += a[0][i];
    return all;
}
#else
enum { STEP = 4 };

static float sum(const float *p, size_t n)
{
    float a[STEP] = {0};
    for (size_t i = 0; i < n; i += STEP)
        for (int k = 0; k < STEP; k++)
            a[k] += p[i + k];
    return a[0] + a[1] + a[2] + a[3];
}
#endif

static float sum_plain(const float *p, size_t n)
{
    return sum(p, n);
}
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx512f"))) static float sum_avx512(const float *p, size_t n)
{
    return sum(p, n);
}
__attribute__((target("avx2"))) static float sum_avx2(const float *p, size_t n)
{
    return sum(p, n);
}
#endif

static float (*best_sum(void))(const float *p, size_t n)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512f"))
        return sum_avx512;
    if (__builtin_cpu_supports("avx2"))
        return sum_avx2;
#endif
    return sum_plain;
}

enum { ROUNDS = 16, THREADS = 256 };

/* A part of the buffer. */
struct reader {
    pthread_t thread;
    bool own; /* a thread of its own reads it */
    const float *from;
    size_t n;
    int passes;
    float result;
};

static void *read_part(void *user)
{
    struct reader *r = user;
    float (*const f)(const float *, size_t) = best_sum();
    for (int k = 0; k < r->passes; k++)
        r->result += f(r->from, r->n);
    return NULL;
}

/* All parts read at once; seconds. Starting the threads is part of it, a thousandth at most. */
static double read_all(struct reader *r, int threads)
{
    const double begin = clock_seconds();
    for (int i = 1; i < threads; i++)
        r[i].own = pthread_create(&r[i].thread, NULL, read_part, &r[i]) == 0;
    for (int i = 0; i < threads; i++)
        if (!r[i].own)
            read_part(&r[i]);
    for (int i = 0; i < threads; i++)
        if (r[i].own)
            pthread_join(r[i].thread, NULL);
    return clock_seconds() - begin;
}

hone_status bench_read_rate(struct bench *b, size_t bytes, double *gbs, hone_err *err)
{
    const size_t least = 1u << 20, size = bytes > least ? bytes : least;
    const int threads = b->o.threads < THREADS ? (int)b->o.threads : THREADS;
    const size_t turns = size / sizeof(float) / STEP / (size_t)threads, each = turns * STEP;
    double seconds[ROUNDS];
    struct reader r[THREADS] = {{0}};
    float *data = mem_array(&b->ctx->mem, each * (size_t)threads, sizeof *data);
    if (!data)
        return err_set(err, HONE_E_NOMEM, "bench", "no memory to read %zu bytes", size);
    for (size_t i = 0; i < each * (size_t)threads; i++)
        data[i] = 1;
    const size_t read = each * (size_t)threads * sizeof(float);
    const int passes = (int)(((size_t)256 << 20) / read) + 1;
    for (int i = 0; i < threads; i++)
        r[i] = (struct reader){.from = data + (size_t)i * each, .n = each, .passes = passes};
    for (int i = 0; i < ROUNDS; i++)
        seconds[i] = read_all(r, threads);
    double best = seconds[0];
    for (int i = 1; i < ROUNDS; i++)
        best = seconds[i] < best ? seconds[i] : best;
    const double rate = 1e-9 * (double)read * passes / best;
    *gbs = rate > *gbs ? rate : *gbs;
    mem_free(&b->ctx->mem, data);
    return err->code;
}
