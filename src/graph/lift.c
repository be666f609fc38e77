/* Lifting: in a repeated chain, what depends on the step but not on the carried state is made for all steps at once,
 * before the chain, as a table whose row each step reads. All arithmetic of the time step leaves the loop so; where it
 * depends on parameters alone, the table lands in the prepare segment. */
#include <string.h>

#include "graph/pass.h"

struct lift {
    uint8_t *cls;
    int32_t *whole; /* value of `from` -> its table in `to`, -1: none */
    int32_t *late;  /* nodes of the chain that wait until its tables are made */
    int n_late;
};

/* A table holds a value once a step; larger ones stay in the chain, so that lifting never decides what fits. */
enum { TABLE_BYTES = 4 << 20 };

/* The table of a value of class CLASS_STEP: steps first. */
static bool lifted(struct pass *p, const struct ir_node *n)
{
    struct lift *l = p->user;
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT];
    hone_t in[OP_MAX_IN], out[OP_MAX_OUT];
    bool many[OP_MAX_IN] = {false};
    struct op_call c = ir_call(p->from, n, tin, tout);
    int64_t steps = 0;
    for (int i = 0; i < n->n_in; i++) {
        int32_t v = n->in[i];
        many[i] = l->cls[v] == CLASS_STEP;
        if (many[i] && l->whole[v] < 0)
            return false; /* its maker stayed in the chain */
        in[i] = many[i] ? (hone_t){p->to, l->whole[v]} : pass_in(p, n, i);
        if (in[i].id < 0)
            return false;
        if (many[i])
            steps = hone_type_of(in[i]).shape.dim[0];
    }
    for (int i = 0; i < n->n_out; i++)
        if (op_numel(&tout[i]) > TABLE_BYTES / (int64_t)sizeof(float) / (steps ? steps : 1))
            return false;
    p->to->loop = 0;
    for (int i = 0; i < n->n_out; i++)
        out[i] = HONE_NONE;
    bool ok = op_batch(&(struct op_use){&c, p->to, in, NULL}, many, steps, out);
    for (int i = 0; i < n->n_out && ok; i++)
        l->whole[n->out0 + i] = out[i].g ? out[i].id : -1;
    return ok;
}

/* Row of this step of the table of v. */
static void read_row(struct pass *p, int32_t v, int32_t loop)
{
    struct lift *l = p->user;
    hone_t table = {p->to, l->whole[v]};
    struct op_attr a = {.i = {[LOOP_ID] = loop, [LOOP_STEPS] = hone_type_of(table).shape.dim[0]}};
    p->to->loop = loop;
    p->map[v] = op_emit(&op_loop_row, 1, &table, &a, NULL).id;
    p->changed++;
}

static void late_node(struct pass *p, const struct ir_node *n)
{
    struct lift *l = p->user;
    for (int i = 0; i < n->n_in; i++)
        if (p->map[n->in[i]] < 0 && l->cls[n->in[i]] == CLASS_STEP && l->whole[n->in[i]] >= 0)
            read_row(p, n->in[i], n->loop);
    p->to->scope = n->scope;
    p->to->loop = n->loop;
    pass_copy(p, n);
}

static void lift_node(struct pass *p, const struct ir_node *n)
{
    struct lift *l = p->user;
    uint8_t c = n->n_out ? l->cls[n->out0] : CLASS_RUN;
    if (n->def == &op_loop_row) {
        pass_copy(p, n);
        l->whole[n->out0] = p->map[n->in[0]];
    } else if (n->def == &op_loop_out) {
        for (int i = 0; i < l->n_late; i++)
            late_node(p, &p->from->nodes[l->late[i]]);
        l->n_late = 0;
        late_node(p, n);
    } else if (c == CLASS_STATE || (c == CLASS_STEP && !lifted(p, n))) {
        l->late[l->n_late++] = (int32_t)(n - p->from->nodes);
    } else if (c != CLASS_STEP) {
        p->to->loop = 0; /* the same in each step: no part of the chain */
        pass_copy(p, n);
    }
}

hone_graph *pass_lift(const hone_graph *from, hone_err *err)
{
    struct mem *m = &from->ctx->mem;
    size_t n = (size_t)from->n_values + 1;
    struct lift l = {mem_array(m, n, 1), mem_array(m, n, sizeof *l.whole),
                     mem_array(m, (size_t)from->n_nodes + 1, sizeof *l.late), 0};
    struct pass p = {.user = &l, .node = lift_node};
    hone_graph *g = NULL;
    if (l.cls && l.whole && l.late) {
        pass_classes(from, l.cls);
        memset(l.whole, 0xff, n * sizeof *l.whole);
        g = pass_run(&p, from, err);
    } else {
        err_set(err, HONE_E_NOMEM, "lift", "no memory for a pass");
    }
    mem_free(m, l.cls);
    mem_free(m, l.whole);
    mem_free(m, l.late);
    return g;
}
