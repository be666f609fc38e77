/* Products of matrices. Their operands may be views with the last two dimensions exchanged, as far as three
 * dimensions go; beyond that an operator is known to refuse them, so leading dimensions are merged.
 * cubeMathType 0 keeps f32: 1 and 3 would round the operands to 10 bits of mantissa. */
#include "backend/record/record.h"

enum { KEEP_DTYPE = 0 };

/* Dimensions before the last two, as one. */
static int64_t lead(const hone_shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank - 2; i++)
        n *= s->dim[i];
    return n;
}

static bool same_lead(const hone_shape *a, const hone_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank - 2; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

/* One matrix for all of the second operand, and the first not transposed: its leading dimensions are rows. */
static bool by_rows(const struct op_call *c)
{
    const hone_shape *a = &c->in[0].shape, *b = &c->in[1].shape;
    return lead(b) == 1 && b->rank <= a->rank && (!c->attr.i[0] || lead(a) == 1);
}

/* A batch of products, one operand perhaps the same in all. */
static bool by_batch(const struct op_call *c)
{
    const hone_shape *a = &c->in[0].shape, *b = &c->in[1].shape;
    return same_lead(a, b) || lead(a) == 1 || lead(b) == 1;
}

/* Plain operands of up to six dimensions broadcast in the operator. */
static bool by_broadcast(const struct op_call *c)
{
    return !c->attr.i[0] && !c->attr.i[1] && c->out[0].shape.rank <= 6;
}

static bool matmul_takes(const struct op_call *c)
{
    return record_full(c) && (by_rows(c) || by_batch(c) || by_broadcast(c));
}

static struct record_view matrix(struct record_view v, int64_t rows, bool swapped)
{
    v = record_shaped(v, HONE_SHAPE(rows, v.shape.dim[v.shape.rank - 1]));
    return swapped ? record_swapped(v) : v;
}

static struct record_view matrices(struct record_view v, bool swapped)
{
    const hone_shape *s = &v.shape;
    v = record_shaped(v, HONE_SHAPE(lead(s), s->dim[s->rank - 2], s->dim[s->rank - 1]));
    return swapped ? record_swapped(v) : v;
}

static int64_t rows_of(const hone_shape *s)
{
    return lead(s) * s->dim[s->rank - 2];
}

static void matmul(struct record_use *u)
{
    const struct op_call *c = u->call;
    const hone_shape *a = &c->in[0].shape, *b = &c->in[1].shape, *o = &c->out[0].shape;
    const bool ta = c->attr.i[0], tb = c->attr.i[1];
    struct record_view self = record_in(u, 0), mat2 = record_in(u, 1), out = record_out(u, 0);
    const char *name = "Matmul";
    if (by_rows(c)) {
        self = matrix(self, rows_of(a), ta);
        mat2 = matrix(mat2, rows_of(b), tb);
        out = matrix(out, rows_of(o), false);
    } else if (by_batch(c)) {
        name = "BatchMatMul";
        self = matrices(self, ta);
        mat2 = matrices(mat2, tb);
        out = matrices(out, false);
    }
    record_open(u, name);
    record_tensor(u, "self", self);
    record_tensor(u, "mat2", mat2);
    record_tensor(u, "out", out);
    record_int(u, "cubeMathType", KEEP_DTYPE);
    record_close(u);
}

/* The weights [out, in] are given as their transpose [in, out]; the bias is added by the same operator. */
static void linear(struct record_use *u)
{
    const struct op_call *c = u->call;
    const int64_t n = c->in[1].shape.dim[0], k = c->in[1].shape.dim[1], rows = op_numel(&c->in[0]) / k;
    const bool bias = c->n_in == 3;
    record_open(u, bias ? "Addmm" : "Matmul");
    if (bias)
        record_tensor(u, "self", record_in(u, 2));
    record_tensor(u, bias ? "mat1" : "self", record_shaped(record_in(u, 0), HONE_SHAPE(rows, k)));
    record_tensor(u, "mat2", record_swapped(record_in(u, 1)));
    if (bias) {
        record_scalar(u, "beta", 1);
        record_scalar(u, "alpha", 1);
    }
    record_tensor(u, "out", record_shaped(record_out(u, 0), HONE_SHAPE(rows, n)));
    record_int(u, "cubeMathType", KEEP_DTYPE);
    record_close(u);
}

RECORD_MAP(matmul, matmul_takes, matmul);
RECORD_MAP(linear, record_full, linear);
