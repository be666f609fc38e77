/* Tests made from the table of operations: no operation is named here. For every case of every operation: each kernel
 * equals the reference, the expansion equals the operation, first and second gradients equal finite differences in
 * double, and what must be refused is refused with a message that names the layer and the shapes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "graph/backend.h"
#include "op/harness.h"

enum { PROBES = 12 }; /* elements of an operand that finite differences look at */

/* Runs the compiled use and compares every result with the reference. */
static void kernel_equals_reference(struct check *c, struct harness *h, const hone_compile_options *o)
{
    hone_err err = {0};
    struct harness_graph q = harness_build(h, &err);
    double **want = harness_eval(h, q.g, &err);
    hone_program *p = hone_compile(h->cpu, q.g, o, &err);
    void *in[OP_CASE_IN] = {0};
    for (int i = 0; i < h->k->n_in; i++) {
        in[i] = malloc((size_t)h->n[i] * 8 + 8);
        harness_fill(h->k->in[i].dtype, h->in[i], in[i], h->n[i]);
    }
    if (p)
        hone_run(p, &(hone_run_args){.inputs = (const void *const *)in}, &err);
    if (p)
        hone_wait(p, &err);
    CHECK_MSG(c, err.code == HONE_OK, "%s: %s", err.where, err.text);
    double tol = h->k->tol > 0 ? h->k->tol : 1e-5;
    for (int k = 0; err.code == HONE_OK && k < h->def->n_out; k++) {
        hone_type t = hone_type_of(q.out[k]);
        int64_t n = hone_numel(&t.shape), worst_at = 0;
        double *got = malloc((size_t)n * sizeof(double) + 8), largest = 0, worst = 0;
        const double *ref = want[q.out[k].id];
        ir_widen(t.dtype, hone_result(p, k), got, n);
        for (int64_t i = 0; i < n; i++) {
            bool same = got[i] == ref[i] || (isnan(got[i]) && isnan(ref[i]));
            double d = same ? 0 : fabs(got[i] - ref[i]);
            largest = isfinite(ref[i]) ? fmax(largest, fabs(ref[i])) : largest;
            if (!(d <= worst)) {
                worst = d;
                worst_at = i;
            }
        }
        CHECK_MSG(c, worst <= tol * largest + 1e-30, "result %d at %lld: %.9g, reference %.9g", k, (long long)worst_at,
                  n ? got[worst_at] : 0.0, n ? ref[worst_at] : 0.0);
        free(got);
    }
    for (int i = 0; i < h->k->n_in; i++)
        free(in[i]);
    ir_reference_free(q.g, want);
    hone_program_destroy(p);
    hone_graph_destroy(q.g);
}

/* Reference of the expansion equals reference of the operation. */
static void expansion_equals(struct check *c, struct harness *h)
{
    hone_err err = {0};
    struct harness_graph q = harness_build(h, &err);
    hone_type tin[OP_CASE_IN], tout[OP_MAX_OUT];
    hone_t out[OP_MAX_OUT];
    struct op_call call = ir_call(q.g, &q.g->nodes[q.g->n_nodes - 1], tin, tout);
    for (int i = 0; i < OP_MAX_OUT; i++)
        out[i] = HONE_NONE;
    h->def->expand(&(struct op_use){&call, q.g, q.in, NULL}, out);
    double **v = harness_eval(h, q.g, &err);
    CHECK_MSG(c, v != NULL, "%s: %s", err.where, err.text);
    for (int k = 0; v && k < h->def->n_out; k++) {
        hone_type a = hone_type_of(q.out[k]), b = hone_type_of(out[k]);
        if (!CHECK(c, a.dtype == b.dtype && hone_shape_equal(&a.shape, &b.shape)))
            break;
        const double *x = v[q.out[k].id], *y = v[out[k].id];
        double largest = 0, worst = 0;
        for (int64_t i = 0, n = hone_numel(&a.shape); i < n; i++) {
            largest = fmax(largest, fabs(x[i]));
            worst = fmax(worst, fabs(x[i] - y[i]));
        }
        CHECK_MSG(c, worst <= 1e-9 * largest + 1e-12, "result %d differs by %g of %g", k, worst, largest);
    }
    ir_reference_free(q.g, v);
    hone_graph_destroy(q.g);
}

/* Over a new leading dimension: every choice of operands that have it (all, or one of them) equals single uses. */
static void batch_equals_single(struct check *c, struct harness *h)
{
    enum { N = 3 };
    for (int one = -1; one < h->k->n_in; one++) {
        hone_err err = {0};
        struct harness_graph q = harness_build(h, &err);
        hone_type tin[OP_CASE_IN], tout[OP_MAX_OUT];
        hone_t in[OP_CASE_IN], out[OP_MAX_OUT];
        bool many[OP_CASE_IN];
        struct op_call call = ir_call(q.g, &q.g->nodes[q.g->n_nodes - 1], tin, tout);
        for (int i = 0; i < h->k->n_in; i++) {
            hone_shape s = tin[i].shape, lead = {s.rank + 1, {1}};
            if (s.rank == HONE_MAX_RANK) { /* no dimension more: declined */
                hone_graph_destroy(q.g);
                return;
            }
            memcpy(lead.dim + 1, s.dim, sizeof *s.dim * (size_t)s.rank);
            many[i] = one < 0 || one == i;
            hone_t x = hone_reshape(q.in[i], lead);
            lead.dim[0] = N;
            in[i] = many[i] ? hone_broadcast(x, lead) : q.in[i];
            if (many[i] && tin[i].dtype == HONE_F32) /* each of the N differs */
                in[i] = hone_mul(in[i], hone_const(q.g, HONE_F32, (hone_shape){s.rank + 1, {N, 1, 1, 1, 1, 1, 1, 1}},
                                                   (const float[]){1, 0.5f, 0.75f}));
        }
        if (!op_batch(&(struct op_use){&call, q.g, in, NULL}, many, N, out)) {
            CHECK(c, !h->def->batch);
            hone_graph_destroy(q.g);
            return;
        }
        hone_t single[N][OP_MAX_OUT];
        for (int b = 0; b < N; b++) {
            hone_t x[OP_CASE_IN];
            for (int i = 0; i < h->k->n_in; i++)
                x[i] = many[i] ? hone_reshape(hone_slice(in[i], 0, b, 1), tin[i].shape) : q.in[i];
            op_emit(h->def, h->k->n_in, x, &h->k->attr, single[b]);
        }
        double **v = harness_eval(h, q.g, &err);
        CHECK_MSG(c, v != NULL, "operand %d: %s: %s", one, err.where, err.text);
        for (int k = 0; v && k < h->def->n_out; k++) {
            int64_t n = hone_numel(&tout[k].shape);
            hone_shape got = hone_type_of(out[k]).shape;
            CHECK(c, hone_numel(&got) == n * N && got.rank == tout[k].shape.rank + 1 && got.dim[0] == N);
            for (int64_t i = 0; i < n * N; i++) {
                double a = v[out[k].id][i], b = v[single[i / n][k].id][i % n];
                CHECK_MSG(c, a == b || fabs(a - b) <= 1e-9 * fmax(fabs(a), 1), "operand %d, result %d: %g, %g", one, k,
                          a, b);
            }
        }
        ir_reference_free(q.g, v);
        hone_graph_destroy(q.g);
    }
}

/* f(operands) where f is value `loss` of graph g. */
static double value_of(struct harness *h, const hone_graph *g, hone_t loss)
{
    hone_err err = {0};
    double **v = harness_eval(h, g, &err), y = v ? v[loss.id][0] : NAN;
    ir_reference_free(g, v);
    return y;
}

/* The gradients dx of `loss`, both of graph g, against central differences. */
static void differences(struct check *c, struct harness *h, const hone_graph *g, hone_t loss, const hone_t *dx,
                        const char *order)
{
    hone_err err = {0};
    double **v = harness_eval(h, g, &err);
    if (!CHECK_MSG(c, v != NULL, "%s gradient: %s: %s", order, err.where, err.text))
        return;
    for (int i = 0; i < h->k->n_in; i++) {
        if (h->k->in[i].dtype != HONE_F32)
            continue;
        const int64_t n = h->n[i], step = n > PROBES ? n / PROBES : 1;
        double largest = 0;
        for (int64_t j = 0; j < n; j++)
            largest = fmax(largest, fabs(v[dx[i].id][j]));
        for (int64_t j = 0; j < n; j += step) {
            const double x = h->in[i][j], e = 1e-5 * fmax(1, fabs(x));
            h->in[i][j] = x + e;
            const double up = value_of(h, g, loss);
            h->in[i][j] = x - e;
            const double down = value_of(h, g, loss);
            h->in[i][j] = x;
            const double want = (up - down) / (2 * e), got = v[dx[i].id][j];
            /* central differences: rounding of f over e, and e^2 of curvature */
            const double tol = 1e-5 * fmax(largest, fabs(want)) + 1e-10 * fabs(up) / e * 1e-1 + 1e-8;
            CHECK_MSG(c, fabs(want - got) <= tol, "%s gradient of operand %d at %lld: %.10g, differences %.10g", order,
                      i, (long long)j, got, want);
        }
    }
    ir_reference_free(g, v);
}

static bool all_none(const hone_t *x, int n)
{
    for (int i = 0; i < n; i++)
        if (x[i].g)
            return false;
    return true;
}

static void gradients_equal_differences(struct check *c, struct harness *h)
{
    hone_err err = {0};
    struct harness_graph q = harness_build(h, &err);
    hone_t x[OP_CASE_IN], dx[OP_CASE_IN], ddx[OP_CASE_IN], of[OP_CASE_IN];
    int n = 0, index[OP_CASE_IN];
    for (int i = 0; i < h->k->n_in; i++)
        if (h->k->in[i].dtype == HONE_F32) {
            index[n] = i;
            x[n++] = q.in[i];
        }
    hone_t loss = harness_project(q.g, q.out, h->def->n_out, "loss");
    if (n == 0 || !loss.g)
        goto done;
    hone_gradients(loss, x, n, of);
    for (int i = 0; i < n; i++)
        dx[index[i]] = of[i];
    CHECK_MSG(c, hone_graph_status(q.g, &err) == HONE_OK, "%s: %s", err.where, err.text);
    if (err.code == HONE_OK)
        differences(c, h, q.g, loss, dx, "first");
    hone_t second = harness_project(q.g, of, n, "second");
    if (err.code != HONE_OK || !second.g || all_none(of, n))
        goto done;
    hone_gradients(second, x, n, of);
    for (int i = 0; i < n; i++)
        ddx[index[i]] = of[i];
    CHECK_MSG(c, hone_graph_status(q.g, &err) == HONE_OK, "%s: %s", err.where, err.text);
    if (err.code == HONE_OK)
        differences(c, h, q.g, second, ddx, "second");
done:
    hone_graph_destroy(q.g);
}

static void must_refuse(struct check *c, struct harness *h)
{
    hone_err err = {0};
    char shape[96];
    struct harness_graph q = harness_build(h, &err);
    CHECK(c, h->def->n_out == 0 || q.out[0].id < 0);
    hone_graph_status(q.g, &err);
    CHECK_MSG(c, err.code == HONE_E_SHAPE || err.code == HONE_E_ARG, "%s: %s", hone_status_name(err.code), err.text);
    CHECK_MSG(c, strstr(err.where, "test/") != NULL && strstr(err.where, h->def->name) != NULL, "where: %s", err.where);
    for (int i = 0; i < h->k->n_in; i++)
        CHECK_MSG(c, strstr(err.text, hone_shape_text(&h->k->in[i].shape, shape, sizeof shape)) != NULL,
                  "%s is not in: %s", shape, err.text);
    hone_device *d = h->cpu;
    hone_err again = {0};
    CHECK(c, hone_compile(d, q.g, NULL, &again) == NULL && again.code == err.code);
    hone_graph_destroy(q.g);
}

static void row_is_complete(struct check *c, const struct op_def *d)
{
    bool executor = d->flags & (OP_SOURCE | OP_EFFECT);
    CHECK(c, d->name && d->math && d->shape);
    CHECK_MSG(c, executor || d->ref, "an operation needs a reference");
    CHECK_MSG(c, !d->grad != !d->no_grad, "a gradient, or why there is none");
    CHECK_MSG(c, !d->expand != !d->no_expand, "an expansion, or why there is none");
    CHECK_MSG(c, !d->onnx != !d->no_onnx, "an ONNX mapping, or why there is none");
    CHECK_MSG(c, executor || d->n_cases > 0, "an operation needs cases");
    CHECK(c, !(d->flags & OP_VIEW) || d->view);
    CHECK(c, op_find(d->name) == d);
    CHECK(c, d->max_in <= OP_MAX_IN && d->n_out <= OP_MAX_OUT && d->min_in <= d->max_in);
    if (!executor && !d->expand && !(d->flags & OP_VIEW)) { /* then the CPU must have it */
        for (int i = 0; i < d->n_cases; i++) {
            struct op_call call = {d, d->cases[i].n_in, d->n_out, d->cases[i].in, NULL, d->cases[i].attr, NULL};
            hone_type out[OP_MAX_OUT] = {{0}};
            hone_err err = {0};
            CHECK_MSG(c, d->shape(&call, out, &err) == HONE_OK, "case %s: %s", d->cases[i].name, err.text);
            call.out = out;
            CHECK_MSG(c, bk_table[0]->find(&call) != NULL, "case %s: neither kernel nor expansion", d->cases[i].name);
        }
    }
}

static void operation(struct check *c, hone_ctx *ctx, hone_device *cpu, const struct op_def *d)
{
    if (check_case(c, "%s: row", d->name))
        row_is_complete(c, d);
    for (int i = 0; i < d->n_cases; i++) {
        struct harness h = {.ctx = ctx, .cpu = cpu, .def = d, .k = &d->cases[i]};
        harness_draw(&h);
        if (check_case(c, "%s: %s: kernel", d->name, h.k->name))
            kernel_equals_reference(c, &h, NULL);
        if (check_case(c, "%s: %s: debug", d->name, h.k->name))
            kernel_equals_reference(c, &h, &(hone_compile_options){.debug = true});
        if (d->expand && check_case(c, "%s: %s: expansion", d->name, h.k->name)) {
            expansion_equals(c, &h);
            kernel_equals_reference(c, &h, &(hone_compile_options){.expand = true});
        }
        if ((d->batch || d->shape == op_shape_unary || d->shape == op_shape_binary) &&
            check_case(c, "%s: %s: batch", d->name, h.k->name))
            batch_equals_single(c, &h);
        if ((d->grad || d->expand) && check_case(c, "%s: %s: gradient", d->name, h.k->name))
            gradients_equal_differences(c, &h);
        harness_drop(&h);
    }
    for (int i = 0; i < d->n_bad; i++) {
        struct harness h = {.ctx = ctx, .cpu = cpu, .def = d, .k = &d->bad[i]};
        if (check_case(c, "%s: %s: refused", d->name, h.k->name))
            must_refuse(c, &h);
    }
}

void suite_ops(struct check *c)
{
    hone_err err = {0};
    hone_ctx *ctx = hone_ctx_create(NULL, &err);
    hone_device *cpu = hone_device_open(ctx, "cpu", &err);
    for (int i = 0; op_table[i]; i++)
        operation(c, ctx, cpu, op_table[i]);
    hone_device_close(cpu);
    if (check_case(c, "nothing leaks"))
        CHECK(c, hone_ctx_mem(ctx).live_bytes == 0 && hone_ctx_mem(ctx).planned_bytes == 0);
    hone_ctx_destroy(ctx);
}
