/* Stores as files: the tensors of a layout under their names. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "graph/store.h"
#include "hone/io.h"

static bool full_name(char *buf, size_t n, const char *prefix, const char *name)
{
    int w = snprintf(buf, n, "%s%s", prefix, name);
    return w >= 0 && (size_t)w < n;
}

static bool is_float(hone_dtype t)
{
    return t == HONE_F32 || t == HONE_F64 || t == HONE_F16 || t == HONE_BF16;
}

/* Tensor `i` of the layout is in the file, once, with its shape; *at is where. */
static hone_status find(const hone_store *s, const hone_tensors *t, const char *prefix, int i, size_t *at,
                        hone_err *err)
{
    char name[HONE_TENSOR_NAME_MAX + 1], want[96], got[96];
    if (!full_name(name, sizeof name, prefix, hone_layout_name(s->layout, i)))
        return err_set(err, HONE_E_ARG, "store", "a name is longer than %d bytes", HONE_TENSOR_NAME_MAX);
    int64_t k = hone_tensors_find(t, name, err);
    if (k < 0)
        return err && err->code != HONE_OK ? err->code : HONE_E_FORMAT;
    hone_tensor_info info = hone_tensors_at(t, (size_t)k);
    hone_shape shape = hone_layout_shape(s->layout, i);
    if (!hone_shape_equal(&shape, &info.type.shape))
        return err_set(err, HONE_E_SHAPE, name, "the network wants %s; the file holds %s",
                       hone_shape_text(&shape, want, sizeof want), hone_shape_text(&info.type.shape, got, sizeof got));
    if (!is_float(info.type.dtype))
        return err_set(err, HONE_E_SHAPE, name, "the network wants floating point; the file holds %s", info.file_dtype);
    *at = (size_t)k;
    return HONE_OK;
}

/* A tensor of the file, under the prefix, that the layout lacks: weights of another network. */
static hone_status refuse_strangers(const hone_store *s, const hone_tensors *t, const char *prefix, hone_err *err)
{
    const size_t n = strlen(prefix);
    for (size_t i = 0; i < hone_tensors_count(t); i++) {
        const char *name = hone_tensors_at(t, i).name;
        if (strncmp(name, prefix, n) != 0 || hone_layout_find(s->layout, name + n) >= 0)
            continue;
        struct text_near near;
        text_near_start(&near, name + n);
        for (int k = 0; k < hone_layout_count(s->layout); k++)
            text_near_try(&near, hone_layout_name(s->layout, k));
        return err_set(err, HONE_E_FORMAT, name, "stands in the file and not in the network%s%s%s",
                       near.best ? "; the nearest there is \"" : "", near.best ? near.best : "", near.best ? "\"" : "");
    }
    return HONE_OK;
}

hone_status hone_store_load(hone_store *s, const hone_tensors *t, const char *prefix, hone_err *err)
{
    const int n = hone_layout_count(s->layout);
    hone_status st = HONE_OK;
    size_t at;
    if (err_is(err))
        return err->code;
    if (!prefix)
        prefix = "";
    for (int i = 0; i < n && st == HONE_OK; i++)
        st = find(s, t, prefix, i, &at, err);
    if (st == HONE_OK)
        st = refuse_strangers(s, t, prefix, err);
    if (st == HONE_OK && !store_lease(s, true))
        return err_set(err, HONE_E_BUSY, "store", "a program is using it");
    if (st != HONE_OK)
        return st;
    for (int i = 0; i < n && st == HONE_OK; i++) {
        struct layout_range r = layout_tensor(s->layout, i);
        st = find(s, t, prefix, i, &at, err);
        if (st == HONE_OK)
            st = hone_tensors_read_f32(t, at, s->slab + r.at, (size_t)r.length, err);
    }
    store_release(s, true);
    return st;
}

hone_status hone_store_save(const hone_store *s, const char *path, const char *prefix, const hone_metadata *metadata,
                            size_t n_metadata, hone_err *err)
{
    hone_store *lock = (hone_store *)(uintptr_t)s; /* only its lease changes */
    const int n = hone_layout_count(s->layout);
    struct mem *m = &s->ctx->mem;
    hone_status st = HONE_OK;
    if (err_is(err))
        return err->code;
    if (!store_lease(lock, false))
        return err_set(err, HONE_E_BUSY, "store", "a program is writing it");
    hone_tensor_source *list = mem_array(m, (size_t)n + 1, sizeof *list);
    struct arena names;
    arena_init(&names, m);
    if (!list)
        st = err_set(err, HONE_E_NOMEM, "store", "no memory to list %d tensors", n);
    for (int i = 0; i < n && st == HONE_OK; i++) {
        const char *name = hone_layout_name(s->layout, i);
        size_t room = strlen(prefix ? prefix : "") + strlen(name) + 1;
        char *copy = arena_alloc(&names, room);
        if (copy)
            full_name(copy, room, prefix ? prefix : "", name);
        else
            st = err_set(err, HONE_E_NOMEM, "store", "no memory to list %d tensors", n);
        list[i] = (hone_tensor_source){copy, {HONE_F32, hone_layout_shape(s->layout, i)}, hone_store_get(s, i)};
    }
    if (st == HONE_OK)
        st = hone_tensors_write(s->ctx, path, list, (size_t)n, metadata, n_metadata, err);
    arena_finish(&names);
    mem_free(m, list);
    store_release(lock, false);
    return st;
}
