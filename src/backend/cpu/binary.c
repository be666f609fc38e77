/* Two-operand elementwise kernels with broadcasting: the longest run of trailing dimensions that both operands walk
 * evenly (same shape, or one of them standing still) is the inner loop. */
#include <math.h>

#include "backend/cpu/cpu.h"

struct walk {
    hone_shape outer;                           /* dimensions that are counted */
    int64_t a[HONE_MAX_RANK], b[HONE_MAX_RANK]; /* their strides in the operands */
    int64_t inner, da, db;                      /* the run: length, and steps of 0 or 1 */
};

static struct walk plan_walk(const struct op_call *c)
{
    struct walk w = {.outer = c->out[0].shape, .inner = 1};
    int64_t *a = w.a, *b = w.b;
    op_strides(&c->in[0].shape, &w.outer, a);
    op_strides(&c->in[1].shape, &w.outer, b);
    for (int k = w.outer.rank - 1; k >= 0; k--) {
        int64_t d = w.outer.dim[k];
        if (d != 1) {
            int64_t ea = a[k] ? 1 : 0, eb = b[k] ? 1 : 0;
            if (w.inner == 1) {
                w.da = ea;
                w.db = eb;
            } else if (ea != w.da || eb != w.db) {
                break;
            }
            w.inner *= d;
        }
        w.outer.rank = k;
    }
    return w;
}

#define BINARY_RUN(name, expr)                                                                                         \
    static void name##_row(const float *a, const float *b, float *out, int64_t n, int64_t da, int64_t db)              \
    {                                                                                                                  \
        if (da && db) {                                                                                                \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const float x = a[i], y = b[i];                                                                        \
                out[i] = expr;                                                                                         \
            }                                                                                                          \
        } else if (da) {                                                                                               \
            const float y = b[0];                                                                                      \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const float x = a[i];                                                                                  \
                out[i] = expr;                                                                                         \
            }                                                                                                          \
        } else {                                                                                                       \
            const float x = a[0];                                                                                      \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const float y = b[i * db];                                                                             \
                out[i] = expr;                                                                                         \
            }                                                                                                          \
        }                                                                                                              \
    }

static hone_status run(const struct bk_io *io,
                       void (*row)(const float *, const float *, float *, int64_t, int64_t, int64_t))
{
    const struct walk w = plan_walk(io->call);
    const float *a = io->in[0], *b = io->in[1];
    float *out = io->out[0];
    const int64_t n = op_numel(&io->call->out[0]);
    if (n == 0)
        return HONE_OK;
    if (w.outer.rank == 0) { /* one run: split it */
        const int64_t part = n >= CPU_GRAIN ? (n + io->threads - 1) / io->threads : n;
        CPU_PARALLEL(io, n)
        for (int64_t at = 0; at < n; at += part)
            row(a + at * w.da, b + at * w.db, out + at, n - at < part ? n - at : part, w.da, w.db);
        return HONE_OK;
    }
    const int64_t rows = n / w.inner;
    CPU_PARALLEL(io, n)
    for (int64_t r = 0; r < rows; r++) {
        int64_t left = r, i = 0, j = 0;
        for (int k = w.outer.rank - 1; k >= 0; k--) {
            int64_t at = left % w.outer.dim[k];
            left /= w.outer.dim[k];
            i += at * w.a[k];
            j += at * w.b[k];
        }
        row(a + i, b + j, out + r * w.inner, w.inner, w.da, w.db);
    }
    return HONE_OK;
}

/* A result may take the place of an operand only if that is not broadcast: the planner sees to it (same size). */
#define BINARY(name, expr)                                                                                             \
    BINARY_RUN(name, expr)                                                                                             \
    static hone_status name##_run(const struct bk_io *io, hone_err *err)                                               \
    {                                                                                                                  \
        (void)err;                                                                                                     \
        return run(io, name##_row);                                                                                    \
    }                                                                                                                  \
    const struct bk_kernel cpu_##name = {.op = #name, .inplace = {3}, .run = name##_run};

BINARY(add, x + y)
BINARY(sub, x - y)
BINARY(mul, x *y)
BINARY(div, x / y)
BINARY(maximum, x > y ? x : y)
BINARY(minimum, x < y ? x : y)
