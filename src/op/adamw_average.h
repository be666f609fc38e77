/* The places of adamw_average's operands. Before the average and from LR on they are those of adamw, two further on;
 * scale and skip may be left out as there. Attributes are adamw's. */
#ifndef OP_ADAMW_AVERAGE_H
#define OP_ADAMW_AVERAGE_H

#include "op/adamw.h"

enum { ADAMW_AVERAGE = ADAMW_LR, ADAMW_AVERAGE_DECAY, ADAMW_AVERAGE_OPERANDS = ADAMW_OPERANDS + 2 };
enum { ADAMW_AVERAGE_SHIFT = 2 };

/* operand: see above, all ten. out: p, m, v, average, and zeros for the gradient. */
void op_emit_adamw_average(const hone_t *operand, const double *attr, hone_t *out);

#endif
