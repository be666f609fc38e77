/* One-operand elementwise kernels. */
#include <math.h>

#include "backend/cpu/cpu.h"

/* Defines cpu_<name>: `expr` of float x; the attributes are at `f` (doubles). */
#define UNARY(name, expr)                                                                                              \
    static hone_status name##_run(const struct bk_io *io, hone_err *err)                                               \
    {                                                                                                                  \
        const float *in = io->in[0];                                                                                   \
        float *out = io->out[0];                                                                                       \
        const double *f = io->call->attr.f;                                                                            \
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

UNARY(sigmoid, 1.0f / (1.0f + expf(-x)))
UNARY(silu, x / (1.0f + expf(-x)))
UNARY(affine, (float)f[0] * x + (float)f[1])
