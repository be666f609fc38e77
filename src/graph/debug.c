/* Debug runs: every step checked against its double reference, every buffer painted before use, guard bytes behind each
 * checked after each step. The first fault is told with its layer and place. Allocates as it goes. */
#include <math.h>
#include <string.h>

#include "graph/program.h"

enum { GUARD_BYTE = 0xA5, PAINT_BYTE = 0xFF }; /* 0xFFFFFFFF is a NaN */

struct program_debug {
    double *in[OP_MAX_IN]; /* operands of the step, taken before it ran: it may overwrite them */
};

hone_status debug_create(hone_program *p, hone_err *err)
{
    p->check = mem_alloc(&p->device->ctx->mem, sizeof *p->check);
    return p->check ? HONE_OK : err_set(err, HONE_E_NOMEM, p->name, "no memory for debugging");
}

static void drop_operands(hone_program *p)
{
    for (int i = 0; i < OP_MAX_IN; i++) {
        mem_free(&p->device->ctx->mem, p->check->in[i]);
        p->check->in[i] = NULL;
    }
}

void debug_destroy(hone_program *p)
{
    if (!p->check)
        return;
    drop_operands(p);
    mem_free(&p->device->ctx->mem, p->check);
    p->check = NULL;
}

static void paint(hone_program *p, const struct plan_buffer *b)
{
    memset(p->slab + b->at, PAINT_BYTE, b->size - p->plan.guard);
    memset(p->slab + b->at + b->size - p->plan.guard, GUARD_BYTE, p->plan.guard);
}

void debug_begin(hone_program *p)
{
    memset(p->slab, PAINT_BYTE, p->plan.transient);
    p->prepared = false; /* what was prepared has been painted over */
    for (int i = 0; i < p->plan.n_buffers; i++)
        if (p->plan.buffers[i].first < 0)
            paint(p, &p->plan.buffers[i]);
}

static int64_t first_nonfinite(const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return i;
    return -1;
}

/* "[3,17]" for the flat index i. */
static char *index_text(const hone_shape *s, int64_t i, char *buf, size_t n)
{
    hone_shape at = *s;
    for (int k = s->rank - 1; k >= 0; k--) {
        at.dim[k] = i % s->dim[k];
        i /= s->dim[k];
    }
    return hone_shape_text(&at, buf, n);
}

static double *widened(hone_program *p, const hone_type *t, const void *x, hone_err *err)
{
    int64_t n = op_numel(t);
    double *d = mem_array(&p->device->ctx->mem, (size_t)n + 1, sizeof *d);
    if (d)
        ir_widen(t->dtype, x, d, n);
    else
        err_set(err, HONE_E_NOMEM, p->name, "no memory for debugging");
    return d;
}

hone_status debug_before(hone_program *p, const struct plan_step *s, int32_t it, hone_err *err)
{
    const struct plan *q = &p->plan;
    int32_t index = (int32_t)(s - q->steps);
    char at[64];
    drop_operands(p); /* of a step that failed */
    for (int i = 0; i < q->n_buffers; i++)
        if (q->buffers[i].first == index)
            paint(p, &q->buffers[i]);
    if (s->kind != PLAN_RUN)
        return HONE_OK;
    const struct ir_node *n = &p->g->nodes[s->node];
    for (int k = 0; k < n->n_in; k++) {
        const hone_type *t = &p->g->values[n->in[k]].type;
        double *d = p->check->in[k] = widened(p, t, program_at(p, &s->in[k], it), err);
        if (!d)
            return HONE_E_NOMEM;
        int64_t bad = t->dtype == HONE_F32 && !(n->def->flags & OP_ANY_NUMBER) ? first_nonfinite(d, op_numel(t)) : -1;
        if (bad >= 0)
            return err_set(err, HONE_E_NONFINITE, p->g->scopes[n->scope].path, "%s: operand %d is non-finite at %s",
                           n->def->name, k, index_text(&t->shape, bad, at, sizeof at));
    }
    return HONE_OK;
}

static hone_status compare(const hone_program *p, const struct ir_node *n, int k, const double *got, const double *want,
                           hone_err *err)
{
    const hone_type *t = &p->g->values[n->out0 + k].type;
    const char *layer = p->g->scopes[n->scope].path;
    int64_t count = op_numel(t), bad = -1;
    double largest = 0, worst = 0;
    char at[64];
    if (!(n->def->flags & OP_ANY_NUMBER) && (bad = first_nonfinite(got, count)) >= 0)
        return err_set(err, HONE_E_NONFINITE, layer, "%s: non-finite at %s", n->def->name,
                       index_text(&t->shape, bad, at, sizeof at));
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(want[i]));
    for (int64_t i = 0; i < count; i++)
        if (fabs(got[i] - want[i]) > worst) {
            worst = fabs(got[i] - want[i]);
            bad = i;
        }
    if (worst > 1e-3 * largest + 1e-6)
        return err_set(err, HONE_E_DEVICE, layer,
                       "%s: result %d differs from its reference at %s: %.9g, should be %.9g", n->def->name, k,
                       index_text(&t->shape, bad, at, sizeof at), got[bad], want[bad]);
    return HONE_OK;
}

static hone_status check_results(hone_program *p, const struct plan_step *s, int32_t it, hone_err *err)
{
    const struct ir_node *n = &p->g->nodes[s->node];
    struct mem *m = &p->device->ctx->mem;
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT];
    double *want[OP_MAX_OUT] = {NULL};
    struct op_call c = ir_call(p->g, n, tin, tout);
    hone_status st = HONE_OK;
    for (int k = 0; k < n->n_out; k++)
        if (!(want[k] = mem_array(m, (size_t)op_numel(&tout[k]) + 1, sizeof(double))))
            st = err_set(err, HONE_E_NOMEM, p->name, "no memory for debugging");
    if (st == HONE_OK)
        n->def->ref(&c, (const double *const *)p->check->in, want);
    for (int k = 0; k < n->n_out && st == HONE_OK; k++) {
        double *got = widened(p, &tout[k], program_at(p, &s->out[k], it), err);
        st = got ? compare(p, n, k, got, want[k], err) : HONE_E_NOMEM;
        mem_free(m, got);
    }
    for (int k = 0; k < n->n_out; k++)
        mem_free(m, want[k]);
    drop_operands(p);
    return st;
}

static hone_status check_guards(const hone_program *p, int32_t step, hone_err *err)
{
    const struct plan *q = &p->plan;
    const char *layer = "", *op = "copy";
    if (q->steps[step].kind == PLAN_RUN) {
        layer = p->g->scopes[p->g->nodes[q->steps[step].node].scope].path;
        op = p->g->nodes[q->steps[step].node].def->name;
    }
    for (int i = 0; i < q->n_buffers; i++) {
        const struct plan_buffer *b = &q->buffers[i];
        if (b->first > step || b->last < step)
            continue;
        const unsigned char *guard = (const unsigned char *)p->slab + b->at + b->size - q->guard;
        for (size_t k = 0; k < q->guard; k++)
            if (guard[k] != GUARD_BYTE)
                return err_set(err, HONE_E_DEVICE, layer, "%s: wrote behind the end of a buffer of %zu bytes", op,
                               b->size - q->guard);
    }
    return HONE_OK;
}

hone_status debug_after(hone_program *p, const struct plan_step *s, int32_t it, hone_err *err)
{
    hone_status st = p->device->def->sync(p->device->dev, err);
    if (st == HONE_OK && s->kind == PLAN_RUN)
        st = check_results(p, s, it, err);
    if (st == HONE_OK)
        st = check_guards(p, (int32_t)(s - p->plan.steps), err);
    return st;
}
