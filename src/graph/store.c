/* Layouts (names and places of parameters) and stores (their values). */
#include "graph/store.h"

#include <string.h>

#include "base/err.h"
#include "base/random.h"
#include "base/text.h"

#define FLOATS_ALIGN (MEM_ALIGN / (int64_t)sizeof(float))

struct tensor {
    char *name;
    hone_shape shape;
    int group;
    hone_init init;
    int64_t at, length;
};

struct hone_layout {
    hone_ctx *ctx;
    struct arena names;
    struct tensor *tensors;
    int n, cap;
    bool fixed;
    struct layout_range group[HONE_GROUPS];
    int64_t floats; /* of all tensors with their padding */
};

hone_layout *hone_layout_create(hone_ctx *ctx, hone_err *err)
{
    if (err_is(err))
        return NULL;
    hone_layout *l = mem_alloc(&ctx->mem, sizeof *l);
    if (!l) {
        err_set(err, HONE_E_NOMEM, "layout", "no memory for a layout");
        return NULL;
    }
    l->ctx = ctx;
    arena_init(&l->names, &ctx->mem);
    return l;
}

void hone_layout_destroy(hone_layout *l)
{
    if (!l)
        return;
    arena_finish(&l->names);
    mem_free(&l->ctx->mem, l->tensors);
    mem_free(&l->ctx->mem, l);
}

int hone_layout_count(const hone_layout *l)
{
    return l->n;
}

int hone_layout_find(const hone_layout *l, const char *name)
{
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->tensors[i].name, name))
            return i;
    return -1;
}

const char *hone_layout_name(const hone_layout *l, int index)
{
    return index >= 0 && index < l->n ? l->tensors[index].name : "";
}

hone_shape hone_layout_shape(const hone_layout *l, int index)
{
    return index >= 0 && index < l->n ? l->tensors[index].shape : (hone_shape){-1, {0}};
}

int64_t hone_layout_parameters(const hone_layout *l)
{
    int64_t n = 0;
    for (int i = 0; i < l->n; i++)
        n += l->tensors[i].length;
    return n;
}

static const char *nearest(const hone_layout *l, const char *name)
{
    struct text_near n;
    text_near_start(&n, name);
    for (int i = 0; i < l->n; i++)
        text_near_try(&n, l->tensors[i].name);
    return n.best;
}

static int add_new(hone_layout *l, const struct tensor *t, hone_err *err)
{
    if (l->n == l->cap) {
        int cap = l->cap ? 2 * l->cap : 64;
        void *p = mem_grow(&l->ctx->mem, l->tensors, (size_t)l->cap * sizeof *t, (size_t)cap * sizeof *t);
        if (!p) {
            err_set(err, HONE_E_NOMEM, t->name, "no memory for a parameter");
            return -1;
        }
        l->tensors = p;
        l->cap = cap;
    }
    char *copy = arena_text(&l->names, t->name);
    if (!copy) {
        err_set(err, HONE_E_NOMEM, t->name, "no memory for a parameter");
        return -1;
    }
    l->tensors[l->n] = *t;
    l->tensors[l->n].name = copy;
    l->floats += t->length + FLOATS_ALIGN;
    return l->n++;
}

int hone_layout_add(hone_layout *l, const char *name, hone_shape shape, int group, hone_init init, hone_err *err)
{
    char want[64], got[64];
    if (err_is(err))
        return -1;
    if (!l || !name) {
        err_set(err, HONE_E_ARG, "layout", "wants a layout and a name");
        return -1;
    }
    int i = hone_layout_find(l, name);
    if (i >= 0) {
        if (hone_shape_equal(&l->tensors[i].shape, &shape))
            return i;
        err_set(err, HONE_E_SHAPE, name, "is %s in the layout; got %s",
                hone_shape_text(&l->tensors[i].shape, want, sizeof want), hone_shape_text(&shape, got, sizeof got));
        return -1;
    }
    if (l->fixed) {
        const char *near = nearest(l, name);
        err_set(err, HONE_E_ARG, name, "is not in the layout, and the layout is in use%s%s%s",
                near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
        return -1;
    }
    int64_t n = hone_numel(&shape);
    if (n > INT64_MAX / 64 || (n > 0 && l->floats > INT64_MAX / 64 - n)) { /* bytes of a slab must not overflow */
        err_set(err, HONE_E_ARG, name, "makes the layout larger than memory can be");
        return -1;
    }
    if (n < 0 || group < 0 || group >= HONE_GROUPS) {
        err_set(err, HONE_E_ARG, name, "a parameter needs a shape of 0 to 8 dimensions and a group; got %s, group %d",
                hone_shape_text(&shape, got, sizeof got), group);
        return -1;
    }
    return add_new(l, &(struct tensor){(char *)(uintptr_t)name, shape, group, init, 0, n}, err);
}

/* Places every tensor: group by group, each at a multiple of 64 bytes. */
static void fix(hone_layout *l)
{
    int64_t at = 0;
    if (l->fixed)
        return;
    for (int g = 0; g < HONE_GROUPS; g++) {
        l->group[g].at = at;
        for (int i = 0; i < l->n; i++)
            if (l->tensors[i].group == g) {
                l->tensors[i].at = at;
                at += (l->tensors[i].length + FLOATS_ALIGN - 1) / FLOATS_ALIGN * FLOATS_ALIGN;
            }
        l->group[g].length = at - l->group[g].at;
    }
    l->fixed = true;
}

struct layout_range layout_group(hone_layout *l, int group)
{
    fix(l);
    return l->group[group];
}

struct layout_range layout_tensor(hone_layout *l, int index)
{
    fix(l);
    return (struct layout_range){l->tensors[index].at, l->tensors[index].length};
}

int64_t layout_floats(hone_layout *l)
{
    fix(l);
    return l->group[HONE_GROUPS - 1].at + l->group[HONE_GROUPS - 1].length;
}

/* --- stores --- */

hone_store *hone_store_create(hone_ctx *ctx, hone_layout *l, hone_err *err)
{
    if (err_is(err))
        return NULL;
    if (!ctx || !l) {
        err_set(err, HONE_E_ARG, "store", "wants a context and a layout");
        return NULL;
    }
    size_t bytes = (size_t)layout_floats(l) * sizeof(float);
    if (mem_reserve(&ctx->mem, bytes, "store", "a smaller network, or fewer averages", err) != HONE_OK)
        return NULL;
    hone_store *s = mem_alloc(&ctx->mem, sizeof *s);
    float *slab = s ? mem_alloc(&ctx->mem, bytes) : NULL;
    if (!slab) {
        err_set(err, HONE_E_NOMEM, "store", "no memory for %lld parameters", (long long)hone_layout_parameters(l));
        mem_free(&ctx->mem, s);
        mem_unreserve(&ctx->mem, bytes);
        return NULL;
    }
    s->ctx = ctx;
    s->layout = l;
    s->slab = slab;
    s->id = atomic_fetch_add(&ctx->next_id, 1) + 1;
    return s;
}

void hone_store_destroy(hone_store *s)
{
    if (!s)
        return;
    mem_unreserve(&s->ctx->mem, (size_t)layout_floats(s->layout) * sizeof(float));
    mem_free(&s->ctx->mem, s->slab);
    mem_free(&s->ctx->mem, s);
}

bool store_lease(hone_store *s, bool write)
{
    int now = atomic_load(&s->lease);
    do {
        if (write ? now != 0 : now < 0)
            return false;
    } while (!atomic_compare_exchange_weak(&s->lease, &now, write ? -1 : now + 1));
    return true;
}

void store_release(hone_store *s, bool write)
{
    if (write) {
        atomic_fetch_add(&s->version, 1);
        atomic_store(&s->lease, 0);
    } else {
        atomic_fetch_sub(&s->lease, 1);
    }
}

void store_clear_padding(hone_store *s, int group)
{
    for (int i = 0; i < s->layout->n; i++) {
        const struct tensor *t = &s->layout->tensors[i];
        const int64_t whole = (t->length + FLOATS_ALIGN - 1) / FLOATS_ALIGN * FLOATS_ALIGN;
        for (int64_t k = t->length; t->group == group && k < whole; k++)
            s->slab[t->at + k] = 0;
    }
}

static hone_status busy(hone_err *err)
{
    return err_set(err, HONE_E_BUSY, "store", "a program is using it");
}

hone_status hone_store_init(hone_store *s, uint64_t seed, hone_err *err)
{
    if (err_is(err))
        return err->code;
    if (!store_lease(s, true))
        return busy(err);
    for (int i = 0; i < s->layout->n; i++) {
        const struct tensor *t = &s->layout->tensors[i];
        float *x = s->slab + t->at;
        size_t n = (size_t)t->length;
        uint64_t stream = hone_stream(t->name);
        if (t->init.kind == HONE_INIT_UNIFORM)
            hone_fill_uniform(x, n, seed, stream, 0, 0);
        if (t->init.kind == HONE_INIT_NORMAL)
            hone_fill_normal(x, n, seed, stream, 0, 0);
        for (size_t k = 0; k < n; k++)
            switch (t->init.kind) {
            case HONE_INIT_ZERO:
                x[k] = 0;
                break;
            case HONE_INIT_ONE:
                x[k] = 1;
                break;
            case HONE_INIT_UNIFORM:
                x[k] = (2 * x[k] - 1) * t->init.scale;
                break;
            case HONE_INIT_NORMAL:
                x[k] *= t->init.scale;
                break;
            }
    }
    store_release(s, true);
    return HONE_OK;
}

const hone_layout *hone_store_layout(const hone_store *s)
{
    return s->layout;
}

const float *hone_store_get(const hone_store *s, int index)
{
    return index >= 0 && index < s->layout->n ? s->slab + s->layout->tensors[index].at : NULL;
}

hone_status hone_store_set(hone_store *s, int index, const float *values, int64_t n, hone_err *err)
{
    if (err_is(err))
        return err->code;
    if (index < 0 || index >= s->layout->n)
        return err_set(err, HONE_E_ARG, "store", "has %d tensors; got index %d", s->layout->n, index);
    const struct tensor *t = &s->layout->tensors[index];
    if (n != t->length)
        return err_set(err, HONE_E_SHAPE, t->name, "has %lld elements; got %lld", (long long)t->length, (long long)n);
    if (!store_lease(s, true))
        return busy(err);
    memcpy(s->slab + t->at, values, (size_t)n * sizeof(float));
    store_release(s, true);
    return HONE_OK;
}

hone_status hone_store_copy(hone_store *to, const hone_store *from, hone_err *err)
{
    hone_store *src = (hone_store *)(uintptr_t)from; /* only its lease changes */
    if (err_is(err))
        return err->code;
    if (to->layout != from->layout)
        return err_set(err, HONE_E_ARG, "store", "can be copied only from a store of the same layout");
    if (to == from)
        return HONE_OK;
    if (!store_lease(src, false))
        return busy(err);
    bool mine = store_lease(to, true);
    if (mine) {
        memcpy(to->slab, from->slab, (size_t)layout_floats(to->layout) * sizeof(float));
        store_release(to, true);
    }
    store_release(src, false);
    return mine ? HONE_OK : busy(err);
}

hone_status hone_store_zero(hone_store *s, hone_err *err)
{
    if (err_is(err))
        return err->code;
    if (!store_lease(s, true))
        return busy(err);
    memset(s->slab, 0, (size_t)layout_floats(s->layout) * sizeof(float));
    store_release(s, true);
    return HONE_OK;
}
