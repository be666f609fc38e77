/* matmul and linear with oneDNN. A product is cut into parts, each a primitive made for one thread, which the team of
 * the device runs: of its matrices, its rows, or its columns, whichever there are enough of. */
#ifdef HONE_DNNL
#include "backend/cpu/cpu.h"
#include "backend/cpu/dnnl.h"
#include "backend/cpu/product.h"

/* Flops that are worth a second thread. */
#define WORTH 1e6

/* One part: matrices [l0, l1) of the first leading dimension, rows [m0, m1), columns [n0, n1). */
struct part {
    int64_t l0, l1, m0, m1, n0, n1;
};

struct job {
    struct cpu_matmul q;
    bool bias;
    int parts;
};

static struct job job_of(const struct op_call *c, int threads)
{
    const bool linear = c->def == &op_linear;
    struct job j = {linear ? cpu_linear_of(c) : cpu_matmul_of(c), linear && c->n_in == 3, threads};
    double flops = 2 * (double)j.q.m * (double)j.q.n * (double)j.q.k;
    for (int i = 0; i < j.q.lead.rank; i++)
        flops *= (double)j.q.lead.dim[i];
    if (flops < WORTH)
        j.parts = 1;
    return j;
}

/* Cuts at multiples of 16, so that no vector is cut. */
static int64_t cut(int64_t n, int i, int parts)
{
    const int64_t at = (n * i / parts + 8) / 16 * 16;
    return i == parts || at > n ? n : at;
}

static struct part part_of(const struct job *j, int i)
{
    const struct cpu_matmul *q = &j->q;
    const int64_t lead = q->lead.rank ? q->lead.dim[0] : 1, p = j->parts;
    struct part s = {0, lead, 0, q->m, 0, q->n};
    if (lead >= p) {
        s.l0 = lead * i / p;
        s.l1 = lead * (i + 1) / p;
    } else if (q->m >= 16 * p || q->m >= q->n) {
        s.m0 = cut(q->m, i, (int)p);
        s.m1 = cut(q->m, i + 1, (int)p);
    } else {
        s.n0 = cut(q->n, i, (int)p);
        s.n1 = cut(q->n, i + 1, (int)p);
    }
    return s;
}

static bool is_empty(const struct part *s)
{
    return s->l0 == s->l1 || s->m0 == s->m1 || s->n0 == s->n1;
}

/* Rows [.., r) and columns [.., c) of matrices of `rows` x `cols`, which stand as they do in the call: a transposed one
 * is a matter of strides. `step`: matrices from one of a leading dimension to the next, 0 where one stands still. */
static struct cpu_dnnl_tensor matrices(const struct job *j, const struct part *s, const int64_t *step, int64_t r,
                                       int64_t c, int64_t rows, int64_t cols, bool transposed)
{
    const hone_shape *lead = &j->q.lead;
    struct cpu_dnnl_tensor t = {.shape = {lead->rank + 2, {0}}};
    for (int i = 0; i < lead->rank; i++) {
        const int64_t n = i ? lead->dim[i] : s->l1 - s->l0;
        t.shape.dim[i] = step[i] ? n : 1;
        t.stride[i] = (step[i] ? step[i] : 1) * rows * cols;
    }
    t.shape.dim[lead->rank] = r;
    t.shape.dim[lead->rank + 1] = c;
    t.stride[lead->rank] = transposed ? 1 : cols;
    t.stride[lead->rank + 1] = transposed ? rows : 1;
    return t;
}

/* Steps of the result: its matrices stand one behind the other. */
static void result_steps(const struct cpu_matmul *q, int64_t *step)
{
    int64_t n = 1;
    for (int i = q->lead.rank - 1; i >= 0; i--) {
        step[i] = n;
        n *= q->lead.dim[i];
    }
}

static struct cpu_dnnl_spec spec_of(const struct job *j, const struct part *s)
{
    const struct cpu_matmul *q = &j->q;
    struct cpu_dnnl_spec p = {.kind = CPU_DNNL_MATMUL};
    const int64_t m = s->m1 - s->m0, n = s->n1 - s->n0;
    int64_t step[HONE_MAX_RANK];
    result_steps(q, step);
    p.t[CPU_DNNL_X] = matrices(j, s, q->a, m, q->k, q->m, q->k, q->ta);
    p.t[CPU_DNNL_W] = matrices(j, s, q->b, q->k, n, q->k, q->n, q->tb);
    if (j->bias)
        p.t[CPU_DNNL_B] = cpu_dnnl_plain(HONE_SHAPE(1, n), false);
    p.t[CPU_DNNL_Y] = matrices(j, s, step, m, n, q->m, q->n, false);
    return p;
}

static size_t bytes_of(const struct job *j)
{
    size_t most = 0;
    for (int i = 0; i < j->parts; i++) {
        const struct part s = part_of(j, i);
        const struct cpu_dnnl_spec p = spec_of(j, &s);
        const size_t n = is_empty(&s) ? 0 : cpu_dnnl_scratch(&p, 1);
        most = n > most ? n : most;
    }
    return (most + 63) & ~(size_t)63;
}

static size_t scratch(const struct op_call *c, int threads)
{
    const struct job j = job_of(c, threads);
    return bytes_of(&j) * (size_t)j.parts;
}

static bool accepts(const struct op_call *c)
{
    return op_numel(&c->out[0]) > 0 && op_numel(&c->in[0]) > 0;
}

struct state {
    struct job j;
    size_t bytes;
    struct unit {
        void *primitive; /* NULL: nothing to do */
        struct part s;
        int status; /* of the last run */
    } unit[];
};

static void release(struct bk_dev *dev, void *state)
{
    struct state *s = state;
    for (int i = 0; s && i < s->j.parts; i++)
        cpu_dnnl_release(dev, s->unit[i].primitive);
    mem_free(&dev->ctx->mem, s);
}

static hone_status prepare(struct bk_dev *dev, const struct op_call *c, int threads, void **state, hone_err *err)
{
    const struct job j = job_of(c, threads);
    struct state *s = mem_alloc(&dev->ctx->mem, sizeof *s + (size_t)j.parts * sizeof s->unit[0]);
    hone_status st = HONE_OK;
    if (!s)
        return err_set(err, HONE_E_NOMEM, c->def->name, "no memory for a kernel");
    s->j = j;
    s->bytes = bytes_of(&j);
    for (int i = 0; i < j.parts && st == HONE_OK; i++) {
        s->unit[i].s = part_of(&j, i);
        const struct cpu_dnnl_spec p = spec_of(&j, &s->unit[i].s);
        if (!is_empty(&s->unit[i].s))
            st = cpu_dnnl_create(dev, c->def->name, &p, 1, &s->unit[i].primitive, err);
    }
    if (st == HONE_OK)
        *state = s;
    else
        release(dev, s);
    return st;
}

static void run_part(void *arg, int32_t item)
{
    const struct bk_io *io = arg;
    struct state *s = io->state;
    struct unit *u = &s->unit[item];
    const struct cpu_matmul *q = &s->j.q;
    int64_t step[HONE_MAX_RANK] = {0};
    if (!u->primitive)
        return;
    result_steps(q, step);
    const int64_t l = u->s.l0, rank = q->lead.rank;
    const int64_t a = (rank ? l * q->a[0] : 0) * q->m * q->k + u->s.m0 * (q->ta ? 1 : q->k);
    const int64_t b = (rank ? l * q->b[0] : 0) * q->k * q->n + u->s.n0 * (q->tb ? q->k : 1);
    const int64_t y = (rank ? l * step[0] : 0) * q->m * q->n + u->s.m0 * q->n + u->s.n0;
    const void *t[CPU_DNNL_TENSORS] = {[CPU_DNNL_X] = (const float *)io->in[0] + a,
                                       [CPU_DNNL_W] = (const float *)io->in[1] + b,
                                       [CPU_DNNL_B] = s->j.bias ? (const float *)io->in[2] + u->s.n0 : NULL,
                                       [CPU_DNNL_Y] = (float *)io->out[0] + y};
    u->status = cpu_dnnl_execute(u->primitive, t, (char *)io->scratch + (size_t)item * s->bytes, 1);
}

static hone_status run(const struct bk_io *io, hone_err *err)
{
    struct state *s = io->state;
    cpu_share(io, run_part, (void *)(uintptr_t)io, s->j.parts);
    for (int i = 0; i < s->j.parts; i++)
        if (s->unit[i].status)
            return cpu_dnnl_tell(s->unit[i].status, io->layer, io->call->def->name, err);
    return HONE_OK;
}

#define PRODUCT(name)                                                                                                  \
    const struct bk_kernel cpu_dnnl_##name = {                                                                         \
        .op = #name, .accepts = accepts, .scratch = scratch, .prepare = prepare, .release = release, .run = run};
PRODUCT(matmul)
PRODUCT(linear)
#else
typedef int no_dnnl_matmul; /* a file needs a declaration */
#endif
