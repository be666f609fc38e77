/* div: x / y, broadcasting. */
#include "op/op.h"

hone_t hone_div(hone_t x, hone_t y)
{
    return op_emit(&op_div, 2, (hone_t[]){x, y}, NULL, NULL);
}

static double f(double x, double y)
{
    return x / y;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_binary(c, in, out, f);
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    hone_t x = u->in[0], y = u->in[1], z = u->out[0], d = dout[0];
    din[0] = op_unbroadcast(hone_div(d, y), x);
    din[1] = op_unbroadcast(hone_affine(hone_div(hone_mul(d, z), y), -1, 0), y);
}

static const struct op_case cases[] = {{"same", 2, {OP_F32(7), OP_F32(7)}, .lo = 0.3, .hi = 3},
                                       {"row", 2, {OP_F32(3, 5), OP_F32(5)}, .lo = 0.3, .hi = 3},
                                       {"column", 2, {OP_F32(3, 5), OP_F32(3, 1)}, .lo = 0.3, .hi = 3},
                                       {"scalar", 2, {OP_F32(2, 3), OP_F32_SCALAR}, .lo = 0.3, .hi = 3},
                                       {"left", 2, {OP_F32(3), OP_F32(2, 4, 3)}, .lo = 0.3, .hi = 3},
                                       {"empty", 2, {OP_F32(0, 5), OP_F32(5)}, .lo = 0.3, .hi = 3},
                                       {"long", 2, {OP_F32(1037), OP_F32(1037)}, .lo = 0.3, .hi = 3}};
static const struct op_case bad[] = {{"no broadcast", 2, {OP_F32(3), OP_F32(4)}},
                                     {"integers", 2, {OP_F32(3), OP_I32(3)}}};

const struct op_def op_div = {
    .name = "div",
    .math = "z = x / y",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .shape = op_shape_binary,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .onnx = "Div",
    OP_CASES(cases),
    OP_BAD(bad),
};
