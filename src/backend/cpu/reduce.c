/* Reductions over axes: sum, mean, amax, and the sums over all elements that optimisers ask for.
 *
 * Neighbouring dimensions that are both kept or both gone are walked as one, so that two patterns remain: the fastest
 * group is gone (a result is a sum of contiguous runs) or it is kept (results are sums of rows). Either is cut into
 * pieces by shape alone and the pieces are joined in order, so the bits do not depend on the number of threads.
 * Everything is accumulated in double: a long sum of f32 is exact to the rounding of its result. */
#include <float.h>
#include <math.h>

#include "backend/cpu/cpu.h"

enum { COLUMNS = 128, PIECES = 16, SHORT = 32 }; /* columns done together; parts of a long reduction; see plan_fold */

#ifdef _OPENMP
#define SIMD(...) CPU_PRAGMA(omp simd __VA_ARGS__)
#else
#define SIMD(...)
#endif

/* What is done with the elements. */
struct reducer {
    double start;
    double (*run)(const float *x, int64_t n); /* of n contiguous elements */
    /* acc[j] joined with column j of `rows` rows, `stride` apart; n columns. */
    void (*add)(double *acc, const float *x, int64_t n, int64_t rows, int64_t stride);
    void (*join)(double *acc, const double *other, int64_t n); /* acc[j] joined with other[j] */
    double (*group)(const double *acc, int64_t n);             /* n of them joined to one */
};

/* How the operand is walked: `run` contiguous elements of the fastest group, and the other groups, fastest first. */
struct fold {
    int64_t run, group; /* group: neighbouring columns that make one result, where runs are kept */
    bool run_gone;
    int n_kept, n_gone;
    int64_t kept_dim[HONE_MAX_RANK], kept_step[HONE_MAX_RANK], gone_dim[HONE_MAX_RANK], gone_step[HONE_MAX_RANK];
    int64_t kept, gone; /* elements of the other groups */
};

static struct fold plan_fold(const hone_shape *s, unsigned axes)
{
    struct fold f = {.run = 1, .group = 1, .run_gone = true, .kept = 1, .gone = 1};
    int64_t step = 1;
    int groups = 0; /* the last one is `last` */
    bool last = true;
    for (int i = s->rank - 1; i >= 0; i--) {
        const int64_t d = s->dim[i];
        const bool gone = axes >> i & 1;
        if (d == 1)
            continue;
        if (groups && gone == last) {
            *(groups == 1 ? &f.run : gone ? &f.gone_dim[f.n_gone - 1] : &f.kept_dim[f.n_kept - 1]) *= d;
        } else if (groups++ == 0) {
            f.run = d;
            f.run_gone = gone;
        } else if (gone) {
            f.gone_dim[f.n_gone] = d;
            f.gone_step[f.n_gone++] = step;
        } else {
            f.kept_dim[f.n_kept] = d;
            f.kept_step[f.n_kept++] = step;
        }
        last = gone;
        step *= d;
    }
    if (f.run_gone && f.run <= SHORT && f.n_kept) { /* short runs: as columns, of which `group` are joined at last */
        f.group = f.run;
        f.run *= f.kept_dim[0];
        f.run_gone = false;
        f.n_kept--;
        for (int i = 0; i < f.n_kept; i++) {
            f.kept_dim[i] = f.kept_dim[i + 1];
            f.kept_step[i] = f.kept_step[i + 1];
        }
    }
    for (int i = 0; i < f.n_kept; i++)
        f.kept *= f.kept_dim[i];
    for (int i = 0; i < f.n_gone; i++)
        f.gone *= f.gone_dim[i];
    return f;
}

static int64_t kept_at(const struct fold *f, int64_t o)
{
    int64_t at = 0;
    for (int i = 0; i < f->n_kept; i++) {
        at += o % f->kept_dim[i] * f->kept_step[i];
        o /= f->kept_dim[i];
    }
    return at;
}

/* A place among the gone groups. */
struct walk {
    int64_t idx[HONE_MAX_RANK], at;
};

static struct walk walk_to(const struct fold *f, int64_t k)
{
    struct walk w = {.at = 0};
    for (int i = 0; i < f->n_gone; i++) {
        w.idx[i] = k % f->gone_dim[i];
        w.at += w.idx[i] * f->gone_step[i];
        k /= f->gone_dim[i];
    }
    return w;
}

/* `by` steps of the fastest group, which end at its end or before. */
static void walk_on(const struct fold *f, struct walk *w, int64_t by)
{
    for (int i = 0; i < f->n_gone; i++) {
        w->at += by * f->gone_step[i];
        w->idx[i] += by;
        if (w->idx[i] < f->gone_dim[i])
            return;
        w->at -= f->gone_dim[i] * f->gone_step[i];
        w->idx[i] = 0;
        by = 1;
    }
}

/* Elements [from, to) of all that one result is made of; runs are gone. */
static double fold_runs(const struct reducer *r, const struct fold *f, const float *x, int64_t from, int64_t to)
{
    struct walk w = walk_to(f, from / f->run);
    int64_t skip = from % f->run;
    double acc = r->start;
    while (from < to) {
        const int64_t left = f->run - skip, n = left < to - from ? left : to - from;
        const double part = r->run(x + w.at + skip, n);
        r->join(&acc, &part, 1);
        from += n;
        skip = 0;
        walk_on(f, &w, 1);
    }
    return acc;
}

/* Rows [from, to) of n columns into acc; runs are kept. Where whole rows are short, several are taken as one. */
static void fold_rows(const struct reducer *r, const struct fold *f, const float *x, int64_t n, int64_t from,
                      int64_t to, double *acc)
{
    const int64_t group = f->n_gone ? f->gone_dim[0] : 1, many = n == f->run && n <= COLUMNS / 2 ? COLUMNS / n : 1;
    struct walk w = walk_to(f, from);
    for (int64_t j = 0; j < many * n; j++)
        acc[j] = r->start;
    while (from < to) {
        const int64_t left = group - (f->n_gone ? w.idx[0] : 0), rows = left < to - from ? left : to - from;
        const int64_t wide = rows / many, done = wide * many;
        r->add(acc, x + w.at, many * n, wide, many * f->run);
        r->add(acc, x + w.at + done * f->run, n, rows - done, f->run);
        from += rows;
        walk_on(f, &w, rows);
    }
    for (int64_t i = 1; i < many; i++)
        r->join(acc, acc + i * n, n);
}

static int64_t columns(const struct fold *f)
{
    return COLUMNS / f->group * f->group;
}

static int64_t tasks_of(const struct fold *f)
{
    return f->run_gone ? f->kept : f->kept * ((f->run + columns(f) - 1) / columns(f));
}

/* Part `piece` of `pieces` of task t: result t (runs gone), or a block of columns. Returns where its results begin, *n
 * how many columns there are. */
static int64_t fold_task(const struct reducer *r, const struct fold *f, const float *x, int64_t t, int piece,
                         int pieces, double *acc, int64_t *n)
{
    const int64_t all = f->run_gone ? f->gone * f->run : f->gone;
    const int64_t part = (all + pieces - 1) / pieces, begin = piece * part, end = begin + part;
    const int64_t from = begin < all ? begin : all, to = end < all ? end : all;
    if (f->run_gone) {
        *n = 1;
        acc[0] = fold_runs(r, f, x + kept_at(f, t), from, to);
        return t;
    }
    const int64_t wide = columns(f), blocks = (f->run + wide - 1) / wide, row = t / blocks, column = t % blocks * wide;
    *n = f->run - column < wide ? f->run - column : wide;
    fold_rows(r, f, x + kept_at(f, row) + column, *n, from, to, acc);
    return (row * f->run + column) / f->group;
}

static void store(const struct reducer *r, const struct fold *f, float *y, const double *acc, int64_t n, double divisor)
{
    for (int64_t j = 0; j < n / f->group; j++)
        y[j] = (float)((f->group == 1 ? acc[j] : r->group(acc + j * f->group, f->group)) / divisor);
}

/* y = what the reducer makes of x over `axes`, divided by `divisor`. */
static void reduce(const struct bk_io *io, const struct reducer *r, unsigned axes, double divisor)
{
    const struct fold f = plan_fold(&io->call->in[0].shape, axes);
    const float *x = io->in[0];
    float *y = io->out[0];
    const int64_t work = f.kept * f.gone * f.run;
    if (work == 0) {
        for (int64_t i = 0, n = op_numel(&io->call->out[0]); i < n; i++)
            y[i] = (float)r->start;
        return;
    }
    const int64_t tasks = tasks_of(&f);
    if (tasks >= PIECES || work < 2 * CPU_GRAIN) {
        CPU_PARALLEL(io, work)
        for (int64_t t = 0; t < tasks; t++) {
            double acc[COLUMNS];
            int64_t n = 0, at = fold_task(r, &f, x, t, 0, 1, acc, &n);
            store(r, &f, y + at, acc, n, divisor);
        }
        return;
    }
    double acc[2 * PIECES][COLUMNS]; /* few long tasks, in pieces */
    int64_t n[2 * PIECES], at[2 * PIECES];
    const int pieces = (int)((PIECES + tasks - 1) / tasks), all = (int)tasks * pieces;
    CPU_PARALLEL(io, work)
    for (int p = 0; p < all; p++)
        at[p] = fold_task(r, &f, x, p / pieces, p % pieces, pieces, acc[p], &n[p]);
    for (int p = 0; p < all; p += pieces) {
        for (int k = 1; k < pieces; k++)
            r->join(acc[p], acc[p + k], n[p]);
        store(r, &f, y + at[p], acc[p], n[p], divisor);
    }
}

/* Four places at once, a quarter of the way apart: the memory of one core delivers several streams faster than one. */
#define SUM_RUN(name, expr)                                                                                            \
    static double name##_run(const float *x, int64_t n)                                                                \
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

static inline double plain(float x)
{
    return x;
}

static inline double squared(float x)
{
    return (double)x * (double)x;
}

/* NaN and infinities are what is not below the largest float. */
static inline double is_nonfinite(float x)
{
    return fabsf(x) <= FLT_MAX ? 0.0 : 1.0;
}

SUM_RUN(sum, plain)
SUM_RUN(squares, squared)
SUM_RUN(nonfinite, is_nonfinite)

static void sum_add(double *acc, const float *x, int64_t n, int64_t rows, int64_t stride)
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
static inline float larger(float m, float x)
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

static double max_run(const float *x, int64_t n)
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

static void max_add(double *acc, const float *x, int64_t n, int64_t rows, int64_t stride)
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

static const struct reducer by_sum = {0, sum_run, sum_add, sum_join, sum_group};
static const struct reducer by_max = {-INFINITY, max_run, max_add, max_join, max_group};
/* over all axes: there are no columns */
static const struct reducer by_squares = {0, squares_run, NULL, sum_join, NULL};
static const struct reducer by_nonfinite = {0, nonfinite_run, NULL, sum_join, NULL};

static hone_status sum_kernel(const struct bk_io *io, hone_err *err)
{
    (void)err;
    reduce(io, &by_sum, (unsigned)io->call->attr.i[0], 1);
    return HONE_OK;
}

static hone_status mean_kernel(const struct bk_io *io, hone_err *err)
{
    const int64_t n = op_numel(&io->call->out[0]);
    (void)err;
    if (n)
        reduce(io, &by_sum, (unsigned)io->call->attr.i[0], (double)(op_numel(&io->call->in[0]) / n));
    return HONE_OK;
}

static hone_status amax_kernel(const struct bk_io *io, hone_err *err)
{
    (void)err;
    reduce(io, &by_max, (unsigned)io->call->attr.i[0], 1);
    return HONE_OK;
}

static hone_status sum_squares_kernel(const struct bk_io *io, hone_err *err)
{
    (void)err;
    reduce(io, &by_squares, HONE_AXES_ALL, 1);
    return HONE_OK;
}

static hone_status nonfinite_kernel(const struct bk_io *io, hone_err *err)
{
    (void)err;
    reduce(io, &by_nonfinite, HONE_AXES_ALL, 1);
    return HONE_OK;
}

const struct bk_kernel cpu_sum = {.op = "sum", .run = sum_kernel};
const struct bk_kernel cpu_mean = {.op = "mean", .run = mean_kernel};
const struct bk_kernel cpu_amax = {.op = "amax", .run = amax_kernel};
const struct bk_kernel cpu_sum_squares = {.op = "sum_squares", .run = sum_squares_kernel};
const struct bk_kernel cpu_nonfinite = {.op = "nonfinite", .run = nonfinite_kernel};
