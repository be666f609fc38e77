/* Building: scopes, poison, refusals, the verifier, gradients of whole graphs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/kit.h"

static void building(struct check *c, struct kit *k)
{
    if (check_case(c, "scopes nest and may repeat")) {
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_scope_push(g, "a");
        hone_scope_push(g, "b/c");
        CHECK(c, !strcmp(hone_scope(g), "a/b/c"));
        hone_scope_pop(g);
        hone_scope_push(g, "b");
        CHECK(c, !strcmp(hone_scope(g), "a/b"));
        hone_scope_pop(g);
        hone_scope_pop(g);
        CHECK(c, !strcmp(hone_scope(g), ""));
        hone_scope_pop(g);
        CHECK(c, !strcmp(hone_scope(g), ""));
        hone_graph_destroy(g);
    }
    if (check_case(c, "poison keeps the first error, with its layer")) {
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_err e = {0};
        hone_t a = hone_input(g, "a", HONE_F32, HONE_SHAPE(3, 4)), b = hone_input(g, "b", HONE_F32, HONE_SHAPE(5, 6));
        hone_scope_push(g, "policy/unet");
        hone_t z = hone_silu(hone_matmul(a, b, false, false));
        hone_add(a, b);
        hone_output(z, "z");
        CHECK(c, z.id < 0);
        CHECK(c, hone_graph_status(g, &e) == HONE_E_SHAPE);
        CHECK_MSG(c, !strcmp(e.where, "policy/unet/matmul"), "%s", e.where);
        CHECK_MSG(c, !strcmp(e.text, "inner dimensions must agree; got f32[3,4] f32[5,6]"), "%s", e.text);
        hone_graph_destroy(g);
    }
    if (check_case(c, "a value of another graph is refused")) {
        hone_graph *g = hone_graph_create(k->ctx, &k->err), *f = hone_graph_create(k->ctx, &k->err);
        hone_add(hone_const_f32(g, 1), hone_const_f32(f, 1));
        CHECK(c, hone_graph_status(g, NULL) == HONE_E_ARG);
        hone_graph_destroy(g);
        hone_graph_destroy(f);
    }
    if (check_case(c, "names are used once")) {
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_input(g, "a", HONE_F32, HONE_SHAPE(1));
        hone_input(g, "a", HONE_F32, HONE_SHAPE(1));
        CHECK(c, hone_graph_status(g, NULL) == HONE_E_ARG);
        hone_graph_destroy(g);
        g = hone_graph_create(k->ctx, &k->err);
        hone_random_normal(g, "noise", HONE_SHAPE(1));
        hone_random_normal(g, "noise", HONE_SHAPE(1));
        CHECK(c, hone_graph_status(g, NULL) == HONE_E_ARG);
        hone_graph_destroy(g);
    }
}

/* Plants one fault in a good graph; the verifier must see it. */
static void verifier(struct check *c, struct kit *k)
{
    static const char *const faults[] = {"operand order", "operand count", "result type", "constant bytes",
                                         "chain number",  "written twice", "shape rule"};
    for (int f = 0; f < 7; f++) {
        if (!check_case(c, "verifier: %s", faults[f]))
            continue;
        hone_layout *l = hone_layout_create(k->ctx, &k->err);
        hone_graph *g = kit_net(k, l, 4, 8, true);
        hone_err e = {0};
        hone_mul(g->n_inputs ? (hone_t){g, g->inputs[0].value} : HONE_NONE, hone_const_f32(g, 2));
        CHECK_MSG(c, ir_verify(g, &e) == HONE_OK, "%s: %s", e.where, e.text);
        struct ir_node *n = &g->nodes[g->n_nodes - 1], *k2 = n - 1;
        if (f == 0)
            n->in[0] = n->out0;
        if (f == 1)
            n->n_in = 1;
        if (f == 2)
            g->values[n->out0].type.shape.dim[0]++;
        if (f == 3)
            k2->bytes++;
        if (f == 4)
            n->loop = 9;
        if (f == 5)
            hone_write((hone_t){g, k2->out0}, "grad", l, 0),
                hone_accumulate(hone_full(g, HONE_SHAPE(3, 8), 1), "grad", l, 0);
        if (f == 6)
            g->values[n->in[0]].type.dtype = HONE_I32;
        CHECK(c, ir_verify(g, &e) != HONE_OK);
        CHECK(c, hone_compile(k->cpu, g, NULL, &(hone_err){0}) == NULL);
        hone_graph_destroy(g);
        hone_layout_destroy(l);
    }
}

static hone_t body(void *user, hone_t x, const hone_t *rows)
{
    (void)user;
    return hone_mul(x, hone_affine(rows[0], 2, 0));
}

/* A pass that puts what reads the result of a chain into that chain is seen: it would be hoisted before its loop. */
static void verifier_of_chains(struct check *c, struct kit *k)
{
    if (!check_case(c, "verifier: a chain reads its own result"))
        return;
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t rows = hone_const(g, HONE_F32, HONE_SHAPE(2), (const float[]){1, 2}), x = hone_const_f32(g, 3);
    hone_t y = hone_chain(x, &(hone_chain_options){.steps = 2, .tables = &rows, .n_tables = 1}, body, NULL);
    hone_output(hone_affine(y, 2, 0), "y");
    struct ir_node *last = &g->nodes[g->n_nodes - 1];
    hone_err e = {0};
    CHECK(c, last->loop == 0 && ir_verify(g, &e) == HONE_OK);
    last->loop = g->n_loops;
    CHECK(c, ir_verify(g, &e) == HONE_E_STATE && strstr(e.text, "chain that it belongs to"));
    hone_graph_destroy(g);
}

static void gradients(struct check *c, struct kit *k)
{
    const float table[4] = {0.5f, 1.5f, 0.25f, 3};
    const struct {
        const char *name;
        int last, segment;
        double want; /* d(x * prod 2 t) / dx through the steps that a gradient passes */
    } t[] = {{"whole chain", 0, 0, 1 * 3 * 0.5 * 6}, {"last 2 steps", 2, 0, 0}, {"segments of 3", 0, 3, 0}};
    for (int i = 0; i < 3; i++) {
        if (!check_case(c, "gradient through a chain: %s", t[i].name))
            continue;
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_t x = hone_const(g, HONE_F32, HONE_SHAPE(1), &(float){2}), dx, dt;
        hone_t rows = hone_const(g, HONE_F32, HONE_SHAPE(4), table);
        hone_t y = hone_chain(x, &(hone_chain_options){4, &rows, 1, true, t[i].last, t[i].segment}, body, NULL);
        hone_t both[2] = {x, rows}, d[2];
        hone_gradients(hone_sum(y, HONE_AXES_ALL, false), both, 2, d);
        dx = d[0], dt = d[1];
        double **v = ir_reference(g, NULL, NULL, &k->err);
        CHECK_MSG(c, v != NULL, "%s %s", k->err.where, k->err.text);
        if (v) {
            CHECK(c, fabs(v[y.id][0] - 2 * 1 * 3 * 0.5 * 6) < 1e-12);
            CHECK_MSG(c, fabs(v[dx.id][0] - t[i].want) < 1e-12, "%g", v[dx.id][0]);
            for (int s = 0; s < 4; s++) { /* dy/dt_s = y / t_s where the gradient reaches step s, else 0 */
                bool reached = t[i].last ? s >= 4 - t[i].last : t[i].segment ? s >= 3 : true;
                CHECK_MSG(c, fabs(v[dt.id][s] - (reached ? 18.0 / table[s] : 0)) < 1e-12, "row %d: %g", s, v[dt.id][s]);
            }
        }
        ir_reference_free(g, v);
        hone_graph_destroy(g);
    }
    if (check_case(c, "no gradient through a repeated chain")) {
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_t x = hone_const_f32(g, 2), dx, rows = hone_const(g, HONE_F32, HONE_SHAPE(4), table);
        hone_t y = hone_chain(x, &(hone_chain_options){.steps = 4, .tables = &rows, .n_tables = 1}, body, NULL);
        hone_gradients(y, &x, 1, &dx);
        CHECK(c, hone_graph_status(g, NULL) == HONE_E_UNSUPPORTED);
        hone_graph_destroy(g);
    }
    if (check_case(c, "a chain beside the loss does not matter")) {
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_t x = hone_const_f32(g, 2), dx, rows = hone_const(g, HONE_F32, HONE_SHAPE(4), table);
        hone_chain(x, &(hone_chain_options){.steps = 4, .tables = &rows, .n_tables = 1}, body, NULL);
        hone_gradients(hone_mul(x, x), &x, 1, &dx);
        CHECK(c, hone_graph_status(g, NULL) == HONE_OK && dx.id >= 0);
        hone_graph_destroy(g);
    }
    if (check_case(c, "a layout larger than memory is refused")) {
        hone_layout *l = hone_layout_create(k->ctx, &k->err);
        hone_err e = {0};
        char name[8];
        for (int i = 0; i < 40 && e.code == HONE_OK; i++) {
            snprintf(name, sizeof name, "w%d", i);
            hone_layout_add(l, name, HONE_SHAPE((int64_t)1 << 55), HONE_GROUP_DECAY, (hone_init){0}, &e);
        }
        CHECK(c, e.code == HONE_E_ARG);
        hone_layout_destroy(l);
    }
    if (check_case(c, "what the loss does not see has gradient zero")) {
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_t x[3] = {hone_const_f32(g, 2), hone_const_f32(g, 3), hone_const_f32(g, 5)}, d[3];
        hone_gradients(hone_mul(x[0], hone_stop_gradient(hone_mul(x[0], x[1]))), x, 3, d);
        double **v = ir_reference(g, NULL, NULL, &k->err);
        CHECK(c, v && v[d[0].id][0] == 6 && v[d[1].id][0] == 0 && v[d[2].id][0] == 0);
        ir_reference_free(g, v);
        hone_graph_destroy(g);
    }
    if (check_case(c, "a loss of many elements is refused")) {
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_t x = hone_full(g, HONE_SHAPE(3), 1), d;
        hone_gradients(x, &x, 1, &d);
        CHECK(c, hone_graph_status(g, NULL) == HONE_E_SHAPE && d.id < 0);
        hone_graph_destroy(g);
    }
}

void suite_graph(struct check *c)
{
    struct kit k;
    kit_open(&k, NULL);
    building(c, &k);
    verifier(c, &k);
    verifier_of_chains(c, &k);
    gradients(c, &k);
    if (check_case(c, "nothing leaks"))
        kit_close(&k, c);
    else
        kit_close(&k, &(struct check){.open = 1});
}
