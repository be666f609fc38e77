/* The two things that are measured: a decision and a training step. */
#include <string.h>

#include "base/ctx.h"
#include "base/err.h"
#include "cli/bench.h"
#include "graph/ir.h"
#include "hone/ops.h"
#include "hone/random.h"

enum { TIMESTEPS = 100 };

static const struct bench_net nets[] = {
    {"unet", 16, 3, 256, 10, {NULL}},
    {"mlp", 4, 3, 16, 20, {"hidden", "512", "blocks", "3", NULL}},
    {"dit", 16, 3, 256, 10, {"width", "256", "layers", "6", NULL}},
};

const struct bench_net *bench_net_find(const char *name, hone_err *err)
{
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
        if (!strcmp(nets[i].name, name))
            return hone_net_find(name, err) ? &nets[i] : NULL;
    err_set(err, HONE_E_CONFIG, "bench", "there is no reference network \"%.40s\"; there are unet, mlp, dit", name);
    return NULL;
}

/* --- making --- */

hone_status bench_open(struct bench *b, hone_err *err)
{
    b->ctx = hone_ctx_create(&(hone_ctx_options){.threads = (int)b->o.threads}, err);
    if (!b->ctx)
        return err->code;
    b->o.threads = hone_ctx_threads(b->ctx);
    b->device = hone_device_open(b->ctx, "cpu", err);
    b->layout = hone_layout_create(b->ctx, err);
    b->net = hone_net_find(b->o.net->name, err);
    if (!b->net || !b->layout || !b->device)
        return err->code;
    hone_field_defaults(b->net->fields, b->config);
    for (const char *const *s = b->o.net->set; *s; s += 2)
        hone_field_set(b->net->fields, b->config, s[0], s[1], err);
    hone_diffusion_config c;
    hone_field_defaults(hone_diffusion_fields(), &c);
    c.steps = b->o.steps > TIMESTEPS ? b->o.steps : TIMESTEPS;
    const hone_sampler_options ddim = {.name = "ddim", .steps = (int)b->o.steps, .x0_clip = 1};
    b->schedule = hone_diffusion_schedule(b->ctx, &c, err);
    b->objective = b->schedule ? hone_diffusion_create(b->ctx, b->schedule, &c, err) : NULL;
    b->sampler = b->schedule ? hone_sampler_create(b->ctx, b->schedule, &ddim, err) : NULL;
    return err->code;
}

void bench_close(struct bench *b)
{
    hone_program_destroy(b->program);
    hone_optim_destroy(b->optim);
    hone_store_destroy(b->param);
    hone_sampler_destroy(b->sampler);
    hone_objective_destroy(b->objective);
    hone_schedule_destroy(b->schedule);
    hone_layout_destroy(b->layout);
    hone_device_close(b->device);
    for (int k = 0; b->ctx && k < 2; k++)
        mem_free(&b->ctx->mem, b->data[k]);
    hone_ctx_destroy(b->ctx);
}

/* Input k of the program: BENCH_SETS of n random numbers. */
static hone_status draw(struct bench *b, int k, const char *name, int64_t n, hone_err *err)
{
    b->data_n[k] = (size_t)n;
    b->data[k] = mem_array(&b->ctx->mem, BENCH_SETS * (size_t)n, sizeof(float));
    if (!b->data[k])
        return err_set(err, HONE_E_NOMEM, "bench", "no memory for the numbers of input \"%s\"", name);
    hone_fill_uniform(b->data[k], BENCH_SETS * (size_t)n, 1, hone_stream(name), 0, 0);
    return HONE_OK;
}

/* x scale + shift along the last dimension of n: what a normaliser or its inverse does. */
static hone_t normalise(hone_graph *g, hone_t x, int64_t n)
{
    float scale[1024], shift[1024];
    if (n > 1024)
        return HONE_NONE;
    hone_fill_uniform(scale, (size_t)n, 1, hone_stream("scale"), 0, 0);
    hone_fill_uniform(shift, (size_t)n, 1, hone_stream("shift"), 0, 0);
    x = hone_mul(x, hone_const(g, HONE_F32, HONE_SHAPE(n), scale));
    return hone_add(x, hone_const(g, HONE_F32, HONE_SHAPE(n), shift));
}

/* Parameters drawn, the graph compiled and given back. */
static hone_status finish(struct bench *b, hone_graph *g, hone_err *err)
{
    const hone_compile_options o = {.name = b->o.what, .plain = b->o.plain, .bf16_weights = b->o.bf16};
    b->program = hone_compile(b->device, g, &o, err);
    hone_graph_destroy(g);
    b->param = b->program ? hone_store_create(b->ctx, b->layout, err) : NULL;
    return b->param ? hone_store_init(b->param, 1, err) : err->code;
}

hone_status bench_decision(struct bench *b, hone_err *err)
{
    const struct bench_net *n = b->o.net;
    hone_graph *g = hone_graph_create(b->ctx, err);
    if (!g)
        return err->code;
    hone_nn nn = {.g = g, .layout = b->layout};
    hone_net_denoiser net = {b->net, &nn, b->config};
    hone_t observation = hone_input(g, "observation", HONE_F32, HONE_SHAPE(b->o.batch, n->cond));
    hone_sample_args a = {.sampler = b->sampler,
                          .denoiser = hone_denoiser_net(&net),
                          .cond = normalise(g, observation, n->cond),
                          .shape = HONE_SHAPE(b->o.batch, n->horizon, n->actions)};
    hone_output(normalise(g, hone_sample(g, &a), n->actions), "actions");
    if (finish(b, g, err) != HONE_OK)
        return err->code;
    b->stores[0] = b->param;
    return draw(b, 0, "observation", b->o.batch * n->cond, err);
}

hone_status bench_step(struct bench *b, hone_err *err)
{
    const struct bench_net *n = b->o.net;
    hone_graph *g = hone_graph_create(b->ctx, err);
    if (!g)
        return err->code;
    hone_nn nn = {.g = g, .layout = b->layout};
    hone_net_denoiser net = {b->net, &nn, b->config};
    hone_diffusion_batch batch = {
        .x0 = hone_input(g, "actions", HONE_F32, HONE_SHAPE(b->o.batch, n->horizon, n->actions)),
        .cond = hone_input(g, "observation", HONE_F32, HONE_SHAPE(b->o.batch, n->cond))};
    hone_t loss = hone_diffusion_objective(b->objective, hone_denoiser_net(&net), &batch).loss;
    hone_output(loss, "loss");
    hone_nn_gradients(&nn, loss, NULL);
    hone_adamw_config adamw;
    hone_field_defaults(hone_adamw_fields(), &adamw);
    adamw.average = true;
    adamw.max_norm = 1;
    if (finish(b, g, err) != HONE_OK)
        return err->code;
    b->optim = hone_optim_create(b->device, b->param, &adamw, err);
    if (!b->optim)
        return err->code;
    hone_optim_bind(b->optim, b->program, b->stores);
    draw(b, 0, "actions", b->o.batch * n->horizon * n->actions, err);
    return draw(b, 1, "observation", b->o.batch * n->cond, err);
}

/* --- running --- */

hone_status bench_once(struct bench *b, uint64_t i, hone_err *err)
{
    const void *in[2];
    for (int k = 0; k < 2; k++)
        in[k] = b->data[k] ? b->data[k] + i % BENCH_SETS * b->data_n[k] : NULL;
    const hone_run_args a = {.inputs = in, .stores = b->stores, .seed = i, .run = i};
    if (hone_run(b->program, &a, err) != HONE_OK || hone_wait(b->program, err) != HONE_OK || !b->optim)
        return err->code;
    const hone_optim_args step = {.lr = 1e-4, .decay = hone_average_decay(0.999, (int64_t)i)};
    hone_optim_report report;
    hone_optim_step(b->optim, &step, &report, err);
    if (err->code == HONE_OK && report.skipped)
        return err_set(err, HONE_E_NONFINITE, "bench", "training diverged");
    return err->code;
}

static double products(const hone_graph *g)
{
    static const struct op_def *const counted[] = {&op_linear,           &op_matmul,    &op_conv1d,
                                                   &op_conv_transpose1d, &op_attention, &op_rotary_attention};
    hone_type in[OP_MAX_IN], out[OP_MAX_OUT];
    double sum = 0;
    for (int i = 0; i < g->n_nodes; i++)
        for (size_t k = 0; k < sizeof counted / sizeof *counted; k++)
            if (g->nodes[i].def == counted[k]) {
                const struct op_call c = ir_call(g, &g->nodes[i], in, out);
                sum += op_cost_of(&c).flops;
            }
    return sum;
}

hone_status bench_forward_flops(struct bench *b, double *flops, hone_err *err)
{
    const struct bench_net *n = b->o.net;
    hone_graph *g = hone_graph_create(b->ctx, err);
    if (!g)
        return err->code;
    const int64_t batch = b->o.batch;
    hone_nn nn = {.g = g, .layout = b->layout};
    hone_net_build(b->net, &nn, b->config, hone_input(g, "x", HONE_F32, HONE_SHAPE(batch, n->horizon, n->actions)),
                   hone_input(g, "t", HONE_F32, HONE_SHAPE(batch)),
                   hone_input(g, "cond", HONE_F32, HONE_SHAPE(batch, n->cond)));
    *flops = products(g);
    hone_graph_status(g, err);
    hone_graph_destroy(g);
    return err->code;
}
