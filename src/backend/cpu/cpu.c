/* The CPU as a device: memory is the host's, launches run at once. */
#include "backend/cpu/cpu.h"

#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "backend/cpu/dnnl.h"

int cpu_team(int threads)
{
#ifdef _OPENMP
    int before = omp_get_max_threads();
    if (before != threads)
        omp_set_num_threads(threads);
    return before;
#else
    (void)threads;
    return 1;
#endif
}

enum cpu_vectors cpu_vectors(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw"))
        return CPU_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return CPU_AVX2;
#endif
    return CPU_PLAIN;
}

void cpu_share(const struct bk_io *io, team_fn fn, void *arg, int32_t items)
{
    if (io->threads > 1)
        team_run(io->dev->team, fn, arg, items);
    else
        for (int32_t i = 0; i < items; i++)
            fn(arg, i);
}

struct split {
    cpu_range_fn fn;
    void *arg;
    int64_t n;
    int32_t parts;
};

static void split_part(void *arg, int32_t item)
{
    const struct split *s = arg;
    s->fn(s->arg, s->n * item / s->parts, s->n * (item + 1) / s->parts);
}

void cpu_split(const struct bk_io *io, int64_t n, int64_t work, cpu_range_fn fn, void *arg)
{
    struct split s = {fn, arg, n, n < io->threads ? (int32_t)n : io->threads};
    if (work < CPU_GRAIN || s.parts < 2)
        fn(arg, 0, n);
    else
        cpu_share(io, split_part, &s, s.parts);
}

static void cpu_close(struct bk_dev *d)
{
    if (!d)
        return;
#ifdef HONE_DNNL
    cpu_dnnl_close(d->dnnl);
#endif
    team_destroy(d->team);
    mem_free(&d->ctx->mem, d);
}

static struct bk_dev *cpu_open(hone_ctx *ctx, hone_err *err)
{
    struct bk_dev *d = mem_alloc(&ctx->mem, sizeof *d);
    if (!d) {
        err_set(err, HONE_E_NOMEM, "cpu", "no memory for the device");
        return NULL;
    }
    d->ctx = ctx;
    d->team = team_create(ctx, ctx->threads, err);
    if (!d->team) {
        cpu_close(d);
        return NULL;
    }
#ifdef HONE_DNNL
    d->dnnl = cpu_dnnl_open(err);
    if (!d->dnnl) {
        cpu_close(d);
        return NULL;
    }
#endif
    return d;
}

static void *cpu_alloc(struct bk_dev *d, size_t bytes)
{
    return mem_alloc(&d->ctx->mem, bytes);
}

static void cpu_release(struct bk_dev *d, void *p)
{
    mem_free(&d->ctx->mem, p);
}

static hone_status cpu_copy(struct bk_dev *d, void *dst, const void *src, size_t bytes, hone_err *err)
{
    (void)d;
    (void)err;
    memmove(dst, src, bytes);
    return HONE_OK;
}

static hone_status cpu_sync(struct bk_dev *d, hone_err *err)
{
    (void)d;
    (void)err;
    return HONE_OK;
}

static const struct bk_kernel *cpu_find(const struct op_call *c)
{
    static const struct bk_kernel *const kernels[] = {
#define KERNEL(name) &cpu_##name,
#include "backend/cpu/kernels.def"
#undef KERNEL
    };
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (!strcmp(kernels[i]->op, c->def->name) && (!kernels[i]->accepts || kernels[i]->accepts(c)))
            return kernels[i];
    return NULL;
}

const struct bk_def bk_cpu = {
    .name = "cpu",
    .doc = "this machine's processor",
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .release = cpu_release,
    .upload = cpu_copy,
    .copy = cpu_copy,
    .sync = cpu_sync,
    .find = cpu_find,
};
