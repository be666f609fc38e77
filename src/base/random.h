/* The two functions under hone/random.h, by themselves. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include "hone/random.h"

/* Philox4x32-10: one block of four words. */
void random_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);

/* The normal quantile of (u + 1/2) / 2^32, before it is rounded to float. */
double random_quantile(uint32_t u);

#endif
