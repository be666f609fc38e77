/* Denoisers, guidance, the training objective, settings. */
#include <math.h>
#include <string.h>

#include "head/exact.h"
#include "head/two_head.h"
#include "hone/random.h"

static const char *const params[] = {"epsilon", "x0", "v"};
static const char *const losses[] = {"uniform", "min_snr", "mixed"};

static hone_schedule *cosine(struct kit *k, int steps)
{
    return hone_schedule_create(k->ctx, &(hone_schedule_options){.steps = steps}, &k->err);
}

static hone_objective *objective(struct kit *k, const hone_schedule *s, const char *param, const char *loss)
{
    return hone_objective_create(k->ctx, s, param, &(hone_loss_options){.name = loss, .lambda = .4}, &k->err);
}

/* --- the objective on data that are one Gaussian --- */

/* `e`, with its answer stretched. */
struct stretched {
    hone_denoiser inner;
    double by;
};

static hone_t stretch(void *user, hone_t x, hone_t t, hone_t cond)
{
    struct stretched *s = user;
    return hone_affine(hone_denoise(s->inner, x, t, cond), s->by, 0);
}

enum { MANY = 40000 };

static double measured(struct kit *k, const hone_objective *o, struct exact *e, double by)
{
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    struct stretched st = {exact_denoiser(e), by};
    hone_t x0 = hone_affine(hone_random_normal(g, "data", HONE_SHAPE(MANY, 2, 2)), e->spread, e->mean);
    hone_output(hone_diffusion_objective(o, (hone_denoiser){stretch, &st}, &(hone_diffusion_batch){.x0 = x0}).loss,
                "loss");
    hone_program *p = exact_run(k, g, NULL, 0);
    double loss = p ? exact_out(p, "loss")[0] : NAN;
    hone_program_destroy(p);
    return loss;
}

static void least_loss(struct check *c, struct kit *k)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            if (j == 2 && i == 0) /* mixed wants x0 or v */
                continue;
            if (!check_case(c, "%s, %s: the exact denoiser has the least loss there is", params[i], losses[j]))
                continue;
            hone_schedule *s = cosine(k, 50);
            hone_objective *o = objective(k, s, params[i], losses[j]);
            struct exact e = {.s = s, .param = params[i], .mean = .2, .spread = .5};
            double want = 0;
            for (int t = 0; o && t < s->steps; t++) {
                double a = sqrt(s->alpha_bar[t]), b = sqrt(1 - s->alpha_bar[t]), x0 = exact_least(&e, a, b);
                /* the error of the output from that of x̂0, by the formulas of the objectives */
                double out = i == 0 ? x0 * a * a / (b * b) : i == 1 ? x0 : x0 / (b * b), snr = a * a / (b * b);
                double w = j == 1 ? fmin(snr, 5) : fmin(.4 * snr + .6, 5);
                want += (j == 0 ? out : w * x0) / s->steps;
            }
            double got = measured(k, o, &e, 1);
            CHECK_MSG(c, fabs(got - want) < .02 * want, "%g, not %g", got, want);
            for (double by = .7; by < 1.5; by += .6) /* on the same draws */
                CHECK_MSG(c, measured(k, o, &e, by) > 1.02 * got, "stretched by %g: no worse", by);
            hone_objective_destroy(o);
            hone_schedule_destroy(s);
        }
    if (check_case(c, "flow: the exact denoiser has the least loss there is")) {
        struct exact e = {.param = "velocity", .mean = .2, .spread = .5};
        double want = 0;
        for (int i = 0; i < 10000; i++) /* velocity error = x̂0 error / t² */
            want += exact_least(&e, 1 - (i + .5) / 1e4, (i + .5) / 1e4) / ((i + .5) * (i + .5) / 1e8) / 1e4;
        double got = measured(k, NULL, &e, 1), worse = measured(k, NULL, &e, 1.1);
        CHECK_MSG(c, fabs(got - want) < .02 * want && worse > 1.005 * want, "%g and %g, not %g", got, worse, want);
    }
}

/* --- the objective's parts on given numbers --- */

enum { B = 4, T = 3, A = 2, C = 3, K = 10, N = B * T * A };

struct given {
    float x0[N], noise[N], cond[B * C], uniform[B], scale[B];
    uint8_t mask[B * T];
    int32_t t[B];
};

static struct given numbers(void)
{
    struct given v = {.uniform = {.2f, .31f, .29f, .9f}, .scale = {1, .5f, 2, 0}, .t = {0, 9, 4, 6}};
    hone_fill_normal(v.x0, N, 1, hone_stream("x0"), 0, 0);
    hone_fill_normal(v.noise, N, 1, hone_stream("noise"), 0, 0);
    hone_fill_normal(v.cond, B * C, 1, hone_stream("cond"), 0, 0);
    for (int i = 0; i < B * T; i++)
        v.mask[i] = i < T || (i % T < 2 && i < 3 * T); /* sample 0 whole, 1 and 2 without the last, 3 not at all */
    return v;
}

static const float null_token[2] = {7, -3};

/* out = x + t / 10 + sum of cond, told apart for each sample */
static hone_t plain_net(void *user, hone_t x, hone_t t, hone_t cond)
{
    int *calls = user;
    hone_shape s = hone_type_of(x).shape;
    if (calls)
        ++*calls;
    hone_t shift = hone_affine(hone_reshape(t, HONE_SHAPE(hone_type_of(t).shape.rank ? s.dim[0] : 1, 1, 1)), .1, 0);
    hone_t y = hone_add(x, shift);
    if (cond.g)
        y = hone_add(y, hone_reshape(hone_sum(cond, HONE_AXIS(1), false), HONE_SHAPE(s.dim[0], 1, 1)));
    return y;
}

static hone_program *parts(struct kit *k, const hone_objective *o, const struct given *v, bool mask, bool debug)
{
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_diffusion_batch b = {
        .x0 = hone_input(g, "x0", HONE_F32, HONE_SHAPE(B, T, A)),
        .cond = hone_input(g, "cond", HONE_F32, HONE_SHAPE(B, C)),
        .scale = hone_input(g, "scale", HONE_F32, HONE_SHAPE(B)),
        .t = hone_input_index(g, "t", HONE_SHAPE(B), K),
        .noise = hone_input(g, "noise", HONE_F32, HONE_SHAPE(B, T, A)),
        .uniform = hone_input(g, "uniform", HONE_F32, HONE_SHAPE(B)),
        .drop = .3,
        .keep = 1,
        .null = hone_const(g, HONE_F32, HONE_SHAPE(2), null_token),
    };
    hone_t m = hone_input(g, "mask", HONE_BOOL, HONE_SHAPE(B, T));
    if (mask)
        b.mask = m;
    hone_diffusion_loss l = hone_diffusion_objective(o, (hone_denoiser){plain_net, NULL}, &b);
    hone_output(l.loss, "loss");
    hone_output(l.each, "each");
    hone_output(l.x, "x");
    hone_output(l.target, "target");
    hone_output(l.out, "out");
    hone_output(hone_cast(m, HONE_F32), "mask");
    const void *in[] = {v->x0, v->cond, v->scale, v->t, v->noise, v->uniform, v->mask};
    hone_program *p = hone_compile(k->cpu, g, &(hone_compile_options){.debug = debug}, &k->err);
    hone_graph_destroy(g);
    if (kit_run(k, p, in, NULL, 0))
        return p;
    hone_program_destroy(p);
    return NULL;
}

static void compare(struct check *c, const hone_program *p, const hone_objective *o, const struct given *v, bool mask)
{
    double sum = 0, count = 0;
    for (int b = 0; b < B; b++) {
        const double alpha = o->alpha[v->t[b]], sigma = o->sigma[v->t[b]];
        const bool dropped = b == 0 || b == 2;
        double cond = v->cond[b * C] + (dropped ? 7 - 3 : v->cond[b * C + 1] + v->cond[b * C + 2]), mean = 0, n = 0;
        for (int i = 0; i < T * A; i++) {
            const int at = b * T * A + i;
            double x = alpha * v->x0[at] + sigma * v->noise[at], out = x + v->t[b] / 10. + cond;
            double target = o->q_0[v->t[b]] * v->x0[at] + o->q_e[v->t[b]] * v->noise[at],
                   e = (out - target) * (out - target);
            CHECK(c, fabs(exact_out(p, "x")[at] - x) < 1e-6 && fabs(exact_out(p, "target")[at] - target) < 1e-6);
            CHECK_MSG(c, fabs(exact_out(p, "out")[at] - out) < 3e-6, "sample %d", b);
            if (mask && !v->mask[b * T + i / A])
                continue;
            mean += o->weight[v->t[b]] * e;
            n++;
        }
        sum += v->scale[b] * mean;
        count += n;
        CHECK_MSG(c, fabs(exact_out(p, "each")[b] - mean / fmax(n, 1)) < 1e-5 * (1 + mean), "sample %d", b);
    }
    CHECK_MSG(c, fabs(exact_out(p, "loss")[0] - sum / count) < 1e-5 * (sum / count), "%g, not %g",
              exact_out(p, "loss")[0], sum / count);
}

static void given_numbers(struct check *c, struct kit *k)
{
    for (int i = 0; i < 3; i++)
        for (int mask = 0; mask < 2; mask++) {
            if (!check_case(c, "%s%s: every part from given numbers, plain and debug", params[i], mask ? ", mask" : ""))
                continue;
            hone_schedule *s = cosine(k, K);
            hone_objective *o = objective(k, s, params[i], "min_snr");
            struct given v = numbers();
            for (int debug = 0; debug < 2; debug++) {
                hone_program *p = parts(k, o, &v, mask, debug);
                if (CHECK_MSG(c, p != NULL, "%s: %s", k->err.where, k->err.text))
                    compare(c, p, o, &v, mask);
                hone_program_destroy(p);
            }
            hone_objective_destroy(o);
            hone_schedule_destroy(s);
        }
}

static void moving_weights(struct check *c, struct kit *k)
{
    if (!check_case(c, "weights given as an input take the place of the objective's"))
        return;
    hone_schedule *s = cosine(k, K);
    hone_objective *o = objective(k, s, "v", "min_snr");
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    struct given v = numbers();
    float w[K];
    for (int i = 0; i < K; i++)
        w[i] = (float)(2 * o->weight[i]);
    hone_diffusion_batch b = {.x0 = hone_input(g, "x0", HONE_F32, HONE_SHAPE(B, T, A)),
                              .t = hone_input_index(g, "t", HONE_SHAPE(B), K),
                              .stream = "a"};
    hone_denoiser d = {plain_net, NULL};
    hone_output(hone_diffusion_objective(o, d, &b).each, "own");
    b.weight = hone_input(g, "w", HONE_F32, HONE_SHAPE(K));
    b.stream = "b";
    b.noise = hone_const(g, HONE_F32, HONE_SHAPE(B, T, A), v.noise);
    hone_output(hone_diffusion_objective(o, d, &b).each, "given");
    b.weight = HONE_NONE;
    hone_output(hone_diffusion_objective(o, d, &b).each, "same noise");
    hone_program *p = exact_run(k, g, (const void *[]){v.x0, v.t, w}, 0);
    if (CHECK_MSG(c, p != NULL, "%s: %s", k->err.where, k->err.text))
        for (int i = 0; i < B; i++) {
            float a = exact_out(p, "given")[i], once = exact_out(p, "same noise")[i];
            CHECK(c, fabs(a - 2 * once) < 1e-5 * a && once > 0);
            CHECK(c, exact_out(p, "own")[i] != once); /* drawn noise is another */
        }
    hone_program_destroy(p);
    hone_objective_destroy(o);
    hone_schedule_destroy(s);
}

/* What is drawn: timesteps evenly from all K, noise standard normal, conditions dropped as often as was asked for. */
static void drawn(struct check *c, struct kit *k)
{
    if (!check_case(c, "what is drawn has the distribution it should have"))
        return;
    hone_schedule *s = cosine(k, K);
    hone_objective *o = objective(k, s, "epsilon", NULL);
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_diffusion_batch b = {.x0 = hone_full(g, HONE_SHAPE(MANY, 1, 1), 0),
                              .cond = hone_full(g, HONE_SHAPE(MANY, 1), 0),
                              .drop = .15,
                              .null = hone_const_f32(g, 1000)};
    hone_diffusion_loss l = hone_diffusion_objective(o, (hone_denoiser){plain_net, NULL}, &b);
    hone_output(hone_sub(l.out, l.x), "shift"); /* t / 10 + 1000 if dropped */
    hone_output(l.target, "noise");
    hone_program *p = exact_run(k, g, NULL, 3);
    double steps[K] = {0}, gone = 0, sum = 0, square = 0;
    for (int i = 0; p && i < MANY; i++) {
        double v = exact_out(p, "shift")[i], z = exact_out(p, "noise")[i];
        gone += v > 500;
        int t = (int)lround((v > 500 ? v - 1000 : v) * 10);
        if (CHECK(c, t >= 0 && t < K))
            steps[t]++;
        sum += z;
        square += z * z;
    }
    for (int t = 0; t < K; t++)
        CHECK_MSG(c, fabs(steps[t] / MANY - 1. / K) < .006, "timestep %d: %g", t, steps[t] / MANY);
    CHECK_MSG(c, fabs(gone / MANY - .15) < .008, "dropped %g", gone / MANY);
    CHECK_MSG(c, fabs(sum / MANY) < .02 && fabs(square / MANY - 1) < .03, "noise %g, %g", sum / MANY, square / MANY);
    hone_program_destroy(p);
    hone_objective_destroy(o);
    hone_schedule_destroy(s);
}

/* --- wrappers --- */

static void guidance(struct check *c, struct kit *k)
{
    if (!check_case(c, "guidance: 0 unconditional, 1 conditional, else the formula; one evaluation"))
        return;
    struct given v = numbers();
    static const float weights[4] = {0, 1, 1.5f, -.5f};
    for (int i = 0; i < 8; i++) {
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        int calls = 0;
        hone_t x = hone_const(g, HONE_F32, HONE_SHAPE(B, T, A), v.x0),
               cond = hone_const(g, HONE_F32, HONE_SHAPE(B, C), v.cond);
        hone_t t = i % 2 ? hone_cast(hone_const(g, HONE_I32, HONE_SHAPE(B), v.t), HONE_F32) : hone_const_f32(g, 5);
        hone_t null = hone_const(g, HONE_F32, HONE_SHAPE(2), null_token);
        hone_guidance o = {{plain_net, &calls}, null, 1, hone_input(g, "w", HONE_F32, HONE_SHAPE(1))};
        hone_conditioned with = {o.inner, cond}, without = {o.inner, hone_condition_drop(cond, null, 1, HONE_NONE)};
        hone_conditioned whole = {hone_denoiser_guided(&o), cond};
        hone_output(hone_denoise(hone_denoiser_conditioned(&whole), x, t, HONE_NONE), "guided");
        CHECK(c, calls == 1);
        hone_output(hone_denoise(hone_denoiser_conditioned(&with), x, t, HONE_NONE), "with");
        hone_output(hone_denoise(hone_denoiser_conditioned(&without), x, t, HONE_NONE), "without");
        const float w = weights[i / 2];
        hone_program *p = exact_run(k, g, (const void *[]){&w}, 0);
        if (CHECK_MSG(c, p != NULL, "%s: %s", k->err.where, k->err.text))
            for (int j = 0; j < N; j++) {
                float a = exact_out(p, "with")[j], b = exact_out(p, "without")[j], got = exact_out(p, "guided")[j];
                CHECK(c, fabsf(a - b) > .01f);
                CHECK_MSG(c,
                          w == 0   ? got == b
                          : w == 1 ? got == a
                                   : fabsf(got - (b + w * (a - b))) < 1e-5f,
                          "w %g: %g from %g and %g", w, got, b, a);
            }
        hone_program_destroy(p);
    }
}

/* Puts out its condition. */
static hone_t echo(void *user, hone_t x, hone_t t, hone_t cond)
{
    (void)user;
    (void)t;
    hone_shape s = hone_type_of(x).shape;
    return hone_broadcast(hone_reshape(cond, HONE_SHAPE(s.dim[0], 1, 1)), s);
}

/* x0 of 0 without and 3 with the condition; w = 0.2 makes 0.6 of it. Were each clamped to 1 first, it would be 0.2. */
static void clamp_after(struct check *c, struct kit *k)
{
    if (!check_case(c, "clean actions are clamped after guidance, not before"))
        return;
    hone_schedule *s = cosine(k, K);
    hone_sampler *p =
        hone_sampler_create(k->ctx, s, &(hone_sampler_options){.param = "x0", .steps = 4, .x0_clip = 1}, &k->err);
    static const float w[2] = {.2f, 1}, want[2] = {.6f, 1};
    for (int i = 0; i < 2; i++) {
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_guidance o = {{echo, NULL}, hone_const_f32(g, 0), 0, hone_const_f32(g, w[i])};
        hone_sample_args a = {.sampler = p,
                              .denoiser = hone_denoiser_guided(&o),
                              .cond = hone_full(g, HONE_SHAPE(B, 1), 3),
                              .shape = HONE_SHAPE(B, T, A)};
        hone_output(hone_sample(g, &a), "x");
        hone_program *run = exact_run(k, g, NULL, 0);
        if (CHECK_MSG(c, run != NULL, "%s: %s", k->err.where, k->err.text))
            for (int j = 0; j < N; j++)
                CHECK_MSG(c, fabsf(exact_out(run, "x")[j] - want[i]) < 1e-6f, "%g", exact_out(run, "x")[j]);
        hone_program_destroy(run);
    }
    hone_sampler_destroy(p);
    hone_schedule_destroy(s);
}

/* --- mistakes --- */

static hone_t wrong_shape(void *user, hone_t x, hone_t t, hone_t cond)
{
    (void)user;
    (void)t;
    (void)cond;
    return hone_slice(x, 1, 0, 1);
}

static void refused(struct check *c, struct kit *k, hone_graph *g, hone_t x, const char *text)
{
    hone_err e = {0};
    CHECK(c, x.id < 0 || !x.g);
    CHECK_MSG(c, hone_graph_status(g, &e) != HONE_OK && strstr(e.text, text) && !strncmp(e.where, "pi", 2),
              "\"%s: %s\" without \"%s\"", e.where, e.text, text);
    hone_graph_destroy(g);
    (void)k;
}

static hone_graph *open_graph(struct kit *k)
{
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_scope_push(g, "pi");
    return g;
}

static void batch_mistakes(struct check *c, struct kit *k, const hone_objective *o)
{
    static const hone_shape bad = {2, {B, T + 1}};
    static const struct {
        const char *text;
        int field;
    } rows[] = {{"clean actions must be f32[B,T,A]", 0},
                {"the timestep must be i32[4]", 1},
                {"noise must be f32[4,3,2]", 2},
                {"the mask of actions must be bool[4,3]", 3},
                {"scale of samples", 4},
                {"weights of timesteps", 5},
                {"0 to 1; got 2", 6},
                {"takes a condition and its null", 7}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hone_graph *g = open_graph(k);
        hone_diffusion_batch b = {.x0 = hone_full(g, HONE_SHAPE(B, T, A), 0)};
        hone_t wrong = hone_full(g, bad, 0);
        hone_t *at[] = {&b.x0, &b.t, &b.noise, &b.mask, &b.scale, &b.weight};
        if (rows[i].field < 6)
            *at[rows[i].field] = wrong;
        else
            b.drop = rows[i].field == 6 ? 2 : .5;
        refused(c, k, g, hone_diffusion_objective(o, (hone_denoiser){plain_net, NULL}, &b).loss, rows[i].text);
    }
}

static void mistakes(struct check *c, struct kit *k)
{
    if (!check_case(c, "mistakes are named"))
        return;
    hone_schedule *s = cosine(k, K);
    hone_objective *o = objective(k, s, NULL, NULL);
    hone_sampler *p = hone_sampler_create(k->ctx, s, &(hone_sampler_options){.name = "ddpm"}, &k->err);
    batch_mistakes(c, k, o);
    hone_graph *g = open_graph(k);
    hone_t x = hone_full(g, HONE_SHAPE(B, T, A), 0);
    refused(c, k, g, hone_denoise((hone_denoiser){wrong_shape, NULL}, x, hone_const_f32(g, 0), HONE_NONE),
            "output of a denoiser must be f32[4,3,2]; got f32[4,1,2]");
    g = open_graph(k);
    x = hone_full(g, HONE_SHAPE(B, T, A), 0);
    refused(c, k, g, hone_denoise((hone_denoiser){plain_net, NULL}, x, hone_full(g, HONE_SHAPE(B + 1), 0), HONE_NONE),
            "takes t as f32[B] or one f32");
    for (int i = 0; i < 6; i++) {
        static const char *const text[] = {
            "samples are [B,T,A]",      "noise of a chain must be f32[10,4,3,2]", "only an unrolled chain has states",
            "start of a chain must be", "only an unrolled chain has a gradient",  "takes a sampler"};
        hone_t states[K + 1];
        g = open_graph(k);
        hone_sample_args a = {.sampler = p, .denoiser = {plain_net, NULL}, .shape = HONE_SHAPE(B, T, A)};
        if (i == 0)
            a.shape.rank = 2;
        if (i == 1)
            a.noise = hone_full(g, HONE_SHAPE(K - 1, B, T, A), 0);
        if (i == 2)
            a.states = states;
        if (i == 3)
            a.start = hone_cast(hone_full(g, HONE_SHAPE(B, T, A), 0), HONE_I32);
        if (i == 4)
            a.segment = 2;
        if (i == 5)
            a.sampler = NULL;
        refused(c, k, g, hone_sample(g, &a), text[i]);
    }
    g = open_graph(k);
    hone_guidance d = {{plain_net, NULL}, hone_const_f32(g, 0), 0, hone_full(g, HONE_SHAPE(2), 1)};
    refused(c, k, g,
            hone_denoise(hone_denoiser_guided(&d), hone_full(g, HONE_SHAPE(B, T, A), 0), hone_const_f32(g, 0),
                         hone_full(g, HONE_SHAPE(B, C), 0)),
            "has one element; got 2");
    g = open_graph(k);
    refused(c, k, g, hone_condition_drop(hone_full(g, HONE_SHAPE(B, C), 0), hone_const_f32(g, 0), C, HONE_NONE),
            "0 <= keep < C");
    hone_sampler_destroy(p);
    hone_objective_destroy(o);
    hone_schedule_destroy(s);
}

/* --- settings --- */

static void settings(struct check *c, struct kit *k)
{
    if (!check_case(c, "settings: sound tables, names of hone/sched.h, what is made of them"))
        return;
    const hone_field_table *tables[2] = {hone_sampling_fields(), hone_diffusion_fields()};
    static const struct {
        int table;
        const char *field;
        const char *(*name)(int i);
    } rows[] = {{0, "sampler", hone_sampler_name},
                {1, "schedule", hone_schedule_name},
                {1, "predict", hone_param_name},
                {1, "loss", hone_loss_name}};
    for (int i = 0; i < 2; i++)
        CHECK_MSG(c, hone_field_table_check(tables[i], &k->err) == HONE_OK, "%s", k->err.text);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const hone_field *f = hone_field_find(tables[rows[i].table], rows[i].field);
        int n = 0;
        /* both: two heads, which are no row of hone/sched.h */
        for (; f && f->u.c.names[n] && strcmp(f->u.c.names[n], "both"); n++)
            CHECK_MSG(c, rows[i].name(n) && !strcmp(rows[i].name(n), f->u.c.names[n]), "%s", f->u.c.names[n]);
        /* a velocity is what flow predicts: no setting of diffusion */
        CHECK(c, n > 0 && (!rows[i].name(n) || !strcmp(rows[i].name(n), "velocity")));
    }
    CHECK(c, !strcmp(hone_field_find(tables[1], "predict")->u.c.names[HONE_PREDICT_BOTH], "both"));
    hone_diffusion_config d;
    hone_sampling_config a;
    hone_field_defaults(tables[0], &a);
    hone_field_defaults(tables[1], &d);
    hone_field_set(tables[1], &d, "predict", "v", &k->err);
    hone_field_set(tables[0], &a, "eta", "0.5", &k->err);
    hone_field_set(tables[0], &a, "steps", "7", &k->err);
    hone_schedule *s = hone_diffusion_schedule(k->ctx, &d, &k->err);
    hone_objective *o = hone_diffusion_create(k->ctx, s, &d, &k->err);
    hone_sampler *p = hone_sampling_create(k->ctx, s, d.predict, &a, &k->err);
    if (CHECK_MSG(c, s && o && p, "%s: %s", k->err.where, k->err.text)) {
        CHECK(c, s->steps == 100 && !strcmp(s->name, "cosine") && !strcmp(o->param, "v"));
        CHECK(c, p->steps == 7 && p->eta == .5 && p->x0_clip == 1 && !strcmp(p->param, "v") && !p->flow);
    }
    hone_sampler_destroy(p);
    hone_field_set(tables[0], &a, "sampler", "flow_ode", &k->err);
    a.eta = 0;
    p = hone_sampling_create(k->ctx, NULL, 0, &a, &k->err);
    if (CHECK_MSG(c, p != NULL, "%s: %s", k->err.where, k->err.text))
        CHECK(c, p->flow && !strcmp(p->param, "velocity"));
    a.steps = -1;
    hone_err e = {0};
    CHECK(c, !hone_sampling_create(k->ctx, s, 0, &a, &e) && e.code == HONE_E_CONFIG && strstr(e.text, "steps"));
    hone_sampler_destroy(p);
    hone_objective_destroy(o);
    hone_schedule_destroy(s);
}

/* --- no memory --- */

static void one_failing(struct check *c, long n, long *calls)
{
    struct failing f = {.countdown = n};
    hone_allocator a = kit_failing(&f);
    hone_err e = {0};
    hone_ctx *ctx = hone_ctx_create(&(hone_ctx_options){.allocator = &a}, &e);
    hone_schedule *s = ctx ? hone_schedule_create(ctx, &(hone_schedule_options){.steps = 3}, &e) : NULL;
    hone_objective *o = s ? hone_objective_create(ctx, s, "v", NULL, &e) : NULL;
    hone_sampler *p = o ? hone_sampler_create(ctx, s, &(hone_sampler_options){.name = "ddpm", .param = "v"}, &e) : NULL;
    hone_graph *g = p ? hone_graph_create(ctx, &e) : NULL;
    if (g) {
        hone_guidance w = {{plain_net, NULL}, hone_const_f32(g, 1), 1, hone_const_f32(g, 2)};
        hone_diffusion_batch b = {.x0 = hone_random_normal(g, "x0", HONE_SHAPE(B, T, A)),
                                  .cond = hone_random_normal(g, "c", HONE_SHAPE(B, C)),
                                  .drop = .5,
                                  .null = w.null};
        hone_sample_args args = {.sampler = p, .denoiser = hone_denoiser_guided(&w), .cond = b.cond, .unroll = true};
        args.shape = HONE_SHAPE(B, T, A);
        hone_t loss = hone_diffusion_objective(o, w.inner, &b).loss, x = hone_sample(g, &args);
        CHECK(c, hone_graph_status(g, &e) == (n ? HONE_E_NOMEM : HONE_OK) || !n || f.countdown > 0);
        CHECK(c, n || (loss.id >= 0 && x.id >= 0));
    }
    if (n && f.countdown <= 0)
        CHECK_MSG(c, e.code == HONE_E_NOMEM, "allocation %ld: %s %s", n, hone_status_name(e.code), e.text);
    hone_graph_destroy(g);
    hone_sampler_destroy(p);
    hone_objective_destroy(o);
    hone_schedule_destroy(s);
    hone_ctx_destroy(ctx);
    CHECK_MSG(c, f.live == 0, "allocation %ld: %ld left", n, f.live);
    *calls = f.calls;
}

static void allocations_fail(struct check *c)
{
    if (!check_case(c, "no memory, at each allocation"))
        return;
    long calls = 0, ignored;
    one_failing(c, 0, &calls);
    CHECK_MSG(c, calls > 10, "%ld", calls);
    for (long n = 1; n <= calls; n++)
        one_failing(c, n, &ignored);
}

void suite_head(struct check *c)
{
    struct kit k;
    kit_open(&k, NULL);
    least_loss(c, &k);
    given_numbers(c, &k);
    moving_weights(c, &k);
    drawn(c, &k);
    guidance(c, &k);
    clamp_after(c, &k);
    mistakes(c, &k);
    settings(c, &k);
    two_heads(c, &k);
    if (check_case(c, "nothing leaks, no error is left")) {
        CHECK_MSG(c, k.err.code == HONE_OK, "%s: %s", k.err.where, k.err.text);
        kit_close(&k, c);
    } else {
        kit_close(&k, &(struct check){.open = 1});
    }
    allocations_fail(c);
}
