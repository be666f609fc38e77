/* Networks with the passes that make them faster: the same results, less to do, plans within their bound. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/kit.h"
#include "hone/nn.h"

struct job {
    struct kit k;
    hone_layout *layout;
    const hone_net *net;
    union {
        hone_unet_config unet;
        hone_dit_config dit;
    } config;
    hone_nn nn;
    hone_t cond;
    int batch;
};

static void job_open(struct job *j, const char *widths, int groups, int batch)
{
    memset(j, 0, sizeof *j);
    kit_open(&j->k, NULL);
    j->layout = hone_layout_create(j->k.ctx, &j->k.err);
    j->net = hone_net_find("unet", &j->k.err);
    hone_field_defaults(j->net->fields, &j->config.unet);
    snprintf(j->config.unet.widths, sizeof j->config.unet.widths, "%s", widths);
    j->config.unet.groups = groups;
    j->config.unet.time_dim = 16;
    j->batch = batch;
}

static hone_t step(void *user, hone_t x, const hone_t *rows)
{
    const struct job *j = user;
    hone_t y = hone_net_build(j->net, &j->nn, &j->config, x, rows[0], j->cond);
    return hone_add(hone_affine(x, 0.5, 0), hone_affine(y, 0.25, 0));
}

/* Five steps of the network on [batch, 16, 3]. */
static hone_graph *decision(struct job *j, bool unroll)
{
    const float times[5] = {99, 80, 50, 20, 0};
    hone_graph *g = hone_graph_create(j->k.ctx, &j->k.err);
    hone_t x = hone_input(g, "x", HONE_F32, HONE_SHAPE(j->batch, 16, 3));
    hone_t rows = hone_const(g, HONE_F32, HONE_SHAPE(5), times);
    j->cond = hone_input(g, "cond", HONE_F32, HONE_SHAPE(j->batch, 10));
    j->nn = (hone_nn){.g = g, .layout = j->layout};
    hone_chain_options o = {.steps = 5, .tables = &rows, .n_tables = 1, .unroll = unroll};
    hone_output(hone_chain(x, &o, step, j), "y");
    return g;
}

static int count(const hone_program *p, const char *op)
{
    int n = 0;
    for (int i = p->plan.n_prepare; i < p->plan.n_steps; i++)
        if (p->plan.steps[i].kind == PLAN_RUN && !strcmp(p->g->nodes[p->plan.steps[i].node].def->name, op))
            n++;
    return n;
}

/* Values for all parameters: a fresh store, and where a layer would begin at zero, what it may have become. */
static void fill(struct job *j, hone_store *s)
{
    float v[4096];
    hone_store_init(s, 3, &j->k.err);
    for (int i = 0; i < hone_layout_count(j->layout); i++) {
        const hone_shape shape = hone_layout_shape(j->layout, i);
        const int64_t n = hone_numel(&shape);
        const char *name = hone_layout_name(j->layout, i);
        if (n > 4096 || !(strstr(name, "modulate") || strstr(name, "final/output")))
            continue;
        for (int64_t q = 0; q < n; q++)
            v[q] = 0.3f * sinf((float)(7 * q + i));
        hone_store_set(s, i, v, n, &j->k.err);
    }
}

/* The decision of an open job without passes; with them; the same operation by operation; and unrolled with them. Gives
 * the first two programs to `look` and closes the job. */
static void four_ways(struct check *c, struct job *j,
                      void (*look)(struct check *c, const struct job *j, hone_program *const *p))
{
    struct kit *k = &j->k;
    hone_program *p[4];
    const int batch = j->batch;
    hone_graph *g[2] = {decision(j, false), decision(j, true)};
    for (int i = 0; i < 4; i++)
        p[i] = hone_compile(k->cpu, g[i / 3], &(hone_compile_options){.plain = i == 0, .debug = i == 2}, &k->err);
    hone_store *s = k->err.code == HONE_OK ? hone_store_create(k->ctx, j->layout, &k->err) : NULL;
    float x[4 * 48], cond[40];
    for (int i = 0; i < 192; i++)
        x[i] = sinf((float)i);
    for (int i = 0; i < 40; i++)
        cond[i] = cosf((float)i);
    const void *in[2] = {x, cond};
    if (s)
        fill(j, s);
    for (int i = 0; i < 4 && CHECK_MSG(c, k->err.code == HONE_OK, "%s: %s", k->err.where, k->err.text); i++)
        kit_run(k, p[i], in, &s, 0);
    for (int i = 1; i < 4 && CHECK_MSG(c, k->err.code == HONE_OK, "%s: %s", k->err.where, k->err.text); i++) {
        const float *a = hone_result(p[0], 0), *b = hone_result(p[i], 0);
        float largest = 0, worst = 0;
        for (int q = 0; q < batch * 48; q++) {
            largest = fmaxf(largest, fabsf(a[q]));
            worst = fmaxf(worst, fabsf(a[q] - b[q]));
        }
        CHECK_MSG(c, worst <= 1e-5f * largest, "program %d: %g of %g", i, (double)worst, (double)largest);
    }
    if (k->err.code == HONE_OK)
        look(c, j, p);
    for (int i = 0; i < 4; i++)
        hone_program_destroy(p[i]);
    hone_store_destroy(s);
    hone_graph_destroy(g[0]);
    hone_graph_destroy(g[1]);
    hone_layout_destroy(j->layout);
    kit_close(k, c);
}

/* Left in the loop: blocks, and the arithmetic of the sampler. */
static void look_unet(struct check *c, const struct job *j, hone_program *const *p)
{
    CHECK_MSG(c, count(p[0], "conv1d") > 0 && count(p[0], "conv_block") == 0, "plain");
    CHECK_MSG(c, count(p[1], "conv_block") > 0 && count(p[1], "conv1d") == 0 && count(p[1], "group_norm") == 0,
              "%d blocks, %d convolutions", count(p[1], "conv_block"), count(p[1], "conv1d"));
    CHECK_MSG(c, count(p[1], "mish") <= 1 && count(p[1], "sin") == 0 && count(p[1], "conv_pack") == 0,
              "%d mish, %d sin", count(p[1], "mish"), count(p[1], "sin"));
    if (j->batch == 1)
        CHECK_MSG(c, count(p[1], "permute") == 0, "%d permutations", count(p[1], "permute"));
}

static void unet(struct check *c, const char *widths, int groups, int batch)
{
    struct job j;
    job_open(&j, widths, groups, batch);
    four_ways(c, &j, look_unet);
}

/* Uses of an operation between the beginning of the loop and its end. */
static int in_loop(const hone_program *p, const char *op)
{
    int n = 0, inside = 0;
    for (int i = p->plan.n_prepare; i < p->plan.n_steps; i++) {
        const struct plan_step *s = &p->plan.steps[i];
        inside += (s->kind == PLAN_LOOP) - (s->kind == PLAN_END);
        n += inside && s->kind == PLAN_RUN && !strcmp(p->g->nodes[s->node].def->name, op);
    }
    return n;
}

/* Left in the loop of two blocks: what tokens go through. Modulations come from before it, and where all of the batch
 * has the same they are the gains and biases of norms. */
static void look_dit(struct check *c, const struct job *j, hone_program *const *p)
{
    CHECK_MSG(c, in_loop(p[0], "linear") == 2 + 2 * 4 + 3 + 2, "%d linear, plain", in_loop(p[0], "linear"));
    CHECK_MSG(c, in_loop(p[1], "linear") + in_loop(p[1], "conv_block") == 2 + 2 * 4 && in_loop(p[1], "linear") == 0,
              "%d linear", in_loop(p[1], "linear"));
    CHECK_MSG(c, in_loop(p[1], "silu") == 0 && in_loop(p[1], "sin") == 0 && in_loop(p[1], "layer_norm") == 5,
              "%d silu, %d sin, %d norms", in_loop(p[1], "silu"), in_loop(p[1], "sin"), in_loop(p[1], "layer_norm"));
    CHECK_MSG(c, in_loop(p[1], "rotary_attention") == 2 && in_loop(p[1], "permute") == 0, "%d attentions",
              in_loop(p[1], "rotary_attention"));
    CHECK_MSG(c, in_loop(p[1], "mul") == (j->batch > 1 ? 2 * 2 + 5 : 0), "%d mul", in_loop(p[1], "mul"));
    CHECK_MSG(c, in_loop(p[1], "add") == (j->batch > 1 ? 2 * 2 + 5 : 0) + 1, "%d add", in_loop(p[1], "add"));
}

static void dit(struct check *c, int width, int batch)
{
    struct job j;
    job_open(&j, "8", 8, batch);
    j.net = hone_net_find("dit", &j.k.err);
    hone_field_defaults(j.net->fields, &j.config.dit);
    j.config.dit.width = width;
    j.config.dit.layers = 2;
    j.config.dit.heads = 2;
    j.config.dit.time_dim = 16;
    four_ways(c, &j, look_dit);
}

/* The gradient of the network: what training plans for. */
static void training_plan(struct check *c, const char *widths, int batch, int unrolled)
{
    struct job j;
    job_open(&j, widths, 8, batch);
    struct kit *k = &j.k;
    hone_graph *g = unrolled ? decision(&j, true) : hone_graph_create(k->ctx, &k->err);
    hone_t y = HONE_NONE;
    if (unrolled) {
        y = (hone_t){g, g->outputs[0].value};
    } else {
        j.nn = (hone_nn){.g = g, .layout = j.layout};
        j.cond = hone_input(g, "cond", HONE_F32, HONE_SHAPE(batch, 10));
        y = hone_net_build(j.net, &j.nn, &j.config, hone_input(g, "x", HONE_F32, HONE_SHAPE(batch, 16, 3)),
                           hone_input(g, "t", HONE_I32, HONE_SHAPE(batch)), j.cond);
    }
    hone_t loss = hone_mean(hone_square(y), HONE_AXES_ALL, false);
    hone_nn_gradients(&j.nn, loss, "grad");
    hone_output(loss, "loss");
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    if (CHECK_MSG(c, p != NULL, "%s: %s", k->err.where, k->err.text)) {
        hone_plan_info f = hone_program_plan(p);
        CHECK_MSG(c, (double)f.transient <= 1.1 * (double)f.live_peak, "%zu of %zu", f.transient, f.live_peak);
    }
    hone_program_destroy(p);
    hone_graph_destroy(g);
    hone_layout_destroy(j.layout);
    kit_close(k, c);
}

void suite_nn_fast(struct check *c)
{
    static const struct {
        const char *widths;
        int groups, batch;
    } t[] = {{"64,128,256", 8, 1}, {"8,12,16", 4, 1}, {"8,12,16", 4, 3}, {"16,32", 8, 4}};
    for (int i = 0; i < 4; i++)
        if (check_case(c, "widths %s, batch %d: fused equals plain", t[i].widths, t[i].batch))
            unet(c, t[i].widths, t[i].groups, t[i].batch);
    for (int batch = 1; batch < 4; batch += 2)
        if (check_case(c, "transformer, batch %d: fused equals plain", batch))
            dit(c, 32, batch);
    if (check_case(c, "plan of a training step within 1.1 of what is alive"))
        training_plan(c, "64,128,256", 64, 0);
    if (check_case(c, "plan of a chain's gradient within 1.1 of what is alive"))
        training_plan(c, "16,32", 8, 1);
}
