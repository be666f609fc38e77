/* Elementwise kernels that broadcast: large operands on several threads against the reference; and what drawn operands
 * do not meet: ties, NaN, bytes that are neither 0 nor 1. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/kit.h"

/* --- large operands --- */

static const struct {
    const char *name;
    hone_shape s[3]; /* of the operands; operations of two take the last two */
} shapes[] = {
    {"one run", {{2, {150, 131}}, {2, {150, 131}}, {2, {150, 131}}}},
    {"row", {{1, {131}}, {2, {150, 131}}, {1, {131}}}},
    {"column", {{2, {150, 1}}, {2, {150, 1}}, {2, {150, 131}}}},
    {"scalar", {{0, {0}}, {0, {0}}, {2, {150, 131}}}},
    {"all stretched", {{3, {40, 1, 1}}, {2, {30, 1}}, {1, {17}}}},
    {"in the middle", {{3, {12, 1, 50}}, {3, {12, 40, 50}}, {2, {40, 1}}}},
    {"rank 5", {{5, {3, 1, 5, 1, 40}}, {5, {1, 4, 1, 6, 40}}, {5, {3, 4, 5, 6, 1}}}},
    {"short rows", {{2, {5000, 1}}, {1, {3}}, {2, {5000, 3}}}},
};

/* Values that are exact in every type; of 0 there are many. */
static void draw(hone_dtype t, double *wide, void *x, int64_t n, unsigned salt)
{
    for (int64_t i = 0; i < n; i++) {
        const unsigned u = ((unsigned)i * 2654435761u + salt * 40503u) >> 16;
        wide[i] = t == HONE_BOOL ? (int)(u % 3 == 0) : (int)(u % 23) - 11;
        if (t == HONE_F32)
            ((float *)x)[i] = (float)wide[i];
        else if (t == HONE_I32)
            ((int32_t *)x)[i] = (int32_t)wide[i];
        else
            ((uint8_t *)x)[i] = (uint8_t)wide[i];
    }
}

static void against_reference(struct check *c, struct bk_dev *dev, const struct op_def *d, hone_dtype t,
                              const hone_shape *s)
{
    hone_type in[3], out[1];
    double *wide[3];
    void *x[3];
    hone_err err = {0};
    for (int i = 0; i < d->max_in; i++) {
        in[i] = (hone_type){d->max_in == 3 && i == 0 ? HONE_BOOL : t, s[i + 3 - d->max_in]};
        const int64_t n = hone_numel(&in[i].shape);
        wide[i] = malloc((size_t)n * sizeof(double));
        x[i] = malloc((size_t)n * 4);
        draw(in[i].dtype, wide[i], x[i], n, (unsigned)i + 1);
    }
    struct op_call call = {d, d->max_in, 1, in, NULL, {{0}, {0}}, NULL};
    CHECK_MSG(c, d->shape(&call, out, &err) == HONE_OK, "%s", err.text);
    call.out = out;
    const int64_t n = hone_numel(&out[0].shape);
    double *want = malloc((size_t)n * sizeof(double)), *got = malloc((size_t)n * sizeof(double));
    void *y = malloc((size_t)n * 4);
    d->ref(&call, (const double *const *)wide, &want);
    for (int threads = 1; threads <= 3; threads++) {
        memset(y, 0xff, (size_t)n * 4);
        bk_table[0]->find(&call)->run(
            &(struct bk_io){.dev = dev, .call = &call, .in = (const void *const *)x, .out = &y, .threads = threads},
            &err);
        ir_widen(out[0].dtype, y, got, n);
        int64_t at = 0;
        while (at < n && (got[at] == (double)(float)want[at] || (isnan(got[at]) && isnan(want[at]))))
            at++;
        CHECK_MSG(c, at == n, "%d threads, at %lld: %g, reference %g", threads, (long long)at, got[at % n],
                  want[at % n]);
    }
    free(y);
    free(got);
    free(want);
    for (int i = 0; i < d->max_in; i++) {
        free(x[i]);
        free(wide[i]);
    }
}

static void large(struct check *c, struct bk_dev *dev)
{
    static const struct {
        const char *name;
        hone_dtype t;
    } ops[] = {{"add", HONE_F32},           {"sub", HONE_F32},   {"div", HONE_F32},
               {"maximum", HONE_F32},       {"less", HONE_F32},  {"less", HONE_I32},
               {"greater_equal", HONE_I32}, {"equal", HONE_F32}, {"logical_and", HONE_BOOL},
               {"logical_or", HONE_BOOL},   {"where", HONE_F32}};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
            if (check_case(c, "%s of %s: %s", ops[i].name, hone_dtype_name(ops[i].t), shapes[k].name))
                against_reference(c, dev, op_find(ops[i].name), ops[i].t, shapes[k].s);
}

/* --- single values --- */

/* Runs g, which takes no inputs, and returns the program; NULL and a failed check if that does not go. */
static hone_program *run(struct check *c, struct kit *k, hone_graph *g)
{
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    if (CHECK_MSG(c, kit_run(k, p, NULL, NULL, 0), "%s: %s", k->err.where, k->err.text))
        return p;
    k->err = (hone_err){0};
    hone_program_destroy(p);
    return NULL;
}

static void expect(struct check *c, const hone_program *p, int output, int n, const float *want)
{
    const float *y = hone_result(p, output);
    for (int i = 0; i < n; i++)
        CHECK_MSG(c, y[i] == want[i] || (isnan(y[i]) && isnan(want[i])), "output %d at %d: %g, should be %g", output, i,
                  (double)y[i], (double)want[i]);
}

static hone_t row(hone_graph *g, int n, const float *x)
{
    return hone_const(g, HONE_F32, HONE_SHAPE(n), x);
}

static void larger_and_smaller(struct check *c, struct kit *k)
{
    static const float a[7] = {1, 2, 3, NAN, 1, NAN, -0.5f}, b[7] = {2, 1, 3, 1, NAN, NAN, -0.5f};
    if (check_case(c, "maximum and minimum keep NaN")) {
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_output(hone_maximum(row(g, 7, a), row(g, 7, b)), "max");
        hone_output(hone_minimum(row(g, 7, a), row(g, 7, b)), "min");
        hone_output(hone_maximum(row(g, 7, a), hone_const_f32(g, 1.5f)), "max of one");
        hone_output(hone_minimum(hone_const_f32(g, NAN), row(g, 7, b)), "min of NaN");
        hone_program *p = run(c, k, g);
        if (p) {
            expect(c, p, 0, 7, (const float[]){2, 2, 3, NAN, NAN, NAN, -0.5f});
            expect(c, p, 1, 7, (const float[]){1, 1, 3, NAN, NAN, NAN, -0.5f});
            expect(c, p, 2, 7, (const float[]){1.5f, 2, 3, NAN, 1.5f, NAN, 1.5f});
            expect(c, p, 3, 7, (const float[]){NAN, NAN, NAN, NAN, NAN, NAN, NAN});
        }
        hone_program_destroy(p);
        hone_graph_destroy(g);
    }
    for (int small = 0; small < 2; small++)
        if (check_case(c, "equal operands of %s share the gradient", small ? "minimum" : "maximum")) {
            static const float x[3] = {1, 2, 3}, y[3] = {2, 1, 3}, w[3] = {5, 7, 9};
            hone_graph *g = hone_graph_create(k->ctx, &k->err);
            hone_t in[2] = {row(g, 3, x), row(g, 3, y)}, d[2];
            hone_t z = small ? hone_minimum(in[0], in[1]) : hone_maximum(in[0], in[1]);
            hone_gradients(hone_sum(hone_mul(z, row(g, 3, w)), HONE_AXES_ALL, false), in, 2, d);
            hone_output(d[small], "lower");
            hone_output(d[!small], "upper");
            hone_program *p = run(c, k, g);
            if (p) {
                expect(c, p, 0, 3, (const float[]){0, 7, 4.5f});
                expect(c, p, 1, 3, (const float[]){5, 0, 4.5f});
            }
            hone_program_destroy(p);
            hone_graph_destroy(g);
        }
}

static void gradients_at_points(struct check *c, struct kit *k)
{
    static const float x[7] = {-2, -1, 0, 1, 2, -3, 5};
    if (!check_case(c, "gradients at bounds and at zero"))
        return;
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t in = row(g, 7, x), d;
    hone_t of[] = {hone_pow_scalar(in, 0), hone_clamp(in, -1, 2), hone_pow_scalar(in, 1), hone_pow_scalar(in, 2),
                   hone_abs(in),           hone_relu(in),         hone_cast(in, HONE_F32)};
    static const float want[][7] = {{0},
                                    {0, 1, 1, 1, 1, 0, 0},
                                    {1, 1, 1, 1, 1, 1, 1},
                                    {-4, -2, 0, 2, 4, -6, 10},
                                    {-1, -1, 0, 1, 1, -1, 1},
                                    {0, 0, 0, 1, 1, 0, 1},
                                    {1, 1, 1, 1, 1, 1, 1}};
    static const char *const names[] = {"pow 0", "clamp", "pow 1", "pow 2", "abs", "relu", "cast"};
    enum { N = sizeof of / sizeof of[0] };
    for (int i = 0; i < N; i++) {
        hone_gradients(hone_sum(of[i], HONE_AXES_ALL, false), &in, 1, &d);
        hone_output(d, names[i]);
    }
    hone_program *p = run(c, k, g);
    for (int i = 0; p && i < N; i++)
        expect(c, p, i, 7, want[i]);
    hone_program_destroy(p);
    hone_graph_destroy(g);
}

static void signs(struct check *c, struct kit *k)
{
    static const float x[7] = {-INFINITY, -1e-40f, -0.0f, 0, 3, INFINITY, NAN};
    if (!check_case(c, "sign of zeros, infinities and NaN"))
        return;
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_output(hone_sign(row(g, 7, x)), "y");
    hone_program *p = run(c, k, g);
    if (p)
        expect(c, p, 0, 7, (const float[]){-1, -1, 0, 0, 1, 1, NAN});
    hone_program_destroy(p);
    hone_graph_destroy(g);
}

static void bytes(struct check *c, struct kit *k)
{
    if (!check_case(c, "any byte but 0 is true"))
        return;
    static const uint8_t a[4] = {0, 1, 2, 255}, b[4] = {1, 4, 1, 0};
    static const float ten[4] = {10, 10, 10, 10};
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t x = hone_input(g, "x", HONE_BOOL, HONE_SHAPE(4)), y = hone_input(g, "y", HONE_BOOL, HONE_SHAPE(4));
    hone_output(hone_logical_and(x, y), "and");
    hone_output(hone_logical_or(x, y), "or");
    hone_output(hone_logical_not(x), "not");
    hone_output(hone_where(x, row(g, 4, ten), hone_const_f32(g, 3)), "where");
    hone_output(hone_cast(x, HONE_F32), "f32");
    hone_output(hone_cast(x, HONE_I32), "i32");
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    if (CHECK_MSG(c, kit_run(k, p, (const void *[]){a, b}, NULL, 0), "%s: %s", k->err.where, k->err.text)) {
        CHECK(c, !memcmp(hone_result(p, 0), (const uint8_t[]){0, 1, 1, 0}, 4));
        CHECK(c, !memcmp(hone_result(p, 1), (const uint8_t[]){1, 1, 1, 1}, 4));
        CHECK(c, !memcmp(hone_result(p, 2), (const uint8_t[]){1, 0, 0, 0}, 4));
        expect(c, p, 3, 4, (const float[]){3, 10, 10, 10});
        expect(c, p, 4, 4, (const float[]){0, 1, 1, 1});
        CHECK(c, !memcmp(hone_result(p, 5), (const int32_t[]){0, 1, 1, 1}, 16));
    }
    hone_program_destroy(p);
    hone_graph_destroy(g);
}

static void same_type(struct check *c, struct kit *k)
{
    if (!check_case(c, "a cast to the same type is the operand"))
        return;
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t x = hone_input(g, "x", HONE_U8, HONE_SHAPE(4));
    CHECK(c, hone_cast(x, HONE_U8).id == x.id);
    CHECK(c, hone_cast(x, HONE_I32).id != x.id);
    CHECK(c, hone_graph_status(g, &k->err) == HONE_OK);
    hone_graph_destroy(g);
}

void suite_elementwise(struct check *c)
{
    struct kit k;
    kit_open(&k, &(hone_ctx_options){.threads = 3});
    large(c, k.cpu->dev);
    larger_and_smaller(c, &k);
    gradients_at_points(c, &k);
    signs(c, &k);
    bytes(c, &k);
    same_type(c, &k);
    if (check_case(c, "nothing leaks"))
        kit_close(&k, c);
    else
        kit_close(&k, &(struct check){.open = 1});
}
