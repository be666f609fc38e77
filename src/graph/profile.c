/* Where the time of a program goes: its launches as rows, and the calls of the last run as events. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "graph/program.h"

struct profile {
    struct arena arena; /* rows and their text */
    hone_profile_row *rows;
    int32_t *row_of; /* of each step; -1: it is no launch */
    int n_rows;
    hone_profile_event *events;
    int64_t n_events, cap_events;
    uint64_t begin; /* of the run: of its first call */
};

/* --- what a step is --- */

/* A launch: something that takes time. A copy that planning made needless is none. */
static bool is_launch(const struct plan_step *s)
{
    return s->kind == PLAN_RUN || (s->kind == PLAN_COPY && s->bytes > 0);
}

static size_t type_bytes(const hone_type *t)
{
    return (size_t)op_numel(t) * hone_dtype_size(t->dtype);
}

/* Bytes of operands that are there before a run begins, and that no run changes. */
static double fixed_bytes(const hone_program *p, int32_t step)
{
    const struct plan *q = &p->plan;
    const struct ir_node *n = &p->g->nodes[q->steps[step].node];
    double sum = 0;
    for (int k = 0; k < n->n_in; k++) {
        const int32_t r = q->root[n->in[k]];
        const struct op_def *maker = p->g->nodes[p->g->values[r].node].def;
        const bool prepared = q->made[r] >= 0 && q->made[r] < q->n_prepare && step >= q->n_prepare;
        if (prepared || maker == &op_slot || maker == &op_constant)
            sum += (double)type_bytes(&p->g->values[n->in[k]].type);
    }
    return sum;
}

/* " name=value" for attributes that are not 0; `names` are separated by spaces. */
static void add_attributes(char *text, size_t size, const char *names, const struct op_attr *a, bool whole)
{
    for (int i = 0; names && *names; i++) {
        const size_t len = strcspn(names, " "), at = strlen(text);
        if (whole && a->i[i])
            snprintf(text + at, size - at, " %.*s=%lld", (int)len, names, (long long)a->i[i]);
        if (!whole && (a->f[i] > 0 || a->f[i] < 0))
            snprintf(text + at, size - at, " %.*s=%.4g", (int)len, names, a->f[i]);
        names += len + (names[len] == ' ');
    }
}

static const char *describe(struct arena *a, const struct op_call *c)
{
    char text[512] = "", shape[96];
    for (int k = 0; k < c->n_in; k++) {
        const size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s%s%s", k ? " " : "", hone_dtype_name(c->in[k].dtype),
                 hone_shape_text(&c->in[k].shape, shape, sizeof shape));
    }
    add_attributes(text, sizeof text, c->def->attr_i, &c->attr, true);
    add_attributes(text, sizeof text, c->def->attr_f, &c->attr, false);
    return arena_text(a, text);
}

static bool fill_row(hone_program *p, int32_t step, hone_profile_row *r)
{
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT];
    const struct plan_step *s = &p->plan.steps[step];
    *r = (hone_profile_row){.op = "copy", .layer = "", .prepare = step < p->plan.n_prepare};
    if (s->kind == PLAN_COPY) {
        char text[48];
        snprintf(text, sizeof text, "%zu bytes", s->bytes);
        r->bytes = 2 * (double)s->bytes;
        r->call = arena_text(&p->profile->arena, text);
        return r->call;
    }
    const struct ir_node *n = &p->g->nodes[s->node];
    const struct op_call c = ir_call(p->g, n, tin, tout);
    const struct op_cost cost = op_cost_of(&c);
    r->op = n->def->name;
    r->layer = p->g->scopes[n->scope].path;
    r->call = describe(&p->profile->arena, &c);
    r->flops = cost.flops;
    r->bytes = cost.bytes;
    r->fixed_bytes = fixed_bytes(p, step);
    return r->call;
}

/* --- on and off --- */

void profile_destroy(hone_program *p)
{
    if (!p->profile)
        return;
    struct mem *m = &p->device->ctx->mem;
    mem_free(m, p->profile->rows);
    mem_free(m, p->profile->row_of);
    mem_free(m, p->profile->events);
    arena_finish(&p->profile->arena);
    mem_free(m, p->profile);
    p->profile = NULL;
}

static bool make(hone_program *p)
{
    struct mem *m = &p->device->ctx->mem;
    const struct plan *q = &p->plan;
    struct profile *f = p->profile = mem_alloc(m, sizeof *f);
    if (!f)
        return false;
    arena_init(&f->arena, m);
    for (int32_t i = 0; i < q->n_steps; i++)
        f->n_rows += is_launch(&q->steps[i]);
    f->rows = mem_array(m, (size_t)f->n_rows, sizeof *f->rows);
    f->row_of = mem_array(m, (size_t)q->n_steps, sizeof *f->row_of);
    if (!f->rows || !f->row_of)
        return false;
    int64_t times = 1;
    int row = 0;
    for (int32_t i = 0; i < q->n_steps; i++) {
        const struct plan_step *s = &q->steps[i];
        f->row_of[i] = -1;
        times = s->kind == PLAN_LOOP ? s->steps : s->kind == PLAN_END ? 1 : times;
        if (!is_launch(s))
            continue;
        if (!fill_row(p, i, &f->rows[row]))
            return false;
        f->rows[row].per_run = times;
        f->cap_events += times;
        f->row_of[i] = row++;
    }
    f->events = mem_array(m, (size_t)f->cap_events, sizeof *f->events);
    return f->events;
}

hone_status hone_program_profile(hone_program *p, bool on, hone_err *err)
{
    if (err_is(err))
        return err->code;
    if (p->running || p->finished)
        return err_set(err, HONE_E_STATE, p->name, "a run is under way; hone_wait comes first");
    profile_destroy(p);
    if (!on || make(p))
        return HONE_OK;
    profile_destroy(p);
    return err_set(err, HONE_E_NOMEM, p->name, "no memory for a profile");
}

/* --- during a run --- */

void profile_begin(hone_program *p)
{
    p->profile->n_events = 0;
}

void profile_note(hone_program *p, const struct plan_step *s, uint64_t begin)
{
    struct profile *f = p->profile;
    const uint64_t ns = clock_ns() - begin;
    const int32_t row = f->row_of[s - p->plan.steps];
    if (row < 0)
        return;
    hone_profile_row *r = &f->rows[row];
    r->min_ns = r->calls && r->min_ns < ns ? r->min_ns : ns;
    r->calls++;
    r->ns += ns;
    if (!f->n_events)
        f->begin = begin;
    if (f->n_events < f->cap_events)
        f->events[f->n_events++] = (hone_profile_event){row, begin - f->begin, ns};
}

/* --- what was measured --- */

int hone_program_profile_rows(const hone_program *p)
{
    return p->profile ? p->profile->n_rows : 0;
}

hone_profile_row hone_program_profile_row(const hone_program *p, int index)
{
    if (index < 0 || index >= hone_program_profile_rows(p))
        return (hone_profile_row){.op = "", .layer = "", .call = ""};
    return p->profile->rows[index];
}

int64_t hone_program_profile_events(const hone_program *p)
{
    return p->profile ? p->profile->n_events : 0;
}

hone_profile_event hone_program_profile_event(const hone_program *p, int64_t index)
{
    if (index < 0 || index >= hone_program_profile_events(p))
        return (hone_profile_event){.row = -1};
    return p->profile->events[index];
}

/* --- memory --- */

static void reach(size_t *end, const struct plan_place *x, size_t bytes, int32_t times)
{
    const size_t e = x->at + x->row * (size_t)(times - 1) + bytes;
    if (x->base == 0 && e > *end)
        *end = e;
}

size_t profile_extent(const hone_program *p)
{
    const hone_graph *g = p->g;
    size_t end = 0;
    int32_t times = 1;
    for (int i = 0; i < g->n_nodes; i++) {
        const struct ir_node *n = &g->nodes[i];
        if (n->def == &op_constant || n->def == &op_input || n->def == &op_random)
            reach(&end, &p->plan.place[n->out0], type_bytes(&g->values[n->out0].type), 1);
    }
    for (int32_t i = 0; i < p->plan.n_steps; i++) {
        const struct plan_step *s = &p->plan.steps[i];
        times = s->kind == PLAN_LOOP ? s->steps : s->kind == PLAN_END ? 1 : times;
        const struct ir_node *n = &g->nodes[s->node];
        for (int k = 0; s->kind == PLAN_COPY && s->bytes && k < 2; k++)
            reach(&end, k ? &s->out[0] : &s->in[0], s->bytes, times);
        for (int k = 0; s->kind == PLAN_RUN && k < s->n_in; k++)
            reach(&end, &s->in[k], type_bytes(&g->values[n->in[k]].type), times);
        for (int k = 0; s->kind == PLAN_RUN && k < s->n_out; k++)
            reach(&end, &s->out[k], type_bytes(&g->values[n->out0 + k].type), times);
        if (s->kind == PLAN_RUN && s->scratch_bytes && s->scratch + s->scratch_bytes > end)
            end = s->scratch + s->scratch_bytes;
    }
    return end;
}
