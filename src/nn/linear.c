/* Dense layers and embeddings. */
#include "nn/nn.h"

hone_t hone_nn_linear(const hone_nn *nn, const char *name, hone_t x, int64_t out, bool bias)
{
    hone_t y = {nn->g, -1};
    nn_open(nn, name);
    if (nn_rank(nn, x, 1, "an input [..., features]")) {
        int64_t in = nn_dim(x, -1);
        hone_t w = nn_weight(nn, HONE_SHAPE(out, in), in);
        y = hone_linear(x, w, nn_bias(nn, out, in, bias));
    }
    nn_close(nn, name);
    return y;
}

hone_t nn_dense(const hone_nn *nn, const char *name, hone_t x, int64_t out, hone_init weight)
{
    nn_open(nn, name);
    hone_t w = hone_nn_param(nn, "weight", HONE_SHAPE(out, nn_dim(x, -1)), HONE_GROUP_DECAY, weight);
    hone_t b = hone_nn_param(nn, "bias", HONE_SHAPE(out), HONE_GROUP_PLAIN, (hone_init){HONE_INIT_ZERO, 0});
    hone_t y = hone_linear(x, w, b);
    nn_close(nn, name);
    return y;
}

hone_t hone_nn_embedding(const hone_nn *nn, const char *name, hone_t index, int64_t count, int64_t width)
{
    nn_open(nn, name);
    hone_init normal = {HONE_INIT_NORMAL, 1};
    hone_t table = hone_nn_param(nn, "weight", HONE_SHAPE(count, width), HONE_GROUP_PLAIN, normal);
    hone_t y = hone_gather(table, index);
    nn_close(nn, name);
    return y;
}
