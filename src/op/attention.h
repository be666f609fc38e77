/* What attention and its gradient share. A row of weights whose mask lets nothing through is zero, and so are its
 * result and its gradients. */
#ifndef OP_ATTENTION_H
#define OP_ATTENTION_H

#include "op/op.h"

enum { ATTENTION_SCALE }; /* attr.f of both */

struct op_attention {
    int64_t batch, heads, sq, sk, d;
    int64_t mask[4]; /* strides over [batch, heads, sq, sk]; 0 where the mask is stretched */
};
/* q and k are operands `first` and first + 1; the mask, if there is one, is operand first + 3. */
struct op_attention op_attention_dims(const struct op_call *c, int first);
hone_status op_attention_check(const struct op_call *c, int first, hone_err *err);
/* One row of weights for the references: weight j is exp(score j - largest) / sum, and 0 where the mask says no. */
struct op_attention_row {
    const struct op_attention *a;
    const double *q, *k, *mask; /* of this row; nullable: mask */
    double scale, largest, sum;
};
struct op_attention_row op_attention_ref_row(const struct op_attention *a, double scale, const double *q,
                                             const double *k, const double *mask, int64_t row);
double op_attention_ref_weight(const struct op_attention_row *r, int64_t j);
/* Expansion: the weights [B,H,Sq,Sk]. Nullable: mask (HONE_NONE). */
hone_t op_attention_weights(hone_t q, hone_t k, hone_t mask, double scale);
/* `products` of 2 Sq Sk D flops a head. */
struct op_cost op_attention_cost(const struct op_call *c, int first, double products);

#endif
