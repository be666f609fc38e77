/* Denoisers in closed form, as graphs, for data that are known. */
#ifndef TEST_HEAD_EXACT_H
#define TEST_HEAD_EXACT_H

#include "graph/kit.h"
#include "hone/head.h"
#include "hone/ops.h"

/* What the mean of the target given x is, when the data are one Gaussian (mode 0) or two, at ± mode, equally likely;
 * elements are independent, each of standard deviation `spread` about a mode. Mean is added to all. */
struct exact {
    const hone_schedule *s; /* NULL: flow */
    const char *param;
    double mode, mean, spread;
};
hone_denoiser exact_denoiser(struct exact *e);

/* The same for one Gaussian in plain doubles: out = slope x + offset at a noise level. */
void exact_line(const struct exact *e, double alpha, double sigma, double *slope, double *offset);
/* Least mean squared error of x̂0 that there is at a noise level, for one Gaussian. */
double exact_least(const struct exact *e, double alpha, double sigma);

/* Compiles and runs the graph once, with seed 1 and the given run number; NULL and k->err on failure. Destroys g. */
hone_program *exact_run(struct kit *k, hone_graph *g, const void *const *in, uint64_t run);
const float *exact_out(const hone_program *p, const char *name);

#endif
