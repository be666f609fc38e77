/* The first half of planning: what is done once and what at each run, in which order, and which values are only views
 * of others. */
#include <string.h>

#include "graph/order.h"
#include "graph/store.h"

/* What depends on parameters and constants alone goes to the prepare segment, unless the parameters change with each
 * run (ir_role_changes): then it would be stale at once. In the body of a chain, what depends on the step stays there,
 * the rest is done before it. */
static void classify(struct plan *p)
{
    hone_graph *g = p->g;
    for (int i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].def == &op_store) {
            p->role_written[g->nodes[i].attr.i[STORE_ROLE]] = true;
            p->writes_groups = p->writes_groups || g->nodes[i].attr.i[STORE_TENSOR] < 0;
        }
    for (int i = 0; i < g->n_nodes; i++) {
        const struct ir_node *n = &g->nodes[i];
        bool early = n->def == &op_constant || (n->def == &op_slot && !ir_role_changes(g, n->attr.i[SLOT_ROLE]));
        if (n->n_in > 0)
            early = n->def != &op_store && n->def != &op_loop_state && n->def != &op_loop_out;
        int32_t dep = n->def == &op_loop_state || n->def == &op_loop_row ? n->loop : 0;
        for (int k = 0; k < n->n_in; k++) {
            int32_t from = g->values[n->in[k]].node;
            early = early && p->early[from];
            if (n->def != &op_loop_out && p->dep[from])
                dep = p->dep[from];
        }
        p->dep[i] = n->def == &op_loop_out ? 0 : dep;
        p->early[i] = early && !dep && !(p->no_prepare && n->def != &op_constant);
    }
}

static struct plan_step *add_step(struct plan *p, hone_err *err)
{
    if (p->n_steps == p->cap_steps) {
        int32_t cap = p->cap_steps ? 2 * p->cap_steps : 64;
        struct mem *m = &p->g->ctx->mem;
        void *q = mem_grow(m, p->steps, (size_t)p->cap_steps * sizeof *p->steps, (size_t)cap * sizeof *p->steps);
        if (!q) {
            err_set(err, HONE_E_NOMEM, "plan", "no memory for a step of the plan");
            return NULL;
        }
        p->steps = q;
        p->cap_steps = cap;
    }
    return &p->steps[p->n_steps++];
}

static hone_status add_copy(struct plan *p, int32_t from, int32_t to, int32_t store_node, hone_err *err)
{
    hone_type t = p->g->values[from].type;
    struct plan_step *s = add_step(p, err);
    if (!s)
        return err ? err->code : HONE_E_NOMEM;
    *s = (struct plan_step){.kind = PLAN_COPY, .from = from, .to = to, .node = store_node, .n_in = 1, .n_out = 1};
    s->bytes = (size_t)op_numel(&t) * hone_dtype_size(t.dtype);
    return HONE_OK;
}

static hone_status add_run(struct plan *p, int32_t i, hone_err *err)
{
    const struct ir_node *n = &p->g->nodes[i];
    if (p->root[n->out0] != n->out0 || n->def->flags & (OP_SOURCE | OP_EFFECT))
        return HONE_OK; /* views and sources need no work */
    struct plan_step *s = add_step(p, err);
    if (!s)
        return err ? err->code : HONE_E_NOMEM;
    *s = (struct plan_step){.kind = PLAN_RUN, .node = i, .n_in = n->n_in, .n_out = n->n_out, .from = -1, .to = -1};
    return HONE_OK;
}

/* A view shows bytes of another value; place.at and place.row say which. */
static void find_views(struct plan *p)
{
    hone_graph *g = p->g;
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT];
    for (int i = 0; i < g->n_nodes; i++) {
        const struct ir_node *n = &g->nodes[i];
        struct op_call c = ir_call(g, n, tin, tout);
        size_t offset = 0;
        for (int k = 0; k < n->n_out; k++)
            p->root[n->out0 + k] = n->out0 + k;
        bool view = n->def->view && n->def->view(&c, &offset);
        if (!view && n->def != &op_loop_row)
            continue;
        int32_t of = n->in[0], v = n->out0;
        p->root[v] = p->root[of];
        p->place[v] = p->place[of];
        p->place[v].at += offset;
        if (n->def == &op_loop_row)
            p->place[v].row = (size_t)op_numel(&tout[0]) * hone_dtype_size(tout[0].dtype);
    }
}

/* The body of the chain that begins at node `i` (its loop_state): everything of the chain that depends on the step. */
static hone_status add_loop(struct plan *p, int32_t i, hone_err *err)
{
    hone_graph *g = p->g;
    int32_t loop = g->nodes[i].loop, state = g->nodes[i].out0, end = -1;
    for (int32_t k = i; k < g->n_nodes; k++)
        if (g->nodes[k].def == &op_loop_out && g->nodes[k].loop == loop)
            end = k;
    if (end < 0)
        return HONE_OK; /* its result is not used */
    hone_status s = add_copy(p, g->nodes[i].in[0], state, -1, err);
    int32_t begin = p->n_steps;
    struct plan_step *step = s == HONE_OK ? add_step(p, err) : NULL;
    if (!step)
        return err ? err->code : HONE_E_NOMEM;
    *step =
        (struct plan_step){.kind = PLAN_LOOP, .steps = (int32_t)g->nodes[i].attr.i[LOOP_STEPS], .from = -1, .to = -1};
    for (int32_t k = i; k < end && s == HONE_OK; k++)
        if (p->dep[k] == loop)
            s = add_run(p, k, err);
    if (s == HONE_OK)
        s = add_copy(p, g->nodes[end].in[1], state, -1, err);
    step = s == HONE_OK ? add_step(p, err) : NULL;
    if (!step)
        return err ? err->code : HONE_E_NOMEM;
    *step = (struct plan_step){.kind = PLAN_END, .steps = begin, .from = -1, .to = -1};
    return HONE_OK;
}

/* Where the chain of node i begins: its loop_state; n_nodes if it has none. */
static int32_t loop_begin(const hone_graph *g, int32_t loop)
{
    int32_t i = 0;
    while (i < g->n_nodes && !(g->nodes[i].def == &op_loop_state && g->nodes[i].loop == loop))
        i++;
    return i;
}

/* Nodes of a chain that do not depend on its step must come before it: their operands do, as nothing outside depends on
 * the inside. */
static hone_status add_main(struct plan *p, hone_err *err)
{
    hone_graph *g = p->g;
    hone_status s = HONE_OK;
    for (int32_t i = 0; i < g->n_nodes && s == HONE_OK; i++) {
        const struct ir_node *n = &g->nodes[i];
        if (n->def == &op_loop_state) {
            for (int32_t k = i; k < g->n_nodes && s == HONE_OK; k++)
                if (g->nodes[k].loop == n->loop && !p->dep[k] && !p->early[k] && g->nodes[k].def != &op_loop_out)
                    s = add_run(p, k, err);
            if (s == HONE_OK)
                s = add_loop(p, i, err);
        } else if (!p->early[i] && !p->dep[i] && (!n->loop || i < loop_begin(g, n->loop))) {
            s = add_run(p, i, err);
        }
    }
    return s;
}

/* A tensor of a store that goes out unchanged is copied before anything is written. */
static hone_status add_entry_copies(struct plan *p, hone_err *err)
{
    hone_graph *g = p->g;
    hone_status s = HONE_OK;
    for (int i = 0; i < g->n_outputs && s == HONE_OK; i++)
        if (order_kind(p, g->outputs[i].value) != ORDER_BUFFER)
            s = add_copy(p, g->outputs[i].value, g->n_values + i, -1, err);
    for (int i = 0; i < g->n_nodes && s == HONE_OK; i++)
        if (g->nodes[i].def == &op_store && order_kind(p, g->nodes[i].in[0]) == ORDER_STORE)
            s = add_copy(p, g->nodes[i].in[0], g->n_values + g->n_outputs + i, -1, err);
    return s;
}

enum order_kind order_kind(const struct plan *p, int32_t value)
{
    const struct op_def *d = p->g->nodes[p->g->values[p->root[value]].node].def;
    return d == &op_slot ? ORDER_STORE : d == &op_constant ? ORDER_CONSTANT : ORDER_BUFFER;
}

hone_status order_make(struct plan *p, hone_err *err)
{
    hone_graph *g = p->g;
    hone_status s = HONE_OK;
    classify(p);
    find_views(p);
    for (int32_t i = 0; i < g->n_nodes && s == HONE_OK; i++)
        if (p->early[i])
            s = add_run(p, i, err);
    p->n_prepare = p->n_steps;
    if (s == HONE_OK)
        s = add_entry_copies(p, err);
    if (s == HONE_OK)
        s = add_main(p, err);
    for (int32_t i = 0; i < g->n_nodes && s == HONE_OK; i++)
        if (g->nodes[i].def == &op_store)
            s = add_copy(p, g->nodes[i].in[0], -1, i, err);
    return s;
}
