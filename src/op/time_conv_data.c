/* time_conv_data: the transpose of time_conv by its signal, with a bias: gradients of signals, and what upsamples.
 * y [M,B,O], w [K,C,O], bias [C] -> [T,B,C]. */
#include "op/time_conv.h"

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const int64_t *y = c->in[0].shape.dim, *w = c->in[1].shape.dim, t = c->attr.i[TC_EXTENT];
    int64_t a[4];
    hone_status s = op_time_conv_check(c, err);
    if (s != HONE_OK)
        return s;
    op_time_conv_attr(c->attr.i, a);
    if (y[2] != w[2] || t < 1 || op_conv_length(a, t, w[0]) != y[0])
        return op_refuse(c, err, "a signal of this length does not give these results with this kernel [K,C,O]");
    if (c->n_in == 3 && (c->in[2].shape.rank != 1 || c->in[2].shape.dim[0] != w[1]))
        return op_refuse(c, err, "the bias needs one number a channel of the signal");
    out[0] = (hone_type){HONE_F32, HONE_SHAPE(t, y[1], w[1])};
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const int64_t *y = c->in[0].shape.dim, *w = c->in[1].shape.dim, *x = c->out[0].shape.dim, *a = c->attr.i;
    for (int64_t i = 0, n = op_numel(&c->out[0]); i < n; i++)
        out[0][i] = c->n_in == 3 ? in[2][i % x[2]] : 0;
    for (int64_t at = 0, n = op_numel(&c->in[0]); at < n; at++) {
        const int64_t o = at % y[2], b = at / y[2] % y[1], m = at / y[2] / y[1];
        for (int64_t k = 0; k < w[0]; k++) {
            const int64_t t = a[TC_STRIDE] * m + k - a[TC_PADDING];
            for (int64_t i = 0; t >= 0 && t < x[0] && i < x[2]; i++)
                out[0][(t * x[1] + b) * x[2] + i] += in[0][at] * in[1][(k * w[1] + i) * w[2] + o];
        }
    }
}

static void expand(const struct op_use *u, hone_t *out)
{
    int64_t a[4];
    op_time_conv_attr(u->call->attr.i, a);
    hone_t w = hone_permute(u->in[1], (const int[]){2, 1, 0});
    hone_t x = op_time_first(op_emit_conv1d_data_grad(op_time_last(u->in[0]), w, a, a[CONV_EXTENT]));
    out[0] = u->call->n_in == 3 ? hone_add(x, u->in[2]) : x;
}

static struct op_cost cost(const struct op_call *c)
{
    const int64_t *w = c->in[1].shape.dim, *a = c->attr.i;
    return op_conv_cost(
        c, op_conv_pairs(c->in[0].shape.dim[0], w[0], c->out[0].shape.dim[0], a[TC_STRIDE], a[TC_PADDING]) *
               c->in[0].shape.dim[1] * w[1] * w[2]);
}

#define A(stride, padding, t)                                                                                          \
    {                                                                                                                  \
        .i = { stride, padding, t }                                                                                    \
    }
static const struct op_case cases[] = {
    {"same", 2, {OP_F32(6, 2, 4), OP_F32(5, 3, 4)}, A(1, 2, 6)},
    {"bias", 3, {OP_F32(4, 3, 5), OP_F32(3, 7, 5), OP_F32(7)}, A(1, 1, 4)},
    {"twice as long", 3, {OP_F32(4, 2, 5), OP_F32(4, 3, 5), OP_F32(3)}, A(2, 1, 8)},
    {"stride", 2, {OP_F32(4, 2, 4), OP_F32(3, 3, 4)}, A(2, 1, 8)},
    {"stride beyond the kernel", 3, {OP_F32(3, 2, 4), OP_F32(2, 3, 4), OP_F32(3)}, A(3, 0, 10)},
    {"padding beyond the kernel", 2, {OP_F32(10, 2, 3), OP_F32(2, 2, 3)}, A(1, 4, 3)},
    {"larger", 2, {OP_F32(4, 64, 48), OP_F32(5, 32, 48)}, A(1, 2, 4)},
    {"one time", 2, {OP_F32(1, 9, 8), OP_F32(5, 16, 8)}, A(1, 2, 1)},
    {"no sample", 2, {OP_F32(6, 0, 4), OP_F32(5, 3, 4)}, A(1, 2, 6)},
    {"no channel", 3, {OP_F32(6, 2, 0), OP_F32(5, 3, 0), OP_F32(3)}, A(1, 2, 6)},
};
static const struct op_case bad[] = {
    {"channels", 2, {OP_F32(6, 2, 4), OP_F32(5, 3, 3)}, A(1, 2, 6)},
    {"length", 2, {OP_F32(6, 2, 4), OP_F32(5, 3, 4)}, A(1, 2, 7)},
    {"bias", 3, {OP_F32(6, 2, 4), OP_F32(5, 3, 4), OP_F32(4)}, A(1, 2, 6)},
    {"integers", 2, {OP_F32(6, 2, 4), OP_I32(5, 3, 4)}, A(1, 2, 6)},
};

const struct op_def op_time_conv_data = {
    .name = "time_conv_data",
    .math = "x[t,b,c] = b[c] + sum over o, m, k with t = stride m + k - padding of w[k,c,o] y[m,b,o]",
    .attr_i = "stride padding length",
    .min_in = 2,
    .max_in = 3,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .no_grad = "made after differentiation; its expansion has one",
    .expand = expand,
    .cost = cost,
    .no_onnx = "exported before layouts are chosen",
    OP_CASES(cases),
    OP_BAD(bad),
};
