/* maximum: the larger of x and y, broadcasting; NaN where either is NaN. */
#include "op/op.h"

hone_t hone_maximum(hone_t x, hone_t y)
{
    return op_emit(&op_maximum, 2, (hone_t[]){x, y}, NULL, NULL);
}

static double f(double x, double y)
{
    return x > y || x != x ? x : y;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_binary(c, in, out, f);
}

/* The sign of x - y picks 1, 1/2 or 0. */
static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    hone_t x = u->in[0], y = u->in[1], d = dout[0];
    din[0] = op_unbroadcast(hone_mul(d, hone_affine(hone_sign(hone_sub(x, y)), 0.5, 0.5)), x);
    din[1] = op_unbroadcast(hone_mul(d, hone_affine(hone_sign(hone_sub(x, y)), -0.5, 0.5)), y);
}

static const struct op_case cases[] = {OP_BINARY_CASES};
static const struct op_case bad[] = {{"no broadcast", 2, {OP_F32(3), OP_F32(4)}},
                                     {"integers", 2, {OP_F32(3), OP_I32(3)}}};

const struct op_def op_maximum = {
    .name = "maximum",
    .math = "z = the larger of x and y",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .shape = op_shape_binary,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .onnx = "Max",
    OP_CASES(cases),
    OP_BAD(bad),
};
