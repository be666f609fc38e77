/* time_norm: group_norm of values laid out time first, x [T, B, C], and the activation that follows it.
 *
 *   y = act((x - mean) rstd gamma + beta)
 *
 * mean and rstd [B, G] are those of the channels of a group over all of time, as in group_norm. */
#include "op/time_norm.h"

#include <math.h>

hone_status op_time_norm_check(const struct op_call *c, int first, hone_err *err)
{
    const hone_shape *x = &c->in[first].shape;
    const int64_t groups = c->attr.i[TN_GROUPS], act = c->attr.i[TN_ACT];
    if (!op_all_f32(c))
        return op_refuse(c, err, "all operands must be f32");
    if (x->rank != 3)
        return op_refuse(c, err, "x must have three dimensions, [T,B,C]");
    for (int i = first + 1; i < first + 3; i++)
        if (c->in[i].shape.rank != 1 || c->in[i].shape.dim[0] != x->dim[2])
            return op_refuse(c, err, "gamma and beta need one number a channel (dimension 2 of x)");
    if (groups < 1 || x->dim[2] % groups)
        return op_refuse(c, err, "the number of groups must divide the channels (dimension 2 of x)");
    if (act < CB_IDENTITY || act > CB_GELU_TANH)
        return op_refuse(c, err, "there is no activation of this number");
    return HONE_OK;
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_status s = op_time_norm_check(c, TN_X, err);
    if (s != HONE_OK)
        return s;
    out[0] = c->in[TN_X];
    out[1] = out[2] = (hone_type){HONE_F32, HONE_SHAPE(c->in[TN_X].shape.dim[1], c->attr.i[TN_GROUPS])};
    return op_norm_check_eps(c, err);
}

static double activate(int64_t act, double x)
{
    switch (act) {
    case CB_MISH:
        return x * tanh(x > 30 ? x : log1p(exp(x)));
    case CB_SILU:
        return x / (1 + exp(-x));
    case CB_RELU:
        return x > 0 ? x : 0;
    case CB_GELU_TANH:
        return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    default:
        return x;
    }
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const int64_t *d = c->in[TN_X].shape.dim, groups = c->attr.i[TN_GROUPS], width = d[2] / groups, n = d[0] * width;
    for (int64_t r = 0; r < d[1] * groups; r++) {
        const int64_t first = r % groups * width;
        double mean = 0, var = 0;
        for (int pass = 0; pass < 3; pass++)
            for (int64_t i = 0; i < n; i++) {
                const int64_t o = first + i % width, at = (i / width * d[1] + r / groups) * d[2] + o;
                const double x = in[TN_X][at];
                if (pass == 0)
                    mean += x / (double)n;
                else if (pass == 1)
                    var += (x - mean) * (x - mean) / (double)n;
                else
                    out[0][at] =
                        activate(c->attr.i[TN_ACT],
                                 (x - mean) / sqrt(var + c->attr.f[NORM_EPS]) * in[TN_GAMMA][o] + in[TN_BETA][o]);
            }
        out[1][r] = mean;
        out[2][r] = 1 / sqrt(var + c->attr.f[NORM_EPS]);
    }
}

static hone_t expand_act(int64_t act, hone_t x)
{
    return act == CB_MISH        ? hone_mish(x)
           : act == CB_SILU      ? hone_silu(x)
           : act == CB_RELU      ? hone_relu(x)
           : act == CB_GELU_TANH ? hone_gelu_tanh(x)
                                 : x;
}

static void expand(const struct op_use *u, hone_t *out)
{
    const struct op_attr *a = &u->call->attr,
                         norm = {.i = {[NORM_GROUPS] = a->i[TN_GROUPS]}, .f = {[NORM_EPS] = a->f[NORM_EPS]}};
    op_emit(&op_group_norm, 3, (hone_t[]){op_time_last(u->in[TN_X]), u->in[TN_GAMMA], u->in[TN_BETA]}, &norm, out);
    out[0] = op_time_first(expand_act(a->i[TN_ACT], out[0]));
}

static struct op_cost cost(const struct op_call *c)
{
    return op_norm_cost(c, c->attr.i[TN_ACT] == CB_IDENTITY ? 9 : 14);
}

#define A(groups, act, eps)                                                                                            \
    {                                                                                                                  \
        .i = {groups, act}, .f = { eps }                                                                               \
    }
#define X(t, b, c)                                                                                                     \
    {                                                                                                                  \
        OP_F32(t, b, c), OP_F32(c), OP_F32(c)                                                                          \
    }
static const struct op_case cases[] = {
    {"identity", 3, X(5, 2, 6), A(3, CB_IDENTITY, 1e-5)},
    {"mish", 3, X(7, 3, 10), A(2, CB_MISH, 1e-5)},
    {"silu", 3, X(4, 2, 24), A(3, CB_SILU, 1e-5)},
    {"relu", 3, X(4, 5, 7), A(7, CB_RELU, 1e-3)},
    {"gelu_tanh", 3, X(6, 2, 33), A(3, CB_GELU_TANH, 1e-5)},
    {"one group", 3, X(3, 3, 20), A(1, CB_MISH, 1e-5)},
    {"a channel each", 3, X(9, 2, 19), A(19, CB_MISH, 1e-5)},
    {"one row", 3, X(1, 4, 16), A(2, CB_MISH, 1e-5)},
    {"one sample", 3, X(16, 1, 64), A(8, CB_MISH, 1e-5)},
    {"one element", 3, X(1, 1, 1), A(1, CB_MISH, 1e-2)},
    {"many samples", 3, X(16, 5, 64), A(8, CB_MISH, 1e-5)},
    {"many odd samples", 3, X(3, 50, 15), A(3, CB_SILU, 1e-5)},
    {"wide groups", 3, X(4, 3, 256), A(8, CB_MISH, 1e-5)},
    {"wide odd groups", 3, X(5, 3, 87), A(3, CB_IDENTITY, 1e-5)},
    {"long", 3, X(300, 2, 4), A(2, CB_MISH, 1e-5)},
    {"no samples", 3, X(3, 0, 4), A(2, CB_MISH, 1e-5)},
    {"no time", 3, X(0, 2, 4), A(2, CB_MISH, 1e-5)},
    {"no channels", 3, X(3, 2, 0), A(2, CB_MISH, 1e-5)},
    {.name = "equal elements", .n_in = 3, .in = X(5, 2, 4), .attr = A(2, CB_MISH, 1e-2), .lo = 1, .hi = 1},
    {.name = "far from zero",
     .n_in = 3,
     .in = X(64, 2, 4),
     .attr = A(2, CB_IDENTITY, 1e-5),
     .lo = 998,
     .hi = 1002,
     .tol = 1e-6},
};
static const struct op_case bad[] = {
    {"groups", 3, X(5, 2, 6), A(4, CB_MISH, 1e-5)},
    {"no groups", 3, X(5, 2, 6), A(0, CB_MISH, 1e-5)},
    {"activation", 3, X(5, 2, 6), A(3, CB_GELU_TANH + 1, 1e-5)},
    {"eps", 3, X(5, 2, 6), A(3, CB_MISH, 0)},
    {"rank", 3, {OP_F32(5, 6), OP_F32(6), OP_F32(6)}, A(3, CB_MISH, 1e-5)},
    {"gamma", 3, {OP_F32(5, 2, 6), OP_F32(5), OP_F32(6)}, A(3, CB_MISH, 1e-5)},
    {"beta", 3, {OP_F32(5, 2, 6), OP_F32(6), OP_F32(1, 6)}, A(3, CB_MISH, 1e-5)},
    {"integers", 3, {OP_I32(5, 2, 6), OP_F32(6), OP_F32(6)}, A(3, CB_MISH, 1e-5)},
};

const struct op_def op_time_norm = {
    .name = "time_norm",
    .math = "y = act((x - mean) rstd gamma + beta), time first, mean and rstd of groups of channels",
    .attr_i = "groups act",
    .attr_f = "eps",
    .min_in = 3,
    .max_in = 3,
    .n_out = 3,
    .shape = shape,
    .ref = ref,
    .no_grad = "made after differentiation; its expansion has one",
    .expand = expand,
    .cost = cost,
    .no_onnx = "exported before it is made",
    OP_CASES(cases),
    OP_BAD(bad),
};
