/* hone/random.h: random numbers that are a function, not a sequence.
 *
 * Every number is named by (seed, stream, run, element) and by the kind of number asked for. The same name gives the
 * same bits on every CPU, with every compiler and any number of threads, whether a fill is made whole or in pieces, and
 * in whatever order. So nothing has to be saved to resume a run but the counters that the caller has anyway.
 *
 *   seed     what the user chose
 *   stream   what the numbers are for: hone_stream("sampler/noise")
 *   run      how often this purpose came up before: iteration, epoch, episode
 *   element  the place in the buffer; it wraps after 2^64
 *
 * Different names give independent numbers, and so do different kinds (words, uniforms, normals, indices) of one name.
 *
 * Generator: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Its
 * key is made from seed, stream and kind, its counter is run and element. It is not meant for secrets.
 *
 * All functions here are pure (or write only to what they are handed): any number of threads may call them. Nothing
 * can fail. `out` may be NULL where n is 0. */
#ifndef HONE_RANDOM_H
#define HONE_RANDOM_H

#include "hone/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The stream of a name: FNV-1a of its bytes. Nullable: name (then as ""). */
HONE_API uint64_t hone_stream(const char *name);
/* The index-th of the streams below `stream`: one for each environment, layer or worker. Indices of one stream never
 * share a result. */
HONE_API uint64_t hone_stream_at(uint64_t stream, uint64_t index);

/* Each fills out[i] with the element first + i, for i in [0, n). */

/* Words of 32 random bits. */
HONE_API void hone_fill_u32(uint32_t *out, size_t n, uint64_t seed, uint64_t stream, uint64_t run, uint64_t first);
/* Uniform on [0, 1): the multiples of 2^-24. */
HONE_API void hone_fill_uniform(float *out, size_t n, uint64_t seed, uint64_t stream, uint64_t run, uint64_t first);
/* Standard normal. Each is the inverse distribution function (Wichura: algorithm AS 241, Applied Statistics 37, 1988)
 * at one of the 2^32 points (k + 1/2) / 2^32, computed in double and rounded to float: symmetric about 0, and never
 * further out than 6.34. */
HONE_API void hone_fill_normal(float *out, size_t n, uint64_t seed, uint64_t stream, uint64_t run, uint64_t first);
/* Integers in [0, bound); zeros if bound is less than 1. The probability of a value is off 1 / bound by less than
 * 2^-64. */
HONE_API void hone_fill_below(int32_t *out, size_t n, int32_t bound, uint64_t seed, uint64_t stream, uint64_t run,
                              uint64_t first);
/* A permutation of 0 .. n-1 (Fisher-Yates), a function of n and the name alone: an epoch of shuffled minibatches is
 * told by its number, `run`. Does nothing if n is less than 1. */
HONE_API void hone_fill_permutation(int32_t *out, int32_t n, uint64_t seed, uint64_t stream, uint64_t run);

/* One number after the other, for environments, tools and tests. The four values are all the state there is: copy,
 * save and set them freely. Each draw takes the element `next` and adds one to it. A thread needs one of its own. */
typedef struct hone_rng {
    uint64_t seed, stream, run, next;
} hone_rng;

HONE_API uint32_t hone_rng_u32(hone_rng *r);
HONE_API float hone_rng_uniform(hone_rng *r);                      /* as hone_fill_uniform */
HONE_API float hone_rng_normal(hone_rng *r);                       /* as hone_fill_normal */
HONE_API int32_t hone_rng_below(hone_rng *r, int32_t bound);       /* as hone_fill_below */
HONE_API double hone_rng_range(hone_rng *r, double lo, double hi); /* uniform on [lo, hi], in 2^53 steps */

#ifdef __cplusplus
}
#endif
#endif
