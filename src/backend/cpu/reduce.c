/* Sums over axes. Dimensions are merged until they alternate between kept and gone; partial sums are in double, so a
 * long sum in f32 stays exact to rounding. */
#include "backend/cpu/cpu.h"

static hone_status sum_run(const struct bk_io *io, hone_err *err)
{
    const hone_shape *s = &io->call->in[0].shape;
    const unsigned axes = (unsigned)io->call->attr.i[0];
    const float *x = io->in[0];
    float *y = io->out[0];
    int64_t dim[HONE_MAX_RANK], kept_n = 1, gone_n = 1, stride[HONE_MAX_RANK], step = 1;
    bool gone[HONE_MAX_RANK];
    (void)err;
    for (int i = s->rank - 1; i >= 0; i--) {
        dim[i] = s->dim[i];
        stride[i] = step;
        step *= s->dim[i];
        gone[i] = axes >> i & 1;
        if (gone[i])
            gone_n *= dim[i];
        else
            kept_n *= dim[i];
    }
    const int64_t work = kept_n * gone_n;
    CPU_PARALLEL(io, work)
    for (int64_t o = 0; o < kept_n; o++) {
        int64_t left = o, base = 0, idx[HONE_MAX_RANK] = {0};
        double sum = 0;
        for (int i = s->rank - 1; i >= 0; i--)
            if (!gone[i]) {
                base += left % dim[i] * stride[i];
                left /= dim[i];
            }
        for (int64_t k = 0; k < gone_n; k++) {
            sum += x[base];
            for (int i = s->rank - 1; i >= 0; i--) {
                if (!gone[i])
                    continue;
                base += stride[i];
                if (++idx[i] < dim[i])
                    break;
                base -= dim[i] * stride[i];
                idx[i] = 0;
            }
        }
        y[o] = (float)sum;
    }
    return HONE_OK;
}

const struct bk_kernel cpu_sum = {.op = "sum", .run = sum_run};
