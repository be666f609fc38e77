/* clip_scale: what gradients are multiplied by so that their norm is at most max_norm, as PyTorch's clip_grad_norm_. */
#include <math.h>

#include "op/op.h"

#define MARGIN 1e-6 /* added to the norm */

hone_t hone_clip_scale(hone_t sum_squares, double max_norm)
{
    return op_emit(&op_clip_scale, 1, &sum_squares, &(struct op_attr){.f = {max_norm}}, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    if (!op_all_f32(c) || op_numel(&c->in[0]) != 1)
        return op_refuse(c, err, "the sum of squares is one f32");
    if (!(c->attr.f[0] > 0))
        return op_refuse(c, err, "max_norm must be more than 0");
    out[0] = c->in[0];
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const double k = c->attr.f[0] / (sqrt(in[0][0]) + MARGIN);
    out[0][0] = k >= 1 ? 1 : k;
}

static void expand(const struct op_use *u, hone_t *out)
{
    hone_t norm = hone_affine(hone_sqrt(u->in[0]), 1, MARGIN);
    hone_t k = hone_affine(hone_reciprocal(norm), u->call->attr.f[0], 0);
    out[0] = hone_minimum(k, hone_full(u->g, u->call->in[0].shape, 1));
}

#define CASE(name, max_norm, ...)                                                                                      \
    {                                                                                                                  \
        name, 1, {__VA_ARGS__}, {.f = {max_norm}}, .lo = 0.5, .hi = 2                                                  \
    }
static const struct op_case cases[] = {
    CASE("clipped", 0.5, OP_F32_SCALAR),
    CASE("free", 3, OP_F32_SCALAR),
    CASE("one", 0.5, OP_F32(1)),
    CASE("one by one", 3, OP_F32(1, 1)),
};
static const struct op_case bad[] = {
    CASE("two", 1, OP_F32(2)),
    CASE("integers", 1, OP_I32(1)),
    CASE("no norm", 0, OP_F32_SCALAR),
};

const struct op_def op_clip_scale = {
    .name = "clip_scale",
    .math = "y = min(1, max_norm / (sqrt(s) + 1e-6))",
    .attr_f = "max_norm",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = OP_ANY_NUMBER, /* a step whose gradients overflowed is skipped by adamw, after this */
    .shape = shape,
    .ref = ref,
    .no_grad = "that of its expansion",
    .expand = expand,
    .no_onnx = "training only",
    OP_CASES(cases),
    OP_BAD(bad),
};
