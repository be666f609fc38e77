/* Splitting: linear(concat(a, b)) becomes linear(a) + linear(b) on slices of the weight where a and b have to be made
 * anew unequally often, so that the part of the time step and the part of the observation leave the denoising loop.
 * Elementwise operations on such a concat move to its operands first. */
#include "graph/pass.h"

struct split {
    uint8_t *cls;
};

/* n's operand 0 is a concat along its last axis of values of different classes. */
static const struct ir_node *mixed_concat(const struct pass *p, const struct ir_node *n)
{
    const struct split *s = p->user;
    const struct ir_node *c = pass_maker(p, n->in[0]);
    const hone_type *t = &p->from->values[n->in[0]].type;
    if (c->def != &op_concat || c->attr.i[0] != t->shape.rank - 1)
        return NULL;
    for (int i = 1; i < c->n_in; i++)
        if (s->cls[c->in[i]] != s->cls[c->in[0]])
            return c;
    return NULL;
}

/* f(concat(a, b)) = concat(f(a), f(b)) for a unary elementwise f; not built with hone_concat, for f of each operand is
 * needed again by split_linear, which looks through the concat. */
static void split_unary(struct pass *p, const struct ir_node *n, const struct ir_node *c)
{
    hone_t part[OP_MAX_IN];
    for (int i = 0; i < c->n_in; i++) {
        hone_t x = pass_in(p, c, i);
        part[i] = op_emit(n->def, 1, &x, &n->attr, NULL);
    }
    pass_set(p, n, 0, op_emit(&op_concat, c->n_in, part, &c->attr, NULL));
    p->changed++;
}

static void split_linear(struct pass *p, const struct ir_node *n, const struct ir_node *c)
{
    const struct hone_graph *g = p->from;
    hone_t w = pass_in(p, n, 1), sum = HONE_NONE;
    int64_t at = 0;
    for (int i = 0; i < c->n_in; i++) {
        const hone_shape *s = &g->values[c->in[i]].type.shape;
        int64_t width = s->dim[s->rank - 1];
        hone_t part = hone_slice(w, 1, at, width);
        /* the bias goes with the first part */
        hone_t y = hone_linear(pass_in(p, c, i), part, i == 0 && n->n_in > 2 ? pass_in(p, n, 2) : HONE_NONE);
        sum = sum.g ? hone_add(sum, y) : y;
        at += width;
    }
    pass_set(p, n, 0, sum);
    p->changed++;
}

static void split_node(struct pass *p, const struct ir_node *n)
{
    const struct ir_node *c = n->n_in > 0 ? mixed_concat(p, n) : NULL;
    if (c && n->def == &op_linear)
        split_linear(p, n, c);
    else if (c && n->def->shape == op_shape_unary && n->n_in == 1 && n->n_out == 1)
        split_unary(p, n, c);
    else
        pass_copy(p, n);
}

hone_graph *pass_split(const hone_graph *from, int *changed, hone_err *err)
{
    struct split s = {mem_array(&from->ctx->mem, (size_t)from->n_values + 1, 1)};
    struct pass p = {.user = &s, .node = split_node};
    hone_graph *g = NULL;
    if (s.cls) {
        pass_classes(from, s.cls);
        g = pass_run(&p, from, err);
    } else {
        err_set(err, HONE_E_NOMEM, "split", "no memory for a pass");
    }
    mem_free(&from->ctx->mem, s.cls);
    *changed = p.changed;
    return g;
}
