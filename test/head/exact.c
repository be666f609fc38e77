#include "head/exact.h"

#include <math.h>
#include <string.h>

void exact_line(const struct exact *e, double alpha, double sigma, double *slope, double *offset)
{
    /* E[x0 | x] = mean + k (x - alpha mean) */
    double d2 = e->spread * e->spread, k = alpha * d2 / (alpha * alpha * d2 + sigma * sigma);
    double a = k, b = e->mean * (1 - k * alpha);
    hone_param_row r = {0};
    hone_param_at(e->param, alpha, sigma, &r, NULL);
    *slope = r.q_0 * a + r.q_e * (1 - alpha * a) / sigma;
    *offset = r.q_0 * b - r.q_e * alpha * b / sigma;
}

double exact_least(const struct exact *e, double alpha, double sigma)
{
    double d2 = e->spread * e->spread, s2 = sigma * sigma;
    return d2 * s2 / (alpha * alpha * d2 + s2);
}

/* The value of f at the timestep, as a column that broadcasts with x. */
static hone_t at(const struct exact *e, hone_t t, double (*f)(const struct exact *e, double alpha, double sigma))
{
    float v[HONE_SCHED_MAX_STEPS];
    hone_shape s = hone_type_of(t).shape, column = HONE_SHAPE(s.rank ? s.dim[0] : 1, 1, 1);
    for (int i = 0; i < e->s->steps; i++)
        v[i] = (float)f(e, sqrt(e->s->alpha_bar[i]), sqrt(1 - e->s->alpha_bar[i]));
    hone_t table = hone_const(t.g, HONE_F32, HONE_SHAPE(e->s->steps), v);
    return hone_reshape(hone_gather(table, hone_cast(t, HONE_I32)), column);
}

/* E[x0 | x] = pull x + tanh(sharp x) lift, for x about the mean; out = q_0 x0 + q_e (x - alpha x0) / sigma */
static double variance(const struct exact *e, double alpha, double sigma)
{
    return alpha * alpha * e->spread * e->spread + sigma * sigma;
}

static double pull(const struct exact *e, double alpha, double sigma)
{
    return alpha * e->spread * e->spread / variance(e, alpha, sigma);
}

static double lift(const struct exact *e, double alpha, double sigma)
{
    return e->mode * (1 - alpha * pull(e, alpha, sigma));
}

static double sharp(const struct exact *e, double alpha, double sigma)
{
    return alpha * e->mode / variance(e, alpha, sigma);
}

static double shift(const struct exact *e, double alpha, double sigma)
{
    (void)sigma;
    return -alpha * e->mean;
}

static double from_x0(const struct exact *e, double alpha, double sigma)
{
    hone_param_row r = {0};
    hone_param_at(e->param, alpha, sigma, &r, NULL);
    return r.q_0 - r.q_e * alpha / sigma;
}

static double from_x(const struct exact *e, double alpha, double sigma)
{
    hone_param_row r = {0};
    hone_param_at(e->param, alpha, sigma, &r, NULL);
    return r.q_e / sigma;
}

static hone_t diffusion(void *user, hone_t x, hone_t t, hone_t cond)
{
    const struct exact *e = user;
    (void)cond;
    hone_t y = hone_add(x, at(e, t, shift));
    hone_t x0 =
        hone_add(hone_mul(y, at(e, t, pull)), hone_mul(hone_tanh(hone_mul(y, at(e, t, sharp))), at(e, t, lift)));
    x0 = hone_affine(x0, 1, e->mean);
    return hone_add(hone_mul(x0, at(e, t, from_x0)), hone_mul(x, at(e, t, from_x)));
}

/* alpha = 1 - t, sigma = t; velocity = (x - x0) / t */
static hone_t flow(void *user, hone_t x, hone_t t, hone_t cond)
{
    const struct exact *e = user;
    (void)cond;
    hone_shape s = hone_type_of(t).shape;
    const double d2 = e->spread * e->spread;
    t = hone_reshape(hone_affine(t, 1 / HONE_FLOW_TIME, 0), HONE_SHAPE(s.rank ? s.dim[0] : 1, 1, 1));
    hone_t a = hone_affine(t, -1, 1), var = hone_add(hone_affine(hone_square(a), d2, 0), hone_square(t));
    hone_t y = hone_sub(x, hone_affine(a, e->mean, 0)), p = hone_div(hone_affine(a, d2, 0), var);
    hone_t side = hone_tanh(hone_mul(y, hone_div(hone_affine(a, e->mode, 0), var)));
    hone_t x0 = hone_add(hone_mul(y, p), hone_mul(side, hone_affine(hone_mul(a, p), -e->mode, e->mode)));
    x0 = hone_affine(x0, 1, e->mean);
    return strcmp(e->param, "x0") ? hone_div(hone_sub(x, x0), t) : x0;
}

hone_denoiser exact_denoiser(struct exact *e)
{
    return (hone_denoiser){e->s ? diffusion : flow, e};
}

hone_program *exact_run(struct kit *k, hone_graph *g, const void *const *in, uint64_t run)
{
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    hone_graph_destroy(g);
    if (kit_run(k, p, in, NULL, run))
        return p;
    hone_program_destroy(p);
    return NULL;
}

const float *exact_out(const hone_program *p, const char *name)
{
    return p ? hone_result(p, hone_program_output(p, name)) : NULL;
}
