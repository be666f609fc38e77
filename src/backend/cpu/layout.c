/* Kernels that only move elements, whatever their type: slice, pad, concat, broadcast. */
#include <string.h>

#include "backend/cpu/cpu.h"

/* Bytes of all that lies in one slice before the axis, and the number of such slices. */
static size_t run_of(const hone_type *t, int64_t axis, int64_t *outer)
{
    size_t run = hone_dtype_size(t->dtype);
    *outer = 1;
    for (int i = 0; i < t->shape.rank; i++)
        if (i < axis)
            *outer *= t->shape.dim[i];
        else
            run *= (size_t)t->shape.dim[i];
    return run;
}

static size_t inner_of(const hone_type *t, int64_t axis)
{
    size_t run = hone_dtype_size(t->dtype);
    for (int i = t->shape.rank - 1; i > axis; i--)
        run *= (size_t)t->shape.dim[i];
    return run;
}

/* `outer` runs of n bytes, `from` and `to` bytes apart. */
static void copy_runs(const struct bk_io *io, char *y, size_t to, const char *x, size_t from, size_t n, int64_t outer)
{
    const int64_t work = (int64_t)(n / sizeof(float)) * outer;
    if (n == 0)
        return;
    CPU_PARALLEL(io, work)
    for (int64_t o = 0; o < outer; o++)
        memcpy(y + (size_t)o * to, x + (size_t)o * from, n);
}

static hone_status slice_run(const struct bk_io *io, hone_err *err)
{
    const struct op_call *c = io->call;
    int64_t outer;
    const size_t from = run_of(&c->in[0], c->attr.i[0], &outer), to = run_of(&c->out[0], c->attr.i[0], &outer);
    (void)err;
    copy_runs(io, io->out[0], to, (const char *)io->in[0] + (size_t)c->attr.i[1] * inner_of(&c->in[0], c->attr.i[0]),
              from, to, outer);
    return HONE_OK;
}

static hone_status concat_run(const struct bk_io *io, hone_err *err)
{
    const struct op_call *c = io->call;
    int64_t outer;
    const size_t to = run_of(&c->out[0], c->attr.i[0], &outer);
    char *y = io->out[0];
    (void)err;
    for (int k = 0; k < c->n_in; k++) {
        const size_t n = run_of(&c->in[k], c->attr.i[0], &outer);
        copy_runs(io, y, to, io->in[k], n, n, outer);
        y += n;
    }
    return HONE_OK;
}

static bool is_f32(const struct op_call *c)
{
    return c->in[0].dtype == HONE_F32;
}

static void fill(float *y, int64_t n, float value)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = value;
}

static hone_status pad_run(const struct bk_io *io, hone_err *err)
{
    const struct op_call *c = io->call;
    const int64_t axis = c->attr.i[0];
    int64_t outer;
    const int64_t one = (int64_t)(inner_of(&c->in[0], axis) / sizeof(float));
    const int64_t middle = (int64_t)(run_of(&c->in[0], axis, &outer) / sizeof(float));
    const int64_t before = c->attr.i[1] * one, after = c->attr.i[2] * one, all = before + middle + after;
    const int64_t work = outer * all;
    const float *x = io->in[0], value = (float)c->attr.f[0];
    float *y = io->out[0];
    (void)err;
    CPU_PARALLEL(io, work)
    for (int64_t o = 0; o < outer; o++) {
        float *row = y + o * all;
        fill(row, before, value);
        if (middle)
            memcpy(row + before, x + o * middle, (size_t)middle * sizeof(float));
        fill(row + before + middle, after, value);
    }
    return HONE_OK;
}

/* How a broadcast is walked: the result's dimensions, neighbours merged that both stand or both go on, those of 1 left
 * out, and their steps in the operand. The last one is a run: a copy (step 1) or one element repeated (step 0). */
struct spread {
    int rank;
    int64_t dim[HONE_MAX_RANK], step[HONE_MAX_RANK];
};

static struct spread plan_spread(const struct op_call *c)
{
    const hone_shape *s = &c->out[0].shape;
    struct spread p = {0};
    int64_t stride[HONE_MAX_RANK];
    op_strides(&c->in[0].shape, s, stride);
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[i] == 1)
            continue;
        if (p.rank && p.step[p.rank - 1] == s->dim[i] * stride[i]) {
            p.dim[p.rank - 1] *= s->dim[i];
            p.step[p.rank - 1] = stride[i];
        } else {
            p.dim[p.rank] = s->dim[i];
            p.step[p.rank++] = stride[i];
        }
    }
    return p;
}

static int64_t spread_at(const struct spread *p, int64_t row)
{
    int64_t at = 0;
    for (int k = p->rank - 2; k >= 0; k--) {
        at += row % p->dim[k] * p->step[k];
        row /= p->dim[k];
    }
    return at;
}

enum { PART = 4096 }; /* elements that a thread does at once: a part of a long run, or several short ones */

#define BROADCAST(T)                                                                                                   \
    static void broadcast_part_##T(const T *x, T *y, const struct spread *p, int64_t row, int64_t rows, int64_t from,  \
                                   int64_t n)                                                                          \
    {                                                                                                                  \
        const int64_t run = p->rank ? p->dim[p->rank - 1] : 1, many = p->rank > 1 ? p->dim[p->rank - 2] : 1;           \
        const int64_t step = p->rank > 1 ? p->step[p->rank - 2] : 0;                                                   \
        int64_t at = spread_at(p, row), left = many - row % many;                                                      \
        for (int64_t r = row; r < row + rows; r++) {                                                                   \
            T *to = y + r * run + from;                                                                                \
            if (p->rank && p->step[p->rank - 1]) {                                                                     \
                memcpy(to, x + at + from, (size_t)n * sizeof(T));                                                      \
            } else {                                                                                                   \
                const T value = x[at];                                                                                 \
                for (int64_t i = 0; i < n; i++)                                                                        \
                    to[i] = value;                                                                                     \
            }                                                                                                          \
            at += step;                                                                                                \
            if (--left == 0) {                                                                                         \
                at = spread_at(p, r + 1);                                                                              \
                left = many;                                                                                           \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void broadcast_##T(const struct bk_io *io, const struct spread *p)                                          \
    {                                                                                                                  \
        const int64_t n = op_numel(&io->call->out[0]), run = p->rank ? p->dim[p->rank - 1] : 1, rows = n / run;        \
        const int64_t parts = (run + PART - 1) / PART, some = run < PART ? PART / run : 1;                             \
        const int64_t tasks = (rows + some - 1) / some * parts;                                                        \
        CPU_PARALLEL(io, n)                                                                                            \
        for (int64_t t = 0; t < tasks; t++) {                                                                          \
            const int64_t row = t / parts * some, from = t % parts * PART;                                             \
            broadcast_part_##T(io->in[0], io->out[0], p, row, rows - row < some ? rows - row : some, from,             \
                               run - from < PART ? run - from : PART);                                                 \
        }                                                                                                              \
    }

BROADCAST(uint32_t)
BROADCAST(uint8_t)

static hone_status broadcast_run(const struct bk_io *io, hone_err *err)
{
    const struct spread p = plan_spread(io->call);
    (void)err;
    if (op_numel(&io->call->out[0]) == 0)
        return HONE_OK;
    if (hone_dtype_size(io->call->in[0].dtype) == 4)
        broadcast_uint32_t(io, &p);
    else
        broadcast_uint8_t(io, &p);
    return HONE_OK;
}

static bool bytes_1_or_4(const struct op_call *c)
{
    const size_t n = hone_dtype_size(c->in[0].dtype);
    return n == 1 || n == 4;
}

const struct bk_kernel cpu_slice = {.op = "slice", .run = slice_run};
const struct bk_kernel cpu_concat = {.op = "concat", .run = concat_run};
const struct bk_kernel cpu_pad = {.op = "pad", .accepts = is_f32, .run = pad_run};
const struct bk_kernel cpu_broadcast = {.op = "broadcast", .accepts = bytes_1_or_4, .run = broadcast_run};
