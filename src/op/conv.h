/* What the operations of the convolution family share. With signal x [N,C,L], kernel w [O,C,K], result y [N,O,M]:
 *
 *     y[n,o,m] = sum over c, k of w[o,c,k] x[n,c, stride m + dilation k - padding],   x zero outside
 *     M = floor((L + 2 padding - dilation (K - 1) - 1) / stride) + 1
 *
 * y is linear in x and in w; conv1d_data_grad and conv1d_weight_grad are the transposes of the two maps, and the
 * gradients of all three are made of the three. */
#ifndef OP_CONV_H
#define OP_CONV_H

#include "op/op.h"

/* Attributes of the three. EXTENT is what a transpose cannot tell from its operands: L of conv1d_data_grad, K of
 * conv1d_weight_grad; conv1d leaves it 0. conv_transpose1d has its output padding there. */
enum { CONV_STRIDE, CONV_PADDING, CONV_DILATION, CONV_EXTENT };

/* M, or -1 where the dilated kernel is longer than the padded signal. */
int64_t op_conv_length(const int64_t *attr, int64_t l, int64_t k);
/* Refuses attributes out of range. */
hone_status op_conv_check(const struct op_call *c, hone_err *err);
/* Pairs of a result and a tap that meet the signal of l elements, not its padding (dilation 1). Operations that leave
 * padding out count their products by these; the others by all. */
int64_t op_conv_pairs(int64_t m, int64_t taps, int64_t l, int64_t stride, int64_t padding);
struct op_cost op_conv_cost(const struct op_call *c, int64_t products);

/* The three; `attr` is taken from the use that is differentiated or expanded, EXTENT from l and k. */
hone_t op_emit_conv1d(hone_t x, hone_t w, const int64_t *attr);
hone_t op_emit_conv1d_data_grad(hone_t dy, hone_t w, const int64_t *attr, int64_t l);
hone_t op_emit_conv1d_weight_grad(hone_t x, hone_t dy, const int64_t *attr, int64_t k);

/* Parts of expansions. The padded signal, cut into rows of `stride` elements, is [N,C,Q,stride]: what one tap k reads
 * then is a range of one column. Taps are gathered from it and, transposed, scattered into it. */
hone_t op_conv_rows(hone_t x, const int64_t *attr);                               /* [N,C,L] -> [N,C,Q,stride] */
hone_t op_conv_unrows(hone_t rows, const int64_t *attr, int64_t l);               /* its transpose */
hone_t op_conv_gather(hone_t rows, const int64_t *attr, int64_t k, int64_t m);    /* tap k, [N,C,M] */
hone_t op_conv_scatter(hone_t tap, const int64_t *attr, int64_t k, int64_t rows); /* its transpose */
int64_t op_conv_row_count(const int64_t *attr, int64_t l);                        /* Q */
hone_t op_conv_tap(hone_t w, int64_t k);                                          /* w[:,:,k], [O,C] */

#endif
