/* Compiling a graph to a program. */
#include "graph/program.h"

#include <stdio.h>
#include <string.h>

#include "graph/pass.h"

hone_device *hone_device_open(hone_ctx *ctx, const char *name, hone_err *err)
{
    char known[128] = "";
    if (err_is(err))
        return NULL;
    for (int i = 0; bk_table[i]; i++) {
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s\"%s\"", i ? ", " : "", bk_table[i]->name);
        if (strcmp(bk_table[i]->name, name) != 0)
            continue;
        hone_device *d = mem_alloc(&ctx->mem, sizeof *d);
        struct bk_dev *dev = d ? bk_table[i]->open(ctx, err) : NULL;
        if (!dev) {
            err_set(err, HONE_E_NOMEM, "device", "no memory for device \"%s\"", name);
            mem_free(&ctx->mem, d);
            return NULL;
        }
        *d = (struct hone_device){ctx, bk_table[i], dev};
        return d;
    }
    err_set(err, HONE_E_ARG, "device", "there is no device \"%s\"; this build has %s", name, known);
    return NULL;
}

void hone_device_close(hone_device *d)
{
    if (!d)
        return;
    d->def->close(d->dev);
    mem_free(&d->ctx->mem, d);
}

const char *hone_device_transcript(const hone_device *d)
{
    return d->def->transcript ? d->def->transcript(d->dev) : NULL;
}

struct keep {
    const hone_device *device;
    bool expand;
};

/* Whether the device takes this use as it is. */
static bool keep(void *user, const struct op_call *c)
{
    const struct keep *k = user;
    return !k->expand && k->device->def->find(c) != NULL;
}

static hone_status upload_constants(hone_program *p, hone_err *err)
{
    for (int i = 0; i < p->g->n_nodes; i++) {
        const struct ir_node *n = &p->g->nodes[i];
        if (n->def != &op_constant || n->bytes == 0)
            continue;
        hone_status s =
            p->device->def->upload(p->device->dev, p->slab + p->plan.place[n->out0].at, n->data, n->bytes, err);
        if (s != HONE_OK)
            return s;
    }
    return HONE_OK;
}

static hone_status prepare_kernels(hone_program *p, hone_err *err)
{
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT];
    for (int32_t i = 0; i < p->plan.n_steps; i++) {
        struct plan_step *s = &p->plan.steps[i];
        if (s->kind != PLAN_RUN || !s->kernel->prepare)
            continue;
        if (s->like < i) {
            s->state = p->plan.steps[s->like].state;
            continue;
        }
        struct op_call c = ir_call(p->g, &p->g->nodes[s->node], tin, tout);
        hone_status st = s->kernel->prepare(p->device->dev, &c, p->plan.threads, &s->state, err);
        if (st != HONE_OK)
            return st;
    }
    return HONE_OK;
}

/* What the user could change to make a plan fit. */
static void advice(const struct plan *p, char *text, size_t n)
{
    const double mib = 1024.0 * 1024.0;
    snprintf(text, n,
             "%.1f MiB of it are values of one run, which a smaller batch makes less (half the batch: about %.1f)",
             (double)p->transient / mib, (double)p->transient / 2 / mib);
}

static hone_status allocate(hone_program *p, hone_err *err)
{
    struct mem *m = &p->g->ctx->mem;
    char hint[200];
    size_t roles = (size_t)p->g->n_roles + 1;
    advice(&p->plan, hint, sizeof hint);
    p->slab_bytes = p->plan.slab + MEM_ALIGN;
    hone_status s = mem_reserve(m, p->slab_bytes, p->name, hint, err);
    if (s != HONE_OK)
        return s;
    p->reserved = p->slab_bytes;
    p->slab = p->device->def->alloc(p->device->dev, p->slab_bytes);
    p->base = mem_array(m, roles, sizeof *p->base);
    p->store = mem_array(m, roles, sizeof *p->store);
    p->seen_id = mem_array(m, roles, sizeof *p->seen_id);
    p->seen_version = mem_array(m, roles, sizeof *p->seen_version);
    if (!p->slab || !p->base || !p->store || !p->seen_id || !p->seen_version)
        return err_set(err, HONE_E_NOMEM, p->name, "no memory for a plan of %zu bytes", p->slab_bytes);
    p->base[0] = p->slab;
    return HONE_OK;
}

hone_program *hone_compile(hone_device *d, hone_graph *g, const hone_compile_options *options, hone_err *err)
{
    static const hone_compile_options zero = {0};
    const hone_compile_options *o = options ? options : &zero;
    if (err_is(err))
        return NULL;
    if (!d || !g || d->ctx != g->ctx) {
        err_set(err, HONE_E_ARG, "compile", "wants a device and a graph of one context");
        return NULL;
    }
    if (ir_verify(g, err) != HONE_OK)
        return NULL;
    struct keep k = {d, o->expand};
    struct mem *m = &d->ctx->mem;
    hone_program *p = mem_alloc(m, sizeof *p);
    if (!p) {
        err_set(err, HONE_E_NOMEM, "compile", "no memory for a program");
        return NULL;
    }
    p->device = d;
    p->debug = o->debug;
    hone_graph *better = o->plain ? NULL : pass_all(g, keep, &k, o->bf16_weights, err);
    p->g = o->plain || better ? ir_lower(better ? better : g, keep, &k, err) : NULL;
    hone_graph_destroy(better);
    p->name = p->g ? arena_text(&p->g->arena, o->name ? o->name : "program") : NULL;
    hone_status s = HONE_E_NOMEM;
    if (p->name)
        s = plan_make(&p->plan, p->g, d, o, err);
    else
        err_set(err, HONE_E_NOMEM, "compile", "no memory for a program");
    if (s == HONE_OK)
        s = allocate(p, err);
    if (s == HONE_OK)
        s = prepare_kernels(p, err);
    if (s == HONE_OK)
        s = upload_constants(p, err);
    if (s == HONE_OK && p->debug)
        s = debug_create(p, err);
    if (s == HONE_OK)
        return p;
    hone_program_destroy(p);
    return NULL;
}

void program_release(hone_program *p)
{
    for (int r = 0; r < p->g->n_roles; r++)
        if (p->store[r]) {
            store_release(p->store[r], p->plan.role_written[r]);
            p->store[r] = NULL;
        }
    p->running = false;
}

void hone_program_destroy(hone_program *p)
{
    if (!p)
        return;
    struct mem *m = &p->device->ctx->mem;
    if (p->running)
        program_release(p);
    debug_destroy(p);
    profile_destroy(p);
    plan_finish(&p->plan);
    if (p->slab)
        p->device->def->release(p->device->dev, p->slab);
    if (p->reserved)
        mem_unreserve(m, p->reserved);
    mem_free(m, p->base);
    mem_free(m, p->store);
    mem_free(m, p->seen_id);
    mem_free(m, p->seen_version);
    hone_graph_destroy(p->g);
    mem_free(m, p);
}

/* --- what a program says of itself --- */

static int find(const struct ir_name *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i].name, name))
            return i;
    return -1;
}

int hone_program_inputs(const hone_program *p)
{
    return p->g->n_inputs;
}

int hone_program_outputs(const hone_program *p)
{
    return p->g->n_outputs;
}

int hone_program_roles(const hone_program *p)
{
    return p->g->n_roles;
}

int hone_program_input(const hone_program *p, const char *name)
{
    return find(p->g->inputs, p->g->n_inputs, name);
}

int hone_program_output(const hone_program *p, const char *name)
{
    return find(p->g->outputs, p->g->n_outputs, name);
}

int hone_program_role(const hone_program *p, const char *name)
{
    for (int i = 0; i < p->g->n_roles; i++)
        if (!strcmp(p->g->roles[i].name, name))
            return i;
    return -1;
}

const char *hone_program_input_name(const hone_program *p, int i)
{
    return i >= 0 && i < p->g->n_inputs ? p->g->inputs[i].name : "";
}

const char *hone_program_output_name(const hone_program *p, int i)
{
    return i >= 0 && i < p->g->n_outputs ? p->g->outputs[i].name : "";
}

const char *hone_program_role_name(const hone_program *p, int i)
{
    return i >= 0 && i < p->g->n_roles ? p->g->roles[i].name : "";
}

hone_type hone_program_input_type(const hone_program *p, int i)
{
    return i >= 0 && i < p->g->n_inputs ? p->g->values[p->g->inputs[i].value].type : (hone_type){HONE_F32, {-1, {0}}};
}

hone_type hone_program_output_type(const hone_program *p, int i)
{
    return i >= 0 && i < p->g->n_outputs ? p->g->values[p->g->outputs[i].value].type : (hone_type){HONE_F32, {-1, {0}}};
}

uint64_t hone_program_prepares(const hone_program *p)
{
    return p->prepares;
}

hone_plan_info hone_program_plan(const hone_program *p)
{
    const struct plan *q = &p->plan;
    hone_plan_info info = {.bytes = p->slab_bytes,
                           .transient = q->transient,
                           .live_peak = q->live_peak,
                           .prepared = q->prepared,
                           .constants = q->constants,
                           .scratch = q->scratch};
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT];
    int times = 1;
    for (int32_t i = 0; i < q->n_steps; i++) {
        const struct plan_step *s = &q->steps[i];
        if (s->kind == PLAN_LOOP)
            times = s->steps;
        if (s->kind == PLAN_END)
            times = 1;
        if (s->kind != PLAN_RUN)
            continue;
        struct op_call c = ir_call(p->g, &p->g->nodes[s->node], tin, tout);
        struct op_cost k = op_cost_of(&c);
        if (i < q->n_prepare) {
            info.prepare_operations++;
            continue;
        }
        info.operations++;
        info.flops += k.flops * times;
        info.moved_bytes += k.bytes * times;
    }
    return info;
}
