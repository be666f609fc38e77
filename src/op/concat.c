/* concat: operands one behind the other along an axis. */
#include "op/op.h"

hone_t hone_concat(int n, const hone_t *x, int axis)
{
    return n == 1 ? x[0] : op_emit(&op_concat, n, x, &(struct op_attr){.i = {axis}}, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const int64_t axis = c->attr.i[0];
    out[0] = c->in[0];
    if (axis < 0 || axis >= out[0].shape.rank)
        return op_refuse(c, err, "the axis is beyond the operands' dimensions");
    for (int k = 1; k < c->n_in; k++) {
        hone_shape s = c->in[k].shape;
        if (c->in[k].dtype != out[0].dtype)
            return op_refuse(c, err, "all operands must have one type");
        const int64_t more = s.rank == out[0].shape.rank ? s.dim[axis] : 0;
        s.dim[axis] = out[0].shape.dim[axis];
        if (!hone_shape_equal(&s, &out[0].shape))
            return op_refuse(c, err, "all operands must have the same dimensions, but for the axis");
        if (more > INT32_MAX || out[0].shape.dim[axis] > INT32_MAX)
            return op_refuse(c, err, "the axis of the result is too long");
        out[0].shape.dim[axis] += more;
    }
    return HONE_OK;
}

/* Elements of a slice before the axis, and of operand k (k < 0: of the result) in one. */
static int64_t run_of(const struct op_call *c, int k, int64_t *outer)
{
    const hone_shape *s = k < 0 ? &c->out[0].shape : &c->in[k].shape;
    int64_t run = 1;
    *outer = 1;
    for (int i = 0; i < s->rank; i++)
        *(i < c->attr.i[0] ? outer : &run) *= s->dim[i];
    return run;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    int64_t outer, all = run_of(c, -1, &outer), at = 0;
    for (int k = 0; k < c->n_in; k++) {
        const int64_t run = run_of(c, k, &outer);
        for (int64_t o = 0; o < outer; o++)
            for (int64_t j = 0; j < run; j++)
                out[0][o * all + at + j] = in[k][o * run + j];
        at += run;
    }
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    const int axis = (int)u->call->attr.i[0];
    int64_t at = 0;
    for (int k = 0; k < u->call->n_in; k++) {
        const int64_t length = u->call->in[k].shape.dim[axis];
        din[k] = hone_slice(dout[0], axis, at, length);
        at += length;
    }
}

static void batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out)
{
    hone_t in[OP_MAX_IN];
    for (int k = 0; k < u->call->n_in; k++) {
        const hone_shape *s = &u->call->in[k].shape;
        hone_shape one = {s->rank + 1, {1}};
        for (int i = 0; i < s->rank; i++)
            one.dim[i + 1] = s->dim[i];
        hone_shape all = one;
        all.dim[0] = n;
        in[k] = many[k] ? u->in[k] : hone_broadcast(hone_reshape(u->in[k], one), all);
    }
    out[0] = hone_concat(u->call->n_in, in, (int)u->call->attr.i[0] + 1);
}

static struct op_cost cost(const struct op_call *c)
{
    return (struct op_cost){0, 2 * (double)op_numel(&c->out[0]) * (double)hone_dtype_size(c->out[0].dtype)};
}

static const struct op_case cases[] = {
    {"vectors", 2, {OP_F32(3), OP_F32(5)}, {.i = {0}}},
    {"rows", 2, {OP_F32(2, 3), OP_F32(4, 3)}, {.i = {0}}},
    {"columns", 2, {OP_F32(2, 3), OP_F32(2, 5)}, {.i = {1}}},
    {"channels", 3, {OP_F32(2, 3, 4), OP_F32(2, 1, 4), OP_F32(2, 5, 4)}, {.i = {1}}},
    {"one operand", 1, {OP_F32(2, 3)}, {.i = {1}}},
    {"single elements", 2, {OP_F32(1), OP_F32(1)}, {.i = {0}}},
    {"eight",
     8,
     {OP_F32(2, 1), OP_F32(2, 2), OP_F32(2, 3), OP_F32(2, 4), OP_F32(2, 5), OP_F32(2, 6), OP_F32(2, 7), OP_F32(2, 8)},
     {.i = {1}}},
    {"an empty one", 3, {OP_F32(2, 3), OP_F32(2, 0), OP_F32(2, 2)}, {.i = {1}}},
    {"empty", 2, {OP_F32(0, 3), OP_F32(0, 2)}, {.i = {1}}},
    {"long", 2, {OP_F32(3, 1037), OP_F32(3, 521)}, {.i = {1}}},
    {"indices", 2, {OP_I32(2, 3), OP_I32(2, 1)}, {.i = {1}}, .below = 9},
    {"masks", 2, {OP_BOOL(2, 3), OP_BOOL(2, 2)}, {.i = {1}}},
    {"pictures", 2, {OP_U8(2, 3, 4), OP_U8(2, 1, 4)}, {.i = {1}}},
};
static const struct op_case bad[] = {
    {"axis", 2, {OP_F32(3), OP_F32(5)}, {.i = {1}}},
    {"negative axis", 2, {OP_F32(3), OP_F32(5)}, {.i = {-1}}},
    {"others differ", 2, {OP_F32(2, 3), OP_F32(4, 5)}, {.i = {0}}},
    {"ranks", 2, {OP_F32(2, 3), OP_F32(2)}, {.i = {1}}},
    {"types", 2, {OP_F32(3), OP_I32(5)}, {.i = {0}}},
};

const struct op_def op_concat = {
    .name = "concat",
    .math = "y = x0, x1, ... along an axis",
    .attr_i = "axis",
    .min_in = 1,
    .max_in = OP_MAX_IN,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .batch = batch,
    .cost = cost,
    .onnx = "Concat",
    OP_CASES(cases),
    OP_BAD(bad),
};
