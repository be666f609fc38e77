/* The places of adamw's operands and attributes. */
#ifndef OP_ADAMW_H
#define OP_ADAMW_H

#include "op/op.h"

enum { ADAMW_P, ADAMW_G, ADAMW_M, ADAMW_V, ADAMW_LR, ADAMW_STEP, ADAMW_SCALE, ADAMW_SKIP, ADAMW_OPERANDS };
enum { ADAMW_BETA1, ADAMW_BETA2, ADAMW_EPS, ADAMW_DECAY }; /* of attr.f */

#endif
