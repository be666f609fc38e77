/* What softmax and log_softmax share: x seen as [outer, axis, inner]. */
#ifndef OP_SOFTMAX_H
#define OP_SOFTMAX_H

#include "op/op.h"

enum { SOFTMAX_AXIS }; /* attr.i of all of them */

struct op_axis {
    int64_t outer, n, inner;
};
struct op_axis op_softmax_axis(const struct op_call *c);
/* One type of f32 for all operands and the result, with the axis. */
hone_status op_softmax_shape(const struct op_call *c, hone_type *out, hone_err *err);
/* x less its largest element along the axis, which no gradient passes: softmax is the same whatever is taken off. */
hone_t op_softmax_shift(hone_t x, int axis);
void op_softmax_batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out);
struct op_cost op_softmax_cost(const struct op_call *c);

#endif
