/* clamp: x held in [lo, hi]. The gradient passes where lo <= x <= hi. */
#include "op/op.h"

hone_t hone_clamp(hone_t x, double lo, double hi)
{
    return op_emit(&op_clamp, 1, &x, &(struct op_attr){.f = {lo, hi}}, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    if (!(c->attr.f[0] <= c->attr.f[1]))
        return op_refuse(c, err, "the lower bound must not be above the upper one");
    return op_shape_unary(c, out, err);
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const double lo = c->attr.f[0], hi = c->attr.f[1];
    for (int64_t i = 0, n = op_numel(&c->out[0]); i < n; i++)
        out[0][i] = in[0][i] < lo ? lo : in[0][i] > hi ? hi : in[0][i];
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    hone_graph *g = u->g;
    hone_t x = u->in[0], zero = hone_const_f32(g, 0);
    hone_t inside = hone_logical_and(hone_greater_equal(x, hone_const_f32(g, (float)u->call->attr.f[0])),
                                     hone_less_equal(x, hone_const_f32(g, (float)u->call->attr.f[1])));
    din[0] = hone_where(inside, dout[0], zero);
}

static void batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out)
{
    (void)many;
    (void)n;
    out[0] = hone_clamp(u->in[0], u->call->attr.f[0], u->call->attr.f[1]);
}

#define LH                                                                                                             \
    {                                                                                                                  \
        .f = { -0.75, 1.25 }                                                                                           \
    }
static const struct op_case cases[] = {
    {"vector", 1, {OP_F32(7)}, LH},   {"scalar", 1, {OP_F32_SCALAR}, LH},  {"one", 1, {OP_F32(1, 1)}, LH},
    {"empty", 1, {OP_F32(3, 0)}, LH}, {"batch", 1, {OP_F32(2, 3, 5)}, LH}, {"long", 1, {OP_F32(1037)}, LH},
};
static const struct op_case bad[] = {{"integers", 1, {OP_I32(3)}, LH}, {"bounds", 1, {OP_F32(3)}, {.f = {1, -1}}}};

const struct op_def op_clamp = {
    .name = "clamp",
    .math = "y = min(max(x, lo), hi)",
    .attr_f = "lo hi",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .batch = batch,
    .onnx = "Clip",
    OP_CASES(cases),
    OP_BAD(bad),
};
