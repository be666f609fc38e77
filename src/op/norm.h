/* What the normalisations share. x is seen as [n, groups, channels, inner] and normalised over the last two, `row`
 * elements for one statistic:
 *
 *     rstd = 1 / sqrt(mean((x - mean)^2) + eps),   xhat = (x - mean) rstd,   y = xhat gamma + beta
 *
 * gamma and beta have one number a channel of each group. group_norm is this; layer_norm has one group, inner 1, and
 * the last dimension as channels; rms_norm is layer_norm with a mean of 0. The mean and rstd are results, so that a
 * gradient does not take them again. */
#ifndef OP_NORM_H
#define OP_NORM_H

#include "op/op.h"

enum { NORM_GROUPS }; /* attr.i of group_norm */
enum { NORM_EPS };    /* attr.f of all three */

/* Operands of the gradients; gamma may be missing in the last two. */
enum { NORM_DY, NORM_X };
enum { GROUP_GAMMA = 2, GROUP_MEAN, GROUP_RSTD };
enum { LAYER_MEAN = 2, LAYER_RSTD, LAYER_GAMMA };
enum { RMS_RSTD = 2, RMS_GAMMA };

struct op_norm {
    int64_t n, groups, channels, inner;
    bool centred; /* false: the mean is taken as 0 and is no operand or result */
};

/* x [N,C,...] in `groups` groups; x over its last dimension. x has the dimensions that this needs. */
struct op_norm op_norm_groups(const hone_shape *x, int64_t groups);
struct op_norm op_norm_last(const hone_shape *x, bool centred);
static inline int64_t op_norm_row(const struct op_norm *q)
{
    return q->channels * q->inner;
}
/* Refuses an eps that is not above zero. */
hone_status op_norm_check_eps(const struct op_call *c, hone_err *err);
/* The type of the statistics of a normalisation over the last dimension: that dimension is 1. */
hone_type op_norm_last_stat(const hone_type *x);
/* Flops an element. */
struct op_cost op_norm_cost(const struct op_call *c, double flops);

/* References. Nullable: gamma (ones), beta (zeros), mean (not centred). */
void op_norm_ref(const struct op_norm *q, double eps, const double *x, const double *gamma, const double *beta,
                 double *y, double *mean, double *rstd);
/* dgamma and dbeta are left alone where gamma is NULL. Nullable also: dbeta. */
void op_norm_ref_grad(const struct op_norm *q, const double *dy, const double *x, const double *gamma,
                      const double *mean, const double *rstd, double *dx, double *dgamma, double *dbeta);

/* Expansions, with HONE_NONE for what is left out. Statistics get `stat`, their shape as results. */
struct op_norm_values {
    hone_t x, gamma, beta, mean, rstd;
};
void op_norm_expand(const struct op_norm *q, double eps, const struct op_norm_values *v, const hone_shape *stat,
                    hone_t *y, hone_t *mean, hone_t *rstd);
/* dgamma and dbeta are empty where there is no gamma. Nullable: dbeta. */
void op_norm_expand_grad(const struct op_norm *q, hone_t dy, const struct op_norm_values *v, hone_t *dx, hone_t *dgamma,
                         hone_t *dbeta);
/* `batch` of layer_norm and rms_norm. */
void op_norm_batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out);
/* dx plus the gradient that reaches x through the statistics themselves; each of the three may be HONE_NONE. */
hone_t op_norm_add_stat_grad(const struct op_norm *q, const struct op_norm_values *v, hone_t dx, hone_t dmean,
                             hone_t drstd);

#endif
