/* Gradients of everything that a graph has read, added into a store. */
#include <string.h>

#include "graph/ir.h"
#include "graph/store.h"
#include "nn/nn.h"

/* The tensor that node i reads for training; -1: none. */
static int trained(const hone_nn *nn, const struct ir_node *n, const char *role)
{
    if (n->def != &op_slot || n->attr.i[SLOT_TENSOR] < 0)
        return -1;
    const struct ir_role *r = &nn->g->roles[n->attr.i[SLOT_ROLE]];
    const int tensor = (int)n->attr.i[SLOT_TENSOR];
    if (r->layout != nn->layout || strcmp(r->name, role) != 0)
        return -1;
    return layout_tensor(nn->layout, tensor).at < layout_group(nn->layout, HONE_GROUP_FROZEN).at ? tensor : -1;
}

void hone_nn_gradients(const hone_nn *nn, hone_t loss, const char *role)
{
    hone_graph *g = nn->g;
    struct mem *m = &g->ctx->mem;
    const size_t room = (size_t)hone_layout_count(nn->layout) + 1;
    if (hone_graph_status(g, NULL) != HONE_OK)
        return;
    hone_t *x = mem_array(m, room, sizeof *x), *dx = mem_array(m, room, sizeof *dx);
    int *tensor = mem_array(m, room, sizeof *tensor), n = 0;
    if (x && dx && tensor) {
        for (int i = 0; i < g->n_nodes; i++) {
            int t = trained(nn, &g->nodes[i], nn->role ? nn->role : "param");
            if (t < 0)
                continue;
            tensor[n] = t;
            x[n++] = (hone_t){g, g->nodes[i].out0};
        }
        hone_gradients(loss, x, n, dx);
        for (int i = 0; i < n; i++)
            hone_accumulate(dx[i], role ? role : "grad", nn->layout, tensor[i]);
    } else {
        nn_refuse(g, HONE_E_NOMEM, "no memory for a list of parameters");
    }
    mem_free(m, x);
    mem_free(m, dx);
    mem_free(m, tensor);
}
