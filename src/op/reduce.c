/* Shared by the reductions over axes. */
#include "op/reduce.h"

hone_status op_shape_reduce(const struct op_call *c, bool some, hone_type *out, hone_err *err)
{
    const hone_shape *s = &c->in[0].shape;
    const unsigned axes = (unsigned)c->attr.i[REDUCE_AXES];
    if (!op_all_f32(c))
        return op_refuse(c, err, "the operand must be f32");
    if (axes != HONE_AXES_ALL && axes >> s->rank)
        return op_refuse(c, err, "an axis is beyond the operand's dimensions");
    out[0] = (hone_type){HONE_F32, {0, {0}}};
    for (int i = 0; i < s->rank; i++) {
        const bool gone = axes >> i & 1;
        if (gone && some && s->dim[i] == 0)
            return op_refuse(c, err, "over a dimension of 0 there is no result");
        if (!gone || c->attr.i[REDUCE_KEEP])
            out[0].shape.dim[out[0].shape.rank++] = gone ? 1 : s->dim[i];
    }
    return HONE_OK;
}

/* The operand's shape with reduced dimensions as 1. */
static hone_shape kept(const struct op_call *c)
{
    hone_shape s = c->in[0].shape;
    for (int i = 0; i < s.rank; i++)
        if (c->attr.i[REDUCE_AXES] >> i & 1)
            s.dim[i] = 1;
    return s;
}

int64_t op_reduce_count(const struct op_call *c)
{
    int64_t n = 1;
    for (int i = 0; i < c->in[0].shape.rank; i++)
        n *= c->attr.i[REDUCE_AXES] >> i & 1 ? c->in[0].shape.dim[i] : 1;
    return n;
}

void op_reduce_walk(const struct op_call *c, void (*fn)(void *user, int64_t from, int64_t to), void *user)
{
    const hone_shape *s = &c->in[0].shape, k = kept(c);
    int64_t stride[HONE_MAX_RANK], idx[HONE_MAX_RANK] = {0}, from = 0;
    op_strides(&k, s, stride);
    if (hone_numel(s) == 0)
        return;
    do {
        int64_t to = 0;
        for (int i = 0; i < s->rank; i++)
            to += idx[i] * stride[i];
        fn(user, from++, to);
    } while (op_next(s, idx));
}

hone_t op_reduce_stretch(const struct op_use *u, hone_t y)
{
    return hone_broadcast(hone_reshape(y, kept(u->call)), u->call->in[0].shape);
}

unsigned op_reduce_batch_axes(const struct op_call *c)
{
    const unsigned all = (1u << c->in[0].shape.rank) - 1;
    return ((unsigned)c->attr.i[REDUCE_AXES] & all) << 1;
}

struct op_cost op_reduce_cost(const struct op_call *c)
{
    const double x = (double)op_numel(&c->in[0]), y = (double)op_numel(&c->out[0]);
    return (struct op_cost){x, 4 * (x + y)};
}
