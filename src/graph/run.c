/* Running a program: arguments in, steps, results out. Allocates nothing. */
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "graph/program.h"

/* Takes the stores of a run; on refusal those taken are given back. */
static hone_status take_stores(hone_program *p, const hone_run_args *a, hone_err *err)
{
    for (int r = 0; r < p->g->n_roles; r++) {
        const struct ir_role *role = &p->g->roles[r];
        hone_store *s = a->stores ? a->stores[r] : NULL;
        hone_status bad = HONE_OK;
        if (!s)
            bad = err_set(err, HONE_E_ARG, p->name, "role \"%s\" has no store", role->name);
        else if (s->layout != role->layout)
            bad = err_set(err, HONE_E_ARG, p->name, "the store of role \"%s\" has another layout", role->name);
        else if (!store_lease(s, p->plan.role_written[r]))
            bad = err_set(err, HONE_E_BUSY, p->name, "the store of role \"%s\" is in use: this program %s it%s",
                          role->name, p->plan.role_written[r] ? "writes" : "reads",
                          p->plan.role_written[r] ? " and must have it alone" : ", another one writes it");
        if (bad != HONE_OK) {
            program_release(p);
            return bad;
        }
        p->store[r] = s;
        p->base[1 + r] = (char *)s->slab;
    }
    return HONE_OK;
}

static hone_status check_indices(const hone_program *p, int input, const int32_t *x, hone_err *err)
{
    const struct ir_value *v = &p->g->values[p->g->inputs[input].value];
    const struct ir_node *n = &p->g->nodes[v->node];
    int64_t count = op_numel(&v->type);
    if (!n->attr.i[INPUT_INDEX])
        return HONE_OK;
    for (int64_t i = 0; i < count; i++)
        if (x[i] < 0 || x[i] >= n->attr.i[INPUT_BELOW])
            return err_set(err, HONE_E_ARG, p->name, "input \"%s\" holds index %d at %lld; wants 0 to %lld",
                           p->g->inputs[input].name, (int)x[i], (long long)i, (long long)n->attr.i[INPUT_BELOW] - 1);
    return HONE_OK;
}

static hone_status copy_inputs(hone_program *p, const hone_run_args *a, hone_err *err)
{
    for (int i = 0; i < p->g->n_inputs; i++) {
        int32_t v = p->g->inputs[i].value;
        const hone_type *t = &p->g->values[v].type;
        size_t bytes = (size_t)op_numel(t) * hone_dtype_size(t->dtype);
        if (!a->inputs || (!a->inputs[i] && bytes))
            return err_set(err, HONE_E_ARG, p->name, "input \"%s\" is not given", p->g->inputs[i].name);
        hone_status s = check_indices(p, i, a->inputs[i], err);
        if (s == HONE_OK && bytes)
            s = p->device->def->upload(p->device->dev, p->slab + p->plan.place[v].at, a->inputs[i], bytes, err);
        if (s != HONE_OK)
            return s;
    }
    return HONE_OK;
}

/* Random buffers are made on the host, so every device sees the same numbers. */
static void fill_random(hone_program *p, const hone_run_args *a)
{
    for (int i = 0; i < p->g->n_nodes; i++) {
        const struct ir_node *n = &p->g->nodes[i];
        if (n->def != &op_random)
            continue;
        uint64_t stream;
        memcpy(&stream, n->data, sizeof stream);
        void *dst = p->slab + p->plan.place[n->out0].at;
        size_t count = (size_t)op_numel(&p->g->values[n->out0].type);
        switch (n->attr.i[RANDOM_KIND]) {
        case RANDOM_NORMAL:
            hone_fill_normal(dst, count, a->seed, stream, a->run, 0);
            break;
        case RANDOM_UNIFORM:
            hone_fill_uniform(dst, count, a->seed, stream, a->run, 0);
            break;
        default:
            hone_fill_below(dst, count, (int32_t)n->attr.i[RANDOM_BELOW], a->seed, stream, a->run, 0);
        }
    }
}

static hone_status run_kernel(hone_program *p, const struct plan_step *s, int32_t it, hone_err *err)
{
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT];
    const void *in[OP_MAX_IN];
    void *out[OP_MAX_OUT];
    const struct ir_node *n = &p->g->nodes[s->node];
    struct op_call c = ir_call(p->g, n, tin, tout);
    for (int k = 0; k < s->n_in; k++)
        in[k] = program_at(p, &s->in[k], it);
    for (int k = 0; k < s->n_out; k++)
        out[k] = program_at(p, &s->out[k], it);
    struct bk_io io = {.dev = p->device->dev,
                       .call = &c,
                       .layer = p->g->scopes[n->scope].path,
                       .in = in,
                       .out = out,
                       .scratch = p->slab + s->scratch,
                       .state = s->state,
                       .threads = p->plan.threads};
    return s->kernel->run(&io, err);
}

static hone_status do_step(hone_program *p, const struct plan_step *s, int32_t it, hone_err *err)
{
    if (s->kind == PLAN_RUN)
        return run_kernel(p, s, it, err);
    if (s->bytes == 0)
        return HONE_OK;
    return p->device->def->copy(p->device->dev, program_at(p, &s->out[0], it), program_at(p, &s->in[0], it), s->bytes,
                                err);
}

static hone_status run_step(hone_program *p, const struct plan_step *s, int32_t it, hone_err *err)
{
    if (!p->profile)
        return do_step(p, s, it, err);
    const uint64_t begin = clock_ns();
    hone_status st = do_step(p, s, it, err);
    if (st == HONE_OK)
        st = p->device->def->sync(p->device->dev, err);
    if (st == HONE_OK)
        profile_note(p, s, begin);
    return st;
}

hone_status program_steps(hone_program *p, int32_t from, int32_t to, hone_err *err)
{
    int32_t it = 0;
    for (int32_t i = from; i < to; i++) {
        const struct plan_step *s = &p->plan.steps[i];
        if (s->kind == PLAN_LOOP) {
            it = 0;
            continue;
        }
        if (s->kind == PLAN_END) {
            if (++it < p->plan.steps[s->steps].steps)
                i = s->steps; /* the step after PLAN_LOOP is next */
            else
                it = 0;
            continue;
        }
        hone_status st = p->debug ? debug_before(p, s, it, err) : HONE_OK;
        if (st == HONE_OK)
            st = run_step(p, s, it, err);
        if (st == HONE_OK && p->debug)
            st = debug_after(p, s, it, err);
        if (st != HONE_OK)
            return st;
    }
    return HONE_OK;
}

/* Whether what was prepared belongs to the stores of this run. */
static bool stale(const hone_program *p)
{
    for (int r = 0; r < p->g->n_roles; r++)
        if (p->plan.role_prepared[r] &&
            (p->seen_id[r] != p->store[r]->id || p->seen_version[r] != atomic_load(&p->store[r]->version)))
            return true;
    return !p->prepared;
}

/* A group is written with its padding, which is zero by promise. */
static void clear_padding(hone_program *p)
{
    for (int i = 0; i < p->g->n_nodes; i++) {
        const struct ir_node *n = &p->g->nodes[i];
        if (n->def == &op_store && n->attr.i[STORE_TENSOR] < 0)
            store_clear_padding(p->store[n->attr.i[STORE_ROLE]], (int)(-1 - n->attr.i[STORE_TENSOR]));
    }
}

static hone_status execute(hone_program *p, hone_err *err)
{
    hone_status s = HONE_OK;
    if (p->profile)
        profile_begin(p);
    if (p->plan.n_prepare && stale(p)) {
        p->prepared = false;
        s = program_steps(p, 0, p->plan.n_prepare, err);
        for (int r = 0; r < p->g->n_roles && s == HONE_OK; r++) {
            p->seen_id[r] = p->store[r]->id;
            p->seen_version[r] = atomic_load(&p->store[r]->version);
        }
        p->prepared = s == HONE_OK;
        p->prepares++;
    }
    if (s == HONE_OK)
        s = program_steps(p, p->plan.n_prepare, p->plan.n_steps, err);
    if (s == HONE_OK)
        s = p->device->def->sync(p->device->dev, err);
    if (p->plan.writes_groups)
        clear_padding(p);
    program_release(p);
    p->finished = s == HONE_OK;
    return s;
}

hone_status hone_run(hone_program *p, const hone_run_args *args, hone_err *err)
{
    static const hone_run_args none = {0};
    const hone_run_args *a = args ? args : &none;
    if (err_is(err))
        return err->code;
    if (p->running || p->finished)
        return err_set(err, HONE_E_STATE, p->name, "a run is under way; hone_wait comes first");
    p->done = false;
    hone_status s = take_stores(p, a, err);
    if (s != HONE_OK)
        return s;
    if (p->debug)
        debug_begin(p);
    s = copy_inputs(p, a, err);
    if (s != HONE_OK) {
        program_release(p);
        return s;
    }
    fill_random(p, a);
    p->running = true;
    return p->debug ? HONE_OK : execute(p, err); /* debug executes as late as a device might */
}

hone_status hone_wait(hone_program *p, hone_err *err)
{
    hone_err unread = {0};
    const bool before = err_is(err); /* even then the run must come to its end: it holds stores */
    hone_status s = p->running ? execute(p, before ? &unread : err) : HONE_OK;
    if (before) {
        p->done = p->done || (s == HONE_OK && p->finished);
        p->finished = false;
        return err->code;
    }
    if (s != HONE_OK)
        return s;
    if (!p->finished)
        return err_set(err, HONE_E_STATE, p->name, "there is no run to wait for");
    p->finished = false;
    p->done = true;
    return HONE_OK;
}

const void *hone_result(const hone_program *p, int index)
{
    if (!p->done || index < 0 || index >= p->g->n_outputs)
        return NULL;
    return program_at(p, &p->plan.output[index], 0);
}
