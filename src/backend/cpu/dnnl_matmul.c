/* matmul and linear with oneDNN. */
#ifdef HONE_DNNL
#include "backend/cpu/cpu.h"
#include "backend/cpu/dnnl.h"
#include "backend/cpu/product.h"

/* The operands stand as they do in the call; a transposed one is a matter of strides. */
static struct cpu_dnnl_tensor matrices(const struct cpu_matmul *q, const int64_t *step, int64_t rows, int64_t cols,
                                       bool transposed)
{
    struct cpu_dnnl_tensor t = {.shape = {q->lead.rank + 2, {0}}};
    const int r = q->lead.rank;
    for (int i = 0; i < r; i++) {
        t.shape.dim[i] = step && !step[i] ? 1 : q->lead.dim[i];
        t.stride[i] = (step && step[i] ? step[i] : 1) * rows * cols;
    }
    t.shape.dim[r] = rows;
    t.shape.dim[r + 1] = cols;
    t.stride[r] = transposed ? 1 : cols;
    t.stride[r + 1] = transposed ? rows : 1;
    return t;
}

static struct cpu_dnnl_spec spec_of(const struct cpu_matmul *q, bool bias)
{
    struct cpu_dnnl_spec s = {.kind = CPU_DNNL_MATMUL};
    s.t[CPU_DNNL_X] = matrices(q, q->a, q->m, q->k, q->ta);
    s.t[CPU_DNNL_W] = matrices(q, q->b, q->k, q->n, q->tb);
    if (bias)
        s.t[CPU_DNNL_B] = cpu_dnnl_plain(HONE_SHAPE(1, q->n), false);
    hone_shape y = q->lead;
    y.dim[y.rank++] = q->m;
    y.dim[y.rank++] = q->n;
    s.t[CPU_DNNL_Y] = cpu_dnnl_plain(y, false);
    return s;
}

static struct cpu_dnnl_spec spec_of_call(const struct op_call *c)
{
    const bool linear = c->def == &op_linear;
    const struct cpu_matmul q = linear ? cpu_linear_of(c) : cpu_matmul_of(c);
    return spec_of(&q, linear && c->n_in == 3);
}

static bool accepts(const struct op_call *c)
{
    return op_numel(&c->out[0]) > 0 && op_numel(&c->in[0]) > 0;
}

static size_t scratch(const struct op_call *c, int threads)
{
    const struct cpu_dnnl_spec s = spec_of_call(c);
    return cpu_dnnl_scratch(&s, threads);
}

static hone_status prepare(struct bk_dev *dev, const struct op_call *c, int threads, void **state, hone_err *err)
{
    const struct cpu_dnnl_spec s = spec_of_call(c);
    return cpu_dnnl_create(dev, c->def->name, &s, threads, state, err);
}

static hone_status run(const struct bk_io *io, hone_err *err)
{
    const void *t[CPU_DNNL_TENSORS] = {[CPU_DNNL_X] = io->in[0],
                                       [CPU_DNNL_W] = io->in[1],
                                       [CPU_DNNL_B] = io->call->n_in == 3 ? io->in[2] : NULL,
                                       [CPU_DNNL_Y] = io->out[0]};
    return cpu_dnnl_run(io, t, err);
}

#define PRODUCT(name)                                                                                                  \
    const struct bk_kernel cpu_dnnl_##name = {.op = #name,                                                             \
                                              .accepts = accepts,                                                      \
                                              .scratch = scratch,                                                      \
                                              .prepare = prepare,                                                      \
                                              .release = cpu_dnnl_release,                                             \
                                              .run = run};
PRODUCT(matmul)
PRODUCT(linear)
#else
typedef int no_dnnl_matmul; /* a file needs a declaration */
#endif
