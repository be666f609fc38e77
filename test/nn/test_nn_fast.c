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
    hone_unet_config config;
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
    hone_field_defaults(j->net->fields, &j->config);
    snprintf(j->config.widths, sizeof j->config.widths, "%s", widths);
    j->config.groups = groups;
    j->config.time_dim = 16;
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

static void fused_equals_plain(struct check *c, const char *widths, int groups, int batch)
{
    struct job j;
    job_open(&j, widths, groups, batch);
    struct kit *k = &j.k;
    hone_program *p[4];
    hone_graph *g[2] = {decision(&j, false), decision(&j, true)};
    for (int i = 0; i < 4; i++)
        p[i] = hone_compile(k->cpu, g[i / 3], &(hone_compile_options){.plain = i == 0, .debug = i == 2}, &k->err);
    hone_store *s = k->err.code == HONE_OK ? hone_store_create(k->ctx, j.layout, &k->err) : NULL;
    float x[4 * 48], cond[40];
    for (int i = 0; i < 192; i++)
        x[i] = sinf((float)i);
    for (int i = 0; i < 40; i++)
        cond[i] = cosf((float)i);
    const void *in[2] = {x, cond};
    if (s)
        hone_store_init(s, 3, &k->err);
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
    if (k->err.code == HONE_OK) { /* left in the loop: blocks, and the arithmetic of the sampler */
        CHECK_MSG(c, count(p[0], "conv1d") > 0 && count(p[0], "conv_block") == 0, "plain");
        CHECK_MSG(c, count(p[1], "conv_block") > 0 && count(p[1], "conv1d") == 0 && count(p[1], "group_norm") == 0,
                  "%d blocks, %d convolutions", count(p[1], "conv_block"), count(p[1], "conv1d"));
        CHECK_MSG(c, count(p[1], "mish") <= 1 && count(p[1], "sin") == 0 && count(p[1], "conv_pack") == 0,
                  "%d mish, %d sin", count(p[1], "mish"), count(p[1], "sin"));
        if (batch == 1)
            CHECK_MSG(c, count(p[1], "permute") == 0, "%d permutations", count(p[1], "permute"));
    }
    for (int i = 0; i < 4; i++)
        hone_program_destroy(p[i]);
    hone_store_destroy(s);
    hone_graph_destroy(g[0]);
    hone_graph_destroy(g[1]);
    hone_layout_destroy(j.layout);
    kit_close(k, c);
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
            fused_equals_plain(c, t[i].widths, t[i].groups, t[i].batch);
    if (check_case(c, "plan of a training step within 1.1 of what is alive"))
        training_plan(c, "64,128,256", 64, 0);
    if (check_case(c, "plan of a chain's gradient within 1.1 of what is alive"))
        training_plan(c, "16,32", 8, 1);
}
