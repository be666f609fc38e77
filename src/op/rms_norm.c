/* rms_norm: the last dimension divided by its root mean square, then scaled element by element.
 * Zhang and Sennrich 2019. */
#include "op/norm.h"

hone_t hone_rms_norm(hone_t x, hone_t gamma, double eps)
{
    struct op_attr a = {.f = {[NORM_EPS] = eps}};
    return op_emit(&op_rms_norm, op_has(gamma) ? 2 : 1, (hone_t[]){x, gamma}, &a, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *x = &c->in[0].shape;
    if (!op_all_f32(c))
        return op_refuse(c, err, "all operands must be f32");
    if (x->rank < 1)
        return op_refuse(c, err, "the first operand needs a dimension");
    if (c->n_in > 1 && (c->in[1].shape.rank != 1 || c->in[1].shape.dim[0] != x->dim[x->rank - 1]))
        return op_refuse(c, err, "gamma needs one number an element of the last dimension");
    out[0] = c->in[0];
    out[1] = op_norm_last_stat(&c->in[0]);
    return op_norm_check_eps(c, err);
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    struct op_norm q = op_norm_last(&c->in[0].shape, false);
    op_norm_ref(&q, c->attr.f[NORM_EPS], in[0], c->n_in > 1 ? in[1] : NULL, NULL, out[0], NULL, out[1]);
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    struct op_norm q = op_norm_last(&u->call->in[0].shape, false);
    struct op_norm_values v = {.x = u->in[0], .rstd = u->out[1]};
    hone_t d[2] = {HONE_NONE};
    if (op_has(dout[0])) {
        bool scaled = u->call->n_in > 1;
        op_emit(&op_rms_norm_grad, scaled ? 4 : 3, (hone_t[]){dout[0], v.x, v.rstd, scaled ? u->in[1] : HONE_NONE},
                NULL, d);
        if (scaled)
            din[1] = d[1];
    }
    din[0] = op_norm_add_stat_grad(&q, &v, d[0], HONE_NONE, dout[1]);
}

static void expand(const struct op_use *u, hone_t *out)
{
    struct op_norm q = op_norm_last(&u->call->in[0].shape, false);
    struct op_norm_values v = {.x = u->in[0], .gamma = u->call->n_in > 1 ? u->in[1] : HONE_NONE};
    op_norm_expand(&q, u->call->attr.f[NORM_EPS], &v, &u->call->out[1].shape, &out[0], NULL, &out[1]);
}

static struct op_cost cost(const struct op_call *c)
{
    return op_norm_cost(c, 5);
}

#define EPS(eps)                                                                                                       \
    {                                                                                                                  \
        .f = { eps }                                                                                                   \
    }
static const struct op_case cases[] = {
    {"rows", 2, {OP_F32(3, 7), OP_F32(7)}, EPS(1e-6)},          {"vector", 2, {OP_F32(9), OP_F32(9)}, EPS(1e-6)},
    {"heads", 2, {OP_F32(2, 3, 2, 16), OP_F32(16)}, EPS(1e-6)}, {"without gamma", 1, {OP_F32(2, 3, 19)}, EPS(1e-6)},
    {"one element", 2, {OP_F32(1), OP_F32(1)}, EPS(1e-2)},      {"no rows", 2, {OP_F32(0, 5), OP_F32(5)}, EPS(1e-6)},
    {"no elements", 2, {OP_F32(3, 0), OP_F32(0)}, EPS(1e-6)},   {"many rows", 2, {OP_F32(70, 5), OP_F32(5)}, EPS(1e-6)},
    {"long", 2, {OP_F32(2, 601), OP_F32(601)}, EPS(1e-6)},
};
static const struct op_case bad[] = {
    {"scalar", 1, {OP_F32_SCALAR}, EPS(1e-6)},  {"gamma", 2, {OP_F32(3, 7), OP_F32(3)}, EPS(1e-6)},
    {"eps", 1, {OP_F32(3, 7)}, EPS(0)},         {"negative eps", 1, {OP_F32(3, 7)}, EPS(-1)},
    {"integers", 1, {OP_I32(3, 7)}, EPS(1e-6)},
};

const struct op_def op_rms_norm = {
    .name = "rms_norm",
    .math = "y = x rstd gamma, rstd = 1 / sqrt(mean(x^2) + eps) over the last dimension",
    .attr_f = "eps",
    .min_in = 1,
    .max_in = 2,
    .n_out = 2,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .expand = expand,
    .batch = op_norm_batch,
    .cost = cost,
    .no_onnx = "exported as Mul, ReduceMean, Add, Sqrt, Div, Mul",
    OP_CASES(cases),
    OP_BAD(bad),
};
