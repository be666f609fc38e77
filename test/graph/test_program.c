/* Programs: stores, order, prepare segment, chains, memory, runs. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "graph/kit.h"

static const float xs[12] = {1, 2, 3, -1, 0.5f, 0.25f, 2, -2, 1, 0, 1, -3}, ys[8] = {1, 0, 2, 1, -1, 3, 0, 1};

/* --- stores --- */

static void as_at_entry(struct check *c, struct kit *k)
{
    if (!check_case(c, "a program sees tensors as they were at entry"))
        return;
    hone_layout *l = hone_layout_create(k->ctx, &k->err);
    for (int i = 0; i < 3; i++)
        hone_layout_add(l, (const char *[]){"a", "b", "c"}[i], HONE_SHAPE(5), HONE_GROUP_PLAIN, (hone_init){0},
                        &k->err);
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t a = hone_read(g, "s", l, 0), b = hone_read(g, "s", l, 1), cc = hone_read(g, "s", l, 2);
    hone_output(a, "a before");
    hone_write(b, "s", l, 0); /* a, b swap */
    hone_write(a, "s", l, 1);
    hone_write(hone_affine(cc, 2, 0), "s", l, 2);
    hone_output(hone_add(cc, a), "c + a");
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    hone_store *s = hone_store_create(k->ctx, l, &k->err);
    const float va[5] = {1, 2, 3, 4, 5}, vb[5] = {10, 20, 30, 40, 50}, vc[5] = {7, 7, 7, 7, 7};
    hone_store_set(s, 0, va, 5, &k->err);
    hone_store_set(s, 1, vb, 5, &k->err);
    hone_store_set(s, 2, vc, 5, &k->err);
    CHECK_MSG(c, kit_run(k, p, NULL, &s, 0), "%s: %s", k->err.where, k->err.text);
    if (k->err.code == HONE_OK)
        for (int i = 0; i < 5; i++) {
            CHECK(c, hone_store_get(s, 0)[i] == vb[i] && hone_store_get(s, 1)[i] == va[i]);
            CHECK(c, hone_store_get(s, 2)[i] == 14);
            CHECK(c, ((const float *)hone_result(p, 0))[i] == va[i]);
            CHECK(c, ((const float *)hone_result(p, 1))[i] == va[i] + 7);
        }
    hone_program_destroy(p);
    hone_store_destroy(s);
    hone_graph_destroy(g);
    hone_layout_destroy(l);
}

/* x is written while a later operation still reads its old value: the write must wait. */
static void write_waits_for_reads(struct check *c, struct kit *k)
{
    if (!check_case(c, "a write waits for the last read"))
        return;
    hone_layout *l = hone_layout_create(k->ctx, &k->err);
    hone_layout_add(l, "x", HONE_SHAPE(4), HONE_GROUP_PLAIN, (hone_init){0}, &k->err);
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t x = hone_read(g, "s", l, 0), y = hone_affine(x, 3, 1);
    hone_write(y, "s", l, 0);
    hone_output(hone_add(hone_reshape(x, HONE_SHAPE(2, 2)), hone_reshape(y, HONE_SHAPE(2, 2))), "x + y");
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    hone_store *s = hone_store_create(k->ctx, l, &k->err);
    hone_store_set(s, 0, xs, 4, &k->err);
    CHECK(c, kit_run(k, p, NULL, &s, 0));
    for (int i = 0; i < 4; i++) {
        CHECK(c, hone_store_get(s, 0)[i] == 3 * xs[i] + 1);
        CHECK(c, ((const float *)hone_result(p, 0))[i] == xs[i] + (3 * xs[i] + 1));
    }
    hone_program_destroy(p);
    hone_store_destroy(s);
    hone_graph_destroy(g);
    hone_layout_destroy(l);
}

static void accumulates(struct check *c, struct kit *k)
{
    if (!check_case(c, "gradients add up, in place, and equal debug and no in-place"))
        return;
    hone_layout *l = hone_layout_create(k->ctx, &k->err);
    hone_graph *g = kit_net(k, l, 4, 8, true);
    hone_store *param = hone_store_create(k->ctx, l, &k->err), *grad[3];
    hone_store_init(param, 3, &k->err);
    const void *in[2] = {xs, ys};
    for (int m = 0; m < 3; m++) {
        hone_compile_options o = {.debug = m == 1, .no_inplace = m == 2};
        hone_program *p = hone_compile(k->cpu, g, &o, &k->err);
        grad[m] = hone_store_create(k->ctx, l, &k->err);
        hone_store *stores[2] = {param, grad[m]};
        CHECK_MSG(c, kit_run(k, p, in, stores, 0) && kit_run(k, p, in, stores, 1), "%s: %s", k->err.where, k->err.text);
        int copies = 0;
        for (int i = 0; p && i < p->plan.n_steps; i++)
            copies += p->plan.steps[i].kind == PLAN_COPY && p->plan.steps[i].bytes > 0;
        CHECK_MSG(c, m == 2 ? copies == 3 : copies == 0, "%d copies", copies);
        hone_program_destroy(p);
    }
    for (int t = 0; t < 3; t++) {
        hone_shape s = hone_layout_shape(l, t);
        for (int64_t i = 0; i < hone_numel(&s); i++) {
            float a = hone_store_get(grad[0], t)[i];
            CHECK(c, a == hone_store_get(grad[1], t)[i] && a == hone_store_get(grad[2], t)[i] && a != 0);
        }
    }
    for (int m = 0; m < 3; m++)
        hone_store_destroy(grad[m]);
    hone_store_destroy(param);
    hone_graph_destroy(g);
    hone_layout_destroy(l);
}

/* x - a part of x, broadcast: the part must not be overwritten before it is read; and a result that is also written to
 * a store stays what it was when the store changes. */
static void overlapping(struct check *c, struct kit *k)
{
    if (!check_case(c, "operands that show a part of what is overwritten"))
        return;
    hone_layout *l = hone_layout_create(k->ctx, &k->err);
    hone_layout_add(l, "w", HONE_SHAPE(3, 4), HONE_GROUP_PLAIN, (hone_init){0}, &k->err);
    hone_layout_add(l, "v", HONE_SHAPE(3, 4), HONE_GROUP_PLAIN, (hone_init){0}, &k->err);
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t w = hone_read(g, "s", l, 0), next = hone_affine(hone_read(g, "s", l, 1), 2, 1);
    hone_write(hone_sub(w, hone_slice(w, 0, 0, 1)), "s", l, 0);
    hone_t q = hone_affine(hone_input(g, "a", HONE_F32, HONE_SHAPE(3, 4)), 2, 0);
    hone_write(next, "s", l, 1);
    hone_output(next, "next");
    hone_output(hone_add(hone_slice(q, 0, 0, 1), hone_input(g, "b", HONE_F32, HONE_SHAPE(3, 1))), "sum");
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    hone_store *s = hone_store_create(k->ctx, l, &k->err);
    hone_store_set(s, 0, xs, 12, &k->err);
    hone_store_set(s, 1, xs, 12, &k->err);
    CHECK_MSG(c, kit_run(k, p, (const void *[]){xs, ys}, &s, 0), "%s: %s", k->err.where, k->err.text);
    for (int i = 0; i < 12; i++)
        CHECK(c, hone_store_get(s, 0)[i] == xs[i] - xs[i % 4] && hone_store_get(s, 1)[i] == 2 * xs[i] + 1);
    hone_store_zero(s, &k->err);
    for (int i = 0; k->err.code == HONE_OK && i < 12; i++) {
        CHECK(c, ((const float *)hone_result(p, 0))[i] == 2 * xs[i] + 1);
        CHECK(c, ((const float *)hone_result(p, 1))[i] == 2 * xs[i % 4] + ys[i / 4]);
    }
    hone_program_destroy(p);
    hone_store_destroy(s);
    hone_graph_destroy(g);
    hone_layout_destroy(l);
}

/* --- prepare segment --- */

static float first(const hone_program *p)
{
    return ((const float *)hone_result(p, 0))[0];
}

static void prepare(struct check *c, struct kit *k)
{
    if (!check_case(c, "what depends on parameters alone is made once a version"))
        return;
    hone_layout *l = hone_layout_create(k->ctx, &k->err);
    hone_layout_add(l, "w", HONE_SHAPE(4), HONE_GROUP_PLAIN, (hone_init){0}, &k->err);
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t w = hone_read(g, "param", l, 0), table = hone_silu(hone_affine(w, 2, 0));
    hone_output(hone_add(table, hone_input(g, "x", HONE_F32, HONE_SHAPE(4))), "y");
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    hone_store *s = hone_store_create(k->ctx, l, &k->err);
    const void *in[1] = {xs};
    hone_plan_info info = hone_program_plan(p);
    CHECK_MSG(c, info.prepare_operations == 2 && info.operations == 1, "%d and %d", info.prepare_operations,
              info.operations);
    CHECK(c, kit_run(k, p, in, &s, 0) && kit_run(k, p, in, &s, 1));
    CHECK(c, hone_program_prepares(p) == 1 && first(p) == xs[0]);
    hone_store_set(s, 0, (const float[]){50, 1, 1, 1}, 4, &k->err);
    CHECK(c, kit_run(k, p, in, &s, 2) && hone_program_prepares(p) == 2 && first(p) == xs[0] + 100);
    hone_store *other = hone_store_create(k->ctx, l, &k->err);
    CHECK(c, kit_run(k, p, in, &other, 3) && hone_program_prepares(p) == 3 && first(p) == xs[0]);
    /* a new store may stand where an old one stood, with the same version */
    uint64_t version = other->version;
    hone_store_destroy(other);
    other = hone_store_create(k->ctx, l, &k->err);
    hone_store_set(other, 0, (const float[]){40, 1, 1, 1}, 4, &k->err);
    other->version = version;
    CHECK(c, kit_run(k, p, in, &other, 4) && first(p) == xs[0] + 80);
    hone_program_destroy(p);
    hone_store_destroy(s);
    hone_store_destroy(other);
    hone_graph_destroy(g);
    hone_layout_destroy(l);
}

/* An input or noise that nothing reads is copied in all the same, and must not land on what was prepared. */
static void unused_input(struct check *c, struct kit *k)
{
    if (!check_case(c, "an input that nothing reads spoils nothing"))
        return;
    hone_layout *l = hone_layout_create(k->ctx, &k->err);
    hone_layout_add(l, "w", HONE_SHAPE(4), HONE_GROUP_PLAIN, (hone_init){0}, &k->err);
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_input(g, "unused", HONE_F32, HONE_SHAPE(4));
    hone_output(hone_exp(hone_read(g, "param", l, 0)), "one");
    hone_output(hone_full(g, HONE_SHAPE(4), 7), "seven");
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    hone_store *s = hone_store_create(k->ctx, l, &k->err);
    for (int run = 0; run < 3; run++) {
        CHECK(c, kit_run(k, p, (const void *[]){xs}, &s, (uint64_t)run));
        for (int i = 0; i < 4; i++)
            CHECK(c, ((const float *)hone_result(p, 0))[i] == 1 && ((const float *)hone_result(p, 1))[i] == 7);
    }
    hone_program_destroy(p);
    hone_store_destroy(s);
    hone_graph_destroy(g);
    hone_layout_destroy(l);
}

/* Writing a whole group also writes the padding between its tensors, which stays zero. */
static void padding(struct check *c, struct kit *k)
{
    if (!check_case(c, "padding of a group stays zero"))
        return;
    hone_layout *l = hone_layout_create(k->ctx, &k->err);
    hone_layout_add(l, "a", HONE_SHAPE(3), HONE_GROUP_DECAY, (hone_init){0}, &k->err);
    hone_layout_add(l, "b", HONE_SHAPE(16), HONE_GROUP_DECAY, (hone_init){0}, &k->err);
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_write_group(hone_affine(hone_read_group(g, "s", l, HONE_GROUP_DECAY), 1, 5), "s", l, HONE_GROUP_DECAY);
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    hone_store *s = hone_store_create(k->ctx, l, &k->err);
    CHECK(c, kit_run(k, p, NULL, &s, 0) && kit_run(k, p, NULL, &s, 1));
    for (int i = 0; i < 32; i++)
        CHECK(c, s->slab[i] == (i < 3 || i >= 16 ? 10 : 0));
    hone_program_destroy(p);
    hone_store_destroy(s);
    hone_graph_destroy(g);
    hone_layout_destroy(l);
}

/* --- chains --- */

struct chain_nodes {
    hone_t w, obs;
};

static hone_t chain_body(void *user, hone_t x, const hone_t *rows)
{
    const struct chain_nodes *n = user;
    hone_t once = hone_matmul(n->obs, n->w, false, true); /* of the observation: made once */
    hone_t h = hone_add(hone_matmul(x, n->w, false, false), once);
    return hone_add(hone_mul(hone_silu(h), rows[0]), hone_add(x, rows[1]));
}

static hone_graph *chain_graph(struct kit *k, hone_layout *l, bool unroll)
{
    const float scale[5] = {0.5f, 0.25f, 1, -1, 2};
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    struct chain_nodes n;
    int i = hone_layout_add(l, "w", HONE_SHAPE(3, 3), HONE_GROUP_DECAY, (hone_init){HONE_INIT_NORMAL, 0.5f}, &k->err);
    n.w = hone_affine(hone_read(g, "param", l, i), 0.5, 0);
    n.obs = hone_input(g, "obs", HONE_F32, HONE_SHAPE(4, 3));
    hone_t tables[2] = {hone_const(g, HONE_F32, HONE_SHAPE(5), scale),
                        hone_random_normal(g, "noise", HONE_SHAPE(5, 4, 3))};
    hone_t x = hone_random_normal(g, "start", HONE_SHAPE(4, 3));
    hone_chain_options o = {.steps = 5, .tables = tables, .n_tables = 2, .unroll = unroll};
    x = hone_chain(x, &o, chain_body, &n);
    hone_output(hone_silu(x), "y");
    hone_output(x, "x");
    return g;
}

static void chains(struct check *c, struct kit *k)
{
    if (!check_case(c, "a repeated chain equals the unrolled one"))
        return;
    hone_layout *l = hone_layout_create(k->ctx, &k->err);
    hone_program *p[4];
    hone_graph *g[2] = {chain_graph(k, l, false), chain_graph(k, l, true)};
    for (int i = 0; i < 4; i++)
        p[i] = hone_compile(k->cpu, g[i & 1], &(hone_compile_options){.debug = i >= 2}, &k->err);
    hone_store *s = hone_store_create(k->ctx, l, &k->err);
    hone_store_init(s, 7, &k->err);
    const void *in[1] = {xs};
    CHECK_MSG(c, k->err.code == HONE_OK, "%s: %s", k->err.where, k->err.text);
    for (int run = 0; run < 3; run++) {
        for (int i = 0; i < 4; i++)
            CHECK_MSG(c, kit_run(k, p[i], in, &s, (uint64_t)run), "%s: %s", k->err.where, k->err.text);
        for (int i = 1; i < 4; i++)
            for (int q = 0; q < 2; q++)
                CHECK_MSG(c, !memcmp(hone_result(p[0], q), hone_result(p[i], q), 48),
                          "run %d: program %d, result %d: %g, %g", run, i, q,
                          (double)((const float *)hone_result(p[0], q))[0],
                          (double)((const float *)hone_result(p[i], q))[0]);
    }
    hone_plan_info a = hone_program_plan(p[0]);
    /* in the body: product, sum, silu, product, sum, sum; once: product of the observation; after: silu */
    CHECK_MSG(c, a.operations == 8 && a.prepare_operations == 1, "%d operations, %d prepared", a.operations,
              a.prepare_operations);
    for (int i = 0; i < 4; i++)
        hone_program_destroy(p[i]);
    hone_graph_destroy(g[0]);
    hone_graph_destroy(g[1]);
    hone_store_destroy(s);
    hone_layout_destroy(l);
}

/* x + silu(t w) o + t, with t a row: silu(t w) is of the step and the parameters alone, its product with o of the step
 * and the observation. */
static hone_t timed_body(void *user, hone_t x, const hone_t *rows)
{
    const struct chain_nodes *n = user;
    hone_t time = hone_silu(hone_linear(hone_reshape(rows[0], HONE_SHAPE(1, 3)), n->w, HONE_NONE));
    return hone_add(hone_add(x, hone_mul(time, n->obs)), hone_slice(hone_broadcast(time, HONE_SHAPE(4, 3)), 0, 0, 4));
}

static void lifting(struct check *c, struct kit *k)
{
    if (!check_case(c, "time-only arithmetic leaves the chain"))
        return;
    hone_layout *l = hone_layout_create(k->ctx, &k->err);
    int w = hone_layout_add(l, "w", HONE_SHAPE(3, 3), HONE_GROUP_DECAY, (hone_init){HONE_INIT_NORMAL, 0.5f}, &k->err);
    float table[15];
    for (int i = 0; i < 15; i++)
        table[i] = 0.1f * (float)i - 0.7f;
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    struct chain_nodes n = {hone_read(g, "param", l, w), hone_input(g, "obs", HONE_F32, HONE_SHAPE(4, 3))};
    hone_t rows = hone_const(g, HONE_F32, HONE_SHAPE(5, 3), table);
    hone_output(hone_chain(hone_full(g, HONE_SHAPE(4, 3), 1),
                           &(hone_chain_options){.steps = 5, .tables = &rows, .n_tables = 1}, timed_body, &n),
                "x");
    hone_program *p[3];
    for (int i = 0; i < 3; i++)
        p[i] = hone_compile(k->cpu, g, &(hone_compile_options){.plain = i == 1, .debug = i == 2}, &k->err);
    hone_store *s = hone_store_create(k->ctx, l, &k->err);
    hone_store_init(s, 7, &k->err);
    const void *in[1] = {xs};
    for (int i = 0; i < 3; i++)
        CHECK_MSG(c, kit_run(k, p[i], in, &s, 0), "%s: %s", k->err.where, k->err.text);
    if (k->err.code == HONE_OK) {
        for (int i = 0; i < 12; i++) {
            float a = ((const float *)hone_result(p[0], 0))[i], b = ((const float *)hone_result(p[1], 0))[i];
            CHECK_MSG(c, fabsf(a - b) <= 1e-5f * fabsf(b), "%g, %g", (double)a, (double)b);
            CHECK(c, a == ((const float *)hone_result(p[2], 0))[i]);
        }
        hone_plan_info a = hone_program_plan(p[0]), b = hone_program_plan(p[1]);
        /* left in the loop: two sums; before it, once a run: the product for all steps */
        CHECK_MSG(c, a.operations == 3 && b.operations > a.operations && a.prepare_operations >= 3,
                  "%d operations, plain %d; %d prepared", a.operations, b.operations, a.prepare_operations);
    }
    for (int i = 0; i < 3; i++)
        hone_program_destroy(p[i]);
    hone_graph_destroy(g);
    hone_store_destroy(s);
    hone_layout_destroy(l);
}

static hone_t leak_body(void *user, hone_t x, const hone_t *rows)
{
    (void)rows;
    return *(hone_t *)user = hone_affine(x, 2, 0);
}

static hone_t noisy_body(void *user, hone_t x, const hone_t *rows)
{
    (void)user;
    (void)rows;
    return hone_add(x, hone_random_normal(x.g, "inner", HONE_SHAPE(2)));
}

static hone_t writing_body(void *user, hone_t x, const hone_t *rows)
{
    (void)rows;
    hone_layout *l = *(hone_layout **)user;
    hone_write(x, "s", l, 0);
    return hone_affine(x, 2, 0);
}

static hone_t nested_body(void *user, hone_t x, const hone_t *rows)
{
    (void)rows;
    return hone_chain(x, &(hone_chain_options){.steps = 2}, leak_body, user);
}

static void chain_refusals(struct check *c, struct kit *k)
{
    hone_t inner = HONE_NONE;
    const hone_chain_fn bodies[] = {leak_body, noisy_body, nested_body};
    const char *const names[] = {"a value from inside is used outside", "noise inside", "a chain in a chain"};
    for (int i = 0; i < 3; i++) {
        if (!check_case(c, "refused: %s", names[i]))
            continue;
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_t x = hone_chain(hone_full(g, HONE_SHAPE(2), 1), &(hone_chain_options){.steps = 3}, bodies[i], &inner);
        hone_output(i == 0 ? hone_add(x, inner) : x, "y");
        hone_err e = {0};
        CHECK(c, hone_compile(k->cpu, g, NULL, &e) == NULL && e.code == HONE_E_ARG);
        hone_graph_destroy(g);
    }
    if (check_case(c, "refused: a write in a chain")) {
        hone_layout *l = hone_layout_create(k->ctx, &k->err);
        hone_layout_add(l, "w", HONE_SHAPE(2), HONE_GROUP_PLAIN, (hone_init){0}, &k->err);
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_output(hone_chain(hone_full(g, HONE_SHAPE(2), 1), &(hone_chain_options){.steps = 3}, writing_body, &l),
                    "y");
        hone_err e = {0};
        CHECK(c, hone_compile(k->cpu, g, NULL, &e) == NULL && e.code == HONE_E_ARG && strstr(e.text, "written"));
        hone_graph_destroy(g);
        hone_layout_destroy(l);
    }
    if (check_case(c, "refused: a table with another number of rows")) {
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_t t = hone_full(g, HONE_SHAPE(4), 1);
        hone_chain(hone_full(g, HONE_SHAPE(2), 1), &(hone_chain_options){.steps = 3, .tables = &t, .n_tables = 1},
                   leak_body, &inner);
        CHECK(c, hone_graph_status(g, NULL) == HONE_E_SHAPE);
        hone_graph_destroy(g);
    }
}

/* --- memory --- */

static void memory(struct check *c, struct kit *k)
{
    static const int widths[] = {1, 7, 64, 300};
    for (int i = 0; i < 4; i++) {
        if (!check_case(c, "plan within 1.1 of what is alive, width %d", widths[i]))
            continue;
        hone_layout *l = hone_layout_create(k->ctx, &k->err);
        hone_graph *g = kit_net(k, l, 32, widths[i], true);
        hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
        hone_plan_info f = hone_program_plan(p);
        CHECK_MSG(c, (double)f.transient <= 1.1 * (double)f.live_peak, "%zu of %zu", f.transient, f.live_peak);
        CHECK(c, f.live_peak > 0 && f.bytes >= f.transient + f.constants);
        CHECK(c, hone_ctx_mem(k->ctx).planned_bytes >= f.bytes);
        hone_program_destroy(p);
        hone_graph_destroy(g);
        hone_layout_destroy(l);
    }
    if (check_case(c, "a run allocates nothing")) {
        hone_layout *l = hone_layout_create(k->ctx, &k->err);
        hone_graph *g = kit_net(k, l, 4, 16, true);
        hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
        hone_store *s[2] = {hone_store_create(k->ctx, l, &k->err), hone_store_create(k->ctx, l, &k->err)};
        const void *in[2] = {xs, ys};
        uint64_t before = hone_ctx_mem(k->ctx).allocations;
        for (int i = 0; i < 5; i++)
            CHECK(c, kit_run(k, p, in, s, (uint64_t)i));
        CHECK(c, hone_ctx_mem(k->ctx).allocations == before);
        hone_program_destroy(p);
        hone_store_destroy(s[0]);
        hone_store_destroy(s[1]);
        hone_graph_destroy(g);
        hone_layout_destroy(l);
    }
    if (check_case(c, "more than the budget is refused before the first step, with advice")) {
        struct kit small;
        kit_open(&small, &(hone_ctx_options){.memory_budget = 1 << 20});
        hone_layout *l = hone_layout_create(small.ctx, &small.err);
        hone_graph *g = kit_net(&small, l, 4096, 512, true);
        CHECK(c, hone_compile(small.cpu, g, &(hone_compile_options){.name = "grad"}, &small.err) == NULL);
        CHECK(c, small.err.code == HONE_E_NOMEM && !strcmp(small.err.where, "grad"));
        CHECK_MSG(c, strstr(small.err.text, "needs") && strstr(small.err.text, "smaller batch"), "%s", small.err.text);
        hone_graph_destroy(g);
        hone_layout_destroy(l);
        kit_close(&small, c);
    }
}

static void one_failing(struct check *c, long n, long *calls)
{
    struct failing f = {.countdown = n};
    hone_allocator a = kit_failing(&f);
    struct kit k = {0};
    k.ctx = hone_ctx_create(&(hone_ctx_options){.allocator = &a}, &k.err);
    hone_layout *l = NULL;
    hone_graph *g = NULL;
    hone_program *p = NULL;
    hone_store *s[2] = {NULL, NULL};
    if (k.ctx) {
        k.cpu = hone_device_open(k.ctx, "cpu", &k.err);
        l = hone_layout_create(k.ctx, &k.err);
        g = l ? kit_net(&k, l, 4, 8, true) : NULL;
        p = g && k.cpu ? hone_compile(k.cpu, g, &(hone_compile_options){.debug = n % 2 == 0}, &k.err) : NULL;
        for (int i = 0; i < 2; i++)
            s[i] = l ? hone_store_create(k.ctx, l, &k.err) : NULL;
        const void *in[2] = {xs, ys};
        if (p && s[0] && s[1])
            kit_run(&k, p, in, s, 0);
    }
    CHECK_MSG(c, n == 0 ? k.err.code == HONE_OK : k.err.code == HONE_E_NOMEM || f.countdown > 0, "%ld: %s: %s", n,
              k.err.where, k.err.text);
    hone_program_destroy(p);
    hone_graph_destroy(g);
    for (int i = 0; i < 2; i++)
        hone_store_destroy(s[i]);
    hone_layout_destroy(l);
    hone_device_close(k.cpu);
    hone_ctx_destroy(k.ctx);
    CHECK_MSG(c, f.live == 0, "%ld: %ld blocks leaked", n, f.live);
    *calls = f.calls;
}

static void allocations_fail(struct check *c)
{
    long calls = 0, ignored;
    if (!check_case(c, "each allocation may fail"))
        return;
    one_failing(c, 0, &calls);
    CHECK(c, calls > 50);
    for (long n = 1; n <= calls + 60; n++)
        one_failing(c, n, &ignored);
}

/* --- runs --- */

static void runs(struct check *c, struct kit *k)
{
    hone_layout *l = hone_layout_create(k->ctx, &k->err);
    hone_graph *g = kit_net(k, l, 4, 8, false);
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err),
                 *d = hone_compile(k->cpu, g, &(hone_compile_options){.debug = true}, &k->err);
    hone_store *s = hone_store_create(k->ctx, l, &k->err);
    hone_store_init(s, 1, &k->err);
    const void *in[2] = {xs, ys};
    hone_run_args a = {.inputs = in, .stores = &s};
    if (check_case(c, "results only after wait, one run at a time")) {
        for (int m = 0; m < 2; m++) {
            hone_program *q = m ? d : p;
            hone_err e = {0};
            CHECK(c, hone_result(q, 0) == NULL);
            CHECK(c, hone_wait(q, &e) == HONE_E_STATE);
            CHECK(c, hone_run(q, &a, NULL) == HONE_OK);
            CHECK(c, hone_result(q, 0) == NULL);
            CHECK(c, hone_run(q, &a, NULL) == HONE_E_STATE);
            CHECK(c, hone_wait(q, NULL) == HONE_OK && hone_result(q, 0) && hone_result(q, 1));
            CHECK(c, hone_result(q, 2) == NULL && hone_result(q, -1) == NULL);
        }
    }
    if (check_case(c, "a wait with an old error still ends the run")) {
        for (int m = 0; m < 2; m++) {
            hone_err old = {.code = HONE_E_IO};
            CHECK(c, hone_run(m ? d : p, &a, NULL) == HONE_OK && hone_wait(m ? d : p, &old) == HONE_E_IO);
            CHECK(c, hone_run(m ? d : p, &a, NULL) == HONE_OK && hone_wait(m ? d : p, NULL) == HONE_OK);
        }
    }
    if (check_case(c, "without a graph, builders do nothing")) {
        hone_err old = {.code = HONE_E_IO};
        hone_graph *none = hone_graph_create(k->ctx, &old);
        hone_scope_push(none, "a");
        hone_t x = hone_input(none, "x", HONE_F32, HONE_SHAPE(3)), w = hone_read(none, "param", l, 0);
        hone_output(hone_add(hone_silu(x), hone_mul(w, hone_const_f32(none, 2))), "y");
        hone_random_normal(none, "n", HONE_SHAPE(3));
        hone_scope_pop(none);
        CHECK(c, hone_compile(k->cpu, none, NULL, &old) == NULL && old.code == HONE_E_IO);
        CHECK(c, hone_compile(k->cpu, none, NULL, NULL) == NULL && hone_compile(NULL, g, NULL, NULL) == NULL);
    }
    if (check_case(c, "inputs are copied when a run is submitted")) {
        float x[12];
        memcpy(x, xs, sizeof x);
        const void *in2[2] = {x, ys};
        CHECK(c, hone_run(d, &(hone_run_args){.inputs = in2, .stores = &s}, NULL) == HONE_OK);
        memset(x, 0, sizeof x);
        CHECK(c, hone_wait(d, NULL) == HONE_OK);
        CHECK(c, kit_run(k, p, in, &s, 0) && !memcmp(hone_result(p, 0), hone_result(d, 0), 32));
    }
    if (check_case(c, "missing inputs and stores are named")) {
        hone_err e = {0};
        const void *half[2] = {xs, NULL};
        CHECK(c,
              hone_run(p, &(hone_run_args){.inputs = half, .stores = &s}, &e) == HONE_E_ARG && strstr(e.text, "\"y\""));
        e = (hone_err){0};
        CHECK(c, hone_run(p, &(hone_run_args){.inputs = in}, &e) == HONE_E_ARG && strstr(e.text, "\"param\""));
        CHECK(c, kit_run(k, p, in, &s, 0));
    }
    if (check_case(c, "a non-finite input is named in debug")) {
        float x[12];
        hone_err e = {0};
        memcpy(x, xs, sizeof x);
        x[7] = NAN;
        const void *in2[2] = {x, ys};
        CHECK(c, hone_run(d, &(hone_run_args){.inputs = in2, .stores = &s}, &e) == HONE_OK);
        CHECK(c, hone_wait(d, &e) == HONE_E_NONFINITE);
        CHECK_MSG(c, !strcmp(e.where, "net") && strstr(e.text, "[2,1]"), "%s: %s", e.where, e.text);
        CHECK(c, kit_run(k, d, in, &s, 0));
    }
    hone_program_destroy(p);
    hone_program_destroy(d);
    hone_store_destroy(s);
    hone_graph_destroy(g);
    hone_layout_destroy(l);
}

static void index_bounds(struct check *c, struct kit *k)
{
    if (!check_case(c, "indices are checked when they come in"))
        return;
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_output(hone_reshape(hone_input_index(g, "i", HONE_SHAPE(3), 5), HONE_SHAPE(3, 1)), "o");
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    const int32_t good[3] = {0, 4, 2}, bad[3] = {0, 1, 5}, negative[3] = {-1, 0, 0};
    hone_err e = {0};
    CHECK(c, kit_run(k, p, (const void *[]){good}, NULL, 0) && !memcmp(hone_result(p, 0), good, sizeof good));
    CHECK(c, hone_run(p, &(hone_run_args){.inputs = (const void *[]){bad}}, &e) == HONE_E_ARG);
    CHECK_MSG(c, strstr(e.text, "index 5 at 2"), "%s", e.text);
    CHECK(c, hone_run(p, &(hone_run_args){.inputs = (const void *[]){negative}}, NULL) == HONE_E_ARG);
    hone_program_destroy(p);
    hone_graph_destroy(g);
}

static void randomness(struct check *c, struct kit *k)
{
    if (!check_case(c, "random buffers follow seed, stream and run"))
        return;
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t a = hone_random_normal(g, "a", HONE_SHAPE(100)), b = hone_random_normal(g, "b", HONE_SHAPE(100));
    hone_output(a, "a");
    hone_output(hone_affine(a, 1, 0), "a again");
    hone_output(b, "b");
    hone_output(hone_random_uniform(g, "u", HONE_SHAPE(100)), "u");
    hone_output(hone_random_index(g, "i", HONE_SHAPE(100), 3), "i");
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    float keep[100];
    CHECK(c, kit_run(k, p, NULL, NULL, 5));
    memcpy(keep, hone_result(p, 0), sizeof keep);
    CHECK(c, !memcmp(keep, hone_result(p, 1), sizeof keep) && memcmp(keep, hone_result(p, 2), sizeof keep));
    const int32_t *idx = hone_result(p, 4);
    for (int i = 0; i < 100; i++)
        CHECK(c, idx[i] >= 0 && idx[i] < 3);
    CHECK(c, kit_run(k, p, NULL, NULL, 6) && memcmp(keep, hone_result(p, 0), sizeof keep));
    CHECK(c, kit_run(k, p, NULL, NULL, 5) && !memcmp(keep, hone_result(p, 0), sizeof keep));
    hone_program_destroy(p);
    hone_graph_destroy(g);
}

/* --- two programs, one store --- */

struct racer {
    hone_program *p;
    hone_store *stores[2];
    long ok, busy, other;
};

static void *race(void *arg)
{
    struct racer *r = arg;
    const void *in[2] = {xs, ys};
    for (long i = 0; r->ok < 500 && i < 100000000; i++) {
        hone_status s = hone_run(r->p, &(hone_run_args){.inputs = in, .stores = r->stores}, NULL);
        if (s == HONE_OK)
            s = hone_wait(r->p, NULL);
        *(s == HONE_OK ? &r->ok : s == HONE_E_BUSY ? &r->busy : &r->other) += 1;
        if (s != HONE_OK)
            sched_yield();
    }
    return NULL;
}

static void races(struct check *c)
{
    if (!check_case(c, "two programs on one store: refused or safe"))
        return;
    struct kit k;
    kit_open(&k, &(hone_ctx_options){.threads = 1});
    hone_layout *l = hone_layout_create(k.ctx, &k.err);
    hone_graph *g = kit_net(&k, l, 4, 8, true);
    hone_store *param = hone_store_create(k.ctx, l, &k.err), *grad = hone_store_create(k.ctx, l, &k.err),
               *one = hone_store_create(k.ctx, l, &k.err);
    hone_store_init(param, 1, &k.err);
    struct racer r[2];
    pthread_t t[2];
    for (int i = 0; i < 2; i++) {
        r[i] = (struct racer){.p = hone_compile(k.cpu, g, NULL, &k.err), .stores = {param, grad}};
        pthread_create(&t[i], NULL, race, &r[i]);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    /* each accepted run added one gradient: none was lost, none half */
    CHECK(c, r[0].other == 0 && r[1].other == 0 && r[0].ok == 500 && r[1].ok == 500);
    const void *in[2] = {xs, ys};
    CHECK(c, kit_run(&k, r[0].p, in, (hone_store *[]){param, one}, 0));
    for (int i = 0; i < 24; i++) {
        double want = (double)(r[0].ok + r[1].ok) * (double)hone_store_get(one, 0)[i], got = hone_store_get(grad, 0)[i];
        CHECK_MSG(c, fabs(got - want) <= 1e-3 * fabs(want), "%g, %g", got, want);
    }
    hone_err e = {0}; /* one store for reading and writing at once */
    CHECK(c,
          hone_run(r[0].p, &(hone_run_args){.inputs = in, .stores = (hone_store *[]){grad, grad}}, &e) == HONE_E_BUSY);
    CHECK(c, kit_run(&k, r[0].p, in, (hone_store *[]){param, one}, 0));
    for (int i = 0; i < 2; i++)
        hone_program_destroy(r[i].p);
    hone_store_destroy(param);
    hone_store_destroy(grad);
    hone_store_destroy(one);
    hone_graph_destroy(g);
    hone_layout_destroy(l);
    kit_close(&k, c);
}

void suite_program(struct check *c)
{
    struct kit k;
    kit_open(&k, NULL);
    as_at_entry(c, &k);
    write_waits_for_reads(c, &k);
    accumulates(c, &k);
    overlapping(c, &k);
    prepare(c, &k);
    unused_input(c, &k);
    padding(c, &k);
    chains(c, &k);
    lifting(c, &k);
    chain_refusals(c, &k);
    memory(c, &k);
    runs(c, &k);
    index_bounds(c, &k);
    randomness(c, &k);
    if (check_case(c, "nothing leaks"))
        kit_close(&k, c);
    else
        kit_close(&k, &(struct check){.open = 1});
    allocations_fail(c);
    races(c);
}
