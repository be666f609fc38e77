/* mean: over some axes. */
#include "op/reduce.h"

hone_t hone_mean(hone_t x, unsigned axes, bool keep)
{
    return op_emit(&op_mean, 1, &x, &(struct op_attr){.i = {axes, keep}}, NULL);
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    return op_shape_reduce(c, true, out, err);
}

struct sums {
    const double *x;
    double *y;
};

static void add(void *user, int64_t from, int64_t to)
{
    const struct sums *s = user;
    s->y[to] += s->x[from];
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const int64_t n = op_numel(&c->out[0]);
    for (int64_t i = 0; i < n; i++)
        out[0][i] = 0;
    op_reduce_walk(c, add, &(struct sums){in[0], out[0]});
    for (int64_t i = 0; i < n; i++)
        out[0][i] /= (double)op_reduce_count(c);
}

static void grad(const struct op_use *u, const hone_t *dout, hone_t *din)
{
    din[0] = op_reduce_stretch(u, hone_affine(dout[0], 1 / (double)op_reduce_count(u->call), 0));
}

static void expand(const struct op_use *u, hone_t *out)
{
    const int64_t *a = u->call->attr.i;
    hone_t sum = hone_sum(u->in[0], (unsigned)a[REDUCE_AXES], a[REDUCE_KEEP]);
    out[0] = hone_affine(sum, 1 / (double)op_reduce_count(u->call), 0);
}

static void batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out)
{
    (void)many;
    (void)n;
    out[0] = hone_mean(u->in[0], op_reduce_batch_axes(u->call), u->call->attr.i[REDUCE_KEEP]);
}

static const struct op_case cases[] = {{"all", 1, {OP_F32(3, 5)}, {.i = {HONE_AXES_ALL, 0}}},
                                       {"last", 1, {OP_F32(3, 5)}, {.i = {2, 0}}},
                                       {"first", 1, {OP_F32(3, 5)}, {.i = {1, 0}}},
                                       {"keep", 1, {OP_F32(2, 3, 5)}, {.i = {2, 1}}},
                                       {"ends", 1, {OP_F32(2, 3, 5)}, {.i = {5, 0}}},
                                       {"none", 1, {OP_F32(2, 3)}, {.i = {0, 0}}},
                                       {"scalar", 1, {OP_F32_SCALAR}, {.i = {0, 0}}},
                                       {"no rows", 1, {OP_F32(0, 3)}, {.i = {2, 0}}},
                                       {"long", 1, {OP_F32(4099)}, {.i = {1, 0}}},
                                       {"columns", 1, {OP_F32(33, 65)}, {.i = {1, 0}}},
                                       {"middle", 1, {OP_F32(4, 17, 9)}, {.i = {2, 1}}},
                                       {"one", 1, {OP_F32(1)}, {.i = {1, 0}}},
                                       {"long, in pieces", 1, {OP_F32(50021)}, {.i = {1, 0}}}};
static const struct op_case bad[] = {{"axis", 1, {OP_F32(3, 5)}, {.i = {4, 0}}},
                                     {"of nothing", 1, {OP_F32(3, 0)}, {.i = {2, 0}}},
                                     {"integers", 1, {OP_I32(3)}, {.i = {1, 0}}}};

const struct op_def op_mean = {
    .name = "mean",
    .math = "y = sum of x over axes / their number of elements",
    .attr_i = "axes keep",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .expand = expand,
    .batch = batch,
    .cost = op_reduce_cost,
    .onnx = "ReduceMean",
    OP_CASES(cases),
    OP_BAD(bad),
};
