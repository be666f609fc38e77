/* A network, its training and its use, through the public headers alone: the tutorial of the library.
 *
 *     cc train_mlp.c $(pkg-config --cflags --libs hone) -lm && ./a.out
 *
 * A network of two hidden layers learns y = sin(3 x) on [-1, 1] from 64 fresh points a step. In order: context and
 * device, the graph of one training step, its program, the optimiser, the loop, and a second graph that uses what was
 * learned. Every call that can fail takes the same hone_err; the first failure stays in it and makes the later calls do
 * nothing, so it is looked at where it matters and not after each line. */
#include <math.h>
#include <stdio.h>

#include "hone/base.h"
#include "hone/graph.h"
#include "hone/nn.h"
#include "hone/ops.h"
#include "hone/random.h"

enum { BATCH = 64, STEPS = 200, WIDTH = 64, POINTS = 9 };

/* A network is a function that builds operations. Layers put their parameters in nn's layout, named by scope:
 * "hidden0/weight", "hidden0/bias" ... */
static hone_t network(const hone_nn *nn, hone_t x)
{
    hone_t h = hone_mish(hone_nn_linear(nn, "hidden0", x, WIDTH, true));
    h = hone_mish(hone_nn_linear(nn, "hidden1", h, WIDTH, true));
    return hone_nn_linear(nn, "output", h, 1, true);
}

/* One training step as a program: the loss of a batch, and its gradients added to role "grad". */
static hone_program *training_program(hone_ctx *ctx, hone_device *device, hone_layout *layout, hone_err *err)
{
    hone_graph *g = hone_graph_create(ctx, err);
    if (!g)
        return NULL;
    hone_nn nn = {.g = g, .layout = layout}; /* parameters are read from role "param" */
    hone_t x = hone_input(g, "x", HONE_F32, HONE_SHAPE(BATCH, 1));
    hone_t y = hone_input(g, "y", HONE_F32, HONE_SHAPE(BATCH, 1));
    hone_t error = hone_sub(network(&nn, x), y);
    hone_t loss = hone_mean(hone_mul(error, error), HONE_AXES_ALL, false);
    hone_nn_gradients(&nn, loss, "grad");
    hone_output(loss, "loss");
    /* Mistakes in shapes show here, with the layer and the shapes. Afterwards the graph is not needed. */
    hone_program *p = hone_compile(device, g, &(hone_compile_options){.name = "training"}, err);
    hone_graph_destroy(g);
    return p;
}

/* The same network for use: another graph, the same layout, so the same parameters; here those of role "average". */
static hone_program *prediction_program(hone_ctx *ctx, hone_device *device, hone_layout *layout, hone_err *err)
{
    hone_graph *g = hone_graph_create(ctx, err);
    if (!g)
        return NULL;
    hone_nn nn = {.g = g, .layout = layout, .role = "average"};
    hone_output(network(&nn, hone_input(g, "x", HONE_F32, HONE_SHAPE(POINTS, 1))), "y");
    hone_program *p = hone_compile(device, g, &(hone_compile_options){.name = "prediction"}, err);
    hone_graph_destroy(g);
    return p;
}

/* Nothing in this loop allocates memory. Returns the loss of the last step. */
static float train(hone_program *p, hone_optim *optim, hone_err *err)
{
    float x[BATCH], y[BATCH], loss = INFINITY;
    const void *inputs[2];
    hone_store *stores[2];
    /* inputs and roles are numbered; names tell which is which */
    inputs[hone_program_input(p, "x")] = x;
    inputs[hone_program_input(p, "y")] = y;
    hone_optim_bind(optim, p, stores);
    for (int step = 0; step < STEPS && err->code == HONE_OK; step++) {
        /* random numbers are a function of seed, purpose and step: nothing to save, nothing to get out of step */
        hone_fill_uniform(x, BATCH, 1, hone_stream("points"), (uint64_t)step, 0);
        for (int i = 0; i < BATCH; i++) {
            x[i] = 2 * x[i] - 1;
            y[i] = sinf(3 * x[i]);
        }
        hone_run(p, &(hone_run_args){.inputs = inputs, .stores = stores}, err);
        if (hone_wait(p, err) != HONE_OK)
            break;
        loss = *(const float *)hone_result(p, hone_program_output(p, "loss"));
        hone_optim_report report;
        const double rate = 1e-2 * (1 - (double)step / STEPS); /* falls to zero; hone/sched.h has other ways */
        hone_optim_step(optim, &(hone_optim_args){.lr = rate, .decay = 0.9}, &report, err);
        if (step % 40 == 0 || step == STEPS - 1)
            printf("step %3d   loss %.6f   gradient norm %.4f\n", step, (double)loss, (double)report.grad_norm);
    }
    return loss;
}

/* Prints the curve beside the true one; returns the largest error. */
static float predict(hone_program *p, hone_store *average, hone_err *err)
{
    float x[POINTS], worst = 0;
    const void *inputs[1] = {x};
    hone_store *stores[1] = {average};
    for (int i = 0; i < POINTS; i++)
        x[i] = -1 + 2 * (float)i / (POINTS - 1);
    hone_run(p, &(hone_run_args){.inputs = inputs, .stores = stores}, err);
    if (hone_wait(p, err) != HONE_OK)
        return INFINITY;
    const float *y = hone_result(p, hone_program_output(p, "y"));
    for (int i = 0; i < POINTS; i++) {
        printf("x %5.2f   network %7.4f   sin(3 x) %7.4f\n", (double)x[i], (double)y[i], sin(3 * (double)x[i]));
        worst = fmaxf(worst, fabsf(y[i] - sinf(3 * x[i])));
    }
    return worst;
}

int main(void)
{
    hone_err err = {0};
    float loss = INFINITY, worst = INFINITY;
    /* The context holds memory, threads and log; NULL for all defaults. A network as small as this gains nothing from a
     * second core. */
    hone_ctx *ctx = hone_ctx_create(&(hone_ctx_options){.threads = 1}, &err);
    hone_device *device = hone_device_open(ctx, "cpu", &err);
    hone_layout *layout = hone_layout_create(ctx, &err); /* names and shapes of the parameters */
    hone_program *training = NULL, *prediction = NULL;
    hone_store *param = NULL; /* values of the parameters */
    hone_optim *optim = NULL;

    if (err.code == HONE_OK)
        training = training_program(ctx, device, layout, &err);
    if (training)
        param = hone_store_create(ctx, layout, &err);
    if (param) {
        hone_store_init(param, 42, &err); /* drawn as each layer says, from this seed */
        hone_adamw_config config;
        hone_field_defaults(hone_adamw_fields(), &config);
        config.max_norm = 1;
        config.average = true;
        optim = hone_optim_create(device, param, &config, &err); /* gradients, moments, average, and the update */
    }
    if (optim) {
        loss = train(training, optim, &err);
        prediction = prediction_program(ctx, device, layout, &err);
    }
    if (prediction)
        worst = predict(prediction, hone_optim_store(optim, "average"), &err);
    if (err.code != HONE_OK)
        fprintf(stderr, "%s: %s: %s\n", hone_status_name(err.code), err.where, err.text);

    /* What was made last goes first. */
    hone_program_destroy(prediction);
    hone_optim_destroy(optim);
    hone_store_destroy(param);
    hone_program_destroy(training);
    hone_layout_destroy(layout);
    hone_device_close(device);
    hone_ctx_destroy(ctx);
    return err.code == HONE_OK && loss < 1e-3f && worst < 0.05f ? 0 : 1;
}
