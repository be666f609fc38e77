/* What passes share: the live part of a graph is walked in order and made anew. */
#include "graph/pass.h"

#include <string.h>

static void mark_live(struct pass *k)
{
    const hone_graph *g = k->from;
    for (int i = 0; i < g->n_outputs; i++) {
        k->live[g->values[g->outputs[i].value].node] = true;
        k->uses[g->outputs[i].value]++;
    }
    for (int i = g->n_nodes - 1; i >= 0; i--) {
        const struct ir_node *n = &g->nodes[i];
        /* inputs stay, so that a run's arguments do not depend on what is used of them */
        if (n->def->flags & OP_EFFECT || n->def == &op_input)
            k->live[i] = true;
        for (int j = 0; k->live[i] && j < n->n_in; j++) {
            k->live[g->values[n->in[j]].node] = true;
            k->uses[n->in[j]]++;
        }
    }
}

/* Scopes and roles are copied whole, so indices agree in both graphs. */
static bool copy_names(struct pass *k)
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

static hone_status copy_ends(struct pass *k, hone_err *err)
{
    const hone_graph *a = k->from;
    hone_graph *b = k->to;
    for (int i = 0; i < a->n_inputs; i++) {
        char *name = arena_text(&b->arena, a->inputs[i].name);
        if (!name || !ir_room(b, &b->inputs, b->n_inputs, &b->cap_inputs, sizeof *b->inputs))
            return err_set(err, HONE_E_NOMEM, "pass", "no memory for a copy of the graph");
        b->inputs[b->n_inputs++] = (struct ir_name){name, k->map[a->inputs[i].value]};
    }
    for (int i = 0; i < a->n_outputs; i++)
        hone_output((hone_t){b, k->map[a->outputs[i].value]}, a->outputs[i].name);
    return hone_graph_status(b, err);
}

hone_t pass_in(const struct pass *p, const struct ir_node *n, int k)
{
    return (hone_t){p->to, p->map[n->in[k]]};
}

const struct ir_node *pass_maker(const struct pass *p, int32_t v)
{
    return &p->from->nodes[p->from->values[v].node];
}

void pass_set(struct pass *p, const struct ir_node *n, int k, hone_t x)
{
    hone_type got = hone_type_of(x), want = p->from->values[n->out0 + k].type;
    if (x.g && x.id >= 0 && (got.dtype != want.dtype || !hone_shape_equal(&got.shape, &want.shape)))
        err_set(&p->to->err, HONE_E_STATE, n->def->name, "a pass made a value of another type");
    p->map[n->out0 + k] = x.g ? x.id : -1;
}

void pass_copy(struct pass *p, const struct ir_node *n)
{
    hone_t in[OP_MAX_IN], out[OP_MAX_OUT];
    for (int i = 0; i < n->n_in; i++) {
        in[i] = pass_in(p, n, i);
        if (in[i].id < 0)
            err_set(&p->to->err, HONE_E_STATE, n->def->name, "a pass dropped a value that is needed");
    }
    op_emit_in(p->to, n->def, n->n_in, in, &n->attr, n->data, n->bytes, out);
    for (int i = 0; i < n->n_out; i++)
        pass_set(p, n, i, out[i]);
}

hone_graph *pass_run(struct pass *k, const hone_graph *from, hone_err *err)
{
    struct mem *m = &from->ctx->mem;
    bool ok = false;
    k->from = from;
    k->to = hone_graph_create(from->ctx, err);
    k->map = mem_array(m, (size_t)from->n_values + 1, sizeof *k->map);
    k->uses = mem_array(m, (size_t)from->n_values + 1, sizeof *k->uses);
    k->live = mem_array(m, (size_t)from->n_nodes + 1, sizeof *k->live);
    if (!k->to || !k->map || !k->uses || !k->live || !copy_names(k)) {
        err_set(err, HONE_E_NOMEM, "pass", "no memory for a copy of the graph");
        goto done;
    }
    memset(k->map, 0xff, (size_t)from->n_values * sizeof *k->map);
    mark_live(k);
    if (k->begin)
        k->begin(k);
    for (int i = 0; i < from->n_nodes && k->to->err.code == HONE_OK; i++)
        if (k->live[i]) {
            k->to->scope = from->nodes[i].scope;
            k->to->loop = from->nodes[i].loop;
            k->node(k, &from->nodes[i]);
        }
    k->to->scope = k->to->loop = 0;
    if (k->end)
        k->end(k);
    ok = hone_graph_status(k->to, err) == HONE_OK && copy_ends(k, err) == HONE_OK && ir_verify(k->to, err) == HONE_OK;
done:
    mem_free(m, k->map);
    mem_free(m, k->uses);
    mem_free(m, k->live);
    if (ok)
        return k->to;
    hone_graph_destroy(k->to);
    return NULL;
}
