/* time_conv: conv1d with time first; see op/time_conv.h. */
#include "op/time_conv.h"

hone_status op_time_conv_check(const struct op_call *c, hone_err *err)
{
    if (!op_all_f32(c) || c->in[0].shape.rank != 3 || c->in[1].shape.rank != 3)
        return op_refuse(c, err, "wants two f32 operands of three dimensions, time first");
    if (c->attr.i[TC_STRIDE] < 1 || c->attr.i[TC_PADDING] < 0)
        return op_refuse(c, err, "the stride must be 1 or more, the padding not negative");
    return HONE_OK;
}

hone_t op_time_last(hone_t x)
{
    return hone_permute(x, (const int[]){1, 2, 0});
}

hone_t op_time_first(hone_t x)
{
    return hone_permute(x, (const int[]){2, 0, 1});
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const int64_t *x = c->in[0].shape.dim, *w = c->in[1].shape.dim;
    int64_t a[4];
    hone_status s = op_time_conv_check(c, err);
    if (s != HONE_OK)
        return s;
    op_time_conv_attr(c->attr.i, a);
    const int64_t m = op_conv_length(a, x[0], w[0]);
    if (x[2] != w[1] || m < 1)
        return op_refuse(c, err, "signal [T,B,C] and kernel [K,C,O] must have the same channels, and give a result");
    if (c->n_in == 3 && (c->in[2].shape.rank != 1 || c->in[2].shape.dim[0] != w[2]))
        return op_refuse(c, err, "the bias needs one number an output channel");
    out[0] = (hone_type){HONE_F32, HONE_SHAPE(m, x[1], w[2])};
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const int64_t *x = c->in[0].shape.dim, *w = c->in[1].shape.dim, *y = c->out[0].shape.dim, *a = c->attr.i;
    for (int64_t at = 0, n = op_numel(&c->out[0]); at < n; at++) {
        const int64_t o = at % y[2], b = at / y[2] % y[1], m = at / y[2] / y[1];
        double sum = c->n_in == 3 ? in[2][o] : 0;
        for (int64_t k = 0; k < w[0]; k++) {
            const int64_t t = a[TC_STRIDE] * m + k - a[TC_PADDING];
            for (int64_t i = 0; t >= 0 && t < x[0] && i < x[2]; i++)
                sum += in[0][(t * x[1] + b) * x[2] + i] * in[1][(k * w[1] + i) * w[2] + o];
        }
        out[0][at] = sum;
    }
}

static void expand(const struct op_use *u, hone_t *out)
{
    const int64_t *a = u->call->attr.i;
    hone_t w = hone_permute(u->in[1], (const int[]){2, 1, 0}), bias = u->call->n_in == 3 ? u->in[2] : HONE_NONE;
    out[0] = op_time_first(hone_conv1d(op_time_last(u->in[0]), w, bias, a[TC_STRIDE], a[TC_PADDING], 1));
}

static struct op_cost cost(const struct op_call *c)
{
    const int64_t *w = c->in[1].shape.dim, *a = c->attr.i;
    return op_conv_cost(
        c, op_conv_pairs(c->out[0].shape.dim[0], w[0], c->in[0].shape.dim[0], a[TC_STRIDE], a[TC_PADDING]) *
               c->in[0].shape.dim[1] * w[1] * w[2]);
}

#define A(stride, padding)                                                                                             \
    {                                                                                                                  \
        .i = { stride, padding }                                                                                       \
    }
static const struct op_case cases[] = {
    {"same", 3, {OP_F32(6, 2, 3), OP_F32(5, 3, 4), OP_F32(4)}, A(1, 2)},
    {"no bias", 2, {OP_F32(4, 3, 5), OP_F32(3, 5, 7)}, A(1, 1)},
    {"one tap", 3, {OP_F32(4, 2, 5), OP_F32(1, 5, 3), OP_F32(3)}, A(1, 0)},
    {"stride", 3, {OP_F32(8, 2, 3), OP_F32(3, 3, 4), OP_F32(4)}, A(2, 1)},
    {"stride beyond the kernel", 2, {OP_F32(9, 2, 3), OP_F32(2, 3, 4)}, A(3, 0)},
    {"padding beyond the kernel", 3, {OP_F32(3, 2, 2), OP_F32(2, 2, 3), OP_F32(3)}, A(1, 4)},
    {"valid", 2, {OP_F32(7, 1, 3), OP_F32(4, 3, 2)}, A(1, 0)},
    {"larger", 3, {OP_F32(4, 64, 48), OP_F32(5, 48, 32), OP_F32(32)}, A(1, 2)},
    {"one time", 3, {OP_F32(1, 9, 8), OP_F32(5, 8, 16), OP_F32(16)}, A(1, 2)},
    {"no sample", 3, {OP_F32(6, 0, 3), OP_F32(5, 3, 4), OP_F32(4)}, A(1, 2)},
    {"no channel", 3, {OP_F32(6, 2, 0), OP_F32(5, 0, 4), OP_F32(4)}, A(1, 2)},
};
static const struct op_case bad[] = {
    {"channels", 2, {OP_F32(6, 2, 3), OP_F32(5, 4, 4)}, A(1, 2)},
    {"bias", 3, {OP_F32(6, 2, 3), OP_F32(5, 3, 4), OP_F32(3)}, A(1, 2)},
    {"short", 2, {OP_F32(2, 2, 3), OP_F32(5, 3, 4)}, A(1, 0)},
    {"rank", 2, {OP_F32(2, 3), OP_F32(5, 3, 4)}, A(1, 2)},
    {"stride 0", 2, {OP_F32(6, 2, 3), OP_F32(5, 3, 4)}, A(0, 2)},
};

const struct op_def op_time_conv = {
    .name = "time_conv",
    .math = "y[m,b,o] = b[o] + sum over k, c of w[k,c,o] x[stride m + k - padding,b,c]",
    .attr_i = "stride padding",
    .min_in = 2,
    .max_in = 3,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .no_grad = "made after differentiation; its expansion has one",
    .expand = expand,
    .cost = cost,
    .no_onnx = "exported before layouts are chosen",
    OP_CASES(cases),
    OP_BAD(bad),
};
