/* stop_gradient: x, but no gradient passes; a view. */
#include <string.h>

#include "op/op.h"

hone_t hone_stop_gradient(hone_t x)
{
    return op_emit(&op_stop_gradient, 1, &x, NULL, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    (void)err;
    out[0] = c->in[0];
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    memcpy(out[0], in[0], (size_t)op_numel(&c->out[0]) * sizeof(double));
}

static bool view(const struct op_call *c, size_t *offset)
{
    (void)c;
    *offset = 0;
    return true;
}

static struct op_cost cost(const struct op_call *c)
{
    (void)c;
    return (struct op_cost){0, 0};
}

static const struct op_case cases[] = {
    {"vector", 1, {OP_F32(7)}}, {"empty", 1, {OP_F32(0)}}, {"masks", 1, {OP_BOOL(4)}}};

const struct op_def op_stop_gradient = {
    .name = "stop_gradient",
    .math = "y = x, dx = 0",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = OP_VIEW,
    .shape = shape,
    .ref = ref,
    .no_grad = "that is its purpose",
    .no_expand = "a view",
    .cost = cost,
    .onnx = "Identity",
    .view = view,
    OP_CASES(cases),
};
