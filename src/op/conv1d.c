/* conv1d: cross-correlation of a signal with a kernel (what networks call convolution), and the parts that its two
 * transposes share with it; see op/conv.h. */
#include "op/conv.h"

hone_t hone_conv1d(hone_t x, hone_t w, hone_t b, int64_t stride, int64_t padding, int64_t dilation)
{
    return op_emit(&op_conv1d, op_has(b) ? 3 : 2, (hone_t[]){x, w, b},
                   &(struct op_attr){.i = {stride, padding, dilation}}, NULL);
}

hone_t op_emit_conv1d(hone_t x, hone_t w, const int64_t *attr)
{
    return hone_conv1d(x, w, HONE_NONE, attr[CONV_STRIDE], attr[CONV_PADDING], attr[CONV_DILATION]);
}

int64_t op_conv_length(const int64_t *attr, int64_t l, int64_t k)
{
    int64_t room = l + 2 * attr[CONV_PADDING] - attr[CONV_DILATION] * (k - 1) - 1;
    return room < 0 ? -1 : room / attr[CONV_STRIDE] + 1;
}

hone_status op_conv_check(const struct op_call *c, hone_err *err)
{
    const int64_t *a = c->attr.i;
    if (!op_all_f32(c))
        return op_refuse(c, err, "all operands must be f32");
    if (c->in[0].shape.rank != 3 || c->in[1].shape.rank != 3)
        return op_refuse(c, err, "the first two operands need three dimensions");
    if (a[CONV_STRIDE] < 1 || a[CONV_STRIDE] > INT32_MAX || a[CONV_DILATION] < 1 || a[CONV_DILATION] > INT32_MAX)
        return op_refuse(c, err, "stride and dilation are 1 to 2^31 - 1");
    if (a[CONV_PADDING] < 0 || a[CONV_PADDING] > INT32_MAX)
        return op_refuse(c, err, "padding is 0 to 2^31 - 1");
    for (int i = 0; i < 6; i++) /* so that no length overflows */
        if (c->in[i / 3].shape.dim[i % 3] > INT32_MAX)
            return op_refuse(c, err, "dimensions are at most 2^31 - 1");
    if (a[CONV_EXTENT] < 0 || a[CONV_EXTENT] > INT32_MAX)
        return op_refuse(c, err, "the extent is 0 to 2^31 - 1");
    return HONE_OK;
}

struct op_cost op_conv_cost(const struct op_call *c, int64_t products)
{
    struct op_cost k = {2 * (double)products, 4 * (double)op_numel(&c->out[0])};
    for (int i = 0; i < c->n_in; i++)
        k.bytes += 4 * (double)op_numel(&c->in[i]);
    return k;
}

int64_t op_conv_pairs(int64_t m, int64_t taps, int64_t l, int64_t stride, int64_t padding)
{
    int64_t n = 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t k = 0; k < taps; k++)
            n += stride * i + k >= padding && stride * i + k - padding < l;
    return n;
}

int64_t op_conv_row_count(const int64_t *attr, int64_t l)
{
    return (l + 2 * attr[CONV_PADDING] + attr[CONV_STRIDE] - 1) / attr[CONV_STRIDE];
}

hone_t op_conv_rows(hone_t x, const int64_t *attr)
{
    hone_shape s = hone_type_of(x).shape;
    int64_t q = op_conv_row_count(attr, s.dim[2]), stride = attr[CONV_STRIDE], p = attr[CONV_PADDING];
    return hone_reshape(hone_pad(x, 2, p, q * stride - p - s.dim[2], 0), HONE_SHAPE(s.dim[0], s.dim[1], q, stride));
}

hone_t op_conv_unrows(hone_t rows, const int64_t *attr, int64_t l)
{
    hone_shape s = hone_type_of(rows).shape;
    return hone_slice(hone_reshape(rows, HONE_SHAPE(s.dim[0], s.dim[1], s.dim[2] * s.dim[3])), 2, attr[CONV_PADDING],
                      l);
}

hone_t op_conv_gather(hone_t rows, const int64_t *attr, int64_t k, int64_t m)
{
    hone_shape s = hone_type_of(rows).shape;
    int64_t at = k * attr[CONV_DILATION], stride = attr[CONV_STRIDE];
    hone_t column = stride == 1 ? rows : hone_slice(rows, 3, at % stride, 1);
    return hone_reshape(hone_slice(column, 2, at / stride, m), HONE_SHAPE(s.dim[0], s.dim[1], m));
}

hone_t op_conv_scatter(hone_t tap, const int64_t *attr, int64_t k, int64_t rows)
{
    hone_shape s = hone_type_of(tap).shape;
    int64_t at = k * attr[CONV_DILATION], stride = attr[CONV_STRIDE], m = s.dim[2];
    hone_t column = hone_reshape(tap, HONE_SHAPE(s.dim[0], s.dim[1], m, 1));
    column = hone_pad(column, 3, at % stride, stride - 1 - at % stride, 0);
    return hone_pad(column, 2, at / stride, rows - at / stride - m, 0);
}

hone_t op_conv_tap(hone_t w, int64_t k)
{
    hone_shape s = hone_type_of(w).shape;
    return hone_reshape(hone_slice(w, 2, k, 1), HONE_SHAPE(s.dim[0], s.dim[1]));
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *x = &c->in[0].shape, *w = &c->in[1].shape;
    hone_status s = op_conv_check(c, err);
    if (s != HONE_OK)
        return s;
    if (x->dim[1] != w->dim[1])
        return op_refuse(c, err, "signal and kernel must have the same channels (dimension 1 of both)");
    if (w->dim[2] < 1)
        return op_refuse(c, err, "the kernel needs a tap");
    if (c->n_in == 3 && (c->in[2].shape.rank != 1 || c->in[2].shape.dim[0] != w->dim[0]))
        return op_refuse(c, err, "the bias needs one number an output channel (dimension 0 of the kernel)");
    int64_t m = op_conv_length(c->attr.i, x->dim[2], w->dim[2]);
    if (m < 0)
        return op_refuse(c, err, "the kernel must not be longer than the padded signal");
    out[0] = (hone_type){HONE_F32, HONE_SHAPE(x->dim[0], w->dim[0], m)};
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const int64_t *x = c->in[0].shape.dim, *w = c->in[1].shape.dim, *y = c->out[0].shape.dim, *a = c->attr.i;
    double *at = out[0];
    for (int64_t n = 0; n < y[0]; n++)
        for (int64_t o = 0; o < y[1]; o++)
            for (int64_t m = 0; m < y[2]; m++) {
                double s = c->n_in == 3 ? in[2][o] : 0;
                for (int64_t i = 0; i < w[1]; i++)
                    for (int64_t k = 0; k < w[2]; k++) {
                        int64_t l = a[CONV_STRIDE] * m + a[CONV_DILATION] * k - a[CONV_PADDING];
                        if (l >= 0 && l < x[2])
                            s += in[1][(o * w[1] + i) * w[2] + k] * in[0][(n * x[1] + i) * x[2] + l];
                    }
                *at++ = s;
            }
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    const struct op_call *c = u->call;
    din[0] = op_emit_conv1d_data_grad(dout[0], u->in[1], c->attr.i, c->in[0].shape.dim[2]);
    din[1] = op_emit_conv1d_weight_grad(u->in[0], dout[0], c->attr.i, c->in[1].shape.dim[2]);
    if (c->n_in == 3)
        din[2] = hone_sum(dout[0], HONE_AXIS(0) | HONE_AXIS(2), false);
}

/* One product a tap. */
static void expand(const struct op_use *u, hone_t *out)
{
    const struct op_call *c = u->call;
    hone_t rows = op_conv_rows(u->in[0], c->attr.i), y = HONE_NONE;
    for (int64_t k = 0; k < c->in[1].shape.dim[2]; k++) {
        hone_t tap = op_conv_gather(rows, c->attr.i, k, c->out[0].shape.dim[2]);
        hone_t part = hone_matmul(op_conv_tap(u->in[1], k), tap, false, false);
        y = op_has(y) ? hone_add(y, part) : part;
    }
    if (c->n_in == 3)
        y = hone_add(y, hone_reshape(u->in[2], HONE_SHAPE(c->out[0].shape.dim[1], 1)));
    out[0] = y;
}

static struct op_cost cost(const struct op_call *c)
{
    return op_conv_cost(c, op_numel(&c->out[0]) * c->in[1].shape.dim[1] * c->in[1].shape.dim[2]);
}

#define A(stride, padding, dilation)                                                                                   \
    {                                                                                                                  \
        .i = { stride, padding, dilation }                                                                             \
    }
static const struct op_case cases[] = {
    {"plain", 3, {OP_F32(2, 3, 8), OP_F32(4, 3, 3), OP_F32(4)}, A(1, 0, 1)},
    {"same length", 3, {OP_F32(2, 3, 7), OP_F32(5, 3, 5), OP_F32(5)}, A(1, 2, 1)},
    {"no bias", 2, {OP_F32(2, 3, 7), OP_F32(5, 3, 3)}, A(1, 1, 1)},
    {"stride 2, odd", 3, {OP_F32(2, 3, 9), OP_F32(4, 3, 3), OP_F32(4)}, A(2, 1, 1)},
    {"stride 2, even", 3, {OP_F32(1, 2, 8), OP_F32(3, 2, 4), OP_F32(3)}, A(2, 1, 1)},
    {"stride 3, with a rest", 2, {OP_F32(2, 2, 10), OP_F32(3, 2, 2)}, A(3, 0, 1)},
    {"one tap", 3, {OP_F32(3, 5, 6), OP_F32(2, 5, 1), OP_F32(2)}, A(1, 0, 1)},
    {"one tap, stride 2, padded", 2, {OP_F32(1, 2, 5), OP_F32(2, 2, 1)}, A(2, 1, 1)},
    {"one", 3, {OP_F32(1, 1, 1), OP_F32(1, 1, 1), OP_F32(1)}, A(1, 0, 1)},
    {"signal shorter than kernel", 3, {OP_F32(2, 3, 2), OP_F32(4, 3, 5), OP_F32(4)}, A(1, 2, 1)},
    {"dilation", 2, {OP_F32(1, 2, 9), OP_F32(2, 2, 3)}, A(1, 2, 2)},
    {"stride and dilation", 3, {OP_F32(1, 2, 11), OP_F32(2, 2, 3), OP_F32(2)}, A(2, 1, 3)},
    {"wide", 3, {OP_F32(3, 17, 8), OP_F32(19, 17, 5), OP_F32(19)}, A(1, 2, 1)},
    {"vectors", 3, {OP_F32(2, 16, 8), OP_F32(32, 16, 3), OP_F32(32)}, A(2, 1, 1)},
    {"empty batch", 3, {OP_F32(0, 3, 8), OP_F32(4, 3, 3), OP_F32(4)}, A(1, 1, 1)},
    {"no channels", 3, {OP_F32(2, 0, 4), OP_F32(3, 0, 3), OP_F32(3)}, A(1, 1, 1)},
    {"no outputs", 3, {OP_F32(2, 2, 4), OP_F32(0, 2, 3), OP_F32(0)}, A(1, 1, 1)},
    {"no signal", 2, {OP_F32(2, 2, 0), OP_F32(3, 2, 2)}, A(1, 1, 1)},
};
static const struct op_case bad[] = {
    {"channels", 2, {OP_F32(2, 3, 8), OP_F32(4, 2, 3)}, A(1, 0, 1)},
    {"kernel too long", 2, {OP_F32(2, 3, 2), OP_F32(4, 3, 5)}, A(1, 1, 1)},
    {"dilated kernel too long", 2, {OP_F32(2, 3, 4), OP_F32(4, 3, 3)}, A(1, 0, 2)},
    {"no tap", 2, {OP_F32(2, 3, 8), OP_F32(4, 3, 0)}, A(1, 1, 1)},
    {"bias", 3, {OP_F32(2, 3, 8), OP_F32(4, 3, 3), OP_F32(3)}, A(1, 0, 1)},
    {"rank", 2, {OP_F32(3, 8), OP_F32(4, 3, 3)}, A(1, 0, 1)},
    {"stride 0", 2, {OP_F32(2, 3, 8), OP_F32(4, 3, 3)}, A(0, 0, 1)},
    {"dilation 0", 2, {OP_F32(2, 3, 8), OP_F32(4, 3, 3)}, A(1, 0, 0)},
    {"negative padding", 2, {OP_F32(2, 3, 8), OP_F32(4, 3, 3)}, A(1, -1, 1)},
    {"integers", 2, {OP_F32(2, 3, 8), OP_I32(4, 3, 3)}, A(1, 0, 1)},
};

const struct op_def op_conv1d = {
    .name = "conv1d",
    .math = "y[n,o,m] = b[o] + sum over c, k of w[o,c,k] x[n,c,stride m + dilation k - padding]",
    .attr_i = "stride padding dilation",
    .min_in = 2,
    .max_in = 3,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .expand = expand,
    .cost = cost,
    .onnx = "Conv",
    OP_CASES(cases),
    OP_BAD(bad),
};
