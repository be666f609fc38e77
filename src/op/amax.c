/* amax: the largest over some axes. Where several are equally large they share the gradient equally: of all the
 * subgradients it is the one that does not depend on their order. NaN is larger than every number. */
#include <math.h>

#include "op/reduce.h"

hone_t hone_amax(hone_t x, unsigned axes, bool keep)
{
    return op_emit(&op_amax, 1, &x, &(struct op_attr){.i = {axes, keep}}, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    return op_shape_reduce(c, true, out, err);
}

struct largest {
    const double *x;
    double *y;
};

static void take(void *user, int64_t from, int64_t to)
{
    const struct largest *s = user;
    if (s->x[from] > s->y[to] || isnan(s->x[from]))
        s->y[to] = s->x[from];
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    for (int64_t i = 0, n = op_numel(&c->out[0]); i < n; i++)
        out[0][i] = -INFINITY;
    op_reduce_walk(c, take, &(struct largest){in[0], out[0]});
}

/* dy shared by the places that hold y. */
static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    const int64_t *a = u->call->attr.i;
    hone_t here = hone_cast(hone_equal(u->in[0], op_reduce_stretch(u, u->out[0])), HONE_F32);
    hone_t places = hone_sum(here, (unsigned)a[REDUCE_AXES], a[REDUCE_KEEP]);
    din[0] = hone_mul(here, op_reduce_stretch(u, hone_div(dout[0], places)));
}

static void batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out)
{
    (void)many;
    (void)n;
    out[0] = hone_amax(u->in[0], op_reduce_batch_axes(u->call), u->call->attr.i[REDUCE_KEEP]);
}

static const struct op_case cases[] = {
    {"all", 1, {OP_F32(3, 5)}, {.i = {HONE_AXES_ALL, 0}}},
    {"last", 1, {OP_F32(3, 5)}, {.i = {2, 0}}},
    {"first", 1, {OP_F32(3, 5)}, {.i = {1, 0}}},
    {"keep", 1, {OP_F32(2, 3, 5)}, {.i = {2, 1}}},
    {"ends", 1, {OP_F32(2, 3, 5)}, {.i = {5, 0}}},
    {"none", 1, {OP_F32(2, 3)}, {.i = {0, 0}}},
    {"scalar", 1, {OP_F32_SCALAR}, {.i = {0, 0}}},
    {"no rows", 1, {OP_F32(0, 3)}, {.i = {2, 0}}},
    {"long", 1, {OP_F32(4099)}, {.i = {1, 0}}},
    {"columns", 1, {OP_F32(33, 65)}, {.i = {1, 0}}},
    {"rows", 1, {OP_F32(33, 65)}, {.i = {2, 1}}},
    {"middle", 1, {OP_F32(4, 17, 9)}, {.i = {2, 1}}},
    {"one", 1, {OP_F32(1)}, {.i = {1, 0}}},
};
static const struct op_case bad[] = {{"axis", 1, {OP_F32(3, 5)}, {.i = {4, 0}}},
                                     {"of nothing", 1, {OP_F32(3, 0)}, {.i = {2, 0}}},
                                     {"integers", 1, {OP_I32(3)}, {.i = {1, 0}}}};

const struct op_def op_amax = {
    .name = "amax",
    .math = "y = the largest of x over axes",
    .attr_i = "axes keep",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .no_expand = "elementary: every device has it",
    .batch = batch,
    .cost = op_reduce_cost,
    .onnx = "ReduceMax",
    OP_CASES(cases),
    OP_BAD(bad),
};
