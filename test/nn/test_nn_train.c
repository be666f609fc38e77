/* Training: gradients into a store, the update, and what a step that goes wrong leaves alone. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/kit.h"
#include "graph/store.h"
#include "nn/golden.h"

/* What the fixtures were made with; see dev/fixtures/README.md. */
static hone_adamw_config as_pytorch(double max_norm, bool average)
{
    hone_adamw_config o;
    hone_field_defaults(hone_adamw_fields(), &o);
    o.beta1 = 0.95;
    o.decay_plain = true;
    o.max_norm = max_norm;
    o.average = average;
    return o;
}

/* A gradient program of a golden network with its optimiser. */
struct trainer {
    struct golden *g;
    hone_optim *optim;
    hone_program *grad;
    hone_store *param, *stores[2];
    const void *in[4];
};

static bool trainer_open(struct trainer *t, struct golden *g, struct check *c, const hone_adamw_config *o,
                         const hone_compile_options *how)
{
    *t = (struct trainer){.g = g};
    hone_nn nn = golden_nn(g);
    struct golden_graph r = golden_build(g, &nn);
    hone_nn_gradients(&nn, r.loss, NULL);
    t->grad = hone_compile(g->cpu, r.g, how, &g->err);
    hone_graph_destroy(r.g);
    t->param = hone_store_create(g->ctx, g->layout, &g->err);
    if (t->param)
        hone_store_copy(t->param, g->param, &g->err);
    if (g->err.code == HONE_OK)
        t->optim = hone_optim_create(g->cpu, t->param, o, &g->err);
    if (!CHECK_MSG(c, g->err.code == HONE_OK, "%s: %s", g->err.where, g->err.text))
        return false;
    hone_optim_bind(t->optim, t->grad, t->stores);
    golden_inputs(g, t->grad, t->in);
    return true;
}

static void trainer_close(struct trainer *t)
{
    hone_optim_destroy(t->optim);
    hone_store_destroy(t->param);
    hone_program_destroy(t->grad);
}

/* Adds a gradient; returns the loss. */
static float add_gradient(struct trainer *t)
{
    hone_run(t->grad, &(hone_run_args){.inputs = t->in, .stores = t->stores}, &t->g->err);
    if (hone_wait(t->grad, &t->g->err) != HONE_OK)
        return NAN;
    return golden_result(t->grad, "loss")[0];
}

static hone_optim_report update(struct trainer *t, struct check *c, double scale, double decay)
{
    hone_optim_report r = {0};
    hone_optim_step(t->optim, &(hone_optim_args){.lr = 1e-3, .scale = scale, .decay = decay}, &r, &t->g->err);
    CHECK_MSG(c, t->g->err.code == HONE_OK, "%s: %s", t->g->err.where, t->g->err.text);
    return r;
}

static size_t slab_bytes(const hone_store *s)
{
    return (size_t)layout_floats(s->layout) * sizeof(float);
}

static bool stores_equal(const hone_store *a, const hone_store *b)
{
    return !memcmp(a->slab, b->slab, slab_bytes(a));
}

static bool all_zero(const hone_store *s)
{
    for (size_t i = 0; i < slab_bytes(s) / sizeof(float); i++)
        if (s->slab[i] != 0)
            return false;
    return true;
}

/* --- ten steps --- */

static void ten_steps(struct check *c, struct golden *g, const char *suffix, double max_norm)
{
    hone_adamw_config o = as_pytorch(max_norm, false);
    struct trainer t;
    char name[160];
    float loss[10], norm[10];
    if (trainer_open(&t, g, c, &o, NULL)) {
        for (int i = 0; i < 10; i++) {
            loss[i] = add_gradient(&t);
            norm[i] = update(&t, c, 1, 0).grad_norm;
        }
        snprintf(name, sizeof name, "loss/%s", suffix);
        double worst[2] = {golden_compare(g, c, name, loss, 10, 1e-5), 0};
        snprintf(name, sizeof name, "norm/%s", suffix);
        worst[0] = fmax(worst[0], golden_compare(g, c, name, norm, 10, 1e-5));
        for (int i = 0; i < hone_layout_count(g->layout) && g->net == hone_net_find("mlp", NULL); i++) {
            hone_shape s = hone_layout_shape(g->layout, i);
            snprintf(name, sizeof name, "%s/param/%s", suffix, hone_layout_name(g->layout, i));
            worst[1] = fmax(worst[1], golden_compare(g, c, name, hone_store_get(t.param, i), hone_numel(&s), 1e-5));
        }
        if (c->verbose)
            printf("    worst loss or norm %.2g, worst parameter %.2g\n", worst[0], worst[1]);
        CHECK(c, hone_optim_count(t.optim) == 10);
    }
    trainer_close(&t);
}

/* The same steps again give the same bits, and allocate nothing. */
static void same_bits(struct check *c, const char *name)
{
    struct golden two, *g = &two;
    if (!golden_open_threads(g, c, name, 2))
        return;
    hone_adamw_config o = as_pytorch(1, true);
    struct trainer t[2] = {{0}};
    bool ok = trainer_open(&t[0], g, c, &o, NULL) && trainer_open(&t[1], g, c, &o, NULL);
    uint64_t before = hone_ctx_mem(g->ctx).allocations;
    for (int k = 0; k < 2 && ok; k++)
        for (int i = 0; i < 3; i++) {
            add_gradient(&t[k]);
            update(&t[k], c, 1, 0.9);
        }
    if (ok) {
        CHECK(c, hone_ctx_mem(g->ctx).allocations == before);
        for (int i = 0; i < 4; i++) {
            const char *role = (const char *[]){"param", "m", "v", "average"}[i];
            CHECK_MSG(c, stores_equal(hone_optim_store(t[0].optim, role), hone_optim_store(t[1].optim, role)), "%s",
                      role);
        }
        CHECK(c, !stores_equal(t[0].param, g->param) &&
                     !stores_equal(t[0].param, hone_optim_store(t[0].optim, "average")));
    }
    trainer_close(&t[0]);
    trainer_close(&t[1]);
    golden_close(g, c);
}

/* Twice the same minibatch at half the scale is once at the whole: powers of two are exact. */
static void accumulation(struct check *c, struct golden *g)
{
    hone_adamw_config o = as_pytorch(1, false);
    struct trainer once = {0}, twice = {0};
    if (trainer_open(&once, g, c, &o, NULL) && trainer_open(&twice, g, c, &o, NULL))
        for (int i = 0; i < 3; i++) {
            add_gradient(&once);
            add_gradient(&twice);
            add_gradient(&twice);
            float a = update(&once, c, 0, 0).grad_norm, b = update(&twice, c, 0.5, 0).grad_norm;
            CHECK_MSG(c, a == b && a > 0, "%g and %g", (double)a, (double)b);
            CHECK(c, stores_equal(once.param, twice.param) && all_zero(hone_optim_store(twice.optim, "grad")));
        }
    trainer_close(&once);
    trainer_close(&twice);
}

static void averages(struct check *c, struct golden *g)
{
    hone_adamw_config o = as_pytorch(0, true);
    struct trainer t;
    if (trainer_open(&t, g, c, &o, NULL)) {
        const hone_store *a = hone_optim_store(t.optim, "average");
        CHECK(c, stores_equal(a, g->param));
        const size_t n = slab_bytes(a) / sizeof(float);
        double *want = malloc(n * sizeof *want), worst = 0;
        for (size_t i = 0; i < n; i++)
            want[i] = (double)a->slab[i];
        for (int k = 0; k < 4; k++) {
            const double decay = k == 2 ? 1 : 0.7;
            add_gradient(&t);
            update(&t, c, 1, decay);
            for (size_t i = 0; i < n; i++) {
                want[i] = decay * want[i] + (1 - decay) * (double)t.param->slab[i];
                worst = fmax(worst, fabs(want[i] - (double)a->slab[i]));
            }
        }
        CHECK_MSG(c, worst < 1e-6 && !stores_equal(a, t.param), "off by %g", worst);
        free(want);
    }
    trainer_close(&t);
}

/* A gradient that is not finite changes nothing, and the next step is as if it had not been. */
static void skipping(struct check *c, struct golden *g, float bad)
{
    hone_adamw_config o = as_pytorch(1, true);
    struct trainer t = {0}, clean = {0};
    float *x = malloc((size_t)hone_numel(&g->s) * sizeof *x);
    memcpy(x, g->x, (size_t)hone_numel(&g->s) * sizeof *x);
    x[5] = bad;
    if (trainer_open(&t, g, c, &o, NULL) && trainer_open(&clean, g, c, &o, NULL)) {
        add_gradient(&t), update(&t, c, 1, 0.9);
        add_gradient(&clean), update(&clean, c, 1, 0.9);
        const void **at = &t.in[hone_program_input(t.grad, "x")], *good = *at;
        *at = x;
        CHECK(c, !isfinite(add_gradient(&t)));
        *at = good;
        hone_optim_report r = update(&t, c, 1, 0.9);
        CHECK(c, r.skipped && isnan(r.grad_norm) && hone_optim_count(t.optim) == 1);
        CHECK(c, all_zero(hone_optim_store(t.optim, "grad")));
        for (int again = 0; again < 2; again++) {
            for (int i = 0; i < 4; i++) {
                const char *role = (const char *[]){"param", "m", "v", "average"}[i];
                CHECK_MSG(c, stores_equal(hone_optim_store(t.optim, role), hone_optim_store(clean.optim, role)), "%s",
                          role);
            }
            add_gradient(&t), add_gradient(&clean);
            CHECK(c, !update(&t, c, 1, 0.9).skipped && !update(&clean, c, 1, 0.9).skipped);
        }
    }
    free(x);
    trainer_close(&t);
    trainer_close(&clean);
}

/* Without gradients: weights shrink by rate times decay, biases and gains only if they are meant to. */
static void decay_by_group(struct check *c, struct golden *g, bool plain)
{
    hone_adamw_config o = as_pytorch(1, false);
    struct trainer t;
    o.decay_plain = plain;
    o.weight_decay = 0.5;
    if (trainer_open(&t, g, c, &o, NULL)) {
        update(&t, c, 1, 0);
        struct layout_range range = layout_group(g->layout, HONE_GROUP_PLAIN);
        for (int i = 0; i < hone_layout_count(g->layout); i++) {
            struct layout_range r = layout_tensor(g->layout, i);
            double factor = plain || r.at < range.at ? 1 - 1e-3 * 0.5 : 1, worst = 0;
            for (int64_t k = r.at; k < r.at + r.length; k++)
                worst = fmax(worst, fabs((double)t.param->slab[k] - factor * (double)g->param->slab[k]));
            CHECK_MSG(c, worst < 1e-7, "%s: off by %g", hone_layout_name(g->layout, i), worst);
        }
    }
    trainer_close(&t);
}

/* The update as a graph of the caller's. It keeps no slab of its own. Operation by operation it does the same, but says
 * no to gradients that are not finite. */
static void update_graph(struct check *c, struct golden *g)
{
    hone_adamw_config o = as_pytorch(1, true);
    hone_store *store[5] = {NULL};
    const float one[4] = {1, 1, 1, 0.5f};
    const void *in[4] = {&one[0], &one[1], &one[2], &one[3]};
    for (int i = 0; i < 5; i++)
        store[i] = hone_store_create(g->ctx, g->layout, &g->err);
    for (int debug = 0; debug < 2; debug++) {
        hone_graph *graph = hone_graph_create(g->ctx, &g->err);
        hone_adamw_update(graph, g->layout, &o);
        hone_program *p = hone_compile(g->cpu, graph, &(hone_compile_options){.debug = debug}, &g->err);
        hone_graph_destroy(graph);
        if (!CHECK_MSG(c, p && hone_program_roles(p) == 5, "%s: %s", g->err.where, g->err.text))
            break;
        const size_t whole = (size_t)hone_layout_parameters(g->layout) * sizeof(float),
                     plan = hone_program_plan(p).bytes;
        CHECK_MSG(c, debug || plan < whole / 4, "%zu bytes of %zu", plan, whole);
        hone_store *grad = store[hone_program_role(p, "grad")];
        for (int bad = 0; bad < 2; bad++) {
            hone_err err = {0};
            hone_store_set(grad, 0, (const float[512]){1, 2, bad ? INFINITY : 3}, 512, &err);
            hone_run(p, &(hone_run_args){.inputs = in, .stores = store}, &err);
            hone_wait(p, &err);
            CHECK_MSG(c, err.code == (debug && bad ? HONE_E_NONFINITE : HONE_OK), "%s: %s", err.where, err.text);
            if (err.code != HONE_OK)
                continue;
            float norm = golden_result(p, "grad_norm")[0];
            CHECK(c, (golden_result(p, "skipped")[0] != 0) == bad && all_zero(grad));
            CHECK_MSG(c, fabs((double)norm - (bad ? 0 : sqrt(14))) < 1e-6, "norm %g", (double)norm);
        }
        hone_program_destroy(p);
    }
    for (int i = 0; i < 5; i++)
        hone_store_destroy(store[i]);
}

static void refusals(struct check *c, struct golden *g)
{
    static const struct {
        hone_optim_args a;
        const char *says;
    } bad[] = {{{.lr = -1}, "lr must"},
               {{.lr = (double)NAN}, "lr must"},
               {{.scale = -1}, "scale must"},
               {{.decay = 1.5}, "decay of"},
               {{.decay = (double)NAN}, "decay of"}};
    hone_adamw_config o = as_pytorch(1, false);
    hone_optim *p = hone_optim_create(g->cpu, g->param, &o, &g->err);
    if (!CHECK_MSG(c, p != NULL, "%s: %s", g->err.where, g->err.text))
        return;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hone_err err = {0};
        CHECK(c, hone_optim_step(p, &bad[i].a, NULL, &err) == HONE_E_ARG && strstr(err.text, bad[i].says));
    }
    CHECK(c, hone_optim_count(p) == 0 && !hone_optim_store(p, "average") && !hone_optim_store(p, "moment"));
    hone_optim_set_count(p, 41);
    CHECK(c, hone_optim_step(p, &(hone_optim_args){.lr = 0}, NULL, NULL) == HONE_OK && hone_optim_count(p) == 42);
    hone_optim_destroy(p);
    hone_err err = {0};
    o.beta2 = 1;
    CHECK(c, !hone_optim_create(g->cpu, g->param, &o, &err) && err.code == HONE_E_CONFIG && strstr(err.text, "beta2"));
}

static void with_fixtures(struct check *c, const char *name)
{
    struct golden g;
    if (!golden_open(&g, c, name))
        return;
    if (check_case(c, "%s: ten steps", name))
        ten_steps(c, &g, "adamw", 0);
    if (check_case(c, "%s: ten steps with a clip", name))
        ten_steps(c, &g, "adamw_clip", 1);
    if (check_case(c, "%s: the same steps give the same bits and allocate nothing", name))
        same_bits(c, name);
    if (check_case(c, "%s: accumulation", name))
        accumulation(c, &g);
    if (check_case(c, "%s: averages", name))
        averages(c, &g);
    for (int i = 0; i < 2; i++)
        if (check_case(c, "%s: a step with %s is skipped", name, i ? "an infinity" : "a NaN"))
            skipping(c, &g, i ? INFINITY : NAN);
    for (int plain = 0; plain < 2; plain++)
        if (check_case(c, "%s: decay of %s", name, plain ? "everything" : "weights"))
            decay_by_group(c, &g, plain);
    if (strcmp(name, "mlp") == 0 && check_case(c, "%s: the update by itself", name))
        update_graph(c, &g);
    if (strcmp(name, "mlp") == 0 && check_case(c, "%s: refusals", name))
        refusals(c, &g);
    golden_close(&g, c);
}

/* --- frozen parameters --- */

static void frozen(struct check *c)
{
    struct kit k;
    const float x[6] = {1, 2, 3, -1, 0.5f, 1};
    kit_open(&k, &(hone_ctx_options){.threads = 1});
    hone_layout *l = hone_layout_create(k.ctx, &k.err);
    hone_nn nn = {.g = hone_graph_create(k.ctx, &k.err), .layout = l}, fixed = nn;
    fixed.frozen = true;
    hone_t h = hone_input(nn.g, "x", HONE_F32, HONE_SHAPE(2, 3));
    h = hone_nn_layer_norm(&fixed, "norm", hone_nn_linear(&fixed, "first", h, 8, true));
    h = hone_nn_linear(&nn, "second", hone_mish(h), 4, true);
    hone_nn_gradients(&nn, hone_mean(hone_mul(h, h), HONE_AXES_ALL, false), NULL);
    hone_store *param = hone_store_create(k.ctx, l, &k.err), *start = hone_store_create(k.ctx, l, &k.err);
    hone_store_init(param, 1, &k.err);
    hone_store_copy(start, param, &k.err);
    hone_adamw_config o = as_pytorch(1, true);
    hone_optim *optim = hone_optim_create(k.cpu, param, &o, &k.err);
    hone_program *p = hone_compile(k.cpu, nn.g, NULL, &k.err);
    hone_store *stores[2] = {NULL};
    if (CHECK_MSG(c, p && optim, "%s: %s", k.err.where, k.err.text)) {
        hone_optim_bind(optim, p, stores);
        for (int i = 0; i < 3; i++) {
            CHECK(c, kit_run(&k, p, (const void *[]){x}, stores, 0));
            if (i == 0)
                for (int t = 0; t < hone_layout_count(l); t++)
                    CHECK(c, (hone_store_get(stores[1], t)[0] != 0) ==
                                 (strncmp(hone_layout_name(l, t), "second", 6) == 0));
            hone_optim_step(optim, &(hone_optim_args){.lr = 0.1, .decay = 0.5}, NULL, &k.err);
        }
        for (int t = 0; t < hone_layout_count(l); t++) {
            hone_shape s = hone_layout_shape(l, t);
            bool same =
                !memcmp(hone_store_get(param, t), hone_store_get(start, t), (size_t)hone_numel(&s) * sizeof(float));
            CHECK_MSG(c, same == (strncmp(hone_layout_name(l, t), "second", 6) != 0), "%s", hone_layout_name(l, t));
        }
    }
    CHECK_MSG(c, k.err.code == HONE_OK, "%s: %s", k.err.where, k.err.text);
    hone_optim_destroy(optim);
    hone_program_destroy(p);
    hone_store_destroy(param);
    hone_store_destroy(start);
    hone_graph_destroy(nn.g);
    hone_layout_destroy(l);
    kit_close(&k, c);
}

/* --- no memory --- */

/* Builds and compiles a small network with its gradients, and makes its stores and optimiser; the status of it all. */
static hone_status build_all(hone_ctx *ctx, hone_device *d)
{
    hone_err err = {0};
    hone_mlp_config config;
    const hone_net *net = hone_net_find("mlp", &err);
    hone_field_defaults(net->fields, &config);
    config.hidden = 8;
    config.time_dim = 4;
    hone_adamw_config o = as_pytorch(1, true);
    hone_layout *l = hone_layout_create(ctx, &err);
    hone_nn nn = {.g = hone_graph_create(ctx, &err), .layout = l};
    hone_store *param = NULL;
    hone_program *p = NULL;
    hone_optim *optim = NULL;
    if (l && nn.g) {
        hone_t x = hone_input(nn.g, "x", HONE_F32, HONE_SHAPE(2, 2, 3)),
               t = hone_input(nn.g, "t", HONE_F32, HONE_SHAPE(2));
        hone_t y = hone_net_build(net, &nn, &config, x, t, hone_input(nn.g, "cond", HONE_F32, HONE_SHAPE(2, 4)));
        hone_nn_gradients(&nn, hone_mean(hone_mul(y, y), HONE_AXES_ALL, false), NULL);
        p = hone_compile(d, nn.g, NULL, &err);
        param = p ? hone_store_create(ctx, l, &err) : NULL;
        optim = param ? hone_optim_create(d, param, &o, &err) : NULL;
    }
    hone_optim_destroy(optim);
    hone_store_destroy(param);
    hone_program_destroy(p);
    hone_graph_destroy(nn.g);
    hone_layout_destroy(l);
    return err.code;
}

static void no_memory(struct check *c)
{
    struct failing f = {0};
    hone_allocator a = kit_failing(&f);
    hone_err err = {0};
    hone_ctx *ctx = hone_ctx_create(&(hone_ctx_options){.allocator = &a, .threads = 1}, &err);
    hone_device *d = hone_device_open(ctx, "cpu", &err);
    const long live = f.live, before = f.calls;
    CHECK(c, build_all(ctx, d) == HONE_OK && f.live == live);
    const long calls = f.calls - before;
    for (long n = 1; n <= calls; n++) {
        f.countdown = n;
        hone_status s = build_all(ctx, d);
        if (!CHECK_MSG(c, s == HONE_E_NOMEM && f.countdown == 0, "call %ld of %ld: %s", n, calls,
                       hone_status_name(s)) ||
            !CHECK_MSG(c, f.live == live, "call %ld of %ld: %ld blocks lost", n, calls, f.live - live))
            break;
    }
    f.countdown = 0;
    CHECK(c, hone_ctx_mem(ctx).planned_bytes == 0 && calls > 50);
    if (c->verbose)
        printf("    %ld allocations\n", calls);
    hone_device_close(d);
    hone_ctx_destroy(ctx);
    CHECK(c, f.live == 0);
}

void suite_nn_train(struct check *c)
{
    with_fixtures(c, "mlp");
    with_fixtures(c, "unet");
    with_fixtures(c, "dit");
    if (check_case(c, "frozen parameters stay"))
        frozen(c);
    if (check_case(c, "each allocation may fail"))
        no_memory(c);
}
