/* What the reductions over axes share; their attributes are `axes` (bits) and `keep`. */
#ifndef OP_REDUCE_H
#define OP_REDUCE_H

#include "op/op.h"

enum { REDUCE_AXES, REDUCE_KEEP };

/* The shape rule; `some`: a dimension of 0 cannot be reduced. */
hone_status op_shape_reduce(const struct op_call *c, bool some, hone_type *out, hone_err *err);
/* Elements that one result is made of. */
int64_t op_reduce_count(const struct op_call *c);
/* fn(user, i, k) for each operand element i and the result k that it goes to. */
void op_reduce_walk(const struct op_call *c, void (*fn)(void *user, int64_t from, int64_t to), void *user);
/* A result-shaped value stretched to the operand's shape. */
hone_t op_reduce_stretch(const struct op_use *u, hone_t y);
/* The axes of the same reduction behind a new leading dimension. */
unsigned op_reduce_batch_axes(const struct op_call *c);
/* One flop an operand element; each is read once. */
struct op_cost op_reduce_cost(const struct op_call *c);

#endif
