#include "cli/density.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/ctx.h"
#include "base/err.h"
#include "hone/nn.h"
#include "hone/ops.h"
#include "hone/random.h"

typedef struct density_config config;
static const hone_field rows[] = {
    HONE_FIELD_I64(config, seed, 0, 0, INT64_MAX, "what all random numbers come from"),
    HONE_FIELD_I64(config, steps, 4000, 1, 10000000, "training steps of each objective"),
    HONE_FIELD_I64(config, batch, 512, 1, 1 << 20, "points of a training step"),
    HONE_FIELD_I64(config, points, 10000, 4, 1 << 24, "points of the data"),
    HONE_FIELD_I64(config, samples, 10000, 1, 1 << 20, "samples that are measured"),
    HONE_FIELD_I64(config, levels, 20, 1, HONE_SCHED_MAX_STEPS, "noise levels, and steps of the sampler"),
    HONE_FIELD_I64(config, hidden, 64, 1, 4096, "width of the network"),
    HONE_FIELD_I64(config, blocks, 3, 0, 16, "residual blocks of the network"),
    HONE_FIELD_I64(config, time_dim, 16, 4, 1024, "elements of the time embedding, an even number"),
    HONE_FIELD_F64_X(config, lr, 2e-3, 0, 1, HONE_ABOVE, "learning rate; it falls to a hundredth along a cosine"),
    HONE_FIELD_F64_X(config, average, 0.999, 0, 1, HONE_BELOW, "decay of the averaged weights that are sampled from"),
};
const hone_field_table density_fields = HONE_FIELD_TABLE("demo density", config, rows);

static const double signs[DENSITY_MODES][2] = {{1, 1}, {-1, 1}, {1, -1}, {-1, -1}};

void density_data(const struct density_config *c, float *xy)
{
    hone_fill_normal(xy, (size_t)(2 * c->points), (uint64_t)c->seed, hone_stream("density/point"), 0, 0);
    for (int64_t i = 0; i < c->points; i++) {
        for (int j = 0; j < 2; j++)
            xy[2 * i + j] = (float)(DENSITY_AT * signs[i % DENSITY_MODES][j] + DENSITY_SPREAD * (double)xy[2 * i + j]);
    }
}

void density_measure(const float *samples, int64_t n, struct density_result *r)
{
    double count[DENSITY_MODES] = {0}, near = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = samples[2 * i], y = samples[2 * i + 1];
        double dx = fabs(x) - DENSITY_AT, dy = fabs(y) - DENSITY_AT, d2 = dx * dx + dy * dy;
        count[(x < 0) + 2 * (y < 0)]++;
        near += d2 <= 9 * DENSITY_SPREAD * DENSITY_SPREAD;
        square += d2;
    }
    r->near = near / (double)n;
    r->spread = sqrt(square / (double)(2 * n));
    r->passed = r->near >= DENSITY_NEAR;
    for (int m = 0; m < DENSITY_MODES; m++) {
        r->share[m] = count[m] / (double)n;
        r->passed = r->passed && fabs(r->share[m] - 1.0 / DENSITY_MODES) <= DENSITY_SHARE;
    }
}

void density_free(hone_ctx *ctx, struct density_result *r)
{
    mem_free(&ctx->mem, r->samples);
    r->samples = NULL;
}

/* --- the two programs --- */

struct parts {
    hone_ctx *ctx;
    hone_device *device;
    const struct density_config *c;
    hone_mlp_config mlp;
    hone_schedule *schedule;
    hone_objective *objective;
    hone_sampler *sampler;
    hone_layout *layout;
    hone_store *param;
    hone_optim *optim;
    hone_program *train, *sample;
    float *data;
};

static void finish(struct parts *p)
{
    hone_program_destroy(p->train);
    hone_program_destroy(p->sample);
    hone_optim_destroy(p->optim);
    hone_store_destroy(p->param);
    hone_layout_destroy(p->layout);
    hone_sampler_destroy(p->sampler);
    hone_objective_destroy(p->objective);
    hone_schedule_destroy(p->schedule);
    mem_free(&p->ctx->mem, p->data);
}

/* Loss of a batch of points drawn from the data, and its gradient. */
static hone_program *build_train(struct parts *p, hone_err *err)
{
    hone_graph *g = hone_graph_create(p->ctx, err);
    if (!g)
        return NULL;
    const struct density_config *c = p->c;
    hone_nn nn = {.g = g, .layout = p->layout};
    hone_net_denoiser net = {hone_net_find("mlp", err), &nn, &p->mlp};
    hone_t data = hone_const(g, HONE_F32, HONE_SHAPE(c->points, 2), p->data);
    hone_t x0 = hone_gather(data, hone_random_index(g, "density/batch", HONE_SHAPE(c->batch), (int32_t)c->points));
    hone_diffusion_batch batch = {.x0 = hone_reshape(x0, HONE_SHAPE(c->batch, 1, 2))};
    hone_t loss = hone_diffusion_objective(p->objective, hone_denoiser_net(&net), &batch).loss;
    hone_output(loss, "loss");
    hone_nn_gradients(&nn, loss, NULL);
    hone_program *made = hone_compile(p->device, g, &(hone_compile_options){.name = "density/train"}, err);
    hone_graph_destroy(g);
    return made;
}

static hone_program *build_sample(struct parts *p, hone_err *err)
{
    hone_graph *g = hone_graph_create(p->ctx, err);
    if (!g)
        return NULL;
    hone_nn nn = {.g = g, .layout = p->layout, .role = "average"};
    hone_net_denoiser net = {hone_net_find("mlp", err), &nn, &p->mlp};
    hone_sample_args a = {
        .sampler = p->sampler, .denoiser = hone_denoiser_net(&net), .shape = HONE_SHAPE(p->c->samples, 1, 2)};
    hone_output(hone_sample(g, &a), "x");
    hone_program *made = hone_compile(p->device, g, &(hone_compile_options){.name = "density/sample"}, err);
    hone_graph_destroy(g);
    return made;
}

static hone_status make(struct parts *p, int predict, hone_err *err)
{
    const struct density_config *c = p->c;
    const hone_net *net = hone_net_find("mlp", err);
    hone_diffusion_config d;
    hone_sampling_config s;
    hone_adamw_config adamw;
    hone_field_defaults(net->fields, &p->mlp);
    hone_field_defaults(hone_diffusion_fields(), &d);
    hone_field_defaults(hone_sampling_fields(), &s);
    hone_field_defaults(hone_adamw_fields(), &adamw);
    p->mlp.hidden = c->hidden;
    p->mlp.blocks = c->blocks;
    p->mlp.time_dim = c->time_dim;
    p->mlp.activation = HONE_ACT_SILU;
    d.steps = c->levels;
    d.predict = predict;
    s.sampler = 0; /* ddpm */
    s.steps = 0;
    adamw.weight_decay = 0;
    adamw.average = true;
    p->data = mem_array(&p->ctx->mem, (size_t)c->points, 2 * sizeof *p->data);
    if (!p->data)
        return err_set(err, HONE_E_NOMEM, "density", "no memory for %lld points", (long long)c->points);
    density_data(c, p->data);
    p->schedule = hone_diffusion_schedule(p->ctx, &d, err);
    p->objective = p->schedule ? hone_diffusion_create(p->ctx, p->schedule, &d, err) : NULL;
    p->sampler = p->schedule ? hone_sampling_create(p->ctx, p->schedule, predict, &s, err) : NULL;
    p->layout = hone_layout_create(p->ctx, err);
    if (!p->objective || !p->sampler || !p->layout)
        return err->code;
    p->train = build_train(p, err);
    p->sample = p->train ? build_sample(p, err) : NULL;
    p->param = p->sample ? hone_store_create(p->ctx, p->layout, err) : NULL;
    if (p->param && !hone_store_init(p->param, (uint64_t)c->seed, err))
        p->optim = hone_optim_create(p->device, p->param, &adamw, err);
    return err->code;
}

/* --- training and sampling --- */

static hone_status train(struct parts *p, density_tick tick, void *user, struct density_result *r, hone_err *err)
{
    const struct density_config *c = p->c;
    hone_lr_options lr = {.name = "cosine", .lr = c->lr, .floor = c->lr / 100, .total = c->steps};
    hone_store *stores[8] = {NULL};
    hone_optim_bind(p->optim, p->train, stores);
    const int loss = hone_program_output(p->train, "loss");
    double sum = 0, begin = clock_seconds();
    int64_t in_sum = 0, since = 0;
    r->curve_n = (int)(c->steps < DENSITY_CURVE ? c->steps : DENSITY_CURVE);
    for (int64_t i = 0, place = 0; i < c->steps; i++) {
        hone_optim_report report = {0};
        hone_run_args args = {.stores = stores, .seed = (uint64_t)c->seed, .run = (uint64_t)i};
        if (hone_run(p->train, &args, err) || hone_wait(p->train, err))
            return err->code;
        sum += ((const float *)hone_result(p->train, loss))[0];
        in_sum++;
        hone_optim_args step = {.lr = hone_lr_at(&lr, i), .decay = hone_average_decay(c->average, i)};
        if (hone_optim_step(p->optim, &step, &report, err))
            return err->code;
        if (report.skipped)
            return err_set(err, HONE_E_NONFINITE, "density", "training diverged at step %lld of %lld", (long long)i,
                           (long long)c->steps);
        if ((i + 1) * r->curve_n < (place + 1) * c->steps)
            continue;
        r->curve[place++] = sum / (double)in_sum;
        if (tick && (++since * 50 >= r->curve_n || i + 1 == c->steps)) {
            tick(user, i + 1, c->steps, sum / (double)in_sum);
            since = 0;
        }
        sum = 0;
        in_sum = 0;
    }
    r->train_seconds = clock_seconds() - begin;
    return HONE_OK;
}

static hone_status sample(struct parts *p, struct density_result *r, hone_err *err)
{
    const size_t bytes = (size_t)p->c->samples * 2 * sizeof *r->samples;
    hone_store *stores[8] = {NULL};
    double begin = clock_seconds();
    hone_optim_bind(p->optim, p->sample, stores);
    r->samples = mem_alloc(&p->ctx->mem, bytes);
    if (!r->samples)
        return err_set(err, HONE_E_NOMEM, "density", "no memory for %lld samples", (long long)p->c->samples);
    hone_run_args args = {.stores = stores, .seed = (uint64_t)p->c->seed};
    if (hone_run(p->sample, &args, err) || hone_wait(p->sample, err))
        return err->code;
    memcpy(r->samples, hone_result(p->sample, 0), bytes);
    r->sample_seconds = clock_seconds() - begin;
    density_measure(r->samples, p->c->samples, r);
    return HONE_OK;
}

hone_status density_learn(hone_ctx *ctx, hone_device *device, const struct density_config *c, int predict,
                          density_tick tick, void *user, struct density_result *r, hone_err *err)
{
    struct parts p = {.ctx = ctx, .device = device, .c = c};
    hone_err own = {0}, *e = err ? err : &own;
    *r = (struct density_result){0};
    if (err_is(e) || hone_field_check(&density_fields, c, e))
        return e->code;
    if (!make(&p, predict, e) && !train(&p, tick, user, r, e))
        sample(&p, r, e);
    finish(&p);
    if (e->code)
        density_free(ctx, r);
    return e->code;
}
