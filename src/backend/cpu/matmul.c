/* Batched matrix products, portable: for builds without oneDNN. */
#include "backend/cpu/cpu.h"

static void product(const float *x, const float *y, float *z, int64_t m, int64_t k, int64_t n, bool ta, bool tb)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float s = 0;
            for (int64_t p = 0; p < k; p++)
                s += x[ta ? p * m + i : i * k + p] * y[tb ? j * k + p : p * n + j];
            z[i * n + j] = s;
        }
}

static hone_status matmul_run(const struct bk_io *io, hone_err *err)
{
    hone_shape a = io->call->in[0].shape, b = io->call->in[1].shape, o = io->call->out[0].shape;
    const bool ta = io->call->attr.i[0], tb = io->call->attr.i[1];
    const int64_t m = o.dim[o.rank - 2], n = o.dim[o.rank - 1], k = a.dim[a.rank - (ta ? 2 : 1)];
    int64_t as[HONE_MAX_RANK], bs[HONE_MAX_RANK], idx[HONE_MAX_RANK] = {0}, at = 0;
    (void)err;
    if (hone_numel(&o) == 0)
        return HONE_OK;
    a.rank -= 2;
    b.rank -= 2;
    o.rank -= 2;
    op_strides(&a, &o, as);
    op_strides(&b, &o, bs);
    do {
        int64_t i = 0, j = 0;
        for (int d = 0; d < o.rank; d++) {
            i += idx[d] * as[d];
            j += idx[d] * bs[d];
        }
        product((const float *)io->in[0] + i * m * k, (const float *)io->in[1] + j * k * n,
                (float *)io->out[0] + at++ * m * n, m, k, n, ta, tb);
    } while (op_next(&o, idx));
    return HONE_OK;
}

const struct bk_kernel cpu_matmul = {.op = "matmul", .run = matmul_run};
