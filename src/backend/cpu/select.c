/* Kernels whose operands and results are of several types: where, cast, logical_not. */
#include <math.h>

#include "backend/cpu/walk.h"
#include "tensor/bf16.h"

static hone_status logical_not_run(const struct bk_io *io, hone_err *err)
{
    const uint8_t *x = io->in[0];
    uint8_t *y = io->out[0];
    const int64_t n = op_numel(&io->call->out[0]);
    (void)err;
    CPU_PARALLEL(io, n)
    for (int64_t i = 0; i < n; i++)
        y[i] = !x[i];
    return HONE_OK;
}

const struct bk_kernel cpu_logical_not = {.op = "logical_not", .inplace = {1}, .run = logical_not_run};

/* One run of where, with x and y walking by DA and DB. */
#define CHOOSE(DA, DB)                                                                                                 \
    CPU_SIMD                                                                                                           \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        const float x = a[i * DA], y = b[i * DB];                                                                      \
        out[i] = m[i] ? x : y;                                                                                         \
    }

static void where_part(const struct bk_io *io, const struct walk_run *r)
{
    const uint8_t *m = (const uint8_t *)io->in[0] + r->at[0];
    const float *a = (const float *)io->in[1] + r->at[1], *b = (const float *)io->in[2] + r->at[2];
    float *out = (float *)io->out[0] + r->to;
    const int64_t n = r->n;
    if (r->step[0] == 0) { /* one choice for all */
        const float *from = m[0] ? a : b;
        const int64_t step = m[0] ? r->step[1] : r->step[2];
        CPU_SIMD
        for (int64_t i = 0; i < n; i++)
            out[i] = from[i * step];
    } else if (r->step[1] && r->step[2]) {
        CHOOSE(1, 1)
    } else if (r->step[1]) {
        CHOOSE(1, 0)
    } else if (r->step[2]) {
        CHOOSE(0, 1)
    } else {
        CHOOSE(0, 0)
    }
}

static hone_status where_run(const struct bk_io *io, hone_err *err)
{
    (void)err;
    walk(io, where_part);
    return HONE_OK;
}

const struct bk_kernel cpu_where = {.op = "where", .inplace = {6}, .run = where_run};

/* Towards zero; what i32 cannot hold becomes its nearest value, NaN 0. */
static inline int32_t to_i32(float x)
{
    return x != x ? 0 : x >= 2147483648.0f ? INT32_MAX : x < -2147483648.0f ? INT32_MIN : (int32_t)x;
}

#define CAST(T, R, expr)                                                                                               \
    {                                                                                                                  \
        const T *in = io->in[0];                                                                                       \
        R *out = io->out[0];                                                                                           \
        CPU_PARALLEL(io, n)                                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const T x = in[i];                                                                                         \
            out[i] = expr;                                                                                             \
        }                                                                                                              \
        return HONE_OK;                                                                                                \
    }

static hone_status cast_run(const struct bk_io *io, hone_err *err)
{
    const hone_dtype from = io->call->in[0].dtype, to = io->call->out[0].dtype;
    const int64_t n = op_numel(&io->call->out[0]);
    (void)err;
    if (to == HONE_BF16)
        CAST(float, uint16_t, bf16_of(x))
    if (to == HONE_F32) {
        if (from == HONE_BF16)
            CAST(uint16_t, float, bf16_float(x))
        if (from == HONE_F32)
            CAST(float, float, x)
        if (from == HONE_I32)
            CAST(int32_t, float, (float)x)
        if (from == HONE_BOOL)
            CAST(uint8_t, float, x ? 1.0f : 0.0f)
        CAST(uint8_t, float, (float)x)
    }
    if (to == HONE_I32) {
        if (from == HONE_F32)
            CAST(float, int32_t, to_i32(x))
        if (from == HONE_I32)
            CAST(int32_t, int32_t, x)
        if (from == HONE_BOOL)
            CAST(uint8_t, int32_t, x ? 1 : 0)
        CAST(uint8_t, int32_t, x)
    }
    if (from == HONE_F32)
        CAST(float, uint8_t, x != 0)
    if (from == HONE_I32)
        CAST(int32_t, uint8_t, x != 0)
    CAST(uint8_t, uint8_t, x != 0)
}

const struct bk_kernel cpu_cast = {.op = "cast", .run = cast_run};
