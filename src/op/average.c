/* average: moving average of parameters (EMA), on slabs of any shape. */
#include "op/op.h"

hone_t hone_average(hone_t avg, hone_t p, hone_t decay)
{
    return op_emit(&op_average, 3, (hone_t[]){avg, p, decay}, NULL, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    if (!op_all_f32(c))
        return op_refuse(c, err, "all operands must be f32");
    if (!hone_shape_equal(&c->in[0].shape, &c->in[1].shape))
        return op_refuse(c, err, "average and parameters must have one shape");
    if (op_numel(&c->in[2]) != 1)
        return op_refuse(c, err, "the decay has one element");
    out[0] = c->in[0];
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    for (int64_t i = 0, n = op_numel(&c->out[0]); i < n; i++)
        out[0][i] = in[0][i] + (1 - in[2][0]) * (in[1][i] - in[0][i]);
}

static hone_t decay_of(const struct op_use *u)
{
    return hone_reshape(u->in[2], HONE_SCALAR);
}

/* by decay: a - p */
static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    hone_t kept = hone_mul(dout[0], decay_of(u));
    din[0] = kept;
    din[1] = hone_sub(dout[0], kept);
    hone_t d = hone_sum(hone_mul(dout[0], hone_sub(u->in[0], u->in[1])), HONE_AXES_ALL, false);
    din[2] = hone_reshape(d, u->call->in[2].shape);
}

static void expand(const struct op_use *u, hone_t *out)
{
    hone_t step = hone_mul(hone_sub(u->in[1], u->in[0]), hone_affine(decay_of(u), -1, 1));
    out[0] = hone_add(u->in[0], step);
}

static struct op_cost cost(const struct op_call *c)
{
    const double n = (double)op_numel(&c->out[0]);
    return (struct op_cost){3 * n, 4 * 3 * n};
}

static const struct op_case cases[] = {
    {"vector", 3, {OP_F32(7), OP_F32(7), OP_F32(1)}},
    {"one", 3, {OP_F32(1), OP_F32(1), OP_F32_SCALAR}},
    {"scalar", 3, {OP_F32_SCALAR, OP_F32_SCALAR, OP_F32(1, 1)}},
    {"empty", 3, {OP_F32(0), OP_F32(0), OP_F32(1)}},
    {"matrix", 3, {OP_F32(3, 5), OP_F32(3, 5), OP_F32_SCALAR}},
    {"long", 3, {OP_F32(1037), OP_F32(1037), OP_F32(1)}},
};
static const struct op_case bad[] = {
    {"shapes", 3, {OP_F32(3), OP_F32(4), OP_F32(1)}},
    {"decays", 3, {OP_F32(3), OP_F32(3), OP_F32(3)}},
    {"integers", 3, {OP_I32(3), OP_I32(3), OP_F32(1)}},
};

const struct op_def op_average = {
    .name = "average",
    .math = "y = avg + (1 - decay) (p - avg)",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .expand = expand,
    .cost = cost,
    .no_onnx = "training only",
    OP_CASES(cases),
    OP_BAD(bad),
};
