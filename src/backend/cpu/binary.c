/* Elementwise kernels of two operands, which broadcast: arithmetic, comparisons, logic. */
#include "backend/cpu/walk.h"

/* The loops of one run: operands of type T, results of type R, `expr` of x and y. */
#define LOOPS(T, R, expr)                                                                                              \
    const T *a = (const T *)io->in[0] + r->at[0], *b = (const T *)io->in[1] + r->at[1];                                \
    R *out = (R *)io->out[0] + r->to;                                                                                  \
    if (r->step[0] && r->step[1]) {                                                                                    \
        CPU_SIMD                                                                                                       \
        for (int64_t i = 0; i < r->n; i++) {                                                                           \
            const T x = a[i], y = b[i];                                                                                \
            out[i] = expr;                                                                                             \
        }                                                                                                              \
    } else if (r->step[0]) {                                                                                           \
        const T y = b[0];                                                                                              \
        CPU_SIMD                                                                                                       \
        for (int64_t i = 0; i < r->n; i++) {                                                                           \
            const T x = a[i];                                                                                          \
            out[i] = expr;                                                                                             \
        }                                                                                                              \
    } else if (r->step[1]) {                                                                                           \
        const T x = a[0];                                                                                              \
        CPU_SIMD                                                                                                       \
        for (int64_t i = 0; i < r->n; i++) {                                                                           \
            const T y = b[i];                                                                                          \
            out[i] = expr;                                                                                             \
        }                                                                                                              \
    } else { /* a run of one element */                                                                                \
        const T x = a[0], y = b[0];                                                                                    \
        out[0] = expr;                                                                                                 \
    }

#define KERNEL_OF(name, where)                                                                                         \
    static hone_status name##_run(const struct bk_io *io, hone_err *err)                                               \
    {                                                                                                                  \
        (void)err;                                                                                                     \
        walk(io, name##_part);                                                                                         \
        return HONE_OK;                                                                                                \
    }                                                                                                                  \
    const struct bk_kernel cpu_##name = {.op = #name, .inplace = {where}, .run = name##_run};

/* A result may take the place of an operand only if that is not broadcast: the planner sees to it (same size). */
#define BINARY(name, expr)                                                                                             \
    static void name##_part(const struct bk_io *io,                                                                    \
                            const struct walk_run *r){LOOPS(float, float, expr)} KERNEL_OF(name, 3)

BINARY(add, x + y)
BINARY(sub, x - y)
BINARY(mul, x *y)
BINARY(div, x / y)
/* NaN of either operand comes out. */
BINARY(maximum, x > y ? x : x == x ? y : x)
BINARY(minimum, x < y ? x : x == x ? y : x)

#define COMPARE(name, expr)                                                                                            \
    static void name##_part(const struct bk_io *io, const struct walk_run *r)                                          \
    {                                                                                                                  \
        if (io->call->in[0].dtype == HONE_F32) {                                                                       \
            LOOPS(float, uint8_t, expr)                                                                                \
        } else {                                                                                                       \
            LOOPS(int32_t, uint8_t, expr)                                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    KERNEL_OF(name, 0)

COMPARE(equal, x == y)
COMPARE(less, x < y)
COMPARE(less_equal, x <= y)
COMPARE(greater, x > y)
COMPARE(greater_equal, x >= y)

/* Any byte but 0 is true, as in the reference. */
#define LOGIC(name, expr)                                                                                              \
    static void name##_part(const struct bk_io *io,                                                                    \
                            const struct walk_run *r){LOOPS(uint8_t, uint8_t, expr)} KERNEL_OF(name, 3)

LOGIC(logical_and, (x != 0) & (y != 0))
LOGIC(logical_or, (x | y) != 0)
