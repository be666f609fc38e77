/* broadcast: stretch dimensions of 1, and new leading ones, to a shape. */
#include <string.h>

#include "op/op.h"

hone_t hone_broadcast(hone_t x, hone_shape s)
{
    struct op_attr a = {.i = {s.rank}};
    for (int i = 0; i < s.rank && i < HONE_MAX_RANK; i++)
        a.i[1 + i] = s.dim[i];
    hone_shape from = hone_type_of(x).shape;
    return hone_shape_equal(&from, &s) ? x : op_emit(&op_broadcast, 1, &x, &a, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    hone_shape both;
    char rule[128], to[64];
    out[0].dtype = c->in[0].dtype;
    out[0].shape.rank = (int)c->attr.i[0];
    if (out[0].shape.rank < 0 || out[0].shape.rank > HONE_MAX_RANK)
        return op_refuse(c, err, "a shape has 0 to 8 dimensions");
    for (int i = 0; i < out[0].shape.rank; i++)
        out[0].shape.dim[i] = c->attr.i[1 + i];
    if (hone_numel(&out[0].shape) < 0 || !op_broadcast_shape(&c->in[0].shape, &out[0].shape, &both) ||
        !hone_shape_equal(&both, &out[0].shape)) {
        hone_shape_text(&out[0].shape, to, sizeof to);
        return op_refuse(c, err, strcat(strcpy(rule, "must broadcast to "), to));
    }
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const hone_shape *s = &c->out[0].shape;
    int64_t stride[HONE_MAX_RANK], idx[HONE_MAX_RANK] = {0}, at = 0;
    op_strides(&c->in[0].shape, s, stride);
    if (hone_numel(s) == 0)
        return;
    do {
        int64_t j = 0;
        for (int k = 0; k < s->rank; k++)
            j += idx[k] * stride[k];
        out[0][at++] = in[0][j];
    } while (op_next(s, idx));
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    din[0] = op_unbroadcast(dout[0], u->in[0]);
}

static void batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out)
{
    const hone_shape *to = &u->call->out[0].shape;
    hone_shape s = {to->rank + 1, {n}}, x = {to->rank + 1, {n}}, from = u->call->in[0].shape;
    (void)many;
    for (int i = 0; i < to->rank; i++) {
        int k = i - (to->rank - from.rank);
        s.dim[i + 1] = to->dim[i];
        x.dim[i + 1] = k >= 0 ? from.dim[k] : 1;
    }
    out[0] = hone_broadcast(hone_reshape(u->in[0], x), s);
}

static const struct op_case cases[] = {
    {"rows", 1, {OP_F32(5)}, {.i = {2, 3, 5}}},       {"columns", 1, {OP_F32(3, 1)}, {.i = {2, 3, 5}}},
    {"scalar", 1, {OP_F32_SCALAR}, {.i = {2, 3, 5}}}, {"middle", 1, {OP_F32(2, 1, 5)}, {.i = {3, 2, 7, 5}}},
    {"empty", 1, {OP_F32(1, 5)}, {.i = {2, 0, 5}}},   {"mask", 1, {OP_BOOL(1, 5)}, {.i = {2, 4, 5}}},
    {"long", 1, {OP_F32(1)}, {.i = {1, 1037}}},
};
static const struct op_case bad[] = {{"shrink", 1, {OP_F32(3, 5)}, {.i = {1, 5}}},
                                     {"stretch 3", 1, {OP_F32(3)}, {.i = {1, 6}}}};

const struct op_def op_broadcast = {
    .name = "broadcast",
    .math = "y = x stretched to a shape",
    .attr_i = "rank d0 d1 d2 d3 d4 d5 d6 d7",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .batch = batch,
    .onnx = "Expand",
    OP_CASES(cases),
    OP_BAD(bad),
};
