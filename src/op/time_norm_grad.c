/* time_norm_grad: the gradients of time_norm by x, gamma and beta.
 *
 *   xhat = (x - mean) rstd,  u = xhat gamma + beta,  d = dy act'(u)
 *
 * and d through the norm as in group_norm_grad. u is computed again, not kept. */
#include <math.h>

#include "op/time_norm.h"

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *x = &c->in[TNG_X].shape;
    const hone_status s = op_time_norm_check(c, TNG_X, err);
    if (s != HONE_OK)
        return s;
    if (!hone_shape_equal(x, &c->in[TNG_DY].shape))
        return op_refuse(c, err, "the first two operands need one shape, [T,B,C]");
    const hone_shape stat = HONE_SHAPE(x->dim[1], c->attr.i[TN_GROUPS]);
    if (!hone_shape_equal(&stat, &c->in[TNG_MEAN].shape) || !hone_shape_equal(&stat, &c->in[TNG_RSTD].shape))
        return op_refuse(c, err, "the statistics must be [B,G]");
    out[0] = c->in[TNG_X];
    out[1] = out[2] = c->in[TNG_GAMMA];
    return HONE_OK;
}

static double slope(int64_t act, double x)
{
    const double s = 1 / (1 + exp(-x));
    double t;
    switch (act) {
    case CB_MISH:
        t = tanh(x > 30 ? x : log1p(exp(x)));
        return t + x * s * (1 - t * t);
    case CB_SILU:
        return s + x * s * (1 - s);
    case CB_RELU:
        return x > 0;
    case CB_GELU_TANH:
        t = tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
    default:
        return 1;
    }
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const int64_t *dim = c->in[TNG_X].shape.dim, groups = c->attr.i[TN_GROUPS], width = dim[2] / groups;
    const int64_t n = dim[0] * width;
    const double *gamma = in[TNG_GAMMA];
    for (int64_t o = 0; o < dim[2]; o++)
        out[1][o] = out[2][o] = 0;
    for (int64_t r = 0; r < dim[1] * groups; r++) {
        const double m = in[TNG_MEAN][r], s = in[TNG_RSTD][r];
        double level = 0, along = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t i = 0; i < n; i++) {
                const int64_t o = r % groups * width + i % width, at = (i / width * dim[1] + r / groups) * dim[2] + o;
                const double xhat = (in[TNG_X][at] - m) * s;
                const double d = in[TNG_DY][at] * slope(c->attr.i[TN_ACT], xhat * gamma[o] + in[TNG_BETA][o]);
                if (pass == 0) {
                    level += d * gamma[o] / (double)n;
                    along += d * gamma[o] * xhat / (double)n;
                    out[1][o] += d * xhat;
                    out[2][o] += d;
                } else {
                    out[0][at] = s * (d * gamma[o] - level - xhat * along);
                }
            }
    }
}

/* gelu_tanh is x sigmoid(a), a = 2 sqrt(2 / pi) (x + 0.044715 x^3); with s = sigmoid(a): s + x a' s (1 - s). */
static hone_t gelu_slope(hone_t x)
{
    const double k = 2 * 0.7978845608028654, cubic = 0.044715;
    hone_t square = hone_mul(x, x), s = hone_sigmoid(hone_mul(x, hone_affine(square, k * cubic, k)));
    hone_t bent = hone_mul(x, hone_affine(square, 3 * k * cubic, k));
    return hone_add(s, hone_mul(bent, hone_mul(s, hone_affine(s, -1, 1))));
}

static hone_t times_slope(int64_t act, hone_t dy, hone_t x)
{
    switch (act) {
    case CB_MISH:
        return op_emit(&op_mish_grad, 2, (hone_t[]){x, dy}, NULL, NULL);
    case CB_SILU:
        return op_emit(&op_silu_grad, 2, (hone_t[]){x, dy}, NULL, NULL);
    case CB_RELU:
        return hone_mul(dy, hone_relu(hone_sign(x)));
    case CB_GELU_TANH:
        return hone_mul(dy, gelu_slope(x));
    default:
        return dy;
    }
}

/* u [B, C, T] of x [B, C, T]. */
static hone_t before_act(const struct op_use *u, hone_t x)
{
    const int64_t *d = u->call->in[TNG_X].shape.dim, groups = u->call->attr.i[TN_GROUPS];
    const hone_shape rows = HONE_SHAPE(d[1], groups, d[2] / groups, d[0]), stat = HONE_SHAPE(d[1], groups, 1, 1),
                     channels = HONE_SHAPE(d[2], 1);
    hone_t xm = hone_sub(hone_reshape(x, rows), hone_reshape(u->in[TNG_MEAN], stat));
    hone_t xhat = hone_reshape(hone_mul(xm, hone_reshape(u->in[TNG_RSTD], stat)), hone_type_of(x).shape);
    return hone_add(hone_mul(xhat, hone_reshape(u->in[TNG_GAMMA], channels)), hone_reshape(u->in[TNG_BETA], channels));
}

static void expand(const struct op_use *u, hone_t *out)
{
    hone_t x = op_time_last(u->in[TNG_X]), dy = op_time_last(u->in[TNG_DY]);
    const int64_t act = u->call->attr.i[TN_ACT];
    hone_t d = act == CB_IDENTITY ? dy : times_slope(act, dy, before_act(u, x));
    op_emit(&op_group_norm_grad, 5, (hone_t[]){d, x, u->in[TNG_GAMMA], u->in[TNG_MEAN], u->in[TNG_RSTD]}, NULL, out);
    out[0] = op_time_first(out[0]);
}

static struct op_cost cost(const struct op_call *c)
{
    return op_norm_cost(c, c->attr.i[TN_ACT] == CB_IDENTITY ? 15 : 25);
}

#define A(groups, act)                                                                                                 \
    {                                                                                                                  \
        .i = { groups, act }                                                                                           \
    }
#define IN(g, t, b, c)                                                                                                 \
    {                                                                                                                  \
        OP_F32(t, b, c), OP_F32(t, b, c), OP_F32(c), OP_F32(c), OP_F32(b, g), OP_F32(b, g)                             \
    }
static const struct op_case cases[] = {
    {"identity", 6, IN(3, 5, 2, 6), A(3, CB_IDENTITY)},
    {"mish", 6, IN(2, 7, 3, 10), A(2, CB_MISH)},
    {"silu", 6, IN(3, 4, 2, 24), A(3, CB_SILU)},
    {"relu", 6, IN(7, 4, 5, 7), A(7, CB_RELU)},
    {"gelu_tanh", 6, IN(3, 6, 2, 33), A(3, CB_GELU_TANH)},
    {"one group", 6, IN(1, 3, 3, 20), A(1, CB_MISH)},
    {"a channel each", 6, IN(19, 9, 2, 19), A(19, CB_MISH)},
    {"one row", 6, IN(2, 1, 4, 16), A(2, CB_MISH)},
    {"one sample", 6, IN(8, 16, 1, 64), A(8, CB_MISH)},
    {"one element", 6, IN(1, 1, 1, 1), A(1, CB_MISH)},
    {"many samples", 6, IN(8, 16, 5, 64), A(8, CB_MISH)},
    {"many odd samples", 6, IN(3, 3, 50, 15), A(3, CB_SILU)},
    {"wide groups", 6, IN(8, 4, 3, 256), A(8, CB_MISH)},
    {"wide odd groups", 6, IN(3, 5, 3, 87), A(3, CB_IDENTITY)},
    {"long", 6, IN(2, 300, 2, 4), A(2, CB_MISH)},
    {"no samples", 6, IN(2, 3, 0, 4), A(2, CB_MISH)},
    {"no time", 6, IN(2, 0, 2, 4), A(2, CB_MISH)},
    {"no channels", 6, IN(2, 3, 2, 0), A(2, CB_MISH)},
    {.name = "steep", .n_in = 6, .in = IN(2, 3, 2, 32), .attr = A(2, CB_MISH), .lo = -5, .hi = 5},
    {.name = "steep gates", .n_in = 6, .in = IN(2, 3, 2, 32), .attr = A(2, CB_SILU), .lo = -5, .hi = 5},
    {.name = "steep gelu", .n_in = 6, .in = IN(2, 3, 2, 32), .attr = A(2, CB_GELU_TANH), .lo = -5, .hi = 5},
};
#define BAD(dy, x, gamma, beta, mean, rstd) 6, {dy, x, gamma, beta, mean, rstd}, A(3, CB_MISH)
#define X                                   OP_F32(5, 2, 6)
#define C                                   OP_F32(6)
#define S                                   OP_F32(2, 3)
static const struct op_case bad[] = {
    {"slopes", BAD(OP_F32(4, 2, 6), X, C, C, S, S)},   {"rank", BAD(OP_F32(5, 6), OP_F32(5, 6), C, C, S, S)},
    {"gamma", BAD(X, X, OP_F32(5), C, S, S)},          {"beta", BAD(X, X, C, OP_F32(6, 1), S, S)},
    {"mean", BAD(X, X, C, C, OP_F32(2, 2), S)},        {"rstd", BAD(X, X, C, C, S, OP_F32(3, 3))},
    {"integers", BAD(OP_I32(5, 2, 6), X, C, C, S, S)}, {"groups", 6, IN(4, 5, 2, 6), A(4, CB_MISH)},
    {"no groups", 6, IN(0, 5, 2, 6), A(0, CB_MISH)},   {"activation", 6, IN(3, 5, 2, 6), A(3, -1)},
};

const struct op_def op_time_norm_grad = {
    .name = "time_norm_grad",
    .math = "the gradients of time_norm: d = dy act'(u), then dx, dgamma and dbeta as in group_norm_grad",
    .attr_i = "groups act",
    .min_in = 6,
    .max_in = 6,
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
