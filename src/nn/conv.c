/* Convolutions over time. */
#include "nn/nn.h"

/* Options with their defaults filled in; false, and an error in the graph, if they cannot be. */
static bool options(const hone_nn *nn, const hone_conv *o, bool transposed, hone_conv *out)
{
    *out = *o;
    out->stride = o->stride ? o->stride : 1;
    out->dilation = o->dilation ? o->dilation : 1;
    if (o->kernel < 1)
        nn_refuse(nn->g, HONE_E_ARG, "a convolution wants a kernel of at least 1 tap; got %lld", (long long)o->kernel);
    else if (o->padding == HONE_PAD_SAME && (transposed || o->kernel % 2 == 0))
        nn_refuse(nn->g, HONE_E_ARG,
                  "the length can be kept only by an odd kernel that is not transposed; got %lld taps",
                  (long long)o->kernel);
    else if (transposed ? out->dilation != 1 : o->output_padding != 0)
        nn_refuse(nn->g, HONE_E_ARG, "%s",
                  transposed ? "a transposed convolution has no dilation"
                             : "only a transposed convolution has output padding");
    if (o->padding == HONE_PAD_SAME)
        out->padding = out->dilation * (o->kernel - 1) / 2;
    return hone_graph_status(nn->g, NULL) == HONE_OK;
}

hone_t hone_nn_conv1d(const hone_nn *nn, const char *name, hone_t x, int64_t out, const hone_conv *o)
{
    hone_conv c;
    hone_t y = {nn->g, -1};
    nn_open(nn, name);
    if (nn_rank(nn, x, 3, "an input [batch, channels, length]") && options(nn, o, false, &c)) {
        int64_t in = nn_dim(x, 1), fan_in = in * c.kernel;
        hone_t w = nn_weight(nn, HONE_SHAPE(out, in, c.kernel), fan_in);
        y = hone_conv1d(x, w, nn_bias(nn, out, fan_in, !c.no_bias), c.stride, c.padding, c.dilation);
    }
    nn_close(nn, name);
    return y;
}

hone_t hone_nn_conv_transpose1d(const hone_nn *nn, const char *name, hone_t x, int64_t out, const hone_conv *o)
{
    hone_conv c;
    hone_t y = {nn->g, -1};
    nn_open(nn, name);
    if (nn_rank(nn, x, 3, "an input [batch, channels, length]") && options(nn, o, true, &c)) {
        int64_t in = nn_dim(x, 1), fan_in = out * c.kernel;
        hone_t w = nn_weight(nn, HONE_SHAPE(in, out, c.kernel), fan_in);
        y = hone_conv_transpose1d(x, w, nn_bias(nn, out, fan_in, !c.no_bias), c.stride, c.padding, c.output_padding);
    }
    nn_close(nn, name);
    return y;
}
