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

/* Runs of n bytes, `from` and `to` bytes apart. */
struct runs {
    char *y;
    size_t to;
    const char *x;
    size_t from, n;
};

static void copy_range(void *arg, int64_t from, int64_t to)
{
    const struct runs *r = arg;
    for (int64_t o = from; o < to; o++)
        memcpy(r->y + (size_t)o * r->to, r->x + (size_t)o * r->from, r->n);
}

static void copy_runs(const struct bk_io *io, struct runs r, int64_t outer)
{
    if (r.n)
        cpu_split(io, outer, (int64_t)(r.n / sizeof(float)) * outer, copy_range, &r);
}

static hone_status slice_run(const struct bk_io *io, hone_err *err)
{
    const struct op_call *c = io->call;
    int64_t outer;
    const size_t from = run_of(&c->in[0], c->attr.i[0], &outer), to = run_of(&c->out[0], c->attr.i[0], &outer);
    (void)err;
    const char *x = (const char *)io->in[0] + (size_t)c->attr.i[1] * inner_of(&c->in[0], c->attr.i[0]);
    copy_runs(io, (struct runs){io->out[0], to, x, from, to}, outer);
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
        copy_runs(io, (struct runs){y, to, io->in[k], n, n}, outer);
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

/* Rows of floats: so many of `value`, of the operand, of `value`. */
struct padding {
    const float *x;
    float *y, value;
    int64_t before, middle, after;
};

static void pad_rows(void *arg, int64_t from, int64_t to)
{
    const struct padding *p = arg;
    for (int64_t o = from; o < to; o++) {
        float *row = p->y + o * (p->before + p->middle + p->after);
        fill(row, p->before, p->value);
        if (p->middle)
            memcpy(row + p->before, p->x + o * p->middle, (size_t)p->middle * sizeof(float));
        fill(row + p->before + p->middle, p->after, p->value);
    }
}

static hone_status pad_run(const struct bk_io *io, hone_err *err)
{
    const struct op_call *c = io->call;
    const int64_t axis = c->attr.i[0];
    int64_t outer;
    const int64_t one = (int64_t)(inner_of(&c->in[0], axis) / sizeof(float));
    const int64_t middle = (int64_t)(run_of(&c->in[0], axis, &outer) / sizeof(float));
    struct padding p = {io->in[0], io->out[0], (float)c->attr.f[0], c->attr.i[1] * one, middle, c->attr.i[2] * one};
    (void)err;
    cpu_split(io, outer, outer * (p.before + middle + p.after), pad_rows, &p);
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

struct broadcast {
    struct spread p;
    const void *x;
    void *y;
    int64_t run, rows; /* the result */
    int64_t parts;     /* of a run */
    int64_t some;      /* rows at once */
};

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
    static void broadcast_##T(void *arg, int64_t first, int64_t end)                                                   \
    {                                                                                                                  \
        const struct broadcast *q = arg;                                                                               \
        for (int64_t t = first; t < end; t++) {                                                                        \
            const int64_t row = t / q->parts * q->some, from = t % q->parts * PART;                                    \
            const int64_t rows = q->rows - row, n = q->run - from;                                                     \
            broadcast_part_##T(q->x, q->y, &q->p, row, rows < q->some ? rows : q->some, from, n < PART ? n : PART);    \
        }                                                                                                              \
    }

BROADCAST(uint32_t)
BROADCAST(uint8_t)

static hone_status broadcast_run(const struct bk_io *io, hone_err *err)
{
    struct broadcast q = {.p = plan_spread(io->call), .x = io->in[0], .y = io->out[0]};
    const int64_t n = op_numel(&io->call->out[0]);
    (void)err;
    if (n == 0)
        return HONE_OK;
    q.run = q.p.rank ? q.p.dim[q.p.rank - 1] : 1;
    q.rows = n / q.run;
    q.parts = (q.run + PART - 1) / PART;
    q.some = q.run < PART ? PART / q.run : 1;
    cpu_split(io, (q.rows + q.some - 1) / q.some * q.parts, n,
              hone_dtype_size(io->call->in[0].dtype) == 4 ? broadcast_uint32_t : broadcast_uint8_t, &q);
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
