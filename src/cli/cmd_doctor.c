/* hone doctor: what this machine and this build have, what is missing, and the line that mends it; then a product and a
 * short training, to see that they work. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/cpu/dnnl.h"
#include "cli/cli.h"
#include "graph/backend.h"
#include "hone/nn.h"

static void row(const char *what, const char *is)
{
    printf("  %-10s %s\n", what, is);
}

static void cpu_model(void)
{
    char line[256], *at;
    bool found = false;
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && !found && fgets(line, sizeof line, f))
        if (!strncmp(line, "model name", 10) && (at = strchr(line, ':'))) {
            line[strcspn(line, "\n")] = '\0';
            row("cpu", at + 2);
            found = true;
        }
    if (f)
        fclose(f);
    if (!found)
        row("cpu", "of unknown name");
}

static void features(void)
{
#if defined(__x86_64__)
    char text[128];
    snprintf(text, sizeof text, "%s%s%s%s", __builtin_cpu_supports("avx2") ? "avx2 " : "",
             __builtin_cpu_supports("fma") ? "fma " : "", __builtin_cpu_supports("avx512f") ? "avx512f " : "",
             __builtin_cpu_supports("avx512vnni") ? "avx512vnni" : "");
    row("vectors", *text ? text : "sse2");
#elif defined(__aarch64__)
    row("vectors", "neon");
#else
    row("vectors", "portable code");
#endif
}

static void libraries(void)
{
#ifdef HONE_DNNL
    char text[64];
    const int v = cpu_dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", v / 10000, v / 100 % 100, v % 100);
    row("oneDNN", text);
#else
    row("oneDNN", "absent: products and convolutions are slow; apt-get install libdnnl-dev, then make again");
#endif
#ifdef _OPENMP
    row("OpenMP", "present");
#else
    row("OpenMP", "absent: kernels use one core; build with a compiler that has -fopenmp");
#endif
#ifdef HONE_PNG
    row("libpng", "present");
#else
    row("libpng", "absent: no pictures; apt-get install libpng-dev, then make again");
#endif
}

struct trial {
    hone_ctx *ctx;
    hone_device *d;
    hone_graph *g, *h;
    hone_layout *l;
    hone_store *param;
    hone_optim *optim;
    hone_program *p;
};

static void prepare(struct trial *t, hone_err *err)
{
    t->d = hone_device_open(t->ctx, "cpu", err);
    t->l = hone_layout_create(t->ctx, err);
    t->g = hone_graph_create(t->ctx, err);
    if (!t->d || !t->l || !t->g)
        return;
    hone_nn nn = {.g = t->g, .layout = t->l};
    hone_t x = hone_random_normal(t->g, "x", HONE_SHAPE(64, 8));
    hone_t y = hone_nn_linear(&nn, "b", hone_silu(hone_nn_linear(&nn, "a", x, 32, true)), 1, true);
    hone_t loss = hone_mean(hone_square(hone_sub(y, hone_sum(hone_sin(x), HONE_AXIS(1), true))), HONE_AXES_ALL, false);
    hone_output(loss, "loss");
    hone_nn_gradients(&nn, loss, "grad");
    t->p = hone_compile(t->d, t->g, &(hone_compile_options){.name = "doctor"}, err);
    t->param = hone_store_create(t->ctx, t->l, err);
    if (t->param)
        hone_store_init(t->param, 1, err);
    hone_adamw_config c;
    hone_field_defaults(hone_adamw_fields(), &c);
    t->optim = t->param ? hone_optim_create(t->d, t->param, &c, err) : NULL;
}

/* Loss of the first and the last of 200 steps. */
static bool train(struct trial *t, float loss[2], hone_err *err)
{
    hone_store *stores[8] = {NULL};
    prepare(t, err);
    if (!t->p || !t->optim)
        return false;
    hone_optim_bind(t->optim, t->p, stores);
    for (int i = 0; i < 200; i++) {
        hone_run_args a = {.stores = stores, .seed = 1, .run = (uint64_t)i};
        if (hone_run(t->p, &a, err) != HONE_OK || hone_wait(t->p, err) != HONE_OK)
            return false;
        loss[i > 0] = *(const float *)hone_result(t->p, 0);
        if (hone_optim_step(t->optim, &(hone_optim_args){.lr = 1e-2, .decay = 1}, NULL, err) != HONE_OK)
            return false;
    }
    return true;
}

static bool trial(hone_ctx *ctx, hone_err *err)
{
    struct trial t = {.ctx = ctx};
    float loss[2] = {0, 0};
    char text[96];
    bool ok = train(&t, loss, err);
    hone_optim_destroy(t.optim);
    hone_program_destroy(t.p);
    hone_store_destroy(t.param);
    hone_graph_destroy(t.g);
    hone_layout_destroy(t.l);
    hone_device_close(t.d);
    if (!ok)
        return false;
    snprintf(text, sizeof text, "200 steps of a small network: loss %.3g to %.3g", (double)loss[0], (double)loss[1]);
    row("training", text);
    return isfinite(loss[1]) && loss[1] < 0.5f * loss[0];
}

int cmd_doctor(int argc, char **argv)
{
    static const struct cli_verb verb = {"doctor", "", "What is here, what is missing, and a short trial.", NULL, 0,
                                         0,        0};
    char text[128];
    int n, code;
    hone_err err = {0};
    if (!cli_parse(&verb, argc, argv, NULL, &n, &code))
        return code;
    hone_ctx *ctx = hone_ctx_create(NULL, &err);
    if (!ctx)
        return cli_fail(&err);
    printf("hone %s\n", HONE_VERSION);
    cpu_model();
    features();
    snprintf(text, sizeof text, "%d usable by this process", hone_ctx_threads(ctx));
    row("cores", text);
    snprintf(text, sizeof text, "%.1f GiB",
             (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 1073741824.0);
    row("memory", text);
    row("compiler", __VERSION__);
    libraries();
    for (int i = 0; bk_table[i]; i++) {
        snprintf(text, sizeof text, "%s: %s", bk_table[i]->name, bk_table[i]->doc);
        row("device", text);
    }
    bool ok = trial(ctx, &err);
    hone_ctx_destroy(ctx);
    if (err.code != HONE_OK)
        return cli_fail(&err);
    printf(ok ? "all is well\n" : "the loss does not fall: something is wrong with this build\n");
    return ok ? CLI_OK : CLI_FAILED;
}
