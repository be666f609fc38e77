/* What reductions do with elements, compiled for AVX-512, AVX2 and plainly. */
#ifndef BACKEND_CPU_REDUCE_H
#define BACKEND_CPU_REDUCE_H

#include <stdint.h>

struct cpu_reducer {
    double start;
    double (*run)(const float *x, int64_t n); /* of n contiguous elements */
    /* acc[j] joined with column j of `rows` rows, `stride` apart; n columns. */
    void (*add)(double *acc, const float *x, int64_t n, int64_t rows, int64_t stride);
    void (*join)(double *acc, const double *other, int64_t n);             /* acc[j] joined with other[j] */
    double (*group)(const double *acc, int64_t n);                         /* n of them joined to one */
    void (*store)(float *y, const double *acc, int64_t n, double divisor); /* y[j] = acc[j] over the divisor */
    /* y[i] = of n neighbours x[i n], over the divisor; for the results [from, to). Nullable. */
    void (*few)(const float *x, float *y, int64_t from, int64_t to, int64_t n, double divisor);
};

/* The last two go over all axes: they have no add, group and few. */
enum cpu_by { CPU_BY_SUM, CPU_BY_MAX, CPU_BY_SQUARES, CPU_BY_NONFINITE };

/* Of the widest instructions that the machine has. */
const struct cpu_reducer *cpu_reducer(enum cpu_by what);

#endif
