/* Networks against PyTorch, and what they refuse. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/ir.h"
#include "nn/golden.h"

#define TOL 1e-5

static const char *const names[] = {"mlp", "unet", "dit"};

static void outputs(struct check *c, struct golden *g, const hone_compile_options *o, double tol)
{
    int64_t n = hone_numel(&g->s);
    hone_nn nn = golden_nn(g);
    golden_build(g, &nn);
    hone_program *p = golden_run(g, c, nn.g, o, &g->param);
    if (!p)
        return;
    golden_compare(g, c, "out/y", golden_result(p, "y"), n, tol);
    golden_compare(g, c, "out/loss", golden_result(p, "loss"), 1, tol);
    hone_program_destroy(p);
}

/* Gradients of parameters through the store, of x and cond as outputs. */
static void gradients(struct check *c, struct golden *g, const hone_compile_options *o)
{
    char name[128];
    hone_nn nn = golden_nn(g);
    struct golden_graph r = golden_build(g, &nn);
    hone_t d[2];
    hone_nn_gradients(&nn, r.loss, NULL);
    hone_gradients(r.loss, (hone_t[]){r.x, r.cond}, 2, d);
    hone_output(d[0], "dx");
    hone_output(d[1], "dcond");
    hone_store *grad = hone_store_create(g->ctx, g->layout, &g->err), *stores[2] = {g->param, grad};
    hone_program *p = golden_run(g, c, r.g, o, stores);
    if (p) {
        double worst = golden_compare(g, c, "grad/in/x", golden_result(p, "dx"), hone_numel(&g->s), TOL);
        worst =
            fmax(worst, golden_compare(g, c, "grad/in/cond", golden_result(p, "dcond"), hone_numel(&g->s_cond), TOL));
        for (int i = 0; i < hone_layout_count(g->layout); i++) {
            hone_shape s = hone_layout_shape(g->layout, i);
            snprintf(name, sizeof name, "grad/%s", hone_layout_name(g->layout, i));
            worst = fmax(worst, golden_compare(g, c, name, hone_store_get(grad, i), hone_numel(&s), TOL));
        }
        if (c->verbose)
            printf("    worst gradient %.2g\n", worst);
    }
    hone_program_destroy(p);
    hone_store_destroy(grad);
}

static void time_embedding(struct check *c, struct golden *g)
{
    const bool mlp = !strcmp(g->net->name, "mlp"), dit = !strcmp(g->net->name, "dit");
    const int64_t dim = dit ? 8 : 16, hidden = dit ? 12 : mlp ? 32 : 64;
    hone_nn nn = golden_nn(g);
    hone_t t = hone_input(nn.g, "t", HONE_I32, HONE_SHAPE(g->s.dim[0]));
    hone_output(hone_nn_sinusoid(t, dim), "sinusoid");
    hone_output(hone_nn_time(&nn, "time", t, dim, hidden, dit ? HONE_ACT_SILU : HONE_ACT_MISH), "time");
    hone_program *p = golden_run(g, c, nn.g, NULL, &g->param);
    if (!p)
        return;
    golden_compare(g, c, "act/sinusoid", golden_result(p, "sinusoid"), g->s.dim[0] * dim, TOL);
    golden_compare(g, c, "act/time", golden_result(p, "time"), g->s.dim[0] * dim, TOL);
    hone_program_destroy(p);
}

/* One number for the batch gives what that number in each place gives. */
static void one_time(struct check *c, struct golden *g)
{
    const float same[4] = {37, 37, 37, 37};
    const int64_t n = hone_numel(&g->s);
    hone_nn nn = golden_nn(g);
    hone_t x = hone_input(nn.g, "x", HONE_F32, g->s), cond = hone_input(nn.g, "cond", HONE_F32, g->s_cond);
    hone_t each = hone_const(nn.g, HONE_F32, HONE_SHAPE(g->s.dim[0]), same), one = hone_const_f32(nn.g, 37);
    hone_output(hone_net_build(g->net, &nn, g->config.bytes, x, each, cond), "each");
    hone_output(hone_net_build(g->net, &nn, g->config.bytes, x, one, cond), "one");
    hone_program *p = golden_run(g, c, nn.g, NULL, &g->param);
    if (!p)
        return;
    const float *a = golden_result(p, "each"), *b = golden_result(p, "one");
    float worst = 0;
    for (int64_t i = 0; i < n; i++)
        worst = fmaxf(worst, fabsf(a[i] - b[i]));
    CHECK_MSG(c, worst <= 3e-6f && a[0] != 0, "off by %g", (double)worst);
    hone_program_destroy(p);
}

/* The first sample by itself gives what it gives in its batch: a transformer of a batch of one takes other operations.
 */
static void by_itself(struct check *c, struct golden *g)
{
    const hone_shape s = HONE_SHAPE(1, g->s.dim[1], g->s.dim[2]);
    const int64_t n = hone_numel(&s);
    hone_nn nn = golden_nn(g);
    hone_t x = hone_input(nn.g, "x", HONE_F32, s), t = hone_input(nn.g, "t", HONE_I32, HONE_SHAPE(1));
    hone_t cond = hone_input(nn.g, "cond", HONE_F32, HONE_SHAPE(1, g->s_cond.dim[1]));
    hone_output(hone_net_build(g->net, &nn, g->config.bytes, x, t, cond), "y");
    hone_program *p = golden_run(g, c, nn.g, NULL, &g->param);
    int64_t all = 0;
    double *want = p ? golden_values(g, c, "out/y", &all) : NULL, worst = 0, top = 0;
    for (int64_t i = 0; want && i < n; i++) {
        worst = fmax(worst, fabs(want[i] - (double)golden_result(p, "y")[i]));
        top = fmax(top, fabs(want[i]));
    }
    CHECK_MSG(c, want && all > n && worst <= TOL * top, "off by %g of %g", worst, top);
    free(want);
    hone_program_destroy(p);
}

static void against_pytorch(struct check *c, const char *name)
{
    struct golden g;
    if (!golden_open(&g, c, name))
        return;
    if (check_case(c, "%s: output and loss", name))
        outputs(c, &g, NULL, TOL);
    if (check_case(c, "%s: output and loss, expanded", name))
        outputs(c, &g, &(hone_compile_options){.expand = true}, TOL);
    if (check_case(c, "%s: gradients", name))
        gradients(c, &g, NULL);
    if (check_case(c, "%s: gradients, one operation at a time", name))
        gradients(c, &g, &(hone_compile_options){.debug = true});
    if (check_case(c, "%s: time embedding", name))
        time_embedding(c, &g);
    if (check_case(c, "%s: one time for all", name))
        one_time(c, &g);
    if (check_case(c, "%s: a sample by itself", name))
        by_itself(c, &g);
    golden_close(&g, c);
}

/* --- without fixtures --- */

struct room {
    hone_ctx *ctx;
    hone_layout *layout;
    hone_nn nn;
    hone_err err;
};

static void room_open(struct room *r)
{
    *r = (struct room){0};
    r->ctx = hone_ctx_create(NULL, &r->err);
    r->layout = hone_layout_create(r->ctx, &r->err);
    r->nn = (hone_nn){.g = hone_graph_create(r->ctx, &r->err), .layout = r->layout};
}

static void room_close(struct room *r)
{
    hone_graph_destroy(r->nn.g);
    hone_layout_destroy(r->layout);
    hone_ctx_destroy(r->ctx);
}

/* Builds the network with the settings "key value ..."; returns the number of parameters, -1 with r->err. */
static int64_t build(struct room *r, const char *net, const char *const *set, hone_shape x, int64_t cond)
{
    char config[HONE_NET_CONFIG_MAX];
    const hone_net *row = hone_net_find(net, &r->err);
    if (!row)
        return -1;
    hone_field_defaults(row->fields, config);
    for (; set && set[0]; set += 2)
        hone_field_set(row->fields, config, set[0], set[1], &r->err);
    hone_t tx = hone_input(r->nn.g, "x", HONE_F32, x), tt = hone_input(r->nn.g, "t", HONE_F32, HONE_SHAPE(x.dim[0]));
    hone_t tc = cond < 0 ? HONE_NONE : hone_input(r->nn.g, "cond", HONE_F32, HONE_SHAPE(x.dim[0], cond));
    hone_t y = hone_net_build(row, &r->nn, config, tx, tt, tc);
    hone_type ty = hone_type_of(y);
    if (hone_graph_status(r->nn.g, &r->err) != HONE_OK || !hone_shape_equal(&ty.shape, &x))
        return -1;
    return hone_layout_parameters(r->layout);
}

static void counts(struct check *c)
{
    struct room r;
    room_open(&r);
    int64_t n = build(&r, "unet", NULL, HONE_SHAPE(2, 16, 3), 256);
    CHECK_MSG(c, n == 5334147, "%lld: %s", (long long)n, r.err.text);
    CHECK(c, hone_layout_find(r.layout, "down0/block0/skip/weight") >= 0);
    CHECK(c, hone_layout_find(r.layout, "down0/block1/skip/weight") < 0);
    CHECK(c, hone_layout_find(r.layout, "down2/down/weight") < 0 && hone_layout_find(r.layout, "up2/up/weight") < 0);
    room_close(&r);
    room_open(&r);
    hone_scope_push(r.nn.g, "actor");
    n = build(&r, "mlp", (const char *const[]){"hidden", "32", NULL}, HONE_SHAPE(1, 4, 3), 10);
    CHECK_MSG(c, n == 4828, "%lld: %s", (long long)n, r.err.text);
    CHECK(c, hone_layout_find(r.layout, "actor/block0/linear1/bias") >= 0);
    room_close(&r);
    room_open(&r);
    n = build(&r, "mlp", (const char *const[]){"hidden", "32", "blocks", "0", NULL}, HONE_SHAPE(1, 4, 3), -1);
    CHECK_MSG(c, n == 32 * 16 + 32 + 16 * 32 + 16 + 28 * 32 + 32 + 32 * 12 + 12, "%lld: %s", (long long)n, r.err.text);
    room_close(&r);
}

/* With D the numbers of what is given and W the width: time and condition, tokens in and out, and of each block
 * 6 W D + 6 W, 12 W W + 9 W + 4 W. */
static void dit_counts(struct check *c)
{
    const int64_t W = 256, D = 256, block = 6 * W * D + 6 * W + 12 * W * W + 9 * W;
    for (int cond = 0; cond < 2; cond++) {
        struct room r;
        room_open(&r);
        int64_t n = build(&r, "dit", NULL, HONE_SHAPE(2, 16, 3), cond ? 64 : -1);
        int64_t want = 2 * (D * D + D) + cond * (64 * D + D) + 3 * W + W + 6 * block + 2 * W * D + 2 * W + 3 * W + 3;
        CHECK_MSG(c, n == want, "%lld, wanted %lld: %s", (long long)n, (long long)want, r.err.text);
        CHECK(c, hone_layout_find(r.layout, "block5/attention/qkv/weight") >= 0);
        CHECK(c, (hone_layout_find(r.layout, "cond/bias") >= 0) == cond);
        room_close(&r);
    }
}

/* A fresh transformer gives zeros, for its last layer begins at zero; with that layer filled, what it gives does not
 * hang on time and condition, for the modulations begin at zero too, and it is the same for tokens that are the same.
 */
static void dit_fresh(struct check *c)
{
    struct room r;
    float x[2 * 5 * 2], w[64] = {0};
    room_open(&r);
    hone_device *cpu = hone_device_open(r.ctx, "cpu", &r.err);
    CHECK_MSG(c, build(&r, "dit", (const char *const[]){"width", "16", "heads", "4", NULL}, HONE_SHAPE(2, 5, 2), 3) > 0,
              "%s", r.err.text);
    hone_output((hone_t){r.nn.g, r.nn.g->n_values - 1}, "y");
    hone_program *p = hone_compile(cpu, r.nn.g, NULL, &r.err);
    hone_store *s = p ? hone_store_create(r.ctx, r.layout, &r.err) : NULL;
    const void *in[] = {x, (const float[]){3, 70}, (const float[]){1, 2, 3, -4, 5, -6}};
    for (int i = 0; i < 20; i++)
        x[i] = (float)(i % 10 / 2 == 3 ? 5 : 1 + i % 2);
    for (int filled = 0; s && filled < 2; filled++) {
        if (!filled)
            hone_store_init(s, 1, &r.err);
        for (int i = 0; i < 32; i++)
            w[i] = (float)(i % 7) - 3;
        if (filled)
            hone_store_set(s, hone_layout_find(r.layout, "final/output/weight"), w, 32, &r.err);
        hone_run(p, &(hone_run_args){.inputs = in, .stores = &s}, &r.err);
        if (!CHECK_MSG(c, hone_wait(p, &r.err) == HONE_OK, "%s: %s", r.err.where, r.err.text))
            break;
        const float *y = hone_result(p, 0);
        for (int i = 0; i < 10; i++)
            CHECK(c, y[i] == y[10 + i] && (y[i] != 0) == filled && (y[i] == y[i % 2]) == (!filled || i / 2 != 3));
    }
    hone_store_destroy(s);
    hone_program_destroy(p);
    hone_device_close(cpu);
    room_close(&r);
}

static void refusals(struct check *c)
{
    static const struct {
        const char *net, *set[7];
        hone_shape x;
        int64_t cond;
        hone_status code;
        const char *says;
    } bad[] = {
        {"unett", {NULL}, {3, {2, 16, 3}}, 4, HONE_E_ARG, "did you mean \"unet\""},
        {"unet", {NULL}, {3, {2, 18, 3}}, 4, HONE_E_SHAPE, "multiple of 4, for it is halved 2 times; got 18"},
        {"unet", {"horizon", "18"}, {3, {2, 18, 3}}, 4, HONE_E_CONFIG, "horizon must be a multiple of 4"},
        {"unet", {"widths", "64,100"}, {3, {2, 16, 3}}, 4, HONE_E_CONFIG, "got 8 groups, width 100"},
        {"unet", {"widths", "64,,128"}, {3, {2, 16, 3}}, 4, HONE_E_CONFIG, "got \"64,,128\""},
        {"unet", {"widths", "64,128,"}, {3, {2, 16, 3}}, 4, HONE_E_CONFIG, "got \"64,128,\""},
        {"unet", {"widths", ""}, {3, {2, 16, 3}}, 4, HONE_E_CONFIG, "1 to 8 numbers"},
        {"unet", {"widths", "64,0"}, {3, {2, 16, 3}}, 4, HONE_E_CONFIG, "1 to 8 numbers"},
        {"unet", {"widths", "-64"}, {3, {2, 16, 3}}, 4, HONE_E_CONFIG, "1 to 8 numbers"},
        {"unet", {"widths", "99999999999999999999"}, {3, {2, 16, 3}}, 4, HONE_E_CONFIG, "1 to 8 numbers"},
        {"unet", {"widths", "8,8,8,8,8,8,8,8,8"}, {3, {2, 256, 3}}, 4, HONE_E_CONFIG, "1 to 8 numbers"},
        {"unet", {"kernel", "4"}, {3, {2, 16, 3}}, 4, HONE_E_CONFIG, "kernel must be odd; got 4"},
        {"unet", {"time_dim", "7"}, {3, {2, 16, 3}}, 4, HONE_E_CONFIG, "time_dim must be even; got 7"},
        {"mlp", {"time_dim", "7"}, {3, {2, 16, 3}}, 4, HONE_E_CONFIG, "time_dim must be even; got 7"},
        {"dit", {"time_dim", "7"}, {3, {2, 16, 3}}, 4, HONE_E_CONFIG, "time_dim must be even; got 7"},
        {"dit", {"heads", "3"}, {3, {2, 16, 3}}, 4, HONE_E_CONFIG, "got width 256, 3 heads"},
        {"dit", {"width", "24"}, {3, {2, 16, 3}}, 4, HONE_E_CONFIG, "must be an even number; got width 24, 8 heads"},
        {"dit", {"horizon", "8"}, {3, {2, 16, 3}}, 4, HONE_E_SHAPE, "horizon is set to 8; the operand has 16"},
        {"mlp", {"horizon", "8"}, {3, {2, 16, 3}}, 4, HONE_E_SHAPE, "horizon is set to 8; the operand has 16"},
        {"mlp", {"actions", "7"}, {3, {2, 16, 3}}, 4, HONE_E_SHAPE, "actions is set to 7; the operand has 3"},
        {"mlp", {"cond", "7"}, {3, {2, 16, 3}}, -1, HONE_E_SHAPE, "cond is set to 7; the operand has 0"},
        {"mlp", {NULL}, {2, {2, 16}}, 4, HONE_E_SHAPE, "got f32[2,16], f32[2], f32[2,4]"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct room r;
        room_open(&r);
        int64_t n = build(&r, bad[i].net, bad[i].set, bad[i].x, bad[i].cond);
        CHECK_MSG(c, n < 0 && r.err.code == bad[i].code && strstr(r.err.text, bad[i].says), "%zu: %s: %s", i,
                  hone_status_name(r.err.code), r.err.text);
        room_close(&r);
    }
}

/* Each width of the list is used, and one, or a condition of none, is enough. */
static void shapes(struct check *c)
{
    static const char *const widths[] = {"8", "8,16", "16,8,8", "8, 8,8,8"};
    for (int i = 0; i < 4; i++)
        for (int64_t cond = -1; cond < 3; cond += 3) {
            struct room r;
            room_open(&r);
            const char *set[] = {"widths", widths[i], "time_dim", "4", NULL};
            int64_t n = build(&r, "unet", set, HONE_SHAPE(2, 8, 3), cond);
            CHECK_MSG(c, n > 0, "%s: %s", widths[i], r.err.text);
            room_close(&r);
        }
}

static void tables(struct check *c)
{
    hone_err err = {0};
    for (int i = 0; hone_net_at(i); i++) {
        const hone_net *n = hone_net_at(i);
        CHECK_MSG(c, hone_field_table_check(n->fields, &err) == HONE_OK, "%s: %s", err.where, err.text);
        CHECK(c, n->doc && n->fields->size <= HONE_NET_CONFIG_MAX && hone_net_find(n->name, &err) == n);
    }
    CHECK(c, hone_net_at(-1) == NULL && hone_field_table_check(hone_adamw_fields(), &err) == HONE_OK);
}

void suite_nn_nets(struct check *c)
{
    for (int i = 0; i < 3; i++)
        against_pytorch(c, names[i]);
    if (check_case(c, "parameters are counted and named"))
        counts(c);
    if (check_case(c, "parameters of a transformer"))
        dit_counts(c);
    if (check_case(c, "a fresh transformer"))
        dit_fresh(c);
    if (check_case(c, "refusals say what is wrong"))
        refusals(c);
    if (check_case(c, "widths, and no condition"))
        shapes(c);
    if (check_case(c, "tables of settings"))
        tables(c);
}
