/* scatter_add: rows added to a base, each at its index: the transpose of gather. */
#include "op/op.h"

hone_t hone_scatter_add(hone_t base, hone_t index, hone_t src)
{
    return op_emit(&op_scatter_add, 3, (hone_t[]){base, index, src}, NULL, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *base = &c->in[0].shape, *index = &c->in[1].shape;
    hone_shape want = *index;
    if (c->in[0].dtype != HONE_F32 || c->in[2].dtype != HONE_F32)
        return op_refuse(c, err, "base and source must be f32");
    if (c->in[1].dtype != HONE_I32)
        return op_refuse(c, err, "the index must be i32");
    if (base->rank < 1)
        return op_refuse(c, err, "the base needs a dimension of rows");
    if (base->dim[0] == 0 && hone_numel(index) > 0)
        return op_refuse(c, err, "there is no row to add to");
    if (base->rank - 1 + index->rank > HONE_MAX_RANK)
        return op_refuse(c, err, "the source has more than 8 dimensions");
    for (int i = 1; i < base->rank; i++)
        want.dim[want.rank++] = base->dim[i];
    if (!hone_shape_equal(&c->in[2].shape, &want))
        return op_refuse(c, err, "the source must have the dimensions of the index, then those of a row of the base");
    out[0] = c->in[0];
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const int64_t all = op_numel(&c->in[0]), n = op_numel(&c->in[1]), width = n ? op_numel(&c->in[2]) / n : 0;
    for (int64_t i = 0; i < all; i++)
        out[0][i] = in[0][i];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++)
            if (in[1][i] >= 0 && in[1][i] < (double)c->in[0].shape.dim[0])
                out[0][(int64_t)in[1][i] * width + j] += in[2][i * width + j];
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    din[0] = dout[0];
    din[2] = hone_gather(dout[0], u->in[1]);
}

static struct op_cost cost(const struct op_call *c)
{
    const double x = (double)op_numel(&c->in[2]);
    return (struct op_cost){x, 4 * (x + 2 * (double)op_numel(&c->out[0]) + (double)op_numel(&c->in[1]))};
}

static const struct op_case cases[] = {
    {"rows", 3, {OP_F32(5, 3), OP_I32(4), OP_F32(4, 3)}, .below = 5},
    {"one row", 3, {OP_F32(5, 3), OP_I32(1), OP_F32(1, 3)}, .below = 5},
    {"a scalar index", 3, {OP_F32(5, 3), {HONE_I32, {0, {0}}}, OP_F32(3)}, .below = 5},
    {"elements", 3, {OP_F32(7), OP_I32(9), OP_F32(9)}, .below = 7},
    {"tokens", 3, {OP_F32(11, 4), OP_I32(2, 3), OP_F32(2, 3, 4)}, .below = 11},
    {"blocks", 3, {OP_F32(4, 3, 2), OP_I32(2, 2), OP_F32(2, 2, 3, 2)}, .below = 4},
    {"all to one row", 3, {OP_F32(3, 5), OP_I32(300), OP_F32(300, 5)}, .below = 1},
    {"often the same", 3, {OP_F32(2, 33), OP_I32(65), OP_F32(65, 33)}, .below = 2},
    {"no index", 3, {OP_F32(5, 3), OP_I32(0), OP_F32(0, 3)}, .below = 5},
    {"no rows", 3, {OP_F32(0, 3), OP_I32(0), OP_F32(0, 3)}, .below = 5},
    {"no columns", 3, {OP_F32(5, 0), OP_I32(3), OP_F32(3, 0)}, .below = 5},
    {"wide", 3, {OP_F32(9, 1037), OP_I32(17), OP_F32(17, 1037)}, .below = 9},
};
static const struct op_case bad[] = {
    {"a number", 3, {OP_F32_SCALAR, OP_I32(4), OP_F32(4)}},
    {"index of floats", 3, {OP_F32(5, 3), OP_F32(4), OP_F32(4, 3)}},
    {"integers", 3, {OP_I32(5, 3), OP_I32(4), OP_I32(4, 3)}},
    {"width", 3, {OP_F32(5, 3), OP_I32(4), OP_F32(4, 2)}},
    {"count", 3, {OP_F32(5, 3), OP_I32(4), OP_F32(5, 3)}},
    {"no rows", 3, {OP_F32(0, 3), OP_I32(2), OP_F32(2, 3)}},
};

const struct op_def op_scatter_add = {
    .name = "scatter_add",
    .math = "y[r, j..] = base[r, j..] + sum over i.. with index[i..] = r of src[i.., j..]",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .cost = cost,
    .no_onnx = "training only; ScatterND with reduction add",
    OP_CASES(cases),
    OP_BAD(bad),
};
