/* relu: max(x, 0). */
#include "op/op.h"

hone_t hone_relu(hone_t x)
{
    return op_emit(&op_relu, 1, &x, NULL, NULL);
}

static double f(double x)
{
    return x > 0 ? x : 0;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_unary(c, in, out, f);
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    din[0] = hone_mul(dout[0], hone_relu(hone_sign(u->in[0])));
}

static const struct op_case cases[] = {OP_UNARY_CASES};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}}};

const struct op_def op_relu = {
    .name = "relu",
    .math = "y = max(x, 0)",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = op_shape_unary,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .onnx = "Relu",
    OP_CASES(cases),
    OP_BAD(bad),
};
