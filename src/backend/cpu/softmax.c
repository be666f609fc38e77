/* softmax, its gradient and its logarithm along one axis. Where the axis is the last a row is contiguous; else COLS
 * neighbours are done side by side, each walking down its column. */
#include "op/softmax.h"
#include "backend/cpu/row.h"

enum { COLS = 16 };

/* COLS columns or fewer, n long, steps of `inner` from one element to the next. */
struct columns {
    int64_t n, inner;
    int width;
};

static void largest_and_sum(const struct columns *q, const float *x, float *largest, double *sum)
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

static void softmax_columns(const struct columns *q, const float *x, const float *unused, float *y)
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

static void log_softmax_columns(const struct columns *q, const float *x, const float *unused, float *y)
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

static void softmax_grad_columns(const struct columns *q, const float *dy, const float *y, float *dx)
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

static void softmax_row(int64_t n, const float *x, const float *unused, float *y)
{
    (void)unused;
    row_softmax(y, x, n);
}

static void log_softmax_row(int64_t n, const float *x, const float *unused, float *y)
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

static void softmax_grad_row(int64_t n, const float *dy, const float *y, float *dx)
{
    double sum = 0;
    ROW_SUM(sum, n, dy[i] * y[i]);
    const float along = (float)sum;
    CPU_SIMD
    for (int64_t i = 0; i < n; i++)
        dx[i] = y[i] * (dy[i] - along);
}

struct job {
    struct op_axis q;
    int64_t strips; /* of columns */
    const float *a, *b;
    float *y;
    void (*row)(int64_t, const float *, const float *, float *);
    void (*columns)(const struct columns *, const float *, const float *, float *);
};

static void run_strips(void *arg, int64_t from, int64_t to)
{
    const struct job *o = arg;
    const struct op_axis *q = &o->q;
    for (int64_t t = from; t < to; t++) {
        const int64_t first = t % o->strips * COLS, at = t / o->strips * q->n * q->inner + first;
        const int64_t left = q->inner - first;
        const struct columns c = {q->n, q->inner, left < COLS ? (int)left : COLS};
        if (q->inner == 1)
            o->row(q->n, o->a + at, o->b + at, o->y + at);
        else
            o->columns(&c, o->a + at, o->b + at, o->y + at);
    }
}

static hone_status run(const struct bk_io *io, void (*row)(int64_t, const float *, const float *, float *),
                       void (*columns)(const struct columns *, const float *, const float *, float *))
{
    const struct op_axis q = op_softmax_axis(io->call);
    const float *a = io->in[0], *b = io->call->n_in > 1 ? io->in[1] : a;
    struct job o = {q, (q.inner + COLS - 1) / COLS, a, b, io->out[0], row, columns};
    const int64_t work = q.outer * q.n * q.inner;
    if (work)
        cpu_split(io, q.outer * o.strips, work, run_strips, &o);
    return HONE_OK;
}

/* A row is read whole before it is written, and written element by element. */
#define SOFTMAX(name, operands)                                                                                        \
    static hone_status name##_run(const struct bk_io *io, hone_err *err)                                               \
    {                                                                                                                  \
        (void)err;                                                                                                     \
        return run(io, name##_row, name##_columns);                                                                    \
    }                                                                                                                  \
    const struct bk_kernel cpu_##name = {.op = #name, .inplace = {operands}, .run = name##_run};
SOFTMAX(softmax, 1)
SOFTMAX(log_softmax, 1)
SOFTMAX(softmax_grad, 3)
