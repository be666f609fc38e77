/* Lowering: a copy of the live part of a graph in which every use that a device has no kernel for is replaced by its
 * expansion. Also the place where dead operations go. */
#include <string.h>

#include "graph/ir.h"

enum { ROUNDS = 8 }; /* expansions of expansions; deeper would be a circle */

struct copy {
    const hone_graph *from;
    hone_graph *to;
    int32_t *map; /* value of `from` -> value of `to`, -1: not yet */
    bool *live;   /* nodes of `from` */
    bool (*keep)(void *user, const struct op_call *c);
    void *user;
    int expanded;
};

static void mark_live(struct copy *k)
{
    const hone_graph *g = k->from;
    for (int i = 0; i < g->n_outputs; i++)
        k->live[g->values[g->outputs[i].value].node] = true;
    for (int i = g->n_nodes - 1; i >= 0; i--) {
        const struct ir_node *n = &g->nodes[i];
        /* inputs stay, so that a run's arguments do not depend on what is used of them */
        if (n->def->flags & OP_EFFECT || n->def == &op_input)
            k->live[i] = true;
        for (int j = 0; k->live[i] && j < n->n_in; j++)
            k->live[g->values[n->in[j]].node] = true;
    }
}

/* The same path in the other graph. Scopes are copied whole beforehand, so indices agree. */
static bool copy_names(struct copy *k)
{
    const hone_graph *a = k->from;
    hone_graph *b = k->to;
    for (int i = 1; i < a->n_scopes; i++) {
        char *path = arena_text(&b->arena, a->scopes[i].path);
        if (!path || !ir_room(b, &b->scopes, b->n_scopes, &b->cap_scopes, sizeof *b->scopes))
            return false;
        b->scopes[b->n_scopes++] = (struct ir_scope){path, a->scopes[i].outer};
    }
    for (int i = 0; i < a->n_roles; i++)
        if (ir_role(b, a->roles[i].name, a->roles[i].layout) != i)
            return false;
    b->n_loops = a->n_loops;
    return true;
}

static void copy_node(struct copy *k, const struct ir_node *n)
{
    hone_t in[OP_MAX_IN], out[OP_MAX_OUT];
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT];
    struct op_call c = ir_call(k->from, n, tin, tout);
    for (int i = 0; i < n->n_in; i++)
        in[i] = (hone_t){k->to, k->map[n->in[i]]};
    k->to->scope = n->scope;
    k->to->loop = n->loop;
    bool source = n->def->flags & (OP_SOURCE | OP_EFFECT | OP_VIEW);
    if (!source && n->def->expand && !k->keep(k->user, &c)) {
        struct op_use u = {&c, k->to, in, NULL};
        for (int i = 0; i < n->n_out; i++)
            out[i] = HONE_NONE;
        n->def->expand(&u, out);
        k->expanded++;
    } else {
        op_emit_in(k->to, n->def, n->n_in, in, &n->attr, n->data, n->bytes, out);
    }
    for (int i = 0; i < n->n_out; i++) {
        hone_type t = hone_type_of(out[i]);
        if (out[i].g && out[i].id >= 0 && (t.dtype != tout[i].dtype || !hone_shape_equal(&t.shape, &tout[i].shape)))
            err_set(&k->to->err, HONE_E_STATE, n->def->name, "the expansion has another type than the operation");
        k->map[n->out0 + i] = out[i].g ? out[i].id : -1;
    }
}

static hone_status copy_ends(struct copy *k, hone_err *err)
{
    const hone_graph *a = k->from;
    hone_graph *b = k->to;
    for (int i = 0; i < a->n_inputs; i++) {
        char *name = arena_text(&b->arena, a->inputs[i].name);
        if (!name || !ir_room(b, &b->inputs, b->n_inputs, &b->cap_inputs, sizeof *b->inputs))
            return err_set(err, HONE_E_NOMEM, "lower", "no memory for a copy of the graph");
        b->inputs[b->n_inputs++] = (struct ir_name){name, k->map[a->inputs[i].value]};
    }
    for (int i = 0; i < a->n_outputs; i++)
        hone_output((hone_t){b, k->map[a->outputs[i].value]}, a->outputs[i].name);
    return hone_graph_status(b, err);
}

static hone_graph *once(const hone_graph *from, bool (*keep)(void *, const struct op_call *), void *user, int *expanded,
                        hone_err *err)
{
    struct copy k = {.from = from, .keep = keep, .user = user};
    struct mem *m = &from->ctx->mem;
    bool ok = false;
    k.to = hone_graph_create(from->ctx, err);
    k.map = mem_array(m, (size_t)from->n_values + 1, sizeof *k.map);
    k.live = mem_array(m, (size_t)from->n_nodes + 1, sizeof *k.live);
    if (!k.to || !k.map || !k.live || !copy_names(&k)) {
        err_set(err, HONE_E_NOMEM, "lower", "no memory for a copy of the graph");
        goto done;
    }
    mark_live(&k);
    for (int i = 0; i < from->n_nodes && k.to->err.code == HONE_OK; i++)
        if (k.live[i])
            copy_node(&k, &from->nodes[i]);
    k.to->scope = k.to->loop = 0;
    ok = hone_graph_status(k.to, err) == HONE_OK && copy_ends(&k, err) == HONE_OK && ir_verify(k.to, err) == HONE_OK;
    *expanded = k.expanded;
done:
    mem_free(m, k.map);
    mem_free(m, k.live);
    if (ok)
        return k.to;
    hone_graph_destroy(k.to);
    return NULL;
}

hone_graph *ir_lower(const hone_graph *from, bool (*keep)(void *user, const struct op_call *c), void *user,
                     hone_err *err)
{
    const hone_graph *at = from;
    hone_graph *made = NULL;
    for (int round = 0; round < ROUNDS; round++) {
        int expanded = 0;
        hone_graph *next = once(at, keep, user, &expanded, err);
        hone_graph_destroy(made);
        made = next;
        if (!made || !expanded)
            return made;
        at = made;
    }
    err_set(err, HONE_E_STATE, "lower", "expansions do not come to an end");
    hone_graph_destroy(made);
    return NULL;
}
