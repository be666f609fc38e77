/* The passes that make a graph faster without changing what it means, in their order. */
#include "graph/pass.h"

static hone_graph *next(hone_graph *made, hone_graph *better)
{
    hone_graph_destroy(made);
    return better;
}

hone_graph *pass_all(const hone_graph *from, bool (*takes)(void *user, const struct op_call *c), void *user, bool half,
                     hone_err *err)
{
    hone_graph *g = pass_share(from, err);
    for (int changed = 1; g && changed;) /* a split makes the next possible: f(concat), then linear(concat) */
        g = next(g, pass_split(g, &changed, err));
    if (g)
        g = next(g, pass_lift(g, err));
    if (g)
        g = next(g, pass_fuse(g, takes, user, half, err));
    if (g)
        g = next(g, pass_time(g, takes, user, err));
    if (g)
        g = next(g, pass_share(g, err));
    int remade;
    if (g)
        g = next(g, pass_remake(g, &remade, err));
    return g;
}
