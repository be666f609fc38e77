/* group_norm: each group of channels of each sample to mean 0 and deviation 1, then scaled and shifted by channel.
 * Wu and He 2018. */
#include "op/norm.h"

hone_t hone_group_norm(hone_t x, hone_t gamma, hone_t beta, int64_t groups, double eps)
{
    struct op_attr a = {.i = {[NORM_GROUPS] = groups}, .f = {[NORM_EPS] = eps}};
    return op_emit(&op_group_norm, 3, (hone_t[]){x, gamma, beta}, &a, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *x = &c->in[0].shape;
    int64_t groups = c->attr.i[NORM_GROUPS];
    if (!op_all_f32(c))
        return op_refuse(c, err, "all operands must be f32");
    if (x->rank < 2)
        return op_refuse(c, err, "the first operand needs two dimensions or more, [N,C,...]");
    for (int i = 1; i < 3; i++)
        if (c->in[i].shape.rank != 1 || c->in[i].shape.dim[0] != x->dim[1])
            return op_refuse(c, err, "gamma and beta need one number a channel (dimension 1 of the first operand)");
    if (groups < 1 || x->dim[1] % groups)
        return op_refuse(c, err, "the number of groups must divide the channels (dimension 1)");
    out[0] = c->in[0];
    out[1] = out[2] = (hone_type){HONE_F32, HONE_SHAPE(x->dim[0], groups)};
    return op_norm_check_eps(c, err);
}

static struct op_norm dims(const struct op_call *c)
{
    return op_norm_groups(&c->in[0].shape, c->attr.i[NORM_GROUPS]);
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    struct op_norm q = dims(c);
    op_norm_ref(&q, c->attr.f[NORM_EPS], in[0], in[1], in[2], out[0], out[1], out[2]);
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    struct op_norm q = dims(u->call);
    struct op_norm_values v = {u->in[0], u->in[1], u->in[2], u->out[1], u->out[2]};
    if (op_has(dout[0]))
        op_emit(&op_group_norm_grad, 5, (hone_t[]){dout[0], v.x, v.gamma, v.mean, v.rstd}, NULL, din);
    din[0] = op_norm_add_stat_grad(&q, &v, din[0], dout[1], dout[2]);
}

static void expand(const struct op_use *u, hone_t *out)
{
    struct op_norm q = dims(u->call);
    struct op_norm_values v = {.x = u->in[0], .gamma = u->in[1], .beta = u->in[2]};
    op_norm_expand(&q, u->call->attr.f[NORM_EPS], &v, &u->call->out[1].shape, &out[0], &out[1], &out[2]);
}

static struct op_cost cost(const struct op_call *c)
{
    return op_norm_cost(c, 9);
}

#define A(groups, eps)                                                                                                 \
    {                                                                                                                  \
        .i = {groups}, .f = { eps }                                                                                    \
    }
#define X(c, ...)                                                                                                      \
    {                                                                                                                  \
        OP_F32(__VA_ARGS__), OP_F32(c), OP_F32(c)                                                                      \
    }
static const struct op_case cases[] = {
    {"signal", 3, X(6, 2, 6, 5), A(3, 1e-5)},
    {"image", 3, X(4, 2, 4, 3, 7), A(2, 1e-5)},
    {"volume", 3, X(4, 1, 4, 2, 3, 3), A(2, 1e-3)},
    {"channels alone", 3, X(8, 3, 8), A(2, 1e-5)},
    {"one group", 3, X(4, 3, 4, 2), A(1, 1e-5)},
    {"a channel each", 3, X(3, 2, 3, 9), A(3, 1e-5)},
    {"one element", 3, X(1, 1, 1, 1), A(1, 1e-2)},
    {"no samples", 3, X(4, 0, 4, 3), A(2, 1e-5)},
    {"no signal", 3, X(4, 2, 4, 0), A(2, 1e-5)},
    {"no channels", 3, X(0, 2, 0, 3), A(2, 1e-5)},
    {"many samples", 3, X(4, 70, 4, 3), A(2, 1e-5)},
    {"long", 3, X(2, 1, 2, 300), A(1, 1e-5)},
    {"long signals", 3, X(4, 2, 4, 35), A(2, 1e-5)},
    {"wide groups", 3, X(34, 2, 34, 19), A(2, 1e-5)},
    {.name = "equal elements", .n_in = 3, .in = X(4, 2, 4, 5), .attr = A(2, 1e-2), .lo = 1, .hi = 1},
    {.name = "far from zero", .n_in = 3, .in = X(4, 2, 4, 64), .attr = A(2, 1e-5), .lo = 998, .hi = 1002, .tol = 1e-6},
};
static const struct op_case bad[] = {
    {"groups", 3, X(6, 2, 6, 5), A(4, 1e-5)},
    {"no groups", 3, X(6, 2, 6, 5), A(0, 1e-5)},
    {"eps", 3, X(6, 2, 6, 5), A(3, 0)},
    {"negative eps", 3, X(6, 2, 6, 5), A(3, -1e-5)},
    {"rank", 3, X(6, 6), A(3, 1e-5)},
    {"gamma", 3, {OP_F32(2, 6, 5), OP_F32(5), OP_F32(6)}, A(3, 1e-5)},
    {"beta", 3, {OP_F32(2, 6, 5), OP_F32(6), OP_F32(1, 6)}, A(3, 1e-5)},
    {"integers", 3, {OP_I32(2, 6, 5), OP_F32(6), OP_F32(6)}, A(3, 1e-5)},
};

const struct op_def op_group_norm = {
    .name = "group_norm",
    .math = "y = (x - mean) rstd gamma + beta, mean and rstd of groups of channels",
    .attr_i = "groups",
    .attr_f = "eps",
    .min_in = 3,
    .max_in = 3,
    .n_out = 3,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .expand = expand,
    .cost = cost,
    .no_onnx = "exported as Reshape, InstanceNormalization, Reshape, Mul, Add",
    OP_CASES(cases),
    OP_BAD(bad),
};
