/* The convolution family with oneDNN, which takes one-dimensional convolutions as they are. */
#ifdef HONE_DNNL
#include "backend/cpu/cpu.h"
#include "backend/cpu/dnnl.h"
#include "op/conv.h"

/* Where the tensors of each operation stand: operands by their number, the result as -1. */
struct places {
    enum cpu_dnnl_kind kind;
    int x, w, y;
};
static const struct places forward = {CPU_DNNL_CONV, 0, 1, -1};
static const struct places data_grad = {CPU_DNNL_DATA_GRAD, -1, 1, 0};
static const struct places weight_grad = {CPU_DNNL_WEIGHT_GRAD, 0, -1, 1};

static const struct places *places_of(const struct op_call *c)
{
    return c->def == &op_conv1d ? &forward : c->def == &op_conv1d_data_grad ? &data_grad : &weight_grad;
}

static hone_shape shape_at(const struct op_call *c, int place)
{
    return place < 0 ? c->out[0].shape : c->in[place].shape;
}

static struct cpu_dnnl_spec spec_of(const struct op_call *c)
{
    const struct places *p = places_of(c);
    struct cpu_dnnl_spec s = {.kind = p->kind,
                              .stride = c->attr.i[CONV_STRIDE],
                              .dilation = c->attr.i[CONV_DILATION],
                              .padding = c->attr.i[CONV_PADDING]};
    s.t[CPU_DNNL_X] = cpu_dnnl_plain(shape_at(c, p->x), true);
    s.t[CPU_DNNL_W] = cpu_dnnl_plain(shape_at(c, p->w), true);
    s.t[CPU_DNNL_Y] = cpu_dnnl_plain(shape_at(c, p->y), true);
    if (c->n_in == 3)
        s.t[CPU_DNNL_B] = cpu_dnnl_plain(c->in[2].shape, false);
    return s;
}

static bool accepts(const struct op_call *c)
{
    return op_numel(&c->out[0]) > 0 && op_numel(&c->in[0]) > 0 && op_numel(&c->in[1]) > 0;
}

static size_t scratch(const struct op_call *c, int threads)
{
    const struct cpu_dnnl_spec s = spec_of(c);
    return cpu_dnnl_scratch(&s, threads);
}

static hone_status prepare(struct bk_dev *dev, const struct op_call *c, int threads, void **state, hone_err *err)
{
    const struct cpu_dnnl_spec s = spec_of(c);
    return cpu_dnnl_create(dev, c->def->name, &s, threads, state, err);
}

static const void *at(const struct bk_io *io, int place)
{
    return place < 0 ? io->out[0] : io->in[place];
}

static hone_status run(const struct bk_io *io, hone_err *err)
{
    const struct places *p = places_of(io->call);
    const void *t[CPU_DNNL_TENSORS] = {[CPU_DNNL_X] = at(io, p->x),
                                       [CPU_DNNL_W] = at(io, p->w),
                                       [CPU_DNNL_B] = io->call->n_in == 3 ? io->in[2] : NULL,
                                       [CPU_DNNL_Y] = at(io, p->y)};
    return cpu_dnnl_run(io, t, err);
}

#define CONV(name)                                                                                                     \
    const struct bk_kernel cpu_dnnl_##name = {.op = #name,                                                             \
                                              .accepts = accepts,                                                      \
                                              .scratch = scratch,                                                      \
                                              .prepare = prepare,                                                      \
                                              .release = cpu_dnnl_release,                                             \
                                              .run = run};
CONV(conv1d)
CONV(conv1d_data_grad)
CONV(conv1d_weight_grad)
#else
typedef int no_dnnl_conv; /* a file needs a declaration */
#endif
