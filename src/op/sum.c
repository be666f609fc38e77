/* sum: over some axes. */
#include "op/op.h"

hone_t hone_sum(hone_t x, unsigned axes, bool keep)
{
    return op_emit(&op_sum, 1, &x, &(struct op_attr){.i = {axes, keep}}, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *s = &c->in[0].shape;
    unsigned axes = (unsigned)c->attr.i[0];
    if (!op_all_f32(c))
        return op_refuse(c, err, "the operand must be f32");
    if (axes != HONE_AXES_ALL && axes >> s->rank)
        return op_refuse(c, err, "an axis is beyond the operand's dimensions");
    out[0] = (hone_type){HONE_F32, {0, {0}}};
    for (int i = 0; i < s->rank; i++) {
        bool gone = axes >> i & 1;
        if (!gone || c->attr.i[1])
            out[0].shape.dim[out[0].shape.rank++] = gone ? 1 : s->dim[i];
    }
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const hone_shape *s = &c->in[0].shape;
    hone_shape kept = *s;
    int64_t stride[HONE_MAX_RANK], idx[HONE_MAX_RANK] = {0}, at = 0;
    for (int i = 0; i < s->rank; i++)
        if (c->attr.i[0] >> i & 1)
            kept.dim[i] = 1;
    op_strides(&kept, s, stride);
    for (int64_t i = 0, n = op_numel(&c->out[0]); i < n; i++)
        out[0][i] = 0;
    if (hone_numel(s) == 0)
        return;
    do {
        int64_t j = 0;
        for (int k = 0; k < s->rank; k++)
            j += idx[k] * stride[k];
        out[0][j] += in[0][at++];
    } while (op_next(s, idx));
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    hone_shape s = hone_type_of(u->in[0]).shape, kept = s;
    for (int i = 0; i < s.rank; i++)
        if (u->call->attr.i[0] >> i & 1)
            kept.dim[i] = 1;
    din[0] = hone_broadcast(hone_reshape(dout[0], kept), s);
}

static void batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out)
{
    unsigned axes = (unsigned)u->call->attr.i[0] & ((1u << u->call->in[0].shape.rank) - 1);
    (void)many;
    (void)n;
    out[0] = hone_sum(u->in[0], axes << 1, u->call->attr.i[1]);
}

static const struct op_case cases[] = {
    {"all", 1, {OP_F32(3, 5)}, {.i = {HONE_AXES_ALL, 0}}}, {"last", 1, {OP_F32(3, 5)}, {.i = {2, 0}}},
    {"first", 1, {OP_F32(3, 5)}, {.i = {1, 0}}},           {"keep", 1, {OP_F32(2, 3, 5)}, {.i = {2, 1}}},
    {"ends", 1, {OP_F32(2, 3, 5)}, {.i = {5, 0}}},         {"none", 1, {OP_F32(2, 3)}, {.i = {0, 0}}},
    {"scalar", 1, {OP_F32_SCALAR}, {.i = {0, 0}}},         {"empty", 1, {OP_F32(3, 0)}, {.i = {2, 0}}},
    {"no rows", 1, {OP_F32(0, 3)}, {.i = {2, 0}}},         {"long", 1, {OP_F32(4099)}, {.i = {1, 0}}},
    {"rows", 1, {OP_F32(33, 65)}, {.i = {1, 0}}},          {"columns", 1, {OP_F32(33, 65)}, {.i = {2, 1}}},
    {"middle", 1, {OP_F32(4, 17, 9)}, {.i = {2, 0}}},      {"one", 1, {OP_F32(1)}, {.i = {1, 0}}},
};
static const struct op_case bad[] = {{"axis", 1, {OP_F32(3, 5)}, {.i = {4, 0}}},
                                     {"integers", 1, {OP_I32(3)}, {.i = {1, 0}}}};

const struct op_def op_sum = {
    .name = "sum",
    .math = "y = sum of x over axes",
    .attr_i = "axes keep",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .batch = batch,
    .onnx = "ReduceSum",
    OP_CASES(cases),
    OP_BAD(bad),
};
