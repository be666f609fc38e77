/* The operations that bring values into a graph and take them out: inputs, constants, random buffers, tensors of
 * stores, writes to stores. The executor makes their values; they have no reference and no kernel.
 *
 * Sources carry the type of their result in the attributes: dtype, rank, eight dimensions. */
#include "op/source.h"

static hone_status source_shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    *out = op_source_type(&c->attr);
    if (hone_numel(&out->shape) < 0 || hone_dtype_size(out->dtype) == 0)
        return err_set(err, HONE_E_SHAPE, c->def->name, "a shape has 0 to 8 dimensions, none negative");
    return HONE_OK;
}

struct op_attr op_source_attr(hone_type t)
{
    struct op_attr a = {.i = {t.dtype, t.shape.rank}};
    for (int i = 0; i < t.shape.rank && i < HONE_MAX_RANK; i++)
        a.i[2 + i] = t.shape.dim[i];
    return a;
}

hone_type op_source_type(const struct op_attr *a)
{
    hone_type t = {(hone_dtype)a->i[0], {(int)a->i[1], {0}}};
    if (t.shape.rank < 0 || t.shape.rank > HONE_MAX_RANK)
        t.shape.rank = -1;
    for (int i = 0; i < t.shape.rank; i++)
        t.shape.dim[i] = a->i[2 + i];
    return t;
}

static hone_status store_shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    (void)out;
    if (!op_all_f32(c))
        return op_refuse(c, err, "a store holds f32");
    return HONE_OK;
}

#define SOURCE_DIMS "dtype rank d0 d1 d2 d3 d4 d5 d6 d7"

const struct op_def op_input = {
    .name = "input",
    .math = "y = what the run was given",
    .attr_i = SOURCE_DIMS " index below",
    .n_out = 1,
    .flags = OP_SOURCE,
    .shape = source_shape,
    .no_grad = "a source has no operand",
    .no_expand = "a source",
    .no_onnx = "a graph input",
};

const struct op_def op_constant = {
    .name = "constant",
    .math = "y = fixed values",
    .attr_i = SOURCE_DIMS,
    .n_out = 1,
    .flags = OP_SOURCE,
    .shape = source_shape,
    .no_grad = "a source has no operand",
    .no_expand = "a source",
    .no_onnx = "an initializer",
};

const struct op_def op_random = {
    .name = "random",
    .math = "y ~ normal, uniform [0,1) or integers below a bound",
    .attr_i = SOURCE_DIMS " kind below",
    .n_out = 1,
    .flags = OP_SOURCE,
    .shape = source_shape,
    .no_grad = "a source has no operand",
    .no_expand = "a source, filled on the host",
    .no_onnx = "a graph input: noise is given from outside",
};

const struct op_def op_slot = {
    .name = "slot",
    .math = "y = a tensor, or a group, of a store, as it was when the run began",
    .attr_i = SOURCE_DIMS " role tensor",
    .n_out = 1,
    .flags = OP_SOURCE,
    .shape = source_shape,
    .no_grad = "a source has no operand",
    .no_expand = "a source",
    .no_onnx = "an initializer",
};

const struct op_def op_store = {
    .name = "store",
    .math = "a tensor, or a group, of a store = x",
    .attr_i = "role tensor",
    .min_in = 1,
    .max_in = 1,
    .n_out = 0,
    .flags = OP_EFFECT,
    .shape = store_shape,
    .no_grad = "an effect has no result",
    .no_expand = "an effect",
    .no_onnx = "training only",
};
