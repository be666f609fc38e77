#include "backend/cpu/walk.h"

struct plan {
    hone_shape outer;                        /* dimensions that are counted */
    int64_t stride[WALK_MAX][HONE_MAX_RANK]; /* of the operands there */
    int64_t inner, step[WALK_MAX];           /* a run */
};

static struct plan plan_of(const struct op_call *c)
{
    struct plan p = {.outer = c->out[0].shape, .inner = 1};
    for (int i = 0; i < c->n_in; i++)
        op_strides(&c->in[i].shape, &c->out[0].shape, p.stride[i]);
    for (int k = p.outer.rank - 1; k >= 0; k--) {
        const int64_t d = p.outer.dim[k];
        for (int i = 0; d != 1 && i < c->n_in; i++) {
            const int64_t step = p.stride[i][k] ? 1 : 0;
            if (p.inner == 1)
                p.step[i] = step;
            else if (step != p.step[i])
                return p;
        }
        p.inner *= d;
        p.outer.rank = k;
    }
    return p;
}

struct job {
    const struct bk_io *io;
    void (*run)(const struct bk_io *io, const struct walk_run *r);
    struct plan plan;
};

/* Elements [from, to) of one run. */
static void walk_part(void *arg, int64_t from, int64_t to)
{
    const struct job *q = arg;
    struct walk_run r = {.n = to - from, .to = from};
    for (int i = 0; i < q->io->call->n_in; i++) {
        r.step[i] = q->plan.step[i];
        r.at[i] = from * r.step[i];
    }
    q->run(q->io, &r);
}

static void walk_rows(void *arg, int64_t from, int64_t to)
{
    const struct job *q = arg;
    const struct plan *p = &q->plan;
    const int n_in = q->io->call->n_in;
    struct walk_run r = {.n = p->inner, .to = from * p->inner};
    int64_t idx[HONE_MAX_RANK], left = from;
    for (int i = 0; i < n_in; i++)
        r.step[i] = p->step[i];
    for (int k = p->outer.rank - 1; k >= 0; k--) {
        idx[k] = left % p->outer.dim[k];
        left /= p->outer.dim[k];
        for (int i = 0; i < n_in; i++)
            r.at[i] += idx[k] * p->stride[i][k];
    }
    for (int64_t row = from; row < to; row++, r.to += r.n) {
        q->run(q->io, &r);
        for (int k = p->outer.rank - 1; k >= 0; k--) {
            const bool ends = ++idx[k] == p->outer.dim[k];
            for (int i = 0; i < n_in; i++)
                r.at[i] += p->stride[i][k] * (ends ? 1 - idx[k] : 1);
            if (!ends)
                break;
            idx[k] = 0;
        }
    }
}

void walk(const struct bk_io *io, void (*run)(const struct bk_io *io, const struct walk_run *r))
{
    struct job q = {io, run, plan_of(io->call)};
    const int64_t n = op_numel(&io->call->out[0]);
    if (n && q.plan.outer.rank == 0)
        cpu_split(io, n, n, walk_part, &q);
    else if (n)
        cpu_split(io, n / q.plan.inner, n, walk_rows, &q);
}
