/* Kernels whose operands and results are of several types: where, cast, logical_not. */
#include <math.h>

#include "backend/cpu/walk.h"
#include "tensor/bf16.h"

/* For loops over all elements of one operand. */
struct unary {
    const void *x;
    void *y;
};

static hone_status each(const struct bk_io *io, cpu_range_fn fn)
{
    const int64_t n = op_numel(&io->call->out[0]);
    struct unary u = {io->in[0], io->out[0]};
    cpu_split(io, n, n, fn, &u);
    return HONE_OK;
}

static void logical_not_range(void *arg, int64_t from, int64_t to)
{
    const struct unary *u = arg;
    const uint8_t *x = u->x;
    uint8_t *y = u->y;
    for (int64_t i = from; i < to; i++)
        y[i] = !x[i];
}

static hone_status logical_not_run(const struct bk_io *io, hone_err *err)
{
    (void)err;
    return each(io, logical_not_range);
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

#define CAST(name, T, R, expr)                                                                                         \
    static void name(void *arg, int64_t from, int64_t to)                                                              \
    {                                                                                                                  \
        const struct unary *u = arg;                                                                                   \
        const T *in = u->x;                                                                                            \
        R *out = u->y;                                                                                                 \
        CPU_SIMD                                                                                                       \
        for (int64_t i = from; i < to; i++) {                                                                          \
            const T x = in[i];                                                                                         \
            out[i] = expr;                                                                                             \
        }                                                                                                              \
    }

CAST(f32_bf16, float, uint16_t, bf16_of(x))
CAST(bf16_f32, uint16_t, float, bf16_float(x))
CAST(f32_f32, float, float, x)
CAST(i32_f32, int32_t, float, (float)x)
CAST(bool_f32, uint8_t, float, x ? 1.0f : 0.0f)
CAST(u8_f32, uint8_t, float, (float)x)
CAST(f32_i32, float, int32_t, to_i32(x))
CAST(i32_i32, int32_t, int32_t, x)
CAST(bool_i32, uint8_t, int32_t, x ? 1 : 0)
CAST(u8_i32, uint8_t, int32_t, x)
CAST(f32_bool, float, uint8_t, x != 0)
CAST(i32_bool, int32_t, uint8_t, x != 0)
CAST(bool_bool, uint8_t, uint8_t, x != 0)

static cpu_range_fn cast_of(hone_dtype from, hone_dtype to)
{
    if (to == HONE_BF16)
        return f32_bf16;
    if (to == HONE_F32)
        return from == HONE_BF16   ? bf16_f32
               : from == HONE_F32  ? f32_f32
               : from == HONE_I32  ? i32_f32
               : from == HONE_BOOL ? bool_f32
                                   : u8_f32;
    if (to == HONE_I32)
        return from == HONE_F32 ? f32_i32 : from == HONE_I32 ? i32_i32 : from == HONE_BOOL ? bool_i32 : u8_i32;
    return from == HONE_F32 ? f32_bool : from == HONE_I32 ? i32_bool : bool_bool;
}

static hone_status cast_run(const struct bk_io *io, hone_err *err)
{
    (void)err;
    return each(io, cast_of(io->call->in[0].dtype, io->call->out[0].dtype));
}

const struct bk_kernel cpu_cast = {.op = "cast", .run = cast_run};
