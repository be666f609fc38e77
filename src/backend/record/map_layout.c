/* Reductions and layout. aclnnInplaceCopy is the one operator that materialises: it takes whatever view, and
 * broadcasts. */
#include "backend/record/record.h"

static void copy(struct record_use *u, struct record_view to, struct record_view from)
{
    record_open(u, "InplaceCopy");
    record_tensor(u, "selfRef", record_ranked(to));
    record_tensor(u, "src", record_ranked(from));
    record_close(u);
}

static void broadcast(struct record_use *u)
{
    copy(u, record_out(u, 0), record_in(u, 0));
}

/* Every dimension is named: what an empty list of dimensions means differs between operators. An empty sum is zero,
 * which no reduction of an empty tensor promises. */
static void sum(struct record_use *u)
{
    const struct record_view x = record_ranked(record_in(u, 0));
    const unsigned axes = (unsigned)u->call->attr.i[0];
    const bool scalar = u->call->in[0].shape.rank == 0;
    int64_t dims[HONE_MAX_RANK];
    int n = 0;
    for (int i = 0; i < x.shape.rank; i++)
        if (axes >> i & 1)
            dims[n++] = i;
    if (op_numel(&u->call->in[0]) == 0) {
        record_open(u, "InplaceZero");
        record_tensor(u, "selfRef", record_ranked(record_out(u, 0)));
        record_close(u);
        return;
    }
    if (n == 0 || scalar) {
        copy(u, record_out(u, 0), record_shaped(record_in(u, 0), u->call->out[0].shape));
        return;
    }
    record_open(u, "ReduceSum");
    record_tensor(u, "self", x);
    record_ints(u, "dims", n, dims);
    record_bool(u, "keepDims", u->call->attr.i[1]);
    record_word(u, "dtype", "ACL_FLOAT");
    record_tensor(u, "out", record_out(u, 0));
    record_close(u);
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

RECORD_MAP(broadcast, NULL, broadcast);
RECORD_MAP(sum, NULL, sum);
RECORD_MAP(slice, NULL, slice);
RECORD_MAP(pad, NULL, pad);
