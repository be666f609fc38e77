/* softmax_grad: dx = y (dy - sum(dy y)) along the axis, from the result of softmax. */
#include "op/softmax.h"

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const struct op_axis q = op_softmax_axis(c);
    for (int64_t r = 0; r < q.outer * q.inner; r++) {
        const int64_t at = r / q.inner * q.n * q.inner + r % q.inner;
        const double *dy = in[0] + at, *y = in[1] + at;
        double sum = 0;
        for (int64_t i = 0; i < q.n; i++)
            sum += dy[i * q.inner] * y[i * q.inner];
        for (int64_t i = 0; i < q.n; i++)
            out[0][at + i * q.inner] = y[i * q.inner] * (dy[i * q.inner] - sum);
    }
}

static void expand(const struct op_use *u, hone_t *out)
{
    hone_t dy = u->in[0], y = u->in[1];
    out[0] = hone_mul(y, hone_sub(dy, hone_sum(hone_mul(dy, y), HONE_AXIS(u->call->attr.i[SOFTMAX_AXIS]), true)));
}

static struct op_cost cost(const struct op_call *c)
{
    double n = (double)op_numel(&c->in[0]);
    return (struct op_cost){4 * n, 12 * n};
}

#define AXIS(axis)                                                                                                     \
    {                                                                                                                  \
        .i = { axis }                                                                                                  \
    }
#define TWO(...)                                                                                                       \
    {                                                                                                                  \
        OP_F32(__VA_ARGS__), OP_F32(__VA_ARGS__)                                                                       \
    }
static const struct op_case cases[] = {
    {"vector", 2, TWO(7), AXIS(0)},           {"rows", 2, TWO(3, 5), AXIS(1)},
    {"columns", 2, TWO(3, 5), AXIS(0)},       {"middle", 2, TWO(2, 5, 3), AXIS(1)},
    {"scores", 2, TWO(2, 2, 3, 16), AXIS(3)}, {"one element", 2, TWO(1), AXIS(0)},
    {"no rows", 2, TWO(0, 5), AXIS(1)},       {"nothing", 2, TWO(3, 0), AXIS(1)},
    {"long", 2, TWO(2, 1037), AXIS(1)},       {"long columns", 2, TWO(37, 65), AXIS(0)},
};
static const struct op_case bad[] = {{"axis", 2, TWO(3, 5), AXIS(2)},
                                     {"shapes", 2, {OP_F32(3, 5), OP_F32(5)}, AXIS(0)},
                                     {"integers", 2, {OP_F32(3), OP_I32(3)}, AXIS(0)}};

const struct op_def op_softmax_grad = {
    .name = "softmax_grad",
    .math = "dx = y (dy - sum(dy y)) along an axis",
    .attr_i = "axis",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .shape = op_softmax_shape,
    .ref = ref,
    .no_grad = "differentiated through its expansion",
    .expand = expand,
    .cost = cost,
    .no_onnx = "gradients are not exported",
    OP_CASES(cases),
    OP_BAD(bad),
};
