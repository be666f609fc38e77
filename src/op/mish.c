/* mish: x tanh(log(1 + e^x)). */
#include <math.h>

#include "op/op.h"

hone_t hone_mish(hone_t x)
{
    return op_emit(&op_mish, 1, &x, NULL, NULL);
}

static double f(double x)
{
    return x * tanh(x > 30 ? x : log1p(exp(x)));
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_unary(c, in, out, f);
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    din[0] = op_emit(&op_mish_grad, 2, (hone_t[]){u->in[0], dout[0]}, NULL, NULL);
}

static void expand(const struct op_use *u, hone_t *out)
{
    hone_t x = u->in[0];
    out[0] = hone_mul(x, hone_tanh(hone_softplus(x)));
}

static const struct op_case cases[] = {OP_UNARY_CASES, {"wide", 1, {OP_F32(64)}, .lo = -90, .hi = 90}};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}}};

const struct op_def op_mish = {
    .name = "mish",
    .math = "y = x tanh(log(1 + e^x))",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = op_shape_unary,
    .ref = ref,
    .grad = grad,
    .expand = expand,
    .no_onnx = "exported as Softplus, Tanh, Mul",
    OP_CASES(cases),
    OP_BAD(bad),
};
