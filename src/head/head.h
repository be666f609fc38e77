/* What the files of the room share. */
#ifndef HEAD_HEAD_H
#define HEAD_HEAD_H

#include "hone/head.h"

/* The graph's first error, naming the open layer; returns poison. */
hone_t head_refuse(hone_graph *g, hone_status code, const char *fmt, ...) HONE_PRINTF(3, 4);
/* Has a value, and building has not failed. */
bool head_has(hone_t x);
/* f32 of exactly this shape; if not, the graph's error names `what` and both shapes. */
bool head_is(hone_t x, hone_dtype dtype, hone_shape shape, const char *what);
/* The result of a denoiser, which must be f32 of shape `want`; x and t are looked at first. */
hone_t head_ask(hone_denoiser d, hone_t x, hone_t t, hone_t cond, hone_shape want, const char *what);
/* n numbers as a constant f32 [n], n at most HONE_SCHED_MAX_STEPS. */
hone_t head_table(hone_graph *g, const double *values, int n);
bool head_all(const double *values, int n, double value);

/* --- two heads --- */

/* By timestep, K of them; clean is the share of the clean head, noise what is left of 1. 32 KB. */
struct head_two_arrays {
    double alpha[HONE_SCHED_MAX_STEPS], sigma[HONE_SCHED_MAX_STEPS];
    double clean[HONE_SCHED_MAX_STEPS], noise[HONE_SCHED_MAX_STEPS];
};
struct head_two {
    hone_t both, noise, clean; /* [B,T,2A], and its halves */
};
/* Whether h can be used; else the graph's error says why not. */
bool head_two_ready(hone_graph *g, const hone_two_head *h);
void head_two_arrays(const hone_two_head *h, struct head_two_arrays *a);
bool head_two_split(hone_denoiser d, hone_t x, hone_t t, hone_t cond, struct head_two *out);
/* x̂0 of both heads for x at the timesteps `index`, i32 [B] or one. */
hone_t head_two_combine(const hone_two_head *h, const struct head_two_arrays *a, hone_t x, hone_t index,
                        const struct head_two *two);

#endif
