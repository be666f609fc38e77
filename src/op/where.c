/* where: x where the condition holds, y elsewhere; the three broadcast. */
#include "op/op.h"

hone_t hone_where(hone_t cond, hone_t x, hone_t y)
{
    return op_emit(&op_where, 3, (hone_t[]){cond, x, y}, NULL, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    hone_shape both;
    if (c->in[0].dtype != HONE_BOOL || c->in[1].dtype != HONE_F32 || c->in[2].dtype != HONE_F32)
        return op_refuse(c, err, "the condition must be bool, the values f32");
    if (!op_broadcast_shape(&c->in[1].shape, &c->in[2].shape, &both) ||
        !op_broadcast_shape(&c->in[0].shape, &both, &out[0].shape))
        return op_refuse(c, err, "shapes must broadcast (dimensions aligned at the right, equal or 1)");
    out[0].dtype = HONE_F32;
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const hone_shape *s = &c->out[0].shape;
    int64_t stride[3][HONE_MAX_RANK], idx[HONE_MAX_RANK] = {0}, at = 0;
    for (int i = 0; i < 3; i++)
        op_strides(&c->in[i].shape, s, stride[i]);
    if (hone_numel(s) == 0)
        return;
    do {
        int64_t o[3] = {0};
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < s->rank; k++)
                o[i] += idx[k] * stride[i][k];
        out[0][at++] = in[0][o[0]] != 0 ? in[1][o[1]] : in[2][o[2]];
    } while (op_next(s, idx));
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    hone_t zero = hone_const_f32(u->g, 0);
    din[1] = op_unbroadcast(hone_where(u->in[0], dout[0], zero), u->in[1]);
    din[2] = op_unbroadcast(hone_where(u->in[0], zero, dout[0]), u->in[2]);
}

static const struct op_case cases[] = {
    {"same", 3, {OP_BOOL(7), OP_F32(7), OP_F32(7)}},
    {"one mask", 3, {OP_BOOL(1, 5), OP_F32(3, 5), OP_F32(3, 5)}},
    {"column mask", 3, {OP_BOOL(3, 1), OP_F32(3, 5), OP_F32_SCALAR}},
    {"scalars", 3, {OP_BOOL(3, 5), OP_F32_SCALAR, OP_F32_SCALAR}},
    {"all different", 3, {OP_BOOL(4, 1, 1), OP_F32(3, 1), OP_F32(5)}},
    {"empty", 3, {OP_BOOL(0, 5), OP_F32(5), OP_F32(5)}},
    {"long", 3, {OP_BOOL(1037), OP_F32(1037), OP_F32(1037)}},
};
static const struct op_case bad[] = {{"types", 3, {OP_F32(3), OP_F32(3), OP_F32(3)}},
                                     {"no broadcast", 3, {OP_BOOL(3), OP_F32(4), OP_F32(4)}}};

const struct op_def op_where = {
    .name = "where",
    .math = "z = cond ? x : y",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .onnx = "Where",
    OP_CASES(cases),
    OP_BAD(bad),
};
