/* The verifier: rules that building keeps and that every pass must keep too. A broken rule is named with its layer. */
#include "graph/ir.h"
#include "graph/store.h"

static hone_status broken(const hone_graph *g, const struct ir_node *n, const char *rule, hone_err *err)
{
    return err_set(err, HONE_E_STATE, g->scopes[n->scope].path, "%s (operation %d): %s", n->def->name,
                   (int)(n - g->nodes), rule);
}

static hone_status node(const hone_graph *g, const struct ir_node *n, hone_err *err)
{
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT], again[OP_MAX_OUT] = {{0}};
    if (n->n_in < n->def->min_in || n->n_in > n->def->max_in || n->n_out != n->def->n_out)
        return broken(g, n, "wrong number of operands or results", err);
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] < 0 || n->in[i] >= n->out0)
            return broken(g, n, "an operand is made after its use", err);
    struct op_call c = ir_call(g, n, tin, tout), bare = c;
    bare.out = NULL;
    hone_err e = {0};
    if (n->def->shape(&bare, again, &e) != HONE_OK)
        return broken(g, n, e.text, err);
    for (int i = 0; i < n->n_out; i++)
        if (again[i].dtype != tout[i].dtype || !hone_shape_equal(&again[i].shape, &tout[i].shape))
            return broken(g, n, "a result has another type than its rule gives", err);
    if (n->def == &op_constant && n->bytes != (size_t)op_numel(&tout[0]) * hone_dtype_size(tout[0].dtype))
        return broken(g, n, "a constant has not as many bytes as its type", err);
    if (n->loop < 0 || n->loop > g->n_loops)
        return broken(g, n, "belongs to no chain of this graph", err);
    return HONE_OK;
}

static struct layout_range range_of(const hone_graph *g, const struct ir_node *n)
{
    hone_layout *l = g->roles[n->attr.i[STORE_ROLE]].layout;
    int t = (int)n->attr.i[STORE_TENSOR];
    return t >= 0 ? layout_tensor(l, t) : layout_group(l, -1 - t);
}

/* Each place of a store is written at most once. */
static hone_status writes(const hone_graph *g, hone_err *err)
{
    for (int i = 0; i < g->n_nodes; i++) {
        const struct ir_node *a = &g->nodes[i];
        if (a->def != &op_store)
            continue;
        struct layout_range x = range_of(g, a);
        for (int k = 0; k < i; k++) {
            const struct ir_node *b = &g->nodes[k];
            if (b->def != &op_store || b->attr.i[STORE_ROLE] != a->attr.i[STORE_ROLE])
                continue;
            struct layout_range y = range_of(g, b);
            if (x.at < y.at + y.length && y.at < x.at + x.length)
                return err_set(err, HONE_E_ARG, g->scopes[a->scope].path,
                               "role \"%s\" is written twice at the same tensor; accumulate in the graph instead",
                               g->roles[a->attr.i[STORE_ROLE]].name);
        }
    }
    return HONE_OK;
}

/* What is made in the body of a repeated chain from its step or state does not exist outside of it; what comes out of
 * the chain, not inside. */
static hone_status chains(const hone_graph *g, hone_err *err)
{
    struct mem *m = &g->ctx->mem;
    int32_t *inside = mem_array(m, (size_t)g->n_nodes + 1, sizeof *inside); /* the chain on whose step a node depends */
    hone_status s = HONE_OK;
    if (!inside)
        return err_set(err, HONE_E_NOMEM, "verify", "no memory to check chains");
    for (int i = 0; i < g->n_nodes && s == HONE_OK; i++) {
        const struct ir_node *n = &g->nodes[i];
        int32_t dep = n->def == &op_loop_state || n->def == &op_loop_row ? n->loop : 0;
        for (int k = 0; k < n->n_in; k++) {
            int32_t from = inside[g->values[n->in[k]].node];
            if (from && n->loop != from)
                s = err_set(err, HONE_E_ARG, g->scopes[n->scope].path,
                            "%s: a value from inside a repeated chain is used outside of it; return it instead",
                            n->def->name);
            dep = from ? from : dep;
            const struct ir_node *maker = &g->nodes[g->values[n->in[k]].node];
            if (maker->def == &op_loop_out && maker->loop == n->loop)
                s = broken(g, n, "reads the result of the chain that it belongs to", err);
        }
        if (dep && n->def->flags & OP_EFFECT)
            s = err_set(err, HONE_E_ARG, g->scopes[n->scope].path,
                        "a store cannot be written inside of a repeated chain; return the value instead");
        inside[i] = n->def == &op_loop_out ? 0 : dep;
    }
    for (int i = 0; i < g->n_outputs && s == HONE_OK; i++)
        if (inside[g->values[g->outputs[i].value].node])
            s = err_set(err, HONE_E_ARG, g->outputs[i].name,
                        "is a value from inside a repeated chain; return it instead");
    mem_free(m, inside);
    return s;
}

hone_status ir_verify(const hone_graph *g, hone_err *err)
{
    if (err_is(err))
        return err->code;
    if (hone_graph_status(g, err) != HONE_OK)
        return g->err.code;
    for (int i = 0; i < g->n_nodes; i++) {
        hone_status s = node(g, &g->nodes[i], err);
        if (s != HONE_OK)
            return s;
    }
    hone_status s = writes(g, err);
    return s == HONE_OK ? chains(g, err) : s;
}
