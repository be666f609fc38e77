/* The convolution family, portable: for builds without oneDNN, and for what that does not take. Each tap is a product
 * of matrices over the positions where it meets the signal; no padded copy is made. Blocks of results are independent,
 * so they do not depend on the number of threads. */
#include "op/conv.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/product.h"

enum { BLOCK = 32 }; /* channels that one thread does at a time */

struct conv {
    int64_t n, c, l, o, m, k; /* x [n,c,l], w [o,c,k], y [n,o,m] */
    int64_t stride, padding, dilation;
    const float *x, *w, *y;
};

static struct conv conv_of(const struct op_call *c, const hone_type *x, const hone_type *w, const hone_type *y)
{
    const int64_t *a = c->attr.i;
    return (struct conv){.n = x->shape.dim[0],
                         .c = x->shape.dim[1],
                         .l = x->shape.dim[2],
                         .o = w->shape.dim[0],
                         .m = y->shape.dim[2],
                         .k = w->shape.dim[2],
                         .stride = a[CONV_STRIDE],
                         .padding = a[CONV_PADDING],
                         .dilation = a[CONV_DILATION]};
}

/* Results [*from, *from + count) meet the signal with tap k, the first at its position *at. */
static int64_t meet(const struct conv *q, int64_t k, int64_t *from, int64_t *at)
{
    const int64_t shift = q->padding - q->dilation * k; /* position = stride m - shift */
    const int64_t end = q->l + shift > 0 ? (q->l + shift - 1) / q->stride + 1 : 0;
    *from = shift > 0 ? (shift + q->stride - 1) / q->stride : 0;
    *at = q->stride * *from - shift;
    return (end < q->m ? end : q->m) - *from;
}

static int64_t blocks(int64_t channels)
{
    return (channels + BLOCK - 1) / BLOCK;
}

static int64_t block_size(int64_t channels, int64_t first)
{
    return channels - first < BLOCK ? channels - first : BLOCK;
}

static int64_t grain(const struct conv *q)
{
    return q->n * q->o * q->m * (q->c * q->k / 8 + 1);
}

static void forward_block(const struct conv *q, const float *bias, float *y, int64_t n, int64_t o)
{
    const int64_t size = block_size(q->o, o);
    int64_t from, at, count;
    y += (n * q->o + o) * q->m;
    for (int64_t i = 0; i < size; i++)
        for (int64_t m = 0; m < q->m; m++)
            y[i * q->m + m] = bias ? bias[o + i] : 0;
    for (int64_t k = 0; k < q->k; k++)
        if ((count = meet(q, k, &from, &at)) > 0)
            cpu_product(&(struct cpu_product){.m = size,
                                              .k = q->c,
                                              .n = count,
                                              .a = q->w + o * q->c * q->k + k,
                                              .a_row = q->c * q->k,
                                              .a_col = q->k,
                                              .b = q->x + n * q->c * q->l + at,
                                              .b_row = q->l,
                                              .b_col = q->stride,
                                              .c = y + from,
                                              .c_row = q->m,
                                              .c_col = 1,
                                              .add = true});
}

static void data_grad_block(const struct conv *q, float *dx, int64_t n, int64_t c)
{
    const int64_t size = block_size(q->c, c);
    int64_t from, at, count;
    dx += (n * q->c + c) * q->l;
    for (int64_t i = 0; i < size * q->l; i++)
        dx[i] = 0;
    for (int64_t k = 0; k < q->k; k++)
        if ((count = meet(q, k, &from, &at)) > 0)
            cpu_product(&(struct cpu_product){.m = size,
                                              .k = q->o,
                                              .n = count,
                                              .a = q->w + c * q->k + k,
                                              .a_row = q->k,
                                              .a_col = q->c * q->k,
                                              .b = q->y + n * q->o * q->m + from,
                                              .b_row = q->m,
                                              .b_col = 1,
                                              .c = dx + at,
                                              .c_row = q->l,
                                              .c_col = q->stride,
                                              .add = true});
}

static void weight_grad_block(const struct conv *q, float *dw, int64_t o, int64_t c)
{
    const int64_t rows = block_size(q->o, o), cols = block_size(q->c, c);
    int64_t from, at, count;
    dw += (o * q->c + c) * q->k;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols * q->k; j++)
            dw[i * q->c * q->k + j] = 0;
    for (int64_t n = 0; n < q->n; n++)
        for (int64_t k = 0; k < q->k; k++)
            if ((count = meet(q, k, &from, &at)) > 0)
                cpu_product(&(struct cpu_product){.m = rows,
                                                  .k = count,
                                                  .n = cols,
                                                  .a = q->y + (n * q->o + o) * q->m + from,
                                                  .a_row = q->m,
                                                  .a_col = 1,
                                                  .b = q->x + (n * q->c + c) * q->l + at,
                                                  .b_row = q->stride,
                                                  .b_col = q->l,
                                                  .c = dw + k,
                                                  .c_row = q->c * q->k,
                                                  .c_col = q->k,
                                                  .add = true});
}

/* The blocks of all results: `per` in each sample or row of blocks. */
struct job {
    struct conv q;
    const float *bias; /* nullable */
    float *out;
    int64_t per;
};

static void forward_blocks(void *arg, int64_t from, int64_t to)
{
    const struct job *j = arg;
    for (int64_t i = from; i < to; i++)
        forward_block(&j->q, j->bias, j->out, i / j->per, i % j->per * BLOCK);
}

static void data_grad_blocks(void *arg, int64_t from, int64_t to)
{
    const struct job *j = arg;
    for (int64_t i = from; i < to; i++)
        data_grad_block(&j->q, j->out, i / j->per, i % j->per * BLOCK);
}

static void weight_grad_blocks(void *arg, int64_t from, int64_t to)
{
    const struct job *j = arg;
    for (int64_t i = from; i < to; i++)
        weight_grad_block(&j->q, j->out, i / j->per * BLOCK, i % j->per * BLOCK);
}

static hone_status conv1d_run(const struct bk_io *io, hone_err *err)
{
    const struct op_call *c = io->call;
    struct job j = {.q = conv_of(c, &c->in[0], &c->in[1], &c->out[0]), .out = io->out[0]};
    (void)err;
    j.q.x = io->in[0];
    j.q.w = io->in[1];
    j.bias = c->n_in == 3 ? io->in[2] : NULL;
    j.per = blocks(j.q.o);
    cpu_split(io, j.q.n * j.per, grain(&j.q), forward_blocks, &j);
    return HONE_OK;
}

static hone_status data_grad_run(const struct bk_io *io, hone_err *err)
{
    const struct op_call *c = io->call;
    struct job j = {.q = conv_of(c, &c->out[0], &c->in[1], &c->in[0]), .out = io->out[0]};
    (void)err;
    j.q.y = io->in[0];
    j.q.w = io->in[1];
    j.per = blocks(j.q.c);
    cpu_split(io, j.q.n * j.per, grain(&j.q), data_grad_blocks, &j);
    return HONE_OK;
}

static hone_status weight_grad_run(const struct bk_io *io, hone_err *err)
{
    const struct op_call *c = io->call;
    struct job j = {.q = conv_of(c, &c->in[0], &c->out[0], &c->in[1]), .out = io->out[0]};
    (void)err;
    j.q.x = io->in[0];
    j.q.y = io->in[1];
    j.per = blocks(j.q.c);
    cpu_split(io, blocks(j.q.o) * j.per, grain(&j.q), weight_grad_blocks, &j);
    return HONE_OK;
}

const struct bk_kernel cpu_conv1d = {.op = "conv1d", .run = conv1d_run};
const struct bk_kernel cpu_conv1d_data_grad = {.op = "conv1d_data_grad", .run = data_grad_run};
const struct bk_kernel cpu_conv1d_weight_grad = {.op = "conv1d_weight_grad", .run = weight_grad_run};
