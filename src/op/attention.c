/* attention: scaled dot-product attention by heads.  Vaswani et al. 2017. */
#include "op/attention.h"

#include <math.h>

enum { Q, K, V, MASK };

hone_t hone_attention(hone_t q, hone_t k, hone_t v, hone_t mask, double scale)
{
    hone_shape s = hone_type_of(q).shape;
    if (scale == 0)
        scale = s.rank > 0 && s.dim[s.rank - 1] > 0 ? 1 / sqrt((double)s.dim[s.rank - 1]) : 1;
    struct op_attr a = {.f = {[ATTENTION_SCALE] = scale}};
    return op_emit(&op_attention, op_has(mask) ? 4 : 3, (hone_t[]){q, k, v, mask}, &a, NULL);
}

/* --- shared --- */

hone_status op_attention_check(const struct op_call *c, int first, hone_err *err)
{
    const hone_type *q = &c->in[first], *k = q + 1, *v = q + 2;
    hone_shape scores, both;
    for (int i = 0; i < first + 3; i++)
        if (c->in[i].dtype != HONE_F32)
            return op_refuse(c, err, "queries, keys and values must be f32");
    if (q->shape.rank != 4 || k->shape.rank != 4)
        return op_refuse(c, err, "queries and keys need four dimensions, [B,H,S,D]");
    if (!hone_shape_equal(&k->shape, &v->shape))
        return op_refuse(c, err, "keys and values need one shape");
    for (int i = 0; i < 4; i++)
        if (i != 2 && q->shape.dim[i] != k->shape.dim[i])
            return op_refuse(c, err, "queries and keys must agree in all but the number of tokens (dimension 2)");
    scores = q->shape;
    scores.dim[3] = k->shape.dim[2];
    if (c->n_in > first + 3 &&
        (c->in[first + 3].dtype != HONE_BOOL || !op_broadcast_shape(&c->in[first + 3].shape, &scores, &both) ||
         !hone_shape_equal(&both, &scores)))
        return op_refuse(c, err, "the mask must be bool and broadcast to [B,H,Sq,Sk]");
    if (!(fabs(c->attr.f[ATTENTION_SCALE]) > 0 && isfinite(c->attr.f[ATTENTION_SCALE])))
        return op_refuse(c, err, "the scale must be a number other than zero");
    return HONE_OK;
}

struct op_attention op_attention_dims(const struct op_call *c, int first)
{
    const hone_shape *q = &c->in[first].shape, *k = &c->in[first + 1].shape;
    struct op_attention a = {q->dim[0], q->dim[1], q->dim[2], k->dim[2], q->dim[3], {0}};
    hone_shape scores = *q;
    scores.dim[3] = a.sk;
    if (c->n_in > first + 3)
        op_strides(&c->in[first + 3].shape, &scores, a.mask);
    return a;
}

static double score(const struct op_attention_row *r, int64_t j)
{
    double s = 0;
    if (r->mask && r->mask[j * r->a->mask[3]] == 0)
        return -INFINITY;
    for (int64_t e = 0; e < r->a->d; e++)
        s += r->scale * r->q[e] * r->k[j * r->a->d + e];
    return s;
}

/* `row` counts over [batch, heads, sq]. */
struct op_attention_row op_attention_ref_row(const struct op_attention *a, double scale, const double *q,
                                             const double *k, const double *mask, int64_t row)
{
    const int64_t pair = row / a->sq, b = pair / a->heads, h = pair % a->heads, i = row % a->sq;
    struct op_attention_row r = {a, q + row * a->d, k + pair * a->sk * a->d, NULL, scale, -INFINITY, 0};
    if (mask)
        r.mask = mask + b * a->mask[0] + h * a->mask[1] + i * a->mask[2];
    for (int64_t j = 0; j < a->sk; j++)
        r.largest = fmax(r.largest, score(&r, j));
    for (int64_t j = 0; j < a->sk && r.largest > -INFINITY; j++)
        r.sum += exp(score(&r, j) - r.largest);
    return r;
}

double op_attention_ref_weight(const struct op_attention_row *r, int64_t j)
{
    return r->sum > 0 ? exp(score(r, j) - r->largest) / r->sum : 0;
}

/* What is masked gets a score far below all others: its exponential is 0 in f32. In a row where all is masked the
 * weights come out equal; the second choice makes them 0, and lets no gradient through. */
hone_t op_attention_weights(hone_t q, hone_t k, hone_t mask, double scale)
{
    hone_t s = hone_affine(hone_matmul(q, k, false, true), scale, 0);
    if (!op_has(mask))
        return hone_softmax(s, 3);
    s = hone_softmax(hone_where(mask, s, hone_const_f32(q.g, -1e30f)), 3);
    return hone_where(mask, s, hone_const_f32(q.g, 0));
}

struct op_cost op_attention_cost(const struct op_call *c, int first, double products)
{
    const struct op_attention a = op_attention_dims(c, first);
    const double scores = (double)(a.batch * a.heads * a.sq * a.sk);
    struct op_cost k = {scores * (2 * products * (double)a.d + 12), 0};
    for (int i = 0; i < c->n_in; i++)
        k.bytes += (double)op_numel(&c->in[i]) * (double)hone_dtype_size(c->in[i].dtype);
    for (int i = 0; i < c->n_out; i++)
        k.bytes += 4 * (double)op_numel(&c->out[i]);
    return k;
}

/* --- attention --- */

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    out[0] = c->in[Q];
    return op_attention_check(c, Q, err);
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const struct op_attention a = op_attention_dims(c, Q);
    for (int64_t row = 0; row < a.batch * a.heads * a.sq; row++) {
        const double *v = in[V] + row / a.sq * a.sk * a.d;
        double *y = out[0] + row * a.d;
        const struct op_attention_row r =
            op_attention_ref_row(&a, c->attr.f[ATTENTION_SCALE], in[Q], in[K], c->n_in > MASK ? in[MASK] : NULL, row);
        for (int64_t e = 0; e < a.d; e++)
            y[e] = 0;
        for (int64_t j = 0; j < a.sk; j++) {
            const double p = op_attention_ref_weight(&r, j);
            for (int64_t e = 0; e < a.d; e++)
                y[e] += p * v[j * a.d + e];
        }
    }
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    hone_t in[] = {dout[0], u->in[Q], u->in[K], u->in[V], u->call->n_in > MASK ? u->in[MASK] : HONE_NONE};
    op_emit(&op_attention_grad, u->call->n_in + 1, in, &u->call->attr, din);
}

static void expand(const struct op_use *u, hone_t *out)
{
    hone_t mask = u->call->n_in > MASK ? u->in[MASK] : HONE_NONE;
    hone_t p = op_attention_weights(u->in[Q], u->in[K], mask, u->call->attr.f[ATTENTION_SCALE]);
    out[0] = hone_matmul(p, u->in[V], false, false);
}

static struct op_cost cost(const struct op_call *c)
{
    return op_attention_cost(c, Q, 2);
}

#define SCALE(s)                                                                                                       \
    {                                                                                                                  \
        .f = { s }                                                                                                     \
    }
#define QKV(b, h, sq, sk, d) OP_F32(b, h, sq, d), OP_F32(b, h, sk, d), OP_F32(b, h, sk, d)
static const struct op_case cases[] = {
    {"plain", 3, {QKV(2, 2, 3, 5, 4)}, SCALE(0.5)},
    {"one head", 3, {QKV(1, 1, 16, 16, 7)}, SCALE(0.4)},
    {"one token", 3, {QKV(2, 1, 1, 1, 3)}, SCALE(1)},
    {"mask of all", 4, {QKV(2, 2, 3, 5, 4), OP_BOOL(2, 2, 3, 5)}, SCALE(0.5)},
    {"mask of tokens", 4, {QKV(2, 2, 5, 5, 4), OP_BOOL(5, 5)}, SCALE(0.5)},
    {"mask of keys", 4, {QKV(3, 2, 4, 7, 2), OP_BOOL(3, 1, 1, 7)}, SCALE(0.7)},
    {"mask of queries", 4, {QKV(1, 2, 9, 3, 2), OP_BOOL(9, 1)}, SCALE(0.7)},
    {"rows without a key", 4, {QKV(2, 3, 8, 2, 3), OP_BOOL(2, 3, 8, 2)}, SCALE(0.6)},
    {"no batch", 3, {QKV(0, 2, 3, 5, 4)}, SCALE(0.5)},
    {"no queries", 3, {QKV(2, 2, 0, 5, 4)}, SCALE(0.5)},
    {"no keys", 3, {QKV(2, 2, 3, 0, 4)}, SCALE(0.5)},
    {"no width", 3, {QKV(1, 2, 3, 4, 0)}, SCALE(1)},
    {"long", 4, {QKV(1, 2, 37, 33, 3), OP_BOOL(37, 33)}, SCALE(0.4)},
    {.name = "sharp", .n_in = 3, .in = {QKV(1, 1, 4, 9, 16)}, .attr = SCALE(1), .lo = -6, .hi = 6},
};
static const struct op_case bad[] = {
    {"rank", 3, {OP_F32(3, 4), OP_F32(5, 4), OP_F32(5, 4)}, SCALE(0.5)},
    {"width", 3, {OP_F32(2, 2, 3, 4), OP_F32(2, 2, 5, 6), OP_F32(2, 2, 5, 6)}, SCALE(0.5)},
    {"heads", 3, {OP_F32(2, 2, 3, 4), OP_F32(2, 1, 5, 4), OP_F32(2, 1, 5, 4)}, SCALE(0.5)},
    {"values", 3, {OP_F32(2, 2, 3, 4), OP_F32(2, 2, 5, 4), OP_F32(2, 2, 6, 4)}, SCALE(0.5)},
    {"mask", 4, {QKV(2, 2, 3, 5, 4), OP_BOOL(3, 4)}, SCALE(0.5)},
    {"mask too large", 4, {QKV(1, 2, 3, 5, 4), OP_BOOL(2, 2, 3, 5)}, SCALE(0.5)},
    {"mask of numbers", 4, {QKV(2, 2, 3, 5, 4), OP_F32(3, 5)}, SCALE(0.5)},
    {"integers", 3, {OP_I32(2, 2, 3, 4), OP_F32(2, 2, 5, 4), OP_F32(2, 2, 5, 4)}, SCALE(0.5)},
    {"scale", 3, {QKV(2, 2, 3, 5, 4)}, SCALE(0)},
};

const struct op_def op_attention = {
    .name = "attention",
    .math = "y = softmax(scale q k') v, keys where the mask is true; 0 where there is none",
    .attr_f = "scale",
    .min_in = 3,
    .max_in = 4,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .expand = expand,
    .cost = cost,
    .no_onnx = "exported as MatMul, Mul, Where, Softmax, Where, MatMul",
    OP_CASES(cases),
    OP_BAD(bad),
};
