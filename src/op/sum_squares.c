/* sum_squares: of all elements; its root is the norm that gradients are clipped by. */
#include "op/op.h"

hone_t hone_sum_squares(hone_t x)
{
    return op_emit(&op_sum_squares, 1, &x, NULL, NULL);
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
        out[0][0] += in[0][i] * in[0][i];
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    din[0] = hone_mul(u->in[0], hone_affine(dout[0], 2, 0));
}

static void expand(const struct op_use *u, hone_t *out)
{
    out[0] = hone_sum(hone_mul(u->in[0], u->in[0]), HONE_AXES_ALL, false);
}

static struct op_cost cost(const struct op_call *c)
{
    const double n = (double)op_numel(&c->in[0]);
    return (struct op_cost){2 * n, 4 * n + 4};
}

static const struct op_case cases[] = {
    {"vector", 1, {OP_F32(7)}},     {"scalar", 1, {OP_F32_SCALAR}},  {"one", 1, {OP_F32(1, 1)}},
    {"empty", 1, {OP_F32(3, 0)}},   {"batch", 1, {OP_F32(2, 3, 5)}}, {"long", 1, {OP_F32(1037)}},
    {"pieces", 1, {OP_F32(50021)}},
};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}}};

const struct op_def op_sum_squares = {
    .name = "sum_squares",
    .math = "y = sum of x^2",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = OP_ANY_NUMBER, /* gradients that overflowed are skipped by adamw, after this */
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .expand = expand,
    .cost = cost,
    .onnx = "ReduceSumSquare",
    OP_CASES(cases),
    OP_BAD(bad),
};
