/* attention and its gradient: ROWS queries of one head at a time, their weights in scratch memory that belongs to one
 * thread. Keys and values of a head are met by one thread in order, so that no result depends on the number of
 * threads. */
#include "op/attention.h"

#include <string.h>

#include "backend/cpu/product.h"
#include "backend/cpu/row.h"

enum { ROWS = 32 };

struct job {
    struct op_attention a;
    const float *q, *k, *v;
    const uint8_t *mask; /* nullable */
    float scale;
};

static struct job job_of(const struct bk_io *io, int first)
{
    return (struct job){.a = op_attention_dims(io->call, first),
                        .q = io->in[first],
                        .k = io->in[first + 1],
                        .v = io->in[first + 2],
                        .mask = io->call->n_in > first + 3 ? io->in[first + 3] : NULL,
                        .scale = (float)io->call->attr.f[ATTENTION_SCALE]};
}

/* s = softmax(scale s) of one row; zeros where the mask lets nothing through. */
static void weigh(const struct job *o, float *s, const uint8_t *mask)
{
    const int64_t n = o->a.sk, step = o->a.mask[3];
    bool any = !mask;
    CPU_SIMD
    for (int64_t j = 0; j < n; j++)
        s[j] *= o->scale;
    for (int64_t j = 0; mask && j < n; j++) {
        any = any || mask[j * step];
        s[j] = mask[j * step] ? s[j] : -INFINITY;
    }
    if (any)
        row_softmax(s, s, n);
    else if (n)
        memset(s, 0, (size_t)n * sizeof *s);
}

/* The weights [rows, Sk] of queries from `from` of one head. */
static void weights(const struct job *o, int64_t pair, int64_t from, int64_t rows, float *p)
{
    const struct op_attention *a = &o->a;
    cpu_product(&(struct cpu_product){.m = rows,
                                      .k = a->d,
                                      .n = a->sk,
                                      .a = o->q + (pair * a->sq + from) * a->d,
                                      .a_row = a->d,
                                      .a_col = 1,
                                      .b = o->k + pair * a->sk * a->d,
                                      .b_row = 1,
                                      .b_col = a->d,
                                      .c = p,
                                      .c_row = a->sk,
                                      .c_col = 1});
    for (int64_t i = 0; i < rows; i++) {
        const int64_t at = pair / a->heads * a->mask[0] + pair % a->heads * a->mask[1] + (from + i) * a->mask[2];
        weigh(o, p + i * a->sk, o->mask ? o->mask + at : NULL);
    }
}

/* y [m,n] = or += p x, p [m,k] stored so, or as [k,m] where `t`. */
static void weighted(const float *p, bool t, const float *x, float *y, int64_t m, int64_t k, int64_t n, bool add)
{
    cpu_product(&(struct cpu_product){.m = m,
                                      .k = k,
                                      .n = n,
                                      .a = p,
                                      .a_row = t ? 1 : k,
                                      .a_col = t ? m : 1,
                                      .b = x,
                                      .b_row = n,
                                      .b_col = 1,
                                      .c = y,
                                      .c_row = n,
                                      .c_col = 1,
                                      .add = add});
}

/* A part of the work for each thread, with scratch memory of its own. */
struct parts {
    const struct bk_io *io;
    struct job o;
};

static void attend(void *arg, int32_t item)
{
    const struct parts *q = arg;
    const struct op_attention *a = &q->o.a;
    const int64_t blocks = (a->sq + ROWS - 1) / ROWS, tasks = a->batch * a->heads * blocks, parts = q->io->threads;
    float *p = (float *)q->io->scratch + item * ROWS * a->sk, *y = q->io->out[0];
    for (int64_t t = tasks * item / parts; t < tasks * (item + 1) / parts; t++) {
        const int64_t pair = t / blocks, from = t % blocks * ROWS, left = a->sq - from;
        const int64_t rows = left < ROWS ? left : ROWS;
        weights(&q->o, pair, from, rows, p);
        weighted(p, false, q->o.v + pair * a->sk * a->d, y + (pair * a->sq + from) * a->d, rows, a->sk, a->d, false);
    }
}

static hone_status attention_run(const struct bk_io *io, hone_err *err)
{
    struct parts q = {io, job_of(io, 0)};
    (void)err;
    cpu_share(io, attend, &q, io->threads);
    return HONE_OK;
}

static size_t attention_scratch(const struct op_call *c, int threads)
{
    return (size_t)(threads * ROWS * c->in[1].shape.dim[2]) * sizeof(float);
}

/* --- gradient --- */

/* ds = scale p (dp - sum(p dp)), in the place of dp */
static void score_gradient(const struct job *o, const float *p, float *dp)
{
    const int64_t n = o->a.sk;
    double sum = 0;
    ROW_SUM(sum, n, p[i] * dp[i]);
    const float along = (float)sum, scale = o->scale;
    CPU_SIMD
    for (int64_t j = 0; j < n; j++)
        dp[j] = scale * p[j] * (dp[j] - along);
}

/* One head. p and ds are [ROWS, Sk]. */
static void head_gradient(const struct bk_io *io, const struct job *o, int64_t pair, float *p, float *ds)
{
    const struct op_attention *a = &o->a;
    const float *k = o->k + pair * a->sk * a->d, *v = o->v + pair * a->sk * a->d;
    float *dk = (float *)io->out[1] + pair * a->sk * a->d, *dv = (float *)io->out[2] + pair * a->sk * a->d;
    int64_t from = 0;
    do { /* once at least: without queries dk and dv are zero */
        const int64_t rows = a->sq - from < ROWS ? a->sq - from : ROWS, at = (pair * a->sq + from) * a->d;
        const float *dy = (const float *)io->in[0] + at;
        weights(o, pair, from, rows, p);
        cpu_product(&(struct cpu_product){.m = rows,
                                          .k = a->d,
                                          .n = a->sk,
                                          .a = dy,
                                          .a_row = a->d,
                                          .a_col = 1,
                                          .b = v,
                                          .b_row = 1,
                                          .b_col = a->d,
                                          .c = ds,
                                          .c_row = a->sk,
                                          .c_col = 1});
        for (int64_t i = 0; i < rows; i++)
            score_gradient(o, p + i * a->sk, ds + i * a->sk);
        weighted(ds, false, k, (float *)io->out[0] + at, rows, a->sk, a->d, false);
        weighted(ds, true, o->q + at, dk, a->sk, rows, a->d, from > 0);
        weighted(p, true, dy, dv, a->sk, rows, a->d, from > 0);
        from += ROWS;
    } while (from < a->sq);
}

static void grade(void *arg, int32_t item)
{
    const struct parts *q = arg;
    const struct op_attention *a = &q->o.a;
    const int64_t heads = a->batch * a->heads, parts = q->io->threads;
    float *p = (float *)q->io->scratch + item * 2 * ROWS * a->sk;
    for (int64_t h = heads * item / parts; h < heads * (item + 1) / parts; h++)
        head_gradient(q->io, &q->o, h, p, p + ROWS * a->sk);
}

static hone_status attention_grad_run(const struct bk_io *io, hone_err *err)
{
    struct parts q = {io, job_of(io, 1)};
    (void)err;
    cpu_share(io, grade, &q, io->threads);
    return HONE_OK;
}

static size_t attention_grad_scratch(const struct op_call *c, int threads)
{
    return 2 * (size_t)(threads * ROWS * c->in[2].shape.dim[2]) * sizeof(float);
}

/* Where oneDNN makes products, the expansion is faster. */
static bool without_dnnl(const struct op_call *c)
{
    (void)c;
#ifdef HONE_DNNL
    return false;
#else
    return true;
#endif
}

const struct bk_kernel cpu_attention = {
    .op = "attention", .accepts = without_dnnl, .scratch = attention_scratch, .run = attention_run};
const struct bk_kernel cpu_attention_grad = {
    .op = "attention_grad", .accepts = without_dnnl, .scratch = attention_grad_scratch, .run = attention_grad_run};
