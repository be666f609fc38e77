/* square: x x. */
#include "op/op.h"

hone_t hone_square(hone_t x)
{
    return op_emit(&op_square, 1, &x, NULL, NULL);
}

static double f(double x)
{
    return x * x;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_unary(c, in, out, f);
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    din[0] = hone_mul(dout[0], hone_affine(u->in[0], 2, 0));
}

static void expand(const struct op_use *u, hone_t *out)
{
    hone_t x = u->in[0];
    out[0] = hone_mul(x, x);
}

static const struct op_case cases[] = {OP_UNARY_CASES};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}}};

const struct op_def op_square = {
    .name = "square",
    .math = "y = x x",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = op_shape_unary,
    .ref = ref,
    .grad = grad,
    .expand = expand,
    .no_onnx = "exported as Mul",
    OP_CASES(cases),
    OP_BAD(bad),
};
