/* The loops of reductions. */
#include "backend/cpu/reduce.h"

#include <float.h>
#include <math.h>

#include "backend/cpu/wide.h"

#define SIMD(...) CPU_PRAGMA(omp simd __VA_ARGS__)

/* Four places at once, a quarter of the way apart: the memory of one core delivers several streams faster than one. */
#define SUM_RUN(name, expr)                                                                                            \
    WIDE_INLINE double name##_run(const float *x, int64_t n)                                                           \
    {                                                                                                                  \
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0;                                                                         \
        const int64_t q = n >= 32 ? n / 4 : 0;                                                                         \
        SIMD(reduction(+ : s0, s1, s2, s3))                                                                            \
        for (int64_t i = 0; i < q; i++) {                                                                              \
            s0 += expr(x[i]);                                                                                          \
            s1 += expr(x[q + i]);                                                                                      \
            s2 += expr(x[2 * q + i]);                                                                                  \
            s3 += expr(x[3 * q + i]);                                                                                  \
        }                                                                                                              \
        for (int64_t i = 4 * q; i < n; i++)                                                                            \
            s0 += expr(x[i]);                                                                                          \
        return (s0 + s1) + (s2 + s3);                                                                                  \
    }

WIDE_INLINE double plain(float x)
{
    return x;
}

/* NaN and infinities are what is not below the largest float. */
WIDE_INLINE double is_nonfinite(float x)
{
    return fabsf(x) <= FLT_MAX ? 0.0 : 1.0;
}

SUM_RUN(sum, plain)
SUM_RUN(nonfinite, is_nonfinite)

enum { DOUBLES = 4, STREAMS = 4 };
typedef double lanes __attribute__((vector_size(DOUBLES * sizeof(double))));
typedef float floats __attribute__((vector_size(DOUBLES * sizeof(float)), aligned(4), may_alias));

/* The same for a slab that lies beyond the caches, as gradients do: it asks for their memory ahead. */
WIDE_INLINE double squares_run(const float *x, int64_t n)
{
    lanes s[STREAMS] = {{0}};
    const int64_t q = n / (STREAMS * WIDE_BLOCK) * WIDE_BLOCK;
    for (int64_t i = 0; i < q; i += WIDE_BLOCK) {
        for (int k = 0; k < STREAMS; k++)
            wide_ask(x + k * q + i);
        for (int j = 0; j < WIDE_BLOCK; j += DOUBLES)
            for (int k = 0; k < STREAMS; k++) {
                const lanes y = __builtin_convertvector(*(const floats *)(x + k * q + i + j), lanes);
                s[k] += y * y;
            }
    }
    const lanes all = (s[0] + s[1]) + (s[2] + s[3]);
    double sum = (all[0] + all[1]) + (all[2] + all[3]);
    for (int64_t i = STREAMS * q; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

WIDE_INLINE void sum_add(double *acc, const float *x, int64_t n, int64_t rows, int64_t stride)
{
    const int64_t q = rows / 4;
    for (int64_t i = 0; i < q; i++) {
        const float *a = x + i * stride, *b = a + q * stride, *c = b + q * stride, *d = c + q * stride;
        CPU_SIMD
        for (int64_t j = 0; j < n; j++)
            acc[j] += ((double)a[j] + (double)b[j]) + ((double)c[j] + (double)d[j]);
    }
    for (int64_t i = 4 * q; i < rows; i++)
        for (int64_t j = 0; j < n; j++)
            acc[j] += x[i * stride + j];
}

static void sum_join(double *acc, const double *other, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        acc[j] += other[j];
}

static double sum_group(const double *acc, int64_t n)
{
    double sum = acc[0];
    for (int64_t j = 1; j < n; j++)
        sum += acc[j];
    return sum;
}

/* The larger one, or NaN if there is one; two choices, as vector code has them. */
WIDE_INLINE float larger(float m, float x)
{
    const float most = x > m ? x : m;
    return x == x ? most : x;
}

/* The doubles came from floats. */
static void max_join(double *acc, const double *other, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        acc[j] = larger((float)acc[j], (float)other[j]);
}

static double max_group(const double *acc, int64_t n)
{
    float most = (float)acc[0];
    for (int64_t j = 1; j < n; j++)
        most = larger(most, (float)acc[j]);
    return most;
}

WIDE_INLINE double max_run(const float *x, int64_t n)
{
    enum { LANES = 8 };
    float m[4][LANES], most = -INFINITY;
    const int64_t q = n >= 16 * LANES ? n / 4 / LANES * LANES : 0;
    for (int64_t i = 4 * q; i < n; i++)
        most = larger(most, x[i]);
    if (q == 0)
        return most;
    for (int k = 0; k < LANES; k++)
        m[0][k] = m[1][k] = m[2][k] = m[3][k] = -INFINITY;
    for (int64_t i = 0; i < q; i += LANES)
        for (int s = 0; s < 4; s++)
            for (int k = 0; k < LANES; k++) {
                const float y = x[s * q + i + k];
                m[s][k] = larger(m[s][k], y);
            }
    for (int k = 0; k < 4 * LANES; k++)
        most = larger(most, m[k / LANES][k % LANES]);
    return most;
}

WIDE_INLINE void max_add(double *acc, const float *x, int64_t n, int64_t rows, int64_t stride)
{
    const int64_t q = rows / 4;
    for (int64_t i = 0; i < q; i++) {
        const float *a = x + i * stride, *b = a + q * stride, *c = b + q * stride, *d = c + q * stride;
        CPU_SIMD
        for (int64_t j = 0; j < n; j++)
            acc[j] = larger((float)acc[j], larger(larger(a[j], b[j]), larger(c[j], d[j])));
    }
    for (int64_t i = 4 * q; i < rows; i++)
        CPU_SIMD
    for (int64_t j = 0; j < n; j++)
        acc[j] = larger((float)acc[j], x[i * stride + j]);
}

WIDE_INLINE void any_store(float *y, const double *acc, int64_t n, double divisor)
{
    if (divisor == 1) {
        CPU_SIMD
        for (int64_t j = 0; j < n; j++)
            y[j] = (float)acc[j];
        return;
    }
    CPU_SIMD
    for (int64_t j = 0; j < n; j++)
        y[j] = (float)(acc[j] / divisor);
}

/* Loops over results i, which stand side by side where n is known. */
WIDE_INLINE void sum_of(const float *x, float *y, int64_t from, int64_t to, const int64_t n, double divisor)
{
    CPU_SIMD
    for (int64_t i = from; i < to; i++) {
        double sum = x[i * n];
        for (int64_t j = 1; j < n; j++)
            sum += (double)x[i * n + j];
        y[i] = (float)(sum / divisor);
    }
}

WIDE_INLINE void max_of(const float *x, float *y, int64_t from, int64_t to, const int64_t n, double divisor)
{
    (void)divisor;
    CPU_SIMD
    for (int64_t i = from; i < to; i++) {
        float most = x[i * n];
        for (int64_t j = 1; j < n; j++)
            most = larger(most, x[i * n + j]);
        y[i] = most;
    }
}

#define FEW(name)                                                                                                      \
    WIDE_INLINE void name##_few(const float *x, float *y, int64_t from, int64_t to, int64_t n, double divisor)         \
    {                                                                                                                  \
        if (n == 2)                                                                                                    \
            name##_of(x, y, from, to, 2, divisor);                                                                     \
        else if (n == 3)                                                                                               \
            name##_of(x, y, from, to, 3, divisor);                                                                     \
        else if (n == 4)                                                                                               \
            name##_of(x, y, from, to, 4, divisor);                                                                     \
        else if (n == 8)                                                                                               \
            name##_of(x, y, from, to, 8, divisor);                                                                     \
        else if (n == 16)                                                                                              \
            name##_of(x, y, from, to, 16, divisor);                                                                    \
        else                                                                                                           \
            name##_of(x, y, from, to, n, divisor);                                                                     \
    }
FEW(sum)
FEW(max)

/* --- reducers for each set of instructions --- */

#define RUN(name, set, target)                                                                                         \
    target static double name##_run_##set(const float *x, int64_t n)                                                   \
    {                                                                                                                  \
        return name##_run(x, n);                                                                                       \
    }
#define LOOPS(name, set, target)                                                                                       \
    RUN(name, set, target)                                                                                             \
    target static void name##_add_##set(double *acc, const float *x, int64_t n, int64_t rows, int64_t stride)          \
    {                                                                                                                  \
        name##_add(acc, x, n, rows, stride);                                                                           \
    }                                                                                                                  \
    target static void name##_few_##set(const float *x, float *y, int64_t from, int64_t to, int64_t n, double divisor) \
    {                                                                                                                  \
        name##_few(x, y, from, to, n, divisor);                                                                        \
    }
#define REDUCERS(set, target)                                                                                          \
    LOOPS(sum, set, target)                                                                                            \
    LOOPS(max, set, target)                                                                                            \
    RUN(squares, set, target)                                                                                          \
    RUN(nonfinite, set, target)                                                                                        \
    target static void store_##set(float *y, const double *acc, int64_t n, double divisor)                             \
    {                                                                                                                  \
        any_store(y, acc, n, divisor);                                                                                 \
    }                                                                                                                  \
    static const struct cpu_reducer reducers_##set[] = {                                                               \
        {0, sum_run_##set, sum_add_##set, sum_join, sum_group, store_##set, sum_few_##set},                            \
        {-INFINITY, max_run_##set, max_add_##set, max_join, max_group, store_##set, max_few_##set},                    \
        {0, squares_run_##set, NULL, sum_join, NULL, store_##set, NULL},                                               \
        {0, nonfinite_run_##set, NULL, sum_join, NULL, store_##set, NULL},                                             \
    };

REDUCERS(plain, )
#if defined(__x86_64__)
REDUCERS(avx2, __attribute__((target("avx2,fma"))))
REDUCERS(avx512, __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma"))))
#endif

const struct cpu_reducer *cpu_reducer(enum cpu_by what)
{
#if defined(__x86_64__)
    const enum cpu_vectors v = cpu_vectors();
    if (v != CPU_PLAIN)
        return v == CPU_AVX512 ? &reducers_avx512[what] : &reducers_avx2[what];
#endif
    return &reducers_plain[what];
}
