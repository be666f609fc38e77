/* Parameterisations, loss weights, schedules as plain data, rates, refusals, no memory. */
#include <math.h>
#include <stdlib.h>
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

/* --- parameterisations and weights --- */

static void identities(struct check *c)
{
    if (!check_case(c, "parameterisations: identities, and each is its own inverse"))
        return;
    for (int k = 1; k < 60; k++) {
        double s = sin(k / 40.0), a = cos(k / 40.0), x0 = .37, eps = -1.2, x = a * x0 + s * eps, v = a * eps - s * x0;
        CHECK(c, near(a * x - s * v, x0, 1e-14) && near(s * x + a * v, eps, 1e-14));
        for (int row = 0; hone_param_name(row); row++) {
            const char *name = hone_param_name(row);
            bool flow = !strcmp(name, "velocity");
            double al = flow ? 1 - s : a, xx = flow ? al * x0 + s * eps : x, err = 1e-3;
            hone_param_row r;
            if (!CHECK_MSG(c, hone_param_at(name, al, s, &r, NULL) == HONE_OK, "%s", name))
                continue;
            double out = r.q_0 * x0 + r.q_e * eps;
            CHECK_MSG(c, near(r.p_x * xx + r.p_o * out, x0, 1e-12), "%s: x0", name);
            CHECK_MSG(c, near(r.e_x * xx + r.e_o * out, eps, 1e-12), "%s: eps", name);
            CHECK_MSG(c, near(r.p_o * r.p_o * r.gain, 1, 1e-12), "%s: gain", name);
            /* an error of the output moves x̂0 and ε̂ along α dx0 + σ dε = 0 */
            CHECK_MSG(c, near(al * r.p_o * err + s * r.e_o * err, 0, 1e-14), "%s: direction", name);
            if (!strcmp(name, "v"))
                CHECK(c, near(out, v, 1e-14) && near(r.gain, a * a / (s * s) + 1, 1e-9));
            if (flow)
                CHECK(c, near(out, eps - x0, 1e-14));
        }
    }
    hone_param_row r;
    hone_err e = {0};
    CHECK(c, hone_param_at("epsilon", 0, 1, &r, NULL) == HONE_E_ARG);
    CHECK(c, hone_param_at("v", .5, .5, &r, NULL) == HONE_E_ARG && hone_param_at("v", .6, .8, &r, NULL) == HONE_OK);
    CHECK(c, hone_param_at("velocity", 0, 1, &r, NULL) == HONE_OK && hone_param_at("x0", 1, 0, &r, NULL) == HONE_E_ARG);
    CHECK(c, hone_param_at("x0", NAN, 1, &r, &e) == HONE_E_ARG && strstr(e.text, "got alpha nan"));
}

static void weights(struct check *c, hone_ctx *ctx)
{
    static const char *const params[] = {"epsilon", "x0", "v"};
    if (!check_case(c, "loss weights and the arrays of training"))
        return;
    hone_schedule *s = named(ctx, NULL, 20);
    for (int q = 0; q < 3; q++)
        for (int row = 0; hone_loss_name(row); row++) {
            hone_loss_options lo = {.name = hone_loss_name(row), .lambda = .3};
            hone_err e = {0};
            double w[20];
            bool refused = q == 0 && !strcmp(lo.name, "mixed");
            hone_objective *o = hone_objective_create(ctx, s, params[q], &lo, &e);
            CHECK_MSG(c,
                      (o == NULL) == refused && (hone_loss_weights(s, params[q], &lo, w, NULL) != HONE_OK) == refused,
                      "%s %s", params[q], lo.name);
            CHECK(c, !refused || strstr(e.text, "wants the parameterisation x0 or v; got epsilon"));
            for (int t = 0; o && t < 20; t++) {
                double a2 = s->alpha_bar[t], snr = a2 / (1 - a2), gain = q == 0 ? snr : q == 1 ? 1 : snr + 1;
                double e0 = row == 0 ? gain : row == 1 ? fmin(snr, 5) : fmin(.3 * snr + .7, 5);
                CHECK_MSG(c, near(o->weight[t] * gain / e0, 1, 1e-10) && w[t] == o->weight[t], "%s %s t %d: %g",
                          o->param, o->loss, t, o->weight[t]);
                CHECK(c, near(o->alpha[t] * o->alpha[t], a2, 1e-15) && near(o->sigma[t] * o->sigma[t], 1 - a2, 1e-15));
                double x = o->alpha[t] * .4 + o->sigma[t] * 2, out = o->q_0[t] * .4 + o->q_e[t] * 2;
                CHECK(c, near(o->p_x[t] * x + o->p_o[t] * out, .4, 1e-9));
                CHECK(c, near(o->e_x[t] * x + o->e_o[t] * out, 2, 1e-9));
            }
            hone_objective_destroy(o);
        }
    double w[20];
    CHECK(c, hone_loss_weights(s, NULL, NULL, w, NULL) == HONE_OK && w[0] == 1 && w[19] == 1);
    CHECK(c, hone_loss_weights(s, "x0", &(hone_loss_options){.name = "mixed", .lambda = 1, .w_max = 7}, w, NULL) == 0);
    CHECK(c, w[0] == 7 && near(w[19] / 6.0596e-6, 1, 1e-4));
    CHECK(c,
          hone_loss_weights(s, "x0", &(hone_loss_options){.name = "min-snr", .gamma = 2}, w, NULL) == 0 && w[0] == 2);
    hone_schedule_destroy(s);
}

/* --- checkpoints --- */

static void give_and_take(struct check *c, hone_ctx *ctx)
{
    if (!check_case(c, "give and take: bit by bit, and refusals"))
        return;
    hone_schedule *s = named(ctx, "cosine", 20);
    hone_schedule_data d = hone_schedule_give(s);
    hone_schedule *r = hone_schedule_take(ctx, &d, NULL);
    CHECK(c, r && r != s && r->steps == 20 && !strcmp(r->name, "cosine"));
    CHECK(c, r && r->beta != s->beta && !memcmp(r->beta, s->beta, 20 * sizeof(double)) &&
                 !memcmp(r->alpha_bar, s->alpha_bar, 20 * sizeof(double)));
    hone_schedule_destroy(r);
    for (int fault = 0; fault < 12; fault++) {
        double beta[20], bar[20];
        hone_err e = {0};
        memcpy(beta, s->beta, sizeof beta);
        memcpy(bar, s->alpha_bar, sizeof bar);
        d = (hone_schedule_data){"cosine", 20, beta, bar, 20, 20};
        switch (fault) {
        case 0:
            bar[7] = bar[6];
            break;
        case 1:
            bar[19] = 0;
            break;
        case 2:
            bar[0] = 1;
            break;
        case 3:
            bar[3] = NAN;
            break;
        case 4:
            beta[5] *= 1.01;
            break;
        case 5:
            d.alpha_bar_count = 19;
            break;
        case 6:
            d.steps = 0, d.beta_count = d.alpha_bar_count = 0;
            break;
        case 7:
            d.steps = (int64_t)1 << 40;
            break;
        case 8:
            d.name = "";
            break;
        case 9:
            d.name = "a name that is longer than a name may be";
            break;
        case 10:
            beta[2] = INFINITY;
            break;
        case 11:
            d.beta = NULL;
            break;
        }
        CHECK_MSG(c, !hone_schedule_take(ctx, &d, &e) && e.code == HONE_E_FORMAT && e.text[0], "fault %d", fault);
    }
    /* arrays that were computed in float, as other programs store them, under a name of their own */
    double beta[20], bar[20];
    float product = 1;
    for (int t = 0; t < 20; t++) {
        beta[t] = (float)s->beta[t];
        product *= 1 - (float)s->beta[t];
        bar[t] = product;
    }
    d = (hone_schedule_data){"squaredcos_cap_v2", 20, beta, bar, 20, 20};
    r = hone_schedule_take(ctx, &d, NULL);
    CHECK(c, r && r->alpha_bar[10] == bar[10] && !strcmp(r->name, "squaredcos_cap_v2"));
    hone_schedule_destroy(r);
    hone_schedule_destroy(s);
}

/* --- rates --- */

static void rates(struct check *c)
{
    if (check_case(c, "learning rate")) {
        hone_lr_options o = {.lr = 2e-4, .warmup = 4};
        CHECK(c, near(hone_lr_at(&o, 0), 2e-4 / 5, 1e-18) && near(hone_lr_at(&o, 3), 2e-4 * 4 / 5, 1e-18));
        CHECK(c, hone_lr_at(&o, 4) == 2e-4 && hone_lr_at(&o, INT64_MAX) == 2e-4);
        CHECK(c, hone_lr_at(&o, -7) == hone_lr_at(&o, 0));
        o.warmup = 0;
        CHECK(c, hone_lr_at(&o, 0) == 2e-4);
        o = (hone_lr_options){"cosine", 1e-3, 1e-4, 10, 110};
        CHECK(c, hone_lr_at(&o, 10) == 1e-3 && hone_lr_at(&o, 110) == 1e-4 && hone_lr_at(&o, 5000) == 1e-4);
        CHECK(c, near(hone_lr_at(&o, 60), (1e-3 + 1e-4) / 2, 1e-15));
        CHECK(c, near(hone_lr_at(&o, 35), 1e-4 + 9e-4 * (1 + sqrt(.5)) / 2, 1e-15));
        for (int64_t i = 0; i < 120; i++) {
            double a = hone_lr_at(&o, i), b = hone_lr_at(&o, i + 1);
            CHECK_MSG(c, a > 0 && (i < 10 ? b > a : i < 110 ? b < a : b == a), "step %d", (int)i);
        }
        o = (hone_lr_options){"cosine", 1e-3, 0, 0, 1};
        CHECK(c, hone_lr_at(&o, 0) == 1e-3 && hone_lr_at(&o, 1) == 0);
    }
    if (check_case(c, "learning rate: refusals")) {
        static const struct {
            hone_lr_options o;
            const char *text;
        } bad[] = {
            {{.lr = 0}, "lr must be above 0; got 0"},
            {{.lr = NAN}, "lr must be above 0; got nan"},
            {{.lr = 1, .warmup = -1}, "warmup must be >= 0 steps; got -1"},
            {{.lr = 1, .total = 5}, "constant has no floor and no total; got 0 and 5"},
            {{.lr = 1, .floor = .5}, "constant has no floor and no total; got 0.5 and 0"},
            {{"cosine", 1, 2, 0, 5}, "floor must be in [0, lr]; got 2"},
            {{"cosine", 1, NAN, 0, 5}, "floor must be in [0, lr]; got nan"},
            {{"cosine", 1, 0, 5, 5}, "total must be above warmup, 5 steps; got 5"},
            {{"cosin", 1, 0, 5, 6}, "constant, cosine; got \"cosin\"; did you mean \"cosine\"?"},
        };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            hone_err e = {0};
            CHECK(c, hone_lr_check(&bad[i].o, &e) == HONE_E_ARG && hone_lr_at(&bad[i].o, 3) == 0);
            CHECK_MSG(c, strstr(e.text, bad[i].text), "\"%s\"", e.text);
        }
    }
    if (check_case(c, "averaging decay")) {
        CHECK(c, hone_average_decay(.995, 0) == .1 && near(hone_average_decay(.995, 8), .5, 1e-15));
        CHECK(c, hone_average_decay(.995, 100000) == .995 && hone_average_decay(.995, -3) == .1);
        CHECK(c, hone_average_decay(.05, 0) == .05);
    }
    if (check_case(c, "clip range: one step, rate 0, large rate")) {
        CHECK(c,
              hone_clip_range(.001, .01, 3, 0, 10) == .001 && near(hone_clip_range(.001, .01, 3, 9, 10), .01, 1e-15));
        CHECK(c, near(hone_clip_range(.001, .01, 3, 5, 11), .001 + .009 * expm1(1.5) / expm1(3), 1e-15));
        CHECK(c, hone_clip_range(.001, .01, 3, 0, 1) == .01); /* not 0/0 */
        CHECK(c,
              near(hone_clip_range(0, 1, 0, 1, 5), .25, 1e-15) && near(hone_clip_range(0, 1, 1e-9, 1, 5), .25, 1e-8));
        CHECK(c, near(hone_clip_range(0, 1, 5000, 4, 5), 1, 1e-15) && near(hone_clip_range(0, 1, 5000, 3, 5), 0, 1e-9));
        CHECK(c, near(hone_clip_range(0, 1, 699, 3, 5), hone_clip_range(0, 1, 701, 3, 5), 1e-60));
        CHECK(c, hone_clip_range(.1, .2, 3, -4, 5) == .1 && hone_clip_range(.1, .2, 3, 9, 5) == .2);
    }
}

/* --- refusals --- */

static void refuse_schedules(struct check *c, hone_ctx *ctx)
{
    static const struct {
        hone_schedule_options o;
        const char *text;
    } bad[] = {
        {{"cosinus", 10, 0, 0, 0}, "cosine, linear, scaled_linear, vp; got \"cosinus\"; did you mean \"cosine\"?"},
        {{"", 10, 0, 0, 0}, "got \"\""},
        {{NULL, 0, 0, 0, 0}, "steps must be 1 to 1000; got 0"},
        {{NULL, 1001, 0, 0, 0}, "steps must be 1 to 1000; got 1001"},
        {{NULL, 10, .1, .2, 0}, "0 (cosine has none); got 0.1 and 0.2"},
        {{NULL, 10, NAN, 0, 0}, "0 (cosine has none); got nan and 0"},
        {{"linear", 10, .2, .1, 0}, "in (0, 0.999], beta_start <= beta_end; got 0.2 and 0.1"},
        {{"linear", 10, 0, .1, 0}, "got 0 and 0.1"},
        {{"linear", 10, .1, 1, 0}, "got 0.1 and 1"},
        {{"linear", 10, .1, NAN, 0}, "got 0.1 and nan"},
        {{"linear", 40, .9, .9, 0}, "stay above 1e-30; got 1e-30 after beta 0.9 at timestep 29"},
        {{"linear", 10, 1e-20, 1e-20, 0}, "must fall strictly"},
        {{"vp", 10, .1, 2000, 0}, "in (0, 1000], beta_start <= beta_end; got 0.1 and 2000"},
        {{"vp", 1000, 1000, 1000, 0}, "stay above 1e-30"},
        {{"vp", 10, 0, 0, 1}, "rescale is for linear and scaled_linear; got vp"},
    };
    if (!check_case(c, "schedules that are refused"))
        return;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hone_err e = {0};
        CHECK_MSG(c, !hone_schedule_create(ctx, &bad[i].o, &e) && e.code == HONE_E_ARG && strstr(e.text, bad[i].text),
                  "%zu: \"%s\"", i, e.text);
    }
    hone_err e = {.code = HONE_E_IO};
    CHECK(c, !hone_schedule_create(ctx, &(hone_schedule_options){.steps = 3}, &e) && e.code == HONE_E_IO);
}

static void refuse_samplers(struct check *c, hone_ctx *ctx)
{
    static const struct {
        hone_sampler_options o; /* name, spacing, param, steps, eta, x0_clip, floors */
        const char *text;
    } bad[] = {
        {{"dddim", 0, 0, 5, 0, 0, 0, 0},
         "ddpm, ddim, flow-ode, flow-sde, flow-cps; got \"dddim\"; did you mean \"ddim\"?"},
        {{"ddim", 0, 0, 21, 0, 0, 0, 0}, "steps must be 1 to the 20 of the schedule, or 0 for all; got 21"},
        {{"ddim", 0, 0, -1, 0, 0, 0, 0}, "got -1"},
        {{"ddim", 0, 0, 5, 1.01, 0, 0, 0}, "eta of ddim must be in [0, 1]; got 1.01"},
        {{"ddim", 0, 0, 5, -.1, 0, 0, 0}, "got -0.1"},
        {{"ddim", 0, 0, 5, NAN, 0, 0, 0}, "got nan"},
        {{"ddpm", 0, 0, 5, 1, 0, 0, 0}, "eta of ddpm must be in [0, 0]; got 1"},
        {{"ddim", "trail", 0, 5, 0, 0, 0, 0}, "trailing, leading; got \"trail\""},
        {{"ddim", 0, "eps", 5, 0, 0, 0, 0}, "epsilon, x0, v, velocity; got \"eps\""},
        {{"ddim", 0, "velocity", 5, 0, 0, 0, 0}, "must be epsilon, x0 or v; got velocity"},
        {{"ddim", 0, 0, 5, 0, -1, 0, 0}, "x0_clip must be >= 0 (0: no clamp); got -1"},
        {{"ddim", 0, 0, 5, 0, INFINITY, 0, 0}, "got inf"},
        {{"ddim", 0, 0, 5, 0, 0, -1, 0}, "min_std_sample must be >= 0; got -1"},
        {{"ddim", 0, 0, 5, 0, 0, 0, NAN}, "min_std_score must be >= 0; got nan"},
        {{"flow-ode", 0, 0, 0, 0, 0, 0, 0}, "steps must be 1 to 1000; got 0"},
        {{"flow-ode", 0, 0, 1001, 0, 0, 0, 0}, "got 1001"},
        {{"flow-ode", "trailing", 0, 5, 0, 0, 0, 0}, "flow-ode has no spacing; got \"trailing\""},
        {{"flow_sde", 0, "epsilon", 5, 0, 0, 0, 0}, "must be velocity or x0; got epsilon"},
        {{"flow-sde", 0, 0, 5, 2.1, 0, 0, 0}, "in [0, 2]; got 2.1"},
        {{"flow-cps", 0, 0, 5, 1.1, 0, 0, 0}, "in [0, 1]; got 1.1"},
    };
    if (!check_case(c, "samplers and losses that are refused"))
        return;
    hone_schedule *s = named(ctx, NULL, 20);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hone_err e = {0};
        CHECK_MSG(c, !hone_sampler_create(ctx, s, &bad[i].o, &e) && e.code == HONE_E_ARG && strstr(e.text, bad[i].text),
                  "%zu: \"%s\"", i, e.text);
    }
    hone_err e = {0};
    CHECK(c, !hone_sampler_create(ctx, NULL, &(hone_sampler_options){.steps = 5}, &e));
    CHECK_MSG(c, strstr(e.text, "ddim wants a noise schedule; got none"), "%s", e.text);
    static const hone_loss_options loss[] = {{"min", 0, 0, 0},      {"mixed", 0, 1.5, 0}, {"mixed", 0, NAN, 0},
                                             {"min_snr", -1, 0, 0}, {"mixed", 0, .5, -2}, {"min_snr", INFINITY, 0, 0}};
    for (size_t i = 0; i < sizeof loss / sizeof loss[0]; i++) {
        double w[20];
        CHECK_MSG(c, !hone_objective_create(ctx, s, "x0", &loss[i], NULL), "loss %zu", i);
        CHECK_MSG(c, hone_loss_weights(s, "x0", &loss[i], w, NULL) == HONE_E_ARG, "loss %zu", i);
    }
    CHECK(c, !hone_objective_create(ctx, s, "velocity", NULL, NULL));
    hone_schedule_destroy(s);
}

/* --- no memory --- */

struct failing {
    int left; /* allocations until one fails */
};

static void *fail_alloc(void *user, size_t n)
{
    struct failing *f = user;
    return f->left-- > 0 ? malloc(n) : NULL;
}

static void fail_release(void *user, void *p)
{
    (void)user;
    free(p);
}

static void no_memory(struct check *c)
{
    if (!check_case(c, "the n-th allocation fails"))
        return;
    int n = 0;
    for (bool done = false; !done && n < 20; n++) {
        struct failing f = {.left = 1 << 20};
        hone_ctx *ctx =
            hone_ctx_create(&(hone_ctx_options){.allocator = &(hone_allocator){fail_alloc, fail_release, &f}}, NULL);
        hone_err e = {0};
        f.left = n;
        hone_schedule *s = hone_schedule_create(ctx, &(hone_schedule_options){.steps = 7}, &e), *r = NULL;
        hone_objective *o = NULL;
        hone_sampler *p = NULL, *q = NULL;
        if (s) {
            hone_schedule_data d = hone_schedule_give(s);
            r = hone_schedule_take(ctx, &d, &e);
            o = hone_objective_create(ctx, s, NULL, NULL, &e);
            p = hone_sampler_create(ctx, s, &(hone_sampler_options){0}, &e);
            q = hone_sampler_create(ctx, NULL, &(hone_sampler_options){.name = "flow-ode", .steps = 3}, &e);
        }
        done = s && r && o && p && q;
        CHECK_MSG(c, done ? e.code == HONE_OK : e.code == HONE_E_NOMEM && e.text[0], "n %d: %s", n, e.text);
        hone_sampler_destroy(q);
        hone_sampler_destroy(p);
        hone_objective_destroy(o);
        hone_schedule_destroy(r);
        hone_schedule_destroy(s);
        CHECK(c, hone_ctx_mem(ctx).live_bytes == 0);
        hone_ctx_destroy(ctx);
    }
    CHECK_MSG(c, n == 6, "%d rounds", n); /* five objects, one block each */
    hone_schedule_destroy(NULL);
    hone_objective_destroy(NULL);
    hone_sampler_destroy(NULL);
}

void suite_sched_rows(struct check *c)
{
    hone_ctx *ctx = hone_ctx_create(NULL, NULL);
    identities(c);
    weights(c, ctx);
    give_and_take(c, ctx);
    rates(c);
    refuse_schedules(c, ctx);
    refuse_samplers(c, ctx);
    no_memory(c);
    if (check_case(c, "nothing is left"))
        CHECK(c, hone_ctx_mem(ctx).live_bytes == 0);
    hone_ctx_destroy(ctx);
}
