/* One-operand elementwise kernels. */
#include <math.h>

#include "backend/cpu/vmath.h"
#include "backend/cpu/wide.h"

struct unary {
    const float *x;
    float *y, f[2]; /* the attributes */
};

static hone_status each(const struct bk_io *io, cpu_range_fn fn)
{
    const int64_t n = op_numel(&io->call->out[0]);
    struct unary u = {io->in[0], io->out[0], {(float)io->call->attr.f[0], (float)io->call->attr.f[1]}};
    cpu_split(io, n, n, fn, &u);
    return HONE_OK;
}

/* Defines cpu_<name> from a function name_body. */
#define KERNEL_OF(name)                                                                                                \
    WIDE(name)                                                                                                         \
    static hone_status name##_run(const struct bk_io *io, hone_err *err)                                               \
    {                                                                                                                  \
        (void)err;                                                                                                     \
        return each(io, name##_wide());                                                                                \
    }                                                                                                                  \
    const struct bk_kernel cpu_##name = {.op = #name, .inplace = {1}, .run = name##_run};

/* Defines cpu_<name>: `expr` of float x and the attributes f0, f1. */
#define UNARY(name, expr)                                                                                              \
    WIDE_INLINE void name##_body(void *arg, int64_t from, int64_t to)                                                  \
    {                                                                                                                  \
        const struct unary *u = arg;                                                                                   \
        const float *in = u->x, f0 = u->f[0], f1 = u->f[1];                                                            \
        float *out = u->y;                                                                                             \
        (void)f0;                                                                                                      \
        (void)f1;                                                                                                      \
        CPU_SIMD                                                                                                       \
        for (int64_t i = from; i < to; i++) {                                                                          \
            const float x = in[i];                                                                                     \
            out[i] = expr;                                                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    KERNEL_OF(name)

UNARY(affine, f0 *x + f1)
UNARY(abs, fabsf(x))
UNARY(exp, v_exp(x))
UNARY(log, v_log(x))
UNARY(sqrt, sqrtf(x))
UNARY(rsqrt, 1.0f / sqrtf(x))
UNARY(reciprocal, 1.0f / x)
UNARY(square, x *x)
UNARY(erf, v_erf(x))
UNARY(tanh, v_tanh(x))
UNARY(sigmoid, v_sigmoid(x))
UNARY(silu, x *v_sigmoid(x))
UNARY(relu, x > 0 ? x : x == x ? 0 : x)
UNARY(sign, x == x ? (float)((x > 0) - (x < 0)) : x)
UNARY(floor, floorf(x))
UNARY(softplus, v_softplus(x))
UNARY(mish, v_mish(x))
UNARY(gelu, 0.5f * x * (1 + v_erf(x * 0.70710678f)))
UNARY(gelu_tanh, 0.5f * x * (1 + v_tanh(0.79788456f * (x + 0.044715f * x * x * x))))
UNARY(clamp, x<f0 ? f0 : x> f1 ? f1 : x)
UNARY(pow_scalar, powf(x, f0))

enum { PART = 1024 }; /* elements of a wave that are looked at together */

/* Waves: a part that holds too large an angle is done one by one, those by libm. */
#define WAVE(name, own, libm)                                                                                          \
    WIDE_INLINE void name##_part(const float *in, float *out, int64_t n)                                               \
    {                                                                                                                  \
        int large = 0;                                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                                                \
            large |= fabsf(in[i]) > V_TURN_MAX;                                                                        \
        if (large) {                                                                                                   \
            for (int64_t i = 0; i < n; i++)                                                                            \
                out[i] = fabsf(in[i]) > V_TURN_MAX ? libm(in[i]) : own(in[i]);                                         \
            return;                                                                                                    \
        }                                                                                                              \
        CPU_SIMD                                                                                                       \
        for (int64_t i = 0; i < n; i++)                                                                                \
            out[i] = own(in[i]);                                                                                       \
    }                                                                                                                  \
    WIDE_INLINE void name##_body(void *arg, int64_t from, int64_t to)                                                  \
    {                                                                                                                  \
        const struct unary *u = arg;                                                                                   \
        for (int64_t at = from; at < to; at += PART)                                                                   \
            name##_part(u->x + at, u->y + at, to - at < PART ? to - at : PART);                                        \
    }                                                                                                                  \
    KERNEL_OF(name)

WAVE(sin, v_sin, sinf)
WAVE(cos, v_cos, cosf)
