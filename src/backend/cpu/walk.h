/* Walks elementwise operands that broadcast: the longest run of trailing dimensions that every operand walks evenly
 * (step by step, or standing still) is the inner loop, the rows of it are shared by the threads. */
#ifndef BACKEND_CPU_WALK_H
#define BACKEND_CPU_WALK_H

#include "backend/cpu/cpu.h"

enum { WALK_MAX = 3 }; /* operands */

/* One run of n elements: operand i begins at element at[i] and goes on by step[i], 0 or 1; the result at `to`, by 1. */
struct walk_run {
    int64_t n, to;
    int64_t at[WALK_MAX], step[WALK_MAX];
};

/* Calls `run` for all runs of result 0. What it does must depend on the elements alone: how they are divided depends on
 * the number of threads. */
void walk(const struct bk_io *io, void (*run)(const struct bk_io *io, const struct walk_run *r));

#endif
