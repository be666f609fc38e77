/* time_conv_weight: the gradient of time_conv by its kernel. x [T,B,C], dy [M,B,O] -> [K,C,O]. */
#include "op/time_conv.h"

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const int64_t *x = c->in[0].shape.dim, *y = c->in[1].shape.dim, k = c->attr.i[TC_EXTENT];
    int64_t a[4];
    hone_status s = op_time_conv_check(c, err);
    if (s != HONE_OK)
        return s;
    op_time_conv_attr(c->attr.i, a);
    if (x[1] != y[1] || k < 1 || op_conv_length(a, x[0], k) != y[0])
        return op_refuse(c, err, "signal and gradient must have one batch, and lengths that this kernel gives");
    out[0] = (hone_type){HONE_F32, HONE_SHAPE(k, x[2], y[2])};
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const int64_t *x = c->in[0].shape.dim, *y = c->in[1].shape.dim, *w = c->out[0].shape.dim, *a = c->attr.i;
    for (int64_t at = 0, n = op_numel(&c->out[0]); at < n; at++) {
        const int64_t o = at % w[2], i = at / w[2] % w[1], k = at / w[2] / w[1];
        double sum = 0;
        for (int64_t m = 0; m < y[0]; m++) {
            const int64_t t = a[TC_STRIDE] * m + k - a[TC_PADDING];
            for (int64_t b = 0; t >= 0 && t < x[0] && b < x[1]; b++)
                sum += in[0][(t * x[1] + b) * x[2] + i] * in[1][(m * y[1] + b) * y[2] + o];
        }
        out[0][at] = sum;
    }
}

static void expand(const struct op_use *u, hone_t *out)
{
    int64_t a[4];
    op_time_conv_attr(u->call->attr.i, a);
    hone_t w = op_emit_conv1d_weight_grad(op_time_last(u->in[0]), op_time_last(u->in[1]), a, a[CONV_EXTENT]);
    out[0] = hone_permute(w, (const int[]){2, 1, 0});
}

static struct op_cost cost(const struct op_call *c)
{
    const int64_t *w = c->out[0].shape.dim, *a = c->attr.i;
    return op_conv_cost(c,
                        op_conv_pairs(c->in[1].shape.dim[0], w[0], c->in[0].shape.dim[0], a[TC_STRIDE], a[TC_PADDING]) *
                            c->in[0].shape.dim[1] * w[1] * w[2]);
}

#define A(stride, padding, k)                                                                                          \
    {                                                                                                                  \
        .i = { stride, padding, k }                                                                                    \
    }
static const struct op_case cases[] = {
    {"same", 2, {OP_F32(6, 2, 3), OP_F32(6, 2, 4)}, A(1, 2, 5)},
    {"one tap", 2, {OP_F32(4, 3, 5), OP_F32(4, 3, 7)}, A(1, 0, 1)},
    {"stride", 2, {OP_F32(8, 2, 3), OP_F32(4, 2, 4)}, A(2, 1, 3)},
    {"twice as long", 2, {OP_F32(8, 2, 3), OP_F32(4, 2, 5)}, A(2, 1, 4)},
    {"padding beyond the kernel", 2, {OP_F32(3, 2, 2), OP_F32(10, 2, 3)}, A(1, 4, 2)},
    {"larger", 2, {OP_F32(4, 64, 48), OP_F32(4, 64, 32)}, A(1, 2, 5)},
    {"one time", 2, {OP_F32(1, 9, 8), OP_F32(1, 9, 16)}, A(1, 2, 5)},
    {"no sample", 2, {OP_F32(6, 0, 3), OP_F32(6, 0, 4)}, A(1, 2, 5)},
    {"no channel", 2, {OP_F32(6, 2, 0), OP_F32(6, 2, 4)}, A(1, 2, 5)},
};
static const struct op_case bad[] = {
    {"batch", 2, {OP_F32(6, 2, 3), OP_F32(6, 3, 4)}, A(1, 2, 5)},
    {"length", 2, {OP_F32(6, 2, 3), OP_F32(5, 2, 4)}, A(1, 2, 5)},
    {"no tap", 2, {OP_F32(6, 2, 3), OP_F32(7, 2, 4)}, A(1, 0, 0)},
    {"padding below 0", 2, {OP_F32(6, 2, 3), OP_F32(6, 2, 4)}, A(1, -1, 5)},
};

const struct op_def op_time_conv_weight = {
    .name = "time_conv_weight",
    .math = "w[k,c,o] = sum over m, b of x[stride m + k - padding,b,c] dy[m,b,o]",
    .attr_i = "stride padding taps",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .no_grad = "made after differentiation; its expansion has one",
    .expand = expand,
    .cost = cost,
    .no_onnx = "training only",
    OP_CASES(cases),
    OP_BAD(bad),
};
