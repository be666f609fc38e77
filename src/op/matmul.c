/* matmul: batched product of matrices, either operand transposed. */
#include "op/op.h"

hone_t hone_matmul(hone_t x, hone_t y, bool ta, bool tb)
{
    return op_emit(&op_matmul, 2, (hone_t[]){x, y}, &(struct op_attr){.i = {ta, tb}}, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    hone_shape a = c->in[0].shape, b = c->in[1].shape, *o = &out[0].shape;
    bool ta = c->attr.i[0], tb = c->attr.i[1];
    if (!op_all_f32(c))
        return op_refuse(c, err, "both operands must be f32");
    if (a.rank < 2 || b.rank < 2)
        return op_refuse(c, err, "both operands need two dimensions or more");
    int64_t m = a.dim[a.rank - (ta ? 1 : 2)], k = a.dim[a.rank - (ta ? 2 : 1)];
    int64_t l = b.dim[b.rank - (tb ? 1 : 2)], n = b.dim[b.rank - (tb ? 2 : 1)];
    if (k != l)
        return op_refuse(c, err,
                         ta   ? tb ? "inner dimensions must agree (both transposed)"
                                   : "inner dimensions must agree (first transposed)"
                         : tb ? "inner dimensions must agree (second transposed)"
                              : "inner dimensions must agree");
    a.rank -= 2;
    b.rank -= 2;
    if (!op_broadcast_shape(&a, &b, o) || o->rank > HONE_MAX_RANK - 2)
        return op_refuse(c, err, "leading dimensions must broadcast");
    out[0].dtype = HONE_F32;
    o->dim[o->rank++] = m;
    o->dim[o->rank++] = n;
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    hone_shape a = c->in[0].shape, b = c->in[1].shape, o = c->out[0].shape;
    bool ta = c->attr.i[0], tb = c->attr.i[1];
    int64_t m = o.dim[o.rank - 2], n = o.dim[o.rank - 1], k = a.dim[a.rank - (ta ? 2 : 1)];
    int64_t as[HONE_MAX_RANK], bs[HONE_MAX_RANK], idx[HONE_MAX_RANK] = {0}, at = 0;
    if (hone_numel(&o) == 0)
        return;
    a.rank -= 2;
    b.rank -= 2;
    o.rank -= 2;
    op_strides(&a, &o, as);
    op_strides(&b, &o, bs);
    do {
        int64_t i0 = 0, j0 = 0;
        for (int d = 0; d < o.rank; d++) {
            i0 += idx[d] * as[d];
            j0 += idx[d] * bs[d];
        }
        const double *x = in[0] + i0 * m * k, *y = in[1] + j0 * k * n;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double s = 0;
                for (int64_t p = 0; p < k; p++)
                    s += x[ta ? p * m + i : i * k + p] * y[tb ? j * k + p : p * n + j];
                out[0][at++] = s;
            }
    } while (op_next(&o, idx));
}

/* z = x y:  dx = dz y',  dy = x' dz, transposed once more where the operand was. */
static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    bool ta = u->call->attr.i[0], tb = u->call->attr.i[1];
    hone_t x = u->in[0], y = u->in[1], d = dout[0];
    din[0] = op_unbroadcast(ta ? hone_matmul(y, d, tb, true) : hone_matmul(d, y, false, !tb), x);
    din[1] = op_unbroadcast(tb ? hone_matmul(d, x, true, ta) : hone_matmul(x, d, !ta, false), y);
}

static struct op_cost cost(const struct op_call *c)
{
    const hone_shape *a = &c->in[0].shape;
    double k = (double)a->dim[a->rank - (c->attr.i[0] ? 2 : 1)], out = (double)op_numel(&c->out[0]);
    return (struct op_cost){2 * k * out, 4 * (out + (double)op_numel(&c->in[0]) + (double)op_numel(&c->in[1]))};
}

#define T(a, b)                                                                                                        \
    {                                                                                                                  \
        .i = { a, b }                                                                                                  \
    }
static const struct op_case cases[] = {
    {"plain", 2, {OP_F32(3, 5), OP_F32(5, 7)}, T(0, 0)},
    {"first transposed", 2, {OP_F32(5, 3), OP_F32(5, 7)}, T(1, 0)},
    {"second transposed", 2, {OP_F32(3, 5), OP_F32(7, 5)}, T(0, 1)},
    {"both transposed", 2, {OP_F32(5, 3), OP_F32(7, 5)}, T(1, 1)},
    {"batch", 2, {OP_F32(2, 3, 5), OP_F32(2, 5, 4)}, T(0, 0)},
    {"one matrix for all", 2, {OP_F32(2, 3, 5), OP_F32(5, 4)}, T(0, 0)},
    {"one matrix for all, transposed", 2, {OP_F32(2, 3, 5), OP_F32(4, 5)}, T(0, 1)},
    {"leading broadcast", 2, {OP_F32(2, 1, 3, 5), OP_F32(4, 5, 2)}, T(0, 0)},
    {"one", 2, {OP_F32(1, 1), OP_F32(1, 1)}, T(0, 0)},
    {"row", 2, {OP_F32(1, 33), OP_F32(33, 17)}, T(0, 0)},
    {"no rows", 2, {OP_F32(0, 5), OP_F32(5, 4)}, T(0, 0)},
    {"no inner", 2, {OP_F32(3, 0), OP_F32(0, 4)}, T(0, 0)},
    {"larger", 2, {OP_F32(37, 65), OP_F32(65, 129)}, T(0, 0)},
};
static const struct op_case bad[] = {
    {"inner", 2, {OP_F32(3, 4), OP_F32(5, 6)}, T(0, 0)},
    {"inner transposed", 2, {OP_F32(3, 4), OP_F32(4, 6)}, T(0, 1)},
    {"rank", 2, {OP_F32(3), OP_F32(3, 4)}, T(0, 0)},
    {"batch", 2, {OP_F32(2, 3, 4), OP_F32(3, 4, 5)}, T(0, 0)},
    {"integers", 2, {OP_F32(3, 4), OP_I32(4, 5)}, T(0, 0)},
};

const struct op_def op_matmul = {
    .name = "matmul",
    .math = "z = x y",
    .attr_i = "ta tb",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .cost = cost,
    .onnx = "MatMul",
    OP_CASES(cases),
    OP_BAD(bad),
};
