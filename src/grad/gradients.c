/* Reverse-mode differentiation. Gradients are operations again, so they can be differentiated too. An operation
 * without a gradient of its own is differentiated through its expansion. */
#include <string.h>

#include "graph/ir.h"

/* The forward operations in the order of the walk; an expanded one stands behind its expansion and only hands its
 * gradients over. */
struct visit {
    int32_t node;
    int32_t *alias; /* NULL, or the values that its expansion made for its results */
};

struct tape {
    hone_graph *g;
    struct visit *list;
    int n, cap;
    bool *need;  /* of each value: does it depend on what we differentiate by? */
    hone_t *adj; /* of each value: its gradient so far */
    int cap_need;
};

static bool fail(struct tape *t)
{
    err_set(&t->g->err, HONE_E_NOMEM, "gradients", "no memory for the backward pass");
    return false;
}

/* Expansions add values; need[] grows with them. */
static bool grow_need(struct tape *t)
{
    if (t->g->n_values <= t->cap_need)
        return true;
    int cap = 2 * t->g->n_values;
    bool *p = mem_grow(&t->g->ctx->mem, t->need, (size_t)t->cap_need, (size_t)cap);
    if (!p)
        return fail(t);
    t->need = p;
    t->cap_need = cap;
    return true;
}

static bool push(struct tape *t, int32_t node, int32_t *alias)
{
    if (!ir_room(t->g, &t->list, t->n, &t->cap, sizeof *t->list))
        return false;
    t->list[t->n++] = (struct visit){node, alias};
    return true;
}

static bool visit(struct tape *t, int32_t node);

static bool visit_expansion(struct tape *t, int32_t node)
{
    hone_graph *g = t->g;
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT];
    hone_t in[OP_MAX_IN], out[OP_MAX_OUT];
    const struct ir_node n = g->nodes[node]; /* by value: the array moves as it grows */
    struct op_call c = ir_call(g, &n, tin, tout);
    for (int i = 0; i < n.n_in; i++)
        in[i] = (hone_t){g, n.in[i]};
    for (int i = 0; i < n.n_out; i++)
        out[i] = HONE_NONE;
    int32_t first = g->n_nodes;
    g->scope = n.scope;
    n.def->expand(&(struct op_use){&c, g, in, NULL}, out);
    if (g->err.code != HONE_OK || !grow_need(t))
        return false;
    for (int32_t k = first; k < g->n_nodes; k++)
        if (!visit(t, k))
            return false;
    int32_t *alias = arena_alloc(&g->arena, (size_t)n.n_out * sizeof *alias);
    if (!alias)
        return fail(t);
    for (int i = 0; i < n.n_out; i++)
        alias[i] = out[i].g ? out[i].id : -1;
    return push(t, node, alias);
}

/* Marks the results of `node` if an operand is marked, and lists the node. */
static bool visit(struct tape *t, int32_t node)
{
    const struct ir_node *n = &t->g->nodes[node];
    bool need = false;
    for (int i = 0; i < n->n_in; i++)
        need = need || t->need[n->in[i]];
    if (!need || n->def->flags & OP_EFFECT)
        return true;
    if (n->def->flags & OP_LOOP) {
        err_set(&t->g->err, HONE_E_UNSUPPORTED, t->g->scopes[n->scope].path,
                "a gradient cannot go through a repeated chain; unroll it");
        return false;
    }
    if (!n->def->grad && !n->def->expand)
        return true;
    for (int i = 0; i < n->n_out; i++)
        t->need[n->out0 + i] = true;
    return n->def->grad ? push(t, node, NULL) : visit_expansion(t, node);
}

static void add_to(struct tape *t, int32_t value, hone_t d)
{
    hone_type want = t->g->values[value].type, got = hone_type_of(d);
    if (!d.g || d.id < 0)
        return;
    if (!hone_shape_equal(&want.shape, &got.shape)) {
        char a[64], b[64];
        err_set(&t->g->err, HONE_E_STATE, hone_scope(t->g), "a gradient has shape %s; its value has %s",
                hone_shape_text(&got.shape, a, sizeof a), hone_shape_text(&want.shape, b, sizeof b));
        return;
    }
    t->adj[value] = t->adj[value].g ? hone_add(t->adj[value], d) : d;
}

static void backward(struct tape *t, const struct visit *v)
{
    hone_graph *g = t->g;
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT];
    hone_t in[OP_MAX_IN], out[OP_MAX_OUT], dout[OP_MAX_OUT], din[OP_MAX_IN];
    const struct ir_node n = g->nodes[v->node];
    bool any = false;
    for (int i = 0; i < n.n_out; i++) {
        out[i] = (hone_t){g, n.out0 + i};
        dout[i] = t->adj[n.out0 + i];
        any = any || dout[i].g;
    }
    if (!any)
        return;
    if (v->alias) {
        for (int i = 0; i < n.n_out; i++)
            if (dout[i].g && v->alias[i] >= 0)
                add_to(t, v->alias[i], dout[i]);
        return;
    }
    for (int i = 0; i < n.n_in; i++) {
        in[i] = (hone_t){g, n.in[i]};
        din[i] = HONE_NONE;
    }
    struct op_call c = ir_call(g, &n, tin, tout);
    g->scope = n.scope;
    n.def->grad(&(struct op_use){&c, g, in, out}, dout, din);
    for (int i = 0; i < n.n_in; i++)
        if (din[i].g && t->need[n.in[i]])
            add_to(t, n.in[i], din[i]);
}

/* Only what the loss depends on counts: a sampler built on the same parameters beside it does not. */
static bool visit_ancestors(struct tape *t, int32_t last)
{
    hone_graph *g = t->g;
    bool *of = mem_array(&g->ctx->mem, (size_t)last + 1, sizeof *of), ok = true;
    if (!of)
        return fail(t);
    of[last] = true;
    for (int32_t i = last; i >= 0; i--)
        for (int k = 0; of[i] && k < g->nodes[i].n_in; k++)
            of[g->values[g->nodes[i].in[k]].node] = true;
    for (int32_t i = 0; i <= last && ok; i++)
        if (of[i])
            ok = visit(t, i);
    mem_free(&g->ctx->mem, of);
    return ok;
}

static bool record(struct tape *t, hone_t loss, const hone_t *x, int n)
{
    hone_graph *g = t->g;
    int32_t last = g->values[loss.id].node;
    if (!grow_need(t))
        return false;
    for (int i = 0; i < n; i++) {
        if (x[i].g != g || x[i].id < 0) {
            err_set(&g->err, HONE_E_ARG, hone_scope(g), "gradients: value %d to differentiate by is not of this graph",
                    i);
            return false;
        }
        t->need[x[i].id] = true;
    }
    if (!visit_ancestors(t, last))
        return false;
    t->adj = mem_array(&g->ctx->mem, (size_t)g->n_values + 1, sizeof *t->adj);
    return t->adj ? true : fail(t);
}

void hone_gradients(hone_t loss, const hone_t *x, int n, hone_t *dx)
{
    hone_graph *g = loss.g;
    for (int i = 0; i < n; i++)
        dx[i] = (hone_t){g, -1};
    if (!g || loss.id < 0)
        return;
    hone_type t0 = hone_type_of(loss);
    int32_t scope = g->scope;
    if (t0.dtype != HONE_F32 || hone_numel(&t0.shape) != 1) {
        char got[64];
        err_set(&g->err, HONE_E_SHAPE, hone_scope(g), "gradients: the loss must be one f32; got %s",
                hone_shape_text(&t0.shape, got, sizeof got));
        return;
    }
    struct tape t = {.g = g};
    if (record(&t, loss, x, n)) {
        t.adj[loss.id] = hone_full(g, t0.shape, 1);
        for (int i = t.n - 1; i >= 0 && g->err.code == HONE_OK; i--)
            backward(&t, &t.list[i]);
        g->scope = scope;
        for (int i = 0; i < n && g->err.code == HONE_OK; i++)
            dx[i] = t.adj[x[i].id].g ? t.adj[x[i].id] : hone_full(g, hone_type_of(x[i]).shape, 0);
    }
    g->scope = scope;
    mem_free(&g->ctx->mem, t.list);
    mem_free(&g->ctx->mem, t.need);
    mem_free(&g->ctx->mem, t.adj);
}
