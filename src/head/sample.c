/* The one loop of every sampler. */
#include "head/head.h"

#include <stdio.h>

#include "hone/ops.h"

enum { NO_ROW = -1 };

struct loop {
    const hone_sample_args *a;
    int time, p_x, p_o, c_x, c_0, std, z; /* which table; NO_ROW: left out, as it changes nothing */
    int done;                             /* steps built so far */
};

/* Adds a table of the sampler's, unless it is `idle` throughout. */
static int add_table(hone_graph *g, hone_t *tables, int *n, const hone_sampler *p, const double *values, double idle)
{
    if (head_all(values, p->steps, idle))
        return NO_ROW;
    tables[*n] = head_table(g, values, p->steps);
    return (*n)++;
}

static hone_t times(hone_t x, const hone_t *rows, int row)
{
    return row == NO_ROW ? x : hone_mul(x, rows[row]);
}

static hone_t step(void *user, hone_t x, const hone_t *rows)
{
    struct loop *l = user;
    const hone_sampler *p = l->a->sampler;
    hone_t t = p->flow ? hone_affine(rows[l->time], HONE_FLOW_TIME, 0) : rows[l->time];
    if (l->a->states)
        l->a->states[l->done] = x;
    l->done++;
    hone_t x0 = times(hone_denoise(l->a->denoiser, x, t, l->a->cond), rows, l->p_o);
    if (l->p_x != NO_ROW)
        x0 = hone_add(hone_mul(x, rows[l->p_x]), x0);
    if (p->x0_clip > 0)
        x0 = hone_clamp(x0, -p->x0_clip, p->x0_clip);
    hone_t mean = hone_mul(x0, rows[l->c_0]);
    if (l->c_x != NO_ROW)
        mean = hone_add(hone_mul(x, rows[l->c_x]), mean);
    return l->std == NO_ROW ? mean : hone_add(mean, hone_mul(rows[l->z], rows[l->std]));
}

static hone_t normal(hone_graph *g, const hone_sample_args *a, const char *name, hone_t given, hone_shape shape,
                     const char *what)
{
    char full[128];
    if (given.g)
        return head_is(given, HONE_F32, shape, what) ? given : (hone_t){g, -1};
    snprintf(full, sizeof full, "%s/%s", a->stream ? a->stream : "sampler", name);
    return hone_random_normal(g, full, shape);
}

hone_t hone_sample(hone_graph *g, const hone_sample_args *a)
{
    const hone_sampler *p = a->sampler;
    if (!g)
        return HONE_NONE;
    if (!p)
        return head_refuse(g, HONE_E_ARG, "sampling takes a sampler");
    hone_shape s = a->start.g ? hone_type_of(a->start).shape : a->shape;
    hone_t tables[HONE_CHAIN_TABLES];
    hone_chain_options o = {p->steps, tables, 0, a->unroll, a->grad_last, a->segment};
    if (a->start.g && !head_has(a->start))
        return (hone_t){g, -1};
    if (s.rank != 3 || hone_numel(&s) < 0)
        return head_refuse(g, HONE_E_SHAPE, "samples are [B,T,A]; got rank %d", s.rank);
    if (a->states && !a->unroll)
        return head_refuse(g, HONE_E_ARG, "only an unrolled chain has states to show");
    hone_t x = normal(g, a, "start", a->start, s, "the start of a chain");
    struct loop l = {.a = a, .std = NO_ROW};
    l.time = add_table(g, tables, &o.n_tables, p, p->time, -1);
    l.p_x = add_table(g, tables, &o.n_tables, p, p->p_x, 0);
    l.p_o = add_table(g, tables, &o.n_tables, p, p->p_o, 1);
    l.c_x = add_table(g, tables, &o.n_tables, p, p->c_x, 0);
    l.c_0 = add_table(g, tables, &o.n_tables, p, p->c_0, -1); /* never idle: the last one is 1 */
    const double *std = a->std == HONE_SAMPLE_EXPLORE ? p->std_sample : p->std;
    if (!head_all(std, p->steps, 0)) {
        hone_shape all = {4, {p->steps, s.dim[0], s.dim[1], s.dim[2]}};
        l.std = add_table(g, tables, &o.n_tables, p, std, 0);
        l.z = o.n_tables;
        tables[o.n_tables++] = normal(g, a, "noise", a->noise, all, "the noise of a chain");
    }
    x = hone_chain(x, &o, step, &l);
    if (a->states)
        a->states[p->steps] = x;
    return x;
}
