/* hone forward: any network of the table on tensors from a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cli/cli.h"
#include "hone/io.h"
#include "hone/nn.h"

enum { SETS = 32 };

struct forward {
    const char *net, *weights, *inputs, *out, *threads;
    const char *set[SETS];
    int n_set;
    bool debug;

    hone_ctx *ctx;
    const hone_net *kind;
    void *config;
    hone_tensors *file;
    void *data[3]; /* x, t, cond */
    hone_type type[3];
    hone_layout *layout;
    hone_store *store;
    hone_device *device;
    hone_graph *g;
    hone_program *program;
};

static const char *const input_names[3] = {"x", "t", "cond"};

static void put(void *user, const char *text)
{
    (void)user;
    fputs(text, stdout);
}

static void help_networks(void)
{
    printf(
        "\nInputs are x [B, T, A] f32, t [B] i32 or f32, and cond [B, C] f32 (may be left out), by these names or with "
        "\"in/\"\nbefore them; weights stand under their names or with \"param/\" before them. The result is \"y\" "
        "[B, T, A].\nNetworks, and what --set takes for each:\n");
    for (int i = 0; hone_net_at(i); i++) {
        printf("\n%s: %s\n", hone_net_at(i)->name, hone_net_at(i)->doc);
        hone_field_help(hone_net_at(i)->fields, put, NULL);
    }
}

/* "key=value" into the configuration. */
static bool set_all(struct forward *f, hone_err *err)
{
    char key[64];
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
    return true;
}

/* Input k of the file, under its name or "in/" and its name; cond may be missing. */
static bool read_input(struct forward *f, int k, hone_err *err)
{
    char name[16];
    snprintf(name, sizeof name, "in/%s", input_names[k]);
    int64_t at = hone_tensors_find(f->file, name, NULL);
    if (at < 0)
        at = hone_tensors_find(f->file, input_names[k], k == 2 ? NULL : err);
    if (at < 0)
        return k == 2;
    hone_tensor_info info = hone_tensors_at(f->file, (size_t)at);
    int64_t n = info.type.shape.rank >= 0 ? hone_numel(&info.type.shape) : -1;
    if (n < 0) {
        err_set(err, HONE_E_UNSUPPORTED, info.name, "has more dimensions than hone holds");
        return false;
    }
    f->type[k] = (hone_type){info.type.dtype == HONE_I32 && k == 1 ? HONE_I32 : HONE_F32, info.type.shape};
    f->data[k] = malloc((size_t)n * 4 + 4);
    if (!f->data[k]) {
        err_set(err, HONE_E_NOMEM, info.name, "no memory for %lld elements", (long long)n);
        return false;
    }
    if (f->type[k].dtype == HONE_I32)
        return hone_tensors_read(f->file, (size_t)at, f->data[k], (size_t)n * 4, err) == HONE_OK;
    return hone_tensors_read_f32(f->file, (size_t)at, f->data[k], (size_t)n, err) == HONE_OK;
}

static bool build(struct forward *f, hone_err *err)
{
    f->g = hone_graph_create(f->ctx, err);
    f->layout = hone_layout_create(f->ctx, err);
    f->device = hone_device_open(f->ctx, "cpu", err);
    if (!f->g || !f->layout || !f->device)
        return false;
    hone_nn nn = {.g = f->g, .layout = f->layout};
    hone_t in[3] = {HONE_NONE, HONE_NONE, HONE_NONE};
    for (int k = 0; k < 3; k++)
        if (f->data[k])
            in[k] = hone_input(f->g, input_names[k], f->type[k].dtype, f->type[k].shape);
    hone_output(hone_net_build(f->kind, &nn, f->config, in[0], in[1], in[2]), "y");
    f->program = hone_compile(f->device, f->g, &(hone_compile_options){.name = f->kind->name, .debug = f->debug}, err);
    return f->program != NULL;
}

static bool load_weights(struct forward *f, hone_err *err)
{
    hone_tensors *t = hone_tensors_open(f->ctx, f->weights, err);
    bool prefixed = false;
    if (!t)
        return false;
    for (size_t i = 0; i < hone_tensors_count(t); i++)
        prefixed = prefixed || !strncmp(hone_tensors_at(t, i).name, "param/", 6);
    f->store = hone_store_create(f->ctx, f->layout, err);
    bool ok = f->store && hone_store_load(f->store, t, prefixed ? "param/" : "", err) == HONE_OK;
    hone_tensors_close(t);
    return ok;
}

static bool run(struct forward *f, hone_err *err)
{
    const void *in[3];
    int n = 0;
    for (int k = 0; k < 3; k++)
        if (f->data[k])
            in[n++] = f->data[k];
    hone_store *stores[1] = {f->store};
    hone_run_args a = {.inputs = in, .stores = stores};
    if (hone_run(f->program, &a, err) != HONE_OK || hone_wait(f->program, err) != HONE_OK)
        return false;
    hone_tensor_source y = {"y", hone_program_output_type(f->program, 0), hone_result(f->program, 0)};
    return hone_tensors_write(f->ctx, f->out, &y, 1, NULL, 0, err) == HONE_OK;
}

static bool forward(struct forward *f, hone_err *err)
{
    f->kind = hone_net_find(f->net, err);
    if (!f->kind) {
        err->code = HONE_E_CONFIG; /* a mistake in the call */
        return false;
    }
    f->config = calloc(1, f->kind->fields->size);
    if (!f->config)
        return err_set(err, HONE_E_NOMEM, "forward", "no memory for settings") == HONE_OK;
    if (!set_all(f, err))
        return false;
    f->file = hone_tensors_open(f->ctx, f->inputs, err);
    for (int k = 0; f->file && k < 3; k++)
        if (!read_input(f, k, err))
            return false;
    return f->file && build(f, err) && load_weights(f, err) && run(f, err);
}

static void finish(struct forward *f)
{
    hone_program_destroy(f->program);
    hone_device_close(f->device);
    hone_graph_destroy(f->g);
    hone_store_destroy(f->store);
    hone_layout_destroy(f->layout);
    hone_tensors_close(f->file);
    for (int k = 0; k < 3; k++)
        free(f->data[k]);
    free(f->config);
    hone_ctx_destroy(f->ctx);
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
        {.name = "threads", .value = "N", .doc = "cores to use (all)", .text = &f.threads},
        {.name = "debug", .doc = "check each operation against its reference", .on = &f.debug},
    };
    const struct cli_verb verb = {"forward",
                                  "--net NAME --weights FILE --inputs FILE --out FILE",
                                  "Runs a network on tensors from a file.",
                                  flags,
                                  7,
                                  0,
                                  0};
    int n, code;
    long threads = 0;
    hone_err err = {0};
    if (!cli_parse(&verb, argc, argv, NULL, &n, &code)) {
        if (code == CLI_OK)
            help_networks();
        return code;
    }
    if (!f.net || !f.weights || !f.inputs || !f.out) {
        fprintf(stderr, "hone: usage: hone forward %s\n", verb.usage);
        return CLI_USAGE;
    }
    if (f.threads && !cli_number("threads", f.threads, 1, 4096, &threads))
        return CLI_USAGE;
    f.ctx = hone_ctx_create(&(hone_ctx_options){.threads = (int)threads}, &err);
    bool ok = f.ctx && forward(&f, &err);
    if (f.ctx)
        finish(&f);
    return ok ? CLI_OK : cli_fail(&err);
}
