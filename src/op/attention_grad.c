/* attention_grad: the gradients of attention by queries, keys and values. The weights p are taken again from q and k:
 *
 *     dp = dy v',  ds = p (dp - sum(p dp)),  dq = scale ds k,  dk = scale ds' q,  dv = p' dy */
#include "op/attention.h"

enum { DY, Q, K, V, MASK };

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    out[0] = c->in[Q];
    out[1] = c->in[K];
    out[2] = c->in[V];
    if (!hone_shape_equal(&c->in[DY].shape, &c->in[Q].shape))
        return op_refuse(c, err, "the first operand needs the shape of the queries");
    return op_attention_check(c, Q, err);
}

/* One row of queries, its part of all three. */
static void ref_row(const struct op_attention_row *r, const double *dy, const double *v, double *dq, double *dk,
                    double *dv)
{
    const int64_t d = r->a->d, sk = r->a->sk;
    double along = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t j = 0; j < sk; j++) {
            double p = op_attention_ref_weight(r, j), dp = 0;
            for (int64_t e = 0; e < d; e++)
                dp += dy[e] * v[j * d + e];
            if (pass == 0) {
                along += p * dp;
                continue;
            }
            for (int64_t e = 0; e < d; e++) {
                dq[e] += r->scale * p * (dp - along) * r->k[j * d + e];
                dk[j * d + e] += r->scale * p * (dp - along) * r->q[e];
                dv[j * d + e] += p * dy[e];
            }
        }
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const struct op_attention a = op_attention_dims(c, Q);
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < op_numel(&c->out[k]); i++)
            out[k][i] = 0;
    for (int64_t row = 0; row < a.batch * a.heads * a.sq; row++) {
        const int64_t key = row / a.sq * a.sk * a.d;
        const struct op_attention_row r =
            op_attention_ref_row(&a, c->attr.f[ATTENTION_SCALE], in[Q], in[K], c->n_in > MASK ? in[MASK] : NULL, row);
        ref_row(&r, in[DY] + row * a.d, in[V] + key, out[0] + row * a.d, out[1] + key, out[2] + key);
    }
}

static void expand(const struct op_use *u, hone_t *out)
{
    const double scale = u->call->attr.f[ATTENTION_SCALE];
    hone_t dy = u->in[DY], q = u->in[Q], k = u->in[K], v = u->in[V];
    hone_t p = op_attention_weights(q, k, u->call->n_in > MASK ? u->in[MASK] : HONE_NONE, scale);
    hone_t dp = hone_matmul(dy, v, false, true);
    hone_t ds = hone_mul(p, hone_sub(dp, hone_sum(hone_mul(dp, p), HONE_AXIS(3), true)));
    ds = hone_affine(ds, scale, 0);
    out[0] = hone_matmul(ds, k, false, false);
    out[1] = hone_matmul(ds, q, true, false);
    out[2] = hone_matmul(p, dy, true, false);
}

static struct op_cost cost(const struct op_call *c)
{
    return op_attention_cost(c, Q, 5);
}

#define SCALE(s)                                                                                                       \
    {                                                                                                                  \
        .f = { s }                                                                                                     \
    }
#define DYQKV(b, h, sq, sk, d) OP_F32(b, h, sq, d), OP_F32(b, h, sq, d), OP_F32(b, h, sk, d), OP_F32(b, h, sk, d)
static const struct op_case cases[] = {
    {"plain", 4, {DYQKV(2, 2, 3, 5, 4)}, SCALE(0.5)},
    {"one token", 4, {DYQKV(2, 1, 1, 1, 3)}, SCALE(1)},
    {"mask of all", 5, {DYQKV(2, 2, 3, 5, 4), OP_BOOL(2, 2, 3, 5)}, SCALE(0.5)},
    {"mask of tokens", 5, {DYQKV(2, 2, 5, 5, 4), OP_BOOL(5, 5)}, SCALE(0.5)},
    {"mask of keys", 5, {DYQKV(3, 2, 4, 7, 2), OP_BOOL(3, 1, 1, 7)}, SCALE(0.7)},
    {"rows without a key", 5, {DYQKV(2, 3, 8, 2, 3), OP_BOOL(2, 3, 8, 2)}, SCALE(0.6)},
    {"no batch", 4, {DYQKV(0, 2, 3, 5, 4)}, SCALE(0.5)},
    {"no queries", 4, {DYQKV(2, 2, 0, 5, 4)}, SCALE(0.5)},
    {"no keys", 4, {DYQKV(2, 2, 3, 0, 4)}, SCALE(0.5)},
    {"no width", 4, {DYQKV(1, 2, 3, 4, 0)}, SCALE(1)},
    {"long", 5, {DYQKV(1, 2, 37, 33, 3), OP_BOOL(37, 33)}, SCALE(0.4)},
};
static const struct op_case bad[] = {
    {"result", 4, {OP_F32(2, 2, 4, 4), OP_F32(2, 2, 3, 4), OP_F32(2, 2, 5, 4), OP_F32(2, 2, 5, 4)}, SCALE(0.5)},
    {"values", 4, {OP_F32(2, 2, 3, 4), OP_F32(2, 2, 3, 4), OP_F32(2, 2, 5, 4), OP_F32(2, 2, 6, 4)}, SCALE(0.5)},
    {"mask", 5, {DYQKV(2, 2, 3, 5, 4), OP_BOOL(3, 4)}, SCALE(0.5)},
    {"integers", 4, {OP_I32(2, 2, 3, 4), OP_F32(2, 2, 3, 4), OP_F32(2, 2, 5, 4), OP_F32(2, 2, 5, 4)}, SCALE(0.5)},
};

const struct op_def op_attention_grad = {
    .name = "attention_grad",
    .math = "dp = dy v', ds = p (dp - sum(p dp)), dq = scale ds k, dk = scale ds' q, dv = p' dy",
    .attr_f = "scale",
    .min_in = 4,
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
