/* Noise schedules and sampler coefficients: known values, and what holds for each of them. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "hone/sched.h"

static bool near(double a, double b, double tol)
{
    return fabs(a - b) <= tol;
}

static hone_schedule *named(hone_ctx *ctx, const char *name, int steps)
{
    return hone_schedule_create(ctx, &(hone_schedule_options){.name = name, .steps = steps}, NULL);
}

/* --- schedules --- */

static void golden_cosine(struct check *c, hone_ctx *ctx)
{
    enum { BETA, BAR, STD };
    static const struct {
        int steps, what, t;
        double value, tol;
    } rows[] = {
        {10, BETA, 0, .02790726, 5e-9},  {10, BETA, 1, .07549364, 5e-9},
        {10, BETA, 2, .12439599, 5e-9},  {10, BETA, 9, .999, 0},
        {10, BAR, 0, .97209274, 5e-9},   {10, BAR, 5, .34080964, 5e-9},
        {10, BAR, 8, .02409172, 5e-9},   {10, STD, 0, 0, 0},
        {10, STD, 1, .144219, 5e-7},     {10, STD, 2, .243172, 5e-7},
        {10, STD, 3, .327271, 5e-7},     {10, STD, 4, .406521, 5e-7},
        {10, STD, 9, .987399, 5e-7},     {20, BETA, 0, .00799272, 5e-9},
        {20, BETA, 1, .020075, 5e-9},    {20, BETA, 2, .03225385, 5e-9},
        {20, BAR, 0, .99200728, 5e-9},   {20, BAR, 10, .41631159, 5e-9},
        {20, BAR, 18, .00605964, 5e-9},  {20, BAR, 19, 6.0596e-6, 5e-11},
        {20, STD, 1, .075826, 5e-7},     {20, STD, 2, .123244, 5e-7},
        {20, STD, 3, .161679, 5e-7},     {20, STD, 4, .195152, 5e-7},
        {20, STD, 19, .99647, 5e-6},     {100, BETA, 0, .00063128, 5e-9},
        {100, BAR, 50, .47826463, 5e-9}, {100, BAR, 98, 2.4286e-4, 5e-9},
        {100, STD, 1, .020087, 5e-7},    {100, STD, 2, .028926, 5e-7},
        {100, STD, 3, .03589, 5e-6},     {100, STD, 4, .041839, 5e-7},
    };
    if (!check_case(c, "cosine: known values"))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hone_schedule *s = named(ctx, NULL, rows[i].steps);
        hone_sampler *p = hone_sampler_create(ctx, s, &(hone_sampler_options){.name = "ddpm"}, NULL);
        int t = rows[i].t;
        double got = rows[i].what == BETA  ? s->beta[t]
                     : rows[i].what == BAR ? s->alpha_bar[t]
                                           : p->std[p->steps - 1 - t];
        CHECK_MSG(c, near(got, rows[i].value, rows[i].tol), "K %d, array %d, t %d: %.9g, not %.9g", rows[i].steps,
                  rows[i].what, t, got, rows[i].value);
        hone_sampler_destroy(p);
        hone_schedule_destroy(s);
    }
}

static void golden_others(struct check *c, hone_ctx *ctx)
{
    static const struct {
        hone_schedule_options o;
        int t;
        double beta, alpha_bar;
    } rows[] = {
        {{.name = "vp", .steps = 5}, 0, .195874558333, .804125441667},
        {{.name = "vp", .steps = 5}, 4, .835031379177, .006409333446},
        {{.name = "linear", .steps = 1000}, 1, .00011991992, .999780092072},
        {{.name = "linear", .steps = 1000}, 999, .02, 4.035829765e-05},
        {{.name = "linear", .steps = 100, .rescale = true}, 1, .00301010101, .995992909091},
        {{.name = "linear", .steps = 100, .rescale = true}, 99, .2, 2.039008976e-05},
        {{.name = "linear", .steps = 2, .beta_start = .1, .beta_end = .3}, 1, .3, .63},
        {{.name = "scaled_linear", .steps = 1000}, 1, .000102648364, .9997973619},
        {{.name = "scaled-linear", .steps = 1000}, 999, .02, .00073341246},
    };
    if (!check_case(c, "linear, scaled_linear, vp: known values"))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hone_schedule *s = hone_schedule_create(ctx, &rows[i].o, NULL);
        int t = rows[i].t;
        if (CHECK(c, s != NULL))
            CHECK_MSG(c, near(s->beta[t], rows[i].beta, 1e-11) && near(s->alpha_bar[t], rows[i].alpha_bar, 1e-11),
                      "%s K %d t %d: %.12g %.12g", s->name, s->steps, t, s->beta[t], s->alpha_bar[t]);
        hone_schedule_destroy(s);
    }
}

/* ᾱ of any schedule: in (0, 1), strictly falling, the product of 1 - β. */
static void check_schedule(struct check *c, const hone_schedule *s)
{
    double before = 1;
    bool good = true;
    for (int t = 0; t < s->steps; t++) {
        good &= s->beta[t] > 0 && s->beta[t] <= .999 && s->alpha_bar[t] > 0 && s->alpha_bar[t] < before;
        good &= near(s->alpha_bar[t], before * (1 - s->beta[t]), 1e-15);
        before = s->alpha_bar[t];
    }
    CHECK_MSG(c, good, "%s K %d", s->name, s->steps);
}

/* --- samplers: what holds for every one of them --- */

static bool finite_arrays(const hone_sampler *p)
{
    const double *all[] = {p->time, p->alpha, p->sigma,      p->alpha_prev, p->sigma_prev, p->p_x,
                           p->p_o,  p->e_x,   p->e_o,        p->r_x,        p->r_0,        p->c_x,
                           p->c_0,  p->std,   p->std_sample, p->std_score};
    for (size_t a = 0; a < sizeof all / sizeof all[0]; a++)
        for (int i = 0; i < p->steps; i++)
            if (!isfinite(all[a][i]))
                return false;
    return true;
}

/* The list of timesteps, and that each step starts where the one before it ended. */
static bool chain_links(const hone_sampler *p, const hone_schedule *s)
{
    bool good = p->alpha_prev[p->steps - 1] == 1 && p->sigma_prev[p->steps - 1] == 0;
    for (int i = 0; i < p->steps; i++) {
        bool last = i + 1 == p->steps;
        good &= p->sigma[i] > 0 && p->std[i] >= 0 && p->sigma_prev[i] < p->sigma[i] && p->alpha_prev[i] > p->alpha[i];
        good &= last || (p->alpha_prev[i] == p->alpha[i + 1] && p->sigma_prev[i] == p->sigma[i + 1]);
        if (p->flow) {
            good &= p->time[i] == p->sigma[i] && near(p->alpha[i] + p->sigma[i], 1, 1e-15) && !p->timestep;
            continue;
        }
        int t = p->timestep[i];
        good &= t >= 0 && t < s->steps && p->time[i] == t && (last || t > p->timestep[i + 1]);
        good &= p->alpha_bar[i] == s->alpha_bar[t] && p->alpha[i] == sqrt(p->alpha_bar[i]);
        good &= p->alpha_bar_prev[i] == (last ? 1 : s->alpha_bar[p->timestep[i + 1]]);
    }
    return good;
}

/* With x = α x0 + σ ε and x̂0 = x0, a step must land on α_p x0 + noise of std σ_p (flow-sde: only as steps get small).
 */
static bool keeps_marginals(const hone_sampler *p)
{
    bool good = true, sde = !strcmp(p->name, "flow-sde");
    for (int i = 0; i < p->steps; i++) {
        double v = p->c_x[i] * p->sigma[i];
        good &= near(p->c_x[i] * p->alpha[i] + p->c_0[i], p->alpha_prev[i], 1e-12);
        good &= sde || near(v * v + p->std[i] * p->std[i], p->sigma_prev[i] * p->sigma_prev[i], 1e-12);
    }
    return good;
}

static bool ends_in_x0(const hone_sampler *p)
{
    int i = p->steps - 1;
    return p->c_x[i] == 0 && p->c_0[i] == 1 && p->std[i] == 0 && hone_sampler_mean(p, i, -.3, .1) == .1;
}

static void check_sampler(struct check *c, hone_ctx *ctx, const hone_schedule *s, hone_sampler_options o)
{
    hone_err e = {0};
    hone_sampler *p = hone_sampler_create(ctx, s, &o, &e);
    if (CHECK_MSG(c, p != NULL, "%s", e.text)) {
        bool sde = !strcmp(p->name, "flow-sde");
        CHECK_MSG(c, finite_arrays(p) && chain_links(p, s) && keeps_marginals(p) && (sde || ends_in_x0(p)),
                  "%s %s K %d S %d eta %g %s: finite %d, links %d, marginals %d, end %d", p->name, p->param,
                  s ? s->steps : 0, p->steps, p->eta, p->spacing ? p->spacing : "", finite_arrays(p), chain_links(p, s),
                  keeps_marginals(p), ends_in_x0(p));
    }
    hone_sampler_destroy(p);
}

static void check_samplers(struct check *c, hone_ctx *ctx, const hone_schedule *s, int steps)
{
    static const char *const params[] = {"epsilon", "x0", "v"};
    for (int i = 0; i < 3; i++) {
        const char *spacing = i == 1 ? "leading" : NULL;
        check_sampler(c, ctx, s, (hone_sampler_options){"ddpm", spacing, params[i], steps, 0, 1, .1, .1});
        check_sampler(c, ctx, s, (hone_sampler_options){"ddim", spacing, params[i], steps, .5 * i, 0, 0, .1});
    }
}

static void every_k(struct check *c, hone_ctx *ctx)
{
    if (check_case(c, "every K, several S: finite, monotone, linked"))
        for (int k = 1; k <= 200; k++) {
            hone_schedule *s = named(ctx, hone_schedule_name(k % 4), k);
            const int steps[] = {1, 2, 5, k / 3, k / 2 + 1, k - 1, k};
            for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
                if (steps[i] >= 1 && steps[i] <= k)
                    check_samplers(c, ctx, s, steps[i]);
            hone_schedule_destroy(s);
        }
    if (check_case(c, "every schedule, every K"))
        for (int row = 0; hone_schedule_name(row); row++)
            for (int k = 1; k <= HONE_SCHED_MAX_STEPS; k++) {
                hone_schedule *s = named(ctx, hone_schedule_name(row), k);
                if (CHECK_MSG(c, s != NULL, "%s K %d", hone_schedule_name(row), k))
                    check_schedule(c, s);
                if (k == HONE_SCHED_MAX_STEPS)
                    for (int steps = 1; steps <= k; steps += 111)
                        check_samplers(c, ctx, s, steps);
                hone_schedule_destroy(s);
            }
    if (check_case(c, "rescaled: every K"))
        for (int k = 1; k <= HONE_SCHED_MAX_STEPS; k++) {
            hone_schedule *s = hone_schedule_create(
                ctx, &(hone_schedule_options){.name = k % 2 ? "linear" : "scaled_linear", .steps = k, .rescale = true},
                NULL);
            if (CHECK_MSG(c, s != NULL, "K %d", k)) {
                check_schedule(c, s);
                CHECK_MSG(c, k < 3 || s->alpha_bar[k - 1] < 2e-3, "K %d: far from noise, %g", k, s->alpha_bar[k - 1]);
            }
            hone_schedule_destroy(s);
        }
    if (check_case(c, "flow: every S"))
        for (int steps = 1; steps <= 200; steps++)
            for (int row = 2; hone_sampler_name(row); row++)
                for (int a = 0; a < (row == 2 ? 1 : 3); a++)
                    check_sampler(c, ctx, NULL,
                                  (hone_sampler_options){.name = hone_sampler_name(row),
                                                         .param = a == 1 ? "x0" : NULL,
                                                         .steps = steps,
                                                         .eta = .5 * a});
}

static void timesteps(struct check *c, hone_ctx *ctx)
{
    static const struct {
        int all, steps;
        const char *spacing;
        int t[8];
    } rows[] = {
        {100, 5, NULL, {99, 79, 59, 39, 19}},
        {100, 5, "leading", {80, 60, 40, 20, 0}},
        {100, 8, "trailing", {99, 87, 74, 61, 49, 37, 24, 11}}, /* ties to even */
        {10, 4, "trailing", {9, 7, 4, 1}},
        {10, 4, "leading", {6, 4, 2, 0}},
        {7, 3, NULL, {6, 4, 1}},
        {1000, 6, NULL, {999, 832, 666, 499, 332, 166}},
        {1, 1, NULL, {0}},
    };
    if (!check_case(c, "timesteps: trailing unless told, and leading"))
        return;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        hone_schedule *s = named(ctx, NULL, rows[r].all);
        hone_sampler *p = hone_sampler_create(
            ctx, s, &(hone_sampler_options){.steps = rows[r].steps, .spacing = rows[r].spacing}, NULL);
        for (int i = 0; i < p->steps; i++)
            CHECK_MSG(c, p->timestep[i] == rows[r].t[i], "%d of %d, step %d: %d, not %d", p->steps, rows[r].all, i,
                      p->timestep[i], rows[r].t[i]);
        hone_sampler_destroy(p);
        hone_schedule_destroy(s);
    }
}

static void golden_ddim(struct check *c, hone_ctx *ctx)
{
    static const double bar[] = {.99936872, .88910313, .63251575, .32611525, .08514621};
    static const double std[] = {0, .02506161, .29510859, .51396745, .7377548};
    if (!check_case(c, "ddim, K 100, S 5, leading: known values"))
        return;
    hone_schedule *s = named(ctx, "cosine", 100);
    hone_sampler *p = hone_sampler_create(
        ctx, s, &(hone_sampler_options){.name = "ddim", .spacing = "leading", .steps = 5, .eta = 1}, NULL);
    for (int i = 0; i < 5; i++) {
        int j = 4 - i; /* the tables begin at the cleanest */
        CHECK_MSG(c, near(p->alpha_bar[i], bar[j], 5e-9) && near(p->std[i], std[j], 5e-8), "t %d: %.9g, %.9g",
                  p->timestep[i], p->alpha_bar[i], p->std[i]);
    }
    CHECK(c, p->stochastic && p->eta == 1 && !strcmp(p->spacing, "leading"));
    hone_sampler_destroy(p);
    hone_schedule_destroy(s);
}

/* One step of each flow sampler against its formula: S = 4, from t = 3/4 to u = 1/2, and from t = 1. */
static void flow_formulas(struct check *c, hone_ctx *ctx)
{
    static const double eta = .7, x = .2, x0 = -.4;
    if (!check_case(c, "flow samplers: one step by hand"))
        return;
    for (int row = 2; hone_sampler_name(row); row++)
        for (int i = 0; i < 2; i++) {
            hone_sampler *p = hone_sampler_create(
                ctx, NULL,
                &(hone_sampler_options){.name = hone_sampler_name(row), .steps = 4, .eta = row == 2 ? 0 : eta}, NULL);
            double t = i ? .75 : 1, u = i ? .5 : .75, x1 = (x - (1 - t) * x0) / t;
            double s2 = eta * eta * 3; /* t / (1 - t) = 3 at t = 3/4, which t = 1 takes as well */
            double mean[] = {(1 - u) * x0 + u * x1, (1 - u) * x0 + (u - s2 * .25 / (2 * t)) * x1,
                             (1 - u) * x0 + u * cos(acos(-1) * .35) * x1};
            double std[] = {0, sqrt(s2) / 2, u * sin(acos(-1) * .35)};
            CHECK_MSG(c, near(hone_sampler_mean(p, i, x, x0), mean[row - 2], 1e-14) && p->time[i] == t,
                      "%s step %d: %.9g", p->name, i, hone_sampler_mean(p, i, x, x0));
            CHECK_MSG(c, near(p->std[i], std[row - 2], 1e-14) && p->stochastic == (row > 2), "%s step %d: std %.9g",
                      p->name, i, p->std[i]);
            CHECK(c,
                  near(hone_sampler_x0(p, i, x, x1 - x0), x0, 1e-14) && near(hone_sampler_eps(p, i, x, x0), x1, 1e-14));
            hone_sampler_destroy(p);
        }
}

/* ddpm is ddim with eta = 1; its mean in ε form is (x - β/√(1-ᾱ) ε)/√(1-β); the weight of ε in a KL of two means. */
static void ddpm_forms(struct check *c, hone_ctx *ctx)
{
    if (!check_case(c, "ddpm: x0 form, eps form, ddim with eta 1"))
        return;
    for (int k = 2; k <= 200; k += 9) {
        hone_schedule *s = named(ctx, hone_schedule_name(k % 4), k);
        hone_sampler *p = hone_sampler_create(ctx, s, &(hone_sampler_options){.name = "ddpm"}, NULL);
        hone_sampler *q = hone_sampler_create(ctx, s, &(hone_sampler_options){.name = "ddim", .eta = 1}, NULL);
        hone_sampler *h = hone_sampler_create(ctx, s, &(hone_sampler_options){.name = "ddim", .eta = .3}, NULL);
        CHECK(c, p->steps == k && p->stochastic);
        for (int i = 0; i < k; i++) {
            int t = p->timestep[i];
            double x = .7, eps = -.4, beta = s->beta[t], bar = s->alpha_bar[t];
            double mean = (x - beta / sqrt(1 - bar) * eps) / sqrt(1 - beta);
            double x0 = hone_sampler_x0(p, i, x, eps), got = hone_sampler_mean(p, i, x, x0);
            CHECK_MSG(c, near(got, mean, 1e-11 * fmax(1, fabs(x0))), "K %d t %d: %.15g, not %.15g", k, t, got, mean);
            CHECK_MSG(c,
                      near(p->c_x[i], q->c_x[i], 1e-11) && near(p->c_0[i], q->c_0[i], 1e-11) &&
                          near(p->std[i], q->std[i], 1e-11),
                      "K %d t %d: ddim differs", k, t);
            CHECK_MSG(c, near(h->std[i], .3 * q->std[i], 1e-15), "K %d t %d: std is not eta times that of ddpm", k, t);
            if (p->std[i] > 0) {
                double var = p->std[i] * p->std[i], slope = p->c_0[i] * p->p_o[i];
                double known = beta * beta / (2 * var * (1 - beta) * (1 - bar));
                CHECK_MSG(c, near(slope * slope / (2 * var) / known, 1, 1e-10), "K %d t %d: KL weight", k, t);
            }
        }
        hone_sampler_destroy(p);
        hone_sampler_destroy(q);
        hone_sampler_destroy(h);
        hone_schedule_destroy(s);
    }
}

static void clamp_and_floors(struct check *c, hone_ctx *ctx)
{
    hone_schedule *s = named(ctx, NULL, 20);
    if (check_case(c, "clamp of x0, and the eps that belongs to it")) {
        hone_sampler *p = hone_sampler_create(ctx, s, &(hone_sampler_options){.name = "ddim", .x0_clip = 1}, NULL);
        CHECK(c, near(p->p_x[0], 1 / sqrt(s->alpha_bar[19]), 1e-9) && p->p_x[0] > 400);
        CHECK(c, hone_sampler_x0(p, 0, 1, 0) == 1 && hone_sampler_x0(p, 0, -1, 0) == -1);
        CHECK(c, isnan(hone_sampler_x0(p, 0, NAN, 0)));
        for (int i = 0; i < 20; i++) {
            double a = p->alpha[i], sg = p->sigma[i], x = .9 * a, x0 = hone_sampler_x0(p, i, x, -3);
            double eps = (x - a * 1) / sg, mean = p->alpha_prev[i] + p->sigma_prev[i] * eps; /* not the network's -3 */
            CHECK_MSG(c, x0 == 1, "step %d: %g", i, x0);
            CHECK_MSG(c, near(hone_sampler_eps(p, i, x, x0), eps, 1e-12), "step %d: eps", i);
            CHECK_MSG(c, near(hone_sampler_mean(p, i, x, x0), mean, 1e-12), "step %d: mean", i);
            double raw = p->e_x[i] * x + p->e_o[i] * -3;
            CHECK_MSG(c, raw == -3, "step %d: raw eps %g", i, raw);
        }
        hone_sampler_destroy(p);
        p = hone_sampler_create(ctx, s, &(hone_sampler_options){.name = "ddim"}, NULL);
        CHECK(c, hone_sampler_x0(p, 0, 1, 0) > 400); /* no clamp unless asked for */
        hone_sampler_destroy(p);
    }
    if (check_case(c, "floors of std are kept apart and leave the mean")) {
        static const int touched[][2] = {{10, 1}, {20, 2}, {100, 21}}; /* steps below 0.1 */
        for (int r = 0; r < 3; r++) {
            hone_schedule *sr = named(ctx, NULL, touched[r][0]);
            hone_sampler *bare = hone_sampler_create(ctx, sr, &(hone_sampler_options){.name = "ddpm"}, NULL);
            hone_sampler *p = hone_sampler_create(
                ctx, sr, &(hone_sampler_options){.name = "ddpm", .min_std_sample = .1, .min_std_score = .04}, NULL);
            int n = 0;
            for (int i = 0; i < p->steps; i++) {
                n += p->std_sample[i] != p->std[i];
                CHECK(c, p->std_sample[i] == fmax(p->std[i], .1) && p->std_score[i] == fmax(p->std[i], .04));
                CHECK(c, p->c_x[i] == bare->c_x[i] && p->c_0[i] == bare->c_0[i] && p->std[i] == bare->std[i]);
            }
            CHECK_MSG(c, n == touched[r][1], "K %d: %d steps", p->steps, n);
            hone_sampler_destroy(p);
            hone_sampler_destroy(bare);
            hone_schedule_destroy(sr);
        }
    }
    hone_schedule_destroy(s);
}

void suite_sched(struct check *c)
{
    hone_ctx *ctx = hone_ctx_create(NULL, NULL);
    golden_cosine(c, ctx);
    golden_others(c, ctx);
    every_k(c, ctx);
    timesteps(c, ctx);
    golden_ddim(c, ctx);
    ddpm_forms(c, ctx);
    flow_formulas(c, ctx);
    clamp_and_floors(c, ctx);
    if (check_case(c, "nothing is left"))
        CHECK(c, hone_ctx_mem(ctx).live_bytes == 0);
    hone_ctx_destroy(ctx);
}
