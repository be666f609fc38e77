/* sqrt: square root of x. */
#include <math.h>

#include "op/op.h"

hone_t hone_sqrt(hone_t x)
{
    return op_emit(&op_sqrt, 1, &x, NULL, NULL);
}

static double f(double x)
{
    return sqrt(x);
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_unary(c, in, out, f);
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    din[0] = hone_mul(dout[0], hone_affine(hone_reciprocal(u->out[0]), 0.5, 0));
}

static const struct op_case cases[] = {
    {"vector", 1, {OP_F32(7)}, .lo = 0.1, .hi = 4},      {"scalar", 1, {OP_F32_SCALAR}, .lo = 0.1, .hi = 4},
    {"one", 1, {OP_F32(1, 1)}, .lo = 0.1, .hi = 4},      {"empty", 1, {OP_F32(3, 0)}, .lo = 0.1, .hi = 4},
    {"batch", 1, {OP_F32(2, 3, 5)}, .lo = 0.1, .hi = 4}, {"long", 1, {OP_F32(1037)}, .lo = 0.1, .hi = 4}};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}}};

const struct op_def op_sqrt = {
    .name = "sqrt",
    .math = "y = square root of x",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = op_shape_unary,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .onnx = "Sqrt",
    OP_CASES(cases),
    OP_BAD(bad),
};
