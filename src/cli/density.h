/* Four modes in the plane, learned by a small diffusion model: the experiment of `hone demo density`, without any
 * printing.
 *
 * Data: four Gaussians at (± .8, ± .8), equally likely, standard deviation .05. After training, each mode must get a
 * quarter of the samples, within DENSITY_SHARE, and at least DENSITY_NEAR of them must lie within 3 standard deviations
 * of a mode (of the data themselves 0.989 do). */
#ifndef CLI_DENSITY_H
#define CLI_DENSITY_H

#include "hone/field.h"
#include "hone/head.h"

#define DENSITY_MODES  4
#define DENSITY_AT     0.8
#define DENSITY_SPREAD 0.05
#define DENSITY_SHARE  0.02
#define DENSITY_NEAR   0.95
#define DENSITY_CURVE  200 /* places of a loss curve */

/* Settings, with a field table. */
struct density_config {
    int64_t seed;
    int64_t points, samples;          /* of the data; drawn to be measured */
    int64_t levels;                   /* timesteps of the schedule, all of which are sampled through */
    int64_t steps, batch;             /* of training */
    int64_t hidden, blocks, time_dim; /* of the network */
    double lr;                        /* falls to a hundredth along a cosine */
    double average;                   /* decay of the averaged weights that are sampled from */
};
extern const hone_field_table density_fields;

/* `points` points [points, 2], interleaved x and y. */
void density_data(const struct density_config *c, float *xy);

struct density_result {
    float *samples;              /* [samples, 2]; freed by density_free */
    double share[DENSITY_MODES]; /* of samples nearest to each mode: ++, -+, +-, -- */
    double near;                 /* share within 3 standard deviations of a mode */
    double spread;               /* root of the mean squared distance to the nearest mode, one axis */
    double train_seconds, sample_seconds;
    int curve_n;
    double curve[DENSITY_CURVE]; /* mean loss of the steps of each place */
    bool passed;
};

/* Called about twice in a hundred steps, and at the end. */
typedef void (*density_tick)(void *user, int64_t step, int64_t steps, double loss);

/* Trains with one objective ("epsilon" 0, "x0" 1, "v" 2: rows of hone_param_name), samples, measures. Nullable: tick.
 * HONE_E_NONFINITE if training diverges. */
hone_status density_learn(hone_ctx *ctx, hone_device *device, const struct density_config *c, int predict,
                          density_tick tick, void *user, struct density_result *r, hone_err *err);
/* What is measured, of samples of any origin. */
void density_measure(const float *samples, int64_t n, struct density_result *r);
void density_free(hone_ctx *ctx, struct density_result *r);

#endif
