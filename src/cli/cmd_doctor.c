/* hone doctor: what this machine and this build have, what is missing, and the line that mends it; then a product and a
 * short training, to see that they work. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/cpu/dnnl.h"
#include "cli/cli.h"
#include "graph/backend.h"
#include "hone/nn.h"
#include "hone/random.h"

static void row(const char *what, const char *is)
{
    printf("  %-10s %s\n", what, is);
}

/* The value of the first line of /proc/<file> that begins with `key`; false: there is none. */
static bool proc(const char *file, const char *key, char *value, size_t n)
{
    char line[4096], *at;
    bool found = false;
    FILE *f = fopen(file, "r");
    while (f && !found && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key)) && (at = strchr(line, ':'))) {
            at[strcspn(at, "\n")] = '\0';
            snprintf(value, n, "%s", at + 1 + strspn(at + 1, " \t"));
            found = true;
        }
    if (f)
        fclose(f);
    return found;
}

static void processor(void)
{
    char text[512];
    row("cpu", proc("/proc/cpuinfo", "model name", text, sizeof text) ? text : "of unknown name");
#if defined(__x86_64__)
#define HAS(feature) (__builtin_cpu_supports(feature) ? " " feature : "")
    snprintf(text, sizeof text, "sse2%s%s%s%s%s%s", HAS("avx"), HAS("avx2"), HAS("fma"), HAS("avx512f"),
             HAS("avx512bw"), HAS("avx512vnni"));
#undef HAS
    row("vectors", text);
#elif defined(__aarch64__)
    row("vectors", proc("/proc/cpuinfo", "Features", text, sizeof text) ? text : "neon");
#else
    row("vectors", "portable code");
#endif
}

static void machine(const hone_ctx *ctx)
{
    char text[160], available[64];
    snprintf(text, sizeof text, "%d usable by this process, of %ld", hone_ctx_threads(ctx),
             sysconf(_SC_NPROCESSORS_ONLN));
    row("cores", text);
    const double gib = 1024.0 * 1024.0 * 1024.0;
    const double all = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (proc("/proc/meminfo", "MemAvailable", available, sizeof available))
        snprintf(text, sizeof text, "%.1f GiB, of which %.1f are available", all / gib,
                 strtod(available, NULL) * 1024 / gib);
    else
        snprintf(text, sizeof text, "%.1f GiB", all / gib);
    row("memory", text);
}

static void build(void)
{
#if defined(__clang__)
    row("compiler", "clang " __clang_version__);
#else
    row("compiler", "gcc " __VERSION__);
#endif
#ifdef HONE_CFLAGS
    row("flags", HONE_CFLAGS);
#endif
#ifndef __OPTIMIZE__
    row("", "built without optimisation: kernels are slow; make CFLAGS=-O2");
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
    row("oneDNN", "absent: products and convolutions are slow; apt-get install libdnnl-dev && make");
#endif
#ifdef _OPENMP
    row("OpenMP", "present");
#else
    row("OpenMP",
        "absent: oneDNN's convolutions use one core; apt-get install gcc && make CC=gcc (for clang: libomp-dev)");
#endif
#ifdef HONE_PNG
    row("libpng", "present");
#else
    row("libpng", "absent: no pictures; apt-get install libpng-dev && make");
#endif
}

struct trial {
    hone_ctx *ctx;
    hone_device *d;
    hone_graph *g;
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

/* x [48,80] w' of a dense layer by the device's kernel, against the same in double. */
static bool product(hone_ctx *ctx, hone_err *err)
{
    enum { M = 48, K = 80, N = 32 };
    float x[M * K], w[N * K];
    const void *in[] = {x, w};
    hone_graph *g = hone_graph_create(ctx, err);
    hone_device *d = hone_device_open(ctx, "cpu", err);
    if (g) {
        const hone_t a = hone_input(g, "x", HONE_F32, HONE_SHAPE(M, K)),
                     b = hone_input(g, "w", HONE_F32, HONE_SHAPE(N, K));
        hone_output(hone_linear(a, b, HONE_NONE), "y");
    }
    hone_program *p = g && d ? hone_compile(d, g, NULL, err) : NULL;
    double worst = 0, largest = 0;
    char text[96];
    hone_fill_uniform(x, M * K, 1, hone_stream("x"), 0, 0);
    hone_fill_uniform(w, N * K, 1, hone_stream("w"), 0, 0);
    const bool ran = p && hone_run(p, &(hone_run_args){.inputs = in}, err) == HONE_OK && hone_wait(p, err) == HONE_OK;
    for (int i = 0; ran && i < M * N; i++) {
        double want = 0;
        for (int k = 0; k < K; k++)
            want += (double)x[i / N * K + k] * (double)w[i % N * K + k];
        worst = fmax(worst, fabs((double)((const float *)hone_result(p, 0))[i] - want));
        largest = fmax(largest, want);
    }
    hone_program_destroy(p);
    hone_graph_destroy(g);
    if (d)
        hone_device_close(d);
    if (!ran)
        return false;
    snprintf(text, sizeof text, "of matrices: largest error %.2g of %.3g", worst, largest);
    row("product", text);
    return worst <= 1e-5 * largest;
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
    processor();
    machine(ctx);
    build();
    libraries();
    for (int i = 0; bk_table[i]; i++) {
        snprintf(text, sizeof text, "%s: %s", bk_table[i]->name, bk_table[i]->doc);
        row("device", text);
    }
    const bool right = product(ctx, &err), falls = right && trial(ctx, &err);
    hone_ctx_destroy(ctx);
    if (err.code != HONE_OK)
        return cli_fail(&err);
    printf(!right   ? "products are wrong: something is wrong with this build\n"
           : !falls ? "the loss does not fall: something is wrong with this build\n"
                    : "all is well\n");
    return falls ? CLI_OK : CLI_FAILED;
}
