/* What samplers draw with their coefficients, from denoisers that are exact because the data are known. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "hone/random.h"
#include "hone/sched.h"

#define SAMPLES 4000
#define MODE    .6 /* two modes at ± this, equally likely */
#define SPREAD  .05
#define PI      3.14159265358979323846

static hone_schedule *named(hone_ctx *ctx, const char *name, int steps)
{
    return hone_schedule_create(ctx, &(hone_schedule_options){.name = name, .steps = steps}, NULL);
}

/* E[x0 | x = α x0 + σ ε] of the two modes: the one that x is nearer to weighs exp(2 α MODE |x| / var) times the other.
 */
static double exact_x0(double x, double alpha, double sigma)
{
    double var = alpha * alpha * SPREAD * SPREAD + sigma * sigma, pull = alpha * SPREAD * SPREAD / var;
    double w = 1 / (1 + exp(-2 * alpha * MODE * x / var));
    return w * (MODE + pull * (x - alpha * MODE)) + (1 - w) * (-MODE + pull * (x + alpha * MODE));
}

/* What a perfect network puts out at step i: the mean of its target. */
static double exact_out(const hone_sampler *p, int i, double x)
{
    hone_param_row r;
    double a = p->alpha[i], s = p->sigma[i], x0 = exact_x0(x, a, s), eps = (x - a * x0) / s;
    return hone_param_at(p->param, a, s, &r, NULL) ? NAN : r.q_0 * x0 + r.q_e * eps;
}

static double to_mode(double x)
{
    return fabs(fabs(x) - MODE);
}

/* The share of samples nearer than `radius` to a mode; *rms: of all distances. */
static double share(const hone_sampler *p, double radius, double *rms)
{
    hone_rng rng = {.seed = 11, .stream = hone_stream("bimodal")};
    double square = 0;
    int in = 0;
    for (int n = 0; n < SAMPLES; n++) {
        double x = hone_rng_normal(&rng);
        for (int i = 0; i < p->steps; i++) {
            double x0 = hone_sampler_x0(p, i, x, exact_out(p, i, x));
            x = hone_sampler_mean(p, i, x, x0);
            if (p->std[i] > 0)
                x += p->std[i] * hone_rng_normal(&rng);
        }
        in += to_mode(x) < radius;
        square += to_mode(x) * to_mode(x);
    }
    *rms = sqrt(square / SAMPLES);
    return (double)in / SAMPLES;
}

static void bimodal_ddpm(struct check *c, hone_ctx *ctx)
{
    static const struct {
        int steps;
        double share;
    } rows[] = {{5, .76}, {10, .98}, {20, .999}};
    static const char *const params[] = {"epsilon", "x0", "v"};
    for (int i = 0; i < 3; i++) {
        if (!check_case(c, "ddpm, K %d: share within 3 std of a mode", rows[i].steps))
            continue;
        hone_schedule *s = named(ctx, "cosine", rows[i].steps);
        for (int q = 0; q < 3; q++) {
            double rms;
            hone_sampler *p = hone_sampler_create(
                ctx, s, &(hone_sampler_options){.name = "ddpm", .param = params[q], .x0_clip = 1}, NULL);
            double got = share(p, 3 * SPREAD, &rms);
            CHECK_MSG(c, fabs(got - rows[i].share) <= .02, "%s: %.4f, not %.3f", params[q], got, rows[i].share);
            hone_sampler_destroy(p);
        }
        hone_schedule_destroy(s);
    }
}

/* The exact share of flow-sde: its density over x, step by step on a grid, from the formula and not from coefficients.
 */
static double sde_share(int steps, double a, double radius)
{
    enum { GRID = 1201 };
    static const double lo = -6, h = .01;
    double p[GRID], q[GRID], sum = 0;
    for (int j = 0; j < GRID; j++)
        p[j] = exp(-(lo + j * h) * (lo + j * h) / 2) / sqrt(2 * PI) * h;
    for (int i = 0; i < steps; i++) {
        double t = 1 - (double)i / steps, u = 1 - (i + 1.0) / steps, dt = t - u, ts = i ? t : u;
        double s2 = a * a * ts / (1 - ts), std = sqrt(s2 * dt);
        memset(q, 0, sizeof q);
        for (int j = 0; j < GRID; j++) {
            double x = lo + j * h, x0 = exact_x0(x, 1 - t, t), x1 = (x - (1 - t) * x0) / t;
            double mean = (1 - u) * x0 + (u - s2 * dt / (2 * t)) * x1;
            if (i + 1 == steps)
                for (int m = -1; m <= 1; m += 2)
                    sum += p[j] *
                           (erf((m * MODE + radius - mean) / std / sqrt(2)) -
                            erf((m * MODE - radius - mean) / std / sqrt(2))) /
                           2;
            else
                for (int k = 0; k < GRID; k++) {
                    double z = (lo + k * h - mean) / std;
                    q[k] += z * z < 50 ? p[j] * exp(-z * z / 2) * h / (std * sqrt(2 * PI)) : 0;
                }
        }
        memcpy(p, q, sizeof p);
    }
    return sum;
}

static void bimodal_flow(struct check *c, hone_ctx *ctx)
{
    static const struct {
        const char *name;
        int steps;
        double a, share, rms; /* rms < 0: not known */
    } rows[] = {
        {"flow-ode", 10, 0, .995, .038},  {"flow-sde", 10, .5, .989, .062}, {"flow-sde", 10, .7, .949, .080},
        {"flow-cps", 10, .5, .995, .038}, {"flow-ode", 4, 0, .754, -1},     {"flow-sde", 4, .5, .583, -1},
        {"flow-sde", 4, .7, .460, -1},    {"flow-cps", 4, .5, .741, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!check_case(c, "%s, %d steps, eta %g: share near a mode", rows[i].name, rows[i].steps, rows[i].a))
            continue;
        for (int q = 0; q < 2; q++) {
            hone_sampler_options o = {.name = rows[i].name, .steps = rows[i].steps, .eta = rows[i].a};
            o.param = q ? "x0" : "velocity";
            hone_sampler *p = hone_sampler_create(ctx, NULL, &o, NULL);
            double rms, got = share(p, .15, &rms);
            CHECK_MSG(c, fabs(got - rows[i].share) <= .02, "%s: %.4f, not %.3f", o.param, got, rows[i].share);
            CHECK_MSG(c, rows[i].rms < 0 || fabs(rms - rows[i].rms) <= .008, "%s: rms %.4f, not %.3f", o.param, rms,
                      rows[i].rms);
            hone_sampler_destroy(p);
        }
    }
    if (check_case(c, "flow-sde, 4 steps: samples against the density")) {
        CHECK_MSG(c, fabs(sde_share(4, .5, .15) - .5792) < 5e-4, "%.5f", sde_share(4, .5, .15));
        CHECK_MSG(c, fabs(sde_share(4, .7, .15) - .4598) < 5e-4, "%.5f", sde_share(4, .7, .15));
    }
}

/* Data that are always `at`: with x = α at + σ z a perfect network knows z. Levels come from the schedule and the list
 * of timesteps, not from the sampler, so a step that lands on another level than the network expects is seen. */
static void constant_data(struct check *c, hone_ctx *ctx)
{
    static const double at = -.37, z = 1.3;
    static const char *const params[] = {"epsilon", "x0", "v"};
    if (!check_case(c, "constant data come back, for any S"))
        return;
    for (int k = 1; k <= 100; k += k < 10 ? 1 : 15)
        for (int steps = 1; steps <= k; steps++)
            for (int q = 0; q < 6; q++) {
                hone_schedule *s = named(ctx, hone_schedule_name(k % 4), k);
                hone_sampler_options o = {.param = params[q % 3], .steps = steps, .x0_clip = 1};
                o.spacing = q < 3 ? "trailing" : "leading";
                hone_sampler *p = hone_sampler_create(ctx, s, &o, NULL);
                double bar = s->alpha_bar[p->timestep[0]], x = sqrt(bar) * at + sqrt(1 - bar) * z, off = 0;
                for (int i = 0; i < steps; i++) {
                    bar = s->alpha_bar[p->timestep[i]];
                    off = fmax(off, fabs(x - (sqrt(bar) * at + sqrt(1 - bar) * z)));
                    hone_param_row r;
                    hone_param_at(p->param, sqrt(bar), sqrt(1 - bar), &r, NULL);
                    x = hone_sampler_mean(p, i, x, hone_sampler_x0(p, i, x, r.q_0 * at + r.q_e * z));
                }
                CHECK_MSG(c, off < 1e-12 && fabs(x - at) < 1e-12, "K %d S %d %s %s: %g on the way, %g at the end", k,
                          steps, p->param, p->spacing, off, x - at);
                CHECK_MSG(c, strcmp(p->param, "x0") != 0 || x == at, "K %d S %d: x0 not exact", k, steps);
                hone_sampler_destroy(p);
                hone_schedule_destroy(s);
            }
}

/* Gaussian data of std d: E[x0 | x] = α d²/(α² d² + σ²) x, so x stays Gaussian and its variance is known at each step,
 * for every parameterisation the same. */
static double gaussian_std(const hone_sampler *p, double d)
{
    double var = 1;
    for (int i = 0; i < p->steps; i++) {
        double a = p->alpha[i], s = p->sigma[i], k = a * d * d / (a * a * d * d + s * s);
        hone_param_row r;
        hone_param_at(p->param, a, s, &r, NULL);
        double slope = hone_sampler_mean(p, i, 1, hone_sampler_x0(p, i, 1, r.q_0 * k + r.q_e * (1 - a * k) / s));
        var = slope * slope * var + p->std[i] * p->std[i];
    }
    return sqrt(var);
}

static void gaussian_data(struct check *c, hone_ctx *ctx)
{
    static const struct {
        const char *name, *spacing;
        double eta;
    } rows[] = {{"ddpm", NULL, 0},     {"ddim", NULL, 0},      {"ddim", NULL, .5},     {"ddim", NULL, 1},
                {"flow-ode", NULL, 0}, {"flow-sde", NULL, .7}, {"flow-cps", NULL, .02}};
    static const char *const params[2][3] = {{"epsilon", "x0", "v"}, {"velocity", "x0", "x0"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!check_case(c, "%s, eta %g: Gaussian data", rows[i].name, rows[i].eta))
            continue;
        bool flow = !strncmp(rows[i].name, "flow", 4);
        hone_schedule *s = named(ctx, "cosine", 1000);
        double first = 0, off = 1;
        for (int q = 0; q < 3; q++) {
            hone_sampler_options o = {.name = rows[i].name, .param = params[flow][q], .steps = 20, .eta = rows[i].eta};
            for (int steps = 20; steps <= 1000; steps *= 7) { /* more steps, nearer */
                o.steps = steps;
                hone_sampler *p = hone_sampler_create(ctx, s, &o, NULL);
                double got = gaussian_std(p, .3);
                if (steps == 20)
                    off = 1;
                CHECK_MSG(c, fabs(got / .3 - 1) < off, "%s S %d: %.5f after an error of %.5f", o.param, steps, got,
                          off);
                off = fabs(got / .3 - 1);
                if (steps == 980) {
                    CHECK_MSG(c, off < .02, "%s: %.5f", o.param, got);
                    first = q ? first : got;
                    CHECK_MSG(c, fabs(got - first) < 1e-9, "%s: %.12f, not %.12f", o.param, got, first);
                }
                hone_sampler_destroy(p);
            }
        }
        hone_schedule_destroy(s);
    }
}

void suite_sched_chain(struct check *c)
{
    hone_ctx *ctx = hone_ctx_create(NULL, NULL);
    constant_data(c, ctx);
    gaussian_data(c, ctx);
    bimodal_ddpm(c, ctx);
    bimodal_flow(c, ctx);
    if (check_case(c, "nothing is left"))
        CHECK(c, hone_ctx_mem(ctx).live_bytes == 0);
    hone_ctx_destroy(ctx);
}
