/* Normalisations with their gains and biases. */
#include "nn/nn.h"

/* One parameter a channel or feature. */
static hone_t gain(const hone_nn *nn, int64_t n)
{
    return hone_nn_param(nn, "weight", HONE_SHAPE(n), HONE_GROUP_PLAIN, (hone_init){HONE_INIT_ONE, 0});
}

static hone_t shift(const hone_nn *nn, int64_t n)
{
    return hone_nn_param(nn, "bias", HONE_SHAPE(n), HONE_GROUP_PLAIN, (hone_init){HONE_INIT_ZERO, 0});
}

hone_t hone_nn_group_norm(const hone_nn *nn, const char *name, hone_t x, int64_t groups)
{
    hone_t y = {nn->g, -1};
    nn_open(nn, name);
    if (nn_rank(nn, x, 2, "an input [batch, channels, ...]")) {
        int64_t n = nn_dim(x, 1);
        hone_t weight = gain(nn, n);
        y = hone_group_norm(x, weight, shift(nn, n), groups, 1e-5);
    }
    nn_close(nn, name);
    return y;
}

hone_t hone_nn_layer_norm(const hone_nn *nn, const char *name, hone_t x)
{
    hone_t y = {nn->g, -1};
    nn_open(nn, name);
    if (nn_rank(nn, x, 1, "an input [..., features]")) {
        int64_t n = nn_dim(x, -1);
        hone_t weight = gain(nn, n);
        y = hone_layer_norm(x, weight, shift(nn, n), 1e-5);
    }
    nn_close(nn, name);
    return y;
}

hone_t hone_nn_rms_norm(const hone_nn *nn, const char *name, hone_t x)
{
    hone_t y = {nn->g, -1};
    nn_open(nn, name);
    if (nn_rank(nn, x, 1, "an input [..., features]"))
        y = hone_rms_norm(x, gain(nn, nn_dim(x, -1)), 1e-6);
    nn_close(nn, name);
    return y;
}
