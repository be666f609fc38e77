/* The inside of a graph: nodes in the order of their making (so operands come first), values, names. */
#ifndef GRAPH_IR_H
#define GRAPH_IR_H

#include "base/ctx.h"
#include "base/err.h"
#include "op/op.h"
#include "op/source.h"

struct ir_node {
    const struct op_def *def;
    struct op_attr attr;
    const void *data; /* of a constant; in the graph's arena */
    size_t bytes;
    int32_t *in;  /* value ids */
    int32_t out0; /* results are out0 .. out0 + n_out - 1 */
    int16_t n_in, n_out;
    int32_t scope; /* index of the path of the layer that made it */
    int32_t loop;  /* > 0: made inside the body of that chain */
};

struct ir_value {
    hone_type type;
    int32_t node, out;
};

struct ir_name { /* an input or an output */
    const char *name;
    int32_t value;
};

struct ir_scope { /* the path of a layer */
    const char *path;
    int32_t outer;
};

struct ir_role {
    const char *name;
    hone_layout *layout;
};

struct hone_graph {
    hone_ctx *ctx;
    struct arena arena;
    hone_err err; /* the first error of building */
    struct ir_node *nodes;
    struct ir_value *values;
    struct ir_name *inputs, *outputs;
    struct ir_role *roles;
    struct ir_scope *scopes; /* every path that was ever open; [0] is "" */
    int n_nodes, cap_nodes, n_values, cap_values, n_inputs, cap_inputs, n_outputs, cap_outputs, n_roles, cap_roles,
        n_scopes, cap_scopes;
    int32_t scope; /* the open one */
    int32_t loop;  /* the open chain; 0: none */
    int32_t n_loops;
};

/* The call that a node is, with its types; arrays live in the caller's `in`, `out`. */
struct op_call ir_call(const hone_graph *g, const struct ir_node *n, hone_type *in, hone_type *out);
/* Room for one more element of a growing array; false and g->err when there is no memory. */
bool ir_room(hone_graph *g, void *array_ptr, int n, int *cap, size_t size);
/* Finds or adds; -1 on error. */
int ir_role(hone_graph *g, const char *name, hone_layout *l);
/* Whether this program writes role `role`, or another of its layout: a program that makes gradients of parameters is
 * run with other parameters each time. */
bool ir_role_changes(const hone_graph *g, int64_t role);
/* Checks every rule that building should have kept; used after each pass. */
hone_status ir_verify(const hone_graph *g, hone_err *err);

/* Evaluates the whole graph in double with the references of the operations, for tests and tools. `given(user, node)`
 * returns the values of a source (input, random, slot) or NULL; the result has one array a value, freed with
 * ir_reference_free. Chains must be unrolled. Nullable: given when there are no such sources. */
double **ir_reference(const hone_graph *g, const double *(*given)(void *user, const struct ir_node *n), void *user,
                      hone_err *err);
void ir_reference_free(const hone_graph *g, double **values);
/* n values of type t as doubles. */
void ir_widen(hone_dtype t, const void *src, double *dst, int64_t n);

/* A copy of the live part of `from` in which uses that `keep` refuses are replaced by their expansions; repeated until
 * all are kept. Owns: the result. */
hone_graph *ir_lower(const hone_graph *from, bool (*keep)(void *user, const struct op_call *c), void *user,
                     hone_err *err);

#endif
