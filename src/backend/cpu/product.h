/* What kernels of products share: a use of matmul sorted out, and the portable product of two matrices. */
#ifndef BACKEND_CPU_PRODUCT_H
#define BACKEND_CPU_PRODUCT_H

#include "op/op.h"

/* c = a b, or c += a b:  a [m,k], b [k,n], c [m,n]. Steps are in elements, from row to row and column to column. */
struct cpu_product {
    int64_t m, k, n;
    const float *a;
    int64_t a_row, a_col;
    const float *b;
    int64_t b_row, b_col;
    float *c;
    int64_t c_row, c_col;
    bool add;
};

/* On the calling thread. */
void cpu_product(const struct cpu_product *q);

/* A use of matmul or linear: `lead` matrices of [m,k] [k,n], their dimensions merged as far as both operands walk them
 * evenly, and taken into the rows where the second operand is one matrix. a[], b[]: steps of the operands in matrices,
 * 0 where one stands still. Not for results without elements. */
struct cpu_matmul {
    hone_shape lead;
    int64_t a[HONE_MAX_RANK], b[HONE_MAX_RANK];
    int64_t m, k, n;
    bool ta, tb; /* the operand is stored as its transpose */
};

struct cpu_matmul cpu_matmul_of(const struct op_call *c);
struct cpu_matmul cpu_linear_of(const struct op_call *c);

#endif
