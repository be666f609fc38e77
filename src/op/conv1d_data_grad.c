/* conv1d_data_grad: gradient of conv1d by its signal, from the gradient of its result; see op/conv.h. As a map of dy
 * it is the transpose of conv1d, hence also the transposed convolution. */
#include "op/conv.h"

hone_t op_emit_conv1d_data_grad(hone_t dy, hone_t w, const int64_t *attr, int64_t l)
{
    return op_emit(&op_conv1d_data_grad, 2, (hone_t[]){dy, w},
                   &(struct op_attr){.i = {attr[CONV_STRIDE], attr[CONV_PADDING], attr[CONV_DILATION], l}}, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *dy = &c->in[0].shape, *w = &c->in[1].shape;
    hone_status s = op_conv_check(c, err);
    if (s != HONE_OK)
        return s;
    if (dy->dim[1] != w->dim[0])
        return op_refuse(c, err, "the gradient must have the kernel's output channels (its dimension 0)");
    if (w->dim[2] < 1)
        return op_refuse(c, err, "the kernel needs a tap");
    if (op_conv_length(c->attr.i, c->attr.i[CONV_EXTENT], w->dim[2]) != dy->dim[2])
        return op_refuse(c, err, "a signal of this length gives another number of results");
    out[0] = (hone_type){HONE_F32, HONE_SHAPE(dy->dim[0], w->dim[1], c->attr.i[CONV_EXTENT])};
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const int64_t *y = c->in[0].shape.dim, *w = c->in[1].shape.dim, *x = c->out[0].shape.dim, *a = c->attr.i;
    for (int64_t i = 0, n = op_numel(&c->out[0]); i < n; i++)
        out[0][i] = 0;
    for (int64_t n = 0; n < y[0]; n++)
        for (int64_t o = 0; o < y[1]; o++)
            for (int64_t m = 0; m < y[2]; m++)
                for (int64_t i = 0; i < w[1]; i++)
                    for (int64_t k = 0; k < w[2]; k++) {
                        int64_t l = a[CONV_STRIDE] * m + a[CONV_DILATION] * k - a[CONV_PADDING];
                        if (l >= 0 && l < x[2])
                            out[0][(n * x[1] + i) * x[2] + l] +=
                                in[1][(o * w[1] + i) * w[2] + k] * in[0][(n * y[1] + o) * y[2] + m];
                    }
}

/* dx = A(w)' dy:  by dy A(w) g, a convolution; by w what a convolution of g has from dy. */
static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    const struct op_call *c = u->call;
    din[0] = op_emit_conv1d(dout[0], u->in[1], c->attr.i);
    din[1] = op_emit_conv1d_weight_grad(dout[0], u->in[0], c->attr.i, c->in[1].shape.dim[2]);
}

static void expand(const struct op_use *u, hone_t *out)
{
    const struct op_call *c = u->call;
    const int64_t *a = c->attr.i, q = op_conv_row_count(a, a[CONV_EXTENT]);
    hone_t rows = HONE_NONE;
    for (int64_t k = 0; k < c->in[1].shape.dim[2]; k++) {
        hone_t tap = hone_matmul(op_conv_tap(u->in[1], k), u->in[0], true, false);
        hone_t part = op_conv_scatter(tap, a, k, q);
        rows = op_has(rows) ? hone_add(rows, part) : part;
    }
    out[0] = op_conv_unrows(rows, a, a[CONV_EXTENT]);
}

static struct op_cost cost(const struct op_call *c)
{
    return op_conv_cost(c, op_numel(&c->in[0]) * c->in[1].shape.dim[1] * c->in[1].shape.dim[2]);
}

#define A(stride, padding, dilation, length)                                                                           \
    {                                                                                                                  \
        .i = { stride, padding, dilation, length }                                                                     \
    }
static const struct op_case cases[] = {
    {"plain", 2, {OP_F32(2, 4, 6), OP_F32(4, 3, 3)}, A(1, 0, 1, 8)},
    {"same length", 2, {OP_F32(2, 5, 7), OP_F32(5, 3, 5)}, A(1, 2, 1, 7)},
    {"stride 2, odd", 2, {OP_F32(2, 4, 5), OP_F32(4, 3, 3)}, A(2, 1, 1, 9)},
    {"stride 2, even", 2, {OP_F32(1, 3, 4), OP_F32(3, 2, 4)}, A(2, 1, 1, 8)},
    {"stride 3, with a rest", 2, {OP_F32(2, 3, 3), OP_F32(3, 2, 2)}, A(3, 0, 1, 10)},
    {"one tap", 2, {OP_F32(3, 2, 6), OP_F32(2, 5, 1)}, A(1, 0, 1, 6)},
    {"one tap, stride 2, padded", 2, {OP_F32(1, 2, 4), OP_F32(2, 2, 1)}, A(2, 1, 1, 5)},
    {"one", 2, {OP_F32(1, 1, 1), OP_F32(1, 1, 1)}, A(1, 0, 1, 1)},
    {"signal shorter than kernel", 2, {OP_F32(2, 4, 2), OP_F32(4, 3, 5)}, A(1, 2, 1, 2)},
    {"stride and dilation", 2, {OP_F32(1, 2, 4), OP_F32(2, 2, 3)}, A(2, 1, 3, 11)},
    {"wide", 2, {OP_F32(3, 19, 8), OP_F32(19, 17, 5)}, A(1, 2, 1, 8)},
    {"vectors", 2, {OP_F32(2, 32, 4), OP_F32(32, 16, 3)}, A(2, 1, 1, 8)},
    {"empty batch", 2, {OP_F32(0, 4, 8), OP_F32(4, 3, 3)}, A(1, 1, 1, 8)},
    {"no outputs", 2, {OP_F32(2, 0, 4), OP_F32(0, 2, 3)}, A(1, 1, 1, 4)},
    {"no channels", 2, {OP_F32(2, 3, 4), OP_F32(3, 0, 3)}, A(1, 1, 1, 4)},
    {"no signal", 2, {OP_F32(2, 3, 1), OP_F32(3, 2, 2)}, A(1, 1, 1, 0)},
};
static const struct op_case bad[] = {
    {"channels", 2, {OP_F32(2, 3, 6), OP_F32(4, 3, 3)}, A(1, 0, 1, 8)},
    {"length", 2, {OP_F32(2, 4, 6), OP_F32(4, 3, 3)}, A(1, 0, 1, 9)},
    {"negative length", 2, {OP_F32(2, 4, 6), OP_F32(4, 3, 3)}, A(1, 0, 1, -8)},
    {"rank", 2, {OP_F32(2, 4, 6), OP_F32(4, 3)}, A(1, 0, 1, 8)},
    {"integers", 2, {OP_I32(2, 4, 6), OP_F32(4, 3, 3)}, A(1, 0, 1, 8)},
};

const struct op_def op_conv1d_data_grad = {
    .name = "conv1d_data_grad",
    .math = "dx[n,c,l] = sum over o, m, k with l = stride m + dilation k - padding of w[o,c,k] dy[n,o,m]",
    .attr_i = "stride padding dilation length",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .expand = expand,
    .cost = cost,
    .no_onnx = "training only; exported as ConvTranspose where conv_transpose1d made it",
    OP_CASES(cases),
    OP_BAD(bad),
};
