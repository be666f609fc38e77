/* gelu_tanh: x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2. */
#include <math.h>

#include "op/op.h"

hone_t hone_gelu_tanh(hone_t x)
{
    return op_emit(&op_gelu_tanh, 1, &x, NULL, NULL);
}

/* sqrt(2 / pi) (x + 0.044715 x^3) */
static hone_t inner(hone_t x)
{
    return hone_affine(hone_mul(x, hone_affine(hone_mul(x, x), 0.044715, 1)), 0.7978845608028654, 0);
}

/* (1 + t) / 2 + x (1 - t^2) / 2 times the slope of inner, t = tanh(inner) */
static hone_t slope(hone_t x)
{
    hone_t t = hone_tanh(inner(x)),
           s = hone_affine(hone_mul(x, x), 3 * 0.044715 * 0.7978845608028654, 0.7978845608028654);
    hone_t bend = hone_mul(hone_mul(x, s), hone_affine(hone_mul(t, t), -0.5, 0.5));
    return hone_add(hone_affine(t, 0.5, 0.5), bend);
}

static double f(double x)
{
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_unary(c, in, out, f);
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    din[0] = hone_mul(dout[0], slope(u->in[0]));
}

static void expand(const struct op_use *u, hone_t *out)
{
    hone_t x = u->in[0];
    out[0] = hone_mul(x, hone_affine(hone_tanh(inner(x)), 0.5, 0.5));
}

static const struct op_case cases[] = {OP_UNARY_CASES, {"wide", 1, {OP_F32(64)}, .lo = -90, .hi = 90}};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}}};

const struct op_def op_gelu_tanh = {
    .name = "gelu_tanh",
    .math = "y = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = op_shape_unary,
    .ref = ref,
    .grad = grad,
    .expand = expand,
    .no_onnx = "exported as Mul, Tanh",
    OP_CASES(cases),
    OP_BAD(bad),
};
