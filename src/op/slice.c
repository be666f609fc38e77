/* slice: a range of one axis. A view when every dimension before the axis is 1. */
#include "op/op.h"

hone_t hone_slice(hone_t x, int axis, int64_t start, int64_t length)
{
    return op_emit(&op_slice, 1, &x, &(struct op_attr){.i = {axis, start, length}}, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    int64_t axis = c->attr.i[0], start = c->attr.i[1], length = c->attr.i[2];
    if (axis < 0 || axis >= c->in[0].shape.rank)
        return op_refuse(c, err, "the axis is beyond the operand's dimensions");
    int64_t d = c->in[0].shape.dim[axis];
    if (start < 0 || length < 0 || start > d || length > d - start)
        return op_refuse(c, err, "the range must lie within the axis");
    out[0] = c->in[0];
    out[0].shape.dim[axis] = length;
    return HONE_OK;
}

/* Elements before, of and after the axis. */
static void split(const struct op_call *c, int64_t *outer, int64_t *inner)
{
    *outer = *inner = 1;
    for (int i = 0; i < c->in[0].shape.rank; i++) {
        if (i < c->attr.i[0])
            *outer *= c->in[0].shape.dim[i];
        if (i > c->attr.i[0])
            *inner *= c->in[0].shape.dim[i];
    }
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    int64_t outer, inner, d = c->in[0].shape.dim[c->attr.i[0]], at = 0;
    split(c, &outer, &inner);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t j = 0; j < c->attr.i[2] * inner; j++)
            out[0][at++] = in[0][(o * d + c->attr.i[1]) * inner + j];
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    const int64_t *a = u->call->attr.i;
    din[0] = hone_pad(dout[0], (int)a[0], a[1], u->call->in[0].shape.dim[a[0]] - a[1] - a[2], 0);
}

static void batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out)
{
    const int64_t *a = u->call->attr.i;
    (void)many;
    (void)n;
    out[0] = hone_slice(u->in[0], (int)a[0] + 1, a[1], a[2]);
}

static bool view(const struct op_call *c, size_t *offset)
{
    int64_t outer, inner;
    split(c, &outer, &inner);
    *offset = (size_t)(c->attr.i[1] * inner) * hone_dtype_size(c->in[0].dtype);
    return outer == 1;
}

static const struct op_case cases[] = {
    {"row", 1, {OP_F32(5, 3)}, {.i = {0, 2, 1}}},        {"rows", 1, {OP_F32(5, 3)}, {.i = {0, 1, 3}}},
    {"columns", 1, {OP_F32(5, 7)}, {.i = {1, 3, 4}}},    {"middle", 1, {OP_F32(2, 5, 3)}, {.i = {1, 1, 2}}},
    {"all", 1, {OP_F32(5, 3)}, {.i = {1, 0, 3}}},        {"nothing", 1, {OP_F32(5, 3)}, {.i = {1, 3, 0}}},
    {"empty", 1, {OP_F32(0, 3)}, {.i = {1, 1, 1}}},      {"indices", 1, {OP_I32(4, 2)}, {.i = {1, 1, 1}}, .below = 9},
    {"long", 1, {OP_F32(3, 1037)}, {.i = {1, 5, 1000}}},
};
static const struct op_case bad[] = {{"axis", 1, {OP_F32(5, 3)}, {.i = {2, 0, 1}}},
                                     {"beyond", 1, {OP_F32(5, 3)}, {.i = {0, 3, 3}}},
                                     {"negative", 1, {OP_F32(5, 3)}, {.i = {0, -1, 2}}}};

const struct op_def op_slice = {
    .name = "slice",
    .math = "y = x[start : start + length] of an axis",
    .attr_i = "axis start length",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = OP_VIEW,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .batch = batch,
    .onnx = "Slice",
    .view = view,
    OP_CASES(cases),
    OP_BAD(bad),
};
