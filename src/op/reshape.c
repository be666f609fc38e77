/* reshape: the same elements in another shape; a view. */
#include <string.h>

#include "op/op.h"

hone_t hone_reshape(hone_t x, hone_shape s)
{
    struct op_attr a = {.i = {s.rank}};
    for (int i = 0; i < s.rank && i < HONE_MAX_RANK; i++)
        a.i[1 + i] = s.dim[i];
    return op_emit(&op_reshape, 1, &x, &a, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    char rule[128], to[64];
    out[0].dtype = c->in[0].dtype;
    out[0].shape.rank = (int)c->attr.i[0];
    if (out[0].shape.rank < 0 || out[0].shape.rank > HONE_MAX_RANK)
        return op_refuse(c, err, "a shape has 0 to 8 dimensions");
    for (int i = 0; i < out[0].shape.rank; i++)
        out[0].shape.dim[i] = c->attr.i[1 + i];
    if (hone_numel(&out[0].shape) != op_numel(&c->in[0])) {
        hone_shape_text(&out[0].shape, to, sizeof to);
        return op_refuse(c, err, strcat(strcpy(rule, "must keep the number of elements, wanted "), to));
    }
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    memcpy(out[0], in[0], (size_t)op_numel(&c->out[0]) * sizeof(double));
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    din[0] = hone_reshape(dout[0], hone_type_of(u->in[0]).shape);
}

static bool view(const struct op_call *c, size_t *offset)
{
    (void)c;
    *offset = 0;
    return true;
}

static void batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out)
{
    hone_shape s = {u->call->out[0].shape.rank + 1, {n}};
    (void)many;
    for (int i = 1; i < s.rank; i++)
        s.dim[i] = u->call->out[0].shape.dim[i - 1];
    out[0] = hone_reshape(u->in[0], s);
}

static struct op_cost cost(const struct op_call *c)
{
    (void)c;
    return (struct op_cost){0, 0};
}

static const struct op_case cases[] = {
    {"flat", 1, {OP_F32(3, 5)}, {.i = {1, 15}}},  {"split", 1, {OP_F32(6)}, {.i = {3, 1, 2, 3}}},
    {"to scalar", 1, {OP_F32(1, 1)}, {.i = {0}}}, {"empty", 1, {OP_F32(0, 5)}, {.i = {2, 7, 0}}},
    {"masks", 1, {OP_BOOL(4)}, {.i = {2, 2, 2}}}, {"indices", 1, {OP_I32(4)}, {.i = {2, 2, 2}}, .below = 9},
};
static const struct op_case bad[] = {{"count", 1, {OP_F32(3, 5)}, {.i = {1, 14}}},
                                     {"negative", 1, {OP_F32(4)}, {.i = {2, -2, -2}}}};

const struct op_def op_reshape = {
    .name = "reshape",
    .math = "y = x in another shape",
    .attr_i = "rank d0 d1 d2 d3 d4 d5 d6 d7",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = OP_VIEW,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .no_expand = "a view",
    .batch = batch,
    .cost = cost,
    .onnx = "Reshape",
    .view = view,
    OP_CASES(cases),
    OP_BAD(bad),
};
