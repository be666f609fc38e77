/* exp: e^x. */
#include <math.h>

#include "op/op.h"

hone_t hone_exp(hone_t x)
{
    return op_emit(&op_exp, 1, &x, NULL, NULL);
}

static double f(double x)
{
    return exp(x);
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_unary(c, in, out, f);
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    din[0] = hone_mul(dout[0], u->out[0]);
}

static const struct op_case cases[] = {OP_UNARY_CASES};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}}};

const struct op_def op_exp = {
    .name = "exp",
    .math = "y = e^x",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = op_shape_unary,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .onnx = "Exp",
    OP_CASES(cases),
    OP_BAD(bad),
};
