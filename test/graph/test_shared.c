/* What uses of an operation share and what a program keeps: kernels of equal uses; values of parameters, unless the
 * program trains them. */
#include <string.h>

#include "graph/kit.h"
#include "op/conv_block.h"

/* --- kernels --- */

static const struct plan_step *step_of(const hone_program *p, const struct op_def *def, int which)
{
    for (int32_t i = 0; i < p->plan.n_steps; i++)
        if (p->plan.steps[i].kind == PLAN_RUN && p->g->nodes[p->plan.steps[i].node].def == def && which-- == 0)
            return &p->plan.steps[i];
    return NULL;
}

/* Whether uses a and b of `def`, in the order of their running, have one kernel with one state. */
static bool alike(const hone_program *p, const struct op_def *def, int a, int b)
{
    const struct plan_step *x = step_of(p, def, a), *y = step_of(p, def, b);
    return x && y && x->like == y->like && x->kernel == y->kernel && x->state == y->state &&
           x->scratch_bytes == y->scratch_bytes;
}

static void same_kernels(struct check *c, int threads)
{
    struct kit k;
    float x[64 * 64], w[64 * 64];
    if (!check_case(c, "equal uses have one kernel, others their own, %d threads", threads))
        return;
    kit_open(&k, &(hone_ctx_options){.threads = threads});
    hone_graph *g = hone_graph_create(k.ctx, &k.err);
    hone_t a = hone_input(g, "x", HONE_F32, HONE_SHAPE(64, 64)), b = hone_input(g, "w", HONE_F32, HONE_SHAPE(64, 64));
    hone_t y0 = hone_matmul(a, b, false, false), y1 = hone_matmul(y0, b, false, true);
    hone_t y2 = hone_matmul(y1, b, false, false), y3 = hone_matmul(hone_slice(y2, 0, 0, 32), b, false, false);
    hone_t s0 = hone_sum(y2, HONE_AXIS(0), false), s1 = hone_sum(y1, HONE_AXIS(1), false);
    hone_t s2 = hone_sum(y0, HONE_AXIS(0), false), n0 = hone_cast(s0, HONE_I32), n1 = hone_cast(s1, HONE_BOOL);
    hone_output(y3, "y3");
    hone_output(hone_add(hone_add(s0, s1), s2), "s");
    hone_output(hone_cast(n0, HONE_F32), "n0");
    hone_output(hone_cast(n1, HONE_F32), "n1");
    for (int i = 0; i < 64 * 64; i++) {
        x[i] = (float)(i % 7 - 3) / 8;
        w[i] = (float)(i % 11 - 5) / 64;
    }
    for (int debug = 0; debug < 2; debug++) { /* which compares each result with its reference */
        hone_program *p = hone_compile(k.cpu, g, &(hone_compile_options){.debug = debug}, &k.err);
        for (uint64_t run = 0; run < 2; run++)
            CHECK_MSG(c, kit_run(&k, p, (const void *[]){x, w}, NULL, run), "%s: %s", k.err.where, k.err.text);
        if (p) {
            CHECK(c, alike(p, &op_matmul, 0, 2) && !alike(p, &op_matmul, 0, 1) && !alike(p, &op_matmul, 0, 3));
            CHECK(c, alike(p, &op_sum, 0, 2) + alike(p, &op_sum, 1, 2) + alike(p, &op_sum, 0, 1) == 1);
            for (int i = 0; i < 16; i++) /* f32 to i32, to bool, and back from each */
                CHECK_MSG(c, alike(p, &op_cast, i / 4, i % 4) == (i / 4 == i % 4), "%d, %d", i / 4, i % 4);
            CHECK(c, step_of(p, &op_matmul, 0)->like == step_of(p, &op_matmul, 0) - p->plan.steps);
        }
        hone_program_destroy(p);
    }
    hone_graph_destroy(g);
    kit_close(&k, c);
}

/* Uses of one kernel that has scratch memory, in a chain and after it: whatever lies there meanwhile stays whole. */
static hone_t block(hone_t x)
{
    float w[12 * 12 * 5], b[12];
    for (int i = 0; i < 720; i++)
        w[i] = (float)(i % 13 - 6) / 64;
    for (int i = 0; i < 12; i++)
        b[i] = (float)i / 8;
    return hone_mish(hone_conv1d(x, hone_const(x.g, HONE_F32, HONE_SHAPE(12, 12, 5), w),
                                 hone_const(x.g, HONE_F32, HONE_SHAPE(12), b), 1, 2, 1));
}

static hone_t block_step(void *user, hone_t x, const hone_t *rows)
{
    (void)user;
    return block(hone_add(x, rows[0]));
}

static void same_scratch(struct check *c)
{
    struct kit k;
    float x[12 * 9], rows[4] = {0.5f, 1, -1, 0.25f};
    if (!check_case(c, "equal uses have scratch memory, each while it runs"))
        return;
    kit_open(&k, NULL);
    hone_graph *g = hone_graph_create(k.ctx, &k.err);
    hone_t table = hone_const(g, HONE_F32, HONE_SHAPE(4), rows),
           in = hone_input(g, "x", HONE_F32, HONE_SHAPE(1, 12, 9));
    hone_chain_options o = {.steps = 4, .tables = &table, .n_tables = 1};
    hone_t early = block(in), y = hone_chain(early, &o, block_step, NULL);
    hone_output(hone_add(block(y), early), "y");
    for (int i = 0; i < 12 * 9; i++)
        x[i] = (float)(i % 17 - 8) / 8;
    hone_program *p = hone_compile(k.cpu, g, &(hone_compile_options){.debug = true}, &k.err);
    CHECK_MSG(c, kit_run(&k, p, (const void *[]){x}, NULL, 0), "%s: %s", k.err.where, k.err.text);
    if (p) {
        CHECK(c, alike(p, &op_conv_block, 0, 1) && alike(p, &op_conv_block, 0, 2));
        CHECK(c, step_of(p, &op_conv_block, 2)->scratch_bytes > 0);
    }
    hone_program_destroy(p);
    hone_graph_destroy(g);
    kit_close(&k, c);
}

/* --- values of parameters --- */

enum { STUDENT, TEACHER };

struct pair {
    struct kit k;
    hone_layout *layout[2];
    hone_store *store[2], *grad;
    float x[2 * 4 * 6];
};

static void pair_open(struct pair *q)
{
    memset(q, 0, sizeof *q);
    kit_open(&q->k, NULL);
    for (int i = 0; i < 2; i++) {
        q->layout[i] = hone_layout_create(q->k.ctx, &q->k.err);
        hone_layout_add(q->layout[i], "w", HONE_SHAPE(5, 4, 3), HONE_GROUP_DECAY, (hone_init){HONE_INIT_NORMAL, 0.5f},
                        &q->k.err);
        hone_layout_add(q->layout[i], "b", HONE_SHAPE(5), HONE_GROUP_PLAIN, (hone_init){HONE_INIT_NORMAL, 0.5f},
                        &q->k.err);
        q->store[i] = hone_store_create(q->k.ctx, q->layout[i], &q->k.err);
        hone_store_init(q->store[i], 1 + (uint64_t)i, &q->k.err);
    }
    q->grad = hone_store_create(q->k.ctx, q->layout[STUDENT], &q->k.err);
    for (int i = 0; i < 48; i++)
        q->x[i] = (float)(i % 5) / 4;
}

static void pair_close(struct pair *q, struct check *c)
{
    hone_store_destroy(q->grad);
    for (int i = 0; i < 2; i++) {
        hone_store_destroy(q->store[i]);
        hone_layout_destroy(q->layout[i]);
    }
    kit_close(&q->k, c);
}

/* A convolution with parameters of `which`; the weight goes through something that can be done beforehand. */
static hone_t net(struct pair *q, hone_t x, int which)
{
    const char *role = which == STUDENT ? "param" : "teacher";
    hone_t w = hone_read(x.g, role, q->layout[which], 0), b = hone_read(x.g, role, q->layout[which], 1);
    return hone_conv1d(x, hone_tanh(w), b, 1, 1, 1);
}

/* Runs and gives the first output's first number. */
static float value(struct pair *q, hone_program *p, uint64_t run)
{
    hone_store *s[3] = {0};
    static const char *const roles[3] = {"param", "teacher", "grad"};
    hone_store *const bound[3] = {q->store[0], q->store[1], q->grad};
    for (int i = 0; p && i < 3; i++)
        if (hone_program_role(p, roles[i]) >= 0)
            s[hone_program_role(p, roles[i])] = bound[i];
    return kit_run(&q->k, p, (const void *[]){q->x}, s, run) ? *(const float *)hone_result(p, 0) : 0;
}

static void double_all(struct pair *q, int which)
{
    float w[60];
    for (int i = 0; i < 60; i++)
        w[i] = 2 * hone_store_get(q->store[which], 0)[i];
    hone_store_set(q->store[which], 0, w, 60, &q->k.err);
}

/* Step by step the same as a program that keeps nothing, also after either store changed. */
static void follows_changes(struct check *c, struct pair *q, hone_graph *g, hone_program *p)
{
    hone_program *fresh =
        hone_compile(q->k.cpu, g, &(hone_compile_options){.no_prepare = true, .plain = true}, &q->k.err);
    for (uint64_t run = 0; run < 5; run++) {
        const float want = value(q, fresh, run), got = value(q, p, run), d = want - got;
        CHECK_MSG(c, q->k.err.code == HONE_OK, "%s: %s", q->k.err.where, q->k.err.text);
        CHECK_MSG(c, d * d <= 1e-10f * want * want, "run %d: %g, should be %g", (int)run, (double)got, (double)want);
        if (run % 2)
            double_all(q, run == 1 ? STUDENT : TEACHER);
    }
    hone_program_destroy(fresh);
}

static bool is_prepared(const hone_program *p, const char *role)
{
    return p->plan.role_prepared[hone_program_role(p, role)];
}

/* Training from a teacher: student, teacher, gradients of the student, or of a layout that only looks like it. */
static void training(struct check *c)
{
    struct pair q;
    if (!check_case(c, "nothing is prepared of parameters that a program trains; of a frozen teacher it is"))
        return;
    pair_open(&q);
    hone_graph *g = hone_graph_create(q.k.ctx, &q.k.err);
    hone_t x = hone_input(g, "x", HONE_F32, HONE_SHAPE(2, 4, 6)), d[2];
    hone_t loss = hone_sum(hone_square(hone_sub(net(&q, x, STUDENT), net(&q, x, TEACHER))), HONE_AXES_ALL, false);
    hone_t w[2] = {hone_read(g, "param", q.layout[STUDENT], 0), hone_read(g, "param", q.layout[STUDENT], 1)};
    hone_output(loss, "loss");
    hone_gradients(loss, w, 2, d);
    for (int i = 0; i < 2; i++)
        hone_accumulate(d[i], "grad", q.layout[STUDENT], i);
    hone_program *p = hone_compile(q.k.cpu, g, NULL, &q.k.err);
    if (CHECK_MSG(c, p != NULL, "%s: %s", q.k.err.where, q.k.err.text)) {
        CHECK(c, !is_prepared(p, "param") && !is_prepared(p, "grad") && is_prepared(p, "teacher"));
        CHECK(c, hone_program_plan(p).prepare_operations > 0);
        CHECK(c, step_of(p, &op_conv_block, 0) && !step_of(p, &op_conv_block, 1)); /* the teacher is fused */
        CHECK(c, step_of(p, &op_conv1d, 0) && !step_of(p, &op_conv1d, 1));
        follows_changes(c, &q, g, p);
        CHECK_MSG(c, hone_program_prepares(p) == 2, "prepared %d times", (int)hone_program_prepares(p));
    }
    hone_program_destroy(p);
    hone_graph_destroy(g);
    pair_close(&q, c);
}

static void deciding(struct check *c)
{
    struct pair q;
    if (!check_case(c, "of parameters that a program only reads something is prepared, whatever else it writes"))
        return;
    pair_open(&q);
    for (int writes = 0; writes < 2; writes++) {
        hone_graph *g = hone_graph_create(q.k.ctx, &q.k.err);
        hone_t x = hone_input(g, "x", HONE_F32, HONE_SHAPE(2, 4, 6)), y = net(&q, x, TEACHER);
        hone_output(y, "y");
        if (writes)
            hone_write(hone_sum(y, HONE_AXIS(0) | HONE_AXIS(2), false), "grad", q.layout[STUDENT], 1);
        hone_program *p = hone_compile(q.k.cpu, g, NULL, &q.k.err);
        if (CHECK_MSG(c, p != NULL, "%s: %s", q.k.err.where, q.k.err.text)) {
            CHECK(c, is_prepared(p, "teacher") && step_of(p, &op_conv_block, 0));
            follows_changes(c, &q, g, p);
        }
        hone_program_destroy(p);
        hone_graph_destroy(g);
    }
    pair_close(&q, c);
}

/* One that reads and writes the same role. */
static void stepping(struct check *c)
{
    struct pair q;
    if (!check_case(c, "a program that moves its own parameters sees them moved"))
        return;
    pair_open(&q);
    hone_graph *g = hone_graph_create(q.k.ctx, &q.k.err);
    hone_t w = hone_read(g, "param", q.layout[STUDENT], 0), b = hone_read(g, "param", q.layout[STUDENT], 1);
    hone_input(g, "x", HONE_F32, HONE_SHAPE(2, 4, 6));
    hone_output(hone_affine(hone_sum(b, HONE_AXES_ALL, true), 2, 0), "twice their sum");
    hone_output(hone_tanh(w), "squashed");
    hone_write(hone_affine(b, 1, 1), "param", q.layout[STUDENT], 1);
    hone_program *p = hone_compile(q.k.cpu, g, NULL, &q.k.err);
    const float first = value(&q, p, 0);
    for (uint64_t run = 1; run < 4; run++) {
        const float now = value(&q, p, run), want = first + 10 * (float)run;
        CHECK_MSG(c, (now - want) * (now - want) < 1e-6f, "run %d: %g, should be %g", (int)run, (double)now,
                  (double)want);
    }
    CHECK(c, p && !is_prepared(p, "param"));
    hone_program_destroy(p);
    hone_graph_destroy(g);
    pair_close(&q, c);
}

void suite_shared(struct check *c)
{
    for (int threads = 1; threads <= 3; threads++)
        same_kernels(c, threads);
    same_scratch(c);
    training(c);
    deciding(c);
    stepping(c);
}
