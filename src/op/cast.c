/* cast: to another element type. To i32: towards zero, what i32 cannot hold to its nearest value, NaN to 0; to bool:
 * x != 0, so NaN is true; to bf16: to nearest. Types other than f32 have no gradient, so none passes; a cast to the
 * type that x has already is x itself, and passes it. */
#include <math.h>

#include "op/op.h"
#include "tensor/bf16.h"

hone_t hone_cast(hone_t x, hone_dtype to)
{
    if (op_has(x) && hone_type_of(x).dtype == to)
        return x;
    return op_emit(&op_cast, 1, &x, &(struct op_attr){.i = {to}}, NULL);
}

static bool holds(hone_dtype t)
{
    return t == HONE_F32 || t == HONE_I32 || t == HONE_U8 || t == HONE_BOOL;
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    if (c->in[0].dtype == HONE_F32 ? c->attr.i[0] == HONE_BF16
                                   : c->in[0].dtype == HONE_BF16 && c->attr.i[0] == HONE_F32) {
        out[0] = (hone_type){(hone_dtype)c->attr.i[0], c->in[0].shape};
        return HONE_OK;
    }
    if (!holds(c->in[0].dtype) || !holds((hone_dtype)c->attr.i[0]) || c->attr.i[0] == HONE_U8)
        return op_refuse(c, err, "casts f32, i32, u8 and bool to f32, i32 and bool, and f32 to bf16 and back");
    out[0] = (hone_type){(hone_dtype)c->attr.i[0], c->in[0].shape};
    return HONE_OK;
}

static double to_i32(double x)
{
    return x != x ? 0 : x >= INT32_MAX ? INT32_MAX : x <= INT32_MIN ? INT32_MIN : trunc(x);
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    for (int64_t i = 0, n = op_numel(&c->out[0]); i < n; i++)
        out[0][i] = c->attr.i[0] == HONE_BOOL   ? in[0][i] != 0
                    : c->attr.i[0] == HONE_I32  ? to_i32(in[0][i])
                    : c->attr.i[0] == HONE_BF16 ? bf16_float(bf16_of((float)in[0][i]))
                                                : in[0][i];
}

static void batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out)
{
    (void)many;
    (void)n;
    out[0] = hone_cast(u->in[0], (hone_dtype)u->call->attr.i[0]);
}

static const struct op_case cases[] = {
    {"image to f32", 1, {OP_U8(2, 3, 5)}, {.i = {HONE_F32}}},
    {"index to f32", 1, {OP_I32(37)}, {.i = {HONE_F32}}, .below = 1000},
    {"mask to f32", 1, {OP_BOOL(37)}, {.i = {HONE_F32}}},
    {"to index", 1, {OP_F32(37)}, {.i = {HONE_I32}}},
    {"far to index", 1, {OP_F32(37)}, {.i = {HONE_I32}}, .lo = -1e10, .hi = 1e10},
    {"to mask", 1, {OP_I32(37)}, {.i = {HONE_BOOL}}, .below = 2},
    {"f32 to mask", 1, {OP_F32(5)}, {.i = {HONE_BOOL}}},
    {"to bf16", 1, {OP_F32(3, 37)}, {.i = {HONE_BF16}}},
    {"from bf16", 1, {OP_BF16(3, 37)}, {.i = {HONE_F32}}},
    {"empty", 1, {OP_U8(0)}, {.i = {HONE_F32}}},
    {"image to index", 1, {OP_U8(9)}, {.i = {HONE_I32}}},
};
static const struct op_case bad[] = {{"to u8", 1, {OP_F32(3)}, {.i = {HONE_U8}}},
                                     {"bf16 to index", 1, {OP_BF16(3)}, {.i = {HONE_I32}}},
                                     {"to nothing", 1, {OP_F32(3)}, {.i = {99}}}};

const struct op_def op_cast = {
    .name = "cast",
    .math = "y = x as another type",
    .attr_i = "dtype",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .no_grad = "types other than f32 have none",
    .no_expand = "elementary: every device has it",
    .batch = batch,
    .onnx = "Cast",
    OP_CASES(cases),
    OP_BAD(bad),
};
