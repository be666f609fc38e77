#include "nn/golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double *golden_values(struct golden *g, struct check *c, const char *name, int64_t *n)
{
    int64_t i = hone_tensors_find(g->file, name, &g->err);
    if (!CHECK_MSG(c, i >= 0, "%s", g->err.text))
        return NULL;
    hone_tensor_info info = hone_tensors_at(g->file, (size_t)i);
    *n = hone_numel(&info.type.shape);
    double *v = malloc((size_t)*n * sizeof *v + 1);
    if (info.type.dtype == HONE_F64) {
        hone_tensors_read(g->file, (size_t)i, v, info.bytes, &g->err);
    } else {
        float *f = malloc((size_t)*n * sizeof *f + 1);
        hone_tensors_read_f32(g->file, (size_t)i, f, (size_t)*n, &g->err);
        for (int64_t k = 0; k < *n; k++)
            v[k] = (double)f[k];
        free(f);
    }
    if (CHECK_MSG(c, g->err.code == HONE_OK, "%s: %s", g->err.where, g->err.text))
        return v;
    free(v);
    return NULL;
}

double golden_compare(struct golden *g, struct check *c, const char *name, const float *got, int64_t n, double tol)
{
    int64_t have = 0;
    double *want = golden_values(g, c, name, &have), worst = 0, largest = 0;
    if (!want)
        return INFINITY;
    CHECK_MSG(c, have == n, "%s: %lld elements, wanted %lld", name, (long long)n, (long long)have);
    for (int64_t i = 0; i < n && n == have; i++) {
        double d = fabs(want[i] - (double)got[i]);
        worst = d > worst || isnan(d) ? d : worst;
        largest = fmax(largest, fabs(want[i]));
    }
    free(want);
    worst /= largest;
    CHECK_MSG(c, worst <= tol, "%s: off by %.2g of its largest element", name, worst);
    return worst;
}

/* The settings of the network that the file names. */
static void read_config(struct golden *g)
{
    const hone_field_table *t = g->net->fields;
    hone_field_defaults(t, g->config.bytes);
    for (size_t i = 0; i < t->rows; i++) {
        const char *value = hone_tensors_metadata(g->file, t->row[i].name);
        if (value)
            hone_field_set(t, g->config.bytes, t->row[i].name, value, &g->err);
    }
}

static void *read_input(struct golden *g, const char *name, hone_shape *s)
{
    int64_t i = hone_tensors_find(g->file, name, &g->err);
    if (i < 0)
        return NULL;
    hone_tensor_info info = hone_tensors_at(g->file, (size_t)i);
    void *p = malloc(info.bytes);
    hone_tensors_read(g->file, (size_t)i, p, info.bytes, &g->err);
    *s = info.type.shape;
    return p;
}

bool golden_open_threads(struct golden *g, struct check *c, const char *name, int threads)
{
    char path[128];
    hone_shape unused;
    memset(g, 0, sizeof *g);
    snprintf(path, sizeof path, "test/golden/%s.safetensors", name);
    g->ctx = hone_ctx_create(&(hone_ctx_options){.threads = threads}, &g->err);
    g->cpu = hone_device_open(g->ctx, "cpu", &g->err);
    g->file = hone_tensors_open(g->ctx, path, &g->err);
    g->net = hone_net_find(name, &g->err);
    g->layout = hone_layout_create(g->ctx, &g->err);
    if (g->err.code == HONE_OK)
        read_config(g);
    if (g->err.code == HONE_OK) {
        g->x = read_input(g, "in/x", &g->s);
        g->t = read_input(g, "in/t", &unused);
        g->cond = read_input(g, "in/cond", &g->s_cond);
        g->target = read_input(g, "in/target", &unused);
    }
    if (g->err.code == HONE_OK) { /* registers the parameters */
        hone_nn nn = golden_nn(g);
        golden_build(g, &nn);
        hone_graph_status(nn.g, &g->err);
        hone_graph_destroy(nn.g);
    }
    g->param = hone_store_create(g->ctx, g->layout, &g->err);
    if (g->err.code == HONE_OK)
        hone_store_load(g->param, g->file, "param/", &g->err);
    if (CHECK_MSG(c, g->err.code == HONE_OK, "%s: %s: %s", name, g->err.where, g->err.text))
        return true;
    golden_close(g, c);
    return false;
}

bool golden_open(struct golden *g, struct check *c, const char *name)
{
    return golden_open_threads(g, c, name, 1);
}

void golden_close(struct golden *g, struct check *c)
{
    free(g->x);
    free(g->t);
    free(g->cond);
    free(g->target);
    hone_store_destroy(g->param);
    hone_layout_destroy(g->layout);
    hone_tensors_close(g->file);
    hone_device_close(g->cpu);
    hone_mem_stats m = hone_ctx_mem(g->ctx);
    CHECK_MSG(c, m.live_bytes == 0 && m.planned_bytes == 0, "%zu bytes live, %zu planned", m.live_bytes,
              m.planned_bytes);
    hone_ctx_destroy(g->ctx);
}

hone_nn golden_nn(struct golden *g)
{
    return (hone_nn){.g = hone_graph_create(g->ctx, &g->err), .layout = g->layout};
}

struct golden_graph golden_build(struct golden *g, const hone_nn *nn)
{
    struct golden_graph r = {.g = nn->g};
    r.x = hone_input(nn->g, "x", HONE_F32, g->s);
    r.t = hone_input(nn->g, "t", HONE_I32, HONE_SHAPE(g->s.dim[0]));
    r.cond = hone_input(nn->g, "cond", HONE_F32, g->s_cond);
    hone_t target = hone_input(nn->g, "target", HONE_F32, g->s);
    r.y = hone_net_build(g->net, nn, g->config.bytes, r.x, r.t, r.cond);
    hone_t d = hone_sub(r.y, target);
    r.loss = hone_mean(hone_mul(d, d), HONE_AXES_ALL, false);
    hone_output(r.y, "y");
    hone_output(r.loss, "loss");
    return r;
}

void golden_inputs(const struct golden *g, const hone_program *p, const void **in)
{
    static const char *const names[] = {"x", "t", "cond", "target"};
    const void *data[] = {g->x, g->t, g->cond, g->target};
    for (int i = 0; i < 4; i++) {
        int at = hone_program_input(p, names[i]);
        if (at >= 0)
            in[at] = data[i];
    }
}

hone_program *golden_run(struct golden *g, struct check *c, hone_graph *graph, const hone_compile_options *o,
                         hone_store *const *stores)
{
    const void *in[4] = {NULL};
    hone_program *p = hone_compile(g->cpu, graph, o, &g->err);
    hone_graph_destroy(graph);
    if (p) {
        golden_inputs(g, p, in);
        hone_run(p, &(hone_run_args){.inputs = in, .stores = stores}, &g->err);
        hone_wait(p, &g->err);
    }
    if (CHECK_MSG(c, p && g->err.code == HONE_OK, "%s: %s", g->err.where, g->err.text))
        return p;
    hone_program_destroy(p);
    g->err = (hone_err){0};
    return NULL;
}

const float *golden_result(const hone_program *p, const char *name)
{
    return hone_result(p, hone_program_output(p, name));
}
