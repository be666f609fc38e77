/* gelu: x (1 + erf(x / sqrt(2))) / 2. */
#include <math.h>

#include "op/op.h"

hone_t hone_gelu(hone_t x)
{
    return op_emit(&op_gelu, 1, &x, NULL, NULL);
}

static double f(double x)
{
    return 0.5 * x * (1 + erf(x * 0.70710678118654752));
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_unary(c, in, out, f);
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    hone_t x = u->in[0];
    din[0] = hone_mul(dout[0], hone_add(hone_affine(hone_erf(hone_affine(x, 0.70710678118654752, 0)), 0.5, 0.5),
                                        hone_mul(x, hone_affine(hone_exp(hone_affine(hone_mul(x, x), -0.5, 0)),
                                                                0.3989422804014327, 0))));
}

static void expand(const struct op_use *u, hone_t *out)
{
    hone_t x = u->in[0];
    out[0] = hone_mul(x, hone_affine(hone_erf(hone_affine(x, 0.70710678118654752, 0)), 0.5, 0.5));
}

static const struct op_case cases[] = {OP_UNARY_CASES, {"wide", 1, {OP_F32(64)}, .lo = -90, .hi = 90}};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}}};

const struct op_def op_gelu = {
    .name = "gelu",
    .math = "y = x (1 + erf(x / sqrt(2))) / 2",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = op_shape_unary,
    .ref = ref,
    .grad = grad,
    .expand = expand,
    .no_onnx = "exported as Erf, Mul, Add",
    OP_CASES(cases),
    OP_BAD(bad),
};
