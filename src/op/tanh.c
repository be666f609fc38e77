/* tanh: tanh(x). */
#include <math.h>

#include "op/op.h"

hone_t hone_tanh(hone_t x)
{
    return op_emit(&op_tanh, 1, &x, NULL, NULL);
}

static double f(double x)
{
    return tanh(x);
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_unary(c, in, out, f);
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    hone_t y = u->out[0];
    din[0] = hone_mul(dout[0], hone_affine(hone_mul(y, y), -1, 1));
}

static const struct op_case cases[] = {OP_UNARY_CASES, {"wide", 1, {OP_F32(64)}, .lo = -90, .hi = 90}};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}}};

const struct op_def op_tanh = {
    .name = "tanh",
    .math = "y = tanh(x)",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = op_shape_unary,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .onnx = "Tanh",
    OP_CASES(cases),
    OP_BAD(bad),
};
