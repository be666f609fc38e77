/* less: x < y, as bool, broadcasting; f32 with f32 or i32 with i32. */
#include "op/compare.h"

hone_t hone_less(hone_t x, hone_t y)
{
    return op_emit(&op_less, 2, (hone_t[]){x, y}, NULL, NULL);
}

static double f(double x, double y)
{
    return x < y;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    op_ref_binary(c, in, out, f);
}

static const struct op_case cases[] = {OP_COMPARE_CASES};
static const struct op_case bad[] = {OP_COMPARE_BAD};

const struct op_def op_less = {
    .name = "less",
    .math = "z = x < y",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .shape = op_shape_compare,
    .ref = ref,
    .no_grad = "a truth value",
    .no_expand = "elementary: every device has it",
    .onnx = "Less",
    OP_CASES(cases),
    OP_BAD(bad),
};
