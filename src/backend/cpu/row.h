/* Sums along a contiguous row in an order that the compiler can keep in registers and that depends on the length
 * alone: ROW_LANES sums side by side, put into a double every ROW_BLOCK elements. A sum of numbers of one sign is right
 * to a few units in the last place of f32, whatever its length. */
#ifndef BACKEND_CPU_ROW_H
#define BACKEND_CPU_ROW_H

#include "backend/cpu/cpu.h"
#include "backend/cpu/vmath.h"

enum { ROW_LANES = 16, ROW_BLOCK = 16 * ROW_LANES };

static inline double row_fold(float *lane)
{
    for (int half = ROW_LANES / 2; half; half /= 2)
        for (int j = 0; j < half; j++)
            lane[j] += lane[j + half];
    return lane[0];
}

/* total += expr for each i in [0, n); total is a double, expr a float that reads i. */
#define ROW_SUM(total, n, expr)                                                                                        \
    do {                                                                                                               \
        int64_t at_ = 0;                                                                                               \
        while ((n)-at_ >= ROW_LANES) {                                                                                 \
            const int64_t whole_ = (n)-at_ - ((n)-at_) % ROW_LANES;                                                    \
            const int64_t end_ = at_ + (whole_ < ROW_BLOCK ? whole_ : ROW_BLOCK);                                      \
            float lane_[ROW_LANES] = {0};                                                                              \
            for (; at_ < end_; at_ += ROW_LANES) {                                                                     \
                CPU_SIMD                                                                                               \
                for (int j_ = 0; j_ < ROW_LANES; j_++) {                                                               \
                    const int64_t i = at_ + j_;                                                                        \
                    lane_[j_] += (expr);                                                                               \
                }                                                                                                      \
            }                                                                                                          \
            (total) += row_fold(lane_);                                                                                \
        }                                                                                                              \
        for (; at_ < (n); at_++) {                                                                                     \
            const int64_t i = at_;                                                                                     \
            (total) += (double)(expr);                                                                                 \
        }                                                                                                              \
    } while (0)

/* -inf of nothing; NaN is passed over. */
static inline float row_largest(const float *x, int64_t n)
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
static inline float row_exp(float x)
{
    const float y = v_exp(x);
    return x < -87.0f ? 0 : y;
}

/* y = exp(x - largest) over their sum; y may be x. */
static inline void row_softmax(float *y, const float *x, int64_t n)
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
