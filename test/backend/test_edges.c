/* Kernels at the edges that drawn operands do not meet: NaN, large numbers, ties, long sums, bad indices. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "graph/kit.h"

enum { LONG = 301 };

static const hone_compile_options modes[] = {{.name = "as it is"}, {.no_inplace = true}, {.expand = true}};
enum { MODES = 3 };

/* Runs g without inputs or stores; NULL and a failed check if that does not go. */
static hone_program *run(struct check *c, struct kit *k, hone_graph *g, int mode)
{
    hone_program *p = hone_compile(k->cpu, g, &modes[mode], &k->err);
    const bool ok = kit_run(k, p, NULL, NULL, 0);
    CHECK_MSG(c, ok, "%s: %s", k->err.where, k->err.text);
    k->err = (hone_err){0};
    if (ok)
        return p;
    hone_program_destroy(p);
    return NULL;
}

static float *result(const hone_program *p, int i)
{
    return (float *)(uintptr_t)hone_result(p, i); /* only read */
}

static hone_t values(hone_graph *g, int64_t n, const float *x)
{
    return hone_const(g, HONE_F32, HONE_SHAPE(n), x);
}

/* --- elementwise --- */

static float nan_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Every operation of one f32 without a shape rule of its own: the numbers of its reference, and NaN for NaN. */
static void elementwise(struct check *c, struct kit *k)
{
    const float x[] = {0,
                       1e-30f,
                       -1e-30f,
                       20,
                       -20,
                       21,
                       -21,
                       30,
                       -30,
                       87.5f,
                       -87.5f,
                       88.5f,
                       -88.5f,
                       90,
                       -90,
                       200,
                       -200,
                       1e4f,
                       -1e4f,
                       1e30f,
                       -1e30f,
                       FLT_MAX,
                       -FLT_MAX,
                       NAN,
                       -NAN,
                       nan_of(0x7fc00001),
                       nan_of(0xff800101),
                       nan_of(0x7fffffff)};
    enum { N = sizeof x / sizeof x[0], FINITE = N - 5 };
    for (int i = 0; op_table[i]; i++) {
        const struct op_def *d = op_table[i];
        if (d->shape != op_shape_unary || d->min_in != 1 || d->n_cases == 0)
            continue;
        if (!check_case(c, "%s of large numbers and NaN", d->name))
            continue;
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_t in = values(g, N, x);
        hone_output(op_emit(d, 1, &in, &d->cases[0].attr, NULL), "y");
        double wide[N], want[N];
        const struct op_call call = {
            d,   1, 1, &(hone_type){HONE_F32, HONE_SHAPE(N)}, &(hone_type){HONE_F32, HONE_SHAPE(N)}, d->cases[0].attr,
            NULL};
        for (int j = 0; j < N; j++)
            wide[j] = x[j];
        d->ref(&call, (const double *const[]){wide}, (double *const[]){want});
        for (int m = 0; m < 2; m++) {
            hone_program *p = run(c, k, g, m);
            for (int j = 0; p && j < N; j++) {
                const double y = result(p, 0)[j], w = j < FINITE ? (double)(float)want[j] : NAN;
                const bool same = isnan(w) ? isnan(y) : y == w || fabs(y - w) <= 2e-5 * fabs(w) + 1e-30;
                CHECK_MSG(c, same, "of %g: %g, should be %g", wide[j], y, w);
            }
            hone_program_destroy(p);
        }
        hone_graph_destroy(g);
    }
}

static void casts(struct check *c, struct kit *k)
{
    if (!check_case(c, "cast to integers: towards zero, to the nearest end, NaN to 0"))
        return;
    static const float x[] = {1.9f,          -1.9f, 3e9f,     -3e9f,     2147483648.0f, -2147483648.0f,
                              2147483520.0f, NAN,   INFINITY, -INFINITY, 1e30f};
    static const int32_t want[] = {1,          -1, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN,
                                   2147483520, 0,  INT32_MAX, INT32_MIN, INT32_MAX};
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_output(hone_cast(values(g, 11, x), HONE_I32), "y");
    hone_program *p = run(c, k, g, 0);
    for (int i = 0; p && i < 11; i++)
        CHECK_MSG(c, ((const int32_t *)hone_result(p, 0))[i] == want[i], "of %g", (double)x[i]);
    hone_program_destroy(p);
    hone_graph_destroy(g);
}

/* --- reductions --- */

static void long_sums(struct check *c, struct kit *k)
{
    if (!check_case(c, "a sum keeps what is small beside what is large"))
        return;
    static float x[3 * LONG * 4], row[3 * LONG];
    for (int i = 0; i < LONG; i++) {
        row[i] = 1e9f;
        row[LONG + i] = 1;
        row[2 * LONG + i] = -1e9f;
    }
    for (int i = 0; i < 3 * LONG * 4; i++)
        x[i] = row[i / 4];
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t columns = hone_const(g, HONE_F32, HONE_SHAPE(3 * LONG, 4), x);
    hone_output(hone_sum(values(g, 3 * LONG, row), HONE_AXES_ALL, false), "run");
    hone_output(hone_sum(columns, HONE_AXIS(0), false), "columns");
    hone_output(hone_mean(values(g, 3 * LONG, row), HONE_AXES_ALL, false), "mean");
    hone_program *p = run(c, k, g, 0);
    if (p) {
        CHECK_MSG(c, result(p, 0)[0] == LONG, "%g", (double)result(p, 0)[0]);
        for (int j = 0; j < 4; j++)
            CHECK_MSG(c, result(p, 1)[j] == LONG, "column %d: %g", j, (double)result(p, 1)[j]);
        CHECK(c, fabsf(result(p, 2)[0] - 1.0f / 3) < 1e-6f);
    }
    hone_program_destroy(p);
    hone_graph_destroy(g);
}

static void largest(struct check *c, struct kit *k)
{
    static float x[LONG], columns[LONG * 2];
    if (check_case(c, "the largest of what holds NaN is NaN, wherever it stands")) {
        for (int at = 0; at < LONG; at += at < 40 ? 1 : 37) {
            for (int i = 0; i < LONG; i++) {
                x[i] = i == at ? NAN : (float)(i % 7) - 9;
                columns[2 * i] = x[i];
                columns[2 * i + 1] = (float)(i % 7) - 9;
            }
            hone_graph *g = hone_graph_create(k->ctx, &k->err);
            hone_output(hone_amax(values(g, LONG, x), HONE_AXIS(0), false), "row");
            hone_t two = hone_const(g, HONE_F32, HONE_SHAPE(LONG, 2), columns);
            hone_output(hone_amax(two, HONE_AXIS(0), false), "columns");
            hone_output(hone_amax(two, HONE_AXIS(1), false), "pairs");
            hone_program *p = run(c, k, g, 0);
            if (p) {
                CHECK_MSG(c, isnan(result(p, 0)[0]) && isnan(result(p, 1)[0]), "at %d", at);
                CHECK_MSG(c, result(p, 1)[1] == -3, "%g", (double)result(p, 1)[1]);
                for (int i = 0; i < LONG; i++)
                    CHECK(c, i == at ? isnan(result(p, 2)[i]) : result(p, 2)[i] == columns[2 * i]);
            }
            hone_program_destroy(p);
            hone_graph_destroy(g);
        }
    }
    if (check_case(c, "equally large elements share the gradient")) {
        static const float tied[2][4] = {{2, 2, 1, 2}, {-1, -3, -1, -2}},
                           want[2][4] = {{1, 1, 0, 1}, {1.5f, 0, 1.5f, 0}};
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_t in = hone_const(g, HONE_F32, HONE_SHAPE(2, 4), tied), d;
        hone_gradients(hone_affine(hone_sum(hone_amax(in, HONE_AXIS(1), false), HONE_AXES_ALL, false), 3, 0), &in, 1,
                       &d);
        hone_output(d, "d");
        hone_program *p = run(c, k, g, 0);
        for (int i = 0; p && i < 8; i++)
            CHECK_MSG(c, fabsf(result(p, 0)[i] - want[i / 4][i % 4]) < 1e-6f, "%d: %g", i, (double)result(p, 0)[i]);
        hone_program_destroy(p);
        hone_graph_destroy(g);
    }
}

/* --- rows by index --- */

static void indices(struct check *c, struct kit *k)
{
    static const float x[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const int32_t bad[][3] = {{0, 5, 1}, {0, 1, -1}, {INT32_MAX, 0, 0}, {0, INT32_MIN, 4}}, good[3] = {4, 0, 4};
    static const char *const says[] = {"[1] is 5", "[2] is -1", "[0] is 2147483647", "[1] is -2147483648"};
    for (int scatter = 0; scatter < 2; scatter++) {
        if (!check_case(c, "%s refuses an index out of range, and goes on", scatter ? "scatter_add" : "gather"))
            continue;
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_scope_push(g, "table");
        hone_t rows = hone_const(g, HONE_F32, HONE_SHAPE(5, 2), x), at = hone_input(g, "at", HONE_I32, HONE_SHAPE(3));
        hone_output(scatter ? hone_scatter_add(rows, at, hone_slice(rows, 0, 2, 3)) : hone_gather(rows, at), "y");
        hone_scope_pop(g);
        hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
        for (int i = 0; p && i < 4; i++) {
            hone_err e = {0};
            const void *in[1] = {bad[i]};
            if (hone_run(p, &(hone_run_args){.inputs = in}, &e) == HONE_OK)
                hone_wait(p, &e);
            CHECK_MSG(c, e.code == HONE_E_ARG && !strcmp(e.where, "table") && strstr(e.text, says[i]), "%d: %s: %s", i,
                      e.where, e.text);
        }
        if (CHECK(c, kit_run(k, p, (const void *[]){good}, NULL, 0)))
            CHECK(c, scatter ? result(p, 0)[8] == 8 + 4 + 8 && result(p, 0)[1] == 1 + 7 && result(p, 0)[2] == 2
                             : result(p, 0)[0] == 8 && result(p, 0)[3] == 1 && result(p, 0)[4] == 8);
        hone_program_destroy(p);
        hone_graph_destroy(g);
    }
}

/* --- optimiser steps --- */

static void adam(struct check *c, struct kit *k)
{
    static const float p0[3] = {1, -2, 4}, g0[3] = {1, -1, 2}, zero[3] = {0}, lost[3] = {NAN, INFINITY, 1},
                       m0[3] = {0.5f, 0.25f, -1}, v0[3] = {1, 2, 3};
    for (int mode = 0; mode < MODES; mode++) {
        if (check_case(c, "adamw: a large eps, mode %d", mode)) {
            /* at step 1 both corrected moments are those of the gradient alone: move lr g / (|g| + eps) */
            hone_graph *g = hone_graph_create(k->ctx, &k->err);
            hone_t out[3], one = hone_const_f32(g, 1), rate = hone_const_f32(g, 0.5f);
            hone_adamw(values(g, 3, p0), values(g, 3, g0), values(g, 3, zero), values(g, 3, zero), rate, one, HONE_NONE,
                       HONE_NONE, 0.9, 0.99, 0.5, 0.1, &out[0], &out[1], &out[2]);
            hone_output(out[0], "p");
            hone_program *p = run(c, k, g, mode);
            for (int i = 0; p && i < 3; i++) {
                const double want = (double)p0[i] * (1 - 0.5 * 0.1) - 0.5 * (double)g0[i] / (fabs((double)g0[i]) + 0.5);
                CHECK_MSG(c, fabs((double)result(p, 0)[i] - want) < 1e-5, "%g, should be %g", (double)result(p, 0)[i],
                          want);
            }
            hone_program_destroy(p);
            hone_graph_destroy(g);
        }
        if (check_case(c, "adamw: a step that is skipped keeps every bit, mode %d", mode)) {
            hone_graph *g = hone_graph_create(k->ctx, &k->err);
            hone_t out[3], one = hone_const_f32(g, 1), gradient = values(g, 3, lost);
            hone_adamw(values(g, 3, p0), gradient, values(g, 3, m0), values(g, 3, v0), one, one,
                       hone_clip_scale(hone_sum_squares(gradient), 1), hone_nonfinite(gradient), 0.9, 0.99, 1e-8, 0.1,
                       &out[0], &out[1], &out[2]);
            for (int i = 0; i < 3; i++)
                hone_output(out[i], (const char *[]){"p", "m", "v"}[i]);
            hone_program *p = run(c, k, g, mode);
            if (p)
                CHECK(c,
                      !memcmp(result(p, 0), p0, 12) && !memcmp(result(p, 1), m0, 12) && !memcmp(result(p, 2), v0, 12));
            hone_program_destroy(p);
            hone_graph_destroy(g);
        }
    }
}

static void clipping(struct check *c, struct kit *k)
{
    if (check_case(c, "clip_scale of a norm that is no number")) {
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_output(hone_clip_scale(hone_const_f32(g, NAN), 2), "nan");
        hone_output(hone_clip_scale(hone_const_f32(g, INFINITY), 2), "infinity");
        hone_output(hone_clip_scale(hone_const_f32(g, 0), 2), "zero");
        hone_program *p = run(c, k, g, 0);
        if (p)
            CHECK_MSG(c, isnan(result(p, 0)[0]) && result(p, 1)[0] == 0 && result(p, 2)[0] == 1, "%g %g %g",
                      (double)result(p, 0)[0], (double)result(p, 1)[0], (double)result(p, 2)[0]);
        hone_program_destroy(p);
        hone_graph_destroy(g);
    }
    if (check_case(c, "nonfinite counts NaN and both infinities, wherever they stand")) {
        static float x[LONG];
        for (int i = 0; i < LONG; i++)
            x[i] = i % 11 == 0 ? NAN : i % 13 == 0 ? INFINITY : i % 17 == 0 ? -INFINITY : i % 2 ? FLT_MAX : -FLT_MAX;
        int want = 0;
        for (int i = 0; i < LONG; i++)
            want += !isfinite(x[i]);
        hone_graph *g = hone_graph_create(k->ctx, &k->err);
        hone_output(hone_nonfinite(values(g, LONG, x)), "n");
        hone_output(hone_nonfinite(values(g, 12, x)), "few");
        hone_program *p = run(c, k, g, 0);
        if (p)
            CHECK_MSG(c, result(p, 0)[0] == (float)want && result(p, 1)[0] == 2, "%g of %d, %g of 2",
                      (double)result(p, 0)[0], want, (double)result(p, 1)[0]);
        hone_program_destroy(p);
        hone_graph_destroy(g);
    }
}

void suite_edges(struct check *c)
{
    struct kit k;
    kit_open(&k, NULL);
    elementwise(c, &k);
    casts(c, &k);
    long_sums(c, &k);
    largest(c, &k);
    indices(c, &k);
    adam(c, &k);
    clipping(c, &k);
    if (check_case(c, "nothing leaks"))
        kit_close(&k, c);
    else
        kit_close(&k, &(struct check){.open = 1});
}
