/* Attributes of conv_block, and the activations that it knows. */
#ifndef OP_CONV_BLOCK_H
#define OP_CONV_BLOCK_H

enum { CB_STRIDE, CB_PAD, CB_OUT, CB_GROUPS, CB_ACT, CB_FILM, CB_RESIDUAL };
enum { CB_IDENTITY, CB_MISH, CB_SILU, CB_RELU, CB_GELU_TANH };
/* Of conv_pack: weights are kept as bfloat16, half the bytes to read. */
enum { CP_HALF };

/* Output channels of one block of packed weights: one vector of the widest unit. */
enum { CB_LANES = 16 };

#endif
