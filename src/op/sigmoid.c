/* sigmoid: 1 / (1 + exp(-x)). */
#include <math.h>

#include "op/op.h"

hone_t hone_sigmoid(hone_t x)
{
    return op_emit(&op_sigmoid, 1, &x, NULL, NULL);
}

static double f(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_unary(c, in, out, f);
}

/* y' = y (1 - y) */
static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    din[0] = hone_mul(dout[0], hone_mul(u->out[0], hone_affine(u->out[0], -1, 1)));
}

static const struct op_case cases[] = {OP_UNARY_CASES,
                                       {.name = "wide", .n_in = 1, .in = {OP_F32(64)}, .lo = -90, .hi = 90}};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}}};

const struct op_def op_sigmoid = {
    .name = "sigmoid",
    .math = "y = 1 / (1 + exp(-x))",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = op_shape_unary,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .onnx = "Sigmoid",
    OP_CASES(cases),
    OP_BAD(bad),
};
