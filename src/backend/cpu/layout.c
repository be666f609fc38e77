/* Kernels that only move elements. */
#include <string.h>

#include "backend/cpu/cpu.h"

/* Elements before and after an axis. */
static void split(const hone_shape *s, int64_t axis, int64_t *outer, int64_t *inner)
{
    *outer = *inner = 1;
    for (int i = 0; i < s->rank; i++) {
        *outer *= i < axis ? s->dim[i] : 1;
        *inner *= i > axis ? s->dim[i] : 1;
    }
}

static hone_status slice_run(const struct bk_io *io, hone_err *err)
{
    const struct op_call *c = io->call;
    int64_t axis = c->attr.i[0], outer, inner, d = c->in[0].shape.dim[axis];
    const size_t size = hone_dtype_size(c->in[0].dtype);
    const char *x = io->in[0];
    char *y = io->out[0];
    (void)err;
    split(&c->in[0].shape, axis, &outer, &inner);
    const size_t run = (size_t)(c->attr.i[2] * inner) * size;
    for (int64_t o = 0; run && o < outer; o++)
        memcpy(y + (size_t)o * run, x + (size_t)((o * d + c->attr.i[1]) * inner) * size, run);
    return HONE_OK;
}

static bool is_f32(const struct op_call *c)
{
    return c->in[0].dtype == HONE_F32;
}

static hone_status pad_run(const struct bk_io *io, hone_err *err)
{
    const struct op_call *c = io->call;
    int64_t axis = c->attr.i[0], outer, inner, d = c->in[0].shape.dim[axis], e = c->out[0].shape.dim[axis];
    const float *x = io->in[0];
    float *y = io->out[0];
    const float value = (float)c->attr.f[0];
    (void)err;
    split(&c->in[0].shape, axis, &outer, &inner);
    for (int64_t o = 0; o < outer; o++) {
        float *row = y + o * e * inner;
        const int64_t before = c->attr.i[1] * inner, middle = d * inner, all = e * inner;
        for (int64_t i = 0; i < before; i++)
            row[i] = value;
        if (middle)
            memcpy(row + before, x + o * middle, (size_t)middle * sizeof(float));
        for (int64_t i = before + middle; i < all; i++)
            row[i] = value;
    }
    return HONE_OK;
}

#define BROADCAST(T)                                                                                                   \
    do {                                                                                                               \
        const T *x = io->in[0];                                                                                        \
        T *y = io->out[0];                                                                                             \
        for (int64_t r = 0; r < n / last; r++) {                                                                       \
            int64_t left = r, at = 0;                                                                                  \
            for (int k = s->rank - 2; k >= 0; k--) {                                                                   \
                at += left % s->dim[k] * stride[k];                                                                    \
                left /= s->dim[k];                                                                                     \
            }                                                                                                          \
            for (int64_t i = 0; i < last; i++)                                                                         \
                y[r * last + i] = x[at + i * step];                                                                    \
        }                                                                                                              \
    } while (0)

static hone_status broadcast_run(const struct bk_io *io, hone_err *err)
{
    const hone_shape *s = &io->call->out[0].shape;
    int64_t stride[HONE_MAX_RANK];
    const int64_t n = hone_numel(s);
    (void)err;
    if (n == 0)
        return HONE_OK;
    op_strides(&io->call->in[0].shape, s, stride);
    const int64_t last = s->rank ? s->dim[s->rank - 1] : 1, step = s->rank ? stride[s->rank - 1] : 0;
    if (hone_dtype_size(io->call->in[0].dtype) == 4)
        BROADCAST(uint32_t);
    else
        BROADCAST(uint8_t);
    return HONE_OK;
}

static bool bytes_1_or_4(const struct op_call *c)
{
    size_t n = hone_dtype_size(c->in[0].dtype);
    return n == 1 || n == 4;
}

const struct bk_kernel cpu_slice = {.op = "slice", .run = slice_run};
const struct bk_kernel cpu_pad = {.op = "pad", .accepts = is_f32, .run = pad_run};
const struct bk_kernel cpu_broadcast = {.op = "broadcast", .accepts = bytes_1_or_4, .run = broadcast_run};
