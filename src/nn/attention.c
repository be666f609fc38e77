/* Multi-head attention between sequences. */
#include <math.h>

#include "nn/nn.h"

/* x [B, L, in] -> [B, heads, L, width / heads] */
static hone_t by_heads(const hone_nn *nn, const char *name, hone_t x, int64_t width, int64_t heads)
{
    float scale = (float)sqrt(6.0 / (double)(nn_dim(x, -1) + width));
    hone_t y = nn_dense(nn, name, x, width, (hone_init){HONE_INIT_UNIFORM, scale});
    y = hone_reshape(y, HONE_SHAPE(nn_dim(x, 0), nn_dim(x, 1), heads, width / heads));
    return hone_permute(y, (int[]){0, 2, 1, 3});
}

hone_t hone_nn_attention(const hone_nn *nn, const char *name, hone_t x, hone_t memory, hone_t mask, int64_t heads)
{
    hone_t y = {nn->g, -1}, from = memory.g ? memory : x;
    const int64_t width = nn_dim(x, 2);
    nn_open(nn, name);
    if (!nn_rank(nn, x, 3, "a sequence [batch, tokens, features]") ||
        !nn_rank(nn, from, 3, "a memory [batch, tokens, features]")) {
        /* told already */
    } else if (heads < 1 || width % heads || width < 1) {
        nn_refuse(nn->g, HONE_E_ARG, "heads must divide the features; got %lld heads, %lld features", (long long)heads,
                  (long long)width);
    } else {
        hone_t q = by_heads(nn, "query", x, width, heads);
        hone_t k = by_heads(nn, "key", from, width, heads);
        hone_t v = by_heads(nn, "value", from, width, heads);
        y = hone_permute(hone_attention(q, k, v, mask, 0), (int[]){0, 2, 1, 3});
        y = hone_reshape(y, hone_type_of(x).shape);
        y = nn_dense(nn, "output", y, width, (hone_init){HONE_INIT_UNIFORM, (float)(1 / sqrt((double)width))});
    }
    nn_close(nn, name);
    return y;
}
