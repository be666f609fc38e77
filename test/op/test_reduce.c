/* Reductions beyond what the table of operations tests: every choice of axes, long slabs, equal bits on any number
 * of threads. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/kit.h"
#include "hone/random.h"

enum { OPS = 3 };
static const char *const names[OPS] = {"sum", "mean", "amax"};

static hone_t build(int op, hone_t x, unsigned axes)
{
    return op == 0 ? hone_sum(x, axes, false) : op == 1 ? hone_mean(x, axes, false) : hone_amax(x, axes, false);
}

/* The plain way, in double. */
static void plain(int op, const hone_shape *s, unsigned axes, const float *x, double *y, double *size)
{
    int64_t idx[HONE_MAX_RANK] = {0}, n = hone_numel(s), kept = 1;
    for (int i = 0; i < s->rank; i++)
        kept *= axes >> i & 1 ? 1 : s->dim[i];
    for (int64_t i = 0; i < kept; i++) {
        y[i] = op == 2 ? -INFINITY : 0;
        size[i] = 0;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t to = 0;
        for (int d = 0; d < s->rank; d++)
            to = axes >> d & 1 ? to : to * s->dim[d] + idx[d];
        y[to] = op == 2 ? fmax(y[to], (double)x[i]) : y[to] + (double)x[i];
        size[to] += fabs((double)x[i]);
        op_next(s, idx);
    }
    const double count = op == 1 ? (double)n / (double)kept : 1;
    for (int64_t i = 0; i < kept; i++) {
        y[i] /= count;
        size[i] /= count;
    }
}

/* Every choice of axes of one shape in one program; on 1 and on 3 threads. */
static void all_axes(struct check *c, struct kit *k, hone_shape s)
{
    char text[96];
    if (!check_case(c, "every choice of axes of %s", hone_shape_text(&s, text, sizeof text)))
        return;
    const int64_t n = hone_numel(&s);
    const int choices = 1 << s.rank;
    hone_program *p[2];
    float *x = malloc((size_t)n * sizeof *x);
    double *want = malloc((size_t)n * sizeof *want), *size = malloc((size_t)n * sizeof *size);
    const void *in[1] = {x};
    hone_fill_normal(x, (size_t)n, 5, hone_stream("all_axes"), 0, 0);
    for (int t = 0; t < 2; t++) {
        hone_graph *g = hone_graph_create(k[t].ctx, &k[t].err);
        hone_t input = hone_input(g, "x", HONE_F32, s);
        for (int i = 0; i < OPS * choices; i++) {
            char name[32];
            snprintf(name, sizeof name, "%s %d", names[i % OPS], i / OPS);
            hone_output(build(i % OPS, input, (unsigned)(i / OPS)), name);
        }
        p[t] = hone_compile(k[t].cpu, g, NULL, &k[t].err);
        CHECK_MSG(c, kit_run(&k[t], p[t], in, NULL, 0), "%s: %s", k[t].err.where, k[t].err.text);
        hone_graph_destroy(g);
    }
    for (int i = 0; i < OPS * choices && k[0].err.code == HONE_OK && k[1].err.code == HONE_OK; i++) {
        hone_type type = hone_program_output_type(p[0], i);
        const int64_t m = hone_numel(&type.shape);
        const float *a = hone_result(p[0], i), *b = hone_result(p[1], i);
        double worst = 0;
        plain(i % OPS, &s, (unsigned)(i / OPS), x, want, size);
        for (int64_t j = 0; j < m; j++)
            worst = fmax(worst, fabs((double)a[j] - want[j]) / (1e-7 * fabs(want[j]) + 1e-12 * size[j] + DBL_MIN));
        CHECK_MSG(c, worst <= 1, "%s over axes %d: %g times the tolerance", names[i % OPS], i / OPS, worst);
        CHECK_MSG(c, !memcmp(a, b, (size_t)m * sizeof *a), "%s over axes %d: other bits on 3 threads", names[i % OPS],
                  i / OPS);
    }
    /* Sums over the first axis that all but cancel: what is left is the rounding of the order of additions. */
    for (int64_t i = 0, row = n / s.dim[0]; i < s.dim[0] / 2 * row; i++) {
        x[i] *= (float)(1 << i % 20);
        x[(s.dim[0] - 1 - i / row) * row + i % row] = -x[i];
    }
    for (int t = 0; t < 2; t++)
        CHECK_MSG(c, kit_run(&k[t], p[t], in, NULL, 0), "%s: %s", k[t].err.where, k[t].err.text);
    for (int i = 0; i < OPS * choices && k[0].err.code == HONE_OK && k[1].err.code == HONE_OK; i++) {
        hone_type type = hone_program_output_type(p[0], i);
        CHECK_MSG(c, !memcmp(hone_result(p[0], i), hone_result(p[1], i), (size_t)hone_numel(&type.shape) * sizeof *x),
                  "%s over axes %d: other bits on 3 threads", names[i % OPS], i / OPS);
    }
    for (int t = 0; t < 2; t++)
        hone_program_destroy(p[t]);
    free(x);
    free(want);
    free(size);
}

/* sums of a slab: against double, and on 1 and 3 threads */
static void slab(struct check *c, struct kit *k, int64_t n)
{
    if (!check_case(c, "sum_squares, nonfinite, scatter_add of %lld", (long long)n))
        return;
    enum { ROWS = 37 };
    float *x = malloc((size_t)n * sizeof *x), got[2][2], rows[2][ROWS];
    int32_t *to = malloc((size_t)n * sizeof *to);
    double want = 0, row[ROWS] = {0};
    hone_fill_normal(x, (size_t)n, 6, hone_stream("slab"), 0, 0);
    hone_fill_below(to, (size_t)n, ROWS, 6, hone_stream("rows"), 0, 0);
    for (int64_t i = 0; i < n; i++) {
        want += (double)x[i] * (double)x[i];
        row[to[i]] += (double)x[i];
    }
    for (int t = 0; t < 2; t++) {
        hone_graph *g = hone_graph_create(k[t].ctx, &k[t].err);
        hone_t input = hone_input(g, "x", HONE_F32, HONE_SHAPE(n)), index = hone_input(g, "i", HONE_I32, HONE_SHAPE(n));
        hone_output(hone_sum_squares(input), "squares");
        hone_output(hone_nonfinite(input), "nonfinite");
        hone_output(hone_scatter_add(hone_full(g, HONE_SHAPE(ROWS), 0), index, input), "rows");
        hone_program *p = hone_compile(k[t].cpu, g, NULL, &k[t].err);
        if (CHECK_MSG(c, kit_run(&k[t], p, (const void *[]){x, to}, NULL, 0), "%s: %s", k[t].err.where,
                      k[t].err.text)) {
            got[t][0] = *(const float *)hone_result(p, 0);
            CHECK(c, *(const float *)hone_result(p, 1) == 0);
            memcpy(rows[t], hone_result(p, 2), sizeof rows[t]);
            CHECK_MSG(c, fabs((double)got[t][0] - want) <= 1e-7 * want, "%.9g, should be %.9g", (double)got[t][0],
                      want);
            for (int r = 0; r < ROWS; r++)
                CHECK(c, fabs((double)rows[t][r] - row[r]) <= 1e-7 * fabs(row[r]) + 1e-10);
            x[n / 3] = NAN;
            x[n - 1] = -INFINITY;
            x[0] = FLT_MAX;
            CHECK(c, kit_run(&k[t], p, (const void *[]){x, to}, NULL, 0));
            got[t][1] = *(const float *)hone_result(p, 1);
            CHECK_MSG(c, got[t][1] == 2, "%g of two are found", (double)got[t][1]);
            hone_fill_normal(x, (size_t)n, 6, hone_stream("slab"), 0, 0);
        }
        hone_program_destroy(p);
        hone_graph_destroy(g);
    }
    CHECK(c, got[0][0] == got[1][0] && !memcmp(rows[0], rows[1], sizeof rows[0]));
    free(x);
    free(to);
}

void suite_reduce(struct check *c)
{
    struct kit k[2];
    kit_open(&k[0], &(hone_ctx_options){.threads = 1});
    kit_open(&k[1], &(hone_ctx_options){.threads = 3});
    all_axes(c, k, HONE_SHAPE(3, 5, 2, 7));
    all_axes(c, k, HONE_SHAPE(7, 33, 41, 9));
    all_axes(c, k, HONE_SHAPE(2, 1, 300, 130));
    all_axes(c, k, HONE_SHAPE(40000, 3));
    all_axes(c, k, HONE_SHAPE(3, 40001));
    all_axes(c, k, HONE_SHAPE(64, 16, 65));
    all_axes(c, k, HONE_SHAPE(2, 3, 2, 3, 2, 3, 2, 3));
    slab(c, k, 3);
    slab(c, k, 97);
    slab(c, k, 50021);
    kit_close(&k[0], c);
    kit_close(&k[1], c);
}
