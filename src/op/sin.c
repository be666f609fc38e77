/* sin: sin(x). */
#include <math.h>

#include "op/op.h"

hone_t hone_sin(hone_t x)
{
    return op_emit(&op_sin, 1, &x, NULL, NULL);
}

static double f(double x)
{
    return sin(x);
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_unary(c, in, out, f);
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    din[0] = hone_mul(dout[0], hone_cos(u->in[0]));
}

static const struct op_case cases[] = {OP_UNARY_CASES, {"wide", 1, {OP_F32(64)}, .lo = -120, .hi = 120}};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}}};

const struct op_def op_sin = {
    .name = "sin",
    .math = "y = sin(x)",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = op_shape_unary,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .onnx = "Sin",
    OP_CASES(cases),
    OP_BAD(bad),
};
