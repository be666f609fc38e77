/* logical_and: of bool operands, broadcasting. */
#include "op/compare.h"

hone_t hone_logical_and(hone_t x, hone_t y)
{
    return op_emit(&op_logical_and, 2, (hone_t[]){x, y}, NULL, NULL);
}

static double f(double x, double y)
{
    return x != 0 && y != 0;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_binary(c, in, out, f);
}

static const struct op_case cases[] = {OP_LOGIC_CASES};
static const struct op_case bad[] = {OP_LOGIC_BAD};

const struct op_def op_logical_and = {
    .name = "logical_and",
    .math = "z = x and y",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .shape = op_shape_logic,
    .ref = ref,
    .no_grad = "a truth value",
    .no_expand = "elementary: every device has it",
    .onnx = "And",
    OP_CASES(cases),
    OP_BAD(bad),
};
