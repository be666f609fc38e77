#include "head/two_head.h"

#include <math.h>
#include <string.h>

#include "head/exact.h"
#include "hone/random.h"

enum { K = 20, B = 4, T = 3, A = 2, N = B * T * A, MANY = 20000 };
static const double sharps[] = {.5, 0, 1, 4};
enum { SHARPS = 4 };

static hone_schedule *cosine(struct kit *k)
{
    return hone_schedule_create(k->ctx, &(hone_schedule_options){.steps = K}, &k->err);
}

static double alpha_at(const hone_schedule *s, int t)
{
    return sqrt(s->alpha_bar[t]);
}

static double sigma_at(const hone_schedule *s, int t)
{
    return sqrt(1 - s->alpha_bar[t]);
}

/* --- shares --- */

static void shares(struct check *c, struct kit *k)
{
    hone_schedule *s = cosine(k);
    for (int i = 0; s && i < SHARPS; i++) {
        double last = 0;
        for (int t = 0; t < K; t++) {
            double a = alpha_at(s, t), b = sigma_at(s, t), got = hone_two_head_share(a, b, sharps[i]);
            double power = sharps[i] == 0 ? 2 : 2 * sharps[i];
            CHECK_MSG(c, fabs(got - pow(b, power) / (pow(a, power) + pow(b, power))) < 1e-12, "%d: %g", t, got);
            CHECK_MSG(c, got > last, "%d: %g after %g", t, got, last); /* the noisier, the more of the clean head */
            last = got;
        }
    }
    for (int i = 1; s && i < SHARPS; i++) {
        CHECK(c, hone_two_head_share(alpha_at(s, K - 1), sigma_at(s, K - 1), sharps[i]) > .999);
        CHECK(c, hone_two_head_share(alpha_at(s, 0), sigma_at(s, 0), sharps[i]) < .02);
        CHECK(c, fabs(hone_two_head_share(.6, .6, sharps[i]) - .5) < 1e-12);
    }
    for (int t = 0; s && t < K; t++) /* sharp 1, and what stands for it */
        for (int i = 1; i < 3; i++)
            CHECK(c,
                  fabs(hone_two_head_share(alpha_at(s, t), sigma_at(s, t), sharps[i]) - (1 - s->alpha_bar[t])) < 1e-12);
    hone_schedule_destroy(s);
}

/* --- the estimate --- */

/* Both exact heads, each spoilt by a number added to it. */
struct exact_heads {
    struct exact noise, clean;
    double spoil_noise, spoil_clean;
};

static struct exact_heads heads_of(const hone_schedule *s, double mode, double spread)
{
    return (struct exact_heads){{.s = s, .param = "epsilon", .mode = mode, .mean = .1, .spread = spread},
                                {.s = s, .param = "x0", .mode = mode, .mean = .1, .spread = spread},
                                0,
                                0};
}

static hone_t both_exact(void *user, hone_t x, hone_t t, hone_t cond)
{
    struct exact_heads *e = user;
    hone_t noise = hone_affine(hone_denoise(exact_denoiser(&e->noise), x, t, cond), 1, e->spoil_noise);
    hone_t clean = hone_affine(hone_denoise(exact_denoiser(&e->clean), x, t, cond), 1, e->spoil_clean);
    return hone_concat(2, (hone_t[]){noise, clean}, 2);
}

/* The largest difference from the exact clean actions, over values of x, at timestep t. */
static double estimate_off(struct check *c, struct kit *k, struct exact_heads *e, double sharp, int t, bool one)
{
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_two_head h = {{both_exact, e}, e->noise.s, sharp};
    float x[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)(i - N / 2) / 8;
    hone_t tx = hone_const(g, HONE_F32, HONE_SHAPE(B, T, A), x),
           tt = one ? hone_const_f32(g, (float)t) : hone_full(g, HONE_SHAPE(B), (float)t);
    hone_output(hone_denoise(hone_denoiser_two_head(&h), tx, tt, HONE_NONE), "both");
    hone_output(hone_denoise(exact_denoiser(&e->clean), tx, tt, HONE_NONE), "exact");
    hone_program *p = exact_run(k, g, NULL, 0);
    double off = 0;
    if (CHECK_MSG(c, p != NULL, "%s: %s", k->err.where, k->err.text))
        for (int i = 0; i < N; i++)
            off = fmax(off, fabs((double)exact_out(p, "both")[i] - (double)exact_out(p, "exact")[i]));
    hone_program_destroy(p);
    return off;
}

static void estimate(struct check *c, struct kit *k)
{
    hone_schedule *s = cosine(k);
    struct exact_heads e = heads_of(s, .6, .3), noisy = e, unclean = e;
    noisy.spoil_noise = 1;
    unclean.spoil_clean = 1;
    if (check_case(c, "two heads: exact ones give the exact estimate"))
        for (int i = 0; i < SHARPS; i++)
            for (int t = 0; s && t < K; t++) {
                double off = estimate_off(c, k, &e, sharps[i], t, t % 2);
                CHECK_MSG(c, off < 3e-6, "sharp %g, t %d: off by %g", sharps[i], t, off);
            }
    if (check_case(c, "two heads: the error of each counts as its share says"))
        for (int t = 0; s && t < K; t++) {
            double a = alpha_at(s, t), b = sigma_at(s, t), of_noise = estimate_off(c, k, &noisy, 1, t, true),
                   of_clean = estimate_off(c, k, &unclean, 1, t, false);
            CHECK_MSG(c, fabs(of_noise - a * b) < 3e-6 && fabs(of_clean - b * b) < 3e-6, "t %d: %g, %g", t, of_noise,
                      of_clean);
        }
    hone_schedule_destroy(s);
}

/* A chain by two exact heads is the chain by exact clean actions. */
static void chain(struct check *c, struct kit *k)
{
    hone_schedule *s = cosine(k);
    struct exact_heads e = heads_of(s, .6, .05);
    hone_sampler *p =
        hone_sampler_create(k->ctx, s, &(hone_sampler_options){.name = "ddpm", .param = "x0", .x0_clip = 1}, &k->err);
    hone_two_head h = {{both_exact, &e}, s, 1};
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t start = hone_random_normal(g, "start", HONE_SHAPE(2000, 1, 1)),
           noise = hone_random_normal(g, "noise", HONE_SHAPE(K, 2000, 1, 1));
    hone_denoiser d[2] = {hone_denoiser_two_head(&h), exact_denoiser(&e.clean)};
    for (int i = 0; i < 2; i++) {
        hone_sample_args a = {.sampler = p, .denoiser = d[i], .start = start, .noise = noise};
        hone_output(hone_sample(g, &a), i ? "exact" : "both");
    }
    hone_program *run = exact_run(k, g, NULL, 0);
    if (CHECK_MSG(c, run != NULL, "%s: %s", k->err.where, k->err.text)) {
        double off = 0, near = 0;
        for (int i = 0; i < 2000; i++) {
            off = fmax(off, fabs((double)exact_out(run, "both")[i] - (double)exact_out(run, "exact")[i]));
            near += fabs(fabs((double)exact_out(run, "both")[i] - .1) - .6) < .15;
        }
        CHECK_MSG(c, off < 1e-4 && near > 1950, "off by %g, %g near a mode", off, near);
    }
    hone_program_destroy(run);
    hone_sampler_destroy(p);
    hone_schedule_destroy(s);
}

static hone_t twice(void *user, hone_t x, hone_t t, hone_t cond)
{
    (void)user, (void)t, (void)cond;
    return hone_concat(2, (hone_t[]){x, hone_affine(x, .5, 0)}, 2);
}

/* Shares hang on the step alone: they are looked up before the loop. */
static void before_the_loop(struct check *c, struct kit *k)
{
    hone_schedule *s = cosine(k);
    hone_sampler *p = hone_sampler_create(k->ctx, s, &(hone_sampler_options){.param = "x0", .steps = 5}, &k->err);
    hone_two_head h = {{twice, NULL}, s, 0};
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_sample_args a = {.sampler = p, .denoiser = hone_denoiser_two_head(&h), .shape = HONE_SHAPE(1, 4, 2)};
    hone_output(hone_sample(g, &a), "x");
    hone_program *run = hone_compile(k->cpu, g, NULL, &k->err);
    int lookups = 0, products = 0, inside = 0;
    for (int i = 0; run && i < run->plan.n_steps; i++) {
        const struct plan_step *at = &run->plan.steps[i];
        inside += (at->kind == PLAN_LOOP) - (at->kind == PLAN_END);
        if (!inside || at->kind != PLAN_RUN)
            continue;
        const char *name = run->g->nodes[at->node].def->name;
        lookups += !strcmp(name, "gather") || !strcmp(name, "cast");
        products += !strcmp(name, "mul");
    }
    CHECK_MSG(c, run && lookups == 0 && products >= 3, "%d lookups, %d products %s", lookups, products, k->err.text);
    hone_program_destroy(run);
    hone_graph_destroy(g);
    hone_sampler_destroy(p);
    hone_schedule_destroy(s);
}

/* --- the objective --- */

static hone_t told(void *user, hone_t x, hone_t t, hone_t cond)
{
    (void)x, (void)t, (void)cond;
    return *(hone_t *)user;
}

struct given {
    float x0[N], noise[N], heads[2 * N], scale[B], weight[K];
    uint8_t mask[B * T];
    int32_t t[B];
};

static struct given numbers(void)
{
    struct given v = {.scale = {1, .5f, 2, 3}, .t = {0, K - 1, 7, 12}};
    hone_fill_normal(v.x0, N, 1, hone_stream("x0"), 0, 0);
    hone_fill_normal(v.noise, N, 1, hone_stream("noise"), 0, 0);
    hone_fill_normal(v.heads, 2 * N, 1, hone_stream("heads"), 0, 0);
    for (int i = 0; i < K; i++)
        v.weight[i] = 1 + (float)i / K;
    for (int i = 0; i < B * T; i++)
        v.mask[i] = i != 1 && i != 5;
    return v;
}

static hone_program *objective(struct kit *k, const hone_schedule *s, const struct given *v, double sharp, bool full)
{
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t heads = hone_input(g, "heads", HONE_F32, HONE_SHAPE(B, T, 2 * A)), d;
    hone_two_head h = {{told, &heads}, s, sharp};
    hone_diffusion_batch b = {.x0 = hone_const(g, HONE_F32, HONE_SHAPE(B, T, A), v->x0),
                              .t = hone_const(g, HONE_I32, HONE_SHAPE(B), v->t),
                              .noise = hone_const(g, HONE_F32, HONE_SHAPE(B, T, A), v->noise)};
    if (full) {
        b.mask = hone_const(g, HONE_BOOL, HONE_SHAPE(B, T), v->mask);
        b.scale = hone_const(g, HONE_F32, HONE_SHAPE(B), v->scale);
        b.weight = hone_const(g, HONE_F32, HONE_SHAPE(K), v->weight);
    }
    hone_diffusion_loss l = hone_two_head_objective(&h, &b);
    hone_gradients(l.loss, &heads, 1, &d);
    hone_output(l.loss, "loss");
    hone_output(l.each, "each");
    hone_output(l.x, "x");
    hone_output(l.target, "target");
    hone_output(l.out, "out");
    hone_output(l.heads, "heads");
    hone_output(d, "gradient");
    return exact_run(k, g, (const void *[]){v->heads}, 0);
}

/* One element: what its head says, and where its gradient stands. */
static void element(struct check *c, const hone_program *p, const hone_schedule *s, const struct given *v, double sharp,
                    int i, double each_weight, double *loss)
{
    const int t = v->t[i / (T * A)], at = i / A * 2 * A + i % A; /* noise first, then clean */
    const double a = alpha_at(s, t), b = sigma_at(s, t), clean = hone_two_head_share(a, b, sharp), noise = 1 - clean;
    const double x = a * (double)v->x0[i] + b * (double)v->noise[i];
    const double e = (double)v->heads[at] - (double)v->noise[i], x0 = (double)v->heads[at + A] - (double)v->x0[i];
    const double out = clean * (double)v->heads[at + A] + noise / a * (x - b * (double)v->heads[at]);
    CHECK_MSG(c, fabs((double)exact_out(p, "x")[i] - x) < 1e-6, "x of %d", i);
    CHECK_MSG(c, fabs((double)exact_out(p, "out")[i] - out) < 3e-6, "estimate of %d", i);
    CHECK(c, exact_out(p, "target")[i] == v->x0[i]);
    CHECK(c, exact_out(p, "heads")[at] == v->heads[at] && exact_out(p, "heads")[at + A] == v->heads[at + A]);
    double by_noise = 2 * noise * e * each_weight, by_clean = 2 * clean * x0 * each_weight;
    CHECK_MSG(c, fabs((double)exact_out(p, "gradient")[at] - by_noise) < 1e-6, "noise head of %d: %g, not %g", i,
              (double)exact_out(p, "gradient")[at], by_noise);
    CHECK_MSG(c, fabs((double)exact_out(p, "gradient")[at + A] - by_clean) < 1e-6, "clean head of %d: %g, not %g", i,
              (double)exact_out(p, "gradient")[at + A], by_clean);
    *loss = clean * x0 * x0 + noise * e * e;
}

static void given_numbers(struct check *c, struct kit *k)
{
    hone_schedule *s = cosine(k);
    const struct given v = numbers();
    for (int run = 0; s && run < 2 * SHARPS; run++) {
        const bool full = run % 2;
        const double sharp = sharps[run / 2];
        hone_program *p = objective(k, s, &v, sharp, full);
        if (!CHECK_MSG(c, p != NULL, "%s: %s", k->err.where, k->err.text))
            break;
        double sum = 0, count = full ? N - 2 * A : N;
        for (int b = 0; b < B; b++) {
            double mean = 0, n = 0, loss, weight = full ? (double)v.weight[v.t[b]] : 1,
                   scale = full ? (double)v.scale[b] : 1;
            for (int i = b * T * A; i < (b + 1) * T * A; i++) {
                const bool in = !full || v.mask[i / A];
                element(c, p, s, &v, sharp, i, in ? weight * scale / count : 0, &loss);
                mean += in ? weight * loss : 0;
                n += in;
            }
            sum += scale * mean;
            CHECK_MSG(c, fabs((double)exact_out(p, "each")[b] - mean / n) < 1e-5 * mean / n, "sample %d", b);
        }
        CHECK_MSG(c, fabs((double)exact_out(p, "loss")[0] - sum / count) < 1e-5 * sum / count, "%g, not %g",
                  (double)exact_out(p, "loss")[0], sum / count);
        hone_program_destroy(p);
    }
    hone_schedule_destroy(s);
}

/* On data that are one Gaussian the loss of exact heads is known, and there is none smaller. */
static double measured(struct kit *k, struct exact_heads *e)
{
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_two_head h = {{both_exact, e}, e->noise.s, 1};
    hone_t x0 = hone_affine(hone_random_normal(g, "data", HONE_SHAPE(MANY, 2, 2)), e->noise.spread, e->noise.mean);
    hone_output(hone_two_head_objective(&h, &(hone_diffusion_batch){.x0 = x0}).loss, "loss");
    hone_program *p = exact_run(k, g, NULL, 0);
    double loss = p ? (double)exact_out(p, "loss")[0] : (double)NAN;
    hone_program_destroy(p);
    return loss;
}

static void least_loss(struct check *c, struct kit *k)
{
    hone_schedule *s = cosine(k);
    struct exact_heads e = heads_of(s, 0, .5);
    double want = 0;
    for (int t = 0; s && t < K; t++) {
        double a = alpha_at(s, t), b = sigma_at(s, t), x0 = exact_least(&e.clean, a, b);
        want += (b * b * x0 + a * a * x0 * a * a / (b * b)) / K;
    }
    double got = measured(k, &e);
    CHECK_MSG(c, fabs(got - want) < .02 * want, "%g, not %g", got, want);
    for (int i = 0; i < 4; i++) {
        struct exact_heads worse = e;
        *(i < 2 ? &worse.spoil_noise : &worse.spoil_clean) = i % 2 ? .15 : -.15;
        CHECK_MSG(c, measured(k, &worse) > 1.02 * got, "spoilt %d: no worse", i);
    }
    hone_schedule_destroy(s);
}

/* --- networks --- */

struct learner {
    hone_layout *layout;
    hone_nn nn;
    hone_net_denoiser net;
    hone_two_head two;
    union {
        max_align_t align;
        char bytes[HONE_NET_CONFIG_MAX];
    } config;
};

static void learner_open(struct learner *l, struct kit *k, const hone_net *net, const hone_schedule *s)
{
    static const char *const set[][2] = {{"outputs", "4"}, {"hidden", "16"}, {"widths", "8"}, {"kernel", "3"},
                                         {"width", "16"},  {"heads", "2"},   {"layers", "1"}, {"time_dim", "8"}};
    l->layout = hone_layout_create(k->ctx, &k->err);
    l->nn = (hone_nn){.g = NULL, .layout = l->layout};
    hone_field_defaults(net->fields, l->config.bytes);
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        hone_field_set(net->fields, l->config.bytes, set[i][0], set[i][1], &(hone_err){0});
    l->net = (hone_net_denoiser){net, &l->nn, l->config.bytes};
    l->two = (hone_two_head){hone_denoiser_net(&l->net), s, 1};
}

static hone_program *learner_program(struct learner *l, struct kit *k, const struct given *v,
                                     const hone_sampler *sampler)
{
    l->nn.g = hone_graph_create(k->ctx, &k->err);
    hone_t x0 = hone_const(l->nn.g, HONE_F32, HONE_SHAPE(B, T + 1, A), v->heads),
           cond = hone_full(l->nn.g, HONE_SHAPE(B, 3), 1);
    if (sampler) {
        hone_sample_args a = {.sampler = sampler, .denoiser = hone_denoiser_two_head(&l->two), .cond = cond};
        a.shape = HONE_SHAPE(B, T + 1, A);
        hone_output(hone_sample(l->nn.g, &a), "x");
    } else {
        hone_diffusion_batch b = {.x0 = x0, .cond = cond, .t = hone_const(l->nn.g, HONE_I32, HONE_SHAPE(B), v->t)};
        b.noise = hone_const(l->nn.g, HONE_F32, HONE_SHAPE(B, T + 1, A), v->heads + 16);
        hone_t loss = hone_two_head_objective(&l->two, &b).loss;
        hone_nn_gradients(&l->nn, loss, NULL);
        hone_output(loss, "loss");
    }
    hone_program *p = hone_compile(k->cpu, l->nn.g, NULL, &k->err);
    hone_graph_destroy(l->nn.g);
    return p;
}

/* Each network of the table learns with two heads, and is sampled. */
static void networks(struct check *c, struct kit *k)
{
    const struct given v = numbers();
    for (int i = 0; hone_net_at(i); i++) {
        if (!check_case(c, "two heads: %s learns and is sampled", hone_net_at(i)->name))
            continue;
        struct learner l;
        hone_adamw_config o;
        hone_store *stores[2] = {NULL};
        float first = 0, last = 0;
        hone_field_defaults(hone_adamw_fields(), &o);
        hone_schedule *s = cosine(k);
        hone_sampler *sampler =
            hone_sampler_create(k->ctx, s, &(hone_sampler_options){.param = "x0", .steps = 4, .x0_clip = 1}, &k->err);
        learner_open(&l, k, hone_net_at(i), s);
        hone_program *train = learner_program(&l, k, &v, NULL), *sample = learner_program(&l, k, &v, sampler);
        hone_store *param = k->err.code ? NULL : hone_store_create(k->ctx, l.layout, &k->err);
        if (param)
            hone_store_init(param, 1, &k->err);
        hone_optim *optim = param ? hone_optim_create(k->cpu, param, &o, &k->err) : NULL;
        if (CHECK_MSG(c, optim && train && sample, "%s: %s", k->err.where, k->err.text)) {
            hone_optim_bind(optim, train, stores);
            for (int step = 0; step < 20 && kit_run(k, train, NULL, stores, 0); step++) {
                last = exact_out(train, "loss")[0];
                first = step ? first : last;
                hone_optim_step(optim, &(hone_optim_args){.lr = 1e-2}, NULL, &k->err);
            }
            CHECK_MSG(c, last < .7f * first && last > 0, "from %g to %g", (double)first, (double)last);
            CHECK_MSG(c, kit_run(k, sample, NULL, &param, 0), "%s: %s", k->err.where, k->err.text);
            for (int j = 0; j < B * (T + 1) * A; j++)
                CHECK(c, fabsf(exact_out(sample, "x")[j]) <= 1);
        }
        hone_optim_destroy(optim);
        hone_program_destroy(train);
        hone_program_destroy(sample);
        hone_store_destroy(param);
        hone_layout_destroy(l.layout);
        hone_sampler_destroy(sampler);
        hone_schedule_destroy(s);
    }
}

/* --- what is refused --- */

static void refused(struct check *c, struct kit *k, const hone_schedule *s, double sharp, int64_t outputs,
                    const char *text)
{
    for (int train = 0; train < 2; train++) {
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_t heads = hone_full(g, HONE_SHAPE(B, T, outputs), 0), x = hone_full(g, HONE_SHAPE(B, T, A), 0);
        hone_two_head h = {{told, &heads}, s, sharp};
        hone_err e = {0};
        hone_t y = train ? hone_two_head_objective(&h, &(hone_diffusion_batch){.x0 = x}).loss
                         : hone_denoise(hone_denoiser_two_head(&h), x, hone_const_f32(g, 3), HONE_NONE);
        CHECK(c, y.id < 0 && hone_graph_status(g, &e) != HONE_OK);
        CHECK_MSG(c, strstr(e.text, text), "%s: %s", e.where, e.text);
        hone_graph_destroy(g);
    }
}

static void mistakes(struct check *c, struct kit *k)
{
    hone_schedule *s = cosine(k);
    refused(c, k, NULL, 1, 2 * A, "two heads take a noise schedule");
    refused(c, k, s, .4, 2 * A, "sharp must be 0.5 to 8, or 0 for 1; got 0.4");
    refused(c, k, s, (double)NAN, 2 * A, "sharp must be");
    refused(c, k, s, 1, A, "the output of a denoiser with two heads must be f32[4,3,4]; got f32[4,3,2]");
    hone_diffusion_config d;
    hone_sampling_config a;
    hone_err e = {0};
    hone_field_defaults(hone_diffusion_fields(), &d);
    hone_field_defaults(hone_sampling_fields(), &a);
    CHECK(c, hone_field_set(hone_diffusion_fields(), &d, "predict", "both", &e) == HONE_OK &&
                 d.predict == HONE_PREDICT_BOTH);
    CHECK(c, d.sharp == 1);
    hone_sampler *p = hone_sampling_create(k->ctx, s, d.predict, &a, &e);
    CHECK_MSG(c, p && !strcmp(p->param, "x0"), "%s", e.text);
    CHECK(c, !hone_diffusion_create(k->ctx, s, &d, &e) && e.code == HONE_E_CONFIG && strstr(e.text, "two heads"));
    hone_sampler_destroy(p);
    hone_schedule_destroy(s);
}

void two_heads(struct check *c, struct kit *k)
{
    if (check_case(c, "two heads: shares go from the clean head to the noise head"))
        shares(c, k);
    estimate(c, k);
    if (check_case(c, "two heads: a chain by exact ones"))
        chain(c, k);
    if (check_case(c, "two heads: nothing of shares is left in the loop"))
        before_the_loop(c, k);
    if (check_case(c, "two heads: every part from given numbers, and the gradient of each head"))
        given_numbers(c, k);
    if (check_case(c, "two heads: exact ones have the least loss there is"))
        least_loss(c, k);
    networks(c, k);
    if (check_case(c, "two heads: mistakes and settings"))
        mistakes(c, k);
}
