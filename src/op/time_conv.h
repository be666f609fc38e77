/* The convolution family with time first: signal x [T,B,C], kernel w [K,C,O], result y [M,B,O]:
 *
 *     y[m,b,o] = sum over k, c of w[k,c,o] x[stride m + k - padding, b, c],   x zero outside
 *
 * For one tap that is a matrix product of rows that lie one after the other: nothing is copied and nothing is padded.
 * Made by a pass out of the family of op/conv.h, after differentiation. */
#ifndef OP_TIME_CONV_H
#define OP_TIME_CONV_H

#include "op/conv.h"

/* Attributes: EXTENT is T of time_conv_data, K of time_conv_weight, as in op/conv.h. */
enum { TC_STRIDE, TC_PADDING, TC_EXTENT };

/* Those of the same use in op/conv.h. */
static inline void op_time_conv_attr(const int64_t *a, int64_t *conv)
{
    conv[CONV_STRIDE] = a[TC_STRIDE];
    conv[CONV_PADDING] = a[TC_PADDING];
    conv[CONV_DILATION] = 1;
    conv[CONV_EXTENT] = a[TC_EXTENT];
}

/* Refuses operands that are not f32 of rank 3, attributes out of range. */
hone_status op_time_conv_check(const struct op_call *c, hone_err *err);
/* [T,B,C] -> [B,C,T], and back. */
hone_t op_time_last(hone_t x);
hone_t op_time_first(hone_t x);

#endif
