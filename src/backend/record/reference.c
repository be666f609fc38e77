/* Results by the operation's own reference, for mapped uses that the CPU has no kernel for. */
#include "backend/record/record.h"

static int64_t values(const struct op_call *c)
{
    int64_t n = 0;
    for (int i = 0; i < c->n_in; i++)
        n += op_numel(&c->in[i]);
    for (int i = 0; i < c->n_out; i++)
        n += op_numel(&c->out[i]);
    return n;
}

size_t record_reference_bytes(const struct op_call *c)
{
    return (size_t)values(c) * sizeof(double);
}

static void widen(hone_dtype t, const void *from, double *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        switch (t) {
        case HONE_F32:
            to[i] = (double)((const float *)from)[i];
            break;
        case HONE_I32:
            to[i] = ((const int32_t *)from)[i];
            break;
        default: /* u8, bool */
            to[i] = ((const uint8_t *)from)[i];
        }
}

static void narrow(hone_dtype t, const double *from, void *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        switch (t) {
        case HONE_F32:
            ((float *)to)[i] = (float)from[i];
            break;
        case HONE_I32:
            ((int32_t *)to)[i] = (int32_t)from[i];
            break;
        default:
            ((uint8_t *)to)[i] = (uint8_t)from[i];
        }
}

void record_reference_run(const struct bk_io *io, void *memory)
{
    const struct op_call *c = io->call;
    const double *in[OP_MAX_IN];
    double *out[OP_MAX_OUT], *at = memory;
    for (int i = 0; i < c->n_in; i++) {
        widen(c->in[i].dtype, io->in[i], at, op_numel(&c->in[i]));
        in[i] = at;
        at += op_numel(&c->in[i]);
    }
    for (int i = 0; i < c->n_out; i++) {
        out[i] = at;
        at += op_numel(&c->out[i]);
    }
    c->def->ref(c, in, out);
    for (int i = 0; i < c->n_out; i++)
        narrow(c->out[i].dtype, out[i], io->out[i], op_numel(&c->out[i]));
}
