/* Reductions, and softmax along an axis. Every dimension is named: what an empty list of dimensions means differs
 * between operators. */
#include "backend/record/record.h"
#include "op/reduce.h"
#include "op/softmax.h"

/* The reduction `name`, whose list of dimensions and flag are called so; the type where the operator asks for it. */
static void reduce(struct record_use *u, const char *name, const char *dim, const char *keep, bool type)
{
    const struct op_call *c = u->call;
    const struct record_view x = record_ranked(record_in(u, 0));
    int64_t dims[HONE_MAX_RANK];
    const int n = record_axes(c->attr.i[REDUCE_AXES], x.shape.rank, dims);
    if (n == 0 || c->in[0].shape.rank == 0) { /* nothing to reduce */
        record_copy(u, record_out(u, 0), record_shaped(record_in(u, 0), c->out[0].shape));
        return;
    }
    record_open(u, name);
    record_tensor(u, "self", x);
    record_ints(u, dim, n, dims);
    record_bool(u, keep, c->attr.i[REDUCE_KEEP]);
    if (type)
        record_word(u, "dtype", "ACL_FLOAT");
    record_tensor(u, "out", record_out(u, 0));
    record_close(u);
}

/* An empty sum is zero, which no reduction of an empty tensor promises. */
static void sum(struct record_use *u)
{
    if (op_numel(&u->call->in[0]) > 0) {
        reduce(u, "ReduceSum", "dims", "keepDims", true);
        return;
    }
    record_open(u, "InplaceZero");
    record_tensor(u, "selfRef", record_ranked(record_out(u, 0)));
    record_close(u);
}

static void mean(struct record_use *u)
{
    reduce(u, "Mean", "dim", "keepDim", true);
}

static void amax(struct record_use *u)
{
    reduce(u, "Amax", "dim", "keepDim", false);
}

/* Counts what is not finite: a test, its opposite as numbers, their sum. */
static void nonfinite(struct record_use *u)
{
    const hone_shape n = HONE_SHAPE(op_numel(&u->call->in[0]));
    const struct record_view finite = record_temp(u, HONE_BOOL, n), other = record_temp(u, HONE_BOOL, n);
    const struct record_view count = record_temp(u, HONE_F32, n);
    const int64_t all = 0;
    record_open(u, "IsFinite");
    record_tensor(u, "self", record_shaped(record_in(u, 0), n));
    record_tensor(u, "out", finite);
    record_close(u);
    record_open(u, "LogicalNot");
    record_tensor(u, "self", finite);
    record_tensor(u, "out", other);
    record_close(u);
    record_open(u, "Cast");
    record_tensor(u, "self", other);
    record_word(u, "dtype", "ACL_FLOAT");
    record_tensor(u, "out", count);
    record_close(u);
    record_open(u, "ReduceSum");
    record_tensor(u, "self", count);
    record_ints(u, "dims", 1, &all);
    record_bool(u, "keepDims", false);
    record_word(u, "dtype", "ACL_FLOAT");
    record_tensor(u, "out", record_out(u, 0));
    record_close(u);
}

static size_t nonfinite_temp(const struct op_call *c)
{
    const hone_shape n = HONE_SHAPE(op_numel(&c->in[0]));
    return 2 * record_temp_bytes(HONE_BOOL, n) + record_temp_bytes(HONE_F32, n);
}

static void softmax_of(struct record_use *u, const char *name)
{
    record_open(u, name);
    record_tensor(u, "self", record_in(u, 0));
    record_int(u, "dim", u->call->attr.i[SOFTMAX_AXIS]);
    record_tensor(u, "out", record_out(u, 0));
    record_close(u);
}

static void softmax(struct record_use *u)
{
    softmax_of(u, "Softmax");
}

static void log_softmax(struct record_use *u)
{
    softmax_of(u, "LogSoftmax");
}

static void softmax_grad(struct record_use *u)
{
    record_open(u, "SoftmaxBackward");
    record_tensor(u, "gradOutput", record_in(u, 0));
    record_tensor(u, "output", record_in(u, 1));
    record_int(u, "dim", u->call->attr.i[SOFTMAX_AXIS]);
    record_tensor(u, "out", record_out(u, 0));
    record_close(u);
}

RECORD_MAP(sum, NULL, sum);
RECORD_MAP(mean, record_full, mean);
RECORD_MAP(amax, record_full, amax);
RECORD_MAP_TEMP(nonfinite, record_full, nonfinite, nonfinite_temp);
RECORD_MAP(softmax, NULL, softmax);
RECORD_MAP(log_softmax, NULL, log_softmax);
RECORD_MAP(softmax_grad, NULL, softmax_grad);
