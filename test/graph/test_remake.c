/* Values that are made again instead of kept, and gradients that are added at once: the same results, and only where it
 * can be. Values of 64 KiB, for smaller ones are always kept. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/kit.h"

enum { ROWS = 64, WIDE = 256 };

struct job {
    struct kit k;
    hone_layout *layout;
};

/* Much that is made meanwhile: a dozen values of the size of x. */
static hone_t much(hone_t x)
{
    float w[WIDE];
    for (int i = 0; i < WIDE; i++)
        w[i] = sinf((float)i);
    hone_t u = hone_const(x.g, HONE_F32, HONE_SHAPE(WIDE), w);
    for (int i = 0; i < 12; i++)
        x = hone_softmax(hone_mul(x, u), 1);
    return x;
}

static hone_t source(hone_graph *g)
{
    return hone_input(g, "x", HONE_F32, HONE_SHAPE(ROWS, WIDE));
}

static void from_a_source(hone_graph *g, hone_layout *l)
{
    hone_t x = source(g), v = hone_silu(x), h = much(v), again = hone_mul(v, h);
    hone_output(hone_add(again, hone_mul(much(much(again)), v)), "y");
    hone_write(hone_sum(h, HONE_AXIS(0), false), "s", l, 0);
}

static void from_what_goes(hone_graph *g, hone_layout *l)
{
    hone_t v = hone_silu(hone_softmax(source(g), 1));
    hone_output(hone_mul(v, much(v)), "y");
    hone_write(hone_full(g, HONE_SHAPE(WIDE), 1), "s", l, 0);
}

static void from_what_stays(hone_graph *g, hone_layout *l)
{
    hone_t s = hone_softmax(source(g), 1), v = hone_silu(s), y = hone_mul(v, much(v));
    hone_output(hone_mul(much(y), s), "y");
    hone_write(hone_full(g, HONE_SHAPE(WIDE), 1), "s", l, 0);
}

static void through_others(hone_graph *g, hone_layout *l)
{
    hone_t x = source(g), a = hone_affine(x, 2, 0.5);
    hone_t v = hone_silu(
        hone_concat(2, (hone_t[]){a, hone_permute(hone_reshape(x, HONE_SHAPE(WIDE, ROWS)), (int[]){1, 0})}, 0));
    hone_t h = much(hone_slice(v, 0, 0, ROWS));
    hone_output(hone_mul(hone_slice(v, 0, ROWS, ROWS), h), "y");
    hone_write(hone_sum(h, HONE_AXIS(0), false), "s", l, 0);
}

static void nothing_written(hone_graph *g, hone_layout *l)
{
    (void)l;
    hone_t v = hone_silu(source(g));
    hone_output(hone_mul(v, much(v)), "y");
}

static hone_t read_inside(void *user, hone_t x, const hone_t *rows)
{
    return hone_affine(hone_add(hone_mul(x, rows[0]), *(hone_t *)user), 0.5, 0);
}

static void read_in_a_chain(hone_graph *g, hone_layout *l)
{
    hone_t rows = hone_const(g, HONE_F32, HONE_SHAPE(3), (const float[]){1, 2, 3});
    hone_t v = hone_silu(source(g)), h = much(v);
    hone_t y = hone_chain(h, &(hone_chain_options){.steps = 3, .tables = &rows, .n_tables = 1}, read_inside, &v);
    hone_output(hone_mul(much(much(y)), v), "y");
    hone_accumulate(hone_sum(y, HONE_AXIS(0), false), "s", l, 0);
}

static void chain_into_store(hone_graph *g, hone_layout *l)
{
    hone_t rows = hone_const(g, HONE_F32, HONE_SHAPE(3), (const float[]){1, 2, 3});
    hone_t v = hone_sum(source(g), HONE_AXIS(0), false);
    hone_t y = hone_chain(v, &(hone_chain_options){.steps = 3, .tables = &rows, .n_tables = 1}, read_inside, &v);
    hone_accumulate(y, "s", l, 0);
    hone_accumulate(v, "s", l, 1);
}

static void added_and_read(hone_graph *g, hone_layout *l)
{
    hone_t v = hone_sum(source(g), HONE_AXIS(0), false), s = hone_read(g, "s", l, 1);
    hone_accumulate(v, "s", l, 1);
    hone_accumulate(hone_mul(v, s), "s", l, 0); /* the tensor as it was */
    hone_output(hone_add(v, s), "y");
    hone_t sum = hone_add(hone_read(g, "t", l, 0), v);
    hone_write(sum, "t", l, 0);
    hone_output(hone_silu(sum), "sum");
    hone_t one = hone_read(g, "t", l, 1);
    hone_write(hone_add(one, hone_read(g, "s", l, 0)), "t", l, 1); /* both of a store */
}

static const struct {
    const char *name;
    void (*build)(hone_graph *g, hone_layout *l);
    int silu; /* uses of silu */
} graphs[] = {
    {"what comes from a source is made again, each time", from_a_source, 3},
    {"what comes from a value that is gone is kept", from_what_goes, 1},
    {"what comes from a value that is read later still is made again", from_what_stays, 2},
    {"what comes from others that can be made again", through_others, 2},
    {"a program that writes nothing keeps what it made", nothing_written, 1},
    {"a value read in a chain, and after it", read_in_a_chain, 2},
    {"what comes out of a chain is added to a store", chain_into_store, 0},
    {"sums with a store that something else reads too", added_and_read, 1},
};

static int count(const hone_program *p, const struct op_def *def)
{
    int n = 0;
    for (int i = 0; i < p->plan.n_steps; i++)
        n += p->plan.steps[i].kind == PLAN_RUN && p->g->nodes[p->plan.steps[i].node].def == def;
    return n;
}

/* Runs twice on stores of its own; all outputs, then the stores, go to `out`; returns how many numbers. */
static int outcome(struct check *c, struct job *j, hone_program *p, float *out)
{
    static float x[ROWS * WIDE];
    hone_store *s[2] = {0};
    int n = 0;
    for (int i = 0; i < ROWS * WIDE; i++)
        x[i] = cosf((float)i);
    for (int r = 0; p && r < hone_program_roles(p); r++) {
        s[r] = hone_store_create(j->k.ctx, j->layout, &j->k.err);
        hone_store_init(s[r], 1, &j->k.err);
    }
    for (uint64_t run = 0; run < 2; run++)
        CHECK_MSG(c, kit_run(&j->k, p, (const void *[]){x}, s, run), "%s: %s", j->k.err.where, j->k.err.text);
    for (int i = 0; p && j->k.err.code == HONE_OK && i < hone_program_outputs(p); i++) {
        const hone_type t = hone_program_output_type(p, i);
        memcpy(out + n, hone_result(p, i), (size_t)hone_numel(&t.shape) * sizeof *out);
        n += (int)hone_numel(&t.shape);
    }
    for (int r = 0; r < 2; r++) {
        for (int t = 0; s[r] && t < 2; t++, n += WIDE)
            memcpy(out + n, hone_store_get(s[r], t), WIDE * sizeof *out);
        hone_store_destroy(s[r]);
    }
    return n;
}

static void plain_equals(struct check *c, int which, int threads)
{
    static float want[2 * ROWS * WIDE], got[2 * ROWS * WIDE];
    struct job j = {.layout = NULL};
    kit_open(&j.k, &(hone_ctx_options){.threads = threads});
    j.layout = hone_layout_create(j.k.ctx, &j.k.err);
    for (int i = 0; i < 2; i++)
        hone_layout_add(j.layout, i ? "b" : "a", HONE_SHAPE(WIDE), HONE_GROUP_PLAIN, (hone_init){HONE_INIT_NORMAL, 1},
                        &j.k.err);
    hone_graph *g = hone_graph_create(j.k.ctx, &j.k.err);
    graphs[which].build(g, j.layout);
    int n = 0;
    for (int mode = 0; mode < 3; mode++) {
        const hone_compile_options o = {.plain = mode == 0, .debug = mode == 2};
        hone_program *p = hone_compile(j.k.cpu, g, &o, &j.k.err);
        const int m = outcome(c, &j, p, mode ? got : want);
        n = mode ? n : m;
        CHECK(c, n > 0 && m == n);
        if (mode && p)
            CHECK_MSG(c, count(p, &op_silu) == graphs[which].silu, "%d times", count(p, &op_silu));
        for (int i = 0; mode && i < n; i++)
            if (!CHECK_MSG(c, fabsf(got[i] - want[i]) <= 1e-5f * (1 + fabsf(want[i])), "number %d: %g, should be %g", i,
                           (double)got[i], (double)want[i]))
                break;
        hone_program_destroy(p);
    }
    hone_graph_destroy(g);
    hone_layout_destroy(j.layout);
    kit_close(&j.k, c);
}

/* Gradients that are all there before the first is added, as a backward pass makes them: they do not wait. */
static void added_at_once(struct check *c)
{
    enum { N = 10 };
    struct kit k;
    hone_t d[N];
    char name[8];
    kit_open(&k, NULL);
    hone_layout *l = hone_layout_create(k.ctx, &k.err);
    hone_graph *g = hone_graph_create(k.ctx, &k.err);
    hone_t h = source(g);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "%d", i);
        hone_layout_add(l, name, HONE_SHAPE(ROWS, WIDE), HONE_GROUP_PLAIN, (hone_init){HONE_INIT_ZERO, 0}, &k.err);
        h = hone_softmax(h, 1);
        d[i] = hone_softmax(hone_affine(h, 3, 0), 0);
    }
    for (int i = 0; i < N; i++)
        hone_accumulate(d[i], "grad", l, i);
    const size_t one = ROWS * WIDE * sizeof(float);
    hone_program *p = hone_compile(k.cpu, g, NULL, &k.err);
    if (CHECK_MSG(c, p != NULL, "%s: %s", k.err.where, k.err.text))
        CHECK_MSG(c, hone_program_plan(p).transient < 6 * one, "%zu bytes", hone_program_plan(p).transient);
    hone_program_destroy(p);
    hone_graph_destroy(g);
    hone_layout_destroy(l);
    kit_close(&k, c);
}

void suite_remake(struct check *c)
{
    if (check_case(c, "gradients are added at once"))
        added_at_once(c);
    for (int threads = 1; threads <= 3; threads += 2)
        for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
            if (check_case(c, "%s, %d threads", graphs[i].name, threads))
                plain_equals(c, (int)i, threads);
}
