/* silu: x sigmoid(x).  Elfwing, Uchibe and Doya 2017; also swish with beta 1. */
#include <math.h>

#include "op/op.h"

hone_t hone_silu(hone_t x)
{
    return op_emit(&op_silu, 1, &x, NULL, NULL);
}

static double f(double x)
{
    return x / (1.0 + exp(-x));
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_unary(c, in, out, f);
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    din[0] = op_emit(&op_silu_grad, 2, (hone_t[]){u->in[0], dout[0]}, NULL, NULL);
}

static void expand(const struct op_use *u, hone_t *out)
{
    out[0] = hone_mul(u->in[0], hone_sigmoid(u->in[0]));
}

static const struct op_case cases[] = {OP_UNARY_CASES,
                                       {.name = "wide", .n_in = 1, .in = {OP_F32(64)}, .lo = -90, .hi = 90}};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}}};

const struct op_def op_silu = {
    .name = "silu",
    .math = "y = x / (1 + exp(-x))",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = op_shape_unary,
    .ref = ref,
    .grad = grad,
    .expand = expand,
    .no_onnx = "exported as Sigmoid, Mul",
    OP_CASES(cases),
    OP_BAD(bad),
};
