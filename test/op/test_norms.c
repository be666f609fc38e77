/* Normalisations, softmax and attention beyond what the table of operations tests: the same bits for any number of
 * threads and in place, rows far from zero, masks, NaN and infinities, what builders make of left-out operands. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "graph/kit.h"
#include "hone/random.h"
#include "op/harness.h"

/* --- kernels run by hand --- */

struct use {
    struct bk_dev *dev;
    struct op_call call;
    hone_type out[OP_MAX_OUT];
    double *wide[OP_CASE_IN]; /* operands, and the same as the kernel takes them */
    void *in[OP_CASE_IN];
    size_t bytes[OP_CASE_IN];
    int64_t n[OP_MAX_OUT]; /* elements of results */
};

static void *room(size_t bytes)
{
    return aligned_alloc(64, bytes + 64 - bytes % 64);
}

static void use_open(struct use *u, struct check *c, struct bk_dev *dev, const struct op_def *def,
                     const struct op_case *k)
{
    struct harness h = {.def = def, .k = k};
    hone_err err = {0};
    memset(u, 0, sizeof *u);
    u->dev = dev;
    u->call = (struct op_call){def, k->n_in, def->n_out, k->in, NULL, k->attr, NULL};
    CHECK_MSG(c, def->shape(&u->call, u->out, &err) == HONE_OK, "%s", err.text);
    u->call.out = u->out;
    for (int i = 0; i < def->n_out; i++)
        u->n[i] = op_numel(&u->out[i]);
    harness_draw(&h);
    for (int i = 0; i < k->n_in; i++) {
        const bool f32 = k->in[i].dtype == HONE_F32;
        u->wide[i] = h.in[i];
        u->bytes[i] = (size_t)h.n[i] * (f32 ? 4 : 1);
        u->in[i] = room(u->bytes[i]);
        for (int64_t j = 0; j < h.n[i]; j++)
            if (f32)
                ((float *)u->in[i])[j] = (float)h.in[i][j];
            else
                ((uint8_t *)u->in[i])[j] = h.in[i][j] != 0;
    }
}

static void use_close(struct use *u)
{
    for (int i = 0; i < u->call.n_in; i++) {
        free(u->wide[i]);
        free(u->in[i]);
    }
}

/* Runs into `out`; in place of operand `place` if that is not -1, which then is a copy of it. */
static void use_run(struct use *u, struct check *c, const struct bk_kernel *k, int threads, int place, float **out)
{
    hone_err err = {0};
    const void *in[OP_CASE_IN];
    void *results[OP_MAX_OUT];
    const size_t bytes = k->scratch ? k->scratch(&u->call, threads) : 0;
    char *scratch = room(bytes + 64);
    memset(scratch, 0xff, bytes + 64); /* NaN: what is read before it is written shows */
    for (int i = 0; i < u->call.n_in; i++)
        in[i] = u->in[i];
    for (int i = 0; i < u->call.n_out; i++) {
        results[i] = out[i] = room((size_t)u->n[i] * sizeof(float));
        memset(out[i], 0xff, (size_t)u->n[i] * sizeof(float));
    }
    if (place >= 0)
        in[place] = memcpy(out[0], u->in[place], u->bytes[place]);
    struct bk_io io = {u->dev, &u->call, "test", in, results, scratch, NULL, threads};
    CHECK_MSG(c, k->run(&io, &err) == HONE_OK, "%s", err.text);
    for (size_t i = 0; i < 64; i++)
        CHECK_MSG(c, (unsigned char)scratch[bytes + i] == 0xff, "wrote behind its scratch memory");
    free(scratch);
}

static void drop(struct use *u, float **out)
{
    for (int i = 0; i < u->call.n_out; i++)
        free(out[i]);
}

static void equals_reference(struct check *c, struct bk_dev *dev, const struct bk_kernel *k, const struct op_case *one)
{
    struct use u;
    float *got[OP_MAX_OUT];
    double *want[OP_MAX_OUT];
    use_open(&u, c, dev, op_find(k->op), one);
    for (int i = 0; i < u.call.n_out; i++)
        want[i] = malloc((size_t)u.n[i] * sizeof(double) + 8);
    u.call.def->ref(&u.call, (const double *const *)u.wide, want);
    use_run(&u, c, k, 2, -1, got);
    for (int i = 0; i < u.call.n_out; i++) {
        double largest = 0, worst = 0;
        for (int64_t j = 0; j < u.n[i]; j++) {
            const double d = fabs(got[i][j] - want[i][j]);
            largest = fmax(largest, fabs(want[i][j]));
            worst = d <= worst ? worst : d; /* NaN is worst */
        }
        CHECK_MSG(c, worst <= 2e-6 * largest, "result %d: %g of %g", i, worst, largest);
        free(want[i]);
    }
    drop(&u, got);
    use_close(&u);
}

static bool same(const struct use *u, float *const *a, float *const *b)
{
    for (int i = 0; i < u->call.n_out; i++)
        if (memcmp(a[i], b[i], (size_t)u->n[i] * sizeof(float)))
            return false;
    return true;
}

/* For 1, 2, 3 and 7 threads, and in place of each operand that the kernel allows. */
static void same_bits(struct check *c, struct bk_dev *dev, const struct bk_kernel *k, const struct op_case *one)
{
    struct use u;
    float *first[OP_MAX_OUT], *other[OP_MAX_OUT];
    use_open(&u, c, dev, op_find(k->op), one);
    use_run(&u, c, k, 1, -1, first);
    for (int t = 0; t < 3; t++) {
        const int threads = (const int[]){2, 3, 7}[t];
        use_run(&u, c, k, threads, -1, other);
        CHECK_MSG(c, same(&u, first, other), "%d threads", threads);
        drop(&u, other);
    }
    for (int i = 0; i < u.call.n_in; i++)
        if (k->inplace[0] >> i & 1) {
            use_run(&u, c, k, 2, i, other);
            CHECK_MSG(c, same(&u, first, other), "in place of operand %d", i);
            drop(&u, other);
        }
    drop(&u, first);
    use_close(&u);
}

/* Enough work for threads; channels of one element, of few, of many. */
static const struct {
    const struct bk_kernel *kernel;
    struct op_case k;
} large[] = {
    {&cpu_group_norm, {"signals", 3, {OP_F32(67, 24, 13), OP_F32(24), OP_F32(24)}, {.i = {4}, .f = {1e-5}}}},
    {&cpu_group_norm, {"images", 3, {OP_F32(5, 12, 17, 19), OP_F32(12), OP_F32(12)}, {.i = {3}, .f = {1e-5}}}},
    {&cpu_group_norm_grad,
     {"signals", 5, {OP_F32(67, 24, 13), OP_F32(67, 24, 13), OP_F32(24), OP_F32(67, 4), OP_F32(67, 4)}}},
    {&cpu_group_norm_grad,
     {"channels", 5, {OP_F32(167, 140), OP_F32(167, 140), OP_F32(140), OP_F32(167, 4), OP_F32(167, 4)}}},
    {&cpu_group_norm_grad,
     {"images", 5, {OP_F32(5, 12, 17, 19), OP_F32(5, 12, 17, 19), OP_F32(12), OP_F32(5, 3), OP_F32(5, 3)}}},
    {&cpu_time_norm, {"signals", 3, {OP_F32(16, 37, 64), OP_F32(64), OP_F32(64)}, {.i = {8, 1}, .f = {1e-5}}}},
    {&cpu_time_norm, {"odd signals", 3, {OP_F32(3, 470, 15), OP_F32(15), OP_F32(15)}, {.i = {3, 2}, .f = {1e-5}}}},
    {&cpu_time_norm_grad,
     {"signals",
      6,
      {OP_F32(16, 37, 64), OP_F32(16, 37, 64), OP_F32(64), OP_F32(64), OP_F32(37, 8), OP_F32(37, 8)},
      {.i = {8, 1}}}},
    {&cpu_time_norm_grad,
     {"odd signals",
      6,
      {OP_F32(3, 470, 15), OP_F32(3, 470, 15), OP_F32(15), OP_F32(15), OP_F32(470, 3), OP_F32(470, 3)},
      {.i = {3, 2}}}},
    {&cpu_layer_norm, {"tokens", 3, {OP_F32(3, 99, 67), OP_F32(67), OP_F32(67)}, {.f = {1e-5}}}},
    {&cpu_layer_norm_grad,
     {"tokens", 5, {OP_F32(3, 99, 67), OP_F32(3, 99, 67), OP_F32(3, 99, 1), OP_F32(3, 99, 1), OP_F32(67)}}},
    {&cpu_layer_norm_grad,
     {"without gamma", 4, {OP_F32(3, 99, 67), OP_F32(3, 99, 67), OP_F32(3, 99, 1), OP_F32(3, 99, 1)}}},
    {&cpu_rms_norm, {"tokens", 2, {OP_F32(3, 99, 67), OP_F32(67)}, {.f = {1e-5}}}},
    {&cpu_rms_norm_grad, {"tokens", 4, {OP_F32(3, 99, 67), OP_F32(3, 99, 67), OP_F32(3, 99, 1), OP_F32(67)}}},
    {&cpu_softmax, {"rows", 1, {OP_F32(599, 33)}, {.i = {1}}}},
    {&cpu_softmax, {"columns", 1, {OP_F32(7, 29, 101)}, {.i = {1}}}},
    {&cpu_softmax_grad, {"rows", 2, {OP_F32(599, 33), OP_F32(599, 33)}, {.i = {1}}}},
    {&cpu_softmax_grad, {"columns", 2, {OP_F32(7, 29, 101), OP_F32(7, 29, 101)}, {.i = {1}}}},
    {&cpu_log_softmax, {"rows", 1, {OP_F32(599, 33)}, {.i = {1}}}},
    {&cpu_log_softmax, {"columns", 1, {OP_F32(7, 29, 101)}, {.i = {1}}}},
    {&cpu_attention,
     {"heads",
      4,
      {OP_F32(3, 2, 70, 20), OP_F32(3, 2, 45, 20), OP_F32(3, 2, 45, 20), OP_BOOL(3, 1, 70, 45)},
      {.f = {0.3}}}},
    {&cpu_attention_grad,
     {"heads",
      5,
      {OP_F32(3, 2, 70, 20), OP_F32(3, 2, 70, 20), OP_F32(3, 2, 45, 20), OP_F32(3, 2, 45, 20), OP_BOOL(70, 45)},
      {.f = {0.3}}}},
};

static void kernels(struct check *c, struct bk_dev *dev)
{
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        const struct bk_kernel *k = large[i].kernel;
        if (check_case(c, "%s: %s: reference", k->op, large[i].k.name))
            equals_reference(c, dev, k, &large[i].k);
        if (check_case(c, "%s: %s: same bits", k->op, large[i].k.name))
            same_bits(c, dev, k, &large[i].k);
    }
    /* with oneDNN these two are not what the table's tests run */
    const struct bk_kernel *own[] = {&cpu_attention, &cpu_attention_grad};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < op_find(own[i]->op)->n_cases; j++) {
            const struct op_case *one = &op_find(own[i]->op)->cases[j];
            if (check_case(c, "%s: %s: kernel", own[i]->op, one->name))
                equals_reference(c, dev, own[i], one);
        }
}

/* --- programs --- */

/* Runs a graph whose outputs are named "0", "1"...; NULL on failure. The program is destroyed by the caller. */
static hone_program *run(struct check *c, struct kit *k, hone_graph *g, bool expand, const void *const *in)
{
    hone_program *p = hone_compile(k->cpu, g, &(hone_compile_options){.expand = expand}, &k->err);
    CHECK_MSG(c, kit_run(k, p, in, NULL, 0), "%s: %s", k->err.where, k->err.text);
    return k->err.code == HONE_OK ? p : NULL;
}

enum { B = 2, H = 2, S = 4, D = 3, TOKENS = B * H * S * D, SCORES = B * H * S * S };

static void draw(float *x, int64_t n, const char *name)
{
    hone_fill_normal(x, (size_t)n, 5, hone_stream(name), 0, 0);
}

/* Query 1 of every head may attend to nothing, query 2 to key 3 alone, the others to all. */
static void masks(struct check *c, struct kit *k)
{
    static const char *const name[] = {"q", "k", "v"};
    float x[3][TOKENS];
    uint8_t mask[S * S];
    const void *in[4] = {x[0], x[1], x[2], mask};
    for (int i = 0; i < 3; i++)
        draw(x[i], TOKENS, name[i]);
    for (int i = 0; i < S; i++)
        for (int j = 0; j < S; j++)
            mask[i * S + j] = i == 1 ? 0 : i == 2 ? j == 3 : 1;
    for (int expand = 0; expand < 2; expand++) {
        if (!check_case(c, "masked queries are zero, true attends%s", expand ? ", expanded" : ""))
            continue;
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_t t[3], dx[3];
        for (int i = 0; i < 3; i++)
            t[i] = hone_input(g, name[i], HONE_F32, HONE_SHAPE(B, H, S, D));
        hone_t y = hone_attention(t[0], t[1], t[2], hone_input(g, "mask", HONE_BOOL, HONE_SHAPE(S, S)), 0);
        hone_gradients(hone_sum(hone_mul(y, y), HONE_AXES_ALL, false), t, 3, dx);
        hone_output(y, "y");
        for (int i = 0; i < 3; i++)
            hone_output(dx[i], name[i]);
        hone_program *p = run(c, k, g, expand, in);
        for (int i = 0; p && i < TOKENS; i++) {
            const int query = i / D % S, last = (i / (S * D) * S + 3) * D + i % D;
            const float *got = hone_result(p, 0), *dq = hone_result(p, 1);
            if (query == 1)
                CHECK_MSG(c, got[i] == 0 && dq[i] == 0, "%g, gradient %g", (double)got[i], (double)dq[i]);
            if (query == 2)
                CHECK_MSG(c, got[i] == x[2][last] && dq[i] == 0, "%g, %g", (double)got[i], (double)x[2][last]);
            for (int j = 1; j < 4; j++)
                CHECK(c, isfinite(((const float *)hone_result(p, j))[i]));
        }
        hone_program_destroy(p);
        hone_graph_destroy(g);
    }
}

/* Without any key to attend to, all gradients are zero. */
static void nothing_attended(struct check *c, struct kit *k)
{
    float x[3][TOKENS];
    uint8_t mask[1] = {0};
    const void *in[4] = {x[0], x[1], x[2], mask};
    for (int i = 0; i < 3; i++)
        draw(x[i], TOKENS, "x");
    for (int expand = 0; expand < 2; expand++) {
        if (!check_case(c, "no gradient where all is masked%s", expand ? ", expanded" : ""))
            continue;
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_t t[3], dx[3];
        for (int i = 0; i < 3; i++)
            t[i] = hone_input(g, (const char *[]){"q", "k", "v"}[i], HONE_F32, HONE_SHAPE(B, H, S, D));
        hone_t y = hone_attention(t[0], t[1], t[2], hone_input(g, "mask", HONE_BOOL, HONE_SHAPE(1)), 0);
        hone_gradients(hone_sum(hone_affine(y, 1, 2), HONE_AXES_ALL, false), t, 3, dx);
        for (int i = 0; i < 3; i++)
            hone_output(dx[i], (const char *[]){"q", "k", "v"}[i]);
        hone_program *p = run(c, k, g, expand, in);
        for (int i = 0; p && i < 3 * TOKENS; i++)
            CHECK(c, ((const float *)hone_result(p, i / TOKENS))[i % TOKENS] == 0);
        hone_program_destroy(p);
        hone_graph_destroy(g);
    }
}

static void builders(struct check *c, struct kit *k)
{
    if (!check_case(c, "operands left out"))
        return;
    float x[TOKENS], beta[D];
    const void *in[2] = {x, beta};
    draw(x, TOKENS, "x");
    draw(beta, D, "beta");
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t t = hone_input(g, "x", HONE_F32, HONE_SHAPE(B, H, S, D)), b = hone_input(g, "b", HONE_F32, HONE_SHAPE(D));
    hone_t one = hone_full(g, HONE_SHAPE(D), 1), zero = hone_full(g, HONE_SHAPE(D), 0);
    hone_t y[10] = {hone_layer_norm(t, HONE_NONE, HONE_NONE, 1e-3),
                    hone_layer_norm(t, one, zero, 1e-3),
                    hone_layer_norm(t, HONE_NONE, b, 1e-3),
                    hone_layer_norm(t, one, b, 1e-3),
                    hone_layer_norm(t, b, HONE_NONE, 1e-3),
                    hone_layer_norm(t, b, zero, 1e-3),
                    hone_rms_norm(t, HONE_NONE, 1e-3),
                    hone_rms_norm(t, one, 1e-3),
                    hone_attention(t, t, t, HONE_NONE, 0),
                    hone_attention(t, t, t, HONE_NONE, sqrt(1. / D))};
    for (int i = 0; i < 10; i++)
        hone_output(y[i], (const char *[]){"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}[i]);
    hone_program *p = run(c, k, g, false, in);
    for (int i = 0; p && i < 10; i += 2)
        for (int j = 0; j < TOKENS; j++) {
            const float a = ((const float *)hone_result(p, i))[j], o = ((const float *)hone_result(p, i + 1))[j];
            CHECK_MSG(c, fabsf(a - o) <= 1e-6f * fmaxf(1, fabsf(o)), "%d, %d: %g, %g", i, j, (double)a, (double)o);
        }
    hone_program_destroy(p);
    hone_graph_destroy(g);
}

/* Elements near 1000 of deviation 1: results to 1e-6, gradients (whose mean is a saved f32) to 1e-4. */
static void far_from_zero(struct check *c, struct kit *k)
{
    enum { N = 3, C = 8, L = 20, ALL = N * C * L };
    if (!check_case(c, "far from zero, with gradient"))
        return;
    float x[ALL], gamma[C], beta[C];
    double wide[3][ALL], *values[3] = {wide[0], wide[1], wide[2]};
    const void *in[3] = {x, gamma, beta};
    draw(x, ALL, "x");
    draw(gamma, C, "gamma");
    draw(beta, C, "beta");
    for (int i = 0; i < ALL; i++) {
        x[i] += 1000;
        wide[0][i] = x[i];
        wide[1][i] = gamma[i % C];
        wide[2][i] = beta[i % C];
    }
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t t[3] = {hone_input(g, "x", HONE_F32, HONE_SHAPE(N, C, L)), hone_input(g, "gamma", HONE_F32, HONE_SHAPE(C)),
                   hone_input(g, "beta", HONE_F32, HONE_SHAPE(C))};
    hone_t y = hone_group_norm(t[0], t[1], t[2], 2, 1e-5), dx[3];
    hone_gradients(harness_project(g, &y, 1, "loss"), t, 3, dx);
    hone_output(y, "y");
    for (int i = 0; i < 3; i++)
        hone_output(dx[i], (const char *[]){"dx", "dgamma", "dbeta"}[i]);
    struct harness h = {.in = {values[0], values[1], values[2]}};
    double **want = harness_eval(&h, g, &k->err);
    hone_program *p = run(c, k, g, false, in);
    for (int i = 0; p && want && i < 4; i++) {
        const hone_t v = i ? dx[i - 1] : y;
        const hone_type type = hone_type_of(v);
        double largest = 0, worst = 0;
        for (int64_t j = 0; j < op_numel(&type); j++) {
            largest = fmax(largest, fabs(want[v.id][j]));
            worst = fmax(worst, fabs(((const float *)hone_result(p, i))[j] - want[v.id][j]));
        }
        CHECK_MSG(c, worst <= (i ? 1e-4 : 1e-6) * largest, "result %d: %g of %g", i, worst, largest);
    }
    ir_reference_free(g, want);
    hone_program_destroy(p);
    hone_graph_destroy(g);
}

/* --- numbers that are none --- */

static void by_hand(const struct op_def *def, const struct bk_kernel *k, const hone_type *type, int n, int64_t group,
                    const void *const *in, float *y, float *stat)
{
    const struct op_call call = {def, n, def->n_out, type, type, {.i = {group}, .f = {0.5}}, NULL};
    float scratch[4096], second[64];
    void *out[3] = {y, stat, second};
    hone_err err = {0};
    k->run(&(struct bk_io){NULL, &call, "test", in, out, scratch, NULL, 1}, &err);
}

static void not_numbers(struct check *c)
{
    float x[40], y[40], stat[64], one[6] = {1, 1, 1, 1, 1, 1};
    if (check_case(c, "softmax of minus infinity is zero, of NaN NaN")) {
        const hone_type row = OP_F32(2, 20);
        for (int i = 0; i < 40; i++)
            x[i] = i % 20 == 3 ? -INFINITY : i % 20 == 5 ? -1e30f : (float)(i % 7);
        x[39] = NAN;
        by_hand(&op_softmax, &cpu_softmax, &row, 1, 1, (const void *[]){x}, y, stat);
        for (int i = 0; i < 40; i++)
            CHECK_MSG(c, i >= 20 ? isnan(y[i]) : i == 3 || i == 5 ? y[i] == 0 : y[i] > 0, "%d: %g", i, (double)y[i]);
        const hone_type column = OP_F32(20, 2);
        for (int i = 0; i < 20; i++) {
            x[2 * i] = i == 3 ? -INFINITY : 1;
            x[2 * i + 1] = i == 3 ? NAN : 1;
        }
        by_hand(&op_softmax, &cpu_softmax, &column, 1, 0, (const void *[]){x}, y, stat);
        for (int i = 0; i < 20; i++)
            CHECK(c, (i == 3 ? y[2 * i] == 0 : y[2 * i] > 0) && isnan(y[2 * i + 1]));
    }
    if (check_case(c, "NaN stays in its group")) {
        const hone_type type[3] = {OP_F32(1, 4, 10), OP_F32(4), OP_F32(4)};
        for (int i = 0; i < 40; i++)
            x[i] = i == 25 ? NAN : (float)(i % 7);
        by_hand(&op_group_norm, &cpu_group_norm, type, 3, 2, (const void *[]){x, one, one}, y, stat);
        for (int i = 0; i < 40; i++)
            CHECK_MSG(c, isnan(y[i]) == (i >= 20), "%d: %g", i, (double)y[i]);
    }
    if (check_case(c, "NaN is not taken for a mask")) {
        const hone_type type[4] = {OP_F32(1, 1, 2, 2), OP_F32(1, 1, 3, 2), OP_F32(1, 1, 3, 2), OP_BOOL(2, 3)};
        const uint8_t mask[6] = {1, 1, 0, 0, 0, 0};
        for (int i = 0; i < 6; i++)
            x[i] = NAN;
        by_hand(&op_attention, &cpu_attention, type, 4, 0, (const void *[]){x, x, one, mask}, y, stat);
        CHECK(c, isnan(y[0]) && isnan(y[1]) && y[2] == 0 && y[3] == 0);
    }
}

void suite_norms(struct check *c)
{
    struct kit k;
    kit_open(&k, &(hone_ctx_options){.threads = 3});
    kernels(c, k.cpu->dev);
    masks(c, &k);
    nothing_attended(c, &k);
    builders(c, &k);
    far_from_zero(c, &k);
    not_numbers(c);
    if (check_case(c, "nothing leaks"))
        kit_close(&k, c);
    else
        kit_close(&k, c);
}
