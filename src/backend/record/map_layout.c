/* Layout. aclnnInplaceCopy is the one operator that materialises: it takes whatever view, and
 * broadcasts. */
#include "backend/record/record.h"

static void broadcast(struct record_use *u)
{
    record_copy(u, record_out(u, 0), record_in(u, 0));
}

static void slice(struct record_use *u)
{
    const int64_t *a = u->call->attr.i;
    record_open(u, "Slice");
    record_tensor(u, "self", record_in(u, 0));
    record_int(u, "dim", a[0]);
    record_int(u, "start", a[1]);
    record_int(u, "end", a[1] + a[2]);
    record_int(u, "step", 1);
    record_tensor(u, "out", record_out(u, 0));
    record_close(u);
}

/* Widths come in pairs, the last dimension first. */
static void pad(struct record_use *u)
{
    const struct op_call *c = u->call;
    const int behind = c->in[0].shape.rank - 1 - (int)c->attr.i[0];
    int64_t widths[2 * HONE_MAX_RANK] = {0};
    widths[2 * behind] = c->attr.i[1];
    widths[2 * behind + 1] = c->attr.i[2];
    if (!record_full(c)) { /* nothing of the operand is in the result */
        record_open(u, "InplaceFillScalar");
        record_tensor(u, "selfRef", record_out(u, 0));
        record_scalar(u, "value", c->attr.f[0]);
        record_close(u);
        return;
    }
    record_open(u, "ConstantPadNd");
    record_tensor(u, "self", record_in(u, 0));
    record_ints(u, "pad", 2 * behind + 2, widths);
    record_scalar(u, "value", c->attr.f[0]);
    record_tensor(u, "out", record_out(u, 0));
    record_close(u);
}

static void permute(struct record_use *u)
{
    const struct op_call *c = u->call;
    record_open(u, "Permute");
    record_tensor(u, "self", record_in(u, 0));
    record_ints(u, "dims", c->in[0].shape.rank, &c->attr.i[1]);
    record_tensor(u, "out", record_out(u, 0));
    record_close(u);
}

/* Operands without elements add nothing. */
static void concat(struct record_use *u)
{
    struct record_view list[OP_MAX_IN];
    int n = 0;
    for (int i = 0; i < u->call->n_in; i++)
        if (op_numel(&u->call->in[i]) > 0)
            list[n++] = record_in(u, i);
    record_open(u, "Cat");
    record_tensors(u, "tensors", n, list);
    record_int(u, "dim", u->call->attr.i[0]);
    record_tensor(u, "out", record_out(u, 0));
    record_close(u);
}

/* The row of x that each index names: x as a table [R, row], however many dimensions a row has. An index out of range
 * is found by the device, late and without its place; so inputs of indices are checked before a run. */
static void gather(struct record_use *u)
{
    const struct op_call *c = u->call;
    const int64_t rows = c->in[0].shape.dim[0], width = op_numel(&c->in[0]) / rows;
    hone_shape out = c->in[1].shape;
    out.dim[out.rank++] = width;
    record_open(u, "Embedding");
    record_tensor(u, "weight", record_shaped(record_in(u, 0), HONE_SHAPE(rows, width)));
    record_tensor(u, "indices", record_ranked(record_in(u, 1)));
    record_tensor(u, "out", record_shaped(record_out(u, 0), c->in[1].shape.rank ? out : HONE_SHAPE(1, width)));
    record_close(u);
}

static bool gather_takes(const struct op_call *c)
{
    return record_full(c) && c->in[1].shape.rank < HONE_MAX_RANK;
}

/* Its order of summation is the device's, unless determinism is asked for. */
static void scatter_add(struct record_use *u)
{
    const struct op_call *c = u->call;
    const int64_t rows = c->in[0].shape.dim[0], width = op_numel(&c->in[0]) / rows, n = op_numel(&c->in[1]);
    if (n == 0) {
        record_copy(u, record_out(u, 0), record_in(u, 0));
        return;
    }
    record_open(u, "IndexAdd");
    record_tensor(u, "self", record_shaped(record_in(u, 0), HONE_SHAPE(rows, width)));
    record_int(u, "dim", 0);
    record_tensor(u, "index", record_shaped(record_in(u, 1), HONE_SHAPE(n)));
    record_tensor(u, "source", record_shaped(record_in(u, 2), HONE_SHAPE(n, width)));
    record_scalar(u, "alpha", 1);
    record_tensor(u, "out", record_shaped(record_out(u, 0), HONE_SHAPE(rows, width)));
    record_close(u);
}

RECORD_MAP(broadcast, NULL, broadcast);
RECORD_MAP(slice, NULL, slice);
RECORD_MAP(pad, NULL, pad);
RECORD_MAP(permute, NULL, permute);
RECORD_MAP(concat, NULL, concat);
RECORD_MAP(gather, gather_takes, gather);
RECORD_MAP(scatter_add, NULL, scatter_add);
