/* conv_block: a convolution with all that follows it in a residual block of a U-Net, for a few samples at a time.
 *
 *   y = act(norm(conv(x) + bias)), then scale * y + shift of each sample (FiLM), then + residual
 *
 * Time first: x [T, B, C] -> y [T', B, O]. Operands: x, weights as conv_pack orders them, bias [O]; with groups > 0
 * gamma [O] and beta [O]; with film scale [B, O] and shift [B, O]; with residual [T', B, O]. Made by fusion. */
#include "op/conv_block.h"

#include <math.h>

#include "op/conv.h"

#include "op/op.h"

struct parts {
    int64_t t, b, c, o, k, t_out;
    int gamma, film, residual; /* operand numbers; 0: none */
};

static bool find_parts(const struct op_call *c, struct parts *p)
{
    const int64_t *a = c->attr.i;
    const hone_shape *x = &c->in[0].shape, *w = &c->in[1].shape;
    int at = 3;
    *p = (struct parts){0};
    p->gamma = a[CB_GROUPS] > 0 ? at : 0;
    at += p->gamma ? 2 : 0;
    p->film = a[CB_FILM] ? at : 0;
    at += p->film ? 2 : 0;
    p->residual = a[CB_RESIDUAL] ? at++ : 0;
    if (c->n_in != at || x->rank != 3 || w->rank != 4 || a[CB_STRIDE] < 1 || a[CB_PAD] < 0)
        return false;
    p->t = x->dim[0], p->b = x->dim[1], p->c = x->dim[2], p->o = a[CB_OUT], p->k = w->dim[2];
    p->t_out = (p->t + 2 * a[CB_PAD] - p->k) / a[CB_STRIDE] + 1;
    return p->k > 0 && p->t + 2 * a[CB_PAD] >= p->k;
}

static bool is(const struct op_call *c, int i, hone_shape s)
{
    return hone_shape_equal(&c->in[i].shape, &s);
}

/* Input channels whose weights stand side by side. */
static int64_t together(const struct op_call *c)
{
    return c->in[1].dtype == HONE_BF16 ? 2 : 1;
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    struct parts p;
    const int64_t *a = c->attr.i;
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].dtype != HONE_F32 && (i != 1 || c->in[i].dtype != HONE_BF16))
            return op_refuse(c, err, "all operands must be f32, but for weights, which may be bf16");
    if (!find_parts(c, &p))
        return op_refuse(c, err, "wants x [T, B, C], packed weights, bias, and what its attributes announce");
    const int64_t blocks = (p.o + CB_LANES - 1) / CB_LANES, n = together(c);
    if (p.o < 1 || !is(c, 1, HONE_SHAPE(blocks, p.c / n, p.k, n * CB_LANES)) || p.c % n || !is(c, 2, HONE_SHAPE(p.o)))
        return op_refuse(c, err, "weights and bias must fit the channels");
    if (p.gamma && (p.o % a[CB_GROUPS] || !is(c, p.gamma, HONE_SHAPE(p.o)) || !is(c, p.gamma + 1, HONE_SHAPE(p.o)) ||
                    c->attr.f[0] <= 0))
        return op_refuse(c, err, "groups must divide the channels, epsilon be positive");
    if ((p.film && !(is(c, p.film, HONE_SHAPE(p.b, p.o)) && is(c, p.film + 1, HONE_SHAPE(p.b, p.o)))) ||
        (p.residual && !is(c, p.residual, HONE_SHAPE(p.t_out, p.b, p.o))))
        return op_refuse(c, err, "scale and shift must be [B, O], the residual as the result");
    out[0] = (hone_type){HONE_F32, {3, {p.t_out, p.b, p.o}}};
    return HONE_OK;
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
        return x / (1 + exp(-2 * 0.79788456080286536 * (x + 0.044715 * x * x * x)));
    default:
        return x;
    }
}

static void ref_conv(const struct op_call *c, const struct parts *p, const double *const *in, double *y)
{
    const int64_t *a = c->attr.i, n = together(c);
    for (int64_t t = 0; t < p->t_out; t++)
        for (int64_t b = 0; b < p->b; b++)
            for (int64_t o = 0; o < p->o; o++) {
                double sum = in[2][o];
                for (int64_t k = 0; k < p->k; k++) {
                    int64_t s = t * a[CB_STRIDE] + k - a[CB_PAD];
                    for (int64_t i = 0; s >= 0 && s < p->t && i < p->c; i++)
                        sum +=
                            in[0][(s * p->b + b) * p->c + i] *
                            in[1][(((o / CB_LANES * p->c + i) / n * p->k + k) * CB_LANES + o % CB_LANES) * n + i % n];
                }
                y[(t * p->b + b) * p->o + o] = sum;
            }
}

static void ref_norm(const struct op_call *c, const struct parts *p, const double *const *in, double *y)
{
    const int64_t groups = c->attr.i[CB_GROUPS], width = p->o / groups, n = width * p->t_out;
    for (int64_t b = 0; b < p->b; b++)
        for (int64_t g = 0; g < groups; g++) {
            double mean = 0, var = 0;
            for (int pass = 0; pass < 3; pass++)
                for (int64_t i = 0; i < n; i++) {
                    int64_t o = g * width + i % width;
                    double *v = &y[(i / width * p->b + b) * p->o + o];
                    if (pass == 0)
                        mean += *v / (double)n;
                    else if (pass == 1)
                        var += (*v - mean) * (*v - mean) / (double)n;
                    else
                        *v = (*v - mean) / sqrt(var + c->attr.f[0]) * in[p->gamma][o] + in[p->gamma + 1][o];
                }
        }
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    struct parts p;
    double *y = out[0];
    if (!find_parts(c, &p))
        return;
    ref_conv(c, &p, in, y);
    if (p.gamma)
        ref_norm(c, &p, in, y);
    for (int64_t i = 0; i < p.t_out * p.b * p.o; i++) {
        int64_t o = i % p.o, b = i / p.o % p.b;
        y[i] = activate(c->attr.i[CB_ACT], y[i]);
        if (p.film)
            y[i] = y[i] * in[p.film][b * p.o + o] + in[p.film + 1][b * p.o + o];
        if (p.residual)
            y[i] += in[p.residual][i];
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
    const int64_t *a = u->call->attr.i;
    struct parts p;
    if (!find_parts(u->call, &p))
        return;
    const int64_t blocks = u->call->in[1].shape.dim[0], n = together(u->call);
    hone_t w = hone_reshape(hone_cast(u->in[1], HONE_F32), HONE_SHAPE(blocks, p.c / n, p.k, CB_LANES, n));
    w = hone_permute(w, (const int[]){0, 3, 1, 4, 2});
    w = hone_slice(hone_reshape(w, HONE_SHAPE(blocks * CB_LANES, p.c, p.k)), 0, 0, p.o);
    hone_t x = hone_permute(u->in[0], (const int[]){1, 2, 0});
    hone_t y = hone_conv1d(x, w, u->in[2], a[CB_STRIDE], a[CB_PAD], 1);
    if (p.gamma)
        y = hone_group_norm(y, u->in[p.gamma], u->in[p.gamma + 1], (int)a[CB_GROUPS], u->call->attr.f[0]);
    y = hone_permute(expand_act(a[CB_ACT], y), (const int[]){2, 0, 1});
    if (p.film)
        y = hone_add(hone_mul(y, u->in[p.film]), u->in[p.film + 1]);
    out[0] = p.residual ? hone_add(y, u->in[p.residual]) : y;
}

static struct op_cost cost(const struct op_call *c)
{
    struct parts p;
    struct op_cost k = {0};
    if (!find_parts(c, &p))
        return k;
    k.flops = 2.0 * (double)op_conv_pairs(p.t_out, p.k, p.t, c->attr.i[CB_STRIDE], c->attr.i[CB_PAD]) *
              (double)(p.b * p.o * p.c);
    for (int i = 0; i < c->n_in; i++)
        k.bytes += (double)hone_dtype_size(c->in[i].dtype) * (double)op_numel(&c->in[i]);
    k.bytes += 4.0 * (double)op_numel(&c->out[0]);
    return k;
}

#define A(stride, pad, out, groups, act, film, res)                                                                    \
    {                                                                                                                  \
        .i = {stride, pad, out, groups, act, film, res}, .f = { 1e-5 }                                                 \
    }
static const struct op_case cases[] = {
    {"bias only", 3, {OP_F32(6, 1, 3), OP_F32(1, 3, 3, 16), OP_F32(5)}, A(1, 1, 5, 0, CB_IDENTITY, 0, 0)},
    {"one tap", 3, {OP_F32(4, 1, 7), OP_F32(2, 7, 1, 16), OP_F32(20)}, A(1, 0, 20, 0, CB_IDENTITY, 0, 0)},
    {"stride", 3, {OP_F32(8, 2, 3), OP_F32(1, 3, 3, 16), OP_F32(16)}, A(2, 1, 16, 0, CB_RELU, 0, 0)},
    {"norm",
     5,
     {OP_F32(16, 1, 6), OP_F32(1, 6, 5, 16), OP_F32(16), OP_F32(16), OP_F32(16)},
     A(1, 2, 16, 8, CB_MISH, 0, 0)},
    {"groups over blocks",
     5,
     {OP_F32(4, 1, 5), OP_F32(3, 5, 5, 16), OP_F32(48), OP_F32(48), OP_F32(48)},
     A(1, 2, 48, 2, CB_SILU, 0, 0)},
    {"film",
     7,
     {OP_F32(8, 2, 3), OP_F32(1, 3, 5, 16), OP_F32(12), OP_F32(12), OP_F32(12), OP_F32(2, 12), OP_F32(2, 12)},
     A(1, 2, 12, 4, CB_MISH, 1, 0)},
    {"residual",
     6,
     {OP_F32(8, 2, 3), OP_F32(1, 3, 5, 16), OP_F32(12), OP_F32(12), OP_F32(12), OP_F32(8, 2, 12)},
     A(1, 2, 12, 4, CB_MISH, 0, 1)},
    {"all, long",
     8,
     {OP_F32(37, 1, 9), OP_F32(2, 9, 5, 16), OP_F32(32), OP_F32(32), OP_F32(32), OP_F32(1, 32), OP_F32(1, 32),
      OP_F32(37, 1, 32)},
     A(1, 2, 32, 8, CB_MISH, 1, 1)},
    {"one number a group",
     5,
     {OP_F32(1, 2, 3), OP_F32(1, 3, 1, 16), OP_F32(4), OP_F32(4), OP_F32(4)},
     A(1, 0, 4, 4, CB_MISH, 0, 0)},
    {"time of four",
     5,
     {OP_F32(4, 2, 7), OP_F32(5, 7, 5, 16), OP_F32(80), OP_F32(80), OP_F32(80)},
     A(1, 2, 80, 5, CB_MISH, 0, 0)},
    {"time of eight",
     5,
     {OP_F32(8, 2, 7), OP_F32(3, 7, 3, 16), OP_F32(40), OP_F32(40), OP_F32(40)},
     A(1, 1, 40, 5, CB_MISH, 0, 0)},
    {"time of sixteen",
     5,
     {OP_F32(16, 1, 7), OP_F32(4, 7, 5, 16), OP_F32(64), OP_F32(64), OP_F32(64)},
     A(1, 2, 64, 8, CB_GELU_TANH, 0, 0)},
    {"a row", 3, {OP_F32(1, 1, 33), OP_F32(9, 33, 1, 16), OP_F32(144)}, A(1, 0, 144, 0, CB_GELU_TANH, 0, 0)},
    {"rows", 3, {OP_F32(11, 2, 9), OP_F32(5, 9, 1, 16), OP_F32(70)}, A(1, 0, 70, 0, CB_SILU, 0, 0)},
    {"fourteen rows", 3, {OP_F32(14, 1, 20), OP_F32(1, 20, 1, 16), OP_F32(16)}, A(1, 0, 16, 0, CB_IDENTITY, 0, 0)},
    {"twelve rows", 3, {OP_F32(12, 1, 9), OP_F32(5, 9, 1, 16), OP_F32(80)}, A(1, 0, 80, 0, CB_IDENTITY, 0, 0)},
    {"many channels", 3, {OP_F32(18, 1, 300), OP_F32(3, 300, 1, 16), OP_F32(41)}, A(1, 0, 41, 0, CB_IDENTITY, 0, 0)},
    {"many rows", 3, {OP_F32(26, 2, 150), OP_F32(3, 150, 1, 16), OP_F32(48)}, A(1, 0, 48, 0, CB_RELU, 0, 0)},
    {"bf16, many channels", 3, {OP_F32(16, 1, 270), OP_BF16(2, 135, 1, 32), OP_F32(32)}, A(1, 0, 32, 0, 0, 0, 0)},
    {"many parts",
     5,
     {OP_F32(4, 1, 64), OP_F32(16, 64, 5, 16), OP_F32(256), OP_F32(256), OP_F32(256)},
     A(1, 2, 256, 8, CB_MISH, 0, 0)},
    {"bf16",
     5,
     {OP_F32(4, 2, 8), OP_BF16(5, 4, 5, 32), OP_F32(80), OP_F32(80), OP_F32(80)},
     A(1, 2, 80, 5, CB_MISH, 0, 0)},
    {"bf16 of eight", 3, {OP_F32(8, 1, 6), OP_BF16(3, 3, 3, 32), OP_F32(40)}, A(1, 1, 40, 0, CB_RELU, 0, 0)},
    {"bf16 rows", 3, {OP_F32(7, 1, 10), OP_BF16(5, 5, 1, 32), OP_F32(70)}, A(1, 0, 70, 0, CB_IDENTITY, 0, 0)},
    {"bf16, stride", 3, {OP_F32(8, 1, 4), OP_BF16(1, 2, 3, 32), OP_F32(16)}, A(2, 1, 16, 0, CB_RELU, 0, 0)},
    {"no sample", 3, {OP_F32(6, 0, 3), OP_F32(1, 3, 3, 16), OP_F32(5)}, A(1, 1, 5, 0, CB_IDENTITY, 0, 0)},
};
static const struct op_case bad[] = {
    {"channels", 3, {OP_F32(6, 1, 3), OP_F32(1, 4, 3, 16), OP_F32(5)}, A(1, 1, 5, 0, 0, 0, 0)},
    {"groups", 5, {OP_F32(6, 1, 3), OP_F32(1, 3, 3, 16), OP_F32(5), OP_F32(5), OP_F32(5)}, A(1, 1, 5, 2, 0, 0, 0)},
    {"residual", 4, {OP_F32(6, 1, 3), OP_F32(1, 3, 3, 16), OP_F32(5), OP_F32(5, 1, 5)}, A(1, 1, 5, 0, 0, 0, 1)},
    {"short", 3, {OP_F32(2, 1, 3), OP_F32(1, 3, 5, 16), OP_F32(5)}, A(1, 1, 5, 0, 0, 0, 0)},
};

const struct op_def op_conv_block = {
    .name = "conv_block",
    .math = "y = film(act(norm(conv(x)))) + residual",
    .attr_i = "stride pad out groups act film residual",
    .attr_f = "eps",
    .min_in = 3,
    .max_in = 8,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .no_grad = "made after differentiation; its expansion has one",
    .expand = expand,
    .cost = cost,
    .no_onnx = "exported before fusion",
    OP_CASES(cases),
    OP_BAD(bad),
};
