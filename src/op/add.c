/* add: x + y, broadcasting. */
#include "op/op.h"

hone_t hone_add(hone_t x, hone_t y)
{
    return op_emit(&op_add, 2, (hone_t[]){x, y}, NULL, NULL);
}

static double f(double x, double y)
{
    return x + y;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_binary(c, in, out, f);
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    din[0] = op_unbroadcast(dout[0], u->in[0]);
    din[1] = op_unbroadcast(dout[0], u->in[1]);
}

static const struct op_case cases[] = {OP_BINARY_CASES};
static const struct op_case bad[] = {{"no broadcast", 2, {OP_F32(3), OP_F32(4)}},
                                     {"integers", 2, {OP_F32(3), OP_I32(3)}},
                                     {"ranks", 2, {OP_F32(2, 3), OP_F32(2)}}};

const struct op_def op_add = {
    .name = "add",
    .math = "z = x + y",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .shape = op_shape_binary,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .onnx = "Add",
    OP_CASES(cases),
    OP_BAD(bad),
};
