/* linear: x w' + b over the last dimension; a dense layer, its weights as [out, in]. */
#include "op/op.h"

hone_t hone_linear(hone_t x, hone_t w, hone_t b)
{
    return op_emit(&op_linear, op_has(b) ? 3 : 2, (hone_t[]){x, w, b}, NULL, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *x = &c->in[0].shape, *w = &c->in[1].shape;
    if (!op_all_f32(c))
        return op_refuse(c, err, "all operands must be f32");
    if (x->rank < 1)
        return op_refuse(c, err, "the first operand needs a dimension");
    if (w->rank != 2)
        return op_refuse(c, err, "the weights need two dimensions, [out, in]");
    if (x->dim[x->rank - 1] != w->dim[1])
        return op_refuse(c, err, "the last dimension must be that of the weights [out, in]");
    if (c->n_in == 3 && (c->in[2].shape.rank != 1 || c->in[2].shape.dim[0] != w->dim[0]))
        return op_refuse(c, err, "the bias needs one number an output (dimension 0 of the weights)");
    out[0] = c->in[0];
    out[0].shape.dim[x->rank - 1] = w->dim[0];
    return HONE_OK;
}

/* x as [rows, last]: one product then serves all leading dimensions. */
static hone_t rows_of(hone_t x)
{
    hone_shape s = hone_type_of(x).shape;
    int64_t rows = 1;
    if (s.rank == 2)
        return x;
    for (int i = 0; i < s.rank - 1; i++)
        rows *= s.dim[i];
    return hone_reshape(x, HONE_SHAPE(rows, s.dim[s.rank - 1]));
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const int64_t n = c->in[1].shape.dim[0], k = c->in[1].shape.dim[1];
    for (int64_t at = 0, end = op_numel(&c->out[0]); at < end; at++) {
        int64_t row = at / n, o = at % n;
        double s = c->n_in == 3 ? in[2][o] : 0;
        for (int64_t p = 0; p < k; p++)
            s += in[0][row * k + p] * in[1][o * k + p];
        out[0][at] = s;
    }
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    hone_t d = rows_of(dout[0]);
    din[0] = hone_reshape(hone_matmul(d, u->in[1], false, false), hone_type_of(u->in[0]).shape);
    din[1] = hone_matmul(d, rows_of(u->in[0]), true, false);
    if (u->call->n_in == 3)
        din[2] = hone_sum(d, HONE_AXIS(0), false);
}

static void expand(const struct op_use *u, hone_t *out)
{
    hone_t y = hone_matmul(rows_of(u->in[0]), u->in[1], false, true);
    if (u->call->n_in == 3)
        y = hone_add(y, u->in[2]);
    out[0] = hone_reshape(y, u->call->out[0].shape);
}

/* With weights for all it is the same operation with one more leading dimension. With weights of their own the rows
 * of each are a matrix of a batched product. */
static void batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out)
{
    const hone_shape *to = &u->call->out[0].shape, *w = &u->call->in[1].shape;
    hone_shape s = {to->rank + 1, {n}};
    int64_t rows = 1;
    for (int i = 0; i < to->rank; i++) {
        s.dim[i + 1] = to->dim[i];
        rows *= i < to->rank - 1 ? to->dim[i] : 1;
    }
    bool with_bias = u->call->n_in == 3;
    if (!many[1] && !(with_bias && many[2])) {
        out[0] = hone_linear(u->in[0], u->in[1], with_bias ? u->in[2] : HONE_NONE);
        return;
    }
    hone_t x = hone_reshape(u->in[0], many[0] ? HONE_SHAPE(n, rows, w->dim[1]) : HONE_SHAPE(1, rows, w->dim[1]));
    hone_t y = hone_matmul(x, u->in[1], false, true);
    if (with_bias)
        y = hone_add(y, many[2] ? hone_reshape(u->in[2], HONE_SHAPE(n, 1, w->dim[0])) : u->in[2]);
    out[0] = hone_reshape(y, s);
}

static struct op_cost cost(const struct op_call *c)
{
    double out = (double)op_numel(&c->out[0]), bytes = out;
    for (int i = 0; i < c->n_in; i++)
        bytes += (double)op_numel(&c->in[i]);
    return (struct op_cost){2 * (double)c->in[1].shape.dim[1] * out, 4 * bytes};
}

static const struct op_case cases[] = {
    {"plain", 3, {OP_F32(3, 5), OP_F32(4, 5), OP_F32(4)}},
    {"no bias", 2, {OP_F32(3, 5), OP_F32(4, 5)}},
    {"vector", 3, {OP_F32(5), OP_F32(3, 5), OP_F32(3)}},
    {"sequence", 3, {OP_F32(2, 3, 5), OP_F32(4, 5), OP_F32(4)}},
    {"many dimensions", 2, {OP_F32(2, 1, 3, 2, 3), OP_F32(2, 3)}},
    {"one", 3, {OP_F32(1, 1), OP_F32(1, 1), OP_F32(1)}},
    {"row", 3, {OP_F32(1, 33), OP_F32(17, 33), OP_F32(17)}},
    {"larger", 3, {OP_F32(33, 65), OP_F32(47, 65), OP_F32(47)}},
    {"vectors", 3, {OP_F32(16, 32), OP_F32(64, 32), OP_F32(64)}},
    {"long", 3, {OP_F32(2, 1037), OP_F32(3, 1037), OP_F32(3)}},
    {"no rows", 3, {OP_F32(0, 5), OP_F32(4, 5), OP_F32(4)}},
    {"no inputs", 3, {OP_F32(3, 0), OP_F32(4, 0), OP_F32(4)}},
    {"no outputs", 3, {OP_F32(3, 5), OP_F32(0, 5), OP_F32(0)}},
};
static const struct op_case bad[] = {
    {"inputs", 2, {OP_F32(3, 5), OP_F32(5, 4)}},           {"bias", 3, {OP_F32(3, 5), OP_F32(4, 5), OP_F32(5)}},
    {"rank of the weights", 2, {OP_F32(3, 5), OP_F32(5)}}, {"scalar", 2, {OP_F32_SCALAR, OP_F32(4, 5)}},
    {"integers", 2, {OP_F32(3, 5), OP_I32(4, 5)}},
};

const struct op_def op_linear = {
    .name = "linear",
    .math = "y = x w' + b",
    .min_in = 2,
    .max_in = 3,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .expand = expand,
    .batch = batch,
    .cost = cost,
    .no_onnx = "exported as MatMul, Add",
    OP_CASES(cases),
    OP_BAD(bad),
};
