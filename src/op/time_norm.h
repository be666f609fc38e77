/* What time_norm and its gradient share. x is [T, B, C], time first; each group of C / G channels of each sample has
 * one mean and one deviation, over all of time. */
#ifndef OP_TIME_NORM_H
#define OP_TIME_NORM_H

#include "op/conv_block.h"
#include "op/norm.h"
#include "op/time_conv.h"

/* Attributes: attr.i; eps is attr.f[NORM_EPS], of time_norm alone. Activations are the CB_ numbers of conv_block. */
enum { TN_GROUPS, TN_ACT };
/* Operands. */
enum { TN_X, TN_GAMMA, TN_BETA };
enum { TNG_DY, TNG_X, TNG_GAMMA, TNG_BETA, TNG_MEAN, TNG_RSTD };

/* Refuses what x, gamma, beta (operand `first` and the two behind it) and the attributes of both have in common. */
hone_status op_time_norm_check(const struct op_call *c, int first, hone_err *err);

#endif
