/* Memory for a little arithmetic (Chen et al. 2016, for single operations): what is cheap to make, and lies idle while
 * much else is made, is made again where it is read next instead of being kept. So of a block of a U-Net only the
 * results of convolutions wait for the backward pass; norms, activations and what is joined from parts do not, nor do
 * weights in another order.
 *
 * A value is made again only from what is there anyway: sources, values that are read later still, others that can be
 * made again; or from what is so much smaller that it is better kept in its place. */
#include <string.h>

#include "graph/pass.h"

enum {
    SMALL = 64 << 10, /* bytes that are not worth it */
    IDLE = 8,         /* times its own size must be made while it waits */
    DEEP = 4,         /* operations that may be made again for one */
    LESS = 4          /* of so much less bytes that it may wait instead */
};

struct remake {
    double *touched;  /* of each value of `from`: bytes made until it was made or read last */
    int32_t *last;    /* node that reads it last; n_nodes: it is an output */
    double *patience; /* how many times its own size it waits; more each time that it was made again */
    int32_t *adder;   /* of a value: the node that only adds it to a tensor of a store; -1: none, or done */
    double made;      /* bytes, so far */
};

static double bytes_of(const struct pass *p, int32_t v)
{
    const hone_type *t = &p->from->values[v].type;
    return (double)op_numel(t) * (double)hone_dtype_size(t->dtype);
}

/* Its time is that of reading and writing. */
static bool is_cheap(const struct ir_node *n)
{
    const struct op_def *d = n->def;
    if (n->loop || d->flags & (OP_SOURCE | OP_EFFECT | OP_LOOP))
        return false;
    return d->shape == op_shape_unary || d->shape == op_shape_binary || d == &op_concat || d == &op_permute ||
           d == &op_time_norm || d->flags & OP_VIEW;
}

static bool can_remake(const struct pass *p, int32_t v, int32_t at, int depth)
{
    const struct remake *r = p->user;
    const struct ir_node *n = pass_maker(p, v);
    if (!is_cheap(n) || n->out0 != v || depth > DEEP)
        return false;
    for (int i = 0; i < n->n_in; i++) {
        const int32_t u = n->in[i];
        const bool there =
            pass_maker(p, u)->def->flags & OP_SOURCE || LESS * bytes_of(p, u) <= bytes_of(p, v) || r->last[u] > at;
        if (!there && !can_remake(p, u, at, depth + 1))
            return false;
    }
    return true;
}

static bool is_idle(const struct pass *p, int32_t v)
{
    const struct remake *r = p->user;
    return bytes_of(p, v) >= SMALL && r->made - r->touched[v] > (IDLE + r->patience[v]) * bytes_of(p, v);
}

/* What is read now; of a view also what it shows. */
static void touch(struct pass *p, int32_t v)
{
    struct remake *r = p->user;
    const struct ir_node *n = pass_maker(p, v);
    r->touched[v] = r->made;
    if (n->def->flags & OP_VIEW && n->n_in == 1)
        touch(p, n->in[0]);
}

static void remake_value(struct pass *p, int32_t v, int32_t at)
{
    struct remake *r = p->user;
    const struct ir_node *n = pass_maker(p, v);
    hone_t in[OP_MAX_IN], out[OP_MAX_OUT];
    for (int i = 0; i < n->n_in; i++) {
        const int32_t u = n->in[i];
        if (is_idle(p, u) && can_remake(p, u, at, 1))
            remake_value(p, u, at);
        touch(p, u);
        in[i] = pass_in(p, n, i);
    }
    const int32_t scope = p->to->scope;
    p->to->scope = n->scope;
    op_emit(n->def, n->n_in, in, &n->attr, out);
    p->to->scope = scope;
    p->map[v] = out[0].id;
    r->patience[v] = 4 * (IDLE + r->patience[v]) - IDLE;
    r->made += n->def->flags & OP_VIEW ? 0 : bytes_of(p, v);
    touch(p, v);
    p->changed++;
}

/* A gradient is added to its store as soon as it is there, and need not wait for the others. */
static void add_early(struct pass *p, const struct ir_node *n)
{
    struct remake *r = p->user;
    p->to->loop = 0; /* n may be what comes out of a chain; this does not belong to it */
    for (int k = 0; k < n->n_out; k++) {
        const int32_t v = n->out0 + k, adder = r->adder[v];
        if (adder < 0)
            continue;
        for (int i = 0; i < 2; i++) /* the tensor of the store is there already, or comes now */
            if (pass_in(p, &p->from->nodes[adder], i).id < 0)
                pass_copy(p, pass_maker(p, p->from->nodes[adder].in[i]));
        pass_copy(p, &p->from->nodes[adder]);
        r->adder[v] = -1;
        touch(p, v);
    }
}

/* Finds nodes that add a value to what a store holds, for the store alone. */
static void find_adders(struct pass *p)
{
    struct remake *r = p->user;
    for (int i = 0; i < p->from->n_nodes; i++) {
        const struct ir_node *n = &p->from->nodes[i];
        if (!p->live[i] || n->def != &op_store)
            continue;
        const struct ir_node *add = pass_maker(p, n->in[0]);
        if (add->def != &op_add || add->loop || p->uses[add->out0] != 1 || add->in[0] == add->in[1])
            continue;
        for (int k = 0; k < 2; k++)
            if (pass_maker(p, add->in[k])->def == &op_slot)
                r->adder[add->in[1 - k]] = (int32_t)(add - p->from->nodes);
    }
}

static void remake_node(struct pass *p, const struct ir_node *n)
{
    struct remake *r = p->user;
    const int32_t at = (int32_t)(n - p->from->nodes);
    if (n->n_out > 0 && p->map[n->out0] >= 0)
        return; /* done early */
    for (int i = 0; i < n->n_in; i++) {
        if (!n->loop && is_idle(p, n->in[i]) && can_remake(p, n->in[i], at, 1))
            remake_value(p, n->in[i], at);
        touch(p, n->in[i]);
    }
    pass_copy(p, n);
    for (int k = 0; k < n->n_out; k++) {
        if (!(n->def->flags & (OP_VIEW | OP_SOURCE)))
            r->made += bytes_of(p, n->out0 + k);
        r->touched[n->out0 + k] = r->made;
    }
    add_early(p, n);
}

static void find_last(struct pass *p)
{
    struct remake *r = p->user;
    for (int i = 0; i < p->from->n_nodes; i++)
        for (int k = 0; p->live[i] && k < p->from->nodes[i].n_in; k++) {
            r->last[p->from->nodes[i].in[k]] = i;
        }
    memset(r->adder, 0xff, (size_t)p->from->n_values * sizeof *r->adder);
    find_adders(p);
    for (int i = 0; i < p->from->n_outputs; i++)
        r->last[p->from->outputs[i].value] = p->from->n_nodes;
}

/* Only where a program trains: the memory of others is that of their parameters, and those of a decision are prepared
 * once. */
static bool trains(const hone_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].def == &op_store)
            return true;
    return false;
}

hone_graph *pass_remake(const hone_graph *from, int *changed, hone_err *err)
{
    struct mem *m = &from->ctx->mem;
    const size_t n = (size_t)from->n_values + 1;
    struct remake r = {mem_array(m, n, sizeof *r.touched), mem_array(m, n, sizeof *r.last),
                       mem_array(m, n, sizeof *r.patience), mem_array(m, n, sizeof *r.adder), 0};
    struct pass p = {.user = &r, .begin = find_last, .node = trains(from) ? remake_node : pass_copy};
    hone_graph *g = NULL;
    if (r.touched && r.last && r.patience && r.adder)
        g = pass_run(&p, from, err);
    else
        err_set(err, HONE_E_NOMEM, "remake", "no memory for a pass");
    *changed = p.changed;
    mem_free(m, r.touched);
    mem_free(m, r.last);
    mem_free(m, r.patience);
    mem_free(m, r.adder);
    return g;
}
