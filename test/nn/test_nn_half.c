/* Decisions whose weights are kept as bf16: where they are representable, the same; else near; where they go by no
 * pairs, in f32. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/kit.h"
#include "hone/nn.h"
#include "op/conv_block.h"
#include "tensor/bf16.h"

enum { STEPS = 4, TIME = 8, MOST = 3 * TIME * 4 };

struct job {
    struct kit k;
    hone_layout *layout;
    const hone_net *net;
    union {
        hone_unet_config unet;
        hone_dit_config dit;
        char bytes[HONE_NET_CONFIG_MAX];
    } config;
    hone_nn nn;
    hone_t cond;
    int batch, actions;
};

static hone_t step(void *user, hone_t x, const hone_t *rows)
{
    const struct job *j = user;
    hone_t y = hone_net_build(j->net, &j->nn, &j->config, x, rows[0], j->cond);
    return hone_add(hone_affine(x, 0.5, 0), hone_affine(y, 0.25, 0));
}

static hone_graph *decision(struct job *j)
{
    const float times[STEPS] = {99, 60, 20, 0};
    hone_graph *g = hone_graph_create(j->k.ctx, &j->k.err);
    hone_t x = hone_input(g, "x", HONE_F32, HONE_SHAPE(j->batch, TIME, j->actions));
    hone_t rows = hone_const(g, HONE_F32, HONE_SHAPE(STEPS), times);
    j->cond = hone_input(g, "cond", HONE_F32, HONE_SHAPE(j->batch, 10));
    j->nn = (hone_nn){.g = g, .layout = j->layout};
    hone_output(hone_chain(x, &(hone_chain_options){.steps = STEPS, .tables = &rows, .n_tables = 1}, step, j), "y");
    return g;
}

/* Numbers from -1 to 1 around a fresh store's, rounded to what bf16 holds if `whole`. Biases and gains too: they stay
 * f32 either way. */
static void fill(struct job *j, hone_store *s, bool whole)
{
    static float v[1 << 16];
    hone_store_init(s, 3, &j->k.err);
    for (int i = 0; i < hone_layout_count(j->layout); i++) {
        const hone_shape shape = hone_layout_shape(j->layout, i);
        const int64_t n = hone_numel(&shape);
        if (n > (1 << 16))
            continue;
        for (int64_t q = 0; q < n; q++) {
            v[q] = hone_store_get(s, i)[q] + 0.02f * sinf((float)(7 * q + i));
            v[q] = whole ? bf16_float(bf16_of(v[q])) : v[q];
        }
        hone_store_set(s, i, v, n, &j->k.err);
    }
}

/* Packed weights: as bf16, as f32. */
static void packed(const hone_program *p, int n[2])
{
    n[0] = n[1] = 0;
    for (int i = 0; i < p->plan.n_steps; i++) {
        const struct plan_step *s = &p->plan.steps[i];
        if (s->kind == PLAN_RUN && p->g->nodes[s->node].def == &op_conv_pack)
            n[!p->g->nodes[s->node].attr.i[CP_HALF]]++;
    }
}

/* The largest difference between two runs, in parts of the largest number. */
static double apart(struct check *c, const hone_program *a, const hone_program *b, int n)
{
    const float *x = hone_result(a, 0), *y = hone_result(b, 0);
    double largest = 0, worst = 0;
    for (int i = 0; CHECK(c, x && y) && i < n; i++) {
        largest = fmax(largest, fabs((double)x[i]));
        worst = fmax(worst, isfinite(y[i]) ? fabs((double)x[i] - (double)y[i]) : INFINITY);
    }
    return worst / largest;
}

static void halves(struct check *c, struct job *j)
{
    struct kit *k = &j->k;
    float x[MOST], cond[30];
    int n[2], all[2];
    hone_graph *g = decision(j);
    hone_program *full = hone_compile(k->cpu, g, NULL, &k->err), *debug = NULL,
                 *half = hone_compile(k->cpu, g, &(hone_compile_options){.bf16_weights = true}, &k->err);
    debug = hone_compile(k->cpu, g, &(hone_compile_options){.bf16_weights = true, .debug = true}, &k->err);
    hone_store *s = hone_store_create(k->ctx, j->layout, &k->err);
    for (int i = 0; i < MOST; i++)
        x[i] = sinf((float)i);
    for (int i = 0; i < 30; i++)
        cond[i] = cosf((float)i);
    for (int whole = 0; s && half && debug && whole < 2; whole++) {
        const int count = j->batch * TIME * j->actions;
        fill(j, s, whole);
        CHECK(c,
              kit_run(k, full, (const void *[]){x, cond}, &s, 0) && kit_run(k, half, (const void *[]){x, cond}, &s, 0));
        CHECK(c, kit_run(k, debug, (const void *[]){x, cond}, &s, 0));
        CHECK_MSG(c, k->err.code == HONE_OK, "%s: %s", k->err.where, k->err.text);
        const double d = apart(c, full, half, count);
        CHECK_MSG(c, whole ? d <= 1e-6 : d > 1e-6 && d < 1e-2, "%s: %g", whole ? "representable" : "rounded", d);
        CHECK(c, apart(c, half, debug, count) <= 1e-6);
    }
    if (CHECK_MSG(c, full && half, "%s: %s", k->err.where, k->err.text)) {
        packed(half, n);
        packed(full, all);
        CHECK_MSG(c, n[0] > 0 && (n[1] > 0) == (j->actions % 2), "%d as bf16, %d as f32", n[0], n[1]);
        CHECK(c, all[0] == 0 && all[1] == n[0] + n[1]);
        const double before = (double)hone_program_plan(full).prepared,
                     after = (double)hone_program_plan(half).prepared;
        CHECK_MSG(c, after < 0.75 * before, "%g bytes prepared, %g in f32", after, before);
    }
    hone_program_destroy(full);
    hone_program_destroy(half);
    hone_program_destroy(debug);
    hone_store_destroy(s);
    hone_graph_destroy(g);
}

static void net(struct check *c, const char *name, int batch, int actions, int threads)
{
    struct job j = {.batch = batch, .actions = actions};
    kit_open(&j.k, &(hone_ctx_options){.threads = threads});
    j.layout = hone_layout_create(j.k.ctx, &j.k.err);
    j.net = hone_net_find(name, &j.k.err);
    hone_field_defaults(j.net->fields, &j.config);
    if (!strcmp(name, "unet")) {
        snprintf(j.config.unet.widths, sizeof j.config.unet.widths, "32,48");
        j.config.unet.groups = 4;
        j.config.unet.time_dim = 16;
    } else {
        j.config.dit.width = 32;
        j.config.dit.layers = 2;
        j.config.dit.heads = 2;
        j.config.dit.time_dim = 16;
    }
    halves(c, &j);
    hone_layout_destroy(j.layout);
    kit_close(&j.k, c);
}

void suite_nn_half(struct check *c)
{
    static const struct {
        const char *name;
        int batch, actions;
    } t[] = {{"unet", 1, 4}, {"unet", 3, 3}, {"dit", 1, 4}, {"dit", 2, 3}};
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++)
        for (int threads = 1; threads <= 3; threads++)
            if (check_case(c, "%s, batch %d, %d actions, %d threads", t[i].name, t[i].batch, t[i].actions, threads))
                net(c, t[i].name, t[i].batch, t[i].actions, threads);
}
