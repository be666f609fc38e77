/* Every case of every operation on the device "record": equal to the reference, and what it wrote holds together. No
 * operation is named here. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/record_kit.h"
#include "graph/backend.h"
#include "op/harness.h"

static bool near(double got, double want, double tol)
{
    return got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= tol;
}

static void compare(struct check *c, const struct harness *h, const struct harness_graph *q, double *const *want,
                    const hone_program *p)
{
    for (int k = 0; k < h->def->n_out; k++) {
        const hone_type t = hone_type_of(q->out[k]);
        const int64_t n = hone_numel(&t.shape);
        const double *ref = want[q->out[k].id];
        double *got = malloc((size_t)n * sizeof *got + 8), largest = 0;
        ir_widen(t.dtype, hone_result(p, k), got, n);
        for (int64_t i = 0; i < n; i++)
            largest = isfinite(ref[i]) ? fmax(largest, fabs(ref[i])) : largest;
        const double tol = (h->k->tol > 0 ? h->k->tol : 1e-5) * largest + 1e-30;
        for (int64_t i = 0; i < n; i++)
            if (!CHECK_MSG(c, near(got[i], ref[i], tol), "result %d at %lld: %.9g, reference %.9g", k, (long long)i,
                           got[i], ref[i]))
                break;
        free(got);
    }
}

/* What the text says is done belongs to the use: an operator, a launch that is not needed, or the host. */
static bool says_something(const char *text)
{
    return strstr(text, "aclnn") || strstr(text, "nothing to launch") || strstr(text, "\nhost ");
}

static void run(struct check *c, struct harness *h)
{
    hone_err err = {0};
    hone_device *d = h->cpu = hone_device_open(h->ctx, "record", &err);
    struct harness_graph q = harness_build(h, &err);
    double **want = harness_eval(h, q.g, &err);
    hone_program *p = hone_compile(d, q.g, NULL, &err);
    void *in[OP_CASE_IN] = {0};
    for (int i = 0; i < h->k->n_in; i++) {
        in[i] = malloc((size_t)h->n[i] * 8 + 8);
        harness_fill(h->k->in[i].dtype, h->in[i], in[i], h->n[i]);
    }
    if (p)
        hone_run(p, &(hone_run_args){.inputs = (const void *const *)in}, &err);
    if (p)
        hone_wait(p, &err);
    if (CHECK_MSG(c, err.code == HONE_OK, "%s: %s", err.where, err.text)) {
        const char *text = hone_device_transcript(d);
        compare(c, h, &q, want, p);
        record_check(c, text);
        CHECK_MSG(c, hone_program_plan(p).operations == 0 || says_something(text), "%s", text);
        CHECK(c, !strstr(text, "lines were dropped"));
    }
    for (int i = 0; i < h->k->n_in; i++)
        free(in[i]);
    ir_reference_free(q.g, want);
    hone_program_destroy(p);
    hone_graph_destroy(q.g);
    hone_device_close(d);
}

void suite_record_ops(struct check *c)
{
    hone_err err = {0};
    hone_ctx *ctx = hone_ctx_create(NULL, &err);
    for (int i = 0; op_table[i]; i++)
        for (int k = 0; k < op_table[i]->n_cases; k++) {
            struct harness h = {.ctx = ctx, .def = op_table[i], .k = &op_table[i]->cases[k]};
            if (!check_case(c, "%s: %s", h.def->name, h.k->name))
                continue;
            harness_draw(&h);
            run(c, &h);
            harness_drop(&h);
        }
    if (check_case(c, "nothing leaks"))
        CHECK(c, hone_ctx_mem(ctx).live_bytes == 0 && hone_ctx_mem(ctx).planned_bytes == 0);
    hone_ctx_destroy(ctx);
}
