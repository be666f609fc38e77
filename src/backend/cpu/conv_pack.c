/* conv_pack: weights in the order in which conv_block reads them, as f32 or in pairs of bf16. */
#include "backend/cpu/cpu.h"
#include "op/conv_block.h"
#include "tensor/bf16.h"

static hone_status conv_pack_run(const struct bk_io *io, hone_err *err)
{
    const int64_t *w = io->call->in[0].shape.dim;
    const int64_t outs = (w[0] + CB_LANES - 1) / CB_LANES * CB_LANES, together = io->call->attr.i[CP_HALF] ? 2 : 1;
    const float *x = io->in[0];
    (void)err;
    for (int64_t o = 0; o < outs; o++)
        for (int64_t c = 0; c < w[1]; c++)
            for (int64_t k = 0; k < w[2]; k++) {
                const float v = o < w[0] ? x[(o * w[1] + c) * w[2] + k] : 0;
                const int64_t vector = (o / CB_LANES * (w[1] / together) + c / together) * w[2] + k;
                const int64_t to = (vector * CB_LANES + o % CB_LANES) * together + c % together;
                if (together == 2)
                    ((uint16_t *)io->out[0])[to] = bf16_of(v);
                else
                    ((float *)io->out[0])[to] = v;
            }
    return HONE_OK;
}

const struct bk_kernel cpu_conv_pack = {.op = "conv_pack", .run = conv_pack_run};
