/* mish_grad: the gradient of mish by its operand, from operand and gradient of the result. */
#include <math.h>

#include "op/op.h"

static double f(double x, double dy)
{
    const double z = exp(x > 30 ? 30 : x), t = tanh(log1p(z)), s = z / (1 + z);
    return dy * (t + x * s * (1 - t * t));
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_binary(c, in, out, f);
}

/* With t = tanh(softplus(x)) and s = sigmoid(x): t + x s (1 - t^2). */
static void expand(const struct op_use *u, hone_t *out)
{
    hone_t x = u->in[0], dy = u->in[1];
    hone_t t = hone_tanh(hone_softplus(x)), s = hone_sigmoid(x);
    hone_t slope = hone_add(t, hone_mul(hone_mul(x, s), hone_affine(hone_mul(t, t), -1, 1)));
    out[0] = hone_mul(dy, slope);
}

static struct op_cost cost(const struct op_call *c)
{
    const double n = (double)op_numel(&c->in[0]);
    return (struct op_cost){12 * n, 12 * n};
}

#define TWO(...)                                                                                                       \
    {                                                                                                                  \
        OP_F32(__VA_ARGS__), OP_F32(__VA_ARGS__)                                                                       \
    }
static const struct op_case cases[] = {
    {"vector", 2, TWO(7)},       {"scalar", 2, {OP_F32_SCALAR, OP_F32_SCALAR}},
    {"signal", 2, TWO(2, 3, 5)}, {"empty", 2, TWO(3, 0)},
    {"long", 2, TWO(1037)},      {"wide", 2, TWO(64), .lo = -90, .hi = 90},
};
static const struct op_case bad[] = {{"shapes", 2, {OP_F32(3, 5), OP_F32(5)}}, {"integers", 2, {OP_F32(3), OP_I32(3)}}};

const struct op_def op_mish_grad = {
    .name = "mish_grad",
    .math = "dx = dy (t + x s (1 - t^2)), t = tanh(log(1 + e^x)), s = sigmoid(x)",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .shape = op_shape_alike,
    .ref = ref,
    .no_grad = "differentiated through its expansion",
    .expand = expand,
    .cost = cost,
    .no_onnx = "gradients are not exported",
    OP_CASES(cases),
    OP_BAD(bad),
};
