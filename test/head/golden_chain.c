#include "head/golden_chain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hone/head.h"
#include "nn/golden.h"

/* Relative to the largest element of a tensor. */
#define TOL 1e-5

enum { STEPS = 10 };

struct chain {
    struct golden g;
    hone_schedule *s;
    hone_sampler *p;
    float *start, *target;
};

static float *floats(struct golden *g, struct check *c, const char *name)
{
    int64_t n = 0;
    double *d = golden_values(g, c, name, &n);
    float *f = d ? malloc((size_t)n * sizeof *f) : NULL;
    for (int64_t i = 0; f && i < n; i++)
        f[i] = (float)d[i];
    free(d);
    return f;
}

static bool chain_open(struct chain *h, struct check *c, const char *name)
{
    *h = (struct chain){0};
    if (!golden_open(&h->g, c, name))
        return false;
    hone_diffusion_config d;
    hone_sampling_config a;
    hone_field_defaults(hone_diffusion_fields(), &d);
    hone_field_defaults(hone_sampling_fields(), &a);
    h->s = hone_diffusion_schedule(h->g.ctx, &d, &h->g.err);
    h->p = hone_sampling_create(h->g.ctx, h->s, d.predict, &a, &h->g.err);
    h->start = floats(&h->g, c, "chain/in/x");
    h->target = floats(&h->g, c, "chain/in/target");
    return h->p && h->start && h->target;
}

static void chain_close(struct chain *h, struct check *c)
{
    free(h->start);
    free(h->target);
    hone_sampler_destroy(h->p);
    hone_schedule_destroy(h->s);
    golden_close(&h->g, c);
}

/* The schedule and timesteps of the fixture are those that the default settings give. */
static void same_schedule(struct check *c, struct chain *h)
{
    int64_t n = 0, at = hone_tensors_find(h->g.file, "chain/timesteps", &h->g.err);
    double *bar = golden_values(&h->g, c, "chain/alpha_bar", &n);
    int32_t t[STEPS];
    CHECK(c, n == h->s->steps && h->p->steps == STEPS);
    for (int64_t i = 0; bar && i < n && n == h->s->steps; i++)
        CHECK(c, fabs(h->s->alpha_bar[i] - bar[i]) <= 1e-12 * bar[i]);
    if (CHECK(c, at >= 0 && hone_tensors_read(h->g.file, (size_t)at, t, sizeof t, &h->g.err) == HONE_OK))
        for (int i = 0; i < STEPS; i++)
            CHECK(c, h->p->timestep[i] == t[i]);
    free(bar);
}

struct built {
    hone_nn nn;
    hone_t start, cond, x, loss, states[STEPS + 1];
};

static struct built build(struct chain *h, bool unroll, int grad_last)
{
    struct built b = {.nn = golden_nn(&h->g)};
    b.start = hone_input(b.nn.g, "start", HONE_F32, h->g.s);
    b.cond = hone_input(b.nn.g, "cond", HONE_F32, h->g.s_cond);
    hone_t target = hone_input(b.nn.g, "chain target", HONE_F32, h->g.s);
    hone_net_denoiser net = {h->g.net, &b.nn, h->g.config.bytes};
    hone_sample_args a = {.sampler = h->p, .denoiser = hone_denoiser_net(&net), .cond = b.cond, .start = b.start};
    a.unroll = unroll;
    a.grad_last = grad_last;
    a.states = unroll ? b.states : NULL;
    b.x = hone_sample(b.nn.g, &a);
    b.loss = hone_mean(hone_square(hone_sub(b.x, target)), HONE_AXES_ALL, false);
    hone_output(b.x, "x");
    hone_output(b.loss, "loss");
    return b;
}

static hone_program *run(struct chain *h, struct check *c, hone_graph *g, const hone_compile_options *o,
                         hone_store *const *stores)
{
    const void *in[3] = {h->start, h->g.cond, h->target};
    hone_program *p = hone_compile(h->g.cpu, g, o, &h->g.err);
    hone_graph_destroy(g);
    hone_err *e = &h->g.err;
    if (p && !hone_run(p, &(hone_run_args){.inputs = in, .stores = stores}, e) && !hone_wait(p, e))
        return p;
    CHECK_MSG(c, false, "%s: %s", e->where, e->text);
    hone_program_destroy(p);
    return NULL;
}

/* Every state of the unrolled chain, and what the repeated one ends in. */
static void outputs(struct check *c, struct chain *h)
{
    const int64_t n = hone_numel(&h->g.s);
    int64_t all = 0;
    float *x = malloc((size_t)n * sizeof *x);
    double *want = golden_values(&h->g, c, "chain/states", &all), worst = 0, apart = 0;
    struct built b = build(h, true, 0);
    for (int i = 0; i <= STEPS; i++)
        hone_output(b.states[i], (char[]){(char)('A' + i), 0});
    hone_program *p = run(h, c, b.nn.g, NULL, &h->g.param);
    if (p && want && CHECK(c, all == n * (STEPS + 1))) {
        for (int i = 0; i <= STEPS; i++) {
            const float *got = golden_result(p, (char[]){(char)('A' + i), 0});
            double off = 0, top = 0;
            for (int64_t j = 0; j < n; j++) {
                off = fmax(off, fabs(got[j] - want[i * n + j]));
                top = fmax(top, fabs(want[i * n + j]));
            }
            CHECK_MSG(c, off <= TOL * top, "state %d: off by %.2g", i, off / top);
            worst = fmax(worst, off / top);
        }
        golden_compare(&h->g, c, "chain/loss", golden_result(p, "loss"), 1, TOL);
        memcpy(x, golden_result(p, "x"), (size_t)n * sizeof *x);
    }
    hone_program_destroy(p);
    p = run(h, c, build(h, false, 0).nn.g, NULL, &h->g.param);
    if (p && want)
        for (int64_t j = 0; j < n; j++) {
            apart = fmax(apart, fabsf(x[j] - golden_result(p, "x")[j]));
            CHECK(c, fabs(golden_result(p, "x")[j] - want[STEPS * n + j]) < TOL);
        }
    /* equal up to rounding: the repeated chain multiplies with the time embeddings of all steps at once */
    CHECK_MSG(c, apart < 2e-6, "unrolled and repeated are %g apart", apart);
    if (c->verbose)
        printf("    worst state %.2g; unrolled and repeated %.2g apart\n", worst, apart);
    hone_program_destroy(p);
    free(want);
    free(x);
}

/* "plain": without the passes that reorder arithmetic, unrolled and repeated are the same operations. */
static void same_bits(struct check *c, struct chain *h)
{
    const size_t bytes = (size_t)hone_numel(&h->g.s) * sizeof(float);
    const hone_compile_options o = {.plain = true};
    hone_program *a = run(h, c, build(h, true, 0).nn.g, &o, &h->g.param),
                 *b = run(h, c, build(h, false, 0).nn.g, &o, &h->g.param);
    if (a && b)
        CHECK(c, !memcmp(golden_result(a, "x"), golden_result(b, "x"), bytes));
    hone_program_destroy(a);
    hone_program_destroy(b);
}

static void gradients(struct check *c, struct chain *h, const char *prefix, int last, const hone_compile_options *o)
{
    char name[160];
    struct built b = build(h, true, last);
    hone_t d[2];
    hone_nn_gradients(&b.nn, b.loss, NULL);
    hone_gradients(b.loss, (hone_t[]){b.start, b.cond}, 2, d);
    hone_output(d[0], "dx");
    hone_output(d[1], "dcond");
    hone_store *grad = hone_store_create(h->g.ctx, h->g.layout, &h->g.err), *stores[2] = {h->g.param, grad};
    hone_program *p = run(h, c, b.nn.g, o, stores);
    double worst = 0;
    if (p) {
        snprintf(name, sizeof name, "%s/grad/in/cond", prefix);
        worst = golden_compare(&h->g, c, name, golden_result(p, "dcond"), hone_numel(&h->g.s_cond), TOL);
        for (int64_t i = 0; last && i < hone_numel(&h->g.s); i++)
            CHECK(c, golden_result(p, "dx")[i] == 0);
        if (!last)
            worst = fmax(worst,
                         golden_compare(&h->g, c, "chain/grad/in/x", golden_result(p, "dx"), hone_numel(&h->g.s), TOL));
    }
    for (int i = 0; p && i < hone_layout_count(h->g.layout); i++) {
        hone_shape s = hone_layout_shape(h->g.layout, i);
        snprintf(name, sizeof name, "%s/grad/%s", prefix, hone_layout_name(h->g.layout, i));
        worst = fmax(worst, golden_compare(&h->g, c, name, hone_store_get(grad, i), hone_numel(&s), TOL));
    }
    if (p && c->verbose) {
        hone_plan_info plan = hone_program_plan(p);
        printf("    worst gradient %.2g; %d operations, %zu bytes\n", worst, plan.operations, plan.bytes);
    }
    hone_program_destroy(p);
    hone_store_destroy(grad);
}

void golden_chains(struct check *c)
{
    static const char *const names[] = {"mlp", "unet", "dit"};
    for (int i = 0; i < 3; i++) {
        struct chain h;
        if (!chain_open(&h, c, names[i]))
            continue;
        if (!h.g.err.code && check_case(c, "%s: schedule and timesteps of the fixture", names[i]))
            same_schedule(c, &h);
        if (!h.g.err.code && check_case(c, "%s: states, loss, repeated chain", names[i]))
            outputs(c, &h);
        if (!h.g.err.code && check_case(c, "%s: repeated and unrolled, without passes: the same bits", names[i]))
            same_bits(c, &h);
        if (!h.g.err.code && check_case(c, "%s: gradients through all steps", names[i]))
            gradients(c, &h, "chain", 0, NULL);
        if (!h.g.err.code && check_case(c, "%s: gradients through the last 3 steps", names[i]))
            gradients(c, &h, "chain_last3", 3, NULL);
        if (!h.g.err.code && check_case(c, "%s: gradients through all steps, expanded", names[i]))
            gradients(c, &h, "chain", 0, &(hone_compile_options){.expand = true});
        chain_close(&h, c);
    }
}
