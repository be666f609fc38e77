/* The stores of an optimiser, and the program that updates them. */
#include <math.h>
#include <string.h>

#include "base/ctx.h"
#include "base/err.h"
#include "graph/store.h"
#include "nn/nn.h"

enum { PARAM, GRAD, M, V, AVERAGE, ROLES };
enum { LR, STEP, SCALE, DECAY, INPUTS };
static const char *const role_names[ROLES] = {"param", "grad", "m", "v", "average"};
static const char *const input_names[INPUTS] = {"lr", "step", "scale", "decay"};

struct hone_optim {
    hone_ctx *ctx;
    hone_store *store[ROLES]; /* param is the caller's; average may be NULL */
    hone_program *update;
    uint64_t count; /* steps that were taken */
};

static hone_status make_update(hone_optim *o, hone_device *d, const hone_adamw_config *config, hone_err *err)
{
    hone_graph *g = hone_graph_create(o->ctx, err);
    if (!g)
        return HONE_E_NOMEM;
    hone_adamw_update(g, o->store[PARAM]->layout, config);
    o->update = hone_compile(d, g, &(hone_compile_options){.name = "update"}, err);
    hone_graph_destroy(g);
    return o->update ? HONE_OK : HONE_E_NOMEM;
}

hone_optim *hone_optim_create(hone_device *d, hone_store *param, const hone_adamw_config *config, hone_err *err)
{
    if (err_is(err))
        return NULL;
    hone_optim *o = mem_alloc(&param->ctx->mem, sizeof *o);
    if (!o) {
        err_set(err, HONE_E_NOMEM, "optimiser", "no memory for an optimiser");
        return NULL;
    }
    o->ctx = param->ctx;
    o->store[PARAM] = param;
    bool ok = make_update(o, d, config, err) == HONE_OK;
    for (int i = GRAD; i < ROLES && ok; i++) {
        if (i == AVERAGE && !config->average)
            continue;
        o->store[i] = hone_store_create(o->ctx, param->layout, err);
        ok = o->store[i] != NULL;
    }
    if (ok && config->average)
        ok = hone_store_copy(o->store[AVERAGE], param, err) == HONE_OK;
    if (ok)
        return o;
    hone_optim_destroy(o);
    return NULL;
}

void hone_optim_destroy(hone_optim *o)
{
    if (!o)
        return;
    hone_program_destroy(o->update);
    for (int i = GRAD; i < ROLES; i++)
        hone_store_destroy(o->store[i]);
    mem_free(&o->ctx->mem, o);
}

hone_store *hone_optim_store(const hone_optim *o, const char *role)
{
    for (int i = 0; i < ROLES; i++)
        if (!strcmp(role_names[i], role))
            return o->store[i];
    return NULL;
}

void hone_optim_bind(const hone_optim *o, const hone_program *p, hone_store **stores)
{
    for (int i = 0; i < hone_program_roles(p); i++) {
        hone_store *s = hone_optim_store(o, hone_program_role_name(p, i));
        if (s)
            stores[i] = s;
    }
}

hone_program *hone_optim_program(const hone_optim *o)
{
    return o->update;
}

uint64_t hone_optim_count(const hone_optim *o)
{
    return o->count;
}

void hone_optim_set_count(hone_optim *o, uint64_t count)
{
    o->count = count;
}

static hone_status check_args(const hone_optim_args *a, hone_err *err)
{
    if (!(a->lr >= 0 && isfinite(a->lr)))
        return err_set(err, HONE_E_ARG, "optimiser", "lr must be 0 or more; got %g", a->lr);
    if (!(a->scale >= 0 && isfinite(a->scale)))
        return err_set(err, HONE_E_ARG, "optimiser", "scale must be more than 0 (0: 1); got %g", a->scale);
    if (!(a->decay >= 0 && a->decay <= 1))
        return err_set(err, HONE_E_ARG, "optimiser", "decay of the average must be 0 to 1; got %g", a->decay);
    return HONE_OK;
}

static float result(const hone_program *p, const char *name)
{
    return *(const float *)hone_result(p, hone_program_output(p, name));
}

hone_status hone_optim_step(hone_optim *o, const hone_optim_args *a, hone_optim_report *report, hone_err *err)
{
    if (err_is(err))
        return err->code;
    hone_status s = check_args(a, err);
    if (s != HONE_OK)
        return s;
    const float value[INPUTS] = {(float)a->lr, (float)(o->count + 1), a->scale > 0 ? (float)a->scale : 1,
                                 (float)a->decay};
    const void *in[INPUTS] = {NULL};
    hone_store *stores[ROLES] = {NULL};
    for (int i = 0; i < INPUTS; i++) {
        int at = hone_program_input(o->update, input_names[i]);
        if (at >= 0)
            in[at] = &value[i];
    }
    hone_optim_bind(o, o->update, stores);
    s = hone_run(o->update, &(hone_run_args){.inputs = in, .stores = stores}, err);
    if (s == HONE_OK)
        s = hone_wait(o->update, err);
    if (s != HONE_OK)
        return s;
    hone_optim_report r = {.skipped = result(o->update, "skipped") != 0};
    r.grad_norm = r.skipped ? NAN : result(o->update, "grad_norm");
    o->count += !r.skipped;
    if (report)
        *report = r;
    return HONE_OK;
}
