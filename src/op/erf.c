/* erf: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x. */
#include <math.h>

#include "op/op.h"

hone_t hone_erf(hone_t x)
{
    return op_emit(&op_erf, 1, &x, NULL, NULL);
}

static double f(double x)
{
    return erf(x);
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_unary(c, in, out, f);
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    hone_t x = u->in[0];
    din[0] = hone_mul(dout[0], hone_affine(hone_exp(hone_affine(hone_mul(x, x), -1, 0)), 1.1283791670955126, 0));
}

static const struct op_case cases[] = {OP_UNARY_CASES};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}}};

const struct op_def op_erf = {
    .name = "erf",
    .math = "y = 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = op_shape_unary,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .onnx = "Erf",
    OP_CASES(cases),
    OP_BAD(bad),
};
