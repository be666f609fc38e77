/* Gradients of activations, dy f'(x). */
#include "backend/cpu/vmath.h"
#include "backend/cpu/wide.h"

struct slope {
    const float *x, *dy;
    float *dx;
};

/* Defines cpu_<name> from the slope of float x. */
#define SLOPE(name, f)                                                                                                 \
    WIDE_INLINE void name##_block(const struct slope *s, int64_t at, int64_t n)                                        \
    {                                                                                                                  \
        const float *x = s->x + at, *dy = s->dy + at;                                                                  \
        float *dx = s->dx + at;                                                                                        \
        CPU_SIMD                                                                                                       \
        for (int64_t i = 0; i < n; i++)                                                                                \
            dx[i] = dy[i] * f(x[i]);                                                                                   \
    }                                                                                                                  \
    WIDE_INLINE void name##_body(void *arg, int64_t from, int64_t to)                                                  \
    {                                                                                                                  \
        const struct slope *s = arg;                                                                                   \
        int64_t at = from;                                                                                             \
        for (; at + WIDE_BLOCK <= to; at += WIDE_BLOCK) {                                                              \
            wide_ask(s->x + at);                                                                                       \
            wide_ask(s->dy + at);                                                                                      \
            name##_block(s, at, WIDE_BLOCK);                                                                           \
        }                                                                                                              \
        name##_block(s, at, to - at);                                                                                  \
    }                                                                                                                  \
    WIDE(name)                                                                                                         \
    static hone_status name##_run(const struct bk_io *io, hone_err *err)                                               \
    {                                                                                                                  \
        struct slope s = {io->in[0], io->in[1], io->out[0]};                                                           \
        const int64_t n = op_numel(&io->call->out[0]);                                                                 \
        (void)err;                                                                                                     \
        cpu_split(io, n, n, name##_wide(), &s);                                                                        \
        return HONE_OK;                                                                                                \
    }                                                                                                                  \
    const struct bk_kernel cpu_##name = {.op = #name, .inplace = {3}, .run = name##_run};

SLOPE(mish_grad, v_mish_slope)
SLOPE(silu_grad, v_silu_slope)
