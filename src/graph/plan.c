/* The second half of planning: lifetimes, what may be done in place, and where everything lies. */
#include "graph/plan.h"

#include <string.h>

#include "graph/order.h"
#include "graph/store.h"

#define ALIGN_UP(n) (((n) + MEM_ALIGN - 1) & ~(size_t)(MEM_ALIGN - 1))

static size_t value_bytes(const struct plan *p, int32_t v)
{
    const hone_graph *g = p->g;
    if (v >= g->n_values + g->n_outputs)
        v = g->nodes[v - g->n_values - g->n_outputs].in[0];
    else if (v >= g->n_values)
        v = g->outputs[v - g->n_values].value;
    return (size_t)op_numel(&g->values[v].type) * hone_dtype_size(g->values[v].type.dtype);
}

static int n_ids(const struct plan *p)
{
    return p->g->n_values + p->g->n_outputs + p->g->n_nodes;
}

/* The copy, made at entry, of what store node `node` writes. */
static int32_t entry_copy(const struct plan *p, int32_t node)
{
    return p->g->n_values + p->g->n_outputs + node;
}

/* --- lifetimes, in steps --- */

static void touch(struct plan *p, int32_t value, int32_t step)
{
    int32_t r = p->root[value];
    if (step > p->used[r])
        p->used[r] = step;
}

/* A source, or made by an earlier step. */
static bool is_made(const struct plan *p, int32_t v)
{
    int32_t r = p->root[v];
    return p->made[r] >= 0 || (p->g->nodes[p->g->values[r].node].def->flags & OP_SOURCE);
}

static hone_status find_lifetimes(struct plan *p, hone_err *err)
{
    hone_graph *g = p->g;
    const int32_t end = p->n_steps;
    for (int32_t i = 0; i < end; i++) {
        const struct plan_step *s = &p->steps[i];
        if (s->kind == PLAN_RUN) {
            const struct ir_node *n = &g->nodes[s->node];
            for (int k = 0; k < n->n_in; k++) {
                if (!is_made(p, n->in[k]))
                    return err_set(err, HONE_E_STATE, g->scopes[n->scope].path,
                                   "%s: operand %d is read before it is made", n->def->name, k);
                touch(p, n->in[k], i);
            }
            for (int k = 0; k < n->n_out; k++) {
                p->made[n->out0 + k] = i;
                touch(p, n->out0 + k, i);
            }
        } else if (s->kind == PLAN_COPY) {
            bool kept = s->to < 0 && order_kind(p, s->from) == ORDER_STORE;
            if (!is_made(p, s->from))
                return err_set(err, HONE_E_STATE, "plan", "a value is copied before it is made");
            touch(p, kept ? entry_copy(p, s->node) : s->from, i);
            if (s->to >= 0) {
                if (p->made[s->to] < 0)
                    p->made[s->to] = i;
                touch(p, s->to, i);
            }
        }
    }
    for (int i = 0; i < g->n_outputs; i++) {
        bool copied = order_kind(p, g->outputs[i].value) != ORDER_BUFFER;
        touch(p, copied ? g->n_values + i : g->outputs[i].value, end);
    }
    /* what the main part uses of the prepare segment stays for the next run */
    for (int v = 0; v < g->n_values; v++)
        if (p->made[v] >= 0 && p->made[v] < p->n_prepare && p->used[v] >= p->n_prepare)
            p->used[v] = end;
    return HONE_OK;
}

/* What is made before a chain and read in its body is read again in the next step. */
static void stretch_over_loops(struct plan *p)
{
    for (int32_t e = 0; e < p->n_steps; e++) {
        if (p->steps[e].kind != PLAN_END)
            continue;
        int32_t b = p->steps[e].steps;
        for (int v = 0; v < n_ids(p); v++)
            if (p->root[v] == v && p->made[v] < b && p->used[v] > b && p->used[v] < e)
                p->used[v] = e;
    }
}

/* --- in place --- */

static bool in_loop(const struct plan *p, int32_t step)
{
    for (int32_t i = step; i >= 0; i--) {
        if (p->steps[i].kind == PLAN_END)
            return false;
        if (p->steps[i].kind == PLAN_LOOP)
            return true;
    }
    return false;
}

/* Value `in` shows the whole of its root, and as many bytes as `out` needs: element i of one lies on element i of the
 * other. A part of a root that is stretched by broadcasting does not. */
static bool covers(const struct plan *p, int32_t in, int32_t out)
{
    const size_t n = value_bytes(p, out);
    return !p->place[in].at && !p->place[in].row && value_bytes(p, in) == n && value_bytes(p, p->root[in]) == n;
}

/* Result k of step i takes the buffer of an operand that is used here for the last time. */
static void share_buffers(struct plan *p, int32_t i)
{
    const struct plan_step *s = &p->steps[i];
    const struct ir_node *n = &p->g->nodes[s->node];
    for (int k = 0; k < n->n_out; k++) {
        int32_t out = n->out0 + k;
        for (int j = 0; j < n->n_in && p->buffer[out] < 0 && p->place[out].base == 0; j++) {
            int32_t in = n->in[j], r = p->root[in], b = p->buffer[r];
            if (!(s->kernel->inplace[k] >> j & 1) || b < 0 || p->place[r].base != 0)
                continue;
            if (p->used[r] != i || !covers(p, in, out))
                continue;
            bool other = false; /* another operand that shows the same bytes may be read later by the kernel */
            for (int q = 0; q < n->n_in; q++)
                other = other || (q != j && p->root[n->in[q]] == r);
            if (other || p->buffers[b].last != i)
                continue;
            p->buffer[out] = b;
            p->buffers[b].last = p->used[out];
        }
    }
}

static struct layout_range slot_range(const struct plan *p, const int64_t *role_and_tensor)
{
    hone_layout *l = p->g->roles[role_and_tensor[0]].layout;
    int t = (int)role_and_tensor[1];
    return t >= 0 ? layout_tensor(l, t) : layout_group(l, -1 - t);
}

/* May the step that makes `v` write straight to the store? Everything that reads the place must be done by then,
 * except the making step itself where its kernel allows that. */
static bool store_direct(const struct plan *p, const struct ir_node *store, int32_t v)
{
    const hone_graph *g = p->g;
    int32_t made = p->made[v];
    if (made < p->n_prepare || p->steps[made].kind != PLAN_RUN || in_loop(p, made) || p->place[v].base != 0)
        return false;
    struct layout_range to = slot_range(p, store->attr.i);
    const struct ir_node *maker = &g->nodes[p->steps[made].node];
    const unsigned allowed = p->steps[made].kernel->inplace[v - maker->out0];
    for (int i = 0; i < g->n_nodes; i++) {
        const struct ir_node *n = &g->nodes[i];
        if (n->def != &op_slot || n->attr.i[SLOT_ROLE] != store->attr.i[STORE_ROLE])
            continue;
        struct layout_range r = slot_range(p, n->attr.i + SLOT_ROLE);
        if (r.at >= to.at + to.length || to.at >= r.at + r.length || p->used[n->out0] < made)
            continue;
        if (p->used[n->out0] > made || r.at != to.at || r.length != to.length)
            return false;
        int shown = 0; /* by how many operands of the making step */
        for (int k = 0; k < maker->n_in; k++)
            if (p->root[maker->in[k]] == n->out0 && (shown++ || !(allowed >> k & 1) || !covers(p, maker->in[k], v)))
                return false;
    }
    return true;
}

static void write_in_place(struct plan *p)
{
    hone_graph *g = p->g;
    for (int32_t i = 0; i < p->n_steps; i++) {
        struct plan_step *s = &p->steps[i];
        if (s->kind != PLAN_COPY || s->to >= 0)
            continue;
        const struct ir_node *store = &g->nodes[s->node];
        int32_t v = p->root[s->from];
        struct layout_range to = slot_range(p, store->attr.i);
        bool whole = p->place[s->from].at == 0 && value_bytes(p, v) == s->bytes;
        for (int k = 0; k < g->n_outputs; k++) /* a result is valid until the next run, whatever becomes of the store */
            whole = whole && p->root[g->outputs[k].value] != v;
        if (p->no_inplace || !whole || order_kind(p, s->from) != ORDER_BUFFER || !store_direct(p, store, v))
            continue;
        p->place[v] = (struct plan_place){1 + (int32_t)store->attr.i[STORE_ROLE], (size_t)to.at * sizeof(float), 0};
        s->bytes = 0; /* nothing left to copy */
    }
}

/* --- buffers --- */

static hone_status add_buffer(struct plan *p, int32_t root, size_t size, int32_t first, int32_t last, hone_err *err)
{
    const size_t most = SIZE_MAX / 8; /* so that no sum of sizes overflows */
    if (size > most || p->asked > most - size)
        return err_set(err, HONE_E_NOMEM, "plan", "the values of one run need more bytes than an address can tell");
    p->asked += size + 2 * MEM_ALIGN;
    if (p->n_buffers == p->cap_buffers) {
        int32_t cap = p->cap_buffers ? 2 * p->cap_buffers : 64;
        void *q = mem_grow(&p->g->ctx->mem, p->buffers, (size_t)p->cap_buffers * sizeof *p->buffers,
                           (size_t)cap * sizeof *p->buffers);
        if (!q)
            return err_set(err, HONE_E_NOMEM, "plan", "no memory for a buffer of the plan");
        p->buffers = q;
        p->cap_buffers = cap;
    }
    if (root >= 0)
        p->buffer[root] = p->n_buffers;
    p->buffers[p->n_buffers++] = (struct plan_buffer){ALIGN_UP(size) + p->guard, 0, first, last};
    return HONE_OK;
}

static hone_status buffer_for(struct plan *p, int32_t root, int32_t first, hone_err *err)
{
    if (p->buffer[root] >= 0 || p->place[root].base != 0)
        return HONE_OK;
    return add_buffer(p, root, value_bytes(p, root), first, p->used[root], err);
}

static hone_status make_buffers(struct plan *p, hone_err *err)
{
    hone_graph *g = p->g;
    hone_status s = HONE_OK;
    for (int i = 0; i < g->n_nodes && s == HONE_OK; i++) /* filled before the first step */
        if (g->nodes[i].def == &op_input || g->nodes[i].def == &op_random) {
            touch(p, g->nodes[i].out0, p->n_prepare); /* even if unused: it must not lie on what was prepared */
            s = buffer_for(p, g->nodes[i].out0, -1, err);
        }
    for (int32_t i = 0; i < p->n_steps && s == HONE_OK; i++) {
        struct plan_step *t = &p->steps[i];
        if (t->kind == PLAN_COPY && t->to >= 0)
            s = buffer_for(p, t->to, i, err);
        if (t->kind != PLAN_RUN)
            continue;
        const struct ir_node *n = &g->nodes[t->node];
        if (!p->no_inplace)
            share_buffers(p, i);
        for (int k = 0; k < n->n_out && s == HONE_OK; k++)
            s = buffer_for(p, n->out0 + k, i, err);
        if (t->scratch_bytes && s == HONE_OK) {
            t->scratch = (size_t)p->n_buffers; /* its buffer, until places are known */
            s = add_buffer(p, -1, t->scratch_bytes, i, i, err);
        }
    }
    return s;
}

/* --- kernels --- */

/* Whether two uses have one descriptor: operation, attributes and types. */
static bool same_call(const struct op_call *a, const struct op_call *b)
{
    if (a->def != b->def || a->n_in != b->n_in || memcmp(&a->attr, &b->attr, sizeof a->attr) != 0)
        return false;
    for (int i = 0; i < a->n_in + a->n_out; i++) {
        const hone_type *x = i < a->n_in ? &a->in[i] : &a->out[i - a->n_in];
        const hone_type *y = i < b->n_in ? &b->in[i] : &b->out[i - b->n_in];
        if (x->dtype != y->dtype || !hone_shape_equal(&x->shape, &y->shape))
            return false;
    }
    return true;
}

/* The first step before step i with its descriptor; i if there is none. */
static int32_t find_like(const struct plan *p, int32_t i, const struct op_call *c)
{
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT];
    for (int32_t k = 0; k < i; k++) {
        const struct plan_step *s = &p->steps[k];
        if (s->kind != PLAN_RUN || s->like != k || p->g->nodes[s->node].def != c->def)
            continue;
        const struct op_call other = ir_call(p->g, &p->g->nodes[s->node], tin, tout);
        if (same_call(c, &other))
            return k;
    }
    return i;
}

/* Kernels are interned: equal uses share a kernel's scratch size here, and what it prepares. */
static hone_status choose_kernels(struct plan *p, hone_err *err)
{
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT];
    for (int32_t i = 0; i < p->n_steps; i++) {
        struct plan_step *s = &p->steps[i];
        if (s->kind != PLAN_RUN)
            continue;
        const struct ir_node *n = &p->g->nodes[s->node];
        struct op_call c = ir_call(p->g, n, tin, tout);
        s->like = find_like(p, i, &c);
        s->kernel = s->like < i ? p->steps[s->like].kernel : p->device->def->find(&c);
        if (!s->kernel)
            return err_set(err, HONE_E_UNSUPPORTED, p->g->scopes[n->scope].path,
                           "%s: device \"%s\" has no kernel for it and it has no expansion", n->def->name,
                           p->device->def->name);
        if (s->like < i)
            s->scratch_bytes = p->steps[s->like].scratch_bytes;
        else
            s->scratch_bytes = s->kernel->scratch ? s->kernel->scratch(&c, p->threads) : 0;
        if (s->scratch_bytes > p->scratch)
            p->scratch = s->scratch_bytes;
    }
    return HONE_OK;
}

/* --- places --- */

static struct plan_place place_of(const struct plan *p, int32_t v)
{
    struct plan_place x = p->place[v];
    int32_t r = p->root[v];
    if (r == v)
        return x;
    const struct plan_place *base = &p->place[r];
    return (struct plan_place){base->base, base->at + x.at, x.row};
}

static hone_status resolve_step(struct plan *p, struct plan_step *s, hone_err *err)
{
    const struct ir_node *n = &p->g->nodes[s->node];
    s->in = arena_alloc(&p->arena, (size_t)(s->n_in + s->n_out) * sizeof *s->in);
    if (!s->in)
        return err_set(err, HONE_E_NOMEM, "plan", "no memory for the places of a step");
    s->out = s->in + s->n_in;
    if (s->kind == PLAN_COPY) {
        s->in[0] = place_of(p, s->from);
        if (s->to >= 0)
            s->out[0] = place_of(p, s->to);
        else
            s->out[0] = (struct plan_place){1 + (int32_t)n->attr.i[STORE_ROLE],
                                            (size_t)slot_range(p, n->attr.i).at * sizeof(float), 0};
        /* a tensor written as it was read, after others were written: its copy of the start is meant */
        if (s->to < 0 && order_kind(p, s->from) == ORDER_STORE)
            s->in[0] = p->place[entry_copy(p, s->node)];
        return HONE_OK;
    }
    for (int k = 0; k < s->n_in; k++)
        s->in[k] = place_of(p, n->in[k]);
    for (int k = 0; k < s->n_out; k++)
        s->out[k] = place_of(p, n->out0 + k);
    if (s->scratch_bytes)
        s->scratch = p->buffers[s->scratch].at;
    return HONE_OK;
}

static hone_status set_places(struct plan *p, hone_err *err)
{
    hone_graph *g = p->g;
    for (int v = 0; v < n_ids(p); v++)
        if (p->buffer[v] >= 0)
            p->place[v].at = p->buffers[p->buffer[v]].at;
    p->slab = p->transient;
    for (int i = 0; i < g->n_nodes; i++) {
        const struct ir_node *n = &g->nodes[i];
        if (n->def == &op_slot)
            p->place[n->out0] = (struct plan_place){1 + (int32_t)n->attr.i[SLOT_ROLE],
                                                    (size_t)slot_range(p, n->attr.i + SLOT_ROLE).at * sizeof(float), 0};
        if (n->def == &op_constant) {
            p->place[n->out0] = (struct plan_place){0, p->slab, 0};
            p->slab += ALIGN_UP(n->bytes) + p->guard;
        }
    }
    p->constants = p->slab - p->transient;
    for (int32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].kind == PLAN_RUN || p->steps[i].kind == PLAN_COPY) {
            hone_status s = resolve_step(p, &p->steps[i], err);
            if (s != HONE_OK)
                return s;
        }
    for (int i = 0; i < g->n_outputs; i++) {
        int32_t v = g->outputs[i].value;
        p->output[i] = order_kind(p, v) != ORDER_BUFFER ? p->place[g->n_values + i] : place_of(p, v);
    }
    return HONE_OK;
}

static void note_prepared(struct plan *p)
{
    const hone_graph *g = p->g;
    for (int v = 0; v < g->n_values; v++)
        if (p->root[v] == v && p->made[v] >= 0 && p->made[v] < p->n_prepare && p->used[v] == p->n_steps)
            p->prepared += ALIGN_UP(value_bytes(p, v));
    for (int32_t i = 0; i < p->n_prepare; i++) {
        const struct ir_node *n = &g->nodes[p->steps[i].node];
        for (int k = 0; p->steps[i].kind == PLAN_RUN && k < n->n_in; k++) {
            const struct ir_node *src = &g->nodes[g->values[p->root[n->in[k]]].node];
            if (src->def == &op_slot)
                p->role_prepared[src->attr.i[SLOT_ROLE]] = true;
        }
    }
}

static hone_status allocate(struct plan *p, hone_err *err)
{
    struct mem *m = &p->g->ctx->mem;
    size_t n = (size_t)n_ids(p) + 1, nodes = (size_t)p->g->n_nodes + 1;
    arena_init(&p->arena, m);
    p->place = mem_array(m, n, sizeof *p->place);
    p->root = mem_array(m, n, sizeof *p->root);
    p->buffer = mem_array(m, n, sizeof *p->buffer);
    p->made = mem_array(m, n, sizeof *p->made);
    p->used = mem_array(m, n, sizeof *p->used);
    p->early = mem_array(m, nodes, sizeof *p->early);
    p->dep = mem_array(m, nodes, sizeof *p->dep);
    p->output = mem_array(m, (size_t)p->g->n_outputs + 1, sizeof *p->output);
    p->role_written = mem_array(m, (size_t)p->g->n_roles + 1, sizeof *p->role_written);
    p->role_prepared = mem_array(m, (size_t)p->g->n_roles + 1, sizeof *p->role_prepared);
    if (!p->place || !p->root || !p->buffer || !p->made || !p->used || !p->early || !p->dep || !p->output ||
        !p->role_written || !p->role_prepared)
        return err_set(err, HONE_E_NOMEM, "plan", "no memory to plan a program");
    for (size_t i = 0; i < n; i++) {
        p->root[i] = (int32_t)i;
        p->buffer[i] = p->made[i] = p->used[i] = -1;
    }
    return HONE_OK;
}

hone_status plan_make(struct plan *p, hone_graph *g, const hone_device *d, const hone_compile_options *o, hone_err *err)
{
    *p = (struct plan){.g = g, .device = d, .threads = g->ctx->threads};
    p->no_inplace = o->no_inplace;
    p->no_prepare = o->no_prepare;
    p->guard = o->debug ? MEM_ALIGN : 0;
    hone_status s = allocate(p, err);
    if (s == HONE_OK)
        s = order_make(p, err);
    if (s == HONE_OK)
        s = choose_kernels(p, err);
    if (s != HONE_OK)
        return s;
    s = find_lifetimes(p, err);
    if (s != HONE_OK)
        return s;
    stretch_over_loops(p);
    write_in_place(p);
    s = make_buffers(p, err);
    if (s == HONE_OK)
        s = plan_offsets(&g->ctx->mem, p->buffers, p->n_buffers, &p->transient, &p->live_peak, err);
    if (s == HONE_OK)
        s = set_places(p, err);
    if (s == HONE_OK)
        note_prepared(p);
    return s;
}

void plan_finish(struct plan *p)
{
    if (!p->g)
        return;
    struct mem *m = &p->g->ctx->mem;
    for (int32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].state && p->steps[i].like == i && p->steps[i].kernel->release)
            p->steps[i].kernel->release(p->device->dev, p->steps[i].state);
    mem_free(m, p->steps);
    mem_free(m, p->place);
    mem_free(m, p->output);
    mem_free(m, p->buffers);
    mem_free(m, p->role_written);
    mem_free(m, p->role_prepared);
    mem_free(m, p->root);
    mem_free(m, p->buffer);
    mem_free(m, p->made);
    mem_free(m, p->used);
    mem_free(m, p->early);
    mem_free(m, p->dep);
    arena_finish(&p->arena);
    *p = (struct plan){0};
}
