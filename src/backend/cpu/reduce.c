/* Reductions over axes: sum, mean, amax, and the sums over all elements that optimisers ask for.
 *
 * Neighbouring dimensions that are both kept or both gone are walked as one, so that two patterns remain: the fastest
 * group is gone (a result is a sum of contiguous runs) or it is kept (results are sums of rows). Either is cut into
 * pieces by shape alone and the pieces are joined in order, so the bits do not depend on the number of threads.
 * Everything is accumulated in double: a long sum of f32 is exact to the rounding of its result. Where a result is made
 * of a few neighbours and of nothing else, several results are made side by side.
 *
 * The loops over elements stand in reduce_loops.c. */
#include "backend/cpu/reduce.h"
#include "backend/cpu/cpu.h"

enum { COLUMNS = 128, PIECES = 16, SHORT = 32 }; /* columns done together; parts of a long reduction; see plan_fold */

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
    if (f.run_gone && f.run <= SHORT && f.n_kept &&
        f.n_gone) { /* short runs: as columns, of which `group` are joined at last */
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
static double fold_runs(const struct cpu_reducer *r, const struct fold *f, const float *x, int64_t from, int64_t to)
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
static void fold_rows(const struct cpu_reducer *r, const struct fold *f, const float *x, int64_t n, int64_t from,
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
static int64_t fold_task(const struct cpu_reducer *r, const struct fold *f, const float *x, int64_t t, int piece,
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

static void store(const struct cpu_reducer *r, const struct fold *f, float *y, const double *acc, int64_t n,
                  double divisor)
{
    if (f->group == 1)
        r->store(y, acc, n, divisor);
    for (int64_t j = 0; f->group > 1 && j < n / f->group; j++)
        y[j] = (float)(r->group(acc + j * f->group, f->group) / divisor);
}

/* --- */

struct job {
    const struct cpu_reducer *r;
    struct fold f;
    const float *x;
    float *y;
    double divisor;
    int pieces; /* of a task */
    double (*acc)[COLUMNS];
    int64_t *n, *at; /* of a piece: its columns, where its results begin */
};

static void run_few(void *arg, int64_t from, int64_t to)
{
    const struct job *q = arg;
    q->r->few(q->x, q->y, from, to, q->f.run, q->divisor);
}

static void run_tasks(void *arg, int64_t from, int64_t to)
{
    const struct job *q = arg;
    for (int64_t t = from; t < to; t++) {
        double acc[COLUMNS];
        int64_t n = 0, at = fold_task(q->r, &q->f, q->x, t, 0, 1, acc, &n);
        store(q->r, &q->f, q->y + at, acc, n, q->divisor);
    }
}

static void run_pieces(void *arg, int64_t from, int64_t to)
{
    const struct job *q = arg;
    for (int64_t p = from; p < to; p++)
        q->at[p] = fold_task(q->r, &q->f, q->x, p / q->pieces, (int)(p % q->pieces), q->pieces, q->acc[p], &q->n[p]);
}

/* Few long tasks, in pieces. */
static void reduce_pieces(const struct bk_io *io, struct job *q, int64_t tasks, int64_t work)
{
    double acc[2 * PIECES][COLUMNS];
    int64_t n[2 * PIECES], at[2 * PIECES];
    q->acc = acc;
    q->n = n;
    q->at = at;
    q->pieces = (int)((PIECES + tasks - 1) / tasks);
    cpu_split(io, tasks * q->pieces, work, run_pieces, q);
    for (int p = 0; p < tasks * q->pieces; p += q->pieces) {
        for (int k = 1; k < q->pieces; k++)
            q->r->join(acc[p], acc[p + k], n[p]);
        store(q->r, &q->f, q->y + at[p], acc[p], n[p], q->divisor);
    }
}

/* y = what the reducer makes of x over `axes`, divided by `divisor`. */
static void reduce(const struct bk_io *io, const struct cpu_reducer *r, unsigned axes, double divisor)
{
    struct job q = {r, plan_fold(&io->call->in[0].shape, axes), io->in[0], io->out[0], divisor, 1, NULL, NULL, NULL};
    const struct fold *f = &q.f;
    const int64_t work = f->kept * f->gone * f->run;
    if (work == 0) {
        for (int64_t i = 0, n = op_numel(&io->call->out[0]); i < n; i++)
            q.y[i] = (float)r->start;
        return;
    }
    const int64_t tasks = tasks_of(f);
    if (r->few && f->run_gone && f->run <= SHORT && f->gone == 1)
        cpu_split(io, f->kept, work, run_few, &q);
    else if (tasks >= PIECES || work < 2 * CPU_GRAIN)
        cpu_split(io, tasks, work, run_tasks, &q);
    else
        reduce_pieces(io, &q, tasks, work);
}

/* --- the kernels --- */

static hone_status sum_kernel(const struct bk_io *io, hone_err *err)
{
    (void)err;
    reduce(io, cpu_reducer(CPU_BY_SUM), (unsigned)io->call->attr.i[0], 1);
    return HONE_OK;
}

static hone_status mean_kernel(const struct bk_io *io, hone_err *err)
{
    const int64_t n = op_numel(&io->call->out[0]);
    (void)err;
    if (n)
        reduce(io, cpu_reducer(CPU_BY_SUM), (unsigned)io->call->attr.i[0], (double)(op_numel(&io->call->in[0]) / n));
    return HONE_OK;
}

static hone_status amax_kernel(const struct bk_io *io, hone_err *err)
{
    (void)err;
    reduce(io, cpu_reducer(CPU_BY_MAX), (unsigned)io->call->attr.i[0], 1);
    return HONE_OK;
}

static hone_status sum_squares_kernel(const struct bk_io *io, hone_err *err)
{
    (void)err;
    reduce(io, cpu_reducer(CPU_BY_SQUARES), HONE_AXES_ALL, 1);
    return HONE_OK;
}

static hone_status nonfinite_kernel(const struct bk_io *io, hone_err *err)
{
    (void)err;
    reduce(io, cpu_reducer(CPU_BY_NONFINITE), HONE_AXES_ALL, 1);
    return HONE_OK;
}

const struct bk_kernel cpu_sum = {.op = "sum", .run = sum_kernel};
const struct bk_kernel cpu_mean = {.op = "mean", .run = mean_kernel};
const struct bk_kernel cpu_amax = {.op = "amax", .run = amax_kernel};
const struct bk_kernel cpu_sum_squares = {.op = "sum_squares", .run = sum_squares_kernel};
const struct bk_kernel cpu_nonfinite = {.op = "nonfinite", .run = nonfinite_kernel};
