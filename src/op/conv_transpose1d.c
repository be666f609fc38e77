/* conv_transpose1d: the transpose of a convolution, with a bias; what upsamples a signal. The kernel is the one of the
 * convolution that is transposed, so its dimension 0 belongs to the operand: w [C,O,K]. The length of the result is
 * (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1. */
#include "op/conv.h"

hone_t hone_conv_transpose1d(hone_t x, hone_t w, hone_t b, int64_t stride, int64_t padding, int64_t output_padding)
{
    return op_emit(&op_conv_transpose1d, op_has(b) ? 3 : 2, (hone_t[]){x, w, b},
                   &(struct op_attr){.i = {stride, padding, 1, output_padding}}, NULL);
}

static int64_t result_length(const struct op_call *c)
{
    const int64_t *a = c->attr.i, l = c->in[0].shape.dim[2], k = c->in[1].shape.dim[2];
    return (l - 1) * a[CONV_STRIDE] - 2 * a[CONV_PADDING] + a[CONV_DILATION] * (k - 1) + a[CONV_EXTENT] + 1;
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *x = &c->in[0].shape, *w = &c->in[1].shape;
    hone_status s = op_conv_check(c, err);
    if (s != HONE_OK)
        return s;
    if (x->dim[1] != w->dim[0])
        return op_refuse(c, err,
                         "the signal must have the kernel's dimension 0 as channels (the kernel is [in,out,taps])");
    if (x->dim[2] < 1 || w->dim[2] < 1)
        return op_refuse(c, err, "signal and kernel need an element in dimension 2");
    if (c->attr.i[CONV_EXTENT] >= c->attr.i[CONV_STRIDE])
        return op_refuse(c, err, "the output padding must be less than the stride");
    if (c->n_in == 3 && (c->in[2].shape.rank != 1 || c->in[2].shape.dim[0] != w->dim[1]))
        return op_refuse(c, err, "the bias needs one number an output channel (dimension 1 of the kernel)");
    int64_t l = result_length(c);
    if (l < 0 || l > INT32_MAX)
        return op_refuse(c, err, "the length of the result must be 0 to 2^31 - 1");
    out[0] = (hone_type){HONE_F32, HONE_SHAPE(x->dim[0], w->dim[1], l)};
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const int64_t *x = c->in[0].shape.dim, *w = c->in[1].shape.dim, *y = c->out[0].shape.dim, *a = c->attr.i;
    for (int64_t i = 0, n = op_numel(&c->out[0]); i < n; i++)
        out[0][i] = c->n_in == 3 ? in[2][i / y[2] % y[1]] : 0;
    for (int64_t n = 0; n < x[0]; n++)
        for (int64_t i = 0; i < x[1]; i++)
            for (int64_t l = 0; l < x[2]; l++)
                for (int64_t o = 0; o < w[1]; o++)
                    for (int64_t k = 0; k < w[2]; k++) {
                        int64_t to = a[CONV_STRIDE] * l + a[CONV_DILATION] * k - a[CONV_PADDING];
                        if (to >= 0 && to < y[2])
                            out[0][(n * y[1] + o) * y[2] + to] +=
                                in[1][(i * w[1] + o) * w[2] + k] * in[0][(n * x[1] + i) * x[2] + l];
                    }
}

static void expand(const struct op_use *u, hone_t *out)
{
    const struct op_call *c = u->call;
    out[0] = op_emit_conv1d_data_grad(u->in[0], u->in[1], c->attr.i, c->out[0].shape.dim[2]);
    if (c->n_in == 3)
        out[0] = hone_add(out[0], hone_reshape(u->in[2], HONE_SHAPE(c->out[0].shape.dim[1], 1)));
}

static struct op_cost cost(const struct op_call *c)
{
    return op_conv_cost(c, op_numel(&c->in[0]) * c->in[1].shape.dim[1] * c->in[1].shape.dim[2]);
}

#define A(stride, padding, output_padding)                                                                             \
    {                                                                                                                  \
        .i = { stride, padding, 1, output_padding }                                                                    \
    }
static const struct op_case cases[] = {
    {"plain", 3, {OP_F32(2, 4, 5), OP_F32(4, 3, 3), OP_F32(3)}, A(1, 0, 0)},
    {"twice the length", 3, {OP_F32(2, 4, 3), OP_F32(4, 5, 4), OP_F32(5)}, A(2, 1, 0)},
    {"output padding", 3, {OP_F32(2, 3, 4), OP_F32(3, 2, 3), OP_F32(2)}, A(2, 1, 1)},
    {"no bias", 2, {OP_F32(1, 3, 4), OP_F32(3, 2, 5)}, A(1, 2, 0)},
    {"gaps", 3, {OP_F32(1, 2, 3), OP_F32(2, 2, 2), OP_F32(2)}, A(4, 0, 3)},
    {"one tap", 2, {OP_F32(2, 3, 4), OP_F32(3, 2, 1)}, A(1, 0, 0)},
    {"one", 3, {OP_F32(1, 1, 1), OP_F32(1, 1, 1), OP_F32(1)}, A(1, 0, 0)},
    {"dilation", 2, {OP_F32(1, 2, 4), OP_F32(2, 3, 3)}, {.i = {2, 1, 2, 1}}},
    {"wide", 3, {OP_F32(2, 19, 4), OP_F32(19, 17, 4), OP_F32(17)}, A(2, 1, 0)},
    {"empty batch", 3, {OP_F32(0, 3, 4), OP_F32(3, 2, 4), OP_F32(2)}, A(2, 1, 0)},
    {"all cut away", 2, {OP_F32(2, 3, 2), OP_F32(3, 2, 3)}, A(1, 2, 0)},
};
static const struct op_case bad[] = {
    {"channels", 2, {OP_F32(2, 3, 8), OP_F32(4, 3, 3)}, A(1, 0, 0)},
    {"negative length", 2, {OP_F32(2, 3, 1), OP_F32(3, 4, 3)}, A(1, 2, 0)},
    {"no signal", 2, {OP_F32(2, 3, 0), OP_F32(3, 4, 3)}, A(1, 0, 0)},
    {"output padding", 2, {OP_F32(2, 3, 8), OP_F32(3, 4, 3)}, A(2, 0, 2)},
    {"bias", 3, {OP_F32(2, 3, 8), OP_F32(3, 4, 3), OP_F32(3)}, A(1, 0, 0)},
    {"rank", 2, {OP_F32(3, 8), OP_F32(3, 4, 3)}, A(1, 0, 0)},
    {"integers", 2, {OP_I32(2, 3, 8), OP_F32(3, 4, 3)}, A(1, 0, 0)},
};

const struct op_def op_conv_transpose1d = {
    .name = "conv_transpose1d",
    .math = "y[n,o,j] = b[o] + sum over c, l, k with j = stride l + dilation k - padding of w[c,o,k] x[n,c,l]",
    .attr_i = "stride padding dilation output_padding",
    .min_in = 2,
    .max_in = 3,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .no_grad = "differentiated through its expansion",
    .expand = expand,
    .cost = cost,
    .onnx = "ConvTranspose",
    OP_CASES(cases),
    OP_BAD(bad),
};
