/* matmul and linear, portable: for builds without oneDNN, and for what that does not take. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/product.h"

enum { BLOCK = 64 }; /* rows and columns that one thread does at a time */

/* The part of the result that block `at` is: matrices outermost, then rows, then columns of blocks. */
static void block(const struct bk_io *io, const struct cpu_matmul *q, const float *bias, int64_t at)
{
    const int64_t across = (q->n + BLOCK - 1) / BLOCK, down = (q->m + BLOCK - 1) / BLOCK;
    const int64_t j0 = at % across * BLOCK, i0 = at / across % down * BLOCK, matrix = at / across / down;
    int64_t a = 0, b = 0, left = matrix;
    for (int d = q->lead.rank - 1; d >= 0; d--) {
        a += left % q->lead.dim[d] * q->a[d];
        b += left % q->lead.dim[d] * q->b[d];
        left /= q->lead.dim[d];
    }
    struct cpu_product p = {.m = q->m - i0 < BLOCK ? q->m - i0 : BLOCK,
                            .k = q->k,
                            .n = q->n - j0 < BLOCK ? q->n - j0 : BLOCK,
                            .a_row = q->ta ? 1 : q->k,
                            .a_col = q->ta ? q->m : 1,
                            .b_row = q->tb ? 1 : q->n,
                            .b_col = q->tb ? q->k : 1,
                            .c_row = q->n,
                            .c_col = 1,
                            .add = bias != NULL};
    p.a = (const float *)io->in[0] + a * q->m * q->k + i0 * p.a_row;
    p.b = (const float *)io->in[1] + b * q->k * q->n + j0 * p.b_col;
    p.c = (float *)io->out[0] + (matrix * q->m + i0) * q->n + j0;
    for (int64_t i = 0; bias && i < p.m; i++)
        memcpy(p.c + i * p.c_row, bias + j0, (size_t)p.n * sizeof *bias);
    cpu_product(&p);
}

struct job {
    const struct bk_io *io;
    struct cpu_matmul q;
    const float *bias; /* nullable */
};

static void run_blocks(void *arg, int64_t from, int64_t to)
{
    const struct job *j = arg;
    for (int64_t at = from; at < to; at++)
        block(j->io, &j->q, j->bias, at);
}

static hone_status run(const struct bk_io *io, struct cpu_matmul q, const float *bias)
{
    const int64_t matrices = hone_numel(&q.lead);
    const int64_t blocks = matrices * ((q.m + BLOCK - 1) / BLOCK) * ((q.n + BLOCK - 1) / BLOCK);
    struct job j = {io, q, bias};
    cpu_split(io, blocks, matrices * q.m * q.n * (q.k / 8 + 1), run_blocks, &j);
    return HONE_OK;
}

static hone_status matmul_run(const struct bk_io *io, hone_err *err)
{
    (void)err;
    if (op_numel(&io->call->out[0]) == 0)
        return HONE_OK;
    return run(io, cpu_matmul_of(io->call), NULL);
}

static hone_status linear_run(const struct bk_io *io, hone_err *err)
{
    (void)err;
    if (op_numel(&io->call->out[0]) == 0)
        return HONE_OK;
    return run(io, cpu_linear_of(io->call), io->call->n_in == 3 ? io->in[2] : NULL);
}

const struct bk_kernel cpu_matmul = {.op = "matmul", .run = matmul_run};
const struct bk_kernel cpu_linear = {.op = "linear", .run = linear_run};
