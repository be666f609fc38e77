/* Builds one use of an operation from a test case, draws its operands, and evaluates graphs in double. */
#ifndef TEST_OP_HARNESS_H
#define TEST_OP_HARNESS_H

#include "graph/ir.h"

#define HARNESS_SEED 20240607u

struct harness {
    hone_ctx *ctx;
    hone_device *cpu;
    const struct op_def *def;
    const struct op_case *k;
    double *in[OP_CASE_IN]; /* operand values; f32 operands hold values exact in f32 */
    int64_t n[OP_CASE_IN];
};

struct harness_graph {
    hone_graph *g;
    hone_t in[OP_CASE_IN], out[OP_MAX_OUT];
};

void harness_draw(struct harness *h);
/* n numbers as elements of type t. */
void harness_fill(hone_dtype t, const double *x, void *dst, int64_t n);
void harness_drop(struct harness *h);
/* The use alone, operands as inputs "x0".., results as outputs "y0"... */
struct harness_graph harness_build(struct harness *h, hone_err *err);
/* sum_k sum_i w_ki y_ki over the f32 values `x`, w drawn; HONE_NONE if none is f32. */
hone_t harness_project(hone_graph *g, const hone_t *x, int n, const char *salt);
/* All values of the graph in double for the operands of h. */
double **harness_eval(struct harness *h, const hone_graph *g, hone_err *err);

#endif
