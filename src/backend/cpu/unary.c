/* One-operand elementwise kernels. */
#include <math.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/vmath.h"

/* Defines cpu_<name>: `expr` of float x; the attributes are at `f` (floats). */
#define UNARY(name, expr)                                                                                              \
    static hone_status name##_run(const struct bk_io *io, hone_err *err)                                               \
    {                                                                                                                  \
        const float *in = io->in[0];                                                                                   \
        float *out = io->out[0];                                                                                       \
        const float f[2] = {(float)io->call->attr.f[0], (float)io->call->attr.f[1]};                                   \
        const int64_t n = op_numel(&io->call->out[0]);                                                                 \
        (void)err;                                                                                                     \
        (void)f;                                                                                                       \
        CPU_PARALLEL(io, n)                                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const float x = in[i];                                                                                     \
            out[i] = expr;                                                                                             \
        }                                                                                                              \
        return HONE_OK;                                                                                                \
    }                                                                                                                  \
    const struct bk_kernel cpu_##name = {.op = #name, .inplace = {1}, .run = name##_run};

UNARY(affine, f[0] * x + f[1])
UNARY(abs, fabsf(x))
UNARY(exp, v_exp(x))
UNARY(log, logf(x))
UNARY(sqrt, sqrtf(x))
UNARY(rsqrt, 1.0f / sqrtf(x))
UNARY(reciprocal, 1.0f / x)
UNARY(square, x *x)
UNARY(sin, sinf(x))
UNARY(cos, cosf(x))
UNARY(erf, erff(x))
UNARY(tanh, v_tanh(x))
UNARY(sigmoid, v_sigmoid(x))
UNARY(silu, x *v_sigmoid(x))
UNARY(relu, x > 0 ? x : x == x ? 0 : x)
UNARY(sign, (float)((x > 0) - (x < 0)))
UNARY(floor, floorf(x))
UNARY(softplus, (x > 0 ? x : 0) + log1pf(v_exp(-fabsf(x))))
UNARY(mish, v_mish(x))
UNARY(gelu, 0.5f * x * (1 + erff(x * 0.70710678f)))
UNARY(gelu_tanh, 0.5f * x * (1 + v_tanh(0.79788456f * (x + 0.044715f * x * x * x))))
UNARY(clamp, x<f[0] ? f[0] : x> f[1] ? f[1] : x)
UNARY(pow_scalar, powf(x, f[0]))
