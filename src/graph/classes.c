/* How often a value has to be made anew: the question behind the prepare segment, hoisting and lifting. */
#include "graph/pass.h"

void pass_classes(const hone_graph *g, uint8_t *cls)
{
    for (int i = 0; i < g->n_nodes; i++) {
        const struct ir_node *n = &g->nodes[i];
        uint8_t c = CLASS_FIXED;
        if (n->def == &op_input || n->def == &op_random)
            c = CLASS_RUN;
        if (n->def == &op_slot && ir_role_changes(g, n->attr.i[SLOT_ROLE]))
            c = CLASS_RUN;
        for (int k = 0; k < n->n_in; k++)
            if (cls[n->in[k]] > c)
                c = cls[n->in[k]];
        if (n->def == &op_loop_row && c < CLASS_STEP)
            c = CLASS_STEP;
        if (n->def == &op_loop_state)
            c = CLASS_STATE;
        if (n->def == &op_loop_out)
            c = CLASS_RUN;
        for (int k = 0; k < n->n_out; k++)
            cls[n->out0 + k] = c;
    }
}
