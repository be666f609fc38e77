/* The training objective of one batch. */
#include <stdio.h>

#include "head/head.h"

#include "hone/ops.h"

/* What training adds noise with: each [B], HONE_NONE where it is 0 or not needed. */
struct draw {
    hone_t time;         /* as the network takes it */
    hone_t alpha, sigma; /* [B] */
    hone_t q_0, q_e;     /* HONE_NONE: 0 everywhere */
    bool one_0, one_e;   /* q_0, q_e are 1 everywhere */
    hone_t weight;       /* HONE_NONE: 1 everywhere */
};

static hone_t stream(hone_graph *g, const hone_diffusion_batch *b, const char *name, hone_t given, hone_shape shape,
                     hone_t (*make)(hone_graph *g, const char *stream, hone_shape shape))
{
    char full[128];
    if (given.g)
        return head_is(given, HONE_F32, shape, name) ? given : (hone_t){g, -1};
    snprintf(full, sizeof full, "%s/%s", b->stream ? b->stream : "diffusion", name);
    return make(g, full, shape);
}

static hone_t lookup(hone_graph *g, const double *values, int n, hone_t t)
{
    return hone_gather(head_table(g, values, n), t);
}

/* Timesteps as given, or drawn; poison if they are no i32 [batch]. */
static hone_t timesteps(hone_graph *g, const hone_diffusion_batch *b, int64_t batch, int steps)
{
    char full[128];
    hone_t t = b->t;
    snprintf(full, sizeof full, "%s/time", b->stream ? b->stream : "diffusion");
    if (!t.g)
        t = hone_random_index(g, full, HONE_SHAPE(batch), steps);
    return head_is(t, HONE_I32, HONE_SHAPE(batch), "the timestep") ? t : (hone_t){g, -1};
}

/* Weights that the batch brings, at its timesteps. */
static hone_t given_weight(const hone_diffusion_batch *b, hone_t t, int steps)
{
    return head_is(b->weight, HONE_F32, HONE_SHAPE(steps), "the weights of timesteps") ? hone_gather(b->weight, t)
                                                                                       : (hone_t){t.g, -1};
}

static struct draw diffusion(hone_graph *g, const hone_objective *o, const hone_diffusion_batch *b, int64_t batch)
{
    hone_t t = timesteps(g, b, batch, o->steps);
    if (!head_has(t))
        return (struct draw){.time = {g, -1}};
    struct draw d = {.time = hone_cast(t, HONE_F32)};
    d.alpha = lookup(g, o->alpha, o->steps, t);
    d.sigma = lookup(g, o->sigma, o->steps, t);
    d.one_0 = head_all(o->q_0, o->steps, 1);
    d.one_e = head_all(o->q_e, o->steps, 1);
    d.q_0 = head_all(o->q_0, o->steps, 0) ? HONE_NONE : lookup(g, o->q_0, o->steps, t);
    d.q_e = head_all(o->q_e, o->steps, 0) ? HONE_NONE : lookup(g, o->q_e, o->steps, t);
    if (b->weight.g)
        d.weight = given_weight(b, t, o->steps);
    else if (!head_all(o->weight, o->steps, 1))
        d.weight = lookup(g, o->weight, o->steps, t);
    return d;
}

static struct draw flow(hone_graph *g, const hone_diffusion_batch *b, int64_t batch)
{
    hone_t t = stream(g, b, "time", b->t, HONE_SHAPE(batch), hone_random_uniform);
    struct draw d = {.time = hone_affine(t, HONE_FLOW_TIME, 0), .alpha = hone_affine(t, -1, 1), .sigma = t};
    d.q_0 = hone_full(g, HONE_SHAPE(batch), -1);
    d.q_e = d.alpha;
    d.one_e = true;
    if (b->weight.g)
        head_refuse(g, HONE_E_ARG, "flow has no timesteps to weigh");
    return d;
}

/* a x0 + b ε, a and b by sample; where they are 1 or 0 everywhere, nothing is done */
static hone_t blend(hone_t a, bool one_a, hone_t x0, hone_t b, bool one_b, hone_t noise)
{
    hone_shape column = HONE_SHAPE(hone_type_of(x0).shape.dim[0], 1, 1);
    hone_t u = !a.g || one_a ? x0 : hone_mul(x0, hone_reshape(a, column));
    hone_t v = !b.g || one_b ? noise : hone_mul(noise, hone_reshape(b, column));
    return !a.g ? v : !b.g ? u : hone_add(u, v);
}

static hone_t condition(hone_graph *g, const hone_diffusion_batch *b, int64_t batch)
{
    if (!(b->drop >= 0 && b->drop <= 1))
        return head_refuse(g, HONE_E_ARG, "the probability of dropping a condition is 0 to 1; got %g", b->drop);
    if (b->drop == 0)
        return b->cond;
    if (!head_has(b->cond) || !head_has(b->null))
        return head_refuse(g, HONE_E_ARG, "dropping a condition takes a condition and its null");
    hone_t u = stream(g, b, "drop", b->uniform, HONE_SHAPE(batch), hone_random_uniform);
    hone_t drop = hone_less(u, hone_const_f32(g, (float)b->drop));
    return hone_condition_drop(b->cond, b->null, b->keep, drop);
}

/* From the squared error to the means. */
static void means(hone_graph *g, const hone_diffusion_batch *b, const struct draw *d, hone_t square,
                  hone_diffusion_loss *out)
{
    hone_shape s = hone_type_of(square).shape;
    const unsigned inner = HONE_AXIS(1) | HONE_AXIS(2);
    hone_t each = HONE_NONE, all = HONE_NONE;
    if (b->mask.g && !head_is(b->mask, HONE_BOOL, HONE_SHAPE(s.dim[0], s.dim[1]), "the mask of actions"))
        return;
    if (b->scale.g && !head_is(b->scale, HONE_F32, HONE_SHAPE(s.dim[0]), "the scale of samples"))
        return;
    if (b->mask.g) {
        hone_t mask = hone_reshape(b->mask, HONE_SHAPE(s.dim[0], s.dim[1], 1));
        hone_t count = hone_affine(hone_sum(hone_cast(b->mask, HONE_F32), HONE_AXIS(1), false), (double)s.dim[2], 0);
        hone_t one = hone_const_f32(g, 1);
        each = hone_sum(hone_where(mask, square, hone_const_f32(g, 0)), inner, false);
        each = d->weight.g ? hone_mul(each, d->weight) : each;
        all = hone_sum(b->scale.g ? hone_mul(each, b->scale) : each, HONE_AXES_ALL, false);
        out->each = hone_div(each, hone_maximum(count, one));
        out->loss = hone_div(all, hone_maximum(hone_sum(count, HONE_AXES_ALL, false), one));
        return;
    }
    each = hone_mean(square, inner, false);
    out->each = d->weight.g ? hone_mul(each, d->weight) : each;
    out->loss = hone_mean(b->scale.g ? hone_mul(out->each, b->scale) : out->each, HONE_AXES_ALL, false);
}

/* A loss of poison; false: there is nothing to build one from. */
static bool begin(const hone_diffusion_batch *b, hone_diffusion_loss *out)
{
    const hone_t poison = {b->x0.g, -1};
    *out = (hone_diffusion_loss){poison, poison, poison, poison, poison, HONE_NONE};
    if (!head_has(b->x0))
        return false;
    hone_type t = hone_type_of(b->x0);
    if (t.dtype == HONE_F32 && t.shape.rank == 3)
        return true;
    head_refuse(b->x0.g, HONE_E_SHAPE, "clean actions must be f32[B,T,A]; got %s of rank %d", hone_dtype_name(t.dtype),
                t.shape.rank);
    return false;
}

hone_diffusion_loss hone_diffusion_objective(const hone_objective *o, hone_denoiser d, const hone_diffusion_batch *b)
{
    hone_graph *g = b->x0.g;
    hone_diffusion_loss out;
    if (!begin(b, &out))
        return out;
    hone_type t = hone_type_of(b->x0);
    int64_t batch = t.shape.dim[0];
    struct draw w = o ? diffusion(g, o, b, batch) : flow(g, b, batch);
    hone_t noise = stream(g, b, "noise", b->noise, t.shape, hone_random_normal), cond = condition(g, b, batch);
    out.x = blend(w.alpha, false, b->x0, w.sigma, false, noise);
    out.target = blend(w.q_0, w.one_0, b->x0, w.q_e, w.one_e, noise);
    out.out = hone_denoise(d, out.x, w.time, cond);
    means(g, b, &w, hone_square(hone_sub(out.out, out.target)), &out);
    return out;
}

/* (got - want)², times a number a sample. */
static hone_t weighed(hone_t got, hone_t want, hone_t by)
{
    const hone_shape column = HONE_SHAPE(hone_type_of(got).shape.dim[0], 1, 1);
    return hone_mul(hone_square(hone_sub(got, want)), hone_reshape(by, column));
}

hone_diffusion_loss hone_two_head_objective(const hone_two_head *h, const hone_diffusion_batch *b)
{
    hone_graph *g = b->x0.g;
    hone_diffusion_loss out;
    struct head_two_arrays a;
    struct head_two two;
    if (!begin(b, &out) || !head_two_ready(g, h))
        return out;
    const hone_shape s = hone_type_of(b->x0).shape;
    const int steps = h->schedule->steps;
    hone_t t = timesteps(g, b, s.dim[0], steps);
    if (!head_has(t))
        return out;
    head_two_arrays(h, &a);
    struct draw w = {.time = hone_cast(t, HONE_F32), .weight = b->weight.g ? given_weight(b, t, steps) : HONE_NONE};
    w.alpha = lookup(g, a.alpha, steps, t);
    w.sigma = lookup(g, a.sigma, steps, t);
    hone_t noise = stream(g, b, "noise", b->noise, s, hone_random_normal), cond = condition(g, b, s.dim[0]);
    out.x = blend(w.alpha, false, b->x0, w.sigma, false, noise);
    if (!head_two_split(h->inner, out.x, w.time, cond, &two))
        return out;
    out.target = b->x0;
    out.heads = two.both;
    out.out = head_two_combine(h, &a, out.x, t, &two);
    means(g, b, &w,
          hone_add(weighed(two.clean, b->x0, lookup(g, a.clean, steps, t)),
                   weighed(two.noise, noise, lookup(g, a.noise, steps, t))),
          &out);
    return out;
}
