/* rotary_attention: self-attention by heads with the positions of tokens as rotations of queries and keys, straight
 * from the layer that makes the three. Su et al. 2021.
 *
 * Operands: qkv [B, T, 3 W], of each token queries, keys, values, the heads of each side by side; cos and sin [T, n],
 * n = W / heads, an even number. Feature i of a query or key x becomes x_i cos_i + x_j sin_i, where j is the feature
 * half of n away: a rotation where cos and sin have both halves alike but for the sign of sin. */
#include <math.h>

#include "op/op.h"

enum { HEADS, SCALE = 0 };

struct dims {
    int64_t b, t, w, heads, n;
};

static struct dims dims_of(const struct op_call *c)
{
    const int64_t *x = c->in[0].shape.dim, heads = c->attr.i[HEADS];
    return (struct dims){x[0], x[1], x[2] / 3, heads, x[2] / 3 / heads};
}

hone_t hone_rotary_attention(hone_t qkv, hone_t cosines, hone_t sines, int64_t heads, double scale)
{
    const hone_shape s = hone_type_of(qkv).shape;
    if (scale == 0)
        scale = s.rank == 3 && heads > 0 && s.dim[2] >= 3 * heads ? 1 / sqrt((double)(s.dim[2] / 3 / heads)) : 1;
    struct op_attr a = {.i = {[HEADS] = heads}, .f = {[SCALE] = scale}};
    return op_emit(&op_rotary_attention, 3, (hone_t[]){qkv, cosines, sines}, &a, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *x = &c->in[0].shape, *r = &c->in[1].shape;
    const int64_t heads = c->attr.i[HEADS];
    if (!op_all_f32(c) || x->rank != 3)
        return op_refuse(c, err, "wants f32, and queries, keys and values as [B,T,3W]");
    if (heads < 1 || x->dim[2] % (6 * heads))
        return op_refuse(c, err, "queries, keys and values must divide into heads with an even number of features");
    const struct dims d = dims_of(c);
    if (!hone_shape_equal(r, &c->in[2].shape) || !hone_shape_equal(r, &HONE_SHAPE(d.t, d.n)))
        return op_refuse(c, err, "cosines and sines must be [T,W/heads]");
    if (!(fabs(c->attr.f[SCALE]) > 0 && isfinite(c->attr.f[SCALE])))
        return op_refuse(c, err, "the scale must be a number other than zero");
    out[0] = (hone_type){HONE_F32, {3, {d.b, d.t, d.w}}};
    return HONE_OK;
}

/* Feature i of the query or key x of token t, turned. */
static double turned(const struct dims *d, const double *const *in, const double *x, int64_t t, int64_t i)
{
    const int64_t h = d->n / 2, j = i < h ? i + h : i - h;
    return x[i] * in[1][t * d->n + i] + x[j] * in[2][t * d->n + i];
}

static double score(const struct op_call *c, const struct dims *d, const double *const *in, const double *head,
                    int64_t t, int64_t s)
{
    double sum = 0;
    for (int64_t i = 0; i < d->n; i++)
        sum += turned(d, in, head + t * 3 * d->w, t, i) * turned(d, in, head + s * 3 * d->w + d->w, s, i);
    return sum * c->attr.f[SCALE];
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const struct dims d = dims_of(c);
    for (int64_t row = 0; row < d.b * d.heads * d.t; row++) {
        const int64_t b = row / d.t / d.heads, h = row / d.t % d.heads, t = row % d.t;
        const double *head = in[0] + b * d.t * 3 * d.w + h * d.n;
        double *y = out[0] + (b * d.t + t) * d.w + h * d.n;
        double largest = -INFINITY, sum = 0;
        for (int64_t s = 0; s < d.t; s++)
            largest = fmax(largest, score(c, &d, in, head, t, s));
        for (int64_t i = 0; i < d.n; i++)
            y[i] = 0;
        for (int64_t s = 0; s < d.t; s++) {
            const double p = exp(score(c, &d, in, head, t, s) - largest);
            sum += p;
            for (int64_t i = 0; i < d.n; i++)
                y[i] += p * head[s * 3 * d.w + 2 * d.w + i];
        }
        for (int64_t i = 0; i < d.n; i++)
            y[i] /= sum;
    }
}

/* x [.., T, n] turned. */
static hone_t turn(const struct op_use *u, hone_t x, const struct dims *d)
{
    const int last = hone_type_of(x).shape.rank - 1;
    const int64_t h = d->n / 2;
    hone_t swapped = hone_concat(2, (hone_t[]){hone_slice(x, last, h, h), hone_slice(x, last, 0, h)}, last);
    return hone_add(hone_mul(x, u->in[1]), hone_mul(swapped, u->in[2]));
}

static void expand(const struct op_use *u, hone_t *out)
{
    const struct dims d = dims_of(u->call);
    const hone_shape one = HONE_SHAPE(d.b, d.heads, d.t, d.n);
    hone_t y = hone_permute(hone_reshape(u->in[0], HONE_SHAPE(d.b, d.t, 3, d.heads, d.n)), (int[]){2, 0, 3, 1, 4});
    hone_t qk = turn(u, hone_slice(y, 0, 0, 2), &d);
    hone_t q = hone_reshape(hone_slice(qk, 0, 0, 1), one), k = hone_reshape(hone_slice(qk, 0, 1, 1), one);
    hone_t v = hone_reshape(hone_slice(y, 0, 2, 1), one);
    y = hone_permute(hone_attention(q, k, v, HONE_NONE, u->call->attr.f[SCALE]), (int[]){0, 2, 1, 3});
    out[0] = hone_reshape(y, HONE_SHAPE(d.b, d.t, d.w));
}

static struct op_cost cost(const struct op_call *c)
{
    const struct dims d = dims_of(c);
    const double pairs = (double)(d.b * d.t) * (double)d.t * (double)d.heads;
    return (struct op_cost){4 * pairs * (double)d.n + 5 * pairs + 6 * (double)(d.b * d.t * d.w),
                            16 * (double)(d.b * d.t * d.w) + 8 * (double)(d.t * d.n)};
}

#define A(heads, scale)                                                                                                \
    {                                                                                                                  \
        .i = {heads}, .f = { scale }                                                                                   \
    }
#define OPERANDS(b, t, heads, n) OP_F32(b, t, 3 * (heads) * (n)), OP_F32(t, n), OP_F32(t, n)
static const struct op_case cases[] = {
    {"plain", 3, {OPERANDS(2, 5, 2, 4)}, A(2, 0.5)},
    {"one head", 3, {OPERANDS(1, 3, 1, 2)}, A(1, 0.7)},
    {"one token", 3, {OPERANDS(2, 1, 3, 6)}, A(3, 1)},
    {"a tile", 3, {OPERANDS(1, 16, 2, 32)}, A(2, 0.17)},
    {"heads of 20", 3, {OPERANDS(2, 17, 2, 20)}, A(2, 0.22)},
    {"heads of 48", 3, {OPERANDS(1, 9, 2, 48)}, A(2, -0.1)},
    {"many tokens", 3, {OPERANDS(1, 64, 1, 8)}, A(1, 0.3)},
    {"more tokens", 3, {OPERANDS(1, 65, 1, 2)}, A(1, 0.3)},
    {"tiles and a rest", 3, {OPERANDS(1, 43, 2, 16)}, A(2, 0.2)},
    {.name = "sharp", .n_in = 3, .in = {OPERANDS(1, 7, 1, 16)}, .attr = A(1, 1), .lo = -4, .hi = 4},
    {"no batch", 3, {OPERANDS(0, 4, 2, 4)}, A(2, 0.5)},
    {"no tokens", 3, {OPERANDS(2, 0, 2, 4)}, A(2, 0.5)},
    {"no width", 3, {OPERANDS(2, 3, 2, 0)}, A(2, 0.5)},
};
static const struct op_case bad[] = {
    {"rank", 3, {OP_F32(4, 24), OP_F32(4, 4), OP_F32(4, 4)}, A(2, 0.5)},
    {"heads", 3, {OPERANDS(1, 4, 3, 4)}, A(2, 0.5)},
    {"no head", 3, {OPERANDS(1, 4, 2, 4)}, A(0, 0.5)},
    {"odd heads", 3, {OPERANDS(1, 4, 2, 3)}, A(2, 0.5)},
    {"cosines", 3, {OP_F32(1, 4, 24), OP_F32(5, 4), OP_F32(5, 4)}, A(2, 0.5)},
    {"sines", 3, {OP_F32(1, 4, 24), OP_F32(4, 4), OP_F32(4, 2)}, A(2, 0.5)},
    {"integers", 3, {OP_I32(1, 4, 24), OP_F32(4, 4), OP_F32(4, 4)}, A(2, 0.5)},
    {"scale", 3, {OPERANDS(1, 4, 2, 4)}, A(2, 0)},
};

const struct op_def op_rotary_attention = {
    .name = "rotary_attention",
    .math = "y = softmax(scale r(q) r(k)') v, r: x_i cos_i + x_(i + n/2) sin_i",
    .attr_i = "heads",
    .attr_f = "scale",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .no_grad = "that of its expansion",
    .expand = expand,
    .cost = cost,
    .no_onnx = "exported as its expansion",
    OP_CASES(cases),
    OP_BAD(bad),
};
