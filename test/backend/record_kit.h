/* What the suites of the device "record" share. */
#ifndef TEST_BACKEND_RECORD_KIT_H
#define TEST_BACKEND_RECORD_KIT_H

#include "check.h"
#include "graph/kit.h"

/* kit_open with any device. */
void record_kit_open(struct kit *k, const hone_ctx_options *o, const char *device);

/* Reads a transcript as strictly as an Ascend device would: every operator has the arguments of its prototype in their
 * order and is queried, then launched; every tensor is dense, or an operand of a product of matrices with its last two
 * dimensions swapped; storage is aligned and holds the view; only convolutions get NCL; no type that the device lacks.
 * Returns the number of operators. */
int record_check(struct check *c, const char *transcript);

#endif
