/* group_norm_grad: the gradients of group_norm by x, gamma and beta. The statistics are operands of their own: what
 * depends on x through them is for the caller to add, and is already in dx where they are those of x. */
#include "op/norm.h"

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *x = &c->in[NORM_X].shape, *gamma = &c->in[GROUP_GAMMA].shape, *mean = &c->in[GROUP_MEAN].shape;
    if (!op_all_f32(c))
        return op_refuse(c, err, "all operands must be f32");
    if (x->rank < 2 || !hone_shape_equal(x, &c->in[NORM_DY].shape))
        return op_refuse(c, err, "the first two operands need one shape, [N,C,...]");
    if (gamma->rank != 1 || gamma->dim[0] != x->dim[1])
        return op_refuse(c, err, "gamma needs one number a channel (dimension 1 of the second operand)");
    if (mean->rank != 2 || !hone_shape_equal(mean, &c->in[GROUP_RSTD].shape) || mean->dim[0] != x->dim[0] ||
        mean->dim[1] < 1 || x->dim[1] % mean->dim[1])
        return op_refuse(c, err, "the statistics must be [N,G], G dividing the channels");
    out[0] = c->in[NORM_X];
    out[1] = out[2] = c->in[GROUP_GAMMA];
    return HONE_OK;
}

static struct op_norm dims(const struct op_call *c)
{
    return op_norm_groups(&c->in[NORM_X].shape, c->in[GROUP_MEAN].shape.dim[1]);
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    struct op_norm q = dims(c);
    op_norm_ref_grad(&q, in[NORM_DY], in[NORM_X], in[GROUP_GAMMA], in[GROUP_MEAN], in[GROUP_RSTD], out[0], out[1],
                     out[2]);
}

static void expand(const struct op_use *u, hone_t *out)
{
    struct op_norm q = dims(u->call);
    struct op_norm_values v = {
        .x = u->in[NORM_X], .gamma = u->in[GROUP_GAMMA], .mean = u->in[GROUP_MEAN], .rstd = u->in[GROUP_RSTD]};
    op_norm_expand_grad(&q, u->in[NORM_DY], &v, &out[0], &out[1], &out[2]);
}

static struct op_cost cost(const struct op_call *c)
{
    return op_norm_cost(c, 15);
}

#define IN(n, g, c, ...)                                                                                               \
    {                                                                                                                  \
        OP_F32(__VA_ARGS__), OP_F32(__VA_ARGS__), OP_F32(c), OP_F32(n, g), OP_F32(n, g)                                \
    }
static const struct op_case cases[] = {
    {"signal", 5, IN(2, 3, 6, 2, 6, 5)},         {"image", 5, IN(2, 2, 4, 2, 4, 3, 7)},
    {"channels alone", 5, IN(3, 2, 8, 3, 8)},    {"a channel each", 5, IN(2, 3, 3, 2, 3, 9)},
    {"one element", 5, IN(1, 1, 1, 1, 1, 1)},    {"no samples", 5, IN(0, 2, 4, 0, 4, 3)},
    {"no signal", 5, IN(2, 2, 4, 2, 4, 0)},      {"no channels", 5, IN(2, 2, 0, 2, 0, 3)},
    {"many samples", 5, IN(70, 2, 4, 70, 4, 3)}, {"many long samples", 5, IN(35, 1, 2, 35, 2, 50)},
    {"long", 5, IN(1, 1, 2, 1, 2, 300)},         {"long signals", 5, IN(2, 2, 4, 2, 4, 35)},
    {"wide groups", 5, IN(2, 2, 34, 2, 34, 19)},
};
static const struct op_case bad[] = {
    {"signals", 5, {OP_F32(2, 6, 5), OP_F32(2, 6, 4), OP_F32(6), OP_F32(2, 3), OP_F32(2, 3)}},
    {"gamma", 5, {OP_F32(2, 6, 5), OP_F32(2, 6, 5), OP_F32(5), OP_F32(2, 3), OP_F32(2, 3)}},
    {"groups", 5, {OP_F32(2, 6, 5), OP_F32(2, 6, 5), OP_F32(6), OP_F32(2, 4), OP_F32(2, 4)}},
    {"no groups", 5, {OP_F32(2, 6, 5), OP_F32(2, 6, 5), OP_F32(6), OP_F32(2, 0), OP_F32(2, 0)}},
    {"mean", 5, {OP_F32(2, 6, 5), OP_F32(2, 6, 5), OP_F32(6), OP_F32(3, 3), OP_F32(3, 3)}},
    {"rstd", 5, {OP_F32(2, 6, 5), OP_F32(2, 6, 5), OP_F32(6), OP_F32(2, 3), OP_F32(2, 2)}},
    {"integers", 5, {OP_F32(2, 6), OP_I32(2, 6), OP_F32(6), OP_F32(2, 3), OP_F32(2, 3)}},
};

const struct op_def op_group_norm_grad = {
    .name = "group_norm_grad",
    .math = "g = dy gamma, dx = rstd (g - mean(g) - xhat mean(g xhat)), dgamma = sum(dy xhat), dbeta = sum(dy)",
    .min_in = 5,
    .max_in = 5,
    .n_out = 3,
    .shape = shape,
    .ref = ref,
    .no_grad = "differentiated through its expansion",
    .expand = expand,
    .cost = cost,
    .no_onnx = "gradients are not exported",
    OP_CASES(cases),
    OP_BAD(bad),
};
