/* pow_scalar: x^a for a constant a; x > 0 unless a is an integer. */
#include <math.h>

#include "op/op.h"

hone_t hone_pow_scalar(hone_t x, double a)
{
    return op_emit(&op_pow_scalar, 1, &x, &(struct op_attr){.f = {a}}, NULL);
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    for (int64_t i = 0, n = op_numel(&c->out[0]); i < n; i++)
        out[0][i] = pow(in[0][i], c->attr.f[0]);
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    const double a = u->call->attr.f[0];
    if (a == 0) /* constant; 0 x^-1 would be NaN at 0 */
        return;
    din[0] = a == 1 ? dout[0] : hone_mul(dout[0], hone_affine(hone_pow_scalar(u->in[0], a - 1), a, 0));
}

#define POW(name, shape, a)                                                                                            \
    {                                                                                                                  \
        name, 1, {shape}, {.f = {a}}, .lo = 0.2, .hi = 3, .tol = 2e-5                                                  \
    }
static const struct op_case cases[] = {
    POW("vector", OP_F32(7), 1.5),    POW("scalar", OP_F32_SCALAR, 2), POW("empty", OP_F32(3, 0), 2),
    POW("batch", OP_F32(2, 3), -1.5), POW("long", OP_F32(1037), 0.5),  {"negative", 1, {OP_F32(9)}, {.f = {3}}},
    POW("itself", OP_F32(5), 1),      POW("one", OP_F32(5), 0),
};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}, {.f = {2}}}};

const struct op_def op_pow_scalar = {
    .name = "pow_scalar",
    .math = "y = x^a",
    .attr_f = "a",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = op_shape_unary,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .onnx = "Pow",
    OP_CASES(cases),
    OP_BAD(bad),
};
