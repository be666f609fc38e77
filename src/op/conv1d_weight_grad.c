/* conv1d_weight_grad: gradient of conv1d by its kernel, from the gradient of its result; see op/conv.h. */
#include "op/conv.h"

hone_t op_emit_conv1d_weight_grad(hone_t x, hone_t dy, const int64_t *attr, int64_t k)
{
    return op_emit(&op_conv1d_weight_grad, 2, (hone_t[]){x, dy},
                   &(struct op_attr){.i = {attr[CONV_STRIDE], attr[CONV_PADDING], attr[CONV_DILATION], k}}, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *x = &c->in[0].shape, *dy = &c->in[1].shape;
    hone_status s = op_conv_check(c, err);
    if (s != HONE_OK)
        return s;
    if (x->dim[0] != dy->dim[0])
        return op_refuse(c, err, "signal and gradient must have the same batch (dimension 0 of both)");
    if (c->attr.i[CONV_EXTENT] < 1)
        return op_refuse(c, err, "the kernel needs a tap");
    if (op_conv_length(c->attr.i, x->dim[2], c->attr.i[CONV_EXTENT]) != dy->dim[2])
        return op_refuse(c, err, "a kernel of this length gives another number of results");
    out[0] = (hone_type){HONE_F32, HONE_SHAPE(dy->dim[1], x->dim[1], c->attr.i[CONV_EXTENT])};
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const int64_t *x = c->in[0].shape.dim, *y = c->in[1].shape.dim, *w = c->out[0].shape.dim, *a = c->attr.i;
    double *at = out[0];
    for (int64_t o = 0; o < w[0]; o++)
        for (int64_t i = 0; i < w[1]; i++)
            for (int64_t k = 0; k < w[2]; k++) {
                double s = 0;
                for (int64_t n = 0; n < y[0]; n++)
                    for (int64_t m = 0; m < y[2]; m++) {
                        int64_t l = a[CONV_STRIDE] * m + a[CONV_DILATION] * k - a[CONV_PADDING];
                        if (l >= 0 && l < x[2])
                            s += in[0][(n * x[1] + i) * x[2] + l] * in[1][(n * y[1] + o) * y[2] + m];
                    }
                *at++ = s;
            }
}

/* dw is to a kernel g what conv1d(x, g) is to dy:  <g, dw> = <conv1d(x, g), dy>. */
static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    const struct op_call *c = u->call;
    din[0] = op_emit_conv1d_data_grad(u->in[1], dout[0], c->attr.i, c->in[0].shape.dim[2]);
    din[1] = op_emit_conv1d(u->in[0], dout[0], c->attr.i);
}

/* One product a tap and sample, summed over samples, put at its place of the kernel. */
static void expand(const struct op_use *u, hone_t *out)
{
    const struct op_call *c = u->call;
    const hone_shape *w = &c->out[0].shape;
    hone_t rows = op_conv_rows(u->in[0], c->attr.i), dw = HONE_NONE;
    for (int64_t k = 0; k < w->dim[2]; k++) {
        hone_t tap = op_conv_gather(rows, c->attr.i, k, c->in[1].shape.dim[2]);
        hone_t one = hone_sum(hone_matmul(u->in[1], tap, false, true), HONE_AXIS(0), false);
        hone_t part = hone_pad(hone_reshape(one, HONE_SHAPE(w->dim[0], w->dim[1], 1)), 2, k, w->dim[2] - 1 - k, 0);
        dw = op_has(dw) ? hone_add(dw, part) : part;
    }
    out[0] = dw;
}

static struct op_cost cost(const struct op_call *c)
{
    return op_conv_cost(c, op_numel(&c->in[1]) * c->out[0].shape.dim[1] * c->out[0].shape.dim[2]);
}

#define A(stride, padding, dilation, taps)                                                                             \
    {                                                                                                                  \
        .i = { stride, padding, dilation, taps }                                                                       \
    }
static const struct op_case cases[] = {
    {"plain", 2, {OP_F32(2, 3, 8), OP_F32(2, 4, 6)}, A(1, 0, 1, 3)},
    {"same length", 2, {OP_F32(2, 3, 7), OP_F32(2, 5, 7)}, A(1, 2, 1, 5)},
    {"stride 2, odd", 2, {OP_F32(2, 3, 9), OP_F32(2, 4, 5)}, A(2, 1, 1, 3)},
    {"stride 2, even", 2, {OP_F32(1, 2, 8), OP_F32(1, 3, 4)}, A(2, 1, 1, 4)},
    {"stride 3, with a rest", 2, {OP_F32(2, 2, 10), OP_F32(2, 3, 3)}, A(3, 0, 1, 2)},
    {"one tap", 2, {OP_F32(3, 5, 6), OP_F32(3, 2, 6)}, A(1, 0, 1, 1)},
    {"one tap, stride 2, padded", 2, {OP_F32(1, 2, 5), OP_F32(1, 2, 4)}, A(2, 1, 1, 1)},
    {"one", 2, {OP_F32(1, 1, 1), OP_F32(1, 1, 1)}, A(1, 0, 1, 1)},
    {"signal shorter than kernel", 2, {OP_F32(2, 3, 2), OP_F32(2, 4, 2)}, A(1, 2, 1, 5)},
    {"stride and dilation", 2, {OP_F32(1, 2, 11), OP_F32(1, 2, 4)}, A(2, 1, 3, 3)},
    {"wide", 2, {OP_F32(3, 17, 8), OP_F32(3, 19, 8)}, A(1, 2, 1, 5)},
    {"vectors", 2, {OP_F32(2, 16, 8), OP_F32(2, 32, 4)}, A(2, 1, 1, 3)},
    {"empty batch", 2, {OP_F32(0, 3, 8), OP_F32(0, 4, 8)}, A(1, 1, 1, 3)},
    {"no outputs", 2, {OP_F32(2, 2, 4), OP_F32(2, 0, 4)}, A(1, 1, 1, 3)},
    {"no channels", 2, {OP_F32(2, 0, 4), OP_F32(2, 3, 4)}, A(1, 1, 1, 3)},
    {"no signal", 2, {OP_F32(2, 2, 0), OP_F32(2, 3, 1)}, A(1, 1, 1, 2)},
};
static const struct op_case bad[] = {
    {"batch", 2, {OP_F32(2, 3, 8), OP_F32(3, 4, 6)}, A(1, 0, 1, 3)},
    {"taps", 2, {OP_F32(2, 3, 8), OP_F32(2, 4, 6)}, A(1, 0, 1, 4)},
    {"no tap", 2, {OP_F32(2, 3, 8), OP_F32(2, 4, 9)}, A(1, 0, 1, 0)},
    {"rank", 2, {OP_F32(2, 3), OP_F32(2, 4, 6)}, A(1, 0, 1, 3)},
    {"integers", 2, {OP_F32(2, 3, 8), OP_I32(2, 4, 6)}, A(1, 0, 1, 3)},
};

const struct op_def op_conv1d_weight_grad = {
    .name = "conv1d_weight_grad",
    .math = "dw[o,c,k] = sum over n, m of x[n,c,stride m + dilation k - padding] dy[n,o,m]",
    .attr_i = "stride padding dilation taps",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .expand = expand,
    .cost = cost,
    .no_onnx = "training only",
    OP_CASES(cases),
    OP_BAD(bad),
};
