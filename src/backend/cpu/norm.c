/* group_norm, layer_norm, rms_norm and their gradients, in the terms of op/norm.h: rows of channels x inner elements.
 *
 * Statistics take two passes over a row, the mean first, in the sums of row.h. The mean is kept as a rounded
 * part and a rest, so that rows far from zero lose nothing. gamma is read once an element: where a channel has few
 * elements it is written out in scratch memory, which then makes a row one long loop.
 *
 * dgamma and dbeta are sums over samples, taken in chunks of CHUNK samples that do not depend on the number of threads,
 * and the chunks in order: the same bits for any number of threads. */
#include <string.h>

#include "backend/cpu/row.h"
#include "op/norm.h"

enum {
    NARROW = 32, /* fewer elements a channel are written out */
    CHUNK = 32,  /* samples */
    COLS = 64
};

/* --- statistics of a row --- */

struct stat {
    float mean, rest, rstd; /* mean + rest is the mean */
};

/* The mean is taken of what is left after the first element is taken off. */
WIDE_INLINE struct stat row_stat(const float *x, int64_t n, bool centred, double eps)
{
    struct stat s = {0};
    double square = 0;
    if (centred && n) {
        const float first = x[0];
        double sum = 0;
        ROW_SUM(sum, n, x[i] - first);
        const double mean = first + sum / (double)n;
        s.mean = (float)mean;
        s.rest = (float)(mean - s.mean);
    }
    const float m = s.mean, r = s.rest;
    ROW_SUM(square, n, ((x[i] - m) - r) * ((x[i] - m) - r));
    s.rstd = (float)(1 / sqrt((n ? square / (double)n : 0) + eps));
    return s;
}

/* --- forward --- */

WIDE_INLINE void write_row(float *y, const float *x, int64_t n, struct stat s, const float *gamma, const float *beta)
{
    if (gamma && beta) {
        CPU_SIMD
        for (int64_t i = 0; i < n; i++)
            y[i] = ((x[i] - s.mean) - s.rest) * s.rstd * gamma[i] + beta[i];
    } else if (gamma) {
        CPU_SIMD
        for (int64_t i = 0; i < n; i++)
            y[i] = ((x[i] - s.mean) - s.rest) * s.rstd * gamma[i];
    } else {
        CPU_SIMD
        for (int64_t i = 0; i < n; i++)
            y[i] = ((x[i] - s.mean) - s.rest) * s.rstd;
    }
}

/* One number of gamma and beta for many elements. */
WIDE_INLINE void write_wide(float *y, const float *x, const struct op_norm *q, struct stat s, const float *gamma,
                            const float *beta)
{
    for (int64_t c = 0; c < q->channels; c++, x += q->inner, y += q->inner) {
        const float a = s.rstd * gamma[c], b = beta[c];
        CPU_SIMD
        for (int64_t i = 0; i < q->inner; i++)
            y[i] = ((x[i] - s.mean) - s.rest) * a + b;
    }
}

/* Numbers of channels are written out once an element where a channel has several, but few. */
static bool spreads(const struct op_norm *q)
{
    return q->inner > 1 && q->inner < NARROW;
}

static const float *spread(const struct op_norm *q, const float *of_channels, float *of_elements)
{
    if (!spreads(q))
        return of_channels;
    for (int64_t c = 0; c < q->groups * q->channels; c++)
        for (int64_t i = 0; i < q->inner; i++)
            of_elements[c * q->inner + i] = of_channels[c];
    return of_elements;
}

struct forward {
    struct op_norm q;
    const float *x, *gamma, *beta; /* nullable: gamma, beta */
    float *y, *mean, *rstd;        /* nullable: mean */
    double eps;
};

WIDE_INLINE void forward_body(void *arg, int64_t from, int64_t to)
{
    const struct forward *f = arg;
    const struct op_norm *q = &f->q;
    const int64_t row = op_norm_row(q);
    const bool wide = q->inner >= NARROW;
    for (int64_t r = from; r < to; r++) {
        const struct stat s = row_stat(f->x + r * row, row, q->centred, f->eps);
        const int64_t first = r % q->groups * (wide ? q->channels : row);
        const float *g = f->gamma ? f->gamma + first : NULL, *b = f->beta ? f->beta + first : NULL;
        if (wide)
            write_wide(f->y + r * row, f->x + r * row, q, s, g, b);
        else
            write_row(f->y + r * row, f->x + r * row, row, s, g, b);
        if (f->mean)
            f->mean[r] = s.mean;
        f->rstd[r] = s.rstd;
    }
}
WIDE(forward)

/* Nullable: gamma, beta, mean. */
static hone_status forward(const struct bk_io *io, const struct op_norm *q, const float *gamma, const float *beta,
                           float *mean, float *rstd)
{
    struct forward f = {*q, io->in[0], gamma, beta, io->out[0], mean, rstd, io->call->attr.f[NORM_EPS]};
    const int64_t row = op_norm_row(q), rows = q->n * q->groups;
    f.gamma = spread(q, gamma, io->scratch);
    f.beta = spread(q, beta, spreads(q) ? (float *)io->scratch + q->groups * row : NULL);
    cpu_split(io, rows, rows * row, forward_wide(), &f);
    return HONE_OK;
}

/* --- gradients --- */

struct back {
    struct op_norm q;
    const float *dy, *x, *gamma, *mean, *rstd; /* nullable: gamma, mean; gamma of elements, unless wide */
    float *dx, *dgamma, *dbeta;                /* nullable: dbeta */
    float *part;                               /* sums of chunks: [chunks][2][elements], of dy xhat and of dy */
    int64_t chunks, elements;
};

/* Sums of g and g (x - m) over a row, g = dy gamma. */
WIDE_INLINE void pair(const float *dy, const float *x, const float *gamma, float m, int64_t n, double *g, double *gx)
{
    double a = 0, b = 0;
    if (gamma) {
        ROW_SUM(a, n, dy[i] * gamma[i]);
        ROW_SUM(b, n, dy[i] * gamma[i] * (x[i] - m));
    } else {
        ROW_SUM(a, n, dy[i]);
        ROW_SUM(b, n, dy[i] * (x[i] - m));
    }
    *g = a;
    *gx = b;
}

/* dx = rstd (g - mean(g)) - (x - m) rstd^3 mean(g (x - m)) */
struct slope {
    float m, rstd, level, along;
};

WIDE_INLINE struct slope slope_of(const struct op_norm *q, float m, float rstd, double g, double gx)
{
    const double n = (double)op_norm_row(q), s = rstd;
    return (struct slope){m, rstd, q->centred ? (float)(s * g / n) : 0, (float)(s * s * s * gx / n)};
}

WIDE_INLINE void narrow_row(const struct back *b, int64_t r, float *dgamma, float *dbeta)
{
    const int64_t n = op_norm_row(&b->q);
    const float *dy = b->dy + r * n, *x = b->x + r * n, *gamma = b->gamma ? b->gamma + r % b->q.groups * n : NULL;
    const float m = b->mean ? b->mean[r] : 0, rstd = b->rstd[r];
    float *dx = b->dx + r * n;
    double g, gx;
    pair(dy, x, gamma, m, n, &g, &gx);
    const struct slope s = slope_of(&b->q, m, rstd, g, gx);
    if (!gamma) {
        CPU_SIMD
        for (int64_t i = 0; i < n; i++)
            dx[i] = rstd * dy[i] - s.level - (x[i] - m) * s.along;
        return;
    }
    CPU_SIMD
    for (int64_t i = 0; i < n; i++) {
        const float d = dy[i], xm = x[i] - m;
        dgamma[i] += d * (xm * rstd);
        dbeta[i] += d;
        dx[i] = rstd * (d * gamma[i]) - s.level - xm * s.along;
    }
}

/* Chunks of groups. */
WIDE_INLINE void narrow_body(void *arg, int64_t from, int64_t to)
{
    const struct back *b = arg;
    const struct op_norm *q = &b->q;
    const int64_t row = op_norm_row(q);
    for (int64_t t = from; t < to; t++) {
        const int64_t group = t % q->groups, first = t / q->groups * CHUNK,
                      end = first + CHUNK < q->n ? first + CHUNK : q->n;
        float *dgamma = NULL, *dbeta = NULL;
        if (b->gamma) {
            dgamma = b->part + t / q->groups * 2 * b->elements + group * row;
            dbeta = dgamma + b->elements;
            memset(dgamma, 0, (size_t)row * sizeof *dgamma);
            memset(dbeta, 0, (size_t)row * sizeof *dbeta);
        }
        for (int64_t n = first; n < end; n++)
            narrow_row(b, n * q->groups + group, dgamma, dbeta);
    }
}
WIDE(narrow)

/* The sums of a channel serve dgamma, dbeta and the row. */
WIDE_INLINE void wide_row(const struct back *b, int64_t r, float *dgamma, float *dbeta)
{
    const struct op_norm *q = &b->q;
    const int64_t n = q->inner, row = op_norm_row(q);
    const float *gamma = b->gamma + r % q->groups * q->channels, m = b->mean[r], rstd = b->rstd[r];
    double g = 0, gx = 0;
    for (int64_t c = 0; c < q->channels; c++) {
        double sum, along;
        pair(b->dy + r * row + c * n, b->x + r * row + c * n, NULL, m, n, &sum, &along);
        dbeta[c] = (float)sum;
        dgamma[c] = (float)(along * rstd);
        g += gamma[c] * sum;
        gx += gamma[c] * along;
    }
    const struct slope s = slope_of(q, m, rstd, g, gx);
    for (int64_t c = 0; c < q->channels; c++) {
        const float *dy = b->dy + r * row + c * n, *x = b->x + r * row + c * n, a = rstd * gamma[c];
        float *dx = b->dx + r * row + c * n;
        CPU_SIMD
        for (int64_t i = 0; i < n; i++)
            dx[i] = a * dy[i] - s.level - (x[i] - m) * s.along;
    }
}

WIDE_INLINE void wide_body(void *arg, int64_t from, int64_t to)
{
    const struct back *b = arg;
    const struct op_norm *q = &b->q;
    for (int64_t r = from; r < to; r++) {
        float *dgamma = b->part + r / q->groups * 2 * b->elements + r % q->groups * q->channels;
        wide_row(b, r, dgamma, dgamma + b->elements);
    }
}
WIDE(wide)

/* The chunks together for blocks of `each` channels of `inner` elements. */
struct gather {
    const struct back *b;
    int64_t channels, each, inner;
};

WIDE_INLINE void gather_body(void *arg, int64_t from, int64_t to)
{
    const struct gather *q = arg;
    const struct back *b = q->b;
    for (int64_t c0 = from * q->each; c0 < q->channels && c0 < to * q->each; c0 += q->each) {
        const int64_t c1 = c0 + q->each < q->channels ? c0 + q->each : q->channels, n = (c1 - c0) * q->inner;
        for (int which = 0; which < (b->dbeta ? 2 : 1); which++) {
            double sum[COLS] = {0};
            const float *part = b->part + which * b->elements + c0 * q->inner;
            float *out = which ? b->dbeta : b->dgamma;
            for (int64_t k = 0; k < b->chunks; k++, part += 2 * b->elements)
                for (int64_t i = 0; i < n; i++)
                    sum[i] += part[i];
            for (int64_t c = c0; c < c1; c++) {
                double all = 0;
                for (int64_t i = 0; i < q->inner; i++)
                    all += sum[(c - c0) * q->inner + i];
                out[c] = (float)all;
            }
        }
    }
}
WIDE(gather)

/* Floats of scratch memory: gamma of elements, then the sums of chunks. */
static void plan_back(struct back *b)
{
    const struct op_norm *q = &b->q;
    const bool is_wide = q->inner >= NARROW;
    b->chunks = is_wide ? q->n : (q->n + CHUNK - 1) / CHUNK;
    b->elements = q->groups * (is_wide ? q->channels : op_norm_row(q));
}

static size_t back_scratch(const struct op_norm *q, bool gamma)
{
    struct back b = {.q = *q};
    plan_back(&b);
    return gamma ? (size_t)((spreads(q) ? b.elements : 0) + b.chunks * 2 * b.elements) * sizeof(float) : 0;
}

static hone_status backward(const struct bk_io *io, struct back *b)
{
    const bool is_wide = b->q.inner >= NARROW;
    plan_back(b);
    b->dy = io->in[NORM_DY];
    b->x = io->in[NORM_X];
    b->dx = io->out[0];
    b->dgamma = io->out[1];
    b->part = io->scratch;
    if (b->gamma && spreads(&b->q)) {
        b->gamma = spread(&b->q, b->gamma, io->scratch);
        b->part += b->elements;
    }
    const int64_t rows = b->q.n * b->q.groups, work = rows * op_norm_row(&b->q);
    cpu_split(io, is_wide ? rows : b->q.groups * b->chunks, work, is_wide ? wide_wide() : narrow_wide(), b);
    if (b->gamma) {
        const int64_t inner = is_wide ? 1 : b->q.inner;
        struct gather g = {b, b->q.groups * b->q.channels, inner > 0 ? COLS / inner : 1, inner};
        cpu_split(io, (g.channels + g.each - 1) / g.each, b->chunks * 2 * b->elements, gather_wide(), &g);
    }
    return HONE_OK;
}

/* --- the kernels --- */

static struct op_norm group_norm_dims(const struct op_call *c)
{
    return op_norm_groups(&c->in[0].shape, c->attr.i[NORM_GROUPS]);
}

static size_t group_norm_scratch(const struct op_call *c, int threads)
{
    const struct op_norm q = group_norm_dims(c);
    (void)threads;
    return spreads(&q) ? (size_t)(2 * q.groups * op_norm_row(&q)) * sizeof(float) : 0;
}

static hone_status group_norm_run(const struct bk_io *io, hone_err *err)
{
    const struct op_norm q = group_norm_dims(io->call);
    (void)err;
    return forward(io, &q, io->in[1], io->in[2], io->out[1], io->out[2]);
}

static hone_status layer_norm_run(const struct bk_io *io, hone_err *err)
{
    const struct op_norm q = op_norm_last(&io->call->in[0].shape, true);
    const int n = io->call->n_in;
    (void)err;
    return forward(io, &q, n > 1 ? io->in[1] : NULL, n > 2 ? io->in[2] : NULL, io->out[1], io->out[2]);
}

static hone_status rms_norm_run(const struct bk_io *io, hone_err *err)
{
    const struct op_norm q = op_norm_last(&io->call->in[0].shape, false);
    (void)err;
    return forward(io, &q, io->call->n_in > 1 ? io->in[1] : NULL, NULL, NULL, io->out[1]);
}

static struct op_norm group_norm_grad_dims(const struct op_call *c)
{
    return op_norm_groups(&c->in[NORM_X].shape, c->in[GROUP_MEAN].shape.dim[1]);
}

static size_t group_norm_grad_scratch(const struct op_call *c, int threads)
{
    const struct op_norm q = group_norm_grad_dims(c);
    (void)threads;
    return back_scratch(&q, true);
}

static hone_status group_norm_grad_run(const struct bk_io *io, hone_err *err)
{
    (void)err;
    return backward(io, &(struct back){.q = group_norm_grad_dims(io->call),
                                       .gamma = io->in[GROUP_GAMMA],
                                       .mean = io->in[GROUP_MEAN],
                                       .rstd = io->in[GROUP_RSTD],
                                       .dbeta = io->out[2]});
}

static size_t layer_norm_grad_scratch(const struct op_call *c, int threads)
{
    const struct op_norm q = op_norm_last(&c->in[NORM_X].shape, true);
    (void)threads;
    return back_scratch(&q, c->n_in > LAYER_GAMMA);
}

static hone_status layer_norm_grad_run(const struct bk_io *io, hone_err *err)
{
    (void)err;
    return backward(io, &(struct back){.q = op_norm_last(&io->call->in[NORM_X].shape, true),
                                       .gamma = io->call->n_in > LAYER_GAMMA ? io->in[LAYER_GAMMA] : NULL,
                                       .mean = io->in[LAYER_MEAN],
                                       .rstd = io->in[LAYER_RSTD],
                                       .dbeta = io->out[2]});
}

static size_t rms_norm_grad_scratch(const struct op_call *c, int threads)
{
    const struct op_norm q = op_norm_last(&c->in[NORM_X].shape, false);
    (void)threads;
    return back_scratch(&q, c->n_in > RMS_GAMMA);
}

static hone_status rms_norm_grad_run(const struct bk_io *io, hone_err *err)
{
    (void)err;
    return backward(io, &(struct back){.q = op_norm_last(&io->call->in[NORM_X].shape, false),
                                       .gamma = io->call->n_in > RMS_GAMMA ? io->in[RMS_GAMMA] : NULL,
                                       .rstd = io->in[RMS_RSTD]});
}

/* A row is read whole before it is written, and written element by element. */
#define NORM(name, ...)                                                                                                \
    const struct bk_kernel cpu_##name = {.op = #name, .inplace = {1}, .run = name##_run, __VA_ARGS__};
#define NORM_GRAD(name)                                                                                                \
    const struct bk_kernel cpu_##name = {.op = #name, .scratch = name##_scratch, .inplace = {3}, .run = name##_run};
NORM(group_norm, .scratch = group_norm_scratch)
NORM(layer_norm, .scratch = NULL)
NORM(rms_norm, .scratch = NULL)
NORM_GRAD(group_norm_grad)
NORM_GRAD(layer_norm_grad)
NORM_GRAD(rms_norm_grad)
