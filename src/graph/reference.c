/* Evaluates a graph in double, operation by operation, with the plain references: what everything is measured by. */
#include <string.h>

#include "graph/ir.h"
#include "tensor/bf16.h"

void ir_widen(hone_dtype t, const void *src, double *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        switch (t) {
        case HONE_F32:
            dst[i] = ((const float *)src)[i];
            break;
        case HONE_BF16:
            dst[i] = bf16_float(((const uint16_t *)src)[i]);
            break;
        case HONE_I32:
            dst[i] = ((const int32_t *)src)[i];
            break;
        case HONE_U8:
        case HONE_BOOL:
            dst[i] = ((const uint8_t *)src)[i];
            break;
        default:
            dst[i] = 0;
        }
}

static hone_status eval(const hone_graph *g, const struct ir_node *n, double **values,
                        const double *(*given)(void *user, const struct ir_node *n), void *user, hone_err *err)
{
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT];
    const double *in[OP_MAX_IN];
    struct op_call c = ir_call(g, n, tin, tout);
    const char *layer = g->scopes[n->scope].path;
    for (int i = 0; i < n->n_out; i++) {
        values[n->out0 + i] = mem_array(&g->ctx->mem, (size_t)op_numel(&tout[i]) + 1, sizeof(double));
        if (!values[n->out0 + i])
            return err_set(err, HONE_E_NOMEM, layer, "no memory for a reference value");
    }
    if (n->def->flags & OP_EFFECT)
        return HONE_OK;
    if (n->def->flags & OP_LOOP)
        return err_set(err, HONE_E_UNSUPPORTED, layer, "the reference evaluates unrolled chains only");
    if (n->def == &op_constant) {
        ir_widen(tout[0].dtype, n->data, values[n->out0], op_numel(&tout[0]));
        return HONE_OK;
    }
    if (n->def->flags & OP_SOURCE) {
        const double *v = given ? given(user, n) : NULL;
        if (!v)
            return err_set(err, HONE_E_ARG, layer, "a source (%s) has no value", n->def->name);
        memcpy(values[n->out0], v, (size_t)op_numel(&tout[0]) * sizeof(double));
        return HONE_OK;
    }
    for (int i = 0; i < n->n_in; i++)
        in[i] = values[n->in[i]];
    c.def->ref(&c, in, values + n->out0);
    return HONE_OK;
}

double **ir_reference(const hone_graph *g, const double *(*given)(void *user, const struct ir_node *n), void *user,
                      hone_err *err)
{
    if (hone_graph_status(g, err) != HONE_OK)
        return NULL;
    double **values = mem_array(&g->ctx->mem, (size_t)g->n_values + 1, sizeof *values);
    if (!values) {
        err_set(err, HONE_E_NOMEM, "graph", "no memory for reference values");
        return NULL;
    }
    for (int i = 0; i < g->n_nodes; i++)
        if (eval(g, &g->nodes[i], values, given, user, err) != HONE_OK) {
            ir_reference_free(g, values);
            return NULL;
        }
    return values;
}

void ir_reference_free(const hone_graph *g, double **values)
{
    if (!values)
        return;
    for (int i = 0; i < g->n_values; i++)
        mem_free(&g->ctx->mem, values[i]);
    mem_free(&g->ctx->mem, values);
}
