/* gather: rows of a table by index; what other places call embedding, take or index_select along the first axis. */
#include <math.h>

#include "op/op.h"

hone_t hone_gather(hone_t x, hone_t index)
{
    return op_emit(&op_gather, 2, (hone_t[]){x, index}, NULL, NULL);
}

/* A kernel refuses indices outside of [0, R) when it meets them; they cannot be known before. */
static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *x = &c->in[0].shape, *index = &c->in[1].shape;
    if (c->in[1].dtype != HONE_I32)
        return op_refuse(c, err, "the index must be i32");
    if (x->rank < 1)
        return op_refuse(c, err, "the operand needs a dimension of rows");
    if (x->dim[0] == 0 && hone_numel(index) > 0)
        return op_refuse(c, err, "there is no row to take");
    if (x->rank - 1 + index->rank > HONE_MAX_RANK)
        return op_refuse(c, err, "the result has more than 8 dimensions");
    out[0] = (hone_type){c->in[0].dtype, *index};
    for (int i = 1; i < x->rank; i++)
        out[0].shape.dim[out[0].shape.rank++] = x->dim[i];
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const int64_t rows = c->in[0].shape.dim[0], n = op_numel(&c->in[1]);
    const int64_t width = n ? op_numel(&c->out[0]) / n : 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++) {
            const double row = in[1][i];
            out[0][i * width + j] = row >= 0 && row < (double)rows ? in[0][(int64_t)row * width + j] : NAN;
        }
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    if (u->call->in[0].dtype == HONE_F32)
        din[0] = hone_scatter_add(hone_full(u->g, u->call->in[0].shape, 0), u->in[1], dout[0]);
}

/* Part i of the n that x has, or x itself. */
static hone_t part(hone_t x, bool many, int64_t i, const hone_shape *s)
{
    return many ? hone_reshape(hone_slice(x, 0, i, 1), *s) : x;
}

static void batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out)
{
    hone_t row[OP_MAX_IN];
    hone_shape one = {u->call->out[0].shape.rank + 1, {1}};
    int have = 0;
    if (!many[0]) { /* one table for all */
        out[0] = hone_gather(u->in[0], u->in[1]);
        return;
    }
    for (int i = 1; i < one.rank; i++)
        one.dim[i] = u->call->out[0].shape.dim[i - 1];
    for (int64_t i = 0; i < n; i++) {
        hone_t x = part(u->in[0], many[0], i, &u->call->in[0].shape);
        hone_t index = part(u->in[1], many[1], i, &u->call->in[1].shape);
        row[have++] = hone_reshape(hone_gather(x, index), one);
        if (have == OP_MAX_IN || i == n - 1) {
            row[0] = hone_concat(have, row, 0);
            have = 1;
        }
    }
    out[0] = row[0];
}

static struct op_cost cost(const struct op_call *c)
{
    const double y = (double)op_numel(&c->out[0]) * (double)hone_dtype_size(c->out[0].dtype);
    return (struct op_cost){0, 2 * y + 4 * (double)op_numel(&c->in[1])};
}

static const struct op_case cases[] = {
    {"rows", 2, {OP_F32(5, 3), OP_I32(4)}, .below = 5},
    {"one row", 2, {OP_F32(5, 3), OP_I32(1)}, .below = 5},
    {"a scalar index", 2, {OP_F32(5, 3), {HONE_I32, {0, {0}}}}, .below = 5},
    {"elements", 2, {OP_F32(7), OP_I32(9)}, .below = 7},
    {"tokens", 2, {OP_F32(11, 4), OP_I32(2, 3)}, .below = 11},
    {"blocks", 2, {OP_F32(4, 3, 2), OP_I32(2, 2)}, .below = 4},
    {"often the same", 2, {OP_F32(2, 3), OP_I32(19)}, .below = 2},
    {"no index", 2, {OP_F32(5, 3), OP_I32(0)}, .below = 5},
    {"no rows, no index", 2, {OP_F32(0, 3), OP_I32(0)}, .below = 5},
    {"no columns", 2, {OP_F32(5, 0), OP_I32(3)}, .below = 5},
    {"pictures", 2, {OP_U8(6, 3, 5), OP_I32(4)}, .below = 6},
    {"indices", 2, {OP_I32(6, 2), OP_I32(4)}, .below = 6},
    {"masks", 2, {OP_BOOL(6, 2), OP_I32(4)}, .below = 2},
    {"wide", 2, {OP_F32(9, 1037), OP_I32(17)}, .below = 9},
};
static const struct op_case bad[] = {
    {"a number", 2, {OP_F32_SCALAR, OP_I32(4)}},
    {"index of floats", 2, {OP_F32(5, 3), OP_F32(4)}},
    {"no rows", 2, {OP_F32(0, 3), OP_I32(2)}},
    {"too many dimensions", 2, {OP_F32(1, 1, 1, 1, 1, 1), OP_I32(1, 1, 1, 1)}},
};

const struct op_def op_gather = {
    .name = "gather",
    .math = "y[i.., j..] = x[index[i..], j..]",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .batch = batch,
    .cost = cost,
    .onnx = "Gather",
    OP_CASES(cases),
    OP_BAD(bad),
};
