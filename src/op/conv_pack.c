/* conv_pack: weights of a 1-D convolution in the order in which conv_block reads them: blocks of 16 output channels, in
 * a block input channel, tap, output channel. Missing output channels are zero. Done once a version of the weights. */
#include "op/conv_block.h"
#include "op/op.h"

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    const hone_shape *s = &c->in[0].shape;
    if (!op_all_f32(c) || s->rank != 3)
        return op_refuse(c, err, "the weight must be f32 [out, in, taps]");
    out[0] = (hone_type){HONE_F32, {4, {(s->dim[0] + CB_LANES - 1) / CB_LANES, s->dim[1], s->dim[2], CB_LANES}}};
    return HONE_OK;
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    const int64_t *w = c->in[0].shape.dim, n = op_numel(&c->out[0]);
    for (int64_t i = 0; i < n; i++) {
        int64_t lane = i % CB_LANES, k = i / CB_LANES % w[2], ci = i / CB_LANES / w[2] % w[1],
                o = i / CB_LANES / w[2] / w[1] * CB_LANES + lane;
        out[0][i] = o < w[0] ? in[0][(o * w[1] + ci) * w[2] + k] : 0;
    }
}

static void expand(const struct op_use *u, hone_t *out)
{
    const int64_t *w = u->call->in[0].shape.dim, blocks = (w[0] + CB_LANES - 1) / CB_LANES;
    hone_t x = hone_pad(u->in[0], 0, 0, blocks * CB_LANES - w[0], 0);
    x = hone_reshape(x, HONE_SHAPE(blocks, CB_LANES, w[1], w[2]));
    out[0] = hone_permute(x, (const int[]){0, 2, 3, 1});
}

static const struct op_case cases[] = {
    {"one block", 1, {OP_F32(16, 3, 5)}},
    {"part of a block", 1, {OP_F32(3, 4, 1)}},
    {"blocks", 1, {OP_F32(33, 2, 3)}},
    {"no input", 1, {OP_F32(16, 0, 3)}},
};
static const struct op_case bad[] = {{"rank", 1, {OP_F32(3, 4)}}, {"integers", 1, {OP_I32(3, 4, 5)}}};

const struct op_def op_conv_pack = {
    .name = "conv_pack",
    .math = "y[o/16][c][k][o%16] = w[o][c][k]",
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
