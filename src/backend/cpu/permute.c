/* Dimensions in another order. Neighbours that stay together are merged; what is left is either a copy of contiguous
 * runs, or many transposes of matrices, done in square tiles so that both sides move whole cache lines. */
#include <string.h>

#include "backend/cpu/cpu.h"

enum { TILE = 16 }; /* elements a side: a cache line of f32 */

/* The result's dimensions, those of 1 left out, and their steps in the operand. */
struct order {
    int rank;
    int64_t dim[HONE_MAX_RANK], step[HONE_MAX_RANK];
};

static struct order plan_order(const struct op_call *c)
{
    const hone_shape *s = &c->in[0].shape;
    struct order o = {0};
    int64_t stride[HONE_MAX_RANK], step = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= s->dim[i];
    }
    for (int i = 0; i < s->rank; i++) {
        const int64_t d = s->dim[c->attr.i[1 + i]], by = stride[c->attr.i[1 + i]];
        if (d == 1)
            continue;
        if (o.rank && o.step[o.rank - 1] == d * by) {
            o.dim[o.rank - 1] *= d;
            o.step[o.rank - 1] = by;
        } else {
            o.dim[o.rank] = d;
            o.step[o.rank++] = by;
        }
    }
    return o;
}

/* Place k among dimensions [0, rank) but for `skip`; in the operand, and with `to` in the result. */
static int64_t place(const struct order *o, int rank, int skip, int64_t k, const int64_t *step)
{
    int64_t at = 0;
    for (int i = rank - 1; i >= 0; i--)
        if (i != skip) {
            at += k % o->dim[i] * step[i];
            k /= o->dim[i];
        }
    return at;
}

/* The last dimension stays the last: rows of `run` elements. */
static void copy_rows(const struct bk_io *io, const struct order *o, size_t size)
{
    const char *x = io->in[0];
    char *y = io->out[0];
    const int64_t n = op_numel(&io->call->out[0]), run = o->rank ? o->dim[o->rank - 1] : 1, rows = n / run;
    CPU_PARALLEL(io, n)
    for (int64_t r = 0; r < rows; r++)
        memcpy(y + (size_t)(r * run) * size, x + (size_t)place(o, o->rank - 1, -1, r, o->step) * size,
               (size_t)run * size);
}

/* The matrices that are transposed: `a` elements contiguous in the operand, `b` contiguous in the result. */
struct transpose {
    int64_t a, b, x_step, y_step; /* x_step: from one b to the next in the operand; y_step: of a in the result */
};

#define TRANSPOSE(T)                                                                                                   \
    static void transpose_##T(const T *x, T *y, const struct transpose *t, int64_t i0, int64_t j0)                     \
    {                                                                                                                  \
        T tile[TILE][TILE];                                                                                            \
        const int64_t na = t->a - i0 < TILE ? t->a - i0 : TILE, nb = t->b - j0 < TILE ? t->b - j0 : TILE;              \
        x += i0 + j0 * t->x_step;                                                                                      \
        y += i0 * t->y_step + j0;                                                                                      \
        if (na == TILE && nb == TILE) {                                                                                \
            for (int j = 0; j < TILE; j++)                                                                             \
                memcpy(tile[j], x + j * t->x_step, sizeof tile[j]);                                                    \
            for (int i = 0; i < TILE; i++)                                                                             \
                for (int j = 0; j < TILE; j++)                                                                         \
                    y[i * t->y_step + j] = tile[j][i];                                                                 \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < na; i++)                                                                               \
            for (int64_t j = 0; j < nb; j++)                                                                           \
                y[i * t->y_step + j] = x[i + j * t->x_step];                                                           \
    }

TRANSPOSE(uint32_t)
TRANSPOSE(uint8_t)

static void copy_tiles(const struct bk_io *io, const struct order *o, size_t size)
{
    const int last = o->rank - 1;
    int fast = 0; /* the dimension that is contiguous in the operand */
    int64_t to[HONE_MAX_RANK], n = 1;
    for (int i = last; i >= 0; i--) {
        to[i] = n;
        n *= o->dim[i];
        if (o->step[i] == 1)
            fast = i;
    }
    const struct transpose t = {o->dim[fast], o->dim[last], o->step[last], to[fast]};
    const int64_t ta = (t.a + TILE - 1) / TILE, tb = (t.b + TILE - 1) / TILE, matrices = n / (t.a * t.b);
    CPU_PARALLEL(io, n)
    for (int64_t k = 0; k < matrices * ta * tb; k++) {
        const int64_t m = k / (ta * tb), i = k / tb % ta * TILE, j = k % tb * TILE;
        const int64_t from = place(o, last, fast, m, o->step), at = place(o, last, fast, m, to);
        if (size == 4)
            transpose_uint32_t((const uint32_t *)io->in[0] + from, (uint32_t *)io->out[0] + at, &t, i, j);
        else
            transpose_uint8_t((const uint8_t *)io->in[0] + from, (uint8_t *)io->out[0] + at, &t, i, j);
    }
}

static hone_status permute_run(const struct bk_io *io, hone_err *err)
{
    const size_t size = hone_dtype_size(io->call->in[0].dtype);
    const struct order o = plan_order(io->call);
    (void)err;
    if (op_numel(&io->call->out[0]) == 0)
        return HONE_OK;
    if (o.rank == 0 || o.step[o.rank - 1] == 1)
        copy_rows(io, &o, size);
    else
        copy_tiles(io, &o, size);
    return HONE_OK;
}

static bool bytes_1_or_4(const struct op_call *c)
{
    const size_t n = hone_dtype_size(c->in[0].dtype);
    return n == 1 || n == 4;
}

const struct bk_kernel cpu_permute = {.op = "permute", .accepts = bytes_1_or_4, .run = permute_run};
