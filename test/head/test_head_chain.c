/* The sampler loop, against closed forms. */
#include <math.h>
#include <string.h>

#include "head/exact.h"
#include "head/golden_chain.h"
#include "hone/random.h"

static const char *const params[] = {"epsilon", "x0", "v"};
enum { SAMPLES = 4000 };

static hone_schedule *cosine(struct kit *k, int steps)
{
    return hone_schedule_create(k->ctx, &(hone_schedule_options){.steps = steps}, &k->err);
}

/* Samples [SAMPLES, T, 1] of a sampler that the denoiser is exact for. */
static hone_program *samples(struct kit *k, const hone_sampler *p, struct exact *e, int64_t horizon)
{
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_sample_args a = {.sampler = p, .denoiser = exact_denoiser(e), .shape = HONE_SHAPE(SAMPLES, horizon, 1)};
    hone_output(hone_sample(g, &a), "x");
    return exact_run(k, g, NULL, 0);
}

static double share(const hone_program *p, double mode, double radius)
{
    int in = 0;
    for (int i = 0; p && i < SAMPLES; i++)
        in += fabs(fabs(exact_out(p, "x")[i]) - mode) < radius;
    return (double)in / SAMPLES;
}

static void bimodal_ddpm(struct check *c, struct kit *k)
{
    static const struct {
        int steps;
        double share;
    } rows[] = {{5, .76}, {10, .98}, {20, .999}};
    for (int i = 0; i < 9; i++) {
        const double want = rows[i / 3].share;
        if (!check_case(c, "ddpm, K %d, %s: share within 3 std of a mode", rows[i / 3].steps, params[i % 3]))
            continue;
        hone_schedule *s = cosine(k, rows[i / 3].steps);
        struct exact e = {.s = s, .param = params[i % 3], .mode = .6, .spread = .05};
        hone_sampler_options o = {.name = "ddpm", .param = e.param, .x0_clip = 1};
        hone_sampler *p = hone_sampler_create(k->ctx, s, &o, &k->err);
        hone_program *run = samples(k, p, &e, 1);
        double got = share(run, .6, .15);
        CHECK_MSG(c, fabs(got - want) <= .02, "%.4f, not %.3f %s", got, want, k->err.text);
        hone_program_destroy(run);
        hone_sampler_destroy(p);
        hone_schedule_destroy(s);
    }
}

static void bimodal_flow(struct check *c, struct kit *k)
{
    static const struct {
        const char *name;
        double eta, share;
    } rows[] = {{"flow-ode", 0, .995}, {"flow-sde", .5, .989}, {"flow-sde", .7, .949}, {"flow-cps", .5, .995}};
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        struct exact e = {.param = i % 2 ? "x0" : "velocity", .mode = .6, .spread = .05};
        if (!check_case(c, "%s, eta %g, %s: share within 3 std of a mode", rows[i / 2].name, rows[i / 2].eta, e.param))
            continue;
        hone_sampler_options o = {.name = rows[i / 2].name, .param = e.param, .steps = 10, .eta = rows[i / 2].eta};
        hone_sampler *p = hone_sampler_create(k->ctx, NULL, &o, &k->err);
        hone_program *run = samples(k, p, &e, 1);
        double got = share(run, .6, .15);
        CHECK_MSG(c, fabs(got - rows[i / 2].share) <= .02, "%.4f, not %.3f %s", got, rows[i / 2].share, k->err.text);
        hone_program_destroy(run);
        hone_sampler_destroy(p);
    }
}

/* One Gaussian: every step is a line plus noise, so mean and variance of the result are known in plain doubles. */
static void gaussian(struct check *c, struct kit *k)
{
    static const struct {
        const char *name, *spacing;
        int steps;
        double eta, near; /* near: to the data's own std, where there are many steps */
    } rows[] = {{"ddpm", "trailing", 100, 0, .06}, {"ddim", "trailing", 100, 0, .03}, {"ddim", "trailing", 100, 1, .06},
                {"ddim", "trailing", 10, .5, 0},   {"ddim", "leading", 20, 0, 0},     {"ddpm", "trailing", 25, 0, 0}};
    for (size_t i = 0; i < 3 * sizeof rows / sizeof rows[0]; i++) {
        if (!check_case(c, "%s %s, %d steps, eta %g, %s: mean and std of one Gaussian", rows[i / 3].name,
                        rows[i / 3].spacing, rows[i / 3].steps, rows[i / 3].eta, params[i % 3]))
            continue;
        hone_schedule *s = cosine(k, 100);
        struct exact e = {.s = s, .param = params[i % 3], .mean = .2, .spread = .3};
        hone_sampler_options o = {.name = rows[i / 3].name,
                                  .spacing = rows[i / 3].spacing,
                                  .param = e.param,
                                  .steps = rows[i / 3].steps,
                                  .eta = rows[i / 3].eta};
        hone_sampler *p = hone_sampler_create(k->ctx, s, &o, &k->err);
        double mean = 0, var = 1, sum = 0, square = 0, slope, offset;
        for (int j = 0; p && j < p->steps; j++) {
            exact_line(&e, p->alpha[j], p->sigma[j], &slope, &offset);
            double zero = hone_sampler_mean(p, j, 0, hone_sampler_x0(p, j, 0, offset));
            double one = hone_sampler_mean(p, j, 1, hone_sampler_x0(p, j, 1, slope + offset)) - zero;
            mean = one * mean + zero;
            var = one * one * var + p->std[j] * p->std[j];
        }
        hone_program *run = samples(k, p, &e, 4);
        for (int j = 0; run && j < 4 * SAMPLES; j++) {
            sum += exact_out(run, "x")[j];
            square += (double)exact_out(run, "x")[j] * exact_out(run, "x")[j];
        }
        double got = sum / (4 * SAMPLES), std = sqrt(square / (4 * SAMPLES) - got * got);
        CHECK_MSG(c, fabs(got - mean) < .01 && fabs(std / sqrt(var) - 1) < .02, "%g ± %g, not %g ± %g %s", got, std,
                  mean, sqrt(var), k->err.text);
        if (rows[i / 3].near > 0)
            CHECK_MSG(c, fabs(mean - .2) < .01 && fabs(sqrt(var) / .3 - 1) < rows[i / 3].near, "%g ± %g", mean,
                      sqrt(var));
        hone_program_destroy(run);
        hone_sampler_destroy(p);
        hone_schedule_destroy(s);
    }
}

/* --- data that are always the same --- */

#define ALWAYS (-.37)

/* A perfect network for them: x0 = ALWAYS, whatever x is. */
static void constant_data(struct check *c, struct kit *k)
{
    enum { K = 12, B = 3 };
    if (!check_case(c, "constant data come back exactly, for any S"))
        return;
    hone_schedule *s = cosine(k, K);
    for (int i = 0; i < 9 * K; i++) {
        static const struct {
            const char *name;
            double eta;
        } rows[] = {{"ddpm", 0}, {"ddim", 0}, {"ddim", 1}};
        struct exact e = {.s = s, .param = params[i % 3], .mean = ALWAYS};
        hone_sampler_options o = {.name = rows[i / 3 % 3].name,
                                  .param = e.param,
                                  .steps = 1 + i / 9,
                                  .eta = rows[i / 3 % 3].eta,
                                  .x0_clip = i / 9 % 2};
        hone_sampler *p = hone_sampler_create(k->ctx, s, &o, &k->err);
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_sample_args a = {.sampler = p, .denoiser = exact_denoiser(&e), .shape = HONE_SHAPE(B, 2, 1)};
        hone_output(hone_sample(g, &a), "x");
        hone_program *run = exact_run(k, g, NULL, 0);
        if (CHECK_MSG(c, run != NULL, "%s: %s", k->err.where, k->err.text))
            for (int j = 0; j < 2 * B; j++) {
                float x = exact_out(run, "x")[j];
                CHECK_MSG(c, i % 3 == 1 ? x == (float)ALWAYS : fabs(x - ALWAYS) < 1e-4, "%s %s, %d steps: %.9g", o.name,
                          o.param, o.steps, x);
            }
        hone_program_destroy(run);
        hone_sampler_destroy(p);
    }
    hone_schedule_destroy(s);
}

/* --- given noise, step by step --- */

enum { B = 2, T = 3, A = 2, S = 6, N = B * T * A };

/* Everything told by hand: x_K and z given, states read, against the reference of hone/sched.h. */
static void given_noise(struct check *c, struct kit *k)
{
    static const hone_sampler_options rows[] = {
        {.name = "ddpm", .steps = S, .x0_clip = .4, .min_std_sample = .3},
        {.name = "ddim", .steps = S, .eta = .7, .param = "v"},
        {.name = "ddim", .steps = S, .param = "x0", .x0_clip = .4},
        {.name = "flow-sde", .steps = S, .eta = .5},
        {.name = "flow-cps", .steps = S, .eta = .5, .x0_clip = .4},
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        const hone_sampler_options *o = &rows[i / 2];
        const bool explore = i % 2;
        if (!check_case(c, "%s: every state, noise given%s", o->name, explore ? ", with floors" : ""))
            continue;
        hone_schedule *s = cosine(k, 20);
        hone_sampler *p = hone_sampler_create(k->ctx, s, o, &k->err);

        struct exact e = {.s = o->name[0] == 'f' ? NULL : s, .param = p->param, .mean = .2, .spread = .6};
        float start[N], z[S * N];
        hone_fill_normal(start, N, 5, 0, 0, 0);
        hone_fill_normal(z, S * N, 5, 1, 0, 0);
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_t states[S + 1];
        hone_sample_args a = {.sampler = p,
                              .denoiser = exact_denoiser(&e),
                              .start = hone_input(g, "start", HONE_F32, HONE_SHAPE(B, T, A)),
                              .noise = hone_input(g, "z", HONE_F32, HONE_SHAPE(S, B, T, A)),
                              .std = explore ? HONE_SAMPLE_EXPLORE : HONE_SAMPLE_PLAIN,
                              .unroll = true,
                              .states = states};
        hone_t x = hone_sample(g, &a);
        CHECK(c, states[S].id == x.id && states[0].id == a.start.id);
        for (int j = 0; j <= S; j++)
            hone_output(states[j], (char[]){(char)('0' + j), 0});
        a.unroll = false;
        a.states = NULL;
        hone_output(hone_sample(g, &a), "repeated");
        hone_output(a.noise, "z"); /* or it would be left out where there is no noise */
        hone_program *run = exact_run(k, g, (const void *[]){start, z}, 0);
        if (!CHECK_MSG(c, run != NULL, "%s: %s", k->err.where, k->err.text))
            continue;
        for (int n = 0; n < N; n++) {
            double now = start[n], slope, offset;
            for (int j = 0; j < S; j++) {
                exact_line(&e, p->alpha[j], p->sigma[j], &slope, &offset);
                double std = explore ? p->std_sample[j] : p->std[j];
                now =
                    hone_sampler_mean(p, j, now, hone_sampler_x0(p, j, now, slope * now + offset)) + std * z[j * N + n];
                float got = exact_out(run, (char[]){(char)('1' + j), 0})[n];
                CHECK_MSG(c, fabs(got - now) < 2e-5, "step %d: %.8g, not %.8g", j, got, now);
            }
            CHECK(c, exact_out(run, "repeated")[n] == exact_out(run, (char[]){'0' + S, 0})[n]);
        }
        hone_program_destroy(run);
        hone_sampler_destroy(p);
        hone_schedule_destroy(s);
    }
}

/* --- gradients --- */

static hone_t scaled(void *user, hone_t x, hone_t t, hone_t cond)
{
    (void)t;
    (void)cond;
    return hone_mul(x, *(hone_t *)user);
}

/* out = w x with x0 prediction: x_S = Π (c_x + c_0 w) x, so the gradient by w is known; and what cutting leaves of it.
 */
static void gradients(struct check *c, struct kit *k)
{
    static const struct {
        const char *name;
        int last, segment, from; /* from: the first step that the gradient reaches */
    } rows[] = {{"all", 0, 0, 0}, {"last 3", 3, 0, S - 3}, {"segments of 4", 0, 4, 4}};
    const float w = .3f;
    float start[N];
    hone_fill_normal(start, N, 5, 0, 0, 0);
    hone_schedule *s = cosine(k, 20);
    hone_sampler *p = hone_sampler_create(k->ctx, s, &(hone_sampler_options){.param = "x0", .steps = S}, &k->err);
    for (int i = 0; i < 3 && p; i++) {
        if (!check_case(c, "gradient through a chain: %s", rows[i].name))
            continue;
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_t wt = hone_input(g, "w", HONE_F32, HONE_SCALAR), x = hone_input(g, "x", HONE_F32, HONE_SHAPE(B, T, A));
        hone_sample_args a = {.sampler = p,
                              .denoiser = {scaled, &wt},
                              .start = x,
                              .unroll = true,
                              .grad_last = rows[i].last,
                              .segment = rows[i].segment};
        hone_t d[2], by[2] = {wt, x};
        hone_gradients(hone_sum(hone_sample(g, &a), HONE_AXES_ALL, false), by, 2, d);
        hone_output(d[0], "dw");
        hone_output(d[1], "dx");
        hone_program *run = exact_run(k, g, (const void *[]){&w, start}, 0);
        double dw = 0, all = 1, sum = 0;
        for (int n = 0; n < N; n++)
            sum += start[n];
        for (int j = 0; j < S; j++)
            all *= p->c_x[j] + p->c_0[j] * w;
        for (int j = rows[i].from; j < S; j++)
            dw += all / (p->c_x[j] + p->c_0[j] * w) * p->c_0[j] * sum;
        if (CHECK_MSG(c, run != NULL, "%s: %s", k->err.where, k->err.text)) {
            CHECK_MSG(c, fabs(exact_out(run, "dw")[0] - dw) < 1e-5 * fabs(dw), "%g, not %g", exact_out(run, "dw")[0],
                      dw);
            for (int n = 0; n < N; n++)
                CHECK(c, fabs(exact_out(run, "dx")[n] - (rows[i].from ? 0 : all)) < 1e-6);
        }
        hone_program_destroy(run);
    }
    hone_sampler_destroy(p);
    hone_schedule_destroy(s);
}

/* --- streams --- */

static void streams(struct check *c, struct kit *k)
{
    if (!check_case(c, "what is drawn depends on seed, run and stream, and is the same unrolled"))
        return;
    hone_schedule *s = cosine(k, 20);
    hone_sampler *p = hone_sampler_create(k->ctx, s, &(hone_sampler_options){.name = "ddpm", .x0_clip = 1}, &k->err);
    struct exact e = {.s = s, .param = "epsilon", .mode = .6, .spread = .05};
    float out[3][N];
    for (int i = 0; i < 3; i++) {
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_sample_args a = {.sampler = p,
                              .denoiser = exact_denoiser(&e),
                              .shape = HONE_SHAPE(B, T, A),
                              .unroll = i == 1,
                              .stream = i == 2 ? "other" : NULL};
        hone_output(hone_sample(g, &a), "x");
        hone_program *run = exact_run(k, g, NULL, 7);
        if (CHECK_MSG(c, run != NULL, "%s: %s", k->err.where, k->err.text))
            memcpy(out[i], exact_out(run, "x"), sizeof out[i]);
        if (i == 0 && run) {
            CHECK(c, kit_run(k, run, NULL, NULL, 8) && memcmp(out[0], exact_out(run, "x"), sizeof out[0]) != 0);
            CHECK(c, kit_run(k, run, NULL, NULL, 7) && !memcmp(out[0], exact_out(run, "x"), sizeof out[0]));
        }
        hone_program_destroy(run);
    }
    CHECK(c, !memcmp(out[0], out[1], sizeof out[0]) && memcmp(out[0], out[2], sizeof out[0]) != 0);
    hone_sampler_destroy(p);
    hone_schedule_destroy(s);
}

void suite_head_chain(struct check *c)
{
    struct kit k;
    kit_open(&k, NULL);
    bimodal_ddpm(c, &k);
    bimodal_flow(c, &k);
    gaussian(c, &k);
    constant_data(c, &k);
    given_noise(c, &k);
    gradients(c, &k);
    streams(c, &k);
    golden_chains(c);
    if (check_case(c, "nothing leaks, no error is left")) {
        CHECK_MSG(c, k.err.code == HONE_OK, "%s: %s", k.err.where, k.err.text);
        kit_close(&k, c);
    } else {
        kit_close(&k, &(struct check){.open = 1});
    }
}
