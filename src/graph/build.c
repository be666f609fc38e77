/* The builder: nodes, values, scopes, poison; sources and sinks. */
#include "graph/ir.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "graph/store.h"

hone_graph *hone_graph_create(hone_ctx *ctx, hone_err *err)
{
    if (err_is(err))
        return NULL;
    if (!ctx) {
        err_set(err, HONE_E_ARG, "graph", "wants a context");
        return NULL;
    }
    hone_graph *g = mem_alloc(&ctx->mem, sizeof *g);
    if (!g) {
        err_set(err, HONE_E_NOMEM, "graph", "no memory for a graph");
        return NULL;
    }
    g->ctx = ctx;
    arena_init(&g->arena, &ctx->mem);
    if (!ir_room(g, &g->scopes, 0, &g->cap_scopes, sizeof *g->scopes)) {
        err_set(err, HONE_E_NOMEM, "graph", "no memory for a graph");
        hone_graph_destroy(g);
        return NULL;
    }
    g->scopes[g->n_scopes++] = (struct ir_scope){"", 0};
    return g;
}

void hone_graph_destroy(hone_graph *g)
{
    if (!g)
        return;
    struct mem *m = &g->ctx->mem;
    mem_free(m, g->nodes);
    mem_free(m, g->values);
    mem_free(m, g->inputs);
    mem_free(m, g->outputs);
    mem_free(m, g->roles);
    mem_free(m, g->scopes);
    arena_finish(&g->arena);
    mem_free(m, g);
}

hone_status hone_graph_status(const hone_graph *g, hone_err *err)
{
    if (!g)
        return err_is(err) ? err->code : err_set(err, HONE_E_ARG, "graph", "there is none");
    if (g->err.code == HONE_OK)
        return HONE_OK;
    return err_set(err, g->err.code, g->err.where, "%s", g->err.text);
}

bool ir_room(hone_graph *g, void *array_ptr, int n, int *cap, size_t size)
{
    void **array = array_ptr;
    if (n < *cap)
        return true;
    int want = *cap ? *cap * 2 : 16;
    void *p = mem_grow(&g->ctx->mem, *array, (size_t)*cap * size, (size_t)want * size);
    if (!p) {
        err_set(&g->err, HONE_E_NOMEM, g->scopes ? g->scopes[g->scope].path : "", "no memory for a larger graph");
        return false;
    }
    *array = p;
    *cap = want;
    return true;
}

/* --- scopes --- */

void hone_scope_push(hone_graph *g, const char *fmt, ...)
{
    if (!g)
        return;
    char path[512];
    const char *outer = g->scopes[g->scope].path;
    int n = snprintf(path, sizeof path, "%s%s", outer, *outer ? "/" : "");
    va_list ap;
    va_start(ap, fmt);
    if (n >= 0 && (size_t)n < sizeof path)
        vsnprintf(path + n, sizeof path - (size_t)n, fmt, ap);
    va_end(ap);
    char *copy = arena_text(&g->arena, path);
    if (!copy || !ir_room(g, &g->scopes, g->n_scopes, &g->cap_scopes, sizeof *g->scopes)) {
        err_set(&g->err, HONE_E_NOMEM, outer, "no memory for the name of a layer");
        return;
    }
    g->scopes[g->n_scopes] = (struct ir_scope){copy, g->scope};
    g->scope = g->n_scopes++;
}

void hone_scope_pop(hone_graph *g)
{
    if (g)
        g->scope = g->scopes[g->scope].outer;
}

const char *hone_scope(const hone_graph *g)
{
    return g ? g->scopes[g->scope].path : "";
}

/* --- nodes --- */

hone_type hone_type_of(hone_t x)
{
    if (!x.g || x.id < 0)
        return (hone_type){HONE_F32, {-1, {0}}};
    return x.g->values[x.id].type;
}

bool ir_role_changes(const hone_graph *g, int64_t role)
{
    for (int i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].def == &op_store && g->roles[g->nodes[i].attr.i[STORE_ROLE]].layout == g->roles[role].layout)
            return true;
    return false;
}

struct op_call ir_call(const hone_graph *g, const struct ir_node *n, hone_type *in, hone_type *out)
{
    for (int i = 0; i < n->n_in; i++)
        in[i] = g->values[n->in[i]].type;
    for (int i = 0; i < n->n_out; i++)
        out[i] = g->values[n->out0 + i].type;
    return (struct op_call){n->def, n->n_in, n->n_out, in, out, n->attr, n->data};
}

/* Adds the layer to an error that an operation's rule gave: "unet/down0/conv: matmul: inner dimensions ...". */
static void name_layer(hone_graph *g, const hone_err *e)
{
    const char *scope = g->scopes[g->scope].path;
    char where[sizeof e->where * 6];
    snprintf(where, sizeof where, "%s%s%s", scope, *scope ? "/" : "", e->where);
    err_set(&g->err, e->code, where, "%s", e->text);
}

static bool append(hone_graph *g, const struct op_def *def, int n_in, const hone_t *in, const struct op_attr *attr,
                   const hone_type *type, const void *data, size_t bytes)
{
    void *copy = NULL;
    int32_t *ids = arena_alloc(&g->arena, (size_t)n_in * sizeof *ids);
    if (data && ids)
        copy = arena_alloc(&g->arena, bytes ? bytes : 1);
    if (!ids || (data && !copy)) {
        err_set(&g->err, HONE_E_NOMEM, g->scopes[g->scope].path, "no memory for an operation");
        return false;
    }
    if (copy)
        memcpy(copy, data, bytes);
    for (int i = 0; i < n_in; i++)
        ids[i] = in[i].id;
    if (!ir_room(g, &g->nodes, g->n_nodes, &g->cap_nodes, sizeof *g->nodes))
        return false;
    for (int i = 0; i < def->n_out; i++) {
        if (!ir_room(g, &g->values, g->n_values + i, &g->cap_values, sizeof *g->values))
            return false;
        g->values[g->n_values + i] = (struct ir_value){type[i], g->n_nodes, i};
    }
    g->nodes[g->n_nodes] = (struct ir_node){
        def, *attr, copy, bytes, ids, g->n_values, (int16_t)n_in, (int16_t)def->n_out, g->scope, g->loop};
    g->n_nodes++;
    g->n_values += def->n_out;
    return true;
}

hone_t op_emit_in(hone_graph *g, const struct op_def *def, int n_in, const hone_t *in, const struct op_attr *attr,
                  const void *data, size_t bytes, hone_t *out)
{
    static const struct op_attr none = {0};
    hone_type type_in[OP_MAX_IN], type_out[OP_MAX_OUT] = {{0}};
    const hone_t poison = {g, -1};
    hone_err e = {0};
    if (!g) { /* the graph could not be made: its maker's error tells why */
        for (int i = 0; out && i < def->n_out; i++)
            out[i] = HONE_NONE;
        return HONE_NONE;
    }
    for (int i = 0; out && i < def->n_out; i++)
        out[i] = poison;
    if (g->err.code != HONE_OK)
        return poison;
    if (n_in < def->min_in || n_in > def->max_in || n_in > OP_MAX_IN) {
        err_set(&e, HONE_E_ARG, def->name, "takes %d to %d operands; got %d", def->min_in, def->max_in, n_in);
        name_layer(g, &e);
        return poison;
    }
    for (int i = 0; i < n_in; i++) {
        if (in[i].g != g || in[i].id >= g->n_values) {
            err_set(&e, HONE_E_ARG, def->name, in[i].g ? "operand %d is of another graph" : "operand %d is missing", i);
            name_layer(g, &e);
            return poison;
        }
        if (in[i].id < 0)
            return poison;
        type_in[i] = g->values[in[i].id].type;
    }
    struct op_call c = {def, n_in, def->n_out, type_in, NULL, attr ? *attr : none, data};
    if (def->shape(&c, type_out, &e) != HONE_OK) {
        name_layer(g, &e);
        return poison;
    }
    for (int i = 0; i < def->n_out; i++)
        if (hone_numel(&type_out[i].shape) < 0 || hone_numel(&type_out[i].shape) > INT64_MAX / 64) {
            op_refuse(&c, &e, "the result has too many elements");
            name_layer(g, &e);
            return poison;
        }
    if (!append(g, def, n_in, in, &c.attr, type_out, data, bytes))
        return poison;
    int32_t first = g->n_values - def->n_out;
    for (int i = 0; out && i < def->n_out; i++)
        out[i] = (hone_t){g, first + i};
    return (hone_t){g, first};
}

hone_t op_emit(const struct op_def *def, int n_in, const hone_t *in, const struct op_attr *attr, hone_t *out)
{
    for (int i = 0; i < n_in; i++)
        if (in[i].g)
            return op_emit_in(in[i].g, def, n_in, in, attr, NULL, 0, out);
    for (int i = 0; out && i < def->n_out; i++)
        out[i] = HONE_NONE;
    return HONE_NONE;
}

/* --- sources --- */

static hone_t fail(hone_graph *g, hone_status code, const char *what, const char *name, const char *why)
{
    if (!g)
        return HONE_NONE;
    err_set(&g->err, code, g->scopes[g->scope].path, "%s \"%s\" %s", what, name ? name : "", why);
    return (hone_t){g, -1};
}

static hone_t add_input(hone_graph *g, const char *name, struct op_attr a)
{
    if (!g || !name || !*name)
        return fail(g, HONE_E_ARG, "input", name, "needs a name");
    if (a.i[0] == HONE_F64 || a.i[0] == HONE_I64)
        return fail(g, HONE_E_ARG, "input", name, "cannot be of 64 bits: no operation takes that");
    for (int i = 0; i < g->n_inputs; i++)
        if (!strcmp(g->inputs[i].name, name))
            return fail(g, HONE_E_ARG, "input", name, "is declared twice");
    hone_t x = op_emit_in(g, &op_input, 0, NULL, &a, NULL, 0, NULL);
    char *copy = arena_text(&g->arena, name);
    if (x.id < 0 || !copy || !ir_room(g, &g->inputs, g->n_inputs, &g->cap_inputs, sizeof *g->inputs))
        return fail(g, HONE_E_NOMEM, "input", name, "finds no memory");
    g->inputs[g->n_inputs++] = (struct ir_name){copy, x.id};
    return x;
}

hone_t hone_input(hone_graph *g, const char *name, hone_dtype dtype, hone_shape shape)
{
    return add_input(g, name, op_source_attr((hone_type){dtype, shape}));
}

hone_t hone_input_index(hone_graph *g, const char *name, hone_shape shape, int32_t below)
{
    struct op_attr a = op_source_attr((hone_type){HONE_I32, shape});
    if (below <= 0)
        return fail(g, HONE_E_ARG, "input", name, "needs a positive bound of its indices");
    a.i[INPUT_INDEX] = 1;
    a.i[INPUT_BELOW] = below;
    return add_input(g, name, a);
}

hone_t hone_const(hone_graph *g, hone_dtype dtype, hone_shape shape, const void *data)
{
    int64_t n = hone_numel(&shape);
    struct op_attr a = op_source_attr((hone_type){dtype, shape});
    if (!data && n > 0)
        return fail(g, HONE_E_ARG, "constant", NULL, "has no data");
    if (n < 0)
        return op_emit_in(g, &op_constant, 0, NULL, &a, NULL, 0, NULL);
    return op_emit_in(g, &op_constant, 0, NULL, &a, data, (size_t)n * hone_dtype_size(dtype), NULL);
}

hone_t hone_const_f32(hone_graph *g, float value)
{
    return hone_const(g, HONE_F32, HONE_SCALAR, &value);
}

hone_t hone_full(hone_graph *g, hone_shape shape, float value)
{
    return hone_broadcast(hone_const_f32(g, value), shape);
}

static hone_t add_random(hone_graph *g, const char *stream, hone_dtype dtype, hone_shape shape, int kind, int32_t below)
{
    if (!g || !stream)
        return fail(g, HONE_E_ARG, "random stream", stream, "needs a name");
    struct op_attr a = op_source_attr((hone_type){dtype, shape});
    uint64_t key = hone_stream(stream);
    if (g->loop)
        return fail(g, HONE_E_ARG, "random stream", stream,
                    "stands in a chain; give it a row for each step as a table");
    a.i[RANDOM_KIND] = kind;
    a.i[RANDOM_BELOW] = below;
    for (int i = 0; i < g->n_nodes; i++) /* two buffers of one stream would hold the same numbers */
        if (g->nodes[i].def == &op_random && !memcmp(g->nodes[i].data, &key, sizeof key))
            return fail(g, HONE_E_ARG, "random stream", stream, "is used twice");
    return op_emit_in(g, &op_random, 0, NULL, &a, &key, sizeof key, NULL);
}

hone_t hone_random_normal(hone_graph *g, const char *stream, hone_shape shape)
{
    return add_random(g, stream, HONE_F32, shape, RANDOM_NORMAL, 0);
}

hone_t hone_random_uniform(hone_graph *g, const char *stream, hone_shape shape)
{
    return add_random(g, stream, HONE_F32, shape, RANDOM_UNIFORM, 0);
}

hone_t hone_random_index(hone_graph *g, const char *stream, hone_shape shape, int32_t below)
{
    if (below <= 0)
        return fail(g, HONE_E_ARG, "random stream", stream, "needs a positive bound");
    return add_random(g, stream, HONE_I32, shape, RANDOM_INDEX, below);
}

/* --- stores --- */

int ir_role(hone_graph *g, const char *name, hone_layout *l)
{
    for (int i = 0; i < g->n_roles; i++)
        if (!strcmp(g->roles[i].name, name)) {
            if (g->roles[i].layout == l)
                return i;
            fail(g, HONE_E_ARG, "role", name, "is used with two layouts");
            return -1;
        }
    char *copy = arena_text(&g->arena, name);
    if (!copy || !ir_room(g, &g->roles, g->n_roles, &g->cap_roles, sizeof *g->roles)) {
        fail(g, HONE_E_NOMEM, "role", name, "finds no memory");
        return -1;
    }
    g->roles[g->n_roles] = (struct ir_role){copy, l};
    return g->n_roles++;
}

static hone_t read_slot(hone_graph *g, const char *role, hone_layout *l, int tensor, hone_shape shape)
{
    struct op_attr a = op_source_attr((hone_type){HONE_F32, shape});
    int r = ir_role(g, role, l);
    if (r < 0)
        return (hone_t){g, -1};
    a.i[SLOT_ROLE] = r;
    a.i[SLOT_TENSOR] = tensor;
    for (int i = 0; i < g->n_nodes; i++) /* one value a tensor, however often it is read */
        if (g->nodes[i].def == &op_slot && g->nodes[i].attr.i[SLOT_ROLE] == r &&
            g->nodes[i].attr.i[SLOT_TENSOR] == tensor)
            return (hone_t){g, g->nodes[i].out0};
    int32_t loop = g->loop;
    g->loop = 0; /* a parameter is no part of the chain that uses it */
    hone_t x = op_emit_in(g, &op_slot, 0, NULL, &a, NULL, 0, NULL);
    g->loop = loop;
    return x;
}

hone_t hone_read(hone_graph *g, const char *role, hone_layout *l, int index)
{
    if (!g || !l || index < 0 || index >= hone_layout_count(l))
        return fail(g, HONE_E_ARG, "role", role, "is read at no tensor of its layout");
    return read_slot(g, role, l, index, hone_layout_shape(l, index));
}

hone_t hone_read_group(hone_graph *g, const char *role, hone_layout *l, int group)
{
    if (!g || !l || group < 0 || group >= HONE_GROUPS)
        return fail(g, HONE_E_ARG, "role", role, "is read at no group");
    return read_slot(g, role, l, -1 - group, HONE_SHAPE(layout_group(l, group).length));
}

static void write_slot(hone_t x, const char *role, hone_layout *l, int tensor, hone_shape shape)
{
    if (!x.g || x.id < 0)
        return;
    hone_graph *g = x.g;
    int r = ir_role(g, role, l);
    hone_type t = hone_type_of(x);
    char want[64], got[64];
    if (r < 0)
        return;
    if (!hone_shape_equal(&t.shape, &shape)) {
        err_set(&g->err, HONE_E_SHAPE, g->scopes[g->scope].path, "written to \"%s\" of role \"%s\": wants %s; got %s",
                tensor >= 0 ? hone_layout_name(l, tensor) : "a group", role, hone_shape_text(&shape, want, sizeof want),
                hone_shape_text(&t.shape, got, sizeof got));
        return;
    }
    op_emit(&op_store, 1, &x, &(struct op_attr){.i = {r, tensor}}, NULL);
}

void hone_write(hone_t x, const char *role, hone_layout *l, int index)
{
    if (x.g && (!l || index < 0 || index >= hone_layout_count(l)))
        fail(x.g, HONE_E_ARG, "role", role, "is written at no tensor of its layout");
    else
        write_slot(x, role, l, index, hone_layout_shape(l, index));
}

void hone_accumulate(hone_t x, const char *role, hone_layout *l, int index)
{
    if (x.g)
        hone_write(hone_add(hone_read(x.g, role, l, index), x), role, l, index);
}

void hone_write_group(hone_t x, const char *role, hone_layout *l, int group)
{
    if (x.g && (!l || group < 0 || group >= HONE_GROUPS))
        fail(x.g, HONE_E_ARG, "role", role, "is written at no group");
    else if (x.g)
        write_slot(x, role, l, -1 - group, HONE_SHAPE(layout_group(l, group).length));
}

void hone_output(hone_t x, const char *name)
{
    if (!x.g || x.id < 0)
        return;
    hone_graph *g = x.g;
    if (!name || !*name) {
        fail(g, HONE_E_ARG, "output", name, "needs a name");
        return;
    }
    for (int i = 0; i < g->n_outputs; i++)
        if (!strcmp(g->outputs[i].name, name)) {
            fail(g, HONE_E_ARG, "output", name, "is declared twice");
            return;
        }
    char *copy = arena_text(&g->arena, name);
    if (!copy || !ir_room(g, &g->outputs, g->n_outputs, &g->cap_outputs, sizeof *g->outputs)) {
        fail(g, HONE_E_NOMEM, "output", name, "finds no memory");
        return;
    }
    g->outputs[g->n_outputs++] = (struct ir_name){copy, x.id};
}
