/* Layout for larger batches: convolutions of signals [B, C, T] become products of rows with time first, [T, B, C], and
 * so does what stands between them: norms (with their activation, forward and backward), elementwise operations,
 * concatenations, parts and sums. A convolution is then one matrix product a tap over rows that lie one after the
 * other, without padding and without copies.
 *
 * A value has its form time first when an operation makes it so; it is permuted where one of the other kind reads it,
 * and permutations that nothing reads are dropped by the next pass. Autodiff comes before, so gradients are laid out by
 * the same rules. */
#include <string.h>

#include "graph/pass.h"
#include "op/conv_block.h"
#include "op/norm.h"
#include "op/time_conv.h"
#include "op/time_norm.h"

enum { SMALL_BATCH = 4 };

struct time {
    bool (*takes)(void *user, const struct op_call *c);
    void *user;
    int32_t *tbc;    /* value of `from` -> its time-first form in `to`, -1: none */
    int32_t *inside; /* of an activation's operand or gradient that lives inside of a fused norm: see below; -1: none */
    int32_t *reads;  /* of a norm's result: uses that a fused norm would take in */
    bool *graded;    /* what a norm's gradient is given */
};

static hone_t value(const struct pass *p, int32_t id)
{
    return (hone_t){p->to, id};
}

static bool is_signal(const struct pass *p, int32_t v)
{
    const hone_type *t = &p->from->values[v].type;
    return t->dtype == HONE_F32 && t->shape.rank == 3;
}

/* The form of v with time first; v has rank 3. It is made where it is read first: a form of what comes from outside of
 * a chain is hoisted before that chain, and can be read after it too. */
static hone_t time_first(struct pass *p, int32_t v)
{
    struct time *t = p->user;
    const int64_t *d = p->from->values[v].type.shape.dim;
    if (t->tbc[v] >= 0)
        return value(p, t->tbc[v]);
    hone_t x = value(p, p->map[v]);
    hone_t y = d[2] == 1 ? hone_reshape(x, HONE_SHAPE(1, d[0], d[1])) : op_time_first(x);
    t->tbc[v] = y.id;
    return y;
}

/* Result k of n is y, time first. */
static void set_time_first(struct pass *p, const struct ir_node *n, int k, hone_t y)
{
    struct time *t = p->user;
    const int64_t *d = p->from->values[n->out0 + k].type.shape.dim;
    t->tbc[n->out0 + k] = y.id;
    pass_set(p, n, k, d[2] == 1 ? hone_reshape(y, HONE_SHAPE(d[0], d[1], 1)) : op_time_last(y));
    p->changed++;
}

/* Whether the device takes the operation that was made last. */
static bool taken(struct pass *p, hone_t y)
{
    const struct time *t = p->user;
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT];
    if (!y.g || y.id < 0)
        return false;
    struct op_call c = ir_call(p->to, &p->to->nodes[p->to->n_nodes - 1], tin, tout);
    return t->takes(t->user, &c);
}

/* --- convolutions --- */

static hone_t kernel_of(struct pass *p, const struct ir_node *n, int k)
{
    return hone_permute(pass_in(p, n, k), (const int[]){2, 1, 0}); /* [O, C, K] <-> [K, C, O] */
}

static bool large(const struct pass *p, int32_t v)
{
    return p->from->values[v].type.shape.dim[0] > SMALL_BATCH;
}

static bool time_conv(struct pass *p, const struct ir_node *n)
{
    const bool forward = n->def == &op_conv1d;
    if (n->attr.i[CONV_DILATION] != 1 || !large(p, n->in[0]))
        return false;
    struct op_attr a = {.i = {[TC_STRIDE] = n->attr.i[CONV_STRIDE], [TC_PADDING] = n->attr.i[CONV_PADDING]}};
    if (!forward)
        a.i[TC_EXTENT] = p->from->values[n->out0].type.shape.dim[2];
    hone_t in[3] = {time_first(p, n->in[0]), kernel_of(p, n, 1), n->n_in == 3 ? pass_in(p, n, 2) : HONE_NONE};
    hone_t y = op_emit(forward ? &op_time_conv : &op_time_conv_data, n->n_in, in, &a, NULL);
    if (!taken(p, y))
        return false;
    set_time_first(p, n, 0, y);
    return true;
}

static bool time_weight(struct pass *p, const struct ir_node *n)
{
    if (n->attr.i[CONV_DILATION] != 1 || !large(p, n->in[0]))
        return false;
    struct op_attr a = {.i = {[TC_STRIDE] = n->attr.i[CONV_STRIDE],
                              [TC_PADDING] = n->attr.i[CONV_PADDING],
                              [TC_EXTENT] = n->attr.i[CONV_EXTENT]}};
    hone_t in[2] = {time_first(p, n->in[0]), time_first(p, n->in[1])};
    hone_t w = op_emit(&op_time_conv_weight, 2, in, &a, NULL);
    if (!taken(p, w))
        return false;
    pass_set(p, n, 0, hone_permute(w, (const int[]){2, 1, 0}));
    p->changed++;
    return true;
}

/* --- norms with their activation ---
 *
 * y = mish(group_norm(x)), and backward d = mish_grad(norm, dy), dx = group_norm_grad(d, ...). Where nothing else reads
 * the norm or d, both live inside of time_norm and time_norm_grad. */

/* Fills `reads`: uses of a norm's result by mish, and by mish_grad whose result only a norm's gradient reads. */
static void count_reads(struct pass *p)
{
    struct time *t = p->user;
    for (int i = p->from->n_nodes - 1; i >= 0; i--) { /* backwards: readers come first */
        const struct ir_node *n = &p->from->nodes[i];
        if (!p->live[i])
            continue;
        if (n->def == &op_group_norm_grad)
            t->graded[n->in[0]] = true;
        if (n->def == &op_mish || (n->def == &op_mish_grad && p->uses[n->out0] == 1 && t->graded[n->out0]))
            t->reads[n->in[0]]++;
    }
}

static bool time_norm(struct pass *p, const struct ir_node *n)
{
    struct time *t = p->user;
    if (t->tbc[n->in[0]] < 0)
        return false;
    const int32_t v = n->out0;
    const bool mish = p->uses[v] > 0 && t->reads[v] == p->uses[v];
    struct op_attr a = {.i = {[TN_GROUPS] = n->attr.i[NORM_GROUPS], [TN_ACT] = mish ? CB_MISH : CB_IDENTITY},
                        .f = {n->attr.f[NORM_EPS]}};
    hone_t in[3] = {value(p, t->tbc[n->in[0]]), pass_in(p, n, 1), pass_in(p, n, 2)}, out[3];
    op_emit(&op_time_norm, 3, in, &a, out);
    if (!taken(p, out[0]))
        return false;
    if (mish)
        t->inside[v] = out[0].id; /* what mish gives */
    else
        set_time_first(p, n, 0, out[0]);
    pass_set(p, n, 1, out[1]);
    pass_set(p, n, 2, out[2]);
    p->changed++;
    return true;
}

static bool time_norm_grad(struct pass *p, const struct ir_node *n)
{
    struct time *t = p->user;
    const struct ir_node *norm = pass_maker(p, n->in[3]); /* who made the statistics knows beta */
    const int32_t d = n->in[0];
    if (t->tbc[n->in[1]] < 0 || norm->def != &op_group_norm)
        return false;
    struct op_attr a = {
        .i = {[TN_GROUPS] = norm->attr.i[NORM_GROUPS], [TN_ACT] = t->inside[d] >= 0 ? CB_MISH : CB_IDENTITY}};
    hone_t in[6] = {t->inside[d] >= 0 ? value(p, t->inside[d]) : time_first(p, d),
                    value(p, t->tbc[n->in[1]]),
                    pass_in(p, n, 2),
                    pass_in(p, norm, 2),
                    pass_in(p, n, 3),
                    pass_in(p, n, 4)};
    hone_t out[3];
    op_emit(&op_time_norm_grad, 6, in, &a, out);
    if (!taken(p, out[0])) /* then its device would not have taken time_norm either */
        return false;
    set_time_first(p, n, 0, out[0]);
    pass_set(p, n, 1, out[1]);
    pass_set(p, n, 2, out[2]);
    return true;
}

static bool inside_norm(struct pass *p, const struct ir_node *n)
{
    struct time *t = p->user;
    const int32_t v = n->n_in ? n->in[0] : -1;
    if (v < 0 || t->inside[v] < 0 || (n->def != &op_mish && n->def != &op_mish_grad))
        return false;
    if (n->def == &op_mish)
        set_time_first(p, n, 0, value(p, t->inside[v]));
    else
        t->inside[n->out0] = time_first(p, n->in[1]).id; /* mish_grad: the gradient it was given */
    return true;
}

/* --- what does not care --- */

/* Axis of [B, C, T] in [T, B, C]. */
static int64_t moved(int64_t axis)
{
    return (axis + 1) % 3;
}

static bool any_time_first(const struct pass *p, const struct ir_node *n)
{
    const struct time *t = p->user;
    for (int i = 0; i < n->n_in; i++)
        if (t->tbc[n->in[i]] >= 0 && p->from->values[n->in[i]].type.shape.dim[2] > 1)
            return true;
    return false;
}

/* An operand of an elementwise operation: a signal, one number a channel [C, 1], or one element; poison: another. */
static hone_t operand(struct pass *p, const struct ir_node *n, int k)
{
    const hone_type *t = &p->from->values[n->in[k]].type;
    if (t->shape.rank == 3)
        return time_first(p, n->in[k]);
    if (t->shape.rank == 2 && t->shape.dim[1] == 1)
        return hone_reshape(pass_in(p, n, k), HONE_SHAPE(t->shape.dim[0]));
    return op_numel(t) == 1 ? pass_in(p, n, k) : (hone_t){p->to, -1};
}

static bool elementwise(struct pass *p, const struct ir_node *n)
{
    hone_t in[OP_MAX_IN];
    if (!is_signal(p, n->out0) || (n->def->shape != op_shape_unary && n->def->shape != op_shape_binary))
        return false;
    for (int i = 0; i < n->n_in; i++) {
        in[i] = operand(p, n, i);
        if (in[i].id < 0)
            return false;
    }
    set_time_first(p, n, 0, op_emit(n->def, n->n_in, in, &n->attr, NULL));
    return true;
}

/* concat, slice, pad: of one axis, attribute 0. */
static bool along_axis(struct pass *p, const struct ir_node *n)
{
    hone_t in[OP_MAX_IN];
    struct op_attr a = n->attr;
    if ((n->def != &op_concat && n->def != &op_slice && n->def != &op_pad) || !is_signal(p, n->out0))
        return false;
    for (int i = 0; i < n->n_in; i++)
        in[i] = time_first(p, n->in[i]);
    a.i[0] = moved(a.i[0]);
    set_time_first(p, n, 0, op_emit(n->def, n->n_in, in, &a, NULL));
    return true;
}

/* Sums over time, over samples and time, over all: what is left is the same whatever the layout. */
static bool reduction(struct pass *p, const struct ir_node *n)
{
    const bool keep = n->attr.i[1];
    const unsigned all = 7, axes = (unsigned)n->attr.i[0] & all, time = HONE_AXIS(2), both = HONE_AXIS(0) | time;
    if (n->def != &op_sum || !is_signal(p, n->in[0]) || (axes != time && axes != both && axes != all))
        return false;
    const unsigned here = axes == time ? HONE_AXIS(0) : axes == both ? HONE_AXIS(0) | HONE_AXIS(1) : all;
    hone_t y = hone_sum(time_first(p, n->in[0]), here, keep && axes == time);
    if (keep && axes == time)
        set_time_first(p, n, 0, y); /* [1, B, C] */
    else
        pass_set(p, n, 0, hone_reshape(y, p->from->values[n->out0].type.shape));
    return true;
}

/* [B, T, C] <-> [B, C, T], where one of the two has a form time first already. */
static bool swap(struct pass *p, const struct ir_node *n)
{
    const struct time *t = p->user;
    const int64_t *a = n->attr.i; /* rank, then the order */
    if (n->def != &op_permute || a[0] != 3 || a[1] != 0 || a[2] != 2 || a[3] != 1 || t->tbc[n->in[0]] < 0)
        return false;
    pass_set(p, n, 0, hone_permute(value(p, t->tbc[n->in[0]]), (const int[]){1, 0, 2}));
    return true;
}

static void time_node(struct pass *p, const struct ir_node *n)
{
    const bool plain = n->n_out == 0 || n->def->flags & OP_SOURCE;
    bool done = !plain && inside_norm(p, n);
    if (!done && !plain) {
        if (n->def == &op_conv1d || n->def == &op_conv1d_data_grad || n->def == &op_conv_transpose1d)
            done = time_conv(p, n);
        else if (n->def == &op_conv1d_weight_grad)
            done = time_weight(p, n);
        else if (n->def == &op_group_norm)
            done = time_norm(p, n);
        else if (n->def == &op_group_norm_grad)
            done = time_norm_grad(p, n);
        else if (n->def == &op_permute)
            done = swap(p, n);
        else if (any_time_first(p, n))
            done = elementwise(p, n) || along_axis(p, n) || reduction(p, n);
    }
    if (!done)
        pass_copy(p, n);
}

hone_graph *pass_time(const hone_graph *from, bool (*takes)(void *user, const struct op_call *c), void *user,
                      hone_err *err)
{
    struct mem *m = &from->ctx->mem;
    const size_t n = (size_t)from->n_values + 1;
    struct time t = {takes,
                     user,
                     mem_array(m, n, sizeof *t.tbc),
                     mem_array(m, n, sizeof *t.inside),
                     mem_array(m, n, sizeof *t.reads),
                     mem_array(m, n, sizeof *t.graded)};
    struct pass p = {.user = &t, .begin = count_reads, .node = time_node};
    hone_graph *g = NULL;
    if (t.tbc && t.inside && t.reads && t.graded) {
        memset(t.tbc, 0xff, n * sizeof *t.tbc);
        memset(t.inside, 0xff, n * sizeof *t.inside);
        g = pass_run(&p, from, err);
    } else {
        err_set(err, HONE_E_NOMEM, "time", "no memory for a pass");
    }
    mem_free(m, t.tbc);
    mem_free(m, t.inside);
    mem_free(m, t.reads);
    mem_free(m, t.graded);
    return g;
}
