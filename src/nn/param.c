/* Parameters, scopes of layers, and what layers check before they build. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/ir.h"
#include "nn/nn.h"

#define PATH_MAX_BYTES 512 /* a scope's path is cut there: two that were cut might be one */

hone_t nn_refuse(hone_graph *g, hone_status code, const char *fmt, ...)
{
    char text[sizeof g->err.text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    err_set(&g->err, code, hone_scope(g), "%s", text);
    return (hone_t){g, -1};
}

hone_t hone_nn_param(const hone_nn *nn, const char *name, hone_shape shape, int group, hone_init init)
{
    hone_graph *g = nn->g;
    const char *scope = hone_scope(g);
    char path[PATH_MAX_BYTES + 64];
    if (hone_graph_status(g, NULL) != HONE_OK)
        return (hone_t){g, -1};
    int n = snprintf(path, sizeof path, "%s%s%s", scope, *scope ? "/" : "", name);
    if (n < 0 || (size_t)n >= sizeof path || strlen(scope) >= PATH_MAX_BYTES - 1)
        return nn_refuse(g, HONE_E_ARG, "the name of parameter \"%.60s\" is too long", name);
    int i = hone_layout_add(nn->layout, path, shape, nn->frozen ? HONE_GROUP_FROZEN : group, init, &g->err);
    return i < 0 ? (hone_t){g, -1} : hone_read(g, nn->role ? nn->role : "param", nn->layout, i);
}

void nn_open(const hone_nn *nn, const char *name)
{
    if (name)
        hone_scope_push(nn->g, "%s", name);
}

void nn_close(const hone_nn *nn, const char *name)
{
    if (name)
        hone_scope_pop(nn->g);
}

bool nn_rank(const hone_nn *nn, hone_t x, int rank, const char *what)
{
    char got[96];
    hone_type t = hone_type_of(x);
    if (t.shape.rank >= rank)
        return true;
    if (!x.g)
        nn_refuse(nn->g, HONE_E_ARG, "wants %s; got nothing", what);
    else if (x.id >= 0)
        nn_refuse(nn->g, HONE_E_SHAPE, "wants %s; got %s%s", what, hone_dtype_name(t.dtype),
                  hone_shape_text(&t.shape, got, sizeof got));
    return false;
}

int64_t nn_dim(hone_t x, int i)
{
    hone_shape s = hone_type_of(x).shape;
    if (i < 0)
        i += s.rank;
    return i >= 0 && i < s.rank ? s.dim[i] : 0;
}

static hone_init uniform(int64_t fan_in)
{
    return (hone_init){HONE_INIT_UNIFORM, fan_in > 0 ? (float)(1 / sqrt((double)fan_in)) : 0};
}

hone_t nn_weight(const hone_nn *nn, hone_shape shape, int64_t fan_in)
{
    return hone_nn_param(nn, "weight", shape, HONE_GROUP_DECAY, uniform(fan_in));
}

hone_t nn_bias(const hone_nn *nn, int64_t n, int64_t fan_in, bool wanted)
{
    return wanted ? hone_nn_param(nn, "bias", HONE_SHAPE(n), HONE_GROUP_PLAIN, uniform(fan_in)) : HONE_NONE;
}
