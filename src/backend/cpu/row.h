/* Sums along a contiguous row in an order that the compiler can keep in registers and that depends on the length
 * alone: ROW_LANES sums side by side, put into a double every ROW_BLOCK elements. A sum of numbers of one sign is right
 * to a few units in the last place of f32, whatever its length. */
#ifndef BACKEND_CPU_ROW_H
#define BACKEND_CPU_ROW_H

#include "backend/cpu/vmath.h"
#include "backend/cpu/wide.h"

enum { ROW_LANES = 16, ROW_BLOCK = 16 * ROW_LANES };

typedef float row_quad __attribute__((vector_size(16)));
typedef float row_mem_quad __attribute__((vector_size(16), aligned(4), may_alias));

/* Halves are added until one is left. */
WIDE_INLINE double row_fold(const float *lane)
{
    const row_mem_quad *q = (const row_mem_quad *)lane;
    const row_quad s = (q[0] + q[2]) + (q[1] + q[3]);
    return (s[0] + s[2]) + (s[1] + s[3]);
}

/* lane[j] += expr for ROW_LANES neighbours from i. */
#define ROW_ADD(lane, from, expr)                                                                                      \
    CPU_SIMD                                                                                                           \
    for (int j_ = 0; j_ < ROW_LANES; j_++) {                                                                           \
        const int64_t i = (from) + j_;                                                                                 \
        (lane)[j_] += (expr);                                                                                          \
    }

/* total += expr for each i in [0, n); total is a double, expr a float that reads i. */
#define ROW_SUM(total, n, expr)                                                                                        \
    do {                                                                                                               \
        int64_t at_ = 0;                                                                                               \
        for (; (n)-at_ >= ROW_BLOCK; at_ += ROW_BLOCK) {                                                               \
            float a_[ROW_LANES] = {0}, b_[ROW_LANES] = {0}, c_[ROW_LANES] = {0}, d_[ROW_LANES] = {0};                  \
            for (int64_t k_ = at_; k_ < at_ + ROW_BLOCK; k_ += 4 * ROW_LANES) {                                        \
                ROW_ADD(a_, k_, expr)                                                                                  \
                ROW_ADD(b_, k_ + ROW_LANES, expr)                                                                      \
                ROW_ADD(c_, k_ + 2 * ROW_LANES, expr)                                                                  \
                ROW_ADD(d_, k_ + 3 * ROW_LANES, expr)                                                                  \
            }                                                                                                          \
            CPU_SIMD                                                                                                   \
            for (int j_ = 0; j_ < ROW_LANES; j_++)                                                                     \
                a_[j_] = (a_[j_] + b_[j_]) + (c_[j_] + d_[j_]);                                                        \
            (total) += row_fold(a_);                                                                                   \
        }                                                                                                              \
        if ((n)-at_ >= ROW_LANES) {                                                                                    \
            float lane_[ROW_LANES] = {0};                                                                              \
            for (; (n)-at_ >= ROW_LANES; at_ += ROW_LANES)                                                             \
                ROW_ADD(lane_, at_, expr)                                                                              \
            (total) += row_fold(lane_);                                                                                \
        }                                                                                                              \
        for (; at_ < (n); at_++) {                                                                                     \
            const int64_t i = at_;                                                                                     \
            (total) += (double)(expr);                                                                                 \
        }                                                                                                              \
    } while (0)

/* -inf of nothing; NaN is passed over. */
WIDE_INLINE float row_largest(const float *x, int64_t n)
{
    float lane[ROW_LANES];
    int64_t at = 0;
    for (int j = 0; j < ROW_LANES; j++)
        lane[j] = -INFINITY;
    for (; at + ROW_LANES <= n; at += ROW_LANES) {
        CPU_SIMD
        for (int j = 0; j < ROW_LANES; j++)
            lane[j] = x[at + j] > lane[j] ? x[at + j] : lane[j];
    }
    for (int j = 0; at + j < n; j++)
        lane[j] = x[at + j] > lane[j] ? x[at + j] : lane[j];
    for (int half = ROW_LANES / 2; half; half /= 2)
        for (int j = 0; j < half; j++)
            lane[j] = lane[j + half] > lane[j] ? lane[j + half] : lane[j];
    return lane[0];
}

/* e^x for x <= 0, with nothing left of what is smaller than any normal number. */
WIDE_INLINE float row_exp(float x)
{
    const float y = v_exp(x);
    return x < -87.0f ? 0 : y;
}

/* y = exp(x - largest) over their sum; y may be x. */
WIDE_INLINE void row_softmax(float *y, const float *x, int64_t n)
{
    const float largest = row_largest(x, n);
    double sum = 0;
    CPU_SIMD
    for (int64_t i = 0; i < n; i++)
        y[i] = row_exp(x[i] - largest);
    ROW_SUM(sum, n, y[i]);
    const float over = (float)(1 / sum);
    CPU_SIMD
    for (int64_t i = 0; i < n; i++)
        y[i] *= over;
}

#endif
