/* layer_norm: the last dimension to mean 0 and deviation 1, then scaled and shifted element by element.
 * Ba, Kiros and Hinton 2016. */
#include "op/norm.h"

/* beta without gamma is an addition. */
hone_t hone_layer_norm(hone_t x, hone_t gamma, hone_t beta, double eps)
{
    struct op_attr a = {.f = {[NORM_EPS] = eps}};
    int n = !op_has(gamma) ? 1 : op_has(beta) ? 3 : 2;
    hone_t y = op_emit(&op_layer_norm, n, (hone_t[]){x, gamma, beta}, &a, NULL);
    return n == 1 && op_has(beta) ? hone_add(y, beta) : y;
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *x = &c->in[0].shape;
    if (!op_all_f32(c))
        return op_refuse(c, err, "all operands must be f32");
    if (x->rank < 1)
        return op_refuse(c, err, "the first operand needs a dimension");
    for (int i = 1; i < c->n_in; i++)
        if (c->in[i].shape.rank != 1 || c->in[i].shape.dim[0] != x->dim[x->rank - 1])
            return op_refuse(c, err, "gamma and beta need one number an element of the last dimension");
    out[0] = c->in[0];
    out[1] = out[2] = op_norm_last_stat(&c->in[0]);
    return op_norm_check_eps(c, err);
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    struct op_norm q = op_norm_last(&c->in[0].shape, true);
    op_norm_ref(&q, c->attr.f[NORM_EPS], in[0], c->n_in > 1 ? in[1] : NULL, c->n_in > 2 ? in[2] : NULL, out[0], out[1],
                out[2]);
}

static struct op_norm_values values(const struct op_use *u)
{
    int n = u->call->n_in;
    return (struct op_norm_values){
        .x = u->in[0], .gamma = n > 1 ? u->in[1] : HONE_NONE, .beta = n > 2 ? u->in[2] : HONE_NONE};
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    struct op_norm q = op_norm_last(&u->call->in[0].shape, true);
    struct op_norm_values v = values(u);
    hone_t d[3] = {HONE_NONE};
    v.mean = u->out[1];
    v.rstd = u->out[2];
    if (op_has(dout[0])) {
        hone_t in[] = {dout[0], v.x, v.mean, v.rstd, v.gamma};
        op_emit(&op_layer_norm_grad, u->call->n_in > 1 ? 5 : 4, in, NULL, d);
        for (int i = 1; i < u->call->n_in; i++)
            din[i] = d[i];
    }
    din[0] = op_norm_add_stat_grad(&q, &v, d[0], dout[1], dout[2]);
}

static void expand(const struct op_use *u, hone_t *out)
{
    struct op_norm q = op_norm_last(&u->call->in[0].shape, true);
    struct op_norm_values v = values(u);
    op_norm_expand(&q, u->call->attr.f[NORM_EPS], &v, &u->call->out[1].shape, &out[0], &out[1], &out[2]);
}

static struct op_cost cost(const struct op_call *c)
{
    return op_norm_cost(c, 9);
}

#define EPS(eps)                                                                                                       \
    {                                                                                                                  \
        .f = { eps }                                                                                                   \
    }
static const struct op_case cases[] = {
    {"rows", 3, {OP_F32(3, 7), OP_F32(7), OP_F32(7)}, EPS(1e-5)},
    {"vector", 3, {OP_F32(9), OP_F32(9), OP_F32(9)}, EPS(1e-5)},
    {"tokens", 3, {OP_F32(2, 3, 16), OP_F32(16), OP_F32(16)}, EPS(1e-5)},
    {"without beta", 2, {OP_F32(3, 7), OP_F32(7)}, EPS(1e-5)},
    {"without gamma and beta", 1, {OP_F32(2, 3, 19)}, EPS(1e-5)},
    {"one element", 3, {OP_F32(1), OP_F32(1), OP_F32(1)}, EPS(1e-2)},
    {"no rows", 3, {OP_F32(0, 5), OP_F32(5), OP_F32(5)}, EPS(1e-5)},
    {"no elements", 3, {OP_F32(3, 0), OP_F32(0), OP_F32(0)}, EPS(1e-5)},
    {"many rows", 3, {OP_F32(70, 5), OP_F32(5), OP_F32(5)}, EPS(1e-5)},
    {"long", 3, {OP_F32(2, 601), OP_F32(601), OP_F32(601)}, EPS(1e-5)},
    {.name = "far from zero", .n_in = 1, .in = {OP_F32(3, 300)}, .attr = EPS(1e-5), .lo = 998, .hi = 1002, .tol = 1e-6},
    {.name = "far from zero, scaled",
     .n_in = 2,
     .in = {OP_F32(2, 90), OP_F32(90)},
     .attr = EPS(1e-5),
     .lo = 998,
     .hi = 1002,
     .tol = 1e-6},
};
static const struct op_case bad[] = {
    {"scalar", 1, {OP_F32_SCALAR}, EPS(1e-5)},
    {"gamma", 2, {OP_F32(3, 7), OP_F32(3)}, EPS(1e-5)},
    {"beta", 3, {OP_F32(3, 7), OP_F32(7), OP_F32(3, 7)}, EPS(1e-5)},
    {"eps", 1, {OP_F32(3, 7)}, EPS(0)},
    {"negative eps", 1, {OP_F32(3, 7)}, EPS(-1)},
    {"integers", 1, {OP_I32(3, 7)}, EPS(1e-5)},
};

const struct op_def op_layer_norm = {
    .name = "layer_norm",
    .math = "y = (x - mean) rstd gamma + beta, mean and rstd over the last dimension",
    .attr_f = "eps",
    .min_in = 1,
    .max_in = 3,
    .n_out = 3,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .expand = expand,
    .batch = op_norm_batch,
    .cost = cost,
    .onnx = "LayerNormalization",
    OP_CASES(cases),
    OP_BAD(bad),
};
