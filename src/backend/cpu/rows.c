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

static hone_status gather_run(const struct bk_io *io, hone_err *err)
{
    const struct op_call *c = io->call;
    const int64_t n = op_numel(&c->in[1]), all = op_numel(&c->out[0]);
    const int32_t *index = io->in[1];
    const char *x = io->in[0];
    char *y = io->out[0];
    hone_status s = check_index(io, 1, c->in[0].shape.dim[0], err);
    if (s != HONE_OK || all == 0)
        return s;
    const size_t row = (size_t)(all / n) * hone_dtype_size(c->in[0].dtype);
    CPU_PARALLEL(io, all)
    for (int64_t i = 0; i < n; i++)
        memcpy(y + (size_t)i * row, x + (size_t)index[i] * row, row);
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

static hone_status scatter_add_run(const struct bk_io *io, hone_err *err)
{
    const struct op_call *c = io->call;
    const int64_t rows = c->in[0].shape.dim[0], n = op_numel(&c->in[1]), all = op_numel(&c->out[0]);
    const float *base = io->in[0], *src = io->in[2];
    float *y = io->out[0];
    int64_t *begin = io->scratch, *list = begin + rows + 1;
    hone_status s = check_index(io, 1, rows, err);
    if (s != HONE_OK || all == 0)
        return s;
    list_sources(io->in[1], n, rows, begin, list);
    const int64_t width = all / rows, blocks = (width + COLUMNS - 1) / COLUMNS, work = all + op_numel(&c->in[2]);
    CPU_PARALLEL(io, work)
    for (int64_t t = 0; t < rows * blocks; t++) {
        const int64_t r = t / blocks, column = t % blocks * COLUMNS, at = r * width + column;
        const int64_t m = width - column < COLUMNS ? width - column : COLUMNS, sources = begin[r + 1] - begin[r];
        if (sources)
            add_sources(base + at, src + column, y + at, m, width, list + begin[r], sources);
        else if (y != base)
            memcpy(y + at, base + at, (size_t)m * sizeof *y);
    }
    return HONE_OK;
}

const struct bk_kernel cpu_gather = {.op = "gather", .run = gather_run};
const struct bk_kernel cpu_scatter_add = {
    .op = "scatter_add", .scratch = scatter_scratch, .inplace = {1}, .run = scatter_add_run};
