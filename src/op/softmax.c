/* softmax: exponentials along one axis over their sum. The largest element is taken off first, so that no exponential
 * overflows. */
#include "op/softmax.h"

#include <math.h>

hone_t hone_softmax(hone_t x, int axis)
{
    return op_emit(&op_softmax, 1, &x, &(struct op_attr){.i = {[SOFTMAX_AXIS] = axis}}, NULL);
}

/* --- shared --- */

struct op_axis op_softmax_axis(const struct op_call *c)
{
    const hone_shape *s = &c->in[0].shape;
    struct op_axis q = {1, s->dim[c->attr.i[SOFTMAX_AXIS]], 1};
    for (int i = 0; i < s->rank; i++) {
        q.outer *= i < c->attr.i[SOFTMAX_AXIS] ? s->dim[i] : 1;
        q.inner *= i > c->attr.i[SOFTMAX_AXIS] ? s->dim[i] : 1;
    }
    return q;
}

hone_status op_softmax_shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    int64_t axis = c->attr.i[SOFTMAX_AXIS];
    if (!op_all_f32(c))
        return op_refuse(c, err, "all operands must be f32");
    if (axis < 0 || axis >= c->in[0].shape.rank)
        return op_refuse(c, err, "the axis is beyond the operand's dimensions");
    if (c->n_in > 1 && !hone_shape_equal(&c->in[0].shape, &c->in[1].shape))
        return op_refuse(c, err, "both operands need one shape");
    out[0] = c->in[0];
    return HONE_OK;
}

hone_t op_softmax_shift(hone_t x, int axis)
{
    return hone_sub(x, hone_stop_gradient(hone_amax(x, HONE_AXIS(axis), true)));
}

void op_softmax_batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out)
{
    struct op_attr a = {.i = {[SOFTMAX_AXIS] = u->call->attr.i[SOFTMAX_AXIS] + 1}};
    (void)many;
    (void)n;
    op_emit(u->call->def, 1, u->in, &a, out);
}

struct op_cost op_softmax_cost(const struct op_call *c)
{
    double n = (double)op_numel(&c->in[0]);
    return (struct op_cost){12 * n, 4 * n * (c->n_in + 1)}; /* an exponential as 8 */
}

/* --- softmax --- */

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
            y[i * q.inner] = exp(x[i * q.inner] - largest) / sum;
    }
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    din[0] = op_emit(&op_softmax_grad, 2, (hone_t[]){dout[0], u->out[0]}, &u->call->attr, NULL);
}

static void expand(const struct op_use *u, hone_t *out)
{
    const int axis = (int)u->call->attr.i[SOFTMAX_AXIS];
    if (op_numel(&u->call->in[0]) == 0) { /* nothing has no largest */
        out[0] = u->in[0];
        return;
    }
    hone_t e = hone_exp(op_softmax_shift(u->in[0], axis));
    out[0] = hone_div(e, hone_sum(e, HONE_AXIS(axis), true));
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
    {"scores", 1, {OP_F32(2, 2, 3, 16)}, AXIS(3)},
    {"one element", 1, {OP_F32(1)}, AXIS(0)},
    {"one of each", 1, {OP_F32(5, 1)}, AXIS(1)},
    {"no rows", 1, {OP_F32(0, 5)}, AXIS(1)},
    {"nothing", 1, {OP_F32(3, 0)}, AXIS(1)},
    {"long", 1, {OP_F32(2, 1037)}, AXIS(1)},
    {"long columns", 1, {OP_F32(37, 65)}, AXIS(0)},
    {.name = "large", .n_in = 1, .in = {OP_F32(4, 33)}, .attr = AXIS(1), .lo = -200, .hi = 200},
    {.name = "far from zero", .n_in = 1, .in = {OP_F32(4, 33)}, .attr = AXIS(1), .lo = 998, .hi = 1002},
};
static const struct op_case bad[] = {{"axis", 1, {OP_F32(3, 5)}, AXIS(2)},
                                     {"negative", 1, {OP_F32(3, 5)}, AXIS(-1)},
                                     {"scalar", 1, {OP_F32_SCALAR}, AXIS(0)},
                                     {"integers", 1, {OP_I32(3)}, AXIS(0)}};

const struct op_def op_softmax = {
    .name = "softmax",
    .math = "y = exp(x - max(x)) / sum(exp(x - max(x))) along an axis",
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
    .onnx = "Softmax",
    OP_CASES(cases),
    OP_BAD(bad),
};
