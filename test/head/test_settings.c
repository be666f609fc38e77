/* Settings of training and sampling: each one that is not its default arrives. */
#include <string.h>

#include "check.h"
#include "hone/head.h"

static void set(struct check *c, const hone_field_table *t, void *config, const char *const (*rows)[2], int n)
{
    hone_field_defaults(t, config);
    for (int i = 0; i < n; i++) {
        hone_err e = {0};
        CHECK_MSG(c, hone_field_set(t, config, rows[i][0], rows[i][1], &e) == HONE_OK, "%s", e.text);
    }
}

static void training(struct check *c, hone_ctx *ctx)
{
    static const char *const rows[][2] = {{"steps", "30"},     {"schedule", "linear"}, {"predict", "x0"},
                                          {"loss", "min_snr"}, {"min_snr", "0.25"},    {"lambda", "0.75"}};
    static const char *const losses[] = {"uniform", "min_snr", "mixed"};
    for (int loss = 0; loss < 3; loss++) {
        if (!check_case(c, "training: all settings arrive, %s", losses[loss]))
            continue;
        hone_diffusion_config d;
        hone_err e = {0};
        double want[30];
        set(c, hone_diffusion_fields(), &d, rows, 6);
        d.loss = loss;
        hone_schedule *s = hone_diffusion_schedule(ctx, &d, &e);
        hone_objective *o = hone_diffusion_create(ctx, s, &d, &e);
        if (CHECK_MSG(c, s && o, "%s", e.text)) {
            CHECK(c, s->steps == 30 && !strcmp(s->name, "linear") && !strcmp(o->param, "x0"));
            CHECK(c, !strcmp(o->loss, losses[loss]) && o->steps == 30);
            const hone_loss_options l = {.name = losses[loss], .gamma = 0.25, .lambda = 0.75};
            CHECK(c, hone_loss_weights(s, "x0", &l, want, NULL) == HONE_OK && !memcmp(want, o->weight, sizeof want));
        }
        hone_objective_destroy(o);
        hone_schedule_destroy(s);
    }
}

static void sampling(struct check *c, hone_ctx *ctx)
{
    static const char *const diffusion[][2] = {{"sampler", "ddim"}, {"steps", "7"},  {"spacing", "leading"},
                                               {"eta", "0.5"},      {"clip", "2.5"}, {"min_std", "0.125"}},
                             *const flow[][2] = {{"sampler", "flow-sde"}, {"steps", "5"},      {"eta", "1.5"},
                                                 {"clip", "0"},           {"min_std", "0.25"}, {"spacing", "leading"}};
    hone_sampling_config a;
    hone_err e = {0};
    hone_schedule *s = hone_schedule_create(ctx, &(hone_schedule_options){.steps = 30}, &e);
    if (check_case(c, "sampling by diffusion: all settings arrive")) {
        set(c, hone_sampling_fields(), &a, diffusion, 6);
        hone_sampler *p = hone_sampling_create(ctx, s, 2, &a, &e);
        if (CHECK_MSG(c, p != NULL, "%s", e.text)) {
            CHECK(c, !strcmp(p->name, "ddim") && p->steps == 7 && !strcmp(p->spacing, "leading") && p->eta == 0.5);
            CHECK(c, p->x0_clip == 2.5 && p->min_std_sample == 0.125 && !strcmp(p->param, "v") && !p->flow);
        }
        hone_sampler_destroy(p);
    }
    if (check_case(c, "sampling by flow: all settings arrive")) {
        set(c, hone_sampling_fields(), &a, flow, 6);
        hone_sampler *p = hone_sampling_create(ctx, NULL, 0, &a, &e);
        if (CHECK_MSG(c, p != NULL, "%s", e.text)) {
            CHECK(c, !strcmp(p->name, "flow-sde") && p->steps == 5 && p->eta == 1.5 && p->flow && !p->spacing);
            CHECK(c, p->x0_clip == 0 && p->min_std_sample == 0.25 && !strcmp(p->param, "velocity"));
        }
        hone_sampler_destroy(p);
    }
    hone_schedule_destroy(s);
}

void suite_settings(struct check *c)
{
    hone_ctx *ctx = hone_ctx_create(NULL, NULL);
    training(c, ctx);
    sampling(c, ctx);
    if (check_case(c, "nothing leaks"))
        CHECK(c, hone_ctx_mem(ctx).live_bytes == 0);
    hone_ctx_destroy(ctx);
}
