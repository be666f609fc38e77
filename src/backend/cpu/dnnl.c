#ifdef HONE_DNNL
#include "backend/cpu/dnnl.h"

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

#include "backend/cpu/cpu.h"

/* Version 3 made memory descriptors objects behind pointers; in 2 they are plain structs. */
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t md_ref;
#define MD(m) (m)
#else
typedef const dnnl_memory_desc_t *md_ref;
#define MD(m) (&(m))
#endif

enum { MAX_ARGS = CPU_DNNL_TENSORS + 1 };

/* A primitive and what it is run with. */
struct launch {
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    dnnl_memory_t own; /* its scratch memory */
    dnnl_exec_arg_t args[MAX_ARGS];
    int n_args;
};

struct tensor {
    int arg; /* what the primitive calls it; 0: there is none */
    bool result;
    dnnl_memory_desc_t plain, asked; /* as hone has it; as oneDNN was asked for it */
    dnnl_memory_t memory, inner;     /* as hone has it; as the primitive wants it, if that differs */
    size_t at;                       /* of `inner` in scratch memory */
    struct launch reorder;
};

struct state {
    dnnl_stream_t stream; /* each its own: a stream is not meant for two threads */
    struct launch main;
    struct tensor t[CPU_DNNL_TENSORS];
    size_t bytes;
};

/* --- what differs between versions --- */

static dnnl_status_t make_md(dnnl_memory_desc_t *m, const struct cpu_dnnl_tensor *t, bool free)
{
    dnnl_dims_t dim = {0}, stride = {0}; /* longer than hone's shapes */
    const int rank = t->shape.rank;
    for (int i = 0; i < rank; i++) {
        dim[i] = t->shape.dim[i];
        stride[i] = t->stride[i];
    }
#if DNNL_VERSION_MAJOR >= 3
    return free ? dnnl_memory_desc_create_with_tag(m, rank, dim, dnnl_f32, dnnl_format_tag_any)
                : dnnl_memory_desc_create_with_strides(m, rank, dim, dnnl_f32, stride);
#else
    return free ? dnnl_memory_desc_init_by_tag(m, rank, dim, dnnl_f32, dnnl_format_tag_any)
                : dnnl_memory_desc_init_by_strides(m, rank, dim, dnnl_f32, stride);
#endif
}

static void drop_md(dnnl_memory_desc_t *m)
{
#if DNNL_VERSION_MAJOR >= 3
    if (*m)
        dnnl_memory_desc_destroy(*m);
#else
    (void)m;
#endif
}

#if DNNL_VERSION_MAJOR >= 3
static dnnl_status_t describe_matmul(dnnl_primitive_desc_t *desc, dnnl_engine_t e, struct tensor *t,
                                     const_dnnl_primitive_attr_t attr)
{
    return dnnl_matmul_primitive_desc_create(desc, e, t[CPU_DNNL_X].asked, t[CPU_DNNL_W].asked, t[CPU_DNNL_B].asked,
                                             t[CPU_DNNL_Y].asked, attr);
}

static dnnl_status_t describe_conv(dnnl_primitive_desc_t *desc, dnnl_engine_t e, const struct cpu_dnnl_spec *s,
                                   enum cpu_dnnl_kind kind, dnnl_primitive_desc_t forward, struct tensor *t,
                                   const_dnnl_primitive_attr_t attr)
{
    const dnnl_dims_t stride = {s->stride}, dilation = {s->dilation - 1}, padding = {s->padding};
    md_ref x = t[CPU_DNNL_X].asked, w = t[CPU_DNNL_W].asked, b = t[CPU_DNNL_B].asked, y = t[CPU_DNNL_Y].asked;
    if (kind == CPU_DNNL_CONV)
        return dnnl_convolution_forward_primitive_desc_create(desc, e, dnnl_forward_training, dnnl_convolution_direct,
                                                              x, w, b, y, stride, dilation, padding, padding, attr);
    if (kind == CPU_DNNL_DATA_GRAD)
        return dnnl_convolution_backward_data_primitive_desc_create(desc, e, dnnl_convolution_direct, x, w, y, stride,
                                                                    dilation, padding, padding, forward, attr);
    return dnnl_convolution_backward_weights_primitive_desc_create(desc, e, dnnl_convolution_direct, x, w, b, y, stride,
                                                                   dilation, padding, padding, forward, attr);
}
#else
static dnnl_status_t describe_matmul(dnnl_primitive_desc_t *desc, dnnl_engine_t e, struct tensor *t,
                                     const_dnnl_primitive_attr_t attr)
{
    dnnl_matmul_desc_t d;
    dnnl_status_t s = dnnl_matmul_desc_init(&d, &t[CPU_DNNL_X].asked, &t[CPU_DNNL_W].asked, &t[CPU_DNNL_B].asked,
                                            &t[CPU_DNNL_Y].asked);
    return s == dnnl_success ? dnnl_primitive_desc_create(desc, &d, attr, e, NULL) : s;
}

static dnnl_status_t describe_conv(dnnl_primitive_desc_t *desc, dnnl_engine_t e, const struct cpu_dnnl_spec *s,
                                   enum cpu_dnnl_kind kind, dnnl_primitive_desc_t forward, struct tensor *t,
                                   const_dnnl_primitive_attr_t attr)
{
    const dnnl_dims_t stride = {s->stride}, dilation = {s->dilation - 1}, padding = {s->padding};
    md_ref x = &t[CPU_DNNL_X].asked, w = &t[CPU_DNNL_W].asked, b = &t[CPU_DNNL_B].asked, y = &t[CPU_DNNL_Y].asked;
    dnnl_convolution_desc_t d;
    dnnl_status_t status;
    if (kind == CPU_DNNL_CONV)
        status = dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_training, dnnl_convolution_direct, x, w, b,
                                                            y, stride, dilation, padding, padding);
    else if (kind == CPU_DNNL_DATA_GRAD)
        status = dnnl_dilated_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, x, w, y, stride,
                                                                  dilation, padding, padding);
    else
        status = dnnl_dilated_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, x, w, b, y, stride,
                                                                     dilation, padding, padding);
    return status == dnnl_success ? dnnl_primitive_desc_create(desc, &d, attr, e, forward) : status;
}
#endif

/* --- description: layouts and sizes --- */

/* What the primitive of `kind` calls the tensors; the result is the last. */
static const int arg_names[][CPU_DNNL_TENSORS] = {
    [CPU_DNNL_MATMUL] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST},
    [CPU_DNNL_CONV] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST},
    [CPU_DNNL_DATA_GRAD] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, 0, DNNL_ARG_DIFF_DST},
    [CPU_DNNL_WEIGHT_GRAD] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS, DNNL_ARG_DIFF_DST},
};
static const int results[] = {[CPU_DNNL_MATMUL] = CPU_DNNL_Y,
                              [CPU_DNNL_CONV] = CPU_DNNL_Y,
                              [CPU_DNNL_DATA_GRAD] = CPU_DNNL_X,
                              [CPU_DNNL_WEIGHT_GRAD] = CPU_DNNL_W};

static size_t align(size_t n)
{
    return (n + 63) & ~(size_t)63;
}

static md_ref own_scratch(const struct launch *l)
{
    return dnnl_primitive_desc_query_md(l->desc, dnnl_query_scratchpad_md, 0);
}

static md_ref wanted(const struct state *s, int i)
{
    return dnnl_primitive_desc_query_md(s->main.desc, dnnl_query_exec_arg_md, s->t[i].arg);
}

static dnnl_status_t describe_tensors(struct state *s, const struct cpu_dnnl_spec *spec)
{
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < CPU_DNNL_TENSORS && status == dnnl_success; i++) {
        if (spec->t[i].shape.rank == 0)
            continue;
        s->t[i].arg = arg_names[spec->kind][i];
        s->t[i].result = results[spec->kind] == i;
        status = make_md(&s->t[i].plain, &spec->t[i], false);
        if (status == dnnl_success)
            status = make_md(&s->t[i].asked, &spec->t[i], spec->t[i].free);
    }
    return status;
}

static dnnl_status_t describe_main(struct state *s, dnnl_engine_t e, const struct cpu_dnnl_spec *spec,
                                   const_dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t forward = NULL;
    if (spec->kind == CPU_DNNL_MATMUL)
        return describe_matmul(&s->main.desc, e, s->t, attr);
    dnnl_status_t status = describe_conv(&forward, e, spec, CPU_DNNL_CONV, NULL, s->t, attr);
    if (spec->kind == CPU_DNNL_CONV) {
        s->main.desc = forward;
        return status;
    }
    if (status == dnnl_success) /* a gradient is asked for with its forward as a hint */
        status = describe_conv(&s->main.desc, e, spec, spec->kind, forward, s->t, attr);
    if (forward)
        dnnl_primitive_desc_destroy(forward);
    return status;
}

/* Where oneDNN wants a tensor in another layout: the reorder, and its place behind the primitives' own scratch. */
static dnnl_status_t describe_reorders(struct state *s, dnnl_engine_t e, const_dnnl_primitive_attr_t attr)
{
    size_t own = dnnl_memory_desc_get_size(own_scratch(&s->main));
    for (int i = 0; i < CPU_DNNL_TENSORS; i++) {
        struct tensor *t = &s->t[i];
        if (!t->arg || dnnl_memory_desc_equal(MD(t->plain), wanted(s, i)))
            continue;
        md_ref from = t->result ? wanted(s, i) : MD(t->plain), to = t->result ? MD(t->plain) : wanted(s, i);
        dnnl_status_t status = dnnl_reorder_primitive_desc_create(&t->reorder.desc, from, e, to, e, attr);
        if (status != dnnl_success)
            return status;
        size_t n = dnnl_memory_desc_get_size(own_scratch(&t->reorder));
        own = own > n ? own : n;
    }
    s->bytes = align(own);
    for (int i = 0; i < CPU_DNNL_TENSORS; i++)
        if (s->t[i].reorder.desc) {
            s->t[i].at = s->bytes;
            s->bytes += align(dnnl_memory_desc_get_size(wanted(s, i)));
        }
    return dnnl_success;
}

/* The result holds something already: the sum of both. */
static dnnl_status_t append_sum(dnnl_primitive_attr_t attr)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_post_ops_create(&ops);
#if DNNL_VERSION_MAJOR >= 3
    if (status == dnnl_success)
        status = dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef);
#else
    if (status == dnnl_success)
        status = dnnl_post_ops_append_sum(ops, 1);
#endif
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(attr, ops);
    if (ops)
        dnnl_post_ops_destroy(ops);
    return status;
}

static dnnl_status_t describe(struct state *s, dnnl_engine_t e, const struct cpu_dnnl_spec *spec)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(&attr);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success && spec->add)
        status = append_sum(attr);
    if (status == dnnl_success)
        status = describe_tensors(s, spec);
    if (status == dnnl_success)
        status = describe_main(s, e, spec, attr);
    if (status == dnnl_success)
        status = describe_reorders(s, e, attr);
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return status;
}

/* --- primitives and memory --- */

static dnnl_status_t make_launch(struct launch *l, dnnl_engine_t e)
{
    dnnl_status_t status = dnnl_primitive_create(&l->primitive, l->desc);
    if (status != dnnl_success || dnnl_memory_desc_get_size(own_scratch(l)) == 0)
        return status;
    status = dnnl_memory_create(&l->own, own_scratch(l), e, DNNL_MEMORY_NONE);
    l->args[l->n_args++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, l->own};
    return status;
}

static dnnl_status_t make_tensor(struct state *s, int i, dnnl_engine_t e)
{
    struct tensor *t = &s->t[i];
    dnnl_status_t status = dnnl_memory_create(&t->memory, MD(t->plain), e, DNNL_MEMORY_NONE);
    if (status == dnnl_success && t->reorder.desc) {
        status = dnnl_memory_create(&t->inner, wanted(s, i), e, DNNL_MEMORY_NONE);
        if (status == dnnl_success)
            status = make_launch(&t->reorder, e);
        t->reorder.args[t->reorder.n_args++] = (dnnl_exec_arg_t){DNNL_ARG_FROM, t->result ? t->inner : t->memory};
        t->reorder.args[t->reorder.n_args++] = (dnnl_exec_arg_t){DNNL_ARG_TO, t->result ? t->memory : t->inner};
    }
    s->main.args[s->main.n_args++] = (dnnl_exec_arg_t){t->arg, t->inner ? t->inner : t->memory};
    return status;
}

static dnnl_status_t make_all(struct state *s, dnnl_engine_t e)
{
    dnnl_status_t status = dnnl_stream_create(&s->stream, e, dnnl_stream_default_flags);
    if (status == dnnl_success)
        status = make_launch(&s->main, e);
    for (int i = 0; i < CPU_DNNL_TENSORS && status == dnnl_success; i++)
        if (s->t[i].arg)
            status = make_tensor(s, i, e);
    return status;
}

static void drop_launch(struct launch *l)
{
    if (l->own)
        dnnl_memory_destroy(l->own);
    if (l->primitive)
        dnnl_primitive_destroy(l->primitive);
    if (l->desc)
        dnnl_primitive_desc_destroy(l->desc);
}

static void drop(struct state *s)
{
    for (int i = 0; i < CPU_DNNL_TENSORS; i++) {
        struct tensor *t = &s->t[i];
        drop_launch(&t->reorder);
        if (t->memory)
            dnnl_memory_destroy(t->memory);
        if (t->inner)
            dnnl_memory_destroy(t->inner);
        drop_md(&t->plain);
        drop_md(&t->asked);
    }
    drop_launch(&s->main);
    if (s->stream)
        dnnl_stream_destroy(s->stream);
}

static hone_status told(dnnl_status_t status, const char *where, const char *what, hone_err *err)
{
    if (status == dnnl_success)
        return HONE_OK;
    return err_set(err, status == dnnl_out_of_memory ? HONE_E_NOMEM : HONE_E_DEVICE, where, "oneDNN: %s: %s", what,
                   dnnl_status2str(status));
}

/* --- what kernels call --- */

struct cpu_dnnl_tensor cpu_dnnl_plain(hone_shape shape, bool free)
{
    struct cpu_dnnl_tensor t = {.shape = shape, .free = free};
    int64_t step = 1;
    for (int i = shape.rank - 1; i >= 0; i--) {
        t.stride[i] = step;
        step *= shape.dim[i];
    }
    return t;
}

void *cpu_dnnl_open(hone_err *err)
{
    dnnl_engine_t e = NULL;
    told(dnnl_engine_create(&e, dnnl_cpu, 0), "cpu", "no engine", err);
    return e;
}

void cpu_dnnl_close(void *engine)
{
    if (engine)
        dnnl_engine_destroy(engine);
}

/* A plan is made before there is a device to ask, so the engine is one for the question. */
size_t cpu_dnnl_scratch(const struct cpu_dnnl_spec *spec, int threads)
{
    struct state s = {0};
    dnnl_engine_t e = cpu_dnnl_open(NULL);
    size_t bytes = (size_t)1 << 48; /* no plan has room for it */
    int before = cpu_team(threads);
    if (e && describe(&s, e, spec) == dnnl_success)
        bytes = s.bytes;
    drop(&s);
    cpu_team(before);
    cpu_dnnl_close(e);
    return bytes;
}

hone_status cpu_dnnl_create(struct bk_dev *dev, const char *op, const struct cpu_dnnl_spec *spec, int threads,
                            void **state, hone_err *err)
{
    struct state *s = *state = mem_alloc(&dev->ctx->mem, sizeof *s);
    if (!s)
        return err_set(err, HONE_E_NOMEM, op, "no memory for a kernel");
    int before = cpu_team(threads);
    dnnl_status_t status = describe(s, dev->dnnl, spec);
    if (status == dnnl_success)
        status = make_all(s, dev->dnnl);
    cpu_team(before);
    if (status == dnnl_success)
        return HONE_OK;
    cpu_dnnl_release(dev, s);
    *state = NULL;
    return told(status, op, "the primitive cannot be made", err);
}

void cpu_dnnl_release(struct bk_dev *dev, void *state)
{
    if (!state)
        return;
    drop(state);
    mem_free(&dev->ctx->mem, state);
}

static dnnl_status_t point(struct state *s, const void *const t[CPU_DNNL_TENSORS], char *scratch)
{
    dnnl_status_t status = dnnl_success;
    if (s->main.own)
        status = dnnl_memory_set_data_handle(s->main.own, scratch);
    for (int i = 0; i < CPU_DNNL_TENSORS && status == dnnl_success; i++) {
        if (!s->t[i].arg)
            continue;
        status = dnnl_memory_set_data_handle(s->t[i].memory, (void *)t[i]); /* operands are only read */
        if (status == dnnl_success && s->t[i].inner)
            status = dnnl_memory_set_data_handle(s->t[i].inner, scratch + s->t[i].at);
        if (status == dnnl_success && s->t[i].reorder.own)
            status = dnnl_memory_set_data_handle(s->t[i].reorder.own, scratch);
    }
    return status;
}

static dnnl_status_t launch(const struct state *s, const struct launch *l)
{
    return dnnl_primitive_execute(l->primitive, s->stream, l->n_args, l->args);
}

static dnnl_status_t reorder(const struct state *s, bool result)
{
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < CPU_DNNL_TENSORS && status == dnnl_success; i++)
        if (s->t[i].inner && s->t[i].result == result)
            status = launch(s, &s->t[i].reorder);
    return status;
}

int cpu_dnnl_execute(void *state, const void *const t[CPU_DNNL_TENSORS], void *scratch, int threads)
{
    struct state *s = state;
    int before = cpu_team(threads);
    dnnl_status_t status = point(s, t, scratch);
    if (status == dnnl_success)
        status = reorder(s, false);
    if (status == dnnl_success)
        status = launch(s, &s->main);
    if (status == dnnl_success)
        status = reorder(s, true);
    if (status == dnnl_success)
        status = dnnl_stream_wait(s->stream);
    cpu_team(before);
    return (int)status;
}

hone_status cpu_dnnl_tell(int status, const char *where, const char *what, hone_err *err)
{
    return told((dnnl_status_t)status, where, what, err);
}

hone_status cpu_dnnl_run(const struct bk_io *io, const void *const t[CPU_DNNL_TENSORS], hone_err *err)
{
    return cpu_dnnl_tell(cpu_dnnl_execute(io->state, t, io->scratch, io->threads), io->layer, io->call->def->name, err);
}

int cpu_dnnl_version(void)
{
    const dnnl_version_t *v = dnnl_version();
    return v->major * 10000 + v->minor * 100 + v->patch;
}
#else
typedef int no_dnnl; /* a file needs a declaration */
#endif
