/* The operations of a repeated chain: the carried state, a row of a table for this step, and the state after the last
 * step. The executor makes their values. */
#include "op/source.h"

static hone_status state_shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    (void)err;
    out[0] = c->in[0];
    return HONE_OK;
}

static hone_status row_shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *s = &c->in[0].shape;
    if (s->rank < 1 || s->dim[0] != c->attr.i[LOOP_STEPS])
        return op_refuse(c, err, "the first dimension of a chain's table must be its number of steps");
    out[0].dtype = c->in[0].dtype;
    out[0].shape.rank = s->rank - 1;
    for (int i = 1; i < s->rank; i++)
        out[0].shape.dim[i - 1] = s->dim[i];
    return HONE_OK;
}

static hone_status out_shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    if (c->in[0].dtype != c->in[1].dtype || !hone_shape_equal(&c->in[0].shape, &c->in[1].shape))
        return op_refuse(c, err, "the body of a chain must return what it is given: one type, one shape");
    out[0] = c->in[0];
    return HONE_OK;
}

static bool whole(const struct op_call *c, size_t *offset)
{
    (void)c;
    *offset = 0;
    return true;
}

const struct op_def op_loop_state = {
    .name = "loop_state",
    .math = "y = x0 in the first step, what the body returned after it",
    .attr_i = "loop steps",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = OP_SOURCE | OP_LOOP,
    .shape = state_shape,
    .no_grad = "a repeated chain has no gradient: unroll it",
    .no_expand = "a source",
    .no_onnx = "exported unrolled",
};

const struct op_def op_loop_row = {
    .name = "loop_row",
    .math = "y = row of a table, one a step",
    .attr_i = "loop steps",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = OP_SOURCE | OP_LOOP,
    .shape = row_shape,
    .no_grad = "a repeated chain has no gradient: unroll it",
    .no_expand = "a source",
    .no_onnx = "exported unrolled",
};

const struct op_def op_loop_out = {
    .name = "loop_out",
    .math = "y = the state after the last step",
    .attr_i = "loop steps",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .flags = OP_SOURCE | OP_LOOP,
    .shape = out_shape,
    .no_grad = "a repeated chain has no gradient: unroll it",
    .no_expand = "a source",
    .no_onnx = "exported unrolled",
    .view = whole,
};
