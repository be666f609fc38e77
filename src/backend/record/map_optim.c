/* Steps of optimisers, on slabs: one operator for all parameters of a group. */
#include "backend/record/record.h"
#include "op/adamw.h"

/* ApplyAdamWV2 counts steps from 0, whatever its page says (it computes with its step + 1); adamw counts from 1.
 * It takes the rate as a number, and knows no skipping: both are fetched, and the host decides. */
static void adamw_step(struct record_use *u, float lr)
{
    const struct op_call *c = u->call;
    const double *f = c->attr.f;
    struct record_view grad = record_ranked(record_in(u, ADAMW_G));
    const struct record_view step = record_temp(u, HONE_F32, HONE_SHAPE(1));
    record_open(u, "Adds");
    record_tensor(u, "self", record_shaped(record_in(u, ADAMW_STEP), HONE_SHAPE(1)));
    record_scalar(u, "other", -1);
    record_scalar(u, "alpha", 1);
    record_tensor(u, "out", step);
    record_close(u);
    if (c->n_in > ADAMW_SCALE) {
        const struct record_view scaled = record_temp(u, HONE_F32, grad.shape);
        record_open(u, "Mul");
        record_tensor(u, "self", grad);
        record_tensor(u, "other", record_shaped(record_in(u, ADAMW_SCALE), HONE_SHAPE(1)));
        record_tensor(u, "out", scaled);
        record_close(u);
        grad = scaled;
    }
    record_open(u, "ApplyAdamWV2");
    record_tensor(u, "varRef", record_ranked(record_out(u, 0)));
    record_tensor(u, "mRef", record_ranked(record_out(u, 1)));
    record_tensor(u, "vRef", record_ranked(record_out(u, 2)));
    record_none(u, "maxGradNormOptionalRef");
    record_tensor(u, "grad", grad);
    record_tensor(u, "step", step);
    record_f64(u, "lr", (double)lr);
    record_f64(u, "beta1", f[ADAMW_BETA1]);
    record_f64(u, "beta2", f[ADAMW_BETA2]);
    record_f64(u, "weightDecay", f[ADAMW_DECAY]);
    record_f64(u, "eps", f[ADAMW_EPS]);
    record_bool(u, "amsgrad", false);
    record_bool(u, "maximize", false);
    record_close(u);
}

static void adamw(struct record_use *u)
{
    static const int from[3] = {ADAMW_P, ADAMW_M, ADAMW_V};
    const float lr = record_fetch(u, ADAMW_LR);
    const float skip = u->call->n_in > ADAMW_SKIP ? record_fetch(u, ADAMW_SKIP) : 0;
    record_wait(u);
    for (int i = 0; i < 3; i++)
        if (u->io->out[i] != u->io->in[from[i]])
            record_copy(u, record_out(u, i), record_in(u, from[i]));
    if (skip == 0)
        adamw_step(u, lr);
    else
        record_nothing(u);
}

static size_t adamw_temp(const struct op_call *c)
{
    const size_t n = c->n_in > ADAMW_SCALE ? record_temp_bytes(HONE_F32, c->in[ADAMW_G].shape) : 0;
    return record_temp_bytes(HONE_F32, HONE_SHAPE(1)) + n;
}

/* avg + (1 - decay) (p - avg) */
static void average(struct record_use *u)
{
    const struct record_view weight = record_temp(u, HONE_F32, HONE_SHAPE(1));
    record_open(u, "Rsubs");
    record_tensor(u, "self", record_shaped(record_in(u, 2), HONE_SHAPE(1)));
    record_scalar(u, "other", 1);
    record_scalar(u, "alpha", 1);
    record_tensor(u, "out", weight);
    record_close(u);
    record_open(u, "Lerp");
    record_tensor(u, "self", record_ranked(record_in(u, 0)));
    record_tensor(u, "end", record_ranked(record_in(u, 1)));
    record_tensor(u, "weight", weight);
    record_tensor(u, "out", record_ranked(record_out(u, 0)));
    record_close(u);
}

static size_t average_temp(const struct op_call *c)
{
    (void)c;
    return record_temp_bytes(HONE_F32, HONE_SHAPE(1));
}

RECORD_MAP_WITH(adamw, record_full, adamw, adamw_temp, .inplace = {1u << ADAMW_P, 1u << ADAMW_M, 1u << ADAMW_V});
RECORD_MAP_TEMP(average, record_full, average, average_temp);
