/* Training steps with the passes that lay signals out anew, fuse norms and make values again: the same gradients as
 * without, in less memory. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/kit.h"
#include "graph/pass.h"
#include "graph/store.h"
#include "hone/nn.h"

struct job {
    struct kit k;
    hone_layout *layout;
    hone_nn nn;
    const char *net, *widths;
    int batch, horizon, threads;
};

union config {
    hone_unet_config unet;
    char bytes[HONE_NET_CONFIG_MAX];
};

/* Mean of the squared output, twice applied, so that gradients of the input matter too. */
static hone_graph *step_graph(struct job *j)
{
    hone_err *e = &j->k.err;
    const hone_net *net = hone_net_find(j->net, e);
    union config c;
    hone_graph *g = hone_graph_create(j->k.ctx, e);
    hone_field_defaults(net->fields, &c);
    if (j->widths) {
        snprintf(c.unet.widths, sizeof c.unet.widths, "%s", j->widths);
        c.unet.groups = 4;
        c.unet.time_dim = 16;
    } else {
        hone_field_set(net->fields, &c, strcmp(j->net, "mlp") ? "width" : "hidden", "32", e);
    }
    j->nn = (hone_nn){.g = g, .layout = j->layout};
    hone_t x = hone_input(g, "x", HONE_F32, HONE_SHAPE(j->batch, j->horizon, 3));
    hone_t cond = hone_input(g, "cond", HONE_F32, HONE_SHAPE(j->batch, 10));
    hone_t t = hone_input(g, "t", HONE_F32, HONE_SHAPE(j->batch));
    hone_t y = hone_net_build(net, &j->nn, &c, x, t, cond);
    y = hone_net_build(net, &j->nn, &c, hone_affine(y, 0.5, 0.1), t, cond);
    hone_t loss = hone_mean(hone_square(y), HONE_AXES_ALL, false);
    hone_nn_gradients(&j->nn, loss, "grad");
    hone_output(loss, "loss");
    return g;
}

static int count(const hone_program *p, const char *op)
{
    int n = 0;
    for (int i = 0; i < p->plan.n_steps; i++)
        n += p->plan.steps[i].kind == PLAN_RUN && !strcmp(p->g->nodes[p->plan.steps[i].node].def->name, op);
    return n;
}

static void run(struct job *j, hone_program *p, hone_store *param, hone_store *grad)
{
    float x[16 * 16 * 3], cond[160], t[16];
    for (int i = 0; i < 16 * 16 * 3; i++)
        x[i] = sinf((float)i);
    for (int i = 0; i < 160; i++)
        cond[i] = cosf((float)i);
    for (int i = 0; i < 16; i++)
        t[i] = (float)(11 * i);
    hone_store *s[2] = {0};
    s[hone_program_role(p, "param")] = param;
    s[hone_program_role(p, "grad")] = grad;
    kit_run(&j->k, p, (const void *[]){x, cond, t}, s, 0);
}

/* What a fresh store leaves at zero gets values, or the transformer would have no gradient to compare. */
static void fill_zeros(struct job *j, hone_store *s)
{
    float v[6 * 32 * 256]; /* six vectors of width 32 from 256 numbers */
    for (int i = 0; i < hone_layout_count(j->layout); i++) {
        const hone_shape shape = hone_layout_shape(j->layout, i);
        const int64_t n = hone_numel(&shape);
        const char *name = hone_layout_name(j->layout, i);
        if (n > (int64_t)(sizeof v / sizeof *v) || !(strstr(name, "modulate") || strstr(name, "final/output")))
            continue;
        for (int64_t q = 0; q < n; q++)
            v[q] = 0.3f * sinf((float)(7 * q + i));
        hone_store_set(s, i, v, n, &j->k.err);
    }
}

/* The norm of the difference of two stores over that of the first: of all tensors together, and, with room for what a
 * plain build rounds otherwise, of each. */
static void compare(struct check *c, const hone_store *a, const hone_store *b)
{
    const hone_layout *l = hone_store_layout(a);
    double whole = 0, wrong = 0;
    for (int i = 0; i < hone_layout_count(l); i++) {
        const hone_shape s = hone_layout_shape(l, i);
        const float *x = hone_store_get(a, i), *y = hone_store_get(b, i);
        double all = 0, apart = 0;
        for (int64_t k = 0; k < hone_numel(&s); k++) {
            all += (double)x[k] * (double)x[k];
            apart += ((double)x[k] - (double)y[k]) * ((double)x[k] - (double)y[k]);
        }
        CHECK_MSG(c, sqrt(apart) <= 3e-5 * sqrt(all) + 1e-12, "%s: %g of %g", hone_layout_name(l, i), sqrt(apart),
                  sqrt(all));
        whole += all;
        wrong += apart;
    }
    CHECK_MSG(c, whole > 0 && sqrt(wrong) <= 1e-5 * sqrt(whole), "all gradients: %g of %g", sqrt(wrong), sqrt(whole));
}

static void both_ways(struct check *c, struct job j, bool debug)
{
    const int batch = j.batch, horizon = j.horizon;
    struct kit *k = &j.k;
    hone_program *p[2];
    hone_store *grad[2] = {0};
    kit_open(k, &(hone_ctx_options){.threads = j.threads});
    j.layout = hone_layout_create(k->ctx, &k->err);
    hone_graph *g = step_graph(&j);
    for (int i = 0; i < 2; i++)
        p[i] = hone_compile(k->cpu, g, &(hone_compile_options){.plain = i == 0, .debug = i && debug}, &k->err);
    hone_store *param = k->err.code == HONE_OK ? hone_store_create(k->ctx, j.layout, &k->err) : NULL;
    if (param && hone_store_init(param, 3, &k->err) == HONE_OK)
        fill_zeros(&j, param);
    for (int i = 0; i < 2 && k->err.code == HONE_OK; i++) {
        grad[i] = hone_store_create(k->ctx, j.layout, &k->err);
        run(&j, p[i], param, grad[i]);
    }
    if (CHECK_MSG(c, k->err.code == HONE_OK, "%s: %s", k->err.where, k->err.text)) {
        const float *a = hone_result(p[0], 0), *b = hone_result(p[1], 0);
        CHECK_MSG(c, *a > 0 && fabsf(*a - *b) <= 1e-5f * fabsf(*a), "loss %g, %g", (double)*a, (double)*b);
        compare(c, grad[0], grad[1]);
        /* weights in another order weigh more than what a small batch saves */
        const bool small = debug || batch * horizon * 64 < hone_layout_parameters(j.layout);
        const hone_plan_info before = hone_program_plan(p[0]), after = hone_program_plan(p[1]);
        CHECK_MSG(c, small || after.transient <= before.transient, "%zu bytes, %zu without", after.transient,
                  before.transient);
#ifdef HONE_DNNL
        if (j.widths)
            CHECK_MSG(c,
                      count(p[1], "conv1d") + count(p[1], "conv1d_data_grad") + count(p[1], "conv1d_weight_grad") +
                              count(p[1], "group_norm") + count(p[1], "group_norm_grad") ==
                          0,
                      "something is not laid out");
#else
        (void)count;
#endif
    }
    for (int i = 0; i < 2; i++) {
        hone_program_destroy(p[i]);
        hone_store_destroy(grad[i]);
    }
    hone_store_destroy(param);
    hone_graph_destroy(g);
    hone_layout_destroy(j.layout);
    kit_close(k, c);
}

static bool takes(void *user, const struct op_call *c)
{
    const hone_device *d = user;
    return d->def->find(c) != NULL;
}

/* The passes before the last one; owns the result. */
static hone_graph *but_the_last(struct kit *k, const hone_graph *from)
{
    hone_graph *shared = pass_share(from, &k->err);
    hone_graph *fused = shared ? pass_fuse(shared, takes, k->cpu, false, &k->err) : NULL;
    hone_graph *laid = fused ? pass_time(fused, takes, k->cpu, &k->err) : NULL;
    hone_graph *g = laid ? pass_share(laid, &k->err) : NULL;
    hone_graph_destroy(shared);
    hone_graph_destroy(fused);
    hone_graph_destroy(laid);
    return g;
}

/* A step in which cheap values are made again, against one in which they wait: the same bits in less memory. */
static void made_again(struct check *c)
{
    struct job j = {.net = "unet", .widths = "64,128,256", .batch = 16, .horizon = 16};
    struct kit *k = &j.k;
    hone_program *p[2] = {0};
    hone_store *grad[2] = {0};
    int changed = 0;
    kit_open(k, NULL);
    j.layout = hone_layout_create(k->ctx, &k->err);
    hone_graph *g = step_graph(&j), *kept = but_the_last(k, g),
               *again = kept ? pass_remake(kept, &changed, &k->err) : NULL;
    for (int i = 0; again && i < 2; i++)
        p[i] = hone_compile(k->cpu, i ? again : kept, &(hone_compile_options){.plain = true}, &k->err);
    hone_store *param = k->err.code == HONE_OK ? hone_store_create(k->ctx, j.layout, &k->err) : NULL;
    if (param)
        hone_store_init(param, 3, &k->err);
    for (int i = 0; param && i < 2; i++) {
        grad[i] = hone_store_create(k->ctx, j.layout, &k->err);
        run(&j, p[i], param, grad[i]);
    }
    if (CHECK_MSG(c, k->err.code == HONE_OK && grad[1], "%s: %s", k->err.where, k->err.text)) {
        const size_t floats = (size_t)layout_floats(j.layout);
        const double less = (double)hone_program_plan(p[1]).transient, all = (double)hone_program_plan(p[0]).transient;
        CHECK(c, changed > 0);
        CHECK(c, *(const float *)hone_result(p[0], 0) == *(const float *)hone_result(p[1], 0));
        CHECK(c, !memcmp(grad[0]->slab, grad[1]->slab, floats * sizeof(float)));
#ifdef HONE_DNNL
        CHECK_MSG(c, less <= 0.8 * all, "%g bytes of %g", less, all);
#else /* norms that are not laid out are not made again */
        CHECK_MSG(c, less <= 0.95 * all, "%g bytes of %g", less, all);
#endif
    }
    for (int i = 0; i < 2; i++) {
        hone_program_destroy(p[i]);
        hone_store_destroy(grad[i]);
    }
    hone_store_destroy(param);
    hone_graph_destroy(g);
    hone_graph_destroy(kept);
    hone_graph_destroy(again);
    hone_layout_destroy(j.layout);
    kit_close(k, c);
}

void suite_nn_step(struct check *c)
{
    static const struct {
        const char *net, *widths;
        int batch, horizon;
        bool debug;
        int threads;
    } t[] = {{"unet", "64,128,256", 5, 16, false, 2}, {"unet", "8,12,16", 9, 16, false, 1},
             {"unet", "8,12,16", 9, 16, false, 3},    {"unet", "8,12,16", 9, 16, true, 2},
             {"unet", "16,20", 7, 6, true, 3},        {"unet", "16,20", 7, 6, false, 5},
             {"unet", "12", 6, 1, false, 1},          {"unet", "12", 6, 1, false, 3},
             {"mlp", NULL, 9, 4, false, 2},           {"dit", NULL, 6, 8, false, 3}};
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++)
        if (check_case(c, "%s %s, batch %d, horizon %d, %d threads%s: laid out equals plain", t[i].net,
                       t[i].widths ? t[i].widths : "", t[i].batch, t[i].horizon, t[i].threads,
                       t[i].debug ? ", checked" : ""))
            both_ways(c,
                      (struct job){.net = t[i].net,
                                   .widths = t[i].widths,
                                   .batch = t[i].batch,
                                   .horizon = t[i].horizon,
                                   .threads = t[i].threads},
                      t[i].debug);
    if (check_case(c, "values made again: the same bits in less memory"))
        made_again(c);
}
