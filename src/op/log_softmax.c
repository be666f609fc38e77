/* log_softmax: the logarithm of softmax, without the loss of small probabilities. */
#include "op/softmax.h"

#include <math.h>

hone_t hone_log_softmax(hone_t x, int axis)
{
    return op_emit(&op_log_softmax, 1, &x, &(struct op_attr){.i = {[SOFTMAX_AXIS] = axis}}, NULL);
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const struct op_axis q = op_softmax_axis(c);
    for (int64_t r = 0; r < q.outer * q.inner; r++) {
        const double *x = in[0] + r / q.inner * q.n * q.inner + r % q.inner;
        double *y = out[0] + (x - in[0]), largest = -INFINITY, sum = 0;
        for (int64_t i = 0; i < q.n; i++)
            largest = fmax(largest, x[i * q.inner]);
        for (int64_t i = 0; i < q.n; i++)
            sum += exp(x[i * q.inner] - largest);
        for (int64_t i = 0; i < q.n; i++)
            y[i * q.inner] = x[i * q.inner] - largest - log(sum);
    }
}

/* dx = dy - exp(y) sum(dy) */
static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    hone_t sum = hone_sum(dout[0], HONE_AXIS(u->call->attr.i[SOFTMAX_AXIS]), true);
    din[0] = hone_sub(dout[0], hone_mul(hone_exp(u->out[0]), sum));
}

static void expand(const struct op_use *u, hone_t *out)
{
    const int axis = (int)u->call->attr.i[SOFTMAX_AXIS];
    if (op_numel(&u->call->in[0]) == 0) { /* nothing has no largest */
        out[0] = u->in[0];
        return;
    }
    hone_t z = op_softmax_shift(u->in[0], axis);
    out[0] = hone_sub(z, hone_log(hone_sum(hone_exp(z), HONE_AXIS(axis), true)));
}

#define AXIS(axis)                                                                                                     \
    {                                                                                                                  \
        .i = { axis }                                                                                                  \
    }
static const struct op_case cases[] = {
    {"vector", 1, {OP_F32(7)}, AXIS(0)},
    {"rows", 1, {OP_F32(3, 5)}, AXIS(1)},
    {"columns", 1, {OP_F32(3, 5)}, AXIS(0)},
    {"middle", 1, {OP_F32(2, 5, 3)}, AXIS(1)},
    {"one element", 1, {OP_F32(1)}, AXIS(0)},
    {"no rows", 1, {OP_F32(0, 5)}, AXIS(1)},
    {"nothing", 1, {OP_F32(3, 0)}, AXIS(1)},
    {"long", 1, {OP_F32(2, 1037)}, AXIS(1)},
    {"long columns", 1, {OP_F32(37, 65)}, AXIS(0)},
    {.name = "large", .n_in = 1, .in = {OP_F32(4, 33)}, .attr = AXIS(1), .lo = -200, .hi = 200},
    {.name = "far from zero", .n_in = 1, .in = {OP_F32(4, 33)}, .attr = AXIS(1), .lo = 998, .hi = 1002},
};
static const struct op_case bad[] = {{"axis", 1, {OP_F32(3, 5)}, AXIS(2)}, {"integers", 1, {OP_I32(3)}, AXIS(0)}};

const struct op_def op_log_softmax = {
    .name = "log_softmax",
    .math = "y = x - max(x) - log(sum(exp(x - max(x)))) along an axis",
    .attr_i = "axis",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = op_softmax_shape,
    .ref = ref,
    .grad = grad,
    .expand = expand,
    .batch = op_softmax_batch,
    .cost = op_softmax_cost,
    .onnx = "LogSoftmax",
    OP_CASES(cases),
    OP_BAD(bad),
};
