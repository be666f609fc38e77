/* adamw: one step of Adam with decoupled weight decay, on slabs of any shape.  Loshchilov and Hutter 2019, in the order
 * of PyTorch's AdamW:
 *
 *     g' = scale g
 *     p' = p (1 - lr weight_decay)
 *     m' = m + (1 - beta1) (g' - m)
 *     v' = beta2 v + (1 - beta2) g'^2
 *     p' = p' - lr / (1 - beta1^step) m' / (sqrt(v') / sqrt(1 - beta2^step) + eps)
 *
 * `step` counts from 1: the first update sees 1. (Of the step operators elsewhere some count from 0: Ascend's
 * ApplyAdamWV2 computes with its step + 1, whatever its page says, so a backend hands it step - 1.)
 * Where `skip` is not 0, p, m and v come out bit by bit as they were. */
#include <math.h>

#include "op/adamw.h"

void hone_adamw(hone_t p, hone_t g, hone_t m, hone_t v, hone_t lr, hone_t step, hone_t scale, hone_t skip, double beta1,
                double beta2, double eps, double weight_decay, hone_t *p1, hone_t *m1, hone_t *v1)
{
    const int n = op_has(skip) ? ADAMW_OPERANDS : op_has(scale) ? ADAMW_SKIP : ADAMW_SCALE;
    hone_t out[OP_MAX_OUT];
    if (op_has(skip) && !op_has(scale))
        scale = hone_const_f32(skip.g, 1);
    op_emit(&op_adamw, n, (hone_t[]){p, g, m, v, lr, step, scale, skip},
            &(struct op_attr){.f = {beta1, beta2, eps, weight_decay}}, out);
    *p1 = out[0];
    *m1 = out[1];
    *v1 = out[2];
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const double *f = c->attr.f;
    if (!op_all_f32(c))
        return op_refuse(c, err, "all operands must be f32");
    for (int i = ADAMW_G; i <= ADAMW_V; i++)
        if (!hone_shape_equal(&c->in[i].shape, &c->in[ADAMW_P].shape))
            return op_refuse(c, err, "parameters, gradients and both moments must have one shape");
    for (int i = ADAMW_LR; i < c->n_in; i++)
        if (op_numel(&c->in[i]) != 1)
            return op_refuse(c, err, "rate, step, scale and skip have one element each");
    if (!(f[ADAMW_BETA1] >= 0 && f[ADAMW_BETA1] < 1 && f[ADAMW_BETA2] >= 0 && f[ADAMW_BETA2] < 1))
        return op_refuse(c, err, "beta1 and beta2 must be 0 or more and less than 1");
    if (!(f[ADAMW_EPS] >= 0 && f[ADAMW_DECAY] >= 0 && isfinite(f[ADAMW_EPS]) && isfinite(f[ADAMW_DECAY])))
        return op_refuse(c, err, "eps and weight_decay must be 0 or more");
    out[0] = out[1] = out[2] = c->in[ADAMW_P];
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const double *f = c->attr.f, b1 = f[ADAMW_BETA1], b2 = f[ADAMW_BETA2];
    const double lr = in[ADAMW_LR][0], step = in[ADAMW_STEP][0];
    const double scale = c->n_in > ADAMW_SCALE ? in[ADAMW_SCALE][0] : 1;
    const bool skip = c->n_in > ADAMW_SKIP && in[ADAMW_SKIP][0] != 0;
    for (int64_t i = 0, n = op_numel(&c->in[ADAMW_P]); i < n; i++) {
        const double p = in[ADAMW_P][i], g = in[ADAMW_G][i] * scale;
        const double m = in[ADAMW_M][i] + (1 - b1) * (g - in[ADAMW_M][i]);
        const double v = b2 * in[ADAMW_V][i] + (1 - b2) * g * g;
        const double root = sqrt(v) / sqrt(1 - pow(b2, step)) + f[ADAMW_EPS];
        out[0][i] = skip ? p : p * (1 - lr * f[ADAMW_DECAY]) - lr / (1 - pow(b1, step)) * m / root;
        out[1][i] = skip ? in[ADAMW_M][i] : m;
        out[2][i] = skip ? in[ADAMW_V][i] : v;
    }
}

static hone_t operand(const struct op_use *u, int i)
{
    return hone_reshape(u->in[i], HONE_SCALAR);
}

/* 1 - beta^t = 2 h / (1 + h), h = tanh(-t log(beta) / 2): without the cancellation that f32 suffers near beta = 1. */
static hone_t one_minus_power(double beta, hone_t t)
{
    if (beta == 0)
        return hone_const_f32(t.g, 1);
    hone_t h = hone_tanh(hone_affine(t, -log(beta) / 2, 0));
    return hone_div(hone_affine(h, 2, 0), hone_affine(h, 1, 1));
}

static void expand(const struct op_use *u, hone_t *out)
{
    const double *f = u->call->attr.f;
    hone_t p = u->in[ADAMW_P], g = u->in[ADAMW_G], m = u->in[ADAMW_M], v = u->in[ADAMW_V];
    hone_t lr = operand(u, ADAMW_LR), t = operand(u, ADAMW_STEP);
    if (u->call->n_in > ADAMW_SCALE)
        g = hone_mul(g, operand(u, ADAMW_SCALE));
    out[1] = hone_add(m, hone_affine(hone_sub(g, m), 1 - f[ADAMW_BETA1], 0));
    out[2] = hone_add(v, hone_affine(hone_sub(hone_mul(g, g), v), 1 - f[ADAMW_BETA2], 0));
    hone_t root = hone_div(hone_sqrt(out[2]), hone_sqrt(one_minus_power(f[ADAMW_BETA2], t)));
    hone_t rate = hone_div(lr, one_minus_power(f[ADAMW_BETA1], t));
    hone_t move = hone_mul(rate, hone_div(out[1], hone_affine(root, 1, f[ADAMW_EPS])));
    out[0] = hone_sub(p, hone_add(hone_mul(p, hone_affine(lr, f[ADAMW_DECAY], 0)), move));
    if (u->call->n_in > ADAMW_SKIP) {
        hone_t skip = hone_cast(operand(u, ADAMW_SKIP), HONE_BOOL);
        out[0] = hone_where(skip, p, out[0]);
        out[1] = hone_where(skip, m, out[1]);
        out[2] = hone_where(skip, v, out[2]);
    }
}

static struct op_cost cost(const struct op_call *c)
{
    const double n = (double)op_numel(&c->in[ADAMW_P]);
    return (struct op_cost){15 * n, 4 * 7 * n};
}

/* Drawn in [0.5, 2], a skip is never 0: cases with one keep everything, the others move. */
#define CASE(name, n, ...)                                                                                             \
    {                                                                                                                  \
        name, n, {__VA_ARGS__}, {.f = {0.9, 0.999, 1e-8, 0.01}}, .lo = 0.5, .hi = 2                                    \
    }
#define SLABS(...) OP_F32(__VA_ARGS__), OP_F32(__VA_ARGS__), OP_F32(__VA_ARGS__), OP_F32(__VA_ARGS__)
static const struct op_case cases[] = {
    CASE("vector", 6, SLABS(7), OP_F32(1), OP_F32(1)),
    CASE("one", 6, SLABS(1), OP_F32_SCALAR, OP_F32(1)),
    CASE("empty", 6, SLABS(0), OP_F32(1), OP_F32(1)),
    CASE("matrix", 6, SLABS(3, 5), OP_F32(1, 1), OP_F32_SCALAR),
    CASE("scaled", 7, SLABS(33), OP_F32(1), OP_F32(1), OP_F32_SCALAR),
    CASE("long", 7, SLABS(1037), OP_F32(1), OP_F32(1), OP_F32(1)),
    CASE("skipped", 8, SLABS(33), OP_F32(1), OP_F32(1), OP_F32(1), OP_F32(1)),
    CASE("skipped, long", 8, SLABS(1037), OP_F32(1), OP_F32(1), OP_F32(1), OP_F32_SCALAR),
};
static const struct op_case bad[] = {
    CASE("shapes", 6, OP_F32(3), OP_F32(3), OP_F32(4), OP_F32(3), OP_F32(1), OP_F32(1)),
    CASE("rates", 6, SLABS(3), OP_F32(3), OP_F32(1)),
    CASE("integers", 6, SLABS(3), OP_F32(1), OP_I32(1)),
    {"beta", 6, {SLABS(3), OP_F32(1), OP_F32(1)}, {.f = {0.9, 1, 1e-8, 0}}},
    {"eps", 6, {SLABS(3), OP_F32(1), OP_F32(1)}, {.f = {0.9, 0.999, -1e-8, 0}}},
    {"decay", 6, {SLABS(3), OP_F32(1), OP_F32(1)}, {.f = {0.9, 0.999, 1e-8, -1}}},
};

const struct op_def op_adamw = {
    .name = "adamw",
    .math = "p, m, v after one step of Adam with decoupled weight decay",
    .attr_f = "beta1 beta2 eps weight_decay",
    .min_in = ADAMW_SCALE,
    .max_in = ADAMW_OPERANDS,
    .n_out = 3,
    .flags = OP_ANY_NUMBER, /* a step whose gradients overflowed is skipped here */
    .shape = shape,
    .ref = ref,
    .no_grad = "that of its expansion",
    .expand = expand,
    .cost = cost,
    .no_onnx = "training only",
    OP_CASES(cases),
    OP_BAD(bad),
};
