/* Parameterisations, loss weights, and the arrays of training. */
#include <math.h>
#include <string.h>

#include "base/ctx.h"
#include "base/err.h"
#include "sched/sched.h"

#define LEVEL_TOL 1e-6

/* x = α x0 + σ ε throughout; each row solves it and its own target for x0 and ε. */
static void epsilon(double a, double s, hone_param_row *r)
{
    *r = (hone_param_row){.q_0 = 0, .q_e = 1, .p_x = 1 / a, .p_o = -s / a, .e_x = 0, .e_o = 1, .gain = a * a / (s * s)};
}

static void clean(double a, double s, hone_param_row *r)
{
    *r = (hone_param_row){.q_0 = 1, .q_e = 0, .p_x = 0, .p_o = 1, .e_x = 1 / s, .e_o = -a / s, .gain = 1};
}

static void v_mixed(double a, double s, hone_param_row *r)
{
    *r = (hone_param_row){.q_0 = -s, .q_e = a, .p_x = a, .p_o = -s, .e_x = s, .e_o = a, .gain = 1 / (s * s)};
}

static void velocity(double a, double s, hone_param_row *r)
{
    *r = (hone_param_row){.q_0 = -1, .q_e = 1, .p_x = 1, .p_o = -s, .e_x = 1, .e_o = a, .gain = 1 / (s * s)};
}

static bool level_clean(double a, double s)
{
    return a >= 0 && s > 0;
}

static bool level_epsilon(double a, double s)
{
    return a > 0 && s > 0;
}

static bool level_diffusion(double a, double s)
{
    return a >= 0 && s > 0 && fabs(a * a + s * s - 1) <= LEVEL_TOL;
}

static bool level_flow(double a, double s)
{
    return a >= 0 && s > 0 && fabs(a + s - 1) <= LEVEL_TOL;
}

static const struct row {
    const char *name;
    int process; /* SCHED_DIFFUSION | SCHED_FLOW */
    bool (*level)(double alpha, double sigma);
    const char *wanted; /* of the level */
    void (*fill)(double alpha, double sigma, hone_param_row *out);
} rows[] = {
    {"epsilon", SCHED_DIFFUSION, level_epsilon, "alpha > 0, sigma > 0", epsilon},
    {"x0", SCHED_DIFFUSION | SCHED_FLOW, level_clean, "alpha >= 0, sigma > 0", clean},
    {"v", SCHED_DIFFUSION, level_diffusion, "alpha >= 0, sigma > 0, alpha^2 + sigma^2 = 1", v_mixed},
    {"velocity", SCHED_FLOW, level_flow, "alpha >= 0, sigma > 0, alpha + sigma = 1", velocity},
};
static const struct sched_table table = SCHED_TABLE("parameterisation", rows);

const char *hone_param_name(int i)
{
    return sched_name(&table, i);
}

int sched_param_find(const char *name, int process, hone_err *err)
{
    int i = sched_find(&table, name, process == SCHED_FLOW ? "velocity" : "epsilon", err);
    if (i < 0 || rows[i].process & process)
        return i;
    err_set(err, HONE_E_ARG, "parameterisation", "%s must be %s; got %s",
            process == SCHED_FLOW ? "the output of a flow network" : "the output of a diffusion network",
            process == SCHED_FLOW ? "velocity or x0" : "epsilon, x0 or v", rows[i].name);
    return -1;
}

hone_status sched_param_fill(int row, double alpha, double sigma, hone_param_row *out, hone_err *err)
{
    if (!rows[row].level(alpha, sigma))
        return err_set(err, HONE_E_ARG, "parameterisation", "%s wants a level with %s; got alpha %g, sigma %g",
                       rows[row].name, rows[row].wanted, alpha, sigma);
    rows[row].fill(alpha, sigma, out);
    return HONE_OK;
}

hone_status hone_param_at(const char *name, double alpha, double sigma, hone_param_row *out, hone_err *err)
{
    if (err_is(err))
        return err->code;
    int row = sched_find(&table, name, "epsilon", err);
    return row < 0 ? HONE_E_ARG : sched_param_fill(row, alpha, sigma, out, err);
}

/* --- loss weights --- */

/* Each gives the weight of the error of x̂0; `gain` is that of the output's error. */
static double uniform(const hone_loss_options *o, double snr, double gain)
{
    (void)o, (void)snr;
    return gain;
}

static double min_snr(const hone_loss_options *o, double snr, double gain)
{
    (void)gain;
    return fmin(snr, o->gamma > 0 ? o->gamma : 5);
}

static double mixed(const hone_loss_options *o, double snr, double gain)
{
    (void)gain;
    return fmin(o->lambda * snr + (1 - o->lambda), o->w_max > 0 ? o->w_max : 5);
}

static const struct loss {
    const char *name;
    double (*weight)(const hone_loss_options *o, double snr, double gain);
} losses[] = {{"uniform", uniform}, {"min_snr", min_snr}, {"mixed", mixed}};
static const struct sched_table loss_table = SCHED_TABLE("loss", losses);

const char *hone_loss_name(int i)
{
    return sched_name(&loss_table, i);
}

/* The row of the loss, or -1. */
static int check_loss(const hone_loss_options *o, int param, hone_err *err)
{
    int i = sched_find(&loss_table, o->name, "uniform", err);
    if (i < 0 || sched_range("loss", "gamma", o->gamma, 0, HUGE_VAL, ">= 0 (0: 5)", err) ||
        sched_range("loss", "lambda", o->lambda, 0, 1, "in [0, 1]", err) ||
        sched_range("loss", "w_max", o->w_max, 0, HUGE_VAL, ">= 0 (0: 5)", err))
        return -1;
    if (losses[i].weight == mixed && rows[param].fill == epsilon) {
        err_set(err, HONE_E_ARG, "loss", "mixed wants the parameterisation x0 or v; got epsilon");
        return -1;
    }
    return i;
}

static void level(const hone_schedule *s, int t, double *alpha, double *sigma)
{
    *alpha = sqrt(s->alpha_bar[t]);
    *sigma = sqrt(1 - s->alpha_bar[t]);
}

static hone_status fill_weights(const hone_schedule *s, int param, int loss, const hone_loss_options *o, double *weight,
                                hone_err *err)
{
    for (int t = 0; t < s->steps; t++) {
        hone_param_row r;
        double alpha, sigma, snr = s->alpha_bar[t] / (1 - s->alpha_bar[t]);
        level(s, t, &alpha, &sigma);
        hone_status st = sched_param_fill(param, alpha, sigma, &r, err);
        if (st)
            return st;
        weight[t] = losses[loss].weight(o, snr, r.gain) / r.gain;
    }
    return HONE_OK;
}

static const hone_loss_options plain = {0};

hone_status hone_loss_weights(const hone_schedule *s, const char *param, const hone_loss_options *options,
                              double *weight, hone_err *err)
{
    const hone_loss_options *o = options ? options : &plain;
    if (err_is(err))
        return err->code;
    int row = sched_param_find(param, SCHED_DIFFUSION, err), loss = row < 0 ? -1 : check_loss(o, row, err);
    return loss < 0 ? HONE_E_ARG : fill_weights(s, row, loss, o, weight, err);
}

/* --- the arrays of training --- */

enum { ALPHA, SIGMA, Q_0, Q_E, P_X, P_O, E_X, E_O, WEIGHT, ARRAYS };

static hone_status fill_objective(const hone_schedule *s, int param, double *at, hone_err *err)
{
    size_t n = (size_t)s->steps;
    for (int t = 0; t < s->steps; t++) {
        hone_param_row r;
        double *d = at + t;
        level(s, t, &d[ALPHA * n], &d[SIGMA * n]);
        hone_status st = sched_param_fill(param, d[ALPHA * n], d[SIGMA * n], &r, err);
        if (st)
            return st;
        d[Q_0 * n] = r.q_0;
        d[Q_E * n] = r.q_e;
        d[P_X * n] = r.p_x;
        d[P_O * n] = r.p_o;
        d[E_X * n] = r.e_x;
        d[E_O * n] = r.e_o;
    }
    return HONE_OK;
}

hone_objective *hone_objective_create(hone_ctx *ctx, const hone_schedule *s, const char *param,
                                      const hone_loss_options *loss, hone_err *err)
{
    const hone_loss_options *lo = loss ? loss : &plain;
    if (err_is(err))
        return NULL;
    int row = sched_param_find(param, SCHED_DIFFUSION, err), kind = row < 0 ? -1 : check_loss(lo, row, err);
    if (kind < 0)
        return NULL;
    size_t head = (sizeof(hone_objective) + MEM_ALIGN - 1) & ~(size_t)(MEM_ALIGN - 1), n = (size_t)s->steps;
    hone_objective *o = mem_alloc(&ctx->mem, head + ARRAYS * n * sizeof(double));
    if (!o) {
        err_set(err, HONE_E_NOMEM, "objective", "no memory for %d timesteps", s->steps);
        return NULL;
    }
    double *d = (double *)((char *)o + head);
    *o = (hone_objective){.param = rows[row].name,
                          .loss = losses[kind].name,
                          .steps = s->steps,
                          .alpha = d + ALPHA * n,
                          .sigma = d + SIGMA * n,
                          .q_0 = d + Q_0 * n,
                          .q_e = d + Q_E * n,
                          .p_x = d + P_X * n,
                          .p_o = d + P_O * n,
                          .e_x = d + E_X * n,
                          .e_o = d + E_O * n,
                          .weight = d + WEIGHT * n,
                          .ctx = ctx};
    if (fill_objective(s, row, d, err) || fill_weights(s, row, kind, lo, d + WEIGHT * n, err)) {
        hone_objective_destroy(o);
        return NULL;
    }
    return o;
}

void hone_objective_destroy(hone_objective *o)
{
    if (o)
        mem_free(&o->ctx->mem, o);
}
