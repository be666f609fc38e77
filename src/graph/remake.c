/* Memory for a little arithmetic (Chen et al. 2016, for single operations): what is cheap to make, and lies idle while
 * much else is made, is made again where it is read next instead of being kept. So of a block of a U-Net only the
 * results of convolutions wait for the backward pass; norms, activations and what is joined from parts do not, nor do
 * weights in another order.
 *
 * A value is made again only from what is there anyway: sources, small values, values that are read later still, or
 * others that can be made again. */
#include <string.h>

#include "graph/pass.h"

enum {
    SMALL = 64 << 10, /* bytes that are not worth it */
    IDLE = 8,         /* times its own size must be made while it waits */
    DEEP = 4          /* operations that may be made again for one */
};

struct remake {
    double *touched;  /* of each value of `from`: bytes made until it was made or read last */
    int32_t *last;    /* node that reads it last; n_nodes: it is an output */
    double *patience; /* how many times its own size it waits; more each time that it was made again */
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
        const bool there = pass_maker(p, u)->def->flags & OP_SOURCE || bytes_of(p, u) < SMALL || r->last[u] > at;
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

static void remake_node(struct pass *p, const struct ir_node *n)
{
    struct remake *r = p->user;
    const int32_t at = (int32_t)(n - p->from->nodes);
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
}

static void find_last(struct pass *p)
{
    struct remake *r = p->user;
    for (int i = 0; i < p->from->n_nodes; i++)
        for (int k = 0; p->live[i] && k < p->from->nodes[i].n_in; k++) {
            r->last[p->from->nodes[i].in[k]] = i;
        }
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
                       mem_array(m, n, sizeof *r.patience), 0};
    struct pass p = {.user = &r, .begin = find_last, .node = trains(from) ? remake_node : pass_copy};
    hone_graph *g = NULL;
    if (r.touched && r.last && r.patience)
        g = pass_run(&p, from, err);
    else
        err_set(err, HONE_E_NOMEM, "remake", "no memory for a pass");
    *changed = p.changed;
    mem_free(m, r.touched);
    mem_free(m, r.last);
    mem_free(m, r.patience);
    return g;
}
