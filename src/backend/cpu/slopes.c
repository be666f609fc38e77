/* Gradients of activations, dy f'(x). */
#include "backend/cpu/vmath.h"
#include "backend/cpu/wide.h"

struct slope {
    const float *x, *dy;
    float *dx;
};

/* Defines cpu_<name> from the slope of float x. */
#define SLOPE(name, f)                                                                                                 \
    WIDE_INLINE void name##_body(void *arg, int64_t from, int64_t to)                                                  \
    {                                                                                                                  \
        const struct slope *s = arg;                                                                                   \
        const float *x = s->x, *dy = s->dy;                                                                            \
        float *dx = s->dx;                                                                                             \
        CPU_SIMD                                                                                                       \
        for (int64_t i = from; i < to; i++)                                                                            \
            dx[i] = dy[i] * f(x[i]);                                                                                   \
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
