/* Dimensions in another order. Neighbours that stay together are merged; what is left is either a copy of contiguous
 * runs, or a transpose of matrices. Their sides may each be made of several dimensions, so that a dimension of a few
 * elements is no side by itself; they are done in square blocks, so that both sides move whole cache lines. */
#include <string.h>

#include "backend/cpu/cpu.h"

/* Elements a side: of what is done at once, which fits the first cache; of a cache line of f32; of what registers turn.
 */
enum { BLOCK = 64, LINE = 16, QUAD = 4 };

/* The result's dimensions, those of 1 left out, and their steps in the operand and in the result. */
struct order {
    int rank;
    int64_t dim[HONE_MAX_RANK], x[HONE_MAX_RANK], y[HONE_MAX_RANK];
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
        if (o.rank && o.x[o.rank - 1] == d * by) {
            o.dim[o.rank - 1] *= d;
            o.x[o.rank - 1] = by;
        } else {
            o.dim[o.rank] = d;
            o.x[o.rank++] = by;
        }
    }
    step = 1;
    for (int i = o.rank - 1; i >= 0; i--) {
        o.y[i] = step;
        step *= o.dim[i];
    }
    return o;
}

/* --- a place among some of the dimensions --- */

/* `axis`: the fastest first. */
struct axes {
    int n, axis[HONE_MAX_RANK];
    int64_t all; /* places */
};

static void add_axis(struct axes *a, const struct order *o, int axis)
{
    a->axis[a->n++] = axis;
    a->all *= o->dim[axis];
}

struct place {
    int64_t idx[HONE_MAX_RANK], x, y;
};

static struct place place_of(const struct order *o, const struct axes *a, int64_t k)
{
    struct place p = {.x = 0};
    for (int i = 0; i < a->n; i++) {
        const int d = a->axis[i];
        p.idx[i] = k % o->dim[d];
        k /= o->dim[d];
        p.x += p.idx[i] * o->x[d];
        p.y += p.idx[i] * o->y[d];
    }
    return p;
}

static inline void next_place(const struct order *o, const struct axes *a, struct place *p)
{
    for (int i = 0; i < a->n; i++) {
        const int d = a->axis[i];
        p->x += o->x[d];
        p->y += o->y[d];
        if (++p->idx[i] < o->dim[d])
            return;
        p->x -= p->idx[i] * o->x[d];
        p->y -= p->idx[i] * o->y[d];
        p->idx[i] = 0;
    }
}

/* --- runs --- */

struct job {
    const char *x;
    char *y;
    size_t size; /* of an element */
    struct order o;
    struct axes matrices, rows, columns; /* of runs: only rows */
};

/* The last dimension stays the last: rows of contiguous elements. */
static void copy_rows(void *arg, int64_t from, int64_t to)
{
    const struct job *q = arg;
    const size_t run = q->size * (size_t)(q->o.rank ? q->o.dim[q->o.rank - 1] : 1);
    struct place p = place_of(&q->o, &q->rows, from);
    for (int64_t r = from; r < to; r++) {
        memcpy(q->y + (size_t)r * run, q->x + (size_t)p.x * q->size, run);
        next_place(&q->o, &q->rows, &p);
    }
}

/* --- transposes --- */

/* A block: `na` elements contiguous in the operand, of which i stands at y[i] in the result; `nb` contiguous in the
 * result, of which j stands at x[j] in the operand. */
struct block {
    int64_t na, nb;
    int64_t x[BLOCK], y[BLOCK];
};

typedef uint32_t quad __attribute__((vector_size(16)));
typedef uint32_t mem_quad __attribute__((vector_size(16), aligned(4), may_alias));

/* Four times four elements: x at four places, to y at four places. */
static inline void turn(const uint32_t *x, const int64_t *from, uint32_t *y, const int64_t *to)
{
    const quad a = *(const mem_quad *)(x + from[0]), b = *(const mem_quad *)(x + from[1]);
    const quad c = *(const mem_quad *)(x + from[2]), d = *(const mem_quad *)(x + from[3]);
    const quad ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const quad cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(mem_quad *)(y + to[0]) = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
    *(mem_quad *)(y + to[1]) = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
    *(mem_quad *)(y + to[2]) = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5);
    *(mem_quad *)(y + to[3]) = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
}

/* Elements [i, end) of one side and j and more of the other, one by one. */
#define MOVE(T)                                                                                                        \
    static void move_##T(const T *x, T *y, const struct block *b, int64_t i, int64_t end, int64_t j)                   \
    {                                                                                                                  \
        for (; i < end; i++)                                                                                           \
            for (int64_t k = j; k < b->nb; k++)                                                                        \
                y[b->y[i] + k] = x[b->x[k] + i];                                                                       \
    }
MOVE(uint32_t)
MOVE(uint8_t)

/* Part [i, i + LINE) x [j, j + LINE). Lines are read whole, then written whole: where steps are powers of two, lines of
 * one side push each other out of the cache. */
static void transpose_lines(const uint32_t *x, uint32_t *y, const struct block *b, int64_t i, int64_t j)
{
    static const int64_t at[QUAD] = {0, LINE, 2 * LINE, 3 * LINE};
    uint32_t line[LINE * LINE];
    for (int k = 0; k < LINE; k++)
        memcpy(line + k * LINE, x + b->x[j + k] + i, LINE * sizeof *line);
    for (int k = 0; k < LINE; k += QUAD)
        for (int m = 0; m < LINE; m += QUAD)
            turn(line + m * LINE + k, at, y + j + m, b->y + i + k);
}

static void transpose(const uint32_t *x, uint32_t *y, const struct block *b)
{
    const int64_t na = b->na - b->na % QUAD, nb = b->nb - b->nb % QUAD;
    for (int64_t j = 0; j < nb; j += LINE)
        for (int64_t i = 0; i < na; i += LINE) {
            if (na - i >= LINE && nb - j >= LINE) {
                transpose_lines(x, y, b, i, j);
                continue;
            }
            for (int64_t k = i; k < na && k < i + LINE; k += QUAD)
                for (int64_t m = j; m < nb && m < j + LINE; m += QUAD)
                    turn(x + k, b->x + m, y + m, b->y + k);
        }
    move_uint32_t(x, y, b, 0, na, nb);
    move_uint32_t(x, y, b, na, b->na, 0);
}

/* The sides of the block at (i, j) as seen from its first element; returns where that is. */
static struct place set_rows(const struct job *q, int64_t i, struct block *b)
{
    const struct place first = place_of(&q->o, &q->rows, i);
    struct place p = first;
    b->na = q->rows.all - i < BLOCK ? q->rows.all - i : BLOCK;
    for (int64_t k = 0; k < b->na; k++) {
        b->y[k] = p.y - first.y;
        next_place(&q->o, &q->rows, &p);
    }
    return first;
}

static struct place set_columns(const struct job *q, int64_t j, struct block *b)
{
    const struct place first = place_of(&q->o, &q->columns, j);
    struct place p = first;
    b->nb = q->columns.all - j < BLOCK ? q->columns.all - j : BLOCK;
    for (int64_t k = 0; k < b->nb; k++) {
        b->x[k] = p.x - first.x;
        next_place(&q->o, &q->columns, &p);
    }
    return first;
}

static int64_t blocks_of(const struct axes *a)
{
    return (a->all + BLOCK - 1) / BLOCK;
}

/* Blocks [from, to) of all matrices. */
static void copy_blocks(void *arg, int64_t from, int64_t to)
{
    const struct job *q = arg;
    const int64_t down = blocks_of(&q->rows), across = blocks_of(&q->columns);
    int64_t row = -1, column = -1; /* for which the block is set */
    struct block b;
    struct place r = {.x = 0}, c = {.x = 0}, m = place_of(&q->o, &q->matrices, from / across / down);
    for (int64_t t = from; t < to; t++) {
        const int64_t i = t / across % down, j = t % across;
        if (i != row)
            r = set_rows(q, i * BLOCK, &b);
        if (j != column)
            c = set_columns(q, j * BLOCK, &b);
        row = i;
        column = j;
        const size_t x = (size_t)(m.x + r.x + c.x) * q->size, y = (size_t)(m.y + r.y + c.y) * q->size;
        if (q->size == 4)
            transpose((const uint32_t *)(q->x + x), (uint32_t *)(q->y + y), &b);
        else
            move_uint8_t((const uint8_t *)q->x + x, (uint8_t *)q->y + y, &b, 0, b.na, 0);
        if (i + 1 == down && j + 1 == across)
            next_place(&q->o, &q->matrices, &m);
    }
}

/* --- */

static bool has(const struct axes *a, int axis)
{
    for (int i = 0; i < a->n; i++)
        if (a->axis[i] == axis)
            return true;
    return false;
}

/* The dimension that follows those of `a` in the operand; -1: it belongs to `other`, or there is none. */
static int next_in_operand(const struct order *o, const struct axes *a, const struct axes *other)
{
    for (int i = 0; i < o->rank; i++)
        if (o->x[i] == a->all && !has(a, i) && !has(other, i))
            return i;
    return -1;
}

/* Sides begin with the fastest dimension of the operand, and of the result, and grow while they are short. */
static void plan_blocks(struct job *q)
{
    const struct order *o = &q->o;
    int axis = o->rank - 1;
    q->rows.all = q->columns.all = q->matrices.all = 1;
    add_axis(&q->columns, o, axis);
    while (q->rows.all < BLOCK && (axis = next_in_operand(o, &q->rows, &q->columns)) >= 0)
        add_axis(&q->rows, o, axis);
    for (axis = o->rank - 2; q->columns.all < BLOCK && axis >= 0 && !has(&q->rows, axis); axis--)
        add_axis(&q->columns, o, axis);
    for (axis = o->rank - 1; axis >= 0; axis--)
        if (!has(&q->rows, axis) && !has(&q->columns, axis))
            add_axis(&q->matrices, o, axis);
}

static hone_status permute_run(const struct bk_io *io, hone_err *err)
{
    struct job q = {.x = io->in[0], .y = io->out[0], .size = hone_dtype_size(io->call->in[0].dtype)};
    const int64_t n = op_numel(&io->call->out[0]);
    (void)err;
    if (n == 0)
        return HONE_OK;
    q.o = plan_order(io->call);
    if (q.o.rank == 0 || q.o.x[q.o.rank - 1] == 1) {
        q.rows.all = 1;
        for (int axis = q.o.rank - 2; axis >= 0; axis--)
            add_axis(&q.rows, &q.o, axis);
        cpu_split(io, q.rows.all, n, copy_rows, &q);
        return HONE_OK;
    }
    plan_blocks(&q);
    cpu_split(io, q.matrices.all * blocks_of(&q.rows) * blocks_of(&q.columns), n, copy_blocks, &q);
    return HONE_OK;
}

static bool bytes_1_or_4(const struct op_call *c)
{
    const size_t n = hone_dtype_size(c->in[0].dtype);
    return n == 1 || n == 4;
}

const struct bk_kernel cpu_permute = {.op = "permute", .accepts = bytes_1_or_4, .run = permute_run};
