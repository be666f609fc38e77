/* Lowering: every use that a device has no kernel for is replaced by its expansion. */
#include "graph/pass.h"

enum { ROUNDS = 8 }; /* expansions of expansions; deeper would be a circle */

struct lower {
    bool (*keep)(void *user, const struct op_call *c);
    void *user;
};

static void lower_node(struct pass *p, const struct ir_node *n)
{
    const struct lower *l = p->user;
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT];
    hone_t in[OP_MAX_IN], out[OP_MAX_OUT];
    struct op_call c = ir_call(p->from, n, tin, tout);
    if (n->def->flags & (OP_SOURCE | OP_EFFECT | OP_VIEW) || !n->def->expand || l->keep(l->user, &c)) {
        pass_copy(p, n);
        return;
    }
    for (int i = 0; i < n->n_in; i++)
        in[i] = pass_in(p, n, i);
    for (int i = 0; i < n->n_out; i++)
        out[i] = HONE_NONE;
    n->def->expand(&(struct op_use){&c, p->to, in, NULL}, out);
    for (int i = 0; i < n->n_out; i++)
        pass_set(p, n, i, out[i]);
    p->changed++;
}

hone_graph *ir_lower(const hone_graph *from, bool (*keep)(void *user, const struct op_call *c), void *user,
                     hone_err *err)
{
    struct lower l = {keep, user};
    hone_graph *made = NULL;
    for (int round = 0; round < ROUNDS; round++) {
        struct pass p = {.user = &l, .node = lower_node};
        hone_graph *next = pass_run(&p, made ? made : from, err);
        hone_graph_destroy(made);
        made = next;
        if (!made || !p.changed)
            return made;
    }
    err_set(err, HONE_E_STATE, "lower", "expansions do not come to an end");
    hone_graph_destroy(made);
    return NULL;
}
