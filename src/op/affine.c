/* affine: a x + b with constants; scaling, shifting, negating. */
#include "op/op.h"

hone_t hone_affine(hone_t x, double a, double b)
{
    return op_emit(&op_affine, 1, &x, &(struct op_attr){.f = {a, b}}, NULL);
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    for (int64_t i = 0, n = op_numel(&c->out[0]); i < n; i++)
        out[0][i] = c->attr.f[0] * in[0][i] + c->attr.f[1];
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    din[0] = hone_affine(dout[0], u->call->attr.f[0], 0);
}

#define AB                                                                                                             \
    {                                                                                                                  \
        .f = { -1.5, 0.25 }                                                                                            \
    }
static const struct op_case cases[] = {
    {"vector", 1, {OP_F32(7)}, AB},   {"scalar", 1, {OP_F32_SCALAR}, AB},  {"one", 1, {OP_F32(1, 1)}, AB},
    {"empty", 1, {OP_F32(3, 0)}, AB}, {"batch", 1, {OP_F32(2, 3, 5)}, AB}, {"long", 1, {OP_F32(1037)}, AB},
};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}, AB}};

const struct op_def op_affine = {
    .name = "affine",
    .math = "y = a x + b",
    .attr_f = "a b",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = op_shape_unary,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .no_onnx = "exported as Mul, Add",
    OP_CASES(cases),
    OP_BAD(bad),
};
