/* softmax, its gradient and its logarithm along one axis. Where the axis is the last a row is contiguous; else COLS
 * neighbours are done side by side, each walking down its column. Rows of a few elements are one vector each. */
#include "op/softmax.h"
#include "backend/cpu/row.h"
#include "backend/cpu/vec16.h"
#include "backend/cpu/wide.h"

enum { COLS = 16 };

/* COLS columns or fewer, n long, steps of `inner` from one element to the next. */
struct columns {
    int64_t n, inner;
    int width;
};

WIDE_INLINE void largest_and_sum(const struct columns *q, const float *x, float *largest, double *sum)
{
    for (int j = 0; j < q->width; j++) {
        largest[j] = -INFINITY;
        sum[j] = 0;
    }
    for (int64_t i = 0; i < q->n; i++) {
        CPU_SIMD
        for (int j = 0; j < q->width; j++)
            largest[j] = x[i * q->inner + j] > largest[j] ? x[i * q->inner + j] : largest[j];
    }
    for (int64_t i = 0; i < q->n; i++) {
        CPU_SIMD
        for (int j = 0; j < q->width; j++)
            sum[j] += (double)row_exp(x[i * q->inner + j] - largest[j]);
    }
}

WIDE_INLINE void softmax_columns(const struct columns *q, const float *x, const float *unused, float *y)
{
    float largest[COLS];
    double sum[COLS];
    (void)unused;
    largest_and_sum(q, x, largest, sum);
    for (int64_t i = 0; i < q->n; i++) {
        CPU_SIMD
        for (int j = 0; j < q->width; j++)
            y[i * q->inner + j] = (float)((double)row_exp(x[i * q->inner + j] - largest[j]) / sum[j]);
    }
}

WIDE_INLINE void log_softmax_columns(const struct columns *q, const float *x, const float *unused, float *y)
{
    float largest[COLS];
    double sum[COLS];
    (void)unused;
    largest_and_sum(q, x, largest, sum);
    for (int j = 0; j < q->width; j++)
        sum[j] = log(sum[j]);
    for (int64_t i = 0; i < q->n; i++) {
        CPU_SIMD
        for (int j = 0; j < q->width; j++)
            y[i * q->inner + j] = (x[i * q->inner + j] - largest[j]) - (float)sum[j];
    }
}

WIDE_INLINE void softmax_grad_columns(const struct columns *q, const float *dy, const float *y, float *dx)
{
    double sum[COLS] = {0};
    for (int64_t i = 0; i < q->n; i++) {
        CPU_SIMD
        for (int j = 0; j < q->width; j++)
            sum[j] += (double)(dy[i * q->inner + j] * y[i * q->inner + j]);
    }
    for (int64_t i = 0; i < q->n; i++) {
        CPU_SIMD
        for (int j = 0; j < q->width; j++)
            dx[i * q->inner + j] = y[i * q->inner + j] * (dy[i * q->inner + j] - (float)sum[j]);
    }
}

WIDE_INLINE void softmax_row(int64_t n, const float *x, const float *unused, float *y)
{
    (void)unused;
    row_softmax(y, x, n);
}

WIDE_INLINE void log_softmax_row(int64_t n, const float *x, const float *unused, float *y)
{
    const float largest = row_largest(x, n);
    double sum = 0;
    (void)unused;
    ROW_SUM(sum, n, row_exp(x[i] - largest));
    const float less = (float)log(sum);
    CPU_SIMD
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - largest) - less;
}

WIDE_INLINE void softmax_grad_row(int64_t n, const float *dy, const float *y, float *dx)
{
    double sum = 0;
    ROW_SUM(sum, n, dy[i] * y[i]);
    const float along = (float)sum;
    CPU_SIMD
    for (int64_t i = 0; i < n; i++)
        dx[i] = y[i] * (dy[i] - along);
}

/* --- rows of a few elements --- */

enum { ROWS = 4 }; /* done together */

typedef float quad __attribute__((vector_size(16)));
typedef float mem_quad __attribute__((vector_size(16), aligned(4), may_alias));

/* row_exp, 16 times. */
VEC_INLINE vec exp_of(vec x)
{
    const ivec none = x < -87.0f;
    const vec t = vec_pick(none, vec_all(-87.0f), x);
    vec n = t * 1.44269504f + 12582912.0f;
    const ivec e = (ivec)n << 23;
    n -= 12582912.0f;
    const vec r = (t - n * 0.693359375f) - n * -2.12194440e-4f;
    vec p = vec_all(1.3836713e-3f);
    p = p * r + 8.36914e-3f;
    p = p * r + 4.1668106e-2f;
    p = p * r + 0.16666517f;
    p = p * r + 0.49999994f;
    p = p * (r * r) + r + 1.0f;
    p = vec_pick(none, (vec){0}, (vec)((ivec)p + e));
    return vec_pick(x == x, p, x);
}

VEC_INLINE quad larger(quad a, quad b)
{
    const __typeof__(a > b) mask = a > b;
    return (quad)(((__typeof__(mask))a & mask) | ((__typeof__(mask))b & ~mask));
}

#define SUM(a, b) ((a) + (b))
/* q[r] = fold of row r; ((0 1) (2 3)) of quarters, and of the elements of what that gives. */
#define FOLD(q, x, fold)                                                                                               \
    do {                                                                                                               \
        quad f_[ROWS];                                                                                                 \
        CPU_PRAGMA(GCC unroll 4)                                                                                       \
        for (int r_ = 0; r_ < ROWS; r_++) {                                                                            \
            const float *at_ = (x) + r_ * VEC_LANES;                                                                   \
            f_[r_] = fold(fold(*(const mem_quad *)at_, *(const mem_quad *)(at_ + 4)),                                  \
                          fold(*(const mem_quad *)(at_ + 8), *(const mem_quad *)(at_ + 12)));                          \
        }                                                                                                              \
        const quad a_ = __builtin_shufflevector(f_[0], f_[1], 0, 4, 1, 5),                                             \
                   b_ = __builtin_shufflevector(f_[0], f_[1], 2, 6, 3, 7),                                             \
                   c_ = __builtin_shufflevector(f_[2], f_[3], 0, 4, 1, 5),                                             \
                   d_ = __builtin_shufflevector(f_[2], f_[3], 2, 6, 3, 7), ab_ = fold(a_, b_), cd_ = fold(c_, d_);     \
        (q) = fold(__builtin_shufflevector(ab_, cd_, 0, 1, 4, 5), __builtin_shufflevector(ab_, cd_, 2, 3, 6, 7));      \
    } while (0)

/* softmax of ROWS rows of VEC_LANES; y may be x. A NaN of the operand comes out in its row through the sum. */
WIDE_INLINE void softmax_rows(const float *x, float *y)
{
    quad largest, sum;
    FOLD(largest, x, larger);
    vec e[ROWS];
    CPU_PRAGMA(GCC unroll 4)
    for (int r = 0; r < ROWS; r++) {
        e[r] = exp_of(vec_load(x + r * VEC_LANES) - largest[r]);
        *(mem_vec *)(y + r * VEC_LANES) = e[r];
    }
    FOLD(sum, y, SUM);
    const quad over = 1.0f / sum;
    CPU_PRAGMA(GCC unroll 4)
    for (int r = 0; r < ROWS; r++)
        *(mem_vec *)(y + r * VEC_LANES) = e[r] * over[r];
}

/* Rows [from, to) of n elements, VEC_LANES at most. */
WIDE_INLINE void softmax_few(const float *x, float *y, int64_t n, int64_t from, int64_t to)
{
    float t[ROWS * VEC_LANES];
    for (; from < to; from += ROWS) {
        if (n == VEC_LANES && to - from >= ROWS) {
            softmax_rows(x + from * n, y + from * n);
            continue;
        }
        const int64_t rows = to - from < ROWS ? to - from : ROWS;
        for (int64_t i = 0; i < ROWS * VEC_LANES; i++)
            t[i] = -INFINITY;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < n; i++)
                t[r * VEC_LANES + i] = x[(from + r) * n + i];
        softmax_rows(t, t);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < n; i++)
                y[(from + r) * n + i] = t[r * VEC_LANES + i];
    }
}

/* --- */

struct job {
    struct op_axis q;
    int64_t strips; /* of columns */
    const float *a, *b;
    float *y;
};

static hone_status run(const struct bk_io *io, cpu_range_fn fn)
{
    const struct op_axis q = op_softmax_axis(io->call);
    const float *a = io->in[0], *b = io->call->n_in > 1 ? io->in[1] : a;
    struct job o = {q, (q.inner + COLS - 1) / COLS, a, b, io->out[0]};
    const int64_t work = q.outer * q.n * q.inner;
    if (work)
        cpu_split(io, q.outer * o.strips, work, fn, &o);
    return HONE_OK;
}

/* Strips [from, to): rows, or COLS columns. A row is read whole before it is written, and written element by element.
 * `few` is what is done with rows that are short. */
#define SOFTMAX(name, operands, few)                                                                                   \
    WIDE_INLINE void name##_body(void *arg, int64_t from, int64_t to)                                                  \
    {                                                                                                                  \
        const struct job *o = arg;                                                                                     \
        const struct op_axis *q = &o->q;                                                                               \
        few;                                                                                                           \
        for (int64_t t = from; t < to; t++) {                                                                          \
            const int64_t first = t % o->strips * COLS, at = t / o->strips * q->n * q->inner + first;                  \
            const int64_t left = q->inner - first;                                                                     \
            const struct columns c = {q->n, q->inner, left < COLS ? (int)left : COLS};                                 \
            if (q->inner == 1)                                                                                         \
                name##_row(q->n, o->a + at, o->b + at, o->y + at);                                                     \
            else                                                                                                       \
                name##_columns(&c, o->a + at, o->b + at, o->y + at);                                                   \
        }                                                                                                              \
    }                                                                                                                  \
    WIDE(name)                                                                                                         \
    static hone_status name##_run(const struct bk_io *io, hone_err *err)                                               \
    {                                                                                                                  \
        (void)err;                                                                                                     \
        return run(io, name##_wide());                                                                                 \
    }                                                                                                                  \
    const struct bk_kernel cpu_##name = {.op = #name, .inplace = {operands}, .run = name##_run};
SOFTMAX(softmax, 1, {
    if (q->inner == 1 && q->n <= VEC_LANES) {
        softmax_few(o->a, o->y, q->n, from, to);
        return;
    }
})
SOFTMAX(log_softmax, 1, )
SOFTMAX(softmax_grad, 3, )
