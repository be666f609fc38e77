/* One pass over the slabs of an optimiser. Bound by memory: each element is read once and written once. */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "op/adamw.h"

enum { BLOCK = 4096 }; /* elements of a slab that one call updates */

static float one_of(const struct bk_io *io, int operand, float otherwise)
{
    return operand < io->call->n_in ? *(const float *)io->in[operand] : otherwise;
}

/* The numbers of one step: what is the same for all elements. Both moments move by their difference, and the decay is
 * subtracted: beta and 1 - lr weight_decay lie so near to 1 that f32 would not hold them. */
struct step {
    float scale, decay, add1, add2, root, rate, eps;
};

static hone_status plan_step(const struct bk_io *io, struct step *s, hone_err *err)
{
    const double *f = io->call->attr.f, lr = (double)one_of(io, ADAMW_LR, 0), t = (double)one_of(io, ADAMW_STEP, 0);
    if (!(t > 0))
        return err_set(err, HONE_E_ARG, io->layer, "adamw: steps count from 1; got %g", t);
    s->scale = one_of(io, ADAMW_SCALE, 1);
    s->decay = (float)(lr * f[ADAMW_DECAY]);
    s->add1 = (float)(1 - f[ADAMW_BETA1]);
    s->add2 = (float)(1 - f[ADAMW_BETA2]);
    s->root = (float)(1 / sqrt(1 - pow(f[ADAMW_BETA2], t)));
    s->rate = (float)(lr / (1 - pow(f[ADAMW_BETA1], t)));
    s->eps = (float)f[ADAMW_EPS];
    return HONE_OK;
}

/* Elements [at, at + n) of the slabs. */
static void step_block(const struct bk_io *io, const struct step *s, int64_t at, int64_t n)
{
    const float *p0 = (const float *)io->in[ADAMW_P] + at, *g0 = (const float *)io->in[ADAMW_G] + at;
    const float *m0 = (const float *)io->in[ADAMW_M] + at, *v0 = (const float *)io->in[ADAMW_V] + at;
    float *p1 = (float *)io->out[0] + at, *m1 = (float *)io->out[1] + at, *v1 = (float *)io->out[2] + at;
    const float scale = s->scale, decay = s->decay, add1 = s->add1, add2 = s->add2, root = s->root, rate = s->rate;
    const float eps = s->eps;
    CPU_SIMD
    for (int64_t i = 0; i < n; i++) {
        const float p = p0[i], g = g0[i] * scale;
        const float m = m0[i] + add1 * (g - m0[i]), v = v0[i] + add2 * (g * g - v0[i]);
        p1[i] = p - (decay * p + rate * (m / (sqrtf(v) * root + eps)));
        m1[i] = m;
        v1[i] = v;
    }
}

static hone_status adamw_run(const struct bk_io *io, hone_err *err)
{
    static const int of[3] = {ADAMW_P, ADAMW_M, ADAMW_V};
    const int64_t n = op_numel(&io->call->in[ADAMW_P]);
    struct step s = {0};
    if (one_of(io, ADAMW_SKIP, 0) != 0) {
        for (int k = 0; k < 3; k++)
            if (io->out[k] != io->in[of[k]] && n)
                memcpy(io->out[k], io->in[of[k]], (size_t)n * sizeof(float));
        return HONE_OK;
    }
    hone_status st = plan_step(io, &s, err);
    if (st != HONE_OK)
        return st;
    CPU_PARALLEL(io, n)
    for (int64_t at = 0; at < n; at += BLOCK)
        step_block(io, &s, at, n - at < BLOCK ? n - at : BLOCK);
    return HONE_OK;
}

static hone_status average_run(const struct bk_io *io, hone_err *err)
{
    const float *a = io->in[0], *p = io->in[1];
    const float by = (float)(1 - (double)one_of(io, 2, 0));
    float *y = io->out[0];
    const int64_t n = op_numel(&io->call->out[0]);
    (void)err;
    CPU_PARALLEL(io, n)
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + by * (p[i] - a[i]);
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
const struct bk_kernel cpu_average = {.op = "average", .inplace = {3}, .run = average_run};
