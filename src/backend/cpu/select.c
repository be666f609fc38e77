/* Comparisons, logic, where, cast: kernels whose operands and results are of several types. Operands broadcast; the
 * last dimension is the inner loop. */
#include <math.h>

#include "backend/cpu/cpu.h"

/* Where row r of the result begins in operand i, and the step along the row: 0 or 1. */
struct rows {
    int64_t n, length; /* rows, and elements of one */
    int64_t stride[3][HONE_MAX_RANK], step[3];
    const hone_shape *s;
};

static struct rows rows_of(const struct op_call *c)
{
    struct rows r = {.n = 1, .length = 1, .s = &c->out[0].shape};
    for (int i = 0; i < c->n_in; i++)
        op_strides(&c->in[i].shape, r.s, r.stride[i]);
    if (r.s->rank > 0) {
        r.length = r.s->dim[r.s->rank - 1];
        for (int i = 0; i < c->n_in; i++)
            r.step[i] = r.stride[i][r.s->rank - 1];
    }
    for (int k = 0; k + 1 < r.s->rank; k++)
        r.n *= r.s->dim[k];
    return r;
}

static int64_t row_at(const struct rows *r, int operand, int64_t row)
{
    int64_t at = 0;
    for (int k = r->s->rank - 2; k >= 0; k--) {
        at += row % r->s->dim[k] * r->stride[operand][k];
        row /= r->s->dim[k];
    }
    return at;
}

#define PAIRS(T, expr)                                                                                                 \
    for (int64_t q = 0; q < r.n; q++) {                                                                                \
        const T *a = (const T *)io->in[0] + row_at(&r, 0, q), *b = (const T *)io->in[1] + row_at(&r, 1, q);            \
        uint8_t *out = (uint8_t *)io->out[0] + q * r.length;                                                           \
        for (int64_t i = 0; i < r.length; i++) {                                                                       \
            const T x = a[i * r.step[0]], y = b[i * r.step[1]];                                                        \
            out[i] = expr;                                                                                             \
        }                                                                                                              \
    }

#define COMPARE(name, expr)                                                                                            \
    static hone_status name##_run(const struct bk_io *io, hone_err *err)                                               \
    {                                                                                                                  \
        const struct rows r = rows_of(io->call);                                                                       \
        (void)err;                                                                                                     \
        if (io->call->in[0].dtype == HONE_F32) {                                                                       \
            PAIRS(float, expr)                                                                                         \
        } else {                                                                                                       \
            PAIRS(int32_t, expr)                                                                                       \
        }                                                                                                              \
        return HONE_OK;                                                                                                \
    }                                                                                                                  \
    const struct bk_kernel cpu_##name = {.op = #name, .run = name##_run};

COMPARE(equal, x == y)
COMPARE(less, x < y)
COMPARE(less_equal, x <= y)
COMPARE(greater, x > y)
COMPARE(greater_equal, x >= y)

#define LOGIC(name, expr)                                                                                              \
    static hone_status name##_run(const struct bk_io *io, hone_err *err)                                               \
    {                                                                                                                  \
        const struct rows r = rows_of(io->call);                                                                       \
        (void)err;                                                                                                     \
        PAIRS(uint8_t, expr)                                                                                           \
        return HONE_OK;                                                                                                \
    }                                                                                                                  \
    const struct bk_kernel cpu_##name = {.op = #name, .run = name##_run};

LOGIC(logical_and, x &y)
LOGIC(logical_or, x | y)

static hone_status logical_not_run(const struct bk_io *io, hone_err *err)
{
    const uint8_t *x = io->in[0];
    uint8_t *y = io->out[0];
    (void)err;
    for (int64_t i = 0, n = op_numel(&io->call->out[0]); i < n; i++)
        y[i] = !x[i];
    return HONE_OK;
}

const struct bk_kernel cpu_logical_not = {.op = "logical_not", .inplace = {1}, .run = logical_not_run};

static hone_status where_run(const struct bk_io *io, hone_err *err)
{
    const struct rows r = rows_of(io->call);
    (void)err;
    for (int64_t q = 0; q < r.n; q++) {
        const uint8_t *m = (const uint8_t *)io->in[0] + row_at(&r, 0, q);
        const float *a = (const float *)io->in[1] + row_at(&r, 1, q), *b = (const float *)io->in[2] + row_at(&r, 2, q);
        float *out = (float *)io->out[0] + q * r.length;
        for (int64_t i = 0; i < r.length; i++)
            out[i] = m[i * r.step[0]] ? a[i * r.step[1]] : b[i * r.step[2]];
    }
    return HONE_OK;
}

const struct bk_kernel cpu_where = {.op = "where", .inplace = {6}, .run = where_run};

/* As double, which holds every value of the four types. */
static double load(hone_dtype t, const void *p, int64_t i)
{
    switch (t) {
    case HONE_F32:
        return ((const float *)p)[i];
    case HONE_I32:
        return ((const int32_t *)p)[i];
    default:
        return ((const uint8_t *)p)[i];
    }
}

/* Towards zero; what i32 cannot hold becomes its nearest value, NaN 0. */
static int32_t to_i32(double x)
{
    return x != x ? 0 : x >= 2147483647.0 ? INT32_MAX : x <= -2147483648.0 ? INT32_MIN : (int32_t)x;
}

static hone_status cast_run(const struct bk_io *io, hone_err *err)
{
    const hone_dtype from = io->call->in[0].dtype, to = io->call->out[0].dtype;
    const int64_t n = op_numel(&io->call->out[0]);
    (void)err;
    for (int64_t i = 0; i < n; i++) {
        const double x = load(from, io->in[0], i);
        if (to == HONE_F32)
            ((float *)io->out[0])[i] = (float)x;
        else if (to == HONE_I32)
            ((int32_t *)io->out[0])[i] = to_i32(x);
        else
            ((uint8_t *)io->out[0])[i] = x != 0;
    }
    return HONE_OK;
}

const struct bk_kernel cpu_cast = {.op = "cast", .run = cast_run};
