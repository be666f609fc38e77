/* One-operand elementwise kernels. */
#include <math.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/vmath.h"

/* Elements that one thread takes at a time. */
enum { PART = 4096 };

/* Calls part(x, y, n, f) for pieces of the tensor; f are the attributes. */
static hone_status each(const struct bk_io *io, void (*part)(const float *, float *, int64_t, const float *))
{
    const float *x = io->in[0], f[2] = {(float)io->call->attr.f[0], (float)io->call->attr.f[1]};
    float *y = io->out[0];
    const int64_t n = op_numel(&io->call->out[0]);
    CPU_PARALLEL(io, n)
    for (int64_t at = 0; at < n; at += PART)
        part(x + at, y + at, n - at < PART ? n - at : PART, f);
    return HONE_OK;
}

/* Defines cpu_<name> from a function name_part. */
#define KERNEL_OF(name)                                                                                                \
    static hone_status name##_run(const struct bk_io *io, hone_err *err)                                               \
    {                                                                                                                  \
        (void)err;                                                                                                     \
        return each(io, name##_part);                                                                                  \
    }                                                                                                                  \
    const struct bk_kernel cpu_##name = {.op = #name, .inplace = {1}, .run = name##_run};

/* Defines cpu_<name>: `expr` of float x and the attributes f. */
#define UNARY(name, expr)                                                                                              \
    static void name##_part(const float *in, float *out, int64_t n, const float *f)                                    \
    {                                                                                                                  \
        const float f0 = f[0], f1 = f[1];                                                                              \
        (void)f0;                                                                                                      \
        (void)f1;                                                                                                      \
        CPU_SIMD                                                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                                              \
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

/* Waves: a part that holds too large an angle is done one by one, those by libm. */
#define WAVE(name, own, libm)                                                                                          \
    static void name##_part(const float *in, float *out, int64_t n, const float *f)                                    \
    {                                                                                                                  \
        int large = 0;                                                                                                 \
        (void)f;                                                                                                       \
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
    KERNEL_OF(name)

WAVE(sin, v_sin, sinf)
WAVE(cos, v_cos, cosf)
