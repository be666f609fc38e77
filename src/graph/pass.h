/* Passes: copies of the live part of a graph in which some operations are made differently. Lowering, folding, fusion
 * and layout are passes; each result is verified. */
#ifndef GRAPH_PASS_H
#define GRAPH_PASS_H

#include "graph/ir.h"

struct pass {
    const hone_graph *from;
    hone_graph *to;
    int32_t *map;  /* value of `from` -> value of `to`; -1: not made (yet) */
    int32_t *uses; /* of each value of `from`: how many live operands and outputs read it */
    bool *live;    /* nodes of `from` */
    void *user;
    int changed; /* a pass counts what it did here */
    /* Makes `n` in `to` and sets the map of its results (pass_copy does the plain thing). Scope and chain of `to` are
     * those of `n`. */
    void (*node)(struct pass *p, const struct ir_node *n);
    /* Nullable: before the first node, after the last. */
    void (*begin)(struct pass *p);
    void (*end)(struct pass *p);
};

/* Runs it: the new graph, or NULL. Owns: the result. */
hone_graph *pass_run(struct pass *p, const hone_graph *from, hone_err *err);
/* Operand k of n, in `to`. */
hone_t pass_in(const struct pass *p, const struct ir_node *n, int k);
/* The same operation on the mapped operands. */
void pass_copy(struct pass *p, const struct ir_node *n);
/* Result k of n is `x`, which must have its type. */
void pass_set(struct pass *p, const struct ir_node *n, int k, hone_t x);
/* The live node that makes value v of `from`. */
const struct ir_node *pass_maker(const struct pass *p, int32_t v);

/* How often a value has to be made anew. */
enum {
    CLASS_FIXED, /* once a version of the parameters */
    CLASS_RUN,   /* once a run */
    CLASS_STEP,  /* in each step of a chain, but not from its state */
    CLASS_STATE  /* from the state of a chain */
};
void pass_classes(const hone_graph *g, uint8_t *cls); /* of each value */

/* --- the passes, in the order in which pass_all runs them --- */

hone_graph *pass_split(const hone_graph *from, int *changed, hone_err *err);
hone_graph *pass_lift(const hone_graph *from, hone_err *err);
/* Equal uses of an operation on equal operands become one. */
hone_graph *pass_share(const hone_graph *from, hone_err *err);

/* Convolutions and dense layers of a decision with what follows them, where the device takes such a block. `half`:
 * their weights are kept as bf16. */
hone_graph *pass_fuse(const hone_graph *from, bool (*takes)(void *user, const struct op_call *c), void *user, bool half,
                      hone_err *err);

/* Signals of larger batches with time first, where the device takes convolutions so. */
hone_graph *pass_time(const hone_graph *from, bool (*takes)(void *user, const struct op_call *c), void *user,
                      hone_err *err);

/* What is cheap and idle is made again where it is read, instead of being kept. The last of the passes: share would
 * undo it. */
hone_graph *pass_remake(const hone_graph *from, int *changed, hone_err *err);

/* All of them. `takes`: has the device a kernel for this use? Owns: the result. */
hone_graph *pass_all(const hone_graph *from, bool (*takes)(void *user, const struct op_call *c), void *user, bool half,
                     hone_err *err);

#endif
