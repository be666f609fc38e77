/* Times as vectors. */
#include <math.h>

#include "graph/ir.h"
#include "nn/nn.h"

/* 10000^(-i / (h - 1)), i = 0 .. h - 1; computed in double and rounded once. */
static hone_t frequencies(hone_graph *g, int64_t h)
{
    float *f = arena_alloc(&g->arena, (size_t)h * sizeof *f);
    if (!f)
        return nn_refuse(g, HONE_E_NOMEM, "no memory for %lld frequencies", (long long)h);
    for (int64_t i = 0; i < h; i++)
        f[i] = (float)exp(-log(10000.0) * (double)i / (double)(h - 1));
    return hone_const(g, HONE_F32, HONE_SHAPE(h), f);
}

hone_t hone_nn_sinusoid(hone_t t, int64_t dim)
{
    hone_type type = hone_type_of(t);
    hone_shape s = type.shape;
    if (!t.g || t.id < 0)
        return t;
    if (dim < 4 || dim % 2 || dim > 1 << 20)
        return nn_refuse(t.g, HONE_E_ARG, "a time embedding wants an even number of at least 4 elements; got %lld",
                         (long long)dim);
    if (s.rank == HONE_MAX_RANK)
        return nn_refuse(t.g, HONE_E_SHAPE, "a time of %d dimensions leaves none for its embedding", HONE_MAX_RANK);
    s.dim[s.rank++] = 1;
    if (type.dtype != HONE_F32)
        t = hone_cast(t, HONE_F32);
    hone_t phase = hone_mul(hone_reshape(t, s), frequencies(t.g, dim / 2));
    return hone_concat(2, (hone_t[]){hone_sin(phase), hone_cos(phase)}, s.rank - 1);
}

hone_t hone_nn_time(const hone_nn *nn, const char *name, hone_t t, int64_t dim, int64_t hidden, int activation)
{
    nn_open(nn, name);
    hone_t h = hone_nn_linear(nn, "linear0", hone_nn_sinusoid(t, dim), hidden, true);
    h = hone_nn_linear(nn, "linear1", hone_nn_activate(h, activation), dim, true);
    nn_close(nn, name);
    return h;
}
