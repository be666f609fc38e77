/* conv_pack: weights of a 1-D convolution in the order in which conv_block reads them: blocks of 16 output channels, in
 * a block input channel, tap, output channel. Missing output channels are zero. With `half` each is rounded to the
 * nearest bfloat16, and those of two input channels, 2 c and 2 c + 1, stand side by side. Done once a version of the
 * weights. */
#include "op/conv_block.h"
#include "op/op.h"
#include "tensor/bf16.h"

static int64_t together(const struct op_call *c)
{
    return c->attr.i[CP_HALF] ? 2 : 1;
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const int64_t *w = c->in[0].shape.dim, n = together(c);
    if (!op_all_f32(c) || c->in[0].shape.rank != 3)
        return op_refuse(c, err, "the weight must be f32 [out, in, taps]");
    if (w[1] % n)
        return op_refuse(c, err, "bf16 goes by pairs of input channels");
    out[0] = (hone_type){n > 1 ? HONE_BF16 : HONE_F32,
                         {4, {(w[0] + CB_LANES - 1) / CB_LANES, w[1] / n, w[2], n * CB_LANES}}};
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const int64_t *w = c->in[0].shape.dim, n = together(c), all = op_numel(&c->out[0]);
    for (int64_t i = 0; i < all; i++) {
        int64_t vector = i / n / CB_LANES, k = vector % w[2], ci = vector / w[2] % (w[1] / n) * n + i % n,
                o = vector / w[2] / (w[1] / n) * CB_LANES + i / n % CB_LANES;
        out[0][i] = o < w[0] ? in[0][(o * w[1] + ci) * w[2] + k] : 0;
        if (n > 1)
            out[0][i] = bf16_float(bf16_of((float)out[0][i]));
    }
}

static void expand(const struct op_use *u, hone_t *out)
{
    const int64_t *w = u->call->in[0].shape.dim, n = together(u->call), blocks = (w[0] + CB_LANES - 1) / CB_LANES;
    hone_t x = hone_pad(u->in[0], 0, 0, blocks * CB_LANES - w[0], 0);
    x = hone_reshape(x, HONE_SHAPE(blocks, CB_LANES, w[1] / n, n, w[2]));
    x = hone_permute(x, (const int[]){0, 2, 4, 1, 3});
    out[0] = hone_cast(hone_reshape(x, u->call->out[0].shape), u->call->out[0].dtype);
}

static const struct op_case cases[] = {
    {"one block", 1, {OP_F32(16, 3, 5)}},        {"part of a block", 1, {OP_F32(3, 4, 1)}},
    {"blocks", 1, {OP_F32(33, 2, 3)}},           {"no input", 1, {OP_F32(16, 0, 3)}},
    {"half", 1, {OP_F32(33, 4, 3)}, {.i = {1}}},
};
static const struct op_case bad[] = {{"rank", 1, {OP_F32(3, 4)}},
                                     {"half of three", 1, {OP_F32(3, 3, 1)}, {.i = {1}}},
                                     {"integers", 1, {OP_I32(3, 4, 5)}}};

const struct op_def op_conv_pack = {
    .name = "conv_pack",
    .math = "y[o/16][c][k][o%16] = w[o][c][k]",
    .attr_i = "half",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .shape = shape,
    .ref = ref,
    .no_grad = "made after differentiation; its expansion has one",
    .expand = expand,
    .no_onnx = "folded: weights are exported as they are",
    OP_CASES(cases),
    OP_BAD(bad),
};
