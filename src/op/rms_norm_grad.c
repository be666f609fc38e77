/* rms_norm_grad: the gradients of rms_norm by x and gamma, the statistic being an operand of its own. Without gamma the
 * second is empty. */
#include "op/norm.h"

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *x = &c->in[NORM_X].shape;
    if (!op_all_f32(c))
        return op_refuse(c, err, "all operands must be f32");
    if (x->rank < 1 || !hone_shape_equal(x, &c->in[NORM_DY].shape))
        return op_refuse(c, err, "the first two operands need one shape, of a dimension or more");
    hone_type stat = op_norm_last_stat(&c->in[NORM_X]);
    if (!hone_shape_equal(&stat.shape, &c->in[RMS_RSTD].shape))
        return op_refuse(c, err, "the statistic needs the shape of the second operand with a last dimension of 1");
    if (c->n_in > RMS_GAMMA &&
        (c->in[RMS_GAMMA].shape.rank != 1 || c->in[RMS_GAMMA].shape.dim[0] != x->dim[x->rank - 1]))
        return op_refuse(c, err, "gamma needs one number an element of the last dimension");
    out[0] = c->in[NORM_X];
    out[1] = c->n_in > RMS_GAMMA ? c->in[RMS_GAMMA] : (hone_type){HONE_F32, HONE_SHAPE(0)};
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    struct op_norm q = op_norm_last(&c->in[NORM_X].shape, false);
    op_norm_ref_grad(&q, in[NORM_DY], in[NORM_X], c->n_in > RMS_GAMMA ? in[RMS_GAMMA] : NULL, NULL, in[RMS_RSTD],
                     out[0], out[1], NULL);
}

static void expand(const struct op_use *u, hone_t *out)
{
    struct op_norm q = op_norm_last(&u->call->in[NORM_X].shape, false);
    struct op_norm_values v = {
        .x = u->in[NORM_X], .gamma = u->call->n_in > RMS_GAMMA ? u->in[RMS_GAMMA] : HONE_NONE, .rstd = u->in[RMS_RSTD]};
    op_norm_expand_grad(&q, u->in[NORM_DY], &v, &out[0], &out[1], NULL);
}

static struct op_cost cost(const struct op_call *c)
{
    return op_norm_cost(c, 11);
}

static const struct op_case cases[] = {
    {"rows", 4, {OP_F32(3, 7), OP_F32(3, 7), OP_F32(3, 1), OP_F32(7)}},
    {"vector", 4, {OP_F32(9), OP_F32(9), OP_F32(1), OP_F32(9)}},
    {"tokens", 4, {OP_F32(2, 3, 16), OP_F32(2, 3, 16), OP_F32(2, 3, 1), OP_F32(16)}},
    {"without gamma", 3, {OP_F32(3, 7), OP_F32(3, 7), OP_F32(3, 1)}},
    {"one element", 4, {OP_F32(1), OP_F32(1), OP_F32(1), OP_F32(1)}},
    {"no rows", 4, {OP_F32(0, 5), OP_F32(0, 5), OP_F32(0, 1), OP_F32(5)}},
    {"no elements", 4, {OP_F32(3, 0), OP_F32(3, 0), OP_F32(3, 1), OP_F32(0)}},
    {"many rows", 4, {OP_F32(70, 5), OP_F32(70, 5), OP_F32(70, 1), OP_F32(5)}},
    {"long", 4, {OP_F32(2, 601), OP_F32(2, 601), OP_F32(2, 1), OP_F32(601)}},
};
static const struct op_case bad[] = {
    {"rows", 3, {OP_F32(3, 7), OP_F32(3, 6), OP_F32(3, 1)}},
    {"rstd", 3, {OP_F32(3, 7), OP_F32(3, 7), OP_F32(3)}},
    {"gamma", 4, {OP_F32(3, 7), OP_F32(3, 7), OP_F32(3, 1), OP_F32(6)}},
    {"integers", 3, {OP_F32(3, 7), OP_I32(3, 7), OP_F32(3, 1)}},
};

const struct op_def op_rms_norm_grad = {
    .name = "rms_norm_grad",
    .math = "g = dy gamma, dx = rstd (g - xhat mean(g xhat)), dgamma = sum(dy xhat)",
    .min_in = 3,
    .max_in = 4,
    .n_out = 2,
    .shape = shape,
    .ref = ref,
    .no_grad = "differentiated through its expansion",
    .expand = expand,
    .cost = cost,
    .no_onnx = "gradients are not exported",
    OP_CASES(cases),
    OP_BAD(bad),
};
