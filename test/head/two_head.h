/* Two heads: shares, estimate, objective, networks; part of suite head. */
#ifndef TEST_HEAD_TWO_HEAD_H
#define TEST_HEAD_TWO_HEAD_H

#include "graph/kit.h"

void two_heads(struct check *c, struct kit *k);

#endif
