/* One pass over the slabs of an optimiser. Bound by memory: each element is read once and written once. */
#include <math.h>
#include <string.h>

#include "backend/cpu/wide.h"
#include "op/adamw_average.h"

static float one_of(const struct bk_io *io, int operand, float otherwise)
{
    return operand < io->call->n_in ? *(const float *)io->in[operand] : otherwise;
}

/* The numbers of one step: what is the same for all elements. Both moments move by their difference, and the decay is
 * subtracted: beta and 1 - lr weight_decay lie so near to 1 that f32 would not hold them. */
struct step {
    float scale, decay, add1, add2, root, rate, eps;
};

/* shift: of the operands behind the slabs, against adamw's. */
static hone_status plan_step(const struct bk_io *io, int shift, struct step *s, hone_err *err)
{
    const double *f = io->call->attr.f, lr = (double)one_of(io, ADAMW_LR + shift, 0);
    const double t = (double)one_of(io, ADAMW_STEP + shift, 0);
    if (!(t > 0))
        return err_set(err, HONE_E_ARG, io->layer, "%s: steps count from 1; got %g", io->call->def->name, t);
    s->scale = one_of(io, ADAMW_SCALE + shift, 1);
    s->decay = (float)(lr * f[ADAMW_DECAY]);
    s->add1 = (float)(1 - f[ADAMW_BETA1]);
    s->add2 = (float)(1 - f[ADAMW_BETA2]);
    s->root = (float)(1 / sqrt(1 - pow(f[ADAMW_BETA2], t)));
    s->rate = (float)(lr / (1 - pow(f[ADAMW_BETA1], t)));
    s->eps = (float)f[ADAMW_EPS];
    return HONE_OK;
}

/* Operands and results of one step. */
struct slabs {
    struct step s;
    float by; /* the share of the new parameters in the average */
    const float *p, *g, *m, *v, *average;
    float *p1, *m1, *v1, *average1, *g1;
};

/* n elements from `at`; the average is a constant where this is inlined. */
WIDE_INLINE void step_block(const struct slabs *k, int64_t at, int64_t n, bool average)
{
    const struct step s = k->s;
    const float by = k->by, *p0 = k->p + at, *g0 = k->g + at, *m0 = k->m + at, *v0 = k->v + at;
    const float *a0 = average ? k->average + at : NULL;
    float *p1 = k->p1 + at, *m1 = k->m1 + at, *v1 = k->v1 + at;
    float *a1 = average ? k->average1 + at : NULL, *g1 = average ? k->g1 + at : NULL;
    CPU_SIMD
    for (int64_t i = 0; i < n; i++) {
        const float p = p0[i], g = g0[i] * s.scale;
        const float m = m0[i] + s.add1 * (g - m0[i]), v = v0[i] + s.add2 * (g * g - v0[i]);
        const float q = p - (s.decay * p + s.rate * (m / (sqrtf(v) * s.root + s.eps)));
        p1[i] = q;
        m1[i] = m;
        v1[i] = v;
        if (average) {
            a1[i] = a0[i] + by * (q - a0[i]);
            g1[i] = 0;
        }
    }
}

/* Each element is computed alone, so bits do not depend on where ranges begin. */
WIDE_INLINE void step_range(const struct slabs *k, int64_t from, int64_t to, bool average)
{
    int64_t at = from;
    for (; at + WIDE_BLOCK <= to; at += WIDE_BLOCK) {
        wide_ask(k->p + at);
        wide_ask(k->g + at);
        wide_ask(k->m + at);
        wide_ask(k->v + at);
        if (average)
            wide_ask(k->average + at);
        step_block(k, at, WIDE_BLOCK, average);
    }
    step_block(k, at, to - at, average);
}

WIDE_INLINE void adamw_body(void *arg, int64_t from, int64_t to)
{
    step_range(arg, from, to, false);
}

WIDE_INLINE void adamw_average_body(void *arg, int64_t from, int64_t to)
{
    step_range(arg, from, to, true);
}

WIDE(adamw)
WIDE(adamw_average)

static void keep(float *to, const float *from, int64_t n)
{
    if (to != from && n)
        memcpy(to, from, (size_t)n * sizeof *to);
}

static hone_status adamw_run(const struct bk_io *io, hone_err *err)
{
    const int64_t n = op_numel(&io->call->in[ADAMW_P]);
    struct slabs k = {.p = io->in[ADAMW_P], .g = io->in[ADAMW_G], .m = io->in[ADAMW_M], .v = io->in[ADAMW_V]};
    k.p1 = io->out[0], k.m1 = io->out[1], k.v1 = io->out[2];
    if (one_of(io, ADAMW_SKIP, 0) != 0) {
        keep(k.p1, k.p, n);
        keep(k.m1, k.m, n);
        keep(k.v1, k.v, n);
        return HONE_OK;
    }
    if (plan_step(io, 0, &k.s, err) != HONE_OK)
        return err->code;
    cpu_split(io, n, n, adamw_wide(), &k);
    return HONE_OK;
}

static hone_status adamw_average_run(const struct bk_io *io, hone_err *err)
{
    const int64_t n = op_numel(&io->call->in[ADAMW_P]);
    struct slabs k = {.p = io->in[ADAMW_P], .g = io->in[ADAMW_G], .m = io->in[ADAMW_M], .v = io->in[ADAMW_V]};
    k.average = io->in[ADAMW_AVERAGE];
    k.by = (float)(1 - (double)one_of(io, ADAMW_AVERAGE_DECAY, 0));
    k.p1 = io->out[0], k.m1 = io->out[1], k.v1 = io->out[2], k.average1 = io->out[3], k.g1 = io->out[4];
    if (one_of(io, ADAMW_SKIP + ADAMW_AVERAGE_SHIFT, 0) != 0) {
        keep(k.p1, k.p, n);
        keep(k.m1, k.m, n);
        keep(k.v1, k.v, n);
        keep(k.average1, k.average, n);
        if (n)
            memset(k.g1, 0, (size_t)n * sizeof *k.g1);
        return HONE_OK;
    }
    if (plan_step(io, ADAMW_AVERAGE_SHIFT, &k.s, err) != HONE_OK)
        return err->code;
    cpu_split(io, n, n, adamw_average_wide(), &k);
    return HONE_OK;
}

struct average {
    const float *a, *p;
    float *y, by;
};

WIDE_INLINE void average_body(void *arg, int64_t from, int64_t to)
{
    const struct average k = *(const struct average *)arg;
    CPU_SIMD
    for (int64_t i = from; i < to; i++)
        k.y[i] = k.a[i] + k.by * (k.p[i] - k.a[i]);
}

WIDE(average)

static hone_status average_run(const struct bk_io *io, hone_err *err)
{
    struct average k = {io->in[0], io->in[1], io->out[0], (float)(1 - (double)one_of(io, 2, 0))};
    const int64_t n = op_numel(&io->call->out[0]);
    (void)err;
    cpu_split(io, n, n, average_wide(), &k);
    return HONE_OK;
}

static hone_status clip_scale_run(const struct bk_io *io, hone_err *err)
{
    const double k = io->call->attr.f[0] / (sqrt((double)one_of(io, 0, 0)) + 1e-6);
    (void)err;
    *(float *)io->out[0] = k >= 1 ? 1 : (float)k; /* NaN stays NaN */
    return HONE_OK;
}

const struct bk_kernel cpu_clip_scale = {.op = "clip_scale", .inplace = {1}, .run = clip_scale_run};
const struct bk_kernel cpu_adamw = {
    .op = "adamw", .inplace = {1u << ADAMW_P, 1u << ADAMW_M, 1u << ADAMW_V}, .run = adamw_run};
const struct bk_kernel cpu_adamw_average = {
    .op = "adamw_average",
    .inplace = {1u << ADAMW_P, 1u << ADAMW_M, 1u << ADAMW_V, 1u << ADAMW_AVERAGE, 1u << ADAMW_G},
    .run = adamw_average_run};
const struct bk_kernel cpu_average = {.op = "average", .inplace = {3}, .run = average_run};
