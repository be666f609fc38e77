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
/* n numbers as a constant f32 [n], n at most HONE_SCHED_MAX_STEPS. */
hone_t head_table(hone_graph *g, const double *values, int n);
bool head_all(const double *values, int n, double value);

#endif
