/* permute: dimensions in another order. A view when only dimensions of 1 change places. */
#include "op/op.h"

hone_t hone_permute(hone_t x, const int *perm)
{
    struct op_attr a = {.i = {hone_type_of(x).shape.rank}};
    for (int i = 0; i < a.i[0]; i++)
        a.i[1 + i] = perm[i];
    return op_emit(&op_permute, 1, &x, &a, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *s = &c->in[0].shape;
    const int64_t *perm = c->attr.i + 1;
    unsigned seen = 0;
    if (c->attr.i[0] != s->rank)
        return op_refuse(c, err, "the order must have as many entries as the operand has dimensions");
    out[0] = c->in[0];
    for (int i = 0; i < s->rank; i++) {
        if (perm[i] < 0 || perm[i] >= s->rank || seen >> perm[i] & 1)
            return op_refuse(c, err, "the order must name each dimension once");
        seen |= 1u << perm[i];
        out[0].shape.dim[i] = s->dim[perm[i]];
    }
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const hone_shape *s = &c->in[0].shape, *t = &c->out[0].shape;
    int64_t stride[HONE_MAX_RANK], idx[HONE_MAX_RANK] = {0}, step = 1, at = 0;
    for (int i = s->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= s->dim[i];
    }
    if (step == 0)
        return;
    do {
        int64_t from = 0;
        for (int i = 0; i < t->rank; i++)
            from += idx[i] * stride[c->attr.i[1 + i]];
        out[0][at++] = in[0][from];
    } while (op_next(t, idx));
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    int back[HONE_MAX_RANK] = {0};
    for (int i = 0; i < u->call->attr.i[0]; i++)
        back[u->call->attr.i[1 + i]] = i;
    din[0] = hone_permute(dout[0], back);
}

static void batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out)
{
    int perm[HONE_MAX_RANK] = {0};
    (void)many;
    (void)n;
    for (int i = 0; i < u->call->attr.i[0]; i++)
        perm[i + 1] = (int)u->call->attr.i[1 + i] + 1;
    out[0] = hone_permute(u->in[0], perm);
}

static bool view(const struct op_call *c, size_t *offset)
{
    int64_t last = -1;
    *offset = 0;
    for (int i = 0; i < c->attr.i[0]; i++) {
        if (c->in[0].shape.dim[c->attr.i[1 + i]] == 1)
            continue;
        if (c->attr.i[1 + i] < last)
            return false;
        last = c->attr.i[1 + i];
    }
    return true;
}

static struct op_cost cost(const struct op_call *c)
{
    return (struct op_cost){0, 2 * (double)op_numel(&c->out[0]) * (double)hone_dtype_size(c->out[0].dtype)};
}

#define P(...)                                                                                                         \
    {                                                                                                                  \
        .i = { __VA_ARGS__ }                                                                                           \
    }
static const struct op_case cases[] = {
    {"transpose", 1, {OP_F32(3, 5)}, P(2, 1, 0)},
    {"larger", 1, {OP_F32(37, 65)}, P(2, 1, 0)},
    {"nothing moves", 1, {OP_F32(3, 5)}, P(2, 0, 1)},
    {"scalar", 1, {OP_F32_SCALAR}, P(0)},
    {"one", 1, {OP_F32(1, 1)}, P(2, 1, 0)},
    {"a dimension of 1 moves", 1, {OP_F32(3, 1, 5)}, P(3, 1, 0, 2)},
    {"heads", 1, {OP_F32(2, 7, 4, 8)}, P(4, 0, 2, 1, 3)},
    {"channels last", 1, {OP_F32(3, 17, 19)}, P(3, 0, 2, 1)},
    {"channels first", 1, {OP_U8(2, 9, 11, 3)}, P(4, 0, 3, 1, 2)},
    {"turn left", 1, {OP_F32(5, 6, 7)}, P(3, 1, 2, 0)},
    {"turn right", 1, {OP_F32(5, 6, 7)}, P(3, 2, 0, 1)},
    {"reverse", 1, {OP_F32(3, 4, 5, 6)}, P(4, 3, 2, 1, 0)},
    {"seven", 1, {OP_F32(2, 1, 3, 2, 2, 3, 2)}, P(7, 6, 2, 4, 0, 1, 3, 5)},
    {"empty", 1, {OP_F32(3, 0, 2)}, P(3, 2, 1, 0)},
    {"indices", 1, {OP_I32(4, 9)}, P(2, 1, 0), .below = 99},
    {"masks", 1, {OP_BOOL(17, 33)}, P(2, 1, 0)},
};
static const struct op_case bad[] = {
    {"count", 1, {OP_F32(3, 5)}, P(3, 0, 1, 2)},
    {"twice", 1, {OP_F32(3, 5)}, P(2, 1, 1)},
    {"beyond", 1, {OP_F32(3, 5)}, P(2, 0, 2)},
    {"negative", 1, {OP_F32(3, 5)}, P(2, 0, -1)},
};

const struct op_def op_permute = {
    .name = "permute",
    .math = "y[i_p0, i_p1, ...] = x[i_0, i_1, ...]",
    .attr_i = "rank p0 p1 p2 p3 p4 p5 p6 p7",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = OP_VIEW,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .batch = batch,
    .cost = cost,
    .onnx = "Transpose",
    .view = view,
    OP_CASES(cases),
    OP_BAD(bad),
};
