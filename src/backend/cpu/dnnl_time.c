/* The convolution family with time first, as products of rows: one a tap, over all rows of time that it reaches. Taps
 * that would read padding are left out: of the nominal flops of the reference U-Net 70 % remain.
 *
 * Threads share rows of the result (samples where there are fewer rows than threads), or of the weight gradient its
 * channels; each runs products of its own, made for one thread, so that none waits for another inside of a
 * convolution. */
#ifdef HONE_DNNL
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/dnnl.h"
#include "op/time_conv.h"

enum kind { FORWARD, DATA, WEIGHT };

struct job {
    enum kind kind;
    int64_t taps, c, o, stride, pad;
    int64_t batch, rows, from_rows; /* of the result, of the operand that it is made from; WEIGHT: of dy and of x */
    int64_t wide;                   /* numbers of a row of the result; WEIGHT: channels */
    int items;
    int64_t row_parts, batch_parts; /* items are row_parts x batch_parts; WEIGHT: row_parts of the channels */
    bool bias;
};

/* One product: m rows (WEIGHT: channels) from element `from` of the operand; `at` of the result. */
struct product {
    int64_t m, depth; /* depth: what is summed over */
    bool add;
    int64_t from, tap, with, at; /* with: element of dy, for WEIGHT */
};

static struct job job_of(const struct op_call *c, int threads)
{
    const int64_t *a = c->attr.i, *x = c->in[0].shape.dim, *y = c->out[0].shape.dim;
    struct job j = {.stride = a[TC_STRIDE], .pad = a[TC_PADDING], .batch = x[1], .bias = c->n_in == 3};
    if (c->def == &op_time_conv_weight) {
        j.kind = WEIGHT;
        j.taps = y[0], j.c = y[1], j.o = y[2];
        j.rows = c->in[1].shape.dim[0], j.from_rows = x[0], j.wide = j.c;
        j.row_parts = j.c / 16 < threads ? (j.c + 15) / 16 : threads;
        j.batch_parts = 1;
    } else {
        const int64_t *w = c->in[1].shape.dim;
        j.kind = c->def == &op_time_conv ? FORWARD : DATA;
        j.taps = w[0], j.c = w[1], j.o = w[2];
        j.rows = y[0], j.from_rows = x[0], j.wide = y[2];
        j.row_parts = j.rows < threads ? j.rows : threads;
        j.batch_parts = (threads + j.row_parts - 1) / j.row_parts;
        j.batch_parts = j.batch_parts < j.batch ? j.batch_parts : j.batch;
    }
    j.items = (int)(j.row_parts * j.batch_parts);
    return j;
}

/* The row that row r of the result has from tap k, -1: none. */
static int64_t source(const struct job *j, int64_t r, int64_t k)
{
    int64_t s = r * j->stride + k - j->pad;
    if (j->kind == DATA) {
        s = r + j->pad - k;
        if (s < 0 || s % j->stride)
            return -1;
        s /= j->stride;
    }
    return s >= 0 && s < j->from_rows ? s : -1;
}

typedef void (*product_fn)(void *user, const struct product *p);

/* Rows [from, to) that tap k reaches in one product, from `from` on; 0: none. */
static int64_t run_of(const struct job *j, int64_t k, int64_t from, int64_t to, bool joined)
{
    int64_t n = 0;
    const int64_t first = source(j, from, k);
    while (first >= 0 && from + n < to && source(j, from + n, k) == first + n && (n == 0 || joined))
        n++;
    return n;
}

/* The tap that reaches most of the rows: it comes first, and writes what the others add to. */
static int64_t best_tap(const struct job *j, int64_t from, int64_t to)
{
    int64_t best = 0, most = -1;
    for (int64_t k = 0; k < j->taps; k++) {
        int64_t n = 0;
        for (int64_t r = from; r < to; r++)
            n += source(j, r, k) >= 0;
        if (n > most) {
            most = n;
            best = k;
        }
    }
    return best;
}

/* Whether row r has been written by the taps before the i-th, of which the first is `best`. */
static bool written(const struct job *j, int64_t best, int64_t i, int64_t r)
{
    for (int64_t q = 0; q < i; q++)
        if (source(j, r, (best + q) % j->taps) >= 0)
            return true;
    return false;
}

static void row_products(const struct job *j, int item, product_fn fn, void *user)
{
    const int64_t part = item / j->batch_parts, chunk = item % j->batch_parts;
    const int64_t from = j->rows * part / j->row_parts, to = j->rows * (part + 1) / j->row_parts;
    const int64_t b0 = j->batch * chunk / j->batch_parts, b1 = j->batch * (chunk + 1) / j->batch_parts;
    const int64_t depth = j->kind == FORWARD ? j->c : j->o, best = best_tap(j, from, to);
    for (int64_t i = 0; i < j->taps; i++) {
        const int64_t k = (best + i) % j->taps;
        for (int64_t r = from; r < to;) {
            int64_t n = run_of(j, k, r, to, b1 - b0 == j->batch);
            const bool add = written(j, best, i, r);
            for (int64_t q = 1; q < n; q++) /* what is written and what is not are two products */
                n = written(j, best, i, r + q) == add ? n : q;
            if (n)
                fn(user, &(struct product){.m = n * (b1 - b0),
                                           .depth = depth,
                                           .add = add,
                                           .from = (source(j, r, k) * j->batch + b0) * depth,
                                           .tap = k,
                                           .at = (r * j->batch + b0) * j->wide});
            r += n ? n : 1;
        }
    }
}

static void weight_products(const struct job *j, int item, product_fn fn, void *user)
{
    const int64_t c0 = j->c * item / j->row_parts, c1 = j->c * (item + 1) / j->row_parts;
    for (int64_t k = 0; k < j->taps; k++) {
        bool add = false;
        for (int64_t r = 0; r < j->rows;) {
            const int64_t n = run_of(j, k, r, j->rows, true);
            if (n)
                fn(user, &(struct product){.m = c1 - c0,
                                           .depth = n * j->batch,
                                           .add = add,
                                           .from = source(j, r, k) * j->batch * j->c + c0,
                                           .tap = k,
                                           .with = r * j->batch * j->o,
                                           .at = (k * j->c + c0) * j->o});
            add = add || n;
            r += n ? n : 1;
        }
    }
}

static void products(const struct job *j, int item, product_fn fn, void *user)
{
    if (j->kind == WEIGHT)
        weight_products(j, item, fn, user);
    else
        row_products(j, item, fn, user);
}

static struct cpu_dnnl_tensor matrix(int64_t rows, int64_t cols, int64_t row, int64_t col)
{
    return (struct cpu_dnnl_tensor){.shape = HONE_SHAPE(rows, cols), .stride = {row, col}};
}

static struct cpu_dnnl_spec spec_of(const struct job *j, const struct product *p)
{
    struct cpu_dnnl_spec s = {.kind = CPU_DNNL_MATMUL, .add = p->add};
    const int64_t n = j->kind == DATA ? j->c : j->o;
    if (j->kind == WEIGHT)
        s.t[CPU_DNNL_X] = matrix(p->m, p->depth, 1, j->c);
    else
        s.t[CPU_DNNL_X] = matrix(p->m, p->depth, p->depth, 1);
    if (j->kind == DATA)
        s.t[CPU_DNNL_W] = matrix(p->depth, n, 1, j->o);
    else
        s.t[CPU_DNNL_W] = matrix(p->depth, n, n, 1);
    if (j->bias && !p->add)
        s.t[CPU_DNNL_B] = cpu_dnnl_plain(HONE_SHAPE(1, n), false);
    s.t[CPU_DNNL_Y] = matrix(p->m, n, n, 1);
    return s;
}

/* --- planning --- */

/* Primitives differ by m, depth and add. */
struct need {
    const struct job *j;
    struct product seen[64];
    int n, threads;
    size_t bytes;
};

static bool same(const struct product *a, const struct product *b)
{
    return a->m == b->m && a->depth == b->depth && a->add == b->add;
}

static void need_product(void *user, const struct product *p)
{
    struct need *q = user;
    for (int i = 0; i < q->n; i++)
        if (same(&q->seen[i], p))
            return;
    if (q->n < 64)
        q->seen[q->n++] = *p;
    const struct cpu_dnnl_spec s = spec_of(q->j, p);
    const size_t bytes = cpu_dnnl_scratch(&s, 1);
    q->bytes = q->bytes > bytes ? q->bytes : bytes;
}

static size_t item_scratch(const struct job *j)
{
    struct need q = {.j = j};
    for (int i = 0; i < j->items; i++)
        products(j, i, need_product, &q);
    return (q.bytes + 63) & ~(size_t)63;
}

static size_t scratch(const struct op_call *c, int threads)
{
    const struct job j = job_of(c, threads);
    return item_scratch(&j) * (size_t)j.items;
}

static bool accepts(const struct op_call *c)
{
    return op_numel(&c->out[0]) > 0 && op_numel(&c->in[0]) > 0;
}

/* --- what a program keeps --- */

struct launch {
    struct product p;
    int primitive;
};

struct unit { /* of one item: states are run by one thread at a time */
    struct launch *list;
    void **primitive;
    int n, n_primitives;
    int status; /* of the last run */
};

struct state {
    struct job j;
    size_t bytes; /* of an item's scratch */
    struct unit unit[];
};

struct maker {
    struct bk_dev *dev;
    const struct op_call *call;
    const struct job *j;
    struct unit *u;
    bool fill; /* else: count */
    hone_err *err;
    hone_status status;
};

static void make_product(void *user, const struct product *p)
{
    struct maker *m = user;
    struct unit *u = m->u;
    if (!m->fill) {
        u->n++;
        return;
    }
    struct launch *l = &u->list[u->n++];
    *l = (struct launch){*p, -1};
    for (const struct launch *q = u->list; q < l && l->primitive < 0; q++)
        if (same(&q->p, p))
            l->primitive = q->primitive;
    if (l->primitive >= 0 || m->status != HONE_OK)
        return;
    const struct cpu_dnnl_spec s = spec_of(m->j, p);
    l->primitive = u->n_primitives;
    m->status = cpu_dnnl_create(m->dev, m->call->def->name, &s, 1, &u->primitive[u->n_primitives], m->err);
    u->n_primitives += m->status == HONE_OK;
}

static void release(struct bk_dev *dev, void *state)
{
    struct state *s = state;
    for (int i = 0; s && i < s->j.items; i++) {
        for (int k = 0; k < s->unit[i].n_primitives; k++)
            cpu_dnnl_release(dev, s->unit[i].primitive[k]);
        mem_free(&dev->ctx->mem, s->unit[i].primitive);
        mem_free(&dev->ctx->mem, s->unit[i].list);
    }
    mem_free(&dev->ctx->mem, s);
}

static hone_status prepare(struct bk_dev *dev, const struct op_call *c, int threads, void **state, hone_err *err)
{
    const struct job j = job_of(c, threads);
    struct mem *mem = &dev->ctx->mem;
    struct state *s = mem_alloc(mem, sizeof *s + (size_t)j.items * sizeof s->unit[0]);
    struct maker m = {.dev = dev, .call = c, .j = &j, .err = err, .status = HONE_OK};
    if (!s)
        return err_set(err, HONE_E_NOMEM, c->def->name, "no memory for a kernel");
    s->j = j;
    s->bytes = item_scratch(&j);
    for (int i = 0; i < j.items && m.status == HONE_OK; i++) {
        m.u = &s->unit[i];
        m.fill = false;
        products(&j, i, make_product, &m);
        m.u->list = mem_array(mem, (size_t)m.u->n + 1, sizeof *m.u->list);
        m.u->primitive = mem_array(mem, (size_t)m.u->n + 1, sizeof *m.u->primitive);
        m.u->n = 0;
        m.fill = true;
        if (m.u->list && m.u->primitive)
            products(&j, i, make_product, &m);
        else
            m.status = err_set(err, HONE_E_NOMEM, c->def->name, "no memory for a kernel");
    }
    if (m.status == HONE_OK)
        *state = s;
    else
        release(dev, s);
    return m.status;
}

/* --- running --- */

/* Rows that no tap reaches are bias alone; taps that reach no row have no gradient. */
static void fill_bare(const struct bk_io *io, const struct job *j)
{
    float *y = io->out[0];
    const float *bias = j->bias ? io->in[2] : NULL;
    for (int64_t k = 0; j->kind == WEIGHT && k < j->taps; k++) {
        int64_t n = 0;
        for (int64_t r = 0; r < j->rows; r++)
            n += source(j, r, k) >= 0;
        if (!n)
            memset(y + k * j->c * j->o, 0, (size_t)(j->c * j->o) * sizeof(float));
    }
    for (int64_t r = 0; j->kind != WEIGHT && r < j->rows; r++)
        for (int64_t b = 0; !written(j, 0, j->taps, r) && b < j->batch; b++)
            for (int64_t i = 0; i < j->wide; i++)
                y[(r * j->batch + b) * j->wide + i] = bias ? bias[i] : 0;
}

static void run_item(void *arg, int32_t item)
{
    const struct bk_io *io = arg;
    struct state *s = io->state;
    const struct job *j = &s->j;
    struct unit *u = &s->unit[item];
    u->status = 0;
    for (int i = 0; i < u->n && !u->status; i++) {
        const struct product *p = &u->list[i].p;
        const float *w =
            j->kind == WEIGHT ? (const float *)io->in[1] + p->with : (const float *)io->in[1] + p->tap * j->c * j->o;
        const void *t[CPU_DNNL_TENSORS] = {[CPU_DNNL_X] = (const float *)io->in[0] + p->from,
                                           [CPU_DNNL_W] = w,
                                           [CPU_DNNL_B] = j->bias && !p->add ? io->in[2] : NULL,
                                           [CPU_DNNL_Y] = (float *)io->out[0] + p->at};
        u->status =
            cpu_dnnl_execute(u->primitive[u->list[i].primitive], t, (char *)io->scratch + (size_t)item * s->bytes, 1);
    }
}

static hone_status run(const struct bk_io *io, hone_err *err)
{
    struct state *s = io->state;
    fill_bare(io, &s->j);
    cpu_share(io, run_item, (void *)(uintptr_t)io, s->j.items);
    for (int i = 0; i < s->j.items; i++)
        if (s->unit[i].status)
            return cpu_dnnl_tell(s->unit[i].status, io->layer, io->call->def->name, err);
    return HONE_OK;
}

#define TIME(name)                                                                                                     \
    const struct bk_kernel cpu_dnnl_##name = {                                                                         \
        .op = #name, .accepts = accepts, .scratch = scratch, .prepare = prepare, .release = release, .run = run};
TIME(time_conv)
TIME(time_conv_data)
TIME(time_conv_weight)
#else
typedef int no_dnnl_time; /* a file needs a declaration */
#endif
