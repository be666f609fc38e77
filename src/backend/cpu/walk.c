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

void walk(const struct bk_io *io, void (*run)(const struct bk_io *io, const struct walk_run *r))
{
    const struct plan p = plan_of(io->call);
    const int64_t n = op_numel(&io->call->out[0]);
    if (n == 0)
        return;
    if (p.outer.rank == 0) { /* one run: divide it */
        const int64_t part = n >= CPU_GRAIN ? (n + io->threads - 1) / io->threads : n;
        CPU_PARALLEL(io, n)
        for (int64_t at = 0; at < n; at += part) {
            struct walk_run r = {.n = n - at < part ? n - at : part, .to = at};
            for (int i = 0; i < io->call->n_in; i++) {
                r.step[i] = p.step[i];
                r.at[i] = at * p.step[i];
            }
            run(io, &r);
        }
        return;
    }
    const int64_t rows = n / p.inner;
    CPU_PARALLEL(io, n)
    for (int64_t row = 0; row < rows; row++) {
        struct walk_run r = {.n = p.inner, .to = row * p.inner};
        int64_t left = row;
        for (int k = p.outer.rank - 1; k >= 0; k--) {
            const int64_t at = left % p.outer.dim[k];
            left /= p.outer.dim[k];
            for (int i = 0; i < io->call->n_in; i++)
                r.at[i] += at * p.stride[i][k];
        }
        for (int i = 0; i < io->call->n_in; i++)
            r.step[i] = p.step[i];
        run(io, &r);
    }
}
