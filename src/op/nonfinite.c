/* nonfinite: how many elements are NaN or infinite. Not zero, it tells adamw to skip the step. */
#include <math.h>

#include "op/op.h"

hone_t hone_nonfinite(hone_t x)
{
    return op_emit(&op_nonfinite, 1, &x, NULL, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    if (!op_all_f32(c))
        return op_refuse(c, err, "the operand must be f32");
    out[0] = (hone_type){HONE_F32, HONE_SCALAR};
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    out[0][0] = 0;
    for (int64_t i = 0, n = op_numel(&c->in[0]); i < n; i++)
        out[0][0] += !isfinite(in[0][i]);
}

static struct op_cost cost(const struct op_call *c)
{
    const double n = (double)op_numel(&c->in[0]);
    return (struct op_cost){n, 4 * n + 4};
}

static const struct op_case cases[] = {
    {"vector", 1, {OP_F32(7)}},
    {"scalar", 1, {OP_F32_SCALAR}},
    {"one", 1, {OP_F32(1, 1)}},
    {"empty", 1, {OP_F32(3, 0)}},
    {"batch", 1, {OP_F32(2, 3, 5)}},
    {"long", 1, {OP_F32(1037)}},
    {"pieces", 1, {OP_F32(50021)}},
    /* beyond the largest float most of them become infinite */
    {"infinite", 1, {OP_F32(1037)}, .lo = -3e39, .hi = 3e39},
};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}}};

const struct op_def op_nonfinite = {
    .name = "nonfinite",
    .math = "y = number of elements that are NaN or infinite",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = OP_ANY_NUMBER,
    .shape = shape,
    .ref = ref,
    .no_grad = "a count",
    .no_expand = "elementary: every device has it",
    .cost = cost,
    .no_onnx = "training only",
    OP_CASES(cases),
    OP_BAD(bad),
};
