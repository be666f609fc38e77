/* Settings of training and sampling. */
#include <string.h>

#include "base/err.h"
#include "head/head.h"

/* The names of rows, in the order of hone/sched.h. */
static const char *const samplers[] = {"ddpm", "ddim", "flow-ode", "flow-sde", "flow-cps", NULL};
static const char *const spacings[] = {"trailing", "leading", NULL};
static const char *const schedules[] = {"cosine", "linear", "scaled_linear", "vp", NULL};
static const char *const predicts[] = {"epsilon", "x0", "v", "both", NULL};
static const char *const losses[] = {"uniform", "min_snr", "mixed", NULL};

typedef hone_sampling_config sampling;
static const hone_field sampling_rows[] = {
    HONE_FIELD_CHOICE(sampling, sampler, 1, samplers, "how a step goes from one noise level to the next"),
    HONE_FIELD_I64(sampling, steps, 10, 0, HONE_SCHED_MAX_STEPS, "steps of the sampler; 0: all that were trained"),
    HONE_FIELD_CHOICE(sampling, spacing, 0, spacings, "which timesteps are taken, where not all are; flow has none"),
    HONE_FIELD_F64(sampling, eta, 0, 0, 2, "amount of noise in ddim and flow-cps (to 1) and flow-sde (to 2)"),
    HONE_FIELD_F64(sampling, clip, 1, 0, 1e6, "clean actions are held in +- this; 0: not held"),
    HONE_FIELD_F64(sampling, min_std, 0, 0, 10, "least standard deviation of a step while training"),
};
static const hone_field_table sampling_fields = HONE_FIELD_TABLE("sampling", sampling, sampling_rows);

typedef hone_diffusion_config training;
static const hone_field training_rows[] = {
    HONE_FIELD_I64(training, steps, 100, 1, HONE_SCHED_MAX_STEPS, "timesteps of the noise schedule"),
    HONE_FIELD_CHOICE(training, schedule, 0, schedules, "how noise grows with the timestep"),
    HONE_FIELD_CHOICE(training, predict, 0, predicts, "what the network puts out"),
    HONE_FIELD_CHOICE(training, loss, 0, losses, "how timesteps are weighed"),
    HONE_FIELD_F64_X(training, min_snr, 5, 0, 1e6, HONE_ABOVE, "bound of the signal-to-noise ratio as a weight"),
    HONE_FIELD_F64(training, lambda, 0.5, 0, 1, "share of the noise objective in the mixed one"),
    HONE_FIELD_F64(training, drop, 0, 0, 1, "probability of dropping the condition, for guidance"),
    HONE_FIELD_F64(training, sharp, 1, 0.5, 8, "how fast two heads pass from clean actions to noise"),
};
static const hone_field_table training_fields = HONE_FIELD_TABLE("diffusion", training, training_rows);

const hone_field_table *hone_sampling_fields(void)
{
    return &sampling_fields;
}

const hone_field_table *hone_diffusion_fields(void)
{
    return &training_fields;
}

hone_schedule *hone_diffusion_schedule(hone_ctx *ctx, const hone_diffusion_config *c, hone_err *err)
{
    if (err_is(err) || hone_field_check(&training_fields, c, err))
        return NULL;
    return hone_schedule_create(ctx, &(hone_schedule_options){.name = schedules[c->schedule], .steps = (int)c->steps},
                                err);
}

hone_objective *hone_diffusion_create(hone_ctx *ctx, const hone_schedule *s, const hone_diffusion_config *c,
                                      hone_err *err)
{
    if (err_is(err) || hone_field_check(&training_fields, c, err))
        return NULL;
    if (c->predict == HONE_PREDICT_BOTH) {
        err_set(err, HONE_E_CONFIG, "diffusion", "predict is both: two heads have an objective of their own");
        return NULL;
    }
    hone_loss_options loss = {.name = losses[c->loss], .gamma = c->min_snr, .lambda = c->lambda};
    return hone_objective_create(ctx, s, predicts[c->predict], &loss, err);
}

hone_sampler *hone_sampling_create(hone_ctx *ctx, const hone_schedule *s, int predict, const hone_sampling_config *c,
                                   hone_err *err)
{
    if (err_is(err) || hone_field_check(&sampling_fields, c, err))
        return NULL;
    const bool flow = !strncmp(samplers[c->sampler], "flow", 4);
    if (!flow && (predict < 0 || predict >= (int)(sizeof predicts / sizeof predicts[0]) - 1)) {
        err_set(err, HONE_E_ARG, "sampling", "there is no parameterisation %d", predict);
        return NULL;
    }
    hone_sampler_options o = {.name = samplers[c->sampler],
                              .spacing = flow ? NULL : spacings[c->spacing],
                              .param = flow                           ? "velocity"
                                       : predict == HONE_PREDICT_BOTH ? "x0"
                                                                      : predicts[predict],
                              .steps = (int)c->steps,
                              .eta = c->eta,
                              .x0_clip = c->clip,
                              .min_std_sample = c->min_std};
    return hone_sampler_create(ctx, s, &o, err);
}
