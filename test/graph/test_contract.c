/* What graphs, stores and programs promise and refuse, one promise a case. */
#include <string.h>

#include "graph/kit.h"
#include "hone/io.h"

static hone_layout *layout(struct kit *k)
{
    hone_layout *l = hone_layout_create(k->ctx, &k->err);
    hone_layout_add(l, "a", HONE_SHAPE(2), HONE_GROUP_PLAIN, (hone_init){HONE_INIT_ONE, 0}, &k->err);
    hone_layout_add(l, "b", HONE_SHAPE(16), HONE_GROUP_PLAIN, (hone_init){HONE_INIT_ONE, 0}, &k->err);
    return l;
}

/* The graph is refused, with `says` in the message. */
static void refused(struct check *c, struct kit *k, hone_graph *g, hone_status code, const char *says)
{
    hone_err e = {0};
    CHECK(c, hone_compile(k->cpu, g, NULL, &e) == NULL);
    CHECK_MSG(c, e.code == code && strstr(e.text, says), "%s: %s: %s", hone_status_name(e.code), e.where, e.text);
}

/* --- building --- */

static hone_t keep_inside(void *user, hone_t x, const hone_t *rows)
{
    (void)rows;
    return *(hone_t *)user = hone_affine(x, 2, 0);
}

static void stores_in_graphs(struct check *c, struct kit *k)
{
    static const char *const names[] = {"a tensor is written twice",
                                        "a group and a tensor of it are written",
                                        "a tensor is written with another shape",
                                        "a role has two layouts",
                                        "a value from inside of a chain is written",
                                        "a value from inside of a chain goes out"};
    for (int i = 0; i < 6; i++) {
        if (!check_case(c, "refused: %s", names[i]))
            continue;
        hone_layout *l = layout(k), *other = layout(k);
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_t two = hone_full(g, HONE_SHAPE(2), 1), inside;
        hone_write(two, "s", l, 0);
        if (i == 0)
            hone_write(hone_affine(two, 2, 0), "s", l, 0);
        if (i == 1)
            hone_write_group(hone_full(g, HONE_SHAPE(32), 1), "s", l, HONE_GROUP_PLAIN);
        if (i == 2)
            hone_write(hone_full(g, HONE_SHAPE(2, 8), 1), "s", l, 1);
        if (i == 3)
            hone_read(g, "s", other, 0);
        if (i > 3)
            hone_output(hone_chain(two, &(hone_chain_options){.steps = 3}, keep_inside, &inside), "y");
        if (i == 4)
            hone_write(inside, "t", l, 0);
        if (i == 5)
            hone_output(inside, "z");
        refused(c, k, g, i == 2 ? HONE_E_SHAPE : HONE_E_ARG,
                i < 2    ? "written twice"
                : i == 2 ? "wants [16]; got [2,8]"
                : i == 3 ? "two layouts"
                         : "inside a repeated chain");
        hone_graph_destroy(g);
        hone_layout_destroy(l);
        hone_layout_destroy(other);
    }
    if (check_case(c, "a tensor is one value, however often it is read")) {
        hone_layout *l = layout(k);
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_t a = hone_read(g, "s", l, 0), b = hone_read(g, "s", l, 1);
        CHECK(c, a.id == hone_read(g, "s", l, 0).id && b.id == hone_read(g, "s", l, 1).id && a.id != b.id);
        CHECK(c, hone_read(g, "t", l, 0).id != a.id);
        hone_t all = hone_read_group(g, "s", l, HONE_GROUP_PLAIN);
        CHECK(c, all.id == hone_read_group(g, "s", l, HONE_GROUP_PLAIN).id && all.id != a.id);
        hone_graph_destroy(g);
        hone_layout_destroy(l);
    }
}

static void layers_of_gradients(struct check *c, struct kit *k)
{
    if (!check_case(c, "a gradient belongs to the layer of its operation"))
        return;
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t x = hone_input(g, "x", HONE_F32, HONE_SHAPE(4)), d;
    hone_scope_push(g, "inner");
    hone_t y = hone_mul(hone_silu(x), x);
    hone_scope_pop(g);
    hone_scope_push(g, "outer");
    hone_t loss = hone_sum(hone_affine(y, 3, 0), HONE_AXES_ALL, false);
    int before = g->n_nodes, in_layer[2] = {0, 0};
    hone_gradients(loss, &x, 1, &d);
    CHECK(c, !strcmp(hone_scope(g), "outer"));
    for (int i = before; i < g->n_nodes; i++) {
        in_layer[0] += !strcmp(g->scopes[g->nodes[i].scope].path, "inner");
        in_layer[1] += !strcmp(g->scopes[g->nodes[i].scope].path, "outer");
    }
    CHECK_MSG(c, in_layer[0] > 1 && in_layer[1] > 1, "%d of inner, %d of outer", in_layer[0], in_layer[1]);
    hone_graph_destroy(g);
}

/* --- programs --- */

static void inputs_stay(struct check *c, struct kit *k)
{
    if (!check_case(c, "inputs keep their numbers, used or not"))
        return;
    static const float a[2] = {1, 2}, b[3] = {3, 4, 5};
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_input(g, "a", HONE_F32, HONE_SHAPE(2));
    hone_output(hone_affine(hone_input(g, "b", HONE_F32, HONE_SHAPE(3)), 2, 0), "y");
    hone_input(g, "c", HONE_F32, HONE_SHAPE(7));
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    const void *in[3] = {a, b, (const float[7]){0}};
    CHECK(c, p && hone_program_inputs(p) == 3 && hone_program_input(p, "c") == 2);
    CHECK(c, p && hone_program_input_type(p, 2).shape.dim[0] == 7);
    if (CHECK_MSG(c, kit_run(k, p, in, NULL, 0), "%s: %s", k->err.where, k->err.text))
        CHECK(c, ((const float *)hone_result(p, 0))[2] == 10);
    hone_program_destroy(p);
    hone_graph_destroy(g);
}

static void seeds_differ(struct check *c, struct kit *k)
{
    if (!check_case(c, "random buffers of every kind follow seed and run"))
        return;
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_output(hone_random_normal(g, "n", HONE_SHAPE(16)), "n");
    hone_output(hone_random_uniform(g, "u", HONE_SHAPE(16)), "u");
    hone_output(hone_random_index(g, "i", HONE_SHAPE(16), 1000), "i");
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    static const uint64_t seed[4] = {1, 2, 1, (uint64_t)1 << 32 | 1}, run[4] = {7, 7, 8, 7};
    unsigned char kept[4][3][64];
    for (int i = 0; p && i < 4; i++) {
        hone_run(p, &(hone_run_args){.seed = seed[i], .run = run[i]}, &k->err);
        CHECK(c, hone_wait(p, &k->err) == HONE_OK);
        for (int q = 0; q < 3; q++) {
            memcpy(kept[i][q], hone_result(p, q), 64);
            for (int j = 0; j < i; j++)
                CHECK_MSG(c, memcmp(kept[i][q], kept[j][q], 64) != 0, "output %d, runs %d and %d", q, j, i);
        }
    }
    hone_program_destroy(p);
    hone_graph_destroy(g);
}

/* --- stores --- */

struct two { /* a program that reads role "param" and writes role "grad" */
    hone_layout *l;
    hone_graph *g;
    hone_program *p;
    hone_store *param, *grad;
};

static struct two two_open(struct kit *k, bool debug)
{
    struct two t = {.l = layout(k), .g = hone_graph_create(k->ctx, &k->err)};
    hone_t a = hone_read(t.g, "param", t.l, 0);
    hone_accumulate(hone_mul(a, hone_input(t.g, "x", HONE_F32, HONE_SHAPE(2))), "grad", t.l, 0);
    t.p = hone_compile(k->cpu, t.g, &(hone_compile_options){.debug = debug}, &k->err);
    t.param = hone_store_create(k->ctx, t.l, &k->err);
    t.grad = hone_store_create(k->ctx, t.l, &k->err);
    hone_store_init(t.param, 1, &k->err);
    return t;
}

static void two_close(struct two *t)
{
    hone_program_destroy(t->p);
    hone_graph_destroy(t->g);
    hone_store_destroy(t->param);
    hone_store_destroy(t->grad);
    hone_layout_destroy(t->l);
}

static const float ones[2] = {1, 1};
static const void *const x_ones[1] = {ones};

/* A debug run executes in hone_wait, so its stores are in use all the time before. */
static void stores_in_use(struct check *c, struct kit *k)
{
    if (!check_case(c, "a store in use is neither changed nor read half-written"))
        return;
    struct two t = two_open(k, true);
    hone_store *stores[2] = {t.param, t.grad}, *third = hone_store_create(k->ctx, t.l, &k->err);
    CHECK(c, hone_run(t.p, &(hone_run_args){.inputs = x_ones, .stores = stores}, NULL) == HONE_OK);
    CHECK(c, hone_store_get(t.grad, 0)[0] == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(c, hone_store_set(stores[i], 0, ones, 2, NULL) == HONE_E_BUSY);
        CHECK(c, hone_store_zero(stores[i], NULL) == HONE_E_BUSY);
        CHECK(c, hone_store_init(stores[i], 3, NULL) == HONE_E_BUSY);
        CHECK(c, hone_store_copy(stores[i], third, NULL) == HONE_E_BUSY);
    }
    CHECK(c, hone_store_copy(third, t.param, NULL) == HONE_OK && hone_store_get(third, 0)[0] == 1);
    CHECK(c, hone_store_copy(third, t.grad, NULL) == HONE_E_BUSY);
    CHECK(c, hone_store_save(t.grad, "never written", NULL, NULL, 0, NULL) == HONE_E_BUSY);
    CHECK(c, hone_wait(t.p, &k->err) == HONE_OK && hone_store_get(t.grad, 0)[0] == 1);
    CHECK(c, hone_store_copy(third, t.grad, NULL) == HONE_OK && hone_store_set(t.grad, 0, ones, 2, NULL) == HONE_OK);
    CHECK(c, hone_store_zero(t.param, NULL) == HONE_OK);
    hone_store_destroy(third);
    two_close(&t);
}

static void refused_run_lets_go(struct check *c, struct kit *k)
{
    if (!check_case(c, "a run that is refused keeps no store"))
        return;
    struct two t = two_open(k, false);
    hone_store *stores[][2] = {{t.param, NULL}, {NULL, t.grad}, {t.grad, t.grad}};
    for (int i = 0; i < 4; i++) {
        const hone_run_args a = {.inputs = i < 3 ? x_ones : NULL, .stores = stores[i % 3]};
        if (i == 3)
            stores[0][1] = t.grad; /* an input is missing, told after the stores were taken */
        CHECK(c, hone_run(t.p, &a, NULL) == (i == 2 ? HONE_E_BUSY : HONE_E_ARG));
        CHECK(c, hone_store_zero(t.grad, NULL) == HONE_OK);
        CHECK(c, hone_store_init(t.param, 1, NULL) == HONE_OK);
    }
    CHECK(c, kit_run(k, t.p, x_ones, (hone_store *[]){t.param, t.grad}, 0) && hone_store_get(t.grad, 0)[1] == 1);
    two_close(&t);
}

static void budget(struct check *c)
{
    if (!check_case(c, "a store beyond the budget is refused, and what fits is counted"))
        return;
    struct kit k;
    hone_err e = {0};
    kit_open(&k, &(hone_ctx_options){.memory_budget = 300});
    hone_layout *l = layout(&k);
    hone_store *a = hone_store_create(k.ctx, l, &k.err), *b = hone_store_create(k.ctx, l, &k.err);
    CHECK(c, a && b && hone_ctx_mem(k.ctx).planned_bytes == 256);
    CHECK(c, !hone_store_create(k.ctx, l, &e) && e.code == HONE_E_NOMEM && strstr(e.text, "smaller network"));
    hone_store_destroy(a);
    CHECK(c, hone_ctx_mem(k.ctx).planned_bytes == 128);
    hone_store_destroy(b);
    hone_layout_destroy(l);
    kit_close(&k, c);
}

/* --- debug runs --- */

static hone_status all_but_last(const struct bk_io *io, hone_err *err)
{
    (void)err;
    memset(io->out[0], 0, (size_t)(op_numel(&io->call->out[0]) - 1) * sizeof(float));
    return HONE_OK;
}

static const struct bk_kernel *find_lazy(const struct op_call *c)
{
    static const struct bk_kernel lazy = {.op = "silu", .run = all_but_last};
    return !strcmp(c->def->name, "silu") ? &lazy : bk_table[0]->find(c);
}

/* The place of the result held the right number before, of another value: only paint shows that nothing was written. */
static void unwritten_in_old_place(struct check *c, struct kit *k)
{
    if (!check_case(c, "debug sees an element that is not written where another value lay"))
        return;
    struct bk_def def = *k->cpu->def;
    hone_device bad = *k->cpu;
    hone_err e = {0};
    def.find = find_lazy;
    bad.def = &def;
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t x = hone_input(g, "x", HONE_F32, HONE_SHAPE(16));
    for (int i = 0; i < 4; i++)
        x = hone_affine(x, 2, 0);
    hone_output(hone_silu(x), "y");
    hone_program *p = hone_compile(&bad, g, &(hone_compile_options){.debug = true, .no_inplace = true}, &k->err);
    const float zeros[16] = {0};
    CHECK(c, hone_run(p, &(hone_run_args){.inputs = (const void *[]){zeros}}, &e) == HONE_OK);
    CHECK_MSG(c, hone_wait(p, &e) == HONE_E_NONFINITE && strstr(e.text, "[15]"), "%s: %s", e.where, e.text);
    hone_program_destroy(p);
    hone_graph_destroy(g);
}

void suite_contract(struct check *c)
{
    struct kit k;
    kit_open(&k, NULL);
    stores_in_graphs(c, &k);
    layers_of_gradients(c, &k);
    inputs_stay(c, &k);
    seeds_differ(c, &k);
    stores_in_use(c, &k);
    refused_run_lets_go(c, &k);
    budget(c);
    unwritten_in_old_place(c, &k);
    if (check_case(c, "nothing leaks"))
        kit_close(&k, c);
    else
        kit_close(&k, &(struct check){.open = 1});
}
