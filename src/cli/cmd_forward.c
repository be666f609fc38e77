/* hone forward: any network of the table on tensors from a file. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cli/cli.h"
#include "hone/io.h"
#include "hone/nn.h"

enum { SETS = 32 };
enum { X, T, COND, INPUTS };

struct forward {
    const char *net, *weights, *inputs, *out, *threads, *device_name, *expect;
    const char *set[SETS];
    int n_set;
    bool debug;

    hone_ctx *ctx;
    const hone_net *kind;
    void *config;
    hone_tensors *file;
    void *data[INPUTS];
    hone_type type[INPUTS];
    hone_layout *layout;
    hone_store *store;
    hone_device *device;
    hone_graph *g;
    hone_program *program;
};

static const char *const input_names[INPUTS] = {"x", "t", "cond"};

/* --- settings --- */

/* "key=value" into the configuration. */
static bool set_all(struct forward *f, hone_err *err)
{
    char key[64];
    f->config = calloc(1, f->kind->fields->size);
    if (!f->config) {
        err_set(err, HONE_E_NOMEM, "forward", "no memory for settings");
        return false;
    }
    hone_field_defaults(f->kind->fields, f->config);
    for (int i = 0; i < f->n_set; i++) {
        const char *eq = strchr(f->set[i], '=');
        if (!eq || eq - f->set[i] >= (long)sizeof key) {
            err_set(err, HONE_E_CONFIG, "--set", "wants KEY=VALUE; got \"%.80s\"", f->set[i]);
            return false;
        }
        snprintf(key, sizeof key, "%.*s", (int)(eq - f->set[i]), f->set[i]);
        if (hone_field_set(f->kind->fields, f->config, key, eq + 1, err) != HONE_OK)
            return false;
    }
    return hone_net_check(f->kind, f->config, err) == HONE_OK;
}

static bool find_net(struct forward *f, hone_err *err)
{
    f->kind = hone_net_find(f->net, err);
    if (!f->kind)
        err->code = HONE_E_CONFIG; /* a mistake in the call */
    return f->kind != NULL;
}

/* --- inputs --- */

/* Timesteps of 64 bits, as PyTorch writes them, as the i32 that they are taken for. */
static bool shorten(struct forward *f, int64_t at, int64_t n, hone_err *err)
{
    int64_t *wide = malloc((size_t)n * sizeof *wide + 1);
    hone_status s = HONE_E_NOMEM;
    if (wide)
        s = hone_tensors_read(f->file, (size_t)at, wide, (size_t)n * sizeof *wide, err);
    else
        err_set(err, s, "t", "no memory for %" PRId64 " elements", n);
    for (int64_t i = 0; s == HONE_OK && i < n; i++) {
        ((int32_t *)f->data[T])[i] = (int32_t)wide[i];
        if (wide[i] < INT32_MIN || wide[i] > INT32_MAX)
            s = err_set(err, HONE_E_ARG, "t", "element %" PRId64 " is %" PRId64 ", which is no i32", i, wide[i]);
    }
    free(wide);
    return s == HONE_OK;
}

/* Input k of the file, under its name or "in/" and its name; cond may be missing. */
static bool read_input(struct forward *f, int k, hone_err *err)
{
    char name[16];
    snprintf(name, sizeof name, "in/%s", input_names[k]);
    int64_t at = hone_tensors_find(f->file, name, NULL);
    if (at < 0)
        at = hone_tensors_find(f->file, input_names[k], k == COND ? NULL : err);
    if (at < 0)
        return k == COND;
    const hone_tensor_info info = hone_tensors_at(f->file, (size_t)at);
    const int64_t n = info.type.shape.rank >= 0 ? hone_numel(&info.type.shape) : -1;
    if (n < 0) {
        err_set(err, HONE_E_UNSUPPORTED, info.name, "has more dimensions than hone holds");
        return false;
    }
    const bool whole = k == T && (info.type.dtype == HONE_I32 || info.type.dtype == HONE_I64);
    f->type[k] = (hone_type){whole ? HONE_I32 : HONE_F32, info.type.shape};
    f->data[k] = (uint64_t)n < SIZE_MAX / 16 ? malloc((size_t)n * 4 + 4) : NULL;
    if (!f->data[k]) {
        err_set(err, HONE_E_NOMEM, info.name, "no memory for %" PRId64 " elements", n);
        return false;
    }
    if (info.type.dtype == HONE_I64 && whole)
        return shorten(f, at, n, err);
    if (whole)
        return hone_tensors_read(f->file, (size_t)at, f->data[k], (size_t)n * 4, err) == HONE_OK;
    return hone_tensors_read_f32(f->file, (size_t)at, f->data[k], (size_t)n, err) == HONE_OK;
}

static bool read_inputs(struct forward *f, hone_err *err)
{
    f->file = hone_tensors_open(f->ctx, f->inputs, err);
    for (int k = 0; f->file && k < INPUTS; k++)
        if (!read_input(f, k, err))
            return false;
    return f->file != NULL;
}

/* --- the run --- */

/* The network on inputs of f->type; those of rank -1 are left out. */
static bool build(struct forward *f, hone_err *err)
{
    f->g = hone_graph_create(f->ctx, err);
    f->layout = hone_layout_create(f->ctx, err);
    if (!f->g || !f->layout)
        return false;
    hone_nn nn = {.g = f->g, .layout = f->layout};
    hone_t in[INPUTS] = {HONE_NONE, HONE_NONE, HONE_NONE};
    for (int k = 0; k < INPUTS; k++)
        if (f->type[k].shape.rank >= 0)
            in[k] = hone_input(f->g, input_names[k], f->type[k].dtype, f->type[k].shape);
    hone_output(hone_net_build(f->kind, &nn, f->config, in[X], in[T], in[COND]), "y");
    return hone_graph_status(f->g, err) == HONE_OK;
}

static bool compile(struct forward *f, hone_err *err)
{
    const hone_compile_options o = {.name = f->kind->name, .debug = f->debug};
    f->device = hone_device_open(f->ctx, f->device_name ? f->device_name : "cpu", err);
    if (!f->device && err->code == HONE_E_ARG)
        err->code = HONE_E_CONFIG;
    f->program = f->device ? hone_compile(f->device, f->g, &o, err) : NULL;
    return f->program != NULL;
}

/* Every parameter, and nothing else under "param/" where the file has that prefix. */
static bool load_weights(struct forward *f, hone_err *err)
{
    hone_tensors *t = hone_tensors_open(f->ctx, f->weights, err);
    bool prefixed = false;
    if (!t)
        return false;
    for (size_t i = 0; i < hone_tensors_count(t); i++)
        prefixed = prefixed || !strncmp(hone_tensors_at(t, i).name, "param/", 6);
    f->store = hone_store_create(f->ctx, f->layout, err);
    const bool ok = f->store && hone_store_load(f->store, t, prefixed ? "param/" : "", err) == HONE_OK;
    hone_tensors_close(t);
    return ok;
}

static bool run(struct forward *f, hone_err *err)
{
    const void *in[INPUTS];
    int n = 0;
    for (int k = 0; k < INPUTS; k++)
        if (f->data[k])
            in[n++] = f->data[k];
    hone_store *stores[1] = {f->store};
    const hone_run_args a = {.inputs = in, .stores = stores};
    if (hone_run(f->program, &a, err) != HONE_OK || hone_wait(f->program, err) != HONE_OK)
        return false;
    const hone_tensor_source y = {"y", hone_program_output_type(f->program, 0), hone_result(f->program, 0)};
    const char *asked = hone_device_transcript(f->device);
    if (asked)
        fputs(asked, stdout);
    return hone_tensors_write(f->ctx, f->out, &y, 1, NULL, 0, err) == HONE_OK;
}

/* --expect: y against a tensor of the inputs' file. */
static bool compare(struct forward *f, hone_err *err)
{
    const hone_type y = hone_program_output_type(f->program, 0);
    const float *got = hone_result(f->program, 0);
    const int64_t at = hone_tensors_find(f->file, f->expect, err), n = hone_numel(&y.shape);
    const hone_tensor_info info = at >= 0 ? hone_tensors_at(f->file, (size_t)at) : (hone_tensor_info){0};
    char a[96], b[96];
    if (at < 0)
        return false;
    if (!hone_shape_equal(&y.shape, &info.type.shape)) {
        err_set(err, HONE_E_SHAPE, f->expect, "has shape %s; y has %s", hone_shape_text(&info.type.shape, a, sizeof a),
                hone_shape_text(&y.shape, b, sizeof b));
        return false;
    }
    float *want = malloc((size_t)n * sizeof *want + 1);
    double largest = 0, worst = 0;
    if (!want)
        err_set(err, HONE_E_NOMEM, f->expect, "no memory for %" PRId64 " elements", n);
    bool ok = want && hone_tensors_read_f32(f->file, (size_t)at, want, (size_t)n, err) == HONE_OK;
    for (int64_t i = 0; ok && i < n; i++) {
        const double d = fabs((double)got[i] - (double)want[i]);
        worst = d <= worst ? worst : d; /* a NaN stays */
        largest = fmax(largest, fabs((double)want[i]));
    }
    free(want);
    if (ok && !(worst <= 1e-4 * largest)) {
        err_set(err, HONE_E_ARG, f->expect, "y differs from it by up to %.3g, its largest element being %.3g", worst,
                largest);
        ok = false;
    }
    if (ok)
        printf("y is %s up to %.2g, its largest element being %.3g\n", f->expect, worst, largest);
    return ok;
}

static bool forward(struct forward *f, hone_err *err)
{
    return find_net(f, err) && set_all(f, err) && read_inputs(f, err) && build(f, err) && compile(f, err) &&
           load_weights(f, err) && run(f, err) && (!f->expect || compare(f, err));
}

static void finish(struct forward *f)
{
    hone_program_destroy(f->program);
    if (f->device)
        hone_device_close(f->device);
    hone_graph_destroy(f->g);
    hone_store_destroy(f->store);
    hone_layout_destroy(f->layout);
    hone_tensors_close(f->file);
    for (int k = 0; k < INPUTS; k++)
        free(f->data[k]);
    free(f->config);
    hone_ctx_destroy(f->ctx);
}

/* --- help --- */

static void put(void *user, const char *text)
{
    (void)user;
    fputs(text, stdout);
}

static void help_networks(void)
{
    printf("\nInputs are x [B,T,A] f32, t [B] i32 or f32, and cond [B,C] f32 (may be left out), by these names or with "
           "\"in/\"\nbefore them; weights stand under their names, or all of them with \"param/\" before them. The "
           "result is \"y\" [B,T,A].\nWith --net, the names and shapes of the weights are told for the settings "
           "given. Networks and their settings:\n");
    for (int i = 0; hone_net_at(i); i++) {
        printf("\n%s: %s\n", hone_net_at(i)->name, hone_net_at(i)->doc);
        hone_field_help(hone_net_at(i)->fields, put, NULL);
    }
}

/* A size of the settings; where it is open, `otherwise`. */
static int64_t size_of(const struct forward *f, const char *name, int64_t otherwise)
{
    char text[64];
    const hone_field *row = hone_field_find(f->kind->fields, name);
    const long long v = row ? strtoll(hone_field_text(row, f->config, text, sizeof text), NULL, 10) : 0;
    return v > 0 ? (int64_t)v : otherwise;
}

/* The weights that the settings given mean, for one sample. */
static bool help_weights(struct forward *f, hone_err *err)
{
    char shape[96];
    if (!find_net(f, err) || !set_all(f, err))
        return false;
    f->type[X] = (hone_type){HONE_F32, HONE_SHAPE(1, size_of(f, "horizon", 16), size_of(f, "actions", 3))};
    f->type[T] = (hone_type){HONE_F32, HONE_SHAPE(1)};
    f->type[COND] = (hone_type){HONE_F32, HONE_SHAPE(1, size_of(f, "cond", 32))};
    if (!build(f, err))
        return false;
    printf("\nWeights of %s for x [B,%" PRId64 ",%" PRId64 "] and cond [B,%" PRId64 "]:\n", f->kind->name,
           f->type[X].shape.dim[1], f->type[X].shape.dim[2], f->type[COND].shape.dim[1]);
    for (int i = 0; i < hone_layout_count(f->layout); i++) {
        const hone_shape s = hone_layout_shape(f->layout, i);
        printf("  %-32s %s\n", hone_layout_name(f->layout, i), hone_shape_text(&s, shape, sizeof shape));
    }
    return true;
}

int cmd_forward(int argc, char **argv)
{
    struct forward f = {0};
    const struct cli_flag flags[] = {
        {.name = "net", .value = "NAME", .doc = "the network", .text = &f.net},
        {.name = "weights", .value = "FILE", .doc = "safetensors: its parameters", .text = &f.weights},
        {.name = "inputs", .value = "FILE", .doc = "safetensors: x, t, cond", .text = &f.inputs},
        {.name = "out", .value = "FILE", .doc = "safetensors to write: y", .text = &f.out},
        {.name = "set",
         .value = "KEY=VALUE",
         .doc = "a setting of the network",
         .text = f.set,
         .max = SETS,
         .n = &f.n_set},
        {.name = "expect", .value = "TENSOR", .doc = "of the inputs' file: fail if y is not it", .text = &f.expect},
        {.name = "device",
         .value = "NAME",
         .doc = "cpu, or record, which tells what it is asked",
         .text = &f.device_name},
        {.name = "threads", .value = "N", .doc = "cores to use (all)", .text = &f.threads},
        {.name = "debug", .doc = "check each operation against its reference", .on = &f.debug},
    };
    const struct cli_verb verb = {"forward",
                                  "--net NAME --weights FILE --inputs FILE --out FILE",
                                  "Runs a network on tensors from a file.",
                                  flags,
                                  sizeof flags / sizeof *flags,
                                  0,
                                  0};
    int n, code;
    long threads = 0;
    hone_err err = {0};
    for (int k = 0; k < INPUTS; k++)
        f.type[k].shape.rank = -1;
    const bool go = cli_parse(&verb, argc, argv, NULL, &n, &code);
    if (!go && code == CLI_OK)
        help_networks();
    if (!go && !(code == CLI_OK && f.net))
        return code;
    if (go && (!f.net || !f.weights || !f.inputs || !f.out)) {
        fprintf(stderr, "hone: usage: hone forward %s\n", verb.usage);
        return CLI_USAGE;
    }
    if (f.threads && !cli_number("threads", f.threads, 1, 4096, &threads))
        return CLI_USAGE;
    f.ctx = hone_ctx_create(&(hone_ctx_options){.threads = (int)threads}, &err);
    const bool ok = f.ctx && (go ? forward(&f, &err) : help_weights(&f, &err));
    if (f.ctx)
        finish(&f);
    return ok ? CLI_OK : cli_fail(&err);
}
