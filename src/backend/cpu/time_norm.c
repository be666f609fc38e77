/* time_norm and its gradient. x [T, B, C] is T rows of B C columns, and a group of a sample is `wide` columns side by
 * side, so samples need no loop of their own: a chunk of them is a strip of columns.
 *
 * Rows lie B C floats apart, at times a power of two, where a cache holds few of them. So a strip is read once, into a
 * block of memory that stays in the first-level cache: [vectors of columns][T][16]. Statistics take two passes over the
 * block, the mean first; it is kept as a rounded part and a rest, so that values far from zero lose nothing.
 *
 * Chunks depend on the shape alone. dgamma and dbeta are sums of each chunk, and the chunks in order: the same bits for
 * any number of threads. A chunk is read whole before it is written, so a result may take the place of an operand.
 *
 * The code is compiled for AVX-512, AVX2 and plainly, and the widest that the machine has is taken. */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/vec16.h"
#include "backend/cpu/wide.h"
#include "op/time_norm.h"

enum {
    CHUNK = 4096, /* elements, about: two blocks of them fit the first-level cache */
    MANY = 32,    /* samples of a chunk, at most */
    TILE = 4,
    RUN = 32,
    FORWARD_COLUMNS = 6,
    BACKWARD_COLUMNS = 10
};

struct shape {
    int64_t t, b, c, groups, wide, act;
    int64_t samples, chunks; /* samples of a chunk */
    int64_t lanes;           /* columns of a chunk in whole vectors, and one more: see spread() */
};

static struct shape shape_of(const struct op_call *c, int x)
{
    const int64_t *d = c->in[x].shape.dim;
    struct shape s = {.t = d[0], .b = d[1], .c = d[2], .groups = c->attr.i[TN_GROUPS], .act = c->attr.i[TN_ACT]};
    const int64_t sample = s.t * s.c;
    s.wide = s.c / s.groups;
    s.samples = sample > CHUNK ? 1 : CHUNK / (sample > 0 ? sample : 1);
    s.samples = s.samples < MANY ? s.samples : MANY;
    s.chunks = (s.b + s.samples - 1) / s.samples;
    s.lanes = (s.samples * s.c + VEC_LANES - 1) / VEC_LANES * VEC_LANES + VEC_LANES;
    return s;
}

static int64_t elements(const struct shape *s)
{
    return s->t * s->b * s->c;
}

/* Parts of the work, one a thread; what is small is one, as cpu_split has it. */
static int64_t parts_of(const struct shape *s, int threads)
{
    return elements(s) < CPU_GRAIN ? 1 : threads < s->chunks ? threads : s->chunks;
}

/* Floats of scratch memory of a part. */
static int64_t part_floats(const struct shape *s, int blocks, int columns)
{
    return s->lanes * (blocks * s->t + columns);
}

struct work {
    const struct bk_io *io;
    struct shape s;
    int64_t parts;
    float *sums; /* of a gradient: [chunks][2][C], of d xhat and of d */
    float *part; /* scratch memory of the first part */
};

/* --- groups of columns --- */

/* x for the columns of a group, and some behind them: groups are written in order. */
VEC_INLINE void spread(float *p, int64_t wide, float x)
{
    for (int64_t i = 0; i < wide; i += VEC_LANES)
        *(mem_vec *)(p + i) = vec_all(x);
}

/* The sum of the columns of a group. */
VEC_INLINE double fold(const float *p, int64_t wide)
{
    double rest[4] = {0};
    int64_t i = 0;
    if (wide >= VEC_LANES) {
        vec sum = {0};
        for (; i + VEC_LANES <= wide; i += VEC_LANES)
            sum += vec_load(p + i);
        float lane[VEC_LANES];
        memcpy(lane, &sum, sizeof lane);
        for (int half = VEC_LANES / 2; half; half /= 2)
            for (int j = 0; j < half; j++)
                lane[j] += lane[j + half];
        rest[0] = lane[0];
    }
    for (; i + 4 <= wide; i += 4)
        for (int j = 0; j < 4; j++)
            rest[j] += p[i + j];
    for (; i < wide; i++)
        rest[0] += p[i];
    return (rest[0] + rest[2]) + (rest[1] + rest[3]);
}

VEC_INLINE vec activate(int64_t act, vec x)
{
    switch (act) {
    case CB_MISH:
        return vec_mish(x);
    case CB_SILU:
        return vec_silu(x);
    case CB_GELU_TANH:
        return vec_gelu_tanh(x);
    case CB_RELU:
        return vec_relu(x);
    default:
        return x;
    }
}

VEC_INLINE vec slope(int64_t act, vec x)
{
    switch (act) {
    case CB_MISH:
        return vec_mish_slope(x);
    case CB_SILU:
        return vec_silu_slope(x);
    case CB_GELU_TANH:
        return vec_gelu_tanh_slope(x);
    case CB_RELU:
        return vec_relu_slope(x);
    default:
        return vec_all(1.0f);
    }
}

/* gamma or beta, once a sample of a chunk. */
VEC_INLINE void repeat(float *to, const float *channels, const struct shape *s)
{
    for (int64_t i = 0; i < s->samples && s->c; i++)
        memcpy(to + i * s->c, channels, (size_t)s->c * sizeof *to);
}

/* --- forward --- */

/* Of one part; columns are [lanes] each. */
struct forward {
    const struct work *w;
    float *block, *gamma, *beta, *centre, *rest, *rstd, *sum;
    int64_t first, n; /* the strip */
};

/* x less the first elements of the groups, summed over time, of `width` vectors of columns. */
VEC_INLINE void read_tile(const struct forward *f, int64_t o, const int width)
{
    const struct shape *s = &f->w->s;
    const float *x = (const float *)f->w->io->in[TN_X] + f->first + o;
    float *block = f->block + o * s->t;
    vec centre[TILE], total[TILE] = {0};
    for (int j = 0; j < width; j++)
        centre[j] = vec_load(f->centre + o + j * VEC_LANES);
    for (int64_t from = 0; from < s->t; from += RUN) {
        const int64_t to = from + RUN < s->t ? from + RUN : s->t;
        vec sum[TILE] = {0};
        for (int64_t t = from; t < to; t++)
            for (int j = 0; j < width; j++) {
                const float *p = x + t * s->b * s->c + j * VEC_LANES;
                const vec v = width > 1 ? vec_load(p) : vec_load_part(p, f->n - o);
                *(mem_vec *)(block + (j * s->t + t) * VEC_LANES) = v;
                sum[j] += v - centre[j];
            }
        for (int j = 0; j < width; j++)
            total[j] += sum[j];
    }
    for (int j = 0; j < width; j++)
        *(mem_vec *)(f->sum + o + j * VEC_LANES) = total[j];
}

/* What is left of x when the mean is taken off stays in the block. */
VEC_INLINE void take_mean(const struct forward *f, float *out)
{
    const struct shape *s = &f->w->s;
    const float *x = (const float *)f->w->io->in[TN_X] + f->first;
    const double n = (double)(s->wide * s->t);
    for (int64_t g = 0; g < f->n; g += s->wide) {
        const double mean = x[g] + fold(f->sum + g, s->wide) / n;
        *out = (float)mean;
        spread(f->centre + g, s->wide, *out);
        spread(f->rest + g, s->wide, (float)(mean - *out++));
    }
    for (int64_t o = 0; o < f->n; o += VEC_LANES) {
        const vec centre = vec_load(f->centre + o), rest = vec_load(f->rest + o);
        vec sum = {0};
        for (int64_t t = 0; t < s->t; t++) {
            mem_vec *v = (mem_vec *)(f->block + o * s->t + t * VEC_LANES);
            const vec d = (*v - centre) - rest;
            *v = d;
            sum += d * d;
        }
        *(mem_vec *)(f->sum + o) = sum;
    }
}

VEC_INLINE void write_tile(const struct forward *f, int64_t o, const int width, const int64_t act)
{
    const struct shape *s = &f->w->s;
    float *y = (float *)f->w->io->out[0] + f->first + o;
    const float *block = f->block + o * s->t;
    vec factor[TILE], beta[TILE];
    for (int j = 0; j < width; j++) {
        const int64_t at = o + j * VEC_LANES;
        factor[j] = vec_load(f->gamma + at) * vec_load(f->rstd + at);
        beta[j] = vec_load(f->beta + at);
    }
    for (int64_t t = 0; t < s->t; t++)
        for (int j = 0; j < width; j++) {
            float *p = y + t * s->b * s->c + j * VEC_LANES;
            const vec d = vec_load(block + (j * s->t + t) * VEC_LANES);
            vec_store_part(p, activate(act, d * factor[j] + beta[j]), width > 1 ? VEC_LANES : f->n - o);
        }
}

VEC_INLINE void write_strip(const struct forward *f, const int64_t act)
{
    int64_t o = 0;
    for (; o + TILE * VEC_LANES <= f->n; o += TILE * VEC_LANES)
        write_tile(f, o, TILE, act);
    for (; o < f->n; o += VEC_LANES)
        write_tile(f, o, 1, act);
}

VEC_INLINE void forward_chunk(struct forward *f, int64_t chunk)
{
    const struct shape *s = &f->w->s;
    const struct bk_io *io = f->w->io;
    const int64_t from = chunk * s->samples, count = from + s->samples < s->b ? s->samples : s->b - from;
    const double n = (double)(s->wide * s->t), eps = io->call->attr.f[NORM_EPS];
    float *rstd = (float *)io->out[2] + from * s->groups;
    const float *x = (const float *)io->in[TN_X] + from * s->c;
    f->first = from * s->c;
    f->n = count * s->c;
    for (int64_t g = 0; g < f->n; g += s->wide)
        spread(f->centre + g, s->wide, x[g]);
    int64_t o = 0;
    for (; o + TILE * VEC_LANES <= f->n; o += TILE * VEC_LANES)
        read_tile(f, o, TILE);
    for (; o < f->n; o += VEC_LANES)
        read_tile(f, o, 1);
    take_mean(f, (float *)io->out[1] + from * s->groups);
    for (int64_t g = 0; g < f->n; g += s->wide) {
        *rstd = (float)(1 / sqrt(fold(f->sum + g, s->wide) / n + eps));
        spread(f->rstd + g, s->wide, *rstd++);
    }
    if (s->act == CB_MISH)
        write_strip(f, CB_MISH);
    else
        write_strip(f, s->act);
}

VEC_INLINE void forward_part(const struct work *w, int64_t part)
{
    const struct shape *s = &w->s;
    float *scratch = w->part + part * part_floats(s, 1, FORWARD_COLUMNS), *column = scratch + s->t * s->lanes;
    const int64_t lanes = s->lanes;
    struct forward f = {.w = w,
                        .block = scratch,
                        .gamma = column,
                        .beta = column + lanes,
                        .centre = column + 2 * lanes,
                        .rest = column + 3 * lanes,
                        .rstd = column + 4 * lanes,
                        .sum = column + 5 * lanes};
    memset(column, 0, (size_t)(FORWARD_COLUMNS * lanes) * sizeof *column); /* lanes that are no column count too */
    repeat(f.gamma, w->io->in[TN_GAMMA], s);
    repeat(f.beta, w->io->in[TN_BETA], s);
    for (int64_t k = s->chunks * part / w->parts; k < s->chunks * (part + 1) / w->parts; k++)
        forward_chunk(&f, k);
}

WIDE_INLINE void forward_body(void *work, int64_t from, int64_t to)
{
    for (int64_t part = from; part < to; part++)
        forward_part(work, part);
}
WIDE(forward)

static size_t time_norm_scratch(const struct op_call *c, int threads)
{
    const struct shape s = shape_of(c, TN_X);
    return (size_t)(parts_of(&s, threads) * part_floats(&s, 1, FORWARD_COLUMNS)) * sizeof(float);
}

static hone_status time_norm_run(const struct bk_io *io, hone_err *err)
{
    struct work w = {.io = io, .s = shape_of(io->call, TN_X), .part = io->scratch};
    const float rstd = (float)(1 / sqrt(io->call->attr.f[NORM_EPS]));
    (void)err;
    w.parts = parts_of(&w.s, io->threads);
    for (int64_t i = 0; !elements(&w.s) && i < w.s.b * w.s.groups; i++) { /* of nothing */
        ((float *)io->out[1])[i] = 0;
        ((float *)io->out[2])[i] = rstd;
    }
    if (elements(&w.s))
        cpu_split(io, w.parts, elements(&w.s), forward_wide(), &w);
    return HONE_OK;
}

const struct bk_kernel cpu_time_norm = {
    .op = "time_norm", .scratch = time_norm_scratch, .inplace = {1 << TN_X}, .run = time_norm_run};

/* --- gradient --- */

/* Of one part; columns are [lanes] each. */
struct backward {
    const struct work *w;
    float *d, *xm; /* blocks: slopes at the norm's result, and x - mean */
    float *gamma, *beta, *centre, *rstd;
    float *sum, *along;    /* over time: of d gamma and of d gamma (x - mean) */
    float *dgamma, *dbeta; /* over time: of d xhat and of d */
    float *level, *bend;   /* see write_slopes */
    int64_t first, n;      /* the strip */
};

VEC_INLINE void read_slopes(const struct backward *q, const int64_t act)
{
    const struct shape *s = &q->w->s;
    const float *x = (const float *)q->w->io->in[TNG_X] + q->first,
                *dy = (const float *)q->w->io->in[TNG_DY] + q->first;
    for (int64_t o = 0; o < q->n; o += VEC_LANES) {
        const vec centre = vec_load(q->centre + o), gamma = vec_load(q->gamma + o), rstd = vec_load(q->rstd + o);
        const vec factor = gamma * rstd, beta = vec_load(q->beta + o);
        vec sum = {0}, along = {0};
        for (int64_t t = 0; t < s->t; t++) {
            const int64_t at = t * s->b * s->c + o, to = o * s->t + t * VEC_LANES;
            const vec xm = vec_load_part(x + at, q->n - o) - centre;
            const vec d = vec_load_part(dy + at, q->n - o) * slope(act, xm * factor + beta);
            sum += d;
            along += d * xm;
            *(mem_vec *)(q->d + to) = d;
            *(mem_vec *)(q->xm + to) = xm;
        }
        *(mem_vec *)(q->dbeta + o) = sum;
        *(mem_vec *)(q->dgamma + o) = along * rstd;
        *(mem_vec *)(q->sum + o) = sum * gamma;
        *(mem_vec *)(q->along + o) = along * gamma;
    }
}

/* dx = rstd (g - mean(g)) - (x - m) rstd^3 mean(g (x - m)), g = d gamma */
VEC_INLINE void write_slopes(const struct backward *q, const float *rstd)
{
    const struct shape *s = &q->w->s;
    const double n = (double)(s->wide * s->t);
    float *dx = (float *)q->w->io->out[0] + q->first;
    for (int64_t g = 0; g < q->n; g += s->wide) {
        const double r = *rstd++, sum = fold(q->sum + g, s->wide), along = fold(q->along + g, s->wide);
        spread(q->level + g, s->wide, (float)(r * sum / n));
        spread(q->bend + g, s->wide, (float)(r * r * r * along / n));
    }
    for (int64_t o = 0; o < q->n; o += VEC_LANES) {
        const vec factor = vec_load(q->gamma + o) * vec_load(q->rstd + o);
        const vec level = vec_load(q->level + o), bend = vec_load(q->bend + o);
        for (int64_t t = 0; t < s->t; t++) {
            const int64_t from = o * s->t + t * VEC_LANES;
            const vec v = vec_load(q->d + from) * factor - level - vec_load(q->xm + from) * bend;
            vec_store_part(dx + t * s->b * s->c + o, v, q->n - o);
        }
    }
}

VEC_INLINE void backward_chunk(struct backward *q, int64_t chunk)
{
    const struct shape *s = &q->w->s;
    const struct bk_io *io = q->w->io;
    const int64_t from = chunk * s->samples, count = from + s->samples < s->b ? s->samples : s->b - from;
    const float *mean = (const float *)io->in[TNG_MEAN] + from * s->groups;
    const float *rstd = (const float *)io->in[TNG_RSTD] + from * s->groups;
    float *dgamma = q->w->sums + chunk * 2 * s->c, *dbeta = dgamma + s->c;
    q->first = from * s->c;
    q->n = count * s->c;
    for (int64_t g = 0, i = 0; g < q->n; g += s->wide, i++) {
        spread(q->centre + g, s->wide, mean[i]);
        spread(q->rstd + g, s->wide, rstd[i]);
    }
    if (s->act == CB_MISH)
        read_slopes(q, CB_MISH);
    else
        read_slopes(q, s->act);
    for (int64_t c = 0; c < s->c; c++)
        dgamma[c] = dbeta[c] = 0;
    for (int64_t i = 0; i < count; i++) {
        CPU_SIMD
        for (int64_t c = 0; c < s->c; c++) {
            dgamma[c] += q->dgamma[i * s->c + c];
            dbeta[c] += q->dbeta[i * s->c + c];
        }
    }
    write_slopes(q, rstd);
}

VEC_INLINE void backward_part(const struct work *w, int64_t part)
{
    const struct shape *s = &w->s;
    const int64_t lanes = s->lanes;
    float *scratch = w->part + part * part_floats(s, 2, BACKWARD_COLUMNS), *column = scratch + 2 * s->t * lanes;
    struct backward q = {.w = w,
                         .d = scratch,
                         .xm = scratch + s->t * lanes,
                         .gamma = column,
                         .beta = column + lanes,
                         .centre = column + 2 * lanes,
                         .rstd = column + 3 * lanes,
                         .sum = column + 4 * lanes,
                         .along = column + 5 * lanes,
                         .dgamma = column + 6 * lanes,
                         .dbeta = column + 7 * lanes,
                         .level = column + 8 * lanes,
                         .bend = column + 9 * lanes};
    memset(column, 0, (size_t)(BACKWARD_COLUMNS * lanes) * sizeof *column); /* lanes that are no column count too */
    repeat(q.gamma, w->io->in[TNG_GAMMA], s);
    repeat(q.beta, w->io->in[TNG_BETA], s);
    for (int64_t k = s->chunks * part / w->parts; k < s->chunks * (part + 1) / w->parts; k++)
        backward_chunk(&q, k);
}

WIDE_INLINE void backward_body(void *work, int64_t from, int64_t to)
{
    for (int64_t part = from; part < to; part++)
        backward_part(work, part);
}
WIDE(backward)

/* The chunks together, [2][C]; dgamma before dbeta. */
WIDE_INLINE void gather_body(void *work, int64_t from, int64_t to)
{
    const struct work *w = work;
    const int64_t c = w->s.c;
    for (int64_t o = from; o < to; o += VEC_LANES) {
        double sum[VEC_LANES] = {0};
        const int64_t n = to - o < VEC_LANES ? to - o : VEC_LANES;
        const float *part = w->sums + o;
        for (int64_t k = 0; k < w->s.chunks; k++, part += 2 * c)
            for (int64_t i = 0; i < n; i++)
                sum[i] += part[i];
        for (int64_t i = 0; i < n; i++)
            ((float *)w->io->out[o + i < c ? 1 : 2])[(o + i) % c] = (float)sum[i];
    }
}
WIDE(gather)

static size_t time_norm_grad_scratch(const struct op_call *c, int threads)
{
    const struct shape s = shape_of(c, TNG_X);
    return (size_t)(s.chunks * 2 * s.c + parts_of(&s, threads) * part_floats(&s, 2, BACKWARD_COLUMNS)) * sizeof(float);
}

static hone_status time_norm_grad_run(const struct bk_io *io, hone_err *err)
{
    struct work w = {.io = io, .s = shape_of(io->call, TNG_X)};
    (void)err;
    w.parts = parts_of(&w.s, io->threads);
    w.part = io->scratch;
    w.sums = w.part + w.parts * part_floats(&w.s, 2, BACKWARD_COLUMNS);
    if (elements(&w.s)) {
        cpu_split(io, w.parts, elements(&w.s), backward_wide(), &w);
        gather_wide()(&w, 0, 2 * w.s.c);
    } else {
        memset(io->out[1], 0, (size_t)w.s.c * sizeof(float));
        memset(io->out[2], 0, (size_t)w.s.c * sizeof(float));
    }
    return HONE_OK;
}

const struct bk_kernel cpu_time_norm_grad = {.op = "time_norm_grad",
                                             .scratch = time_norm_grad_scratch,
                                             .inplace = {1 << TNG_DY | 1 << TNG_X},
                                             .run = time_norm_grad_run};
