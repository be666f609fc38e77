/* logical_not: of a bool operand. */
#include "op/op.h"

hone_t hone_logical_not(hone_t x)
{
    return op_emit(&op_logical_not, 1, &x, NULL, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    if (c->in[0].dtype != HONE_BOOL)
        return op_refuse(c, err, "the operand must be bool");
    out[0] = c->in[0];
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    for (int64_t i = 0, n = op_numel(&c->out[0]); i < n; i++)
        out[0][i] = in[0][i] == 0;
}

static const struct op_case cases[] = {
    {"vector", 1, {OP_BOOL(37)}}, {"empty", 1, {OP_BOOL(0)}}, {"batch", 1, {OP_BOOL(2, 3)}}};
static const struct op_case bad[] = {{"numbers", 1, {OP_F32(3)}}};

const struct op_def op_logical_not = {
    .name = "logical_not",
    .math = "y = not x",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .no_grad = "a truth value",
    .no_expand = "elementary: every device has it",
    .onnx = "Not",
    OP_CASES(cases),
    OP_BAD(bad),
};
