/* Dense layers and embeddings. */
#include "nn/nn.h"

#define MAX_PARTS 8

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

/* All but the last dimension are the same. */
static bool joins(hone_t a, hone_t b)
{
    hone_shape s = hone_type_of(a).shape, t = hone_type_of(b).shape;
    if (s.rank == t.rank)
        t.dim[t.rank - 1] = s.dim[s.rank - 1];
    return hone_shape_equal(&s, &t);
}

/* Each part times its own columns of the weight. */
static hone_t apart(const hone_t *parts, int n, hone_t w, hone_t b)
{
    int64_t at = 0;
    hone_t y = HONE_NONE;
    for (int i = 0; i < n; i++) {
        int64_t width = nn_dim(parts[i], -1);
        hone_t p = hone_linear(parts[i], hone_slice(w, 1, at, width), i == 0 ? b : HONE_NONE);
        y = i == 0 ? p : hone_add(y, p);
        at += width;
    }
    return y;
}

hone_t hone_nn_linear_parts(const hone_nn *nn, const char *name, const hone_t *parts, int n, int64_t out, bool bias)
{
    bool together = true, fit = true;
    int64_t in = 0;
    if (n < 1 || n > MAX_PARTS)
        return nn_refuse(nn->g, HONE_E_ARG, "a dense layer takes 1 to %d parts; got %d", MAX_PARTS, n);
    if (n == 1)
        return hone_nn_linear(nn, name, parts[0], out, bias);
    nn_open(nn, name);
    for (int i = 0; i < n; i++) {
        fit = fit && nn_rank(nn, parts[i], 1, "an input [..., features]");
        together = together && joins(parts[0], parts[i]);
        in += nn_dim(parts[i], -1);
    }
    hone_t y = {nn->g, -1};
    if (fit) {
        hone_t w = nn_weight(nn, HONE_SHAPE(out, in), in), b = nn_bias(nn, out, in, bias);
        int last = hone_type_of(parts[0]).shape.rank - 1;
        y = together ? hone_linear(hone_concat(n, parts, last), w, b) : apart(parts, n, w, b);
    }
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
