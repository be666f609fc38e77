/* Chains of real networks against PyTorch; part of suite head_chain. */
#ifndef TEST_HEAD_GOLDEN_CHAIN_H
#define TEST_HEAD_GOLDEN_CHAIN_H

#include "check.h"

void golden_chains(struct check *c);

#endif
