/* Denoisers and their wrappers. */
#include "head/head.h"

#include <stdarg.h>
#include <stdio.h>

#include "graph/ir.h"
#include "hone/ops.h"

hone_t head_refuse(hone_graph *g, hone_status code, const char *fmt, ...)
{
    char text[sizeof g->err.text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    err_set(&g->err, code, hone_scope(g), "%s", text);
    return (hone_t){g, -1};
}

bool head_has(hone_t x)
{
    return x.g && x.id >= 0 && x.g->err.code == HONE_OK;
}

bool head_is(hone_t x, hone_dtype dtype, hone_shape shape, const char *what)
{
    char want[64], got[64];
    hone_type t = hone_type_of(x);
    if (!head_has(x))
        return false;
    if (t.dtype == dtype && hone_shape_equal(&t.shape, &shape))
        return true;
    head_refuse(x.g, HONE_E_SHAPE, "%s must be %s%s; got %s%s", what, hone_dtype_name(dtype),
                hone_shape_text(&shape, want, sizeof want), hone_dtype_name(t.dtype),
                hone_shape_text(&t.shape, got, sizeof got));
    return false;
}

hone_t head_table(hone_graph *g, const double *values, int n)
{
    float f[HONE_SCHED_MAX_STEPS];
    for (int i = 0; i < n; i++)
        f[i] = (float)values[i];
    return hone_const(g, HONE_F32, HONE_SHAPE(n), f);
}

bool head_all(const double *values, int n, double value)
{
    int same = 0;
    while (same < n && values[same] == value)
        same++;
    return same == n;
}

hone_t head_ask(hone_denoiser d, hone_t x, hone_t t, hone_t cond, hone_shape want, const char *what)
{
    char got[64];
    hone_type tx = hone_type_of(x), tt = hone_type_of(t);
    if (!head_has(x) || !head_has(t))
        return (hone_t){x.g, -1};
    if (!d.fn)
        return head_refuse(x.g, HONE_E_ARG, "a denoiser needs a function");
    if (tx.dtype != HONE_F32 || tx.shape.rank != 3)
        return head_refuse(x.g, HONE_E_SHAPE, "a denoiser takes x as f32[B,T,A]; got %s%s", hone_dtype_name(tx.dtype),
                           hone_shape_text(&tx.shape, got, sizeof got));
    if (tt.dtype != HONE_F32 || tt.shape.rank > 1 || (tt.shape.rank == 1 && tt.shape.dim[0] != tx.shape.dim[0]))
        return head_refuse(x.g, HONE_E_SHAPE, "a denoiser takes t as f32[B] or one f32; got %s%s",
                           hone_dtype_name(tt.dtype), hone_shape_text(&tt.shape, got, sizeof got));
    hone_t out = d.fn(d.user, x, t, cond);
    return head_is(out, HONE_F32, want, what) ? out : (hone_t){x.g, -1};
}

hone_t hone_denoise(hone_denoiser d, hone_t x, hone_t t, hone_t cond)
{
    return head_ask(d, x, t, cond, hone_type_of(x).shape, "the output of a denoiser");
}

static hone_t network(void *user, hone_t x, hone_t t, hone_t cond)
{
    const hone_net_denoiser *n = user;
    return hone_net_build(n->net, n->nn, n->config, x, t, cond);
}

hone_denoiser hone_denoiser_net(hone_net_denoiser *n)
{
    return (hone_denoiser){network, n};
}

static hone_t conditioned(void *user, hone_t x, hone_t t, hone_t cond)
{
    const hone_conditioned *c = user;
    (void)cond;
    return hone_denoise(c->inner, x, t, c->cond);
}

hone_denoiser hone_denoiser_conditioned(hone_conditioned *c)
{
    return (hone_denoiser){conditioned, c};
}

/* --- guidance --- */

hone_t hone_condition_drop(hone_t cond, hone_t null, int64_t keep, hone_t drop)
{
    hone_shape s = hone_type_of(cond).shape;
    if (!head_has(cond) || !head_has(null))
        return cond.g ? head_refuse(cond.g, HONE_E_ARG, "dropping a condition takes a condition and its null") : null;
    int last = s.rank - 1;
    if (s.rank < 2 || keep < 0 || keep >= s.dim[last])
        return head_refuse(
            cond.g, HONE_E_SHAPE,
            "a condition that can be dropped is [B, ..., C] with 0 <= keep < C; got rank %d and keep %lld", s.rank,
            (long long)keep);
    hone_t rest = hone_slice(cond, last, keep, s.dim[last] - keep);
    hone_t gone = hone_broadcast(null, hone_type_of(rest).shape);
    if (drop.g) {
        hone_shape column = {s.rank, {s.dim[0], 1, 1, 1, 1, 1, 1, 1}};
        if (!head_is(drop, HONE_BOOL, HONE_SHAPE(s.dim[0]), "which conditions to drop"))
            return (hone_t){cond.g, -1};
        gone = hone_where(hone_reshape(drop, column), gone, rest);
    }
    return keep ? hone_concat(2, (hone_t[]){hone_slice(cond, last, 0, keep), gone}, last) : gone;
}

/* x over itself: [B, ...] -> [2 B, ...] */
static hone_t twice(hone_t x)
{
    hone_shape s = hone_type_of(x).shape, two = {s.rank + 1, {2}};
    for (int i = 0; i < s.rank; i++)
        two.dim[i + 1] = s.dim[i];
    hone_t y = hone_broadcast(x, two);
    s.dim[0] *= 2;
    return hone_reshape(y, s);
}

static hone_t guided(void *user, hone_t x, hone_t t, hone_t cond)
{
    const hone_guidance *o = user;
    hone_shape s = hone_type_of(x).shape, sw = hone_type_of(o->w).shape;
    if (!head_has(cond) || !head_has(o->null) || !head_has(o->w))
        return head_refuse(x.g, HONE_E_ARG, "guidance takes a condition, its null and a weight");
    if (sw.rank < 0 || hone_numel(&sw) != 1)
        return head_refuse(x.g, HONE_E_SHAPE, "the weight of guidance has one element; got %lld",
                           (long long)hone_numel(&sw));
    hone_t both = hone_concat(2, (hone_t[]){hone_condition_drop(cond, o->null, o->keep, HONE_NONE), cond}, 0);
    hone_t out = hone_denoise(o->inner, twice(x), hone_type_of(t).shape.rank ? twice(t) : t, both);
    hone_t w = hone_reshape(o->w, HONE_SCALAR), rest = hone_affine(w, -1, 1);
    /* in this form w = 0 and w = 1 give one of the halves exactly */
    return hone_add(hone_mul(rest, hone_slice(out, 0, 0, s.dim[0])),
                    hone_mul(w, hone_slice(out, 0, s.dim[0], s.dim[0])));
}

hone_denoiser hone_denoiser_guided(hone_guidance *guidance)
{
    return (hone_denoiser){guided, guidance};
}
