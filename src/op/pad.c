/* pad: one axis with a constant, before and after. */
#include "op/op.h"

hone_t hone_pad(hone_t x, int axis, int64_t before, int64_t after, double value)
{
    if (before == 0 && after == 0)
        return x;
    return op_emit(&op_pad, 1, &x, &(struct op_attr){.i = {axis, before, after}, .f = {value}}, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    int64_t axis = c->attr.i[0], before = c->attr.i[1], after = c->attr.i[2];
    if (axis < 0 || axis >= c->in[0].shape.rank)
        return op_refuse(c, err, "the axis is beyond the operand's dimensions");
    if (before < 0 || after < 0 || before > INT32_MAX || after > INT32_MAX)
        return op_refuse(c, err, "the width of a padding is 0 to 2^31 - 1");
    out[0] = c->in[0];
    out[0].shape.dim[axis] += before + after;
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    int64_t outer = 1, inner = 1, axis = c->attr.i[0], d = c->in[0].shape.dim[axis], e = c->out[0].shape.dim[axis];
    for (int i = 0; i < c->in[0].shape.rank; i++) {
        outer *= i < axis ? c->in[0].shape.dim[i] : 1;
        inner *= i > axis ? c->in[0].shape.dim[i] : 1;
    }
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < e; k++)
            for (int64_t j = 0; j < inner; j++) {
                int64_t from = k - c->attr.i[1];
                bool inside = from >= 0 && from < d;
                out[0][(o * e + k) * inner + j] = inside ? in[0][(o * d + from) * inner + j] : c->attr.f[0];
            }
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    const int64_t *a = u->call->attr.i;
    din[0] = hone_slice(dout[0], (int)a[0], a[1], u->call->in[0].shape.dim[a[0]]);
}

static void batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out)
{
    const int64_t *a = u->call->attr.i;
    (void)many;
    (void)n;
    out[0] = hone_pad(u->in[0], (int)a[0] + 1, a[1], a[2], u->call->attr.f[0]);
}

static const struct op_case cases[] = {
    {"both", 1, {OP_F32(5)}, {.i = {0, 1, 2}}},        {"rows", 1, {OP_F32(2, 3)}, {.i = {0, 2, 0}}},
    {"columns", 1, {OP_F32(2, 3)}, {.i = {1, 0, 1}}},  {"value", 1, {OP_F32(2, 3, 5)}, {.i = {1, 1, 1}, .f = {0.5}}},
    {"empty", 1, {OP_F32(2, 0, 3)}, {.i = {1, 1, 1}}}, {"long", 1, {OP_F32(3, 1000)}, {.i = {1, 3, 7}}},
};
static const struct op_case bad[] = {{"axis", 1, {OP_F32(5, 3)}, {.i = {2, 0, 1}}},
                                     {"negative", 1, {OP_F32(5, 3)}, {.i = {0, -1, 2}}}};

const struct op_def op_pad = {
    .name = "pad",
    .math = "y = x with an axis widened by a constant",
    .attr_i = "axis before after",
    .attr_f = "value",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .batch = batch,
    .onnx = "Pad",
    OP_CASES(cases),
    OP_BAD(bad),
};
