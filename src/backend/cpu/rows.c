/* Rows by index: gather, and its transpose scatter_add. Indices are checked before anything is written. */
#include <string.h>

#include "backend/cpu/cpu.h"

static hone_status check_index(const struct bk_io *io, int operand, int64_t rows, hone_err *err)
{
    const hone_shape *s = &io->call->in[operand].shape;
    const int32_t *index = io->in[operand];
    char at[64];
    for (int64_t i = 0, n = hone_numel(s); i < n; i++) {
        if (index[i] >= 0 && index[i] < rows)
            continue;
        hone_shape place = *s;
        int64_t left = i;
        for (int k = s->rank - 1; k >= 0; k--) {
            place.dim[k] = left % s->dim[k];
            left /= s->dim[k];
        }
        return err_set(err, HONE_E_ARG, io->layer, "%s: the index at %s is %d; must be in [0, %lld)",
                       io->call->def->name, hone_shape_text(&place, at, sizeof at), (int)index[i], (long long)rows);
    }
    return HONE_OK;
}

struct gather {
    const int32_t *index;
    const char *x;
    char *y;
    size_t row; /* bytes */
};

static void gather_rows(void *arg, int64_t from, int64_t to)
{
    const struct gather *g = arg;
    for (int64_t i = from; i < to; i++)
        memcpy(g->y + (size_t)i * g->row, g->x + (size_t)g->index[i] * g->row, g->row);
}

static hone_status gather_run(const struct bk_io *io, hone_err *err)
{
    const struct op_call *c = io->call;
    const int64_t n = op_numel(&c->in[1]), all = op_numel(&c->out[0]);
    struct gather g = {io->in[1], io->in[0], io->out[0], 0};
    hone_status s = check_index(io, 1, c->in[0].shape.dim[0], err);
    if (s != HONE_OK || all == 0)
        return s;
    g.row = (size_t)(all / n) * hone_dtype_size(c->in[0].dtype);
    cpu_split(io, n, all, gather_rows, &g);
    return HONE_OK;
}

/* Scratch: where the list of each row begins (rows + 1), then the lists: which source rows go to it, in order. */
static size_t scatter_scratch(const struct op_call *c, int threads)
{
    (void)threads;
    return (size_t)(c->in[0].shape.dim[0] + 1 + op_numel(&c->in[1])) * sizeof(int64_t);
}

static void list_sources(const int32_t *index, int64_t n, int64_t rows, int64_t *begin, int64_t *list)
{
    memset(begin, 0, (size_t)(rows + 1) * sizeof *begin);
    for (int64_t i = 0; i < n; i++)
        begin[index[i] + 1]++;
    for (int64_t r = 0; r < rows; r++)
        begin[r + 1] += begin[r];
    for (int64_t i = 0; i < n; i++)
        list[begin[index[i]]++] = i;
    for (int64_t r = rows; r > 0; r--) /* each begin has moved to its end */
        begin[r] = begin[r - 1];
    begin[0] = 0;
}

enum { COLUMNS = 64 };

/* Columns [from, from + n) of one result: the base and its sources in the order of the index, summed in double. */
static void add_sources(const float *base, const float *src, float *y, int64_t n, int64_t width, const int64_t *list,
                        int64_t sources)
{
    double acc[COLUMNS];
    for (int64_t j = 0; j < n; j++)
        acc[j] = base[j];
    for (int64_t i = 0; i < sources; i++) {
        const float *x = src + list[i] * width;
        CPU_SIMD
        for (int64_t j = 0; j < n; j++)
            acc[j] += x[j];
    }
    for (int64_t j = 0; j < n; j++)
        y[j] = (float)acc[j];
}

struct scatter {
    const float *base, *src;
    float *y;
    const int64_t *begin, *list;
    int64_t width, blocks; /* of a row, in elements and in blocks of columns */
};

/* Blocks of columns [from, to) of all rows. */
static void scatter_blocks(void *arg, int64_t from, int64_t to)
{
    const struct scatter *q = arg;
    for (int64_t t = from; t < to; t++) {
        const int64_t r = t / q->blocks, column = t % q->blocks * COLUMNS, at = r * q->width + column;
        const int64_t left = q->width - column, n = left < COLUMNS ? left : COLUMNS;
        const int64_t sources = q->begin[r + 1] - q->begin[r];
        if (sources)
            add_sources(q->base + at, q->src + column, q->y + at, n, q->width, q->list + q->begin[r], sources);
        else if (q->y != q->base)
            memcpy(q->y + at, q->base + at, (size_t)n * sizeof *q->y);
    }
}

static hone_status scatter_add_run(const struct bk_io *io, hone_err *err)
{
    const struct op_call *c = io->call;
    const int64_t rows = c->in[0].shape.dim[0], n = op_numel(&c->in[1]), all = op_numel(&c->out[0]);
    int64_t *begin = io->scratch, *list = begin + rows + 1;
    hone_status s = check_index(io, 1, rows, err);
    if (s != HONE_OK || all == 0)
        return s;
    list_sources(io->in[1], n, rows, begin, list);
    const int64_t width = all / rows, blocks = (width + COLUMNS - 1) / COLUMNS;
    struct scatter q = {io->in[0], io->in[2], io->out[0], begin, list, width, blocks};
    cpu_split(io, rows * blocks, all + op_numel(&c->in[2]), scatter_blocks, &q);
    return HONE_OK;
}

const struct bk_kernel cpu_gather = {.op = "gather", .run = gather_run};
const struct bk_kernel cpu_scatter_add = {
    .op = "scatter_add", .scratch = scatter_scratch, .inplace = {1}, .run = scatter_add_run};
