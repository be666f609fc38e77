/* What the normalisations share: see norm.h. */
#include "op/norm.h"

#include <float.h>
#include <math.h>

struct op_norm op_norm_groups(const hone_shape *x, int64_t groups)
{
    struct op_norm q = {x->dim[0], groups, x->dim[1] / groups, 1, true};
    for (int i = 2; i < x->rank; i++)
        q.inner *= x->dim[i];
    return q;
}

struct op_norm op_norm_last(const hone_shape *x, bool centred)
{
    struct op_norm q = {1, 1, x->dim[x->rank - 1], 1, centred};
    for (int i = 0; i < x->rank - 1; i++)
        q.n *= x->dim[i];
    return q;
}

hone_status op_norm_check_eps(const struct op_call *c, hone_err *err)
{
    double eps = c->attr.f[NORM_EPS];
    if (!(eps >= FLT_MIN && eps <= FLT_MAX))
        return op_refuse(c, err, "eps must be above zero, so that equal elements have a deviation");
    return HONE_OK;
}

hone_type op_norm_last_stat(const hone_type *x)
{
    hone_type t = *x;
    t.shape.dim[t.shape.rank - 1] = 1;
    return t;
}

struct op_cost op_norm_cost(const struct op_call *c, double flops)
{
    struct op_cost k = {flops * (double)op_numel(&c->in[0]), 0};
    for (int i = 0; i < c->n_in; i++)
        k.bytes += 4 * (double)op_numel(&c->in[i]);
    for (int i = 0; i < c->n_out; i++)
        k.bytes += 4 * (double)op_numel(&c->out[i]);
    return k;
}

/* --- references --- */

void op_norm_ref(const struct op_norm *q, double eps, const double *x, const double *gamma, const double *beta,
                 double *y, double *mean, double *rstd)
{
    const int64_t row = op_norm_row(q);
    for (int64_t r = 0; r < q->n * q->groups; r++) {
        double m = 0, square = 0;
        for (int64_t i = 0; q->centred && i < row; i++)
            m += x[r * row + i] / (double)row;
        for (int64_t i = 0; i < row; i++)
            square += (x[r * row + i] - m) * (x[r * row + i] - m) / (double)row;
        const double s = 1 / sqrt(square + eps);
        for (int64_t i = 0; i < row; i++) {
            int64_t c = r % q->groups * q->channels + i / q->inner;
            y[r * row + i] = (x[r * row + i] - m) * s * (gamma ? gamma[c] : 1) + (beta ? beta[c] : 0);
        }
        if (mean)
            mean[r] = m;
        rstd[r] = s;
    }
}

void op_norm_ref_grad(const struct op_norm *q, const double *dy, const double *x, const double *gamma,
                      const double *mean, const double *rstd, double *dx, double *dgamma, double *dbeta)
{
    const int64_t row = op_norm_row(q);
    for (int64_t c = 0; gamma && c < q->groups * q->channels; c++) {
        dgamma[c] = 0;
        if (dbeta)
            dbeta[c] = 0;
    }
    for (int64_t r = 0; r < q->n * q->groups; r++) {
        const double m = mean ? mean[r] : 0, s = rstd[r];
        double g_mean = 0, gx_mean = 0;
        for (int64_t i = 0, at = r * row; i < row; i++, at++) {
            int64_t c = r % q->groups * q->channels + i / q->inner;
            double xhat = (x[at] - m) * s, g = dy[at] * (gamma ? gamma[c] : 1);
            g_mean += q->centred ? g / (double)row : 0;
            gx_mean += g * xhat / (double)row;
            if (gamma)
                dgamma[c] += dy[at] * xhat;
            if (gamma && dbeta)
                dbeta[c] += dy[at];
        }
        for (int64_t i = 0, at = r * row; i < row; i++, at++) {
            int64_t c = r % q->groups * q->channels + i / q->inner;
            dx[at] = s * (dy[at] * (gamma ? gamma[c] : 1) - g_mean - (x[at] - m) * s * gx_mean);
        }
    }
}

/* --- expansions --- */

enum { ROW = HONE_AXIS(2) | HONE_AXIS(3), BATCH = HONE_AXIS(0) | HONE_AXIS(3) };

static hone_t as_rows(const struct op_norm *q, hone_t x)
{
    return hone_reshape(x, HONE_SHAPE(q->n, q->groups, q->channels, q->inner));
}

static hone_t as_stat(const struct op_norm *q, hone_t x)
{
    return hone_reshape(x, HONE_SHAPE(q->n, q->groups, 1, 1));
}

static hone_t as_channels(const struct op_norm *q, hone_t x)
{
    return hone_reshape(x, HONE_SHAPE(1, q->groups, q->channels, 1));
}

/* 0 over nothing, as in the references. */
static double share(const struct op_norm *q)
{
    int64_t row = op_norm_row(q);
    return row ? 1 / (double)row : 0;
}

void op_norm_expand(const struct op_norm *q, double eps, const struct op_norm_values *v, const hone_shape *stat,
                    hone_t *y, hone_t *mean, hone_t *rstd)
{
    hone_t d = as_rows(q, v->x);
    if (q->centred) {
        hone_t m = hone_affine(hone_sum(d, ROW, true), share(q), 0);
        d = hone_sub(d, m);
        /* m is rounded; what that left in d is taken off too, for values far from zero */
        d = hone_sub(d, hone_affine(hone_sum(d, ROW, true), share(q), 0));
        *mean = hone_reshape(m, *stat);
    }
    hone_t s = hone_rsqrt(hone_affine(hone_sum(hone_mul(d, d), ROW, true), share(q), eps));
    hone_t out = hone_mul(d, s);
    if (op_has(v->gamma))
        out = hone_mul(out, as_channels(q, v->gamma));
    if (op_has(v->beta))
        out = hone_add(out, as_channels(q, v->beta));
    *y = hone_reshape(out, hone_type_of(v->x).shape);
    *rstd = hone_reshape(s, *stat);
}

void op_norm_expand_grad(const struct op_norm *q, hone_t dy, const struct op_norm_values *v, hone_t *dx, hone_t *dgamma,
                         hone_t *dbeta)
{
    hone_t x = as_rows(q, v->x), d = as_rows(q, dy), s = as_stat(q, v->rstd);
    hone_t xhat = hone_mul(q->centred ? hone_sub(x, as_stat(q, v->mean)) : x, s);
    hone_t g = op_has(v->gamma) ? hone_mul(d, as_channels(q, v->gamma)) : d;
    hone_t along = hone_mul(xhat, hone_affine(hone_sum(hone_mul(g, xhat), ROW, true), share(q), 0));
    hone_t rest = q->centred ? hone_sub(g, hone_affine(hone_sum(g, ROW, true), share(q), 0)) : g;
    *dx = hone_reshape(hone_mul(hone_sub(rest, along), s), hone_type_of(v->x).shape);
    if (op_has(v->gamma)) {
        hone_shape c = hone_type_of(v->gamma).shape;
        *dgamma = hone_reshape(hone_sum(hone_mul(d, xhat), BATCH, false), c);
        if (dbeta)
            *dbeta = hone_reshape(hone_sum(d, BATCH, false), c);
    } else {
        *dgamma = hone_full(dy.g, HONE_SHAPE(0), 0);
        if (dbeta)
            *dbeta = *dgamma;
    }
}

/* d mean / dx = 1 / row,  d rstd / dx = -rstd^3 (x - mean) / row */
hone_t op_norm_add_stat_grad(const struct op_norm *q, const struct op_norm_values *v, hone_t dx, hone_t dmean,
                             hone_t drstd)
{
    hone_t sum = HONE_NONE;
    if (op_has(drstd)) {
        hone_t s = as_stat(q, v->rstd), x = as_rows(q, v->x);
        hone_t slope = hone_mul(hone_mul(as_stat(q, drstd), s), hone_mul(s, s));
        sum = hone_mul(q->centred ? hone_sub(x, as_stat(q, v->mean)) : x, hone_affine(slope, -share(q), 0));
    }
    if (op_has(dmean)) {
        hone_t m = hone_affine(as_stat(q, dmean), share(q), 0);
        sum = op_has(sum) ? hone_add(sum, m) : hone_broadcast(m, HONE_SHAPE(q->n, q->groups, q->channels, q->inner));
    }
    if (!op_has(sum))
        return dx;
    sum = hone_reshape(sum, hone_type_of(v->x).shape);
    return op_has(dx) ? hone_add(dx, sum) : sum;
}

/* A vector of each of n as [n,1,..,1,d], to meet [n,..,d] of `rank` dimensions. */
static hone_t lead(hone_t x, int rank)
{
    hone_shape s = hone_type_of(x).shape, t = {rank, {s.dim[0]}};
    for (int i = 1; i < rank - 1; i++)
        t.dim[i] = 1;
    t.dim[rank - 1] = s.dim[1];
    return hone_reshape(x, t);
}

/* gamma and beta are one for all, or are left to a product and a sum. */
void op_norm_batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out)
{
    const int n_in = u->call->n_in, rank = u->call->in[0].shape.rank + 1;
    bool apart = false;
    hone_t in[3];
    for (int i = 0; i < n_in; i++) {
        in[i] = u->in[i];
        apart = apart || (i > 0 && many[i]);
    }
    if (!many[0]) {
        hone_shape s = {rank, {n}};
        for (int i = 1; i < rank; i++)
            s.dim[i] = u->call->in[0].shape.dim[i - 1];
        in[0] = hone_broadcast(in[0], s);
    }
    op_emit(u->call->def, apart ? 1 : n_in, in, &u->call->attr, out);
    if (apart && n_in > 1)
        out[0] = hone_mul(out[0], many[1] ? lead(in[1], rank) : in[1]);
    if (apart && n_in > 2)
        out[0] = hone_add(out[0], many[2] ? lead(in[2], rank) : in[2]);
}
