/* Sampler coefficients. */
#include <math.h>
#include <string.h>

#include "base/ctx.h"
#include "base/err.h"
#include "sched/sched.h"

#define PI 3.14159265358979323846

/* --- one step --- */

/* A noise level; t: time of flow, ab: ᾱ of diffusion. */
struct level {
    double alpha, sigma, t, ab;
};

struct step {
    double c_x, c_0, std;
};

/* α_p x̂0 + dir ε̂ + std z, with ε̂ = (x - α x̂0)/σ. */
static struct step along_eps(const struct level *a, const struct level *p, double dir, double std)
{
    return (struct step){dir / a->sigma, p->alpha - dir * a->alpha / a->sigma, std};
}

static struct step ddpm(const struct level *a, const struct level *p, double eta)
{
    (void)eta;
    double keep = a->ab / p->ab, beta = 1 - keep, all = 1 - a->ab, rest = 1 - p->ab;
    return (struct step){sqrt(keep) * rest / all, beta * sqrt(p->ab) / all, sqrt(beta * rest / all)};
}

static struct step ddim(const struct level *a, const struct level *p, double eta)
{
    double std = eta * sqrt((1 - p->ab) / (1 - a->ab) * (1 - a->ab / p->ab));
    return along_eps(a, p, sqrt(fmax(0, 1 - p->ab - std * std)), std);
}

static struct step flow_ode(const struct level *a, const struct level *p, double eta)
{
    (void)eta;
    return along_eps(a, p, p->sigma, 0);
}

static struct step flow_sde(const struct level *a, const struct level *p, double eta)
{
    double dt = a->t - p->t, t = a->t < 1 ? a->t : p->t, s = eta * sqrt(t / (1 - t));
    return along_eps(a, p, p->t - s * s * dt / (2 * a->t), s * sqrt(dt));
}

static struct step flow_cps(const struct level *a, const struct level *p, double eta)
{
    return along_eps(a, p, p->t * cos(PI * eta / 2), p->t * sin(PI * eta / 2));
}

static const struct row {
    const char *name;
    int process;
    double eta_max; /* 0: takes no eta */
    struct step (*step)(const struct level *now, const struct level *prev, double eta);
} rows[] = {
    {"ddpm", SCHED_DIFFUSION, 0, ddpm},    {"ddim", SCHED_DIFFUSION, 1, ddim},    {"flow-ode", SCHED_FLOW, 0, flow_ode},
    {"flow-sde", SCHED_FLOW, 2, flow_sde}, {"flow-cps", SCHED_FLOW, 1, flow_cps},
};
static const struct sched_table table = SCHED_TABLE("sampler", rows);

const char *hone_sampler_name(int i)
{
    return sched_name(&table, i);
}

/* --- which timesteps --- */

/* round(K j / S) - 1 with ties to even, for j = S - i. Neighbours are at least one apart, so none is met twice. */
static int trailing(int i, int steps, int all)
{
    int n = all * (steps - i), whole = n / steps, twice = 2 * (n % steps);
    bool up = twice > steps || (twice == steps && whole % 2);
    return whole + up - 1;
}

static int leading(int i, int steps, int all)
{
    return (steps - 1 - i) * (all / steps);
}

static const struct spacing {
    const char *name;
    int (*timestep)(int i, int steps, int all);
} spacings[] = {{"trailing", trailing}, {"leading", leading}};
static const struct sched_table spacing_table = SCHED_TABLE("spacing", spacings);

/* --- the program --- */

enum {
    TIME,
    ALPHA,
    SIGMA,
    ALPHA_PREV,
    SIGMA_PREV,
    ALPHA_BAR,
    ALPHA_BAR_PREV,
    P_X,
    P_O,
    E_X,
    E_O,
    R_X,
    R_0,
    C_X,
    C_0,
    STD,
    STD_SAMPLE,
    STD_SCORE,
    ARRAYS
};

/* What was asked for, checked. */
struct plan {
    const hone_sampler_options *o;
    const hone_schedule *schedule; /* NULL in flow */
    const struct row *row;
    const struct spacing *spacing; /* NULL in flow */
    int param, steps;
};

static hone_status check_diffusion(struct plan *p, hone_err *err)
{
    if (!p->schedule)
        return err_set(err, HONE_E_ARG, "sampler", "%s wants a noise schedule; got none", p->row->name);
    int i = sched_find(&spacing_table, p->o->spacing, "trailing", err), all = p->schedule->steps;
    if (i < 0)
        return HONE_E_ARG;
    p->spacing = &spacings[i];
    p->steps = p->o->steps ? p->o->steps : all;
    if (p->steps < 1 || p->steps > all)
        return err_set(err, HONE_E_ARG, "sampler", "steps must be 1 to the %d of the schedule, or 0 for all; got %d",
                       all, p->o->steps);
    return HONE_OK;
}

static hone_status check_flow(struct plan *p, hone_err *err)
{
    p->schedule = NULL;
    p->steps = p->o->steps;
    if (p->o->spacing)
        return err_set(err, HONE_E_ARG, "sampler", "%s has no spacing; got \"%.60s\"", p->row->name, p->o->spacing);
    if (p->steps < 1 || p->steps > HONE_SCHED_MAX_STEPS)
        return err_set(err, HONE_E_ARG, "sampler", "steps must be 1 to %d; got %d", HONE_SCHED_MAX_STEPS, p->o->steps);
    return HONE_OK;
}

static hone_status check(struct plan *p, hone_err *err)
{
    const hone_sampler_options *o = p->o;
    int i = sched_find(&table, o->name, "ddim", err);
    if (i < 0)
        return HONE_E_ARG;
    p->row = &rows[i];
    p->param = sched_param_find(o->param, p->row->process, err);
    hone_status st = p->param < 0                         ? HONE_E_ARG
                     : p->row->process == SCHED_DIFFUSION ? check_diffusion(p, err)
                                                          : check_flow(p, err);
    if (st)
        return st;
    if (!(o->eta >= 0 && o->eta <= p->row->eta_max))
        return err_set(err, HONE_E_ARG, "sampler", "eta of %s must be in [0, %g]; got %g", p->row->name,
                       p->row->eta_max, o->eta);
    st = sched_range("sampler", "x0_clip", o->x0_clip, 0, HUGE_VAL, ">= 0 (0: no clamp)", err);
    if (!st)
        st = sched_range("sampler", "min_std_sample", o->min_std_sample, 0, HUGE_VAL, ">= 0", err);
    if (!st)
        st = sched_range("sampler", "min_std_score", o->min_std_score, 0, HUGE_VAL, ">= 0", err);
    return st;
}

/* The level of x before step i; i = steps is that of the result. Diffusion: also its timestep. */
static struct level level_at(const struct plan *p, int i, int *timestep)
{
    struct level l = {1, 0, 0, 1};
    if (i >= p->steps)
        return l;
    if (p->schedule) {
        *timestep = p->spacing->timestep(i, p->steps, p->schedule->steps);
        l.ab = p->schedule->alpha_bar[*timestep];
        l.alpha = sqrt(l.ab);
        l.sigma = sqrt(1 - l.ab);
        l.t = *timestep;
    } else {
        l.t = (double)(p->steps - i) / p->steps;
        l.alpha = (double)i / p->steps;
        l.sigma = l.t;
    }
    return l;
}

static hone_status fill(const struct plan *p, double *at, int *timestep, hone_err *err)
{
    size_t n = (size_t)p->steps;
    int t = 0;
    struct level now = level_at(p, 0, &t), prev;
    for (int i = 0; i < p->steps; i++, now = prev) {
        hone_param_row r;
        double *d = at + i;
        if (timestep)
            timestep[i] = t;
        prev = level_at(p, i + 1, &t);
        hone_status st = sched_param_fill(p->param, now.alpha, now.sigma, &r, err);
        if (st)
            return st;
        struct step s = p->row->step(&now, &prev, p->o->eta);
        d[TIME * n] = now.t;
        d[ALPHA * n] = now.alpha;
        d[SIGMA * n] = now.sigma;
        d[ALPHA_PREV * n] = prev.alpha;
        d[SIGMA_PREV * n] = prev.sigma;
        d[ALPHA_BAR * n] = now.ab;
        d[ALPHA_BAR_PREV * n] = prev.ab;
        d[P_X * n] = r.p_x;
        d[P_O * n] = r.p_o;
        d[E_X * n] = r.e_x;
        d[E_O * n] = r.e_o;
        d[R_X * n] = 1 / now.sigma;
        d[R_0 * n] = -now.alpha / now.sigma;
        d[C_X * n] = s.c_x;
        d[C_0 * n] = s.c_0;
        d[STD * n] = s.std;
        d[STD_SAMPLE * n] = fmax(s.std, p->o->min_std_sample);
        d[STD_SCORE * n] = fmax(s.std, p->o->min_std_score);
    }
    return HONE_OK;
}

/* Points the arrays of `out` into its slab. */
static void point(hone_sampler *out, const double *d, const int *timestep)
{
    size_t n = (size_t)out->steps;
    bool flow = out->flow;
    out->timestep = timestep;
    out->time = d + TIME * n;
    out->alpha = d + ALPHA * n;
    out->sigma = d + SIGMA * n;
    out->alpha_prev = d + ALPHA_PREV * n;
    out->sigma_prev = d + SIGMA_PREV * n;
    out->alpha_bar = flow ? NULL : d + ALPHA_BAR * n;
    out->alpha_bar_prev = flow ? NULL : d + ALPHA_BAR_PREV * n;
    out->p_x = d + P_X * n;
    out->p_o = d + P_O * n;
    out->e_x = d + E_X * n;
    out->e_o = d + E_O * n;
    out->r_x = d + R_X * n;
    out->r_0 = d + R_0 * n;
    out->c_x = d + C_X * n;
    out->c_0 = d + C_0 * n;
    out->std = d + STD * n;
    out->std_sample = d + STD_SAMPLE * n;
    out->std_score = d + STD_SCORE * n;
    for (int i = 0; i < out->steps; i++)
        out->stochastic |= out->std[i] > 0;
}

hone_sampler *hone_sampler_create(hone_ctx *ctx, const hone_schedule *s, const hone_sampler_options *options,
                                  hone_err *err)
{
    struct plan p = {.o = options, .schedule = s};
    if (err_is(err) || check(&p, err))
        return NULL;
    /* one block: the struct, the arrays of double, the timesteps */
    size_t head = (sizeof(hone_sampler) + MEM_ALIGN - 1) & ~(size_t)(MEM_ALIGN - 1), n = (size_t)p.steps;
    hone_sampler *out = mem_alloc(&ctx->mem, head + n * (ARRAYS * sizeof(double) + sizeof(int)));
    if (!out) {
        err_set(err, HONE_E_NOMEM, "sampler", "no memory for %d steps", p.steps);
        return NULL;
    }
    double *d = (double *)((char *)out + head);
    int *timestep = p.schedule ? (int *)(d + ARRAYS * n) : NULL;
    *out = (hone_sampler){.name = p.row->name,
                          .spacing = p.spacing ? p.spacing->name : NULL,
                          .param = hone_param_name(p.param),
                          .steps = p.steps,
                          .flow = !p.schedule,
                          .eta = options->eta,
                          .x0_clip = options->x0_clip,
                          .min_std_sample = options->min_std_sample,
                          .min_std_score = options->min_std_score,
                          .ctx = ctx};
    if (fill(&p, d, timestep, err)) {
        hone_sampler_destroy(out);
        return NULL;
    }
    point(out, d, timestep);
    return out;
}

void hone_sampler_destroy(hone_sampler *p)
{
    if (p)
        mem_free(&p->ctx->mem, p);
}

double hone_sampler_x0(const hone_sampler *p, int i, double x, double out)
{
    double x0 = p->p_x[i] * x + p->p_o[i] * out, c = p->x0_clip;
    if (c > 0 && x0 > c)
        return c;
    if (c > 0 && x0 < -c)
        return -c;
    return x0;
}

double hone_sampler_eps(const hone_sampler *p, int i, double x, double x0)
{
    return p->r_x[i] * x + p->r_0[i] * x0;
}

double hone_sampler_mean(const hone_sampler *p, int i, double x, double x0)
{
    return p->c_x[i] * x + p->c_0[i] * x0;
}
