/* sign: -1, 0 or 1; NaN of NaN. */
#include "op/op.h"

hone_t hone_sign(hone_t x)
{
    return op_emit(&op_sign, 1, &x, NULL, NULL);
}

static double f(double x)
{
    return x == x ? (x > 0) - (x < 0) : x;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_unary(c, in, out, f);
}

static const struct op_case cases[] = {OP_UNARY_CASES};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}}};

const struct op_def op_sign = {
    .name = "sign",
    .math = "y = -1, 0 or 1",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = op_shape_unary,
    .ref = ref,
    .no_grad = "zero wherever it exists",
    .no_expand = "elementary: every device has it",
    .onnx = "Sign",
    OP_CASES(cases),
    OP_BAD(bad),
};
