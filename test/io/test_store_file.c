/* Stores as files: round trip, refusals, each allocation failing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/kit.h"
#include "hone/io.h"

static hone_layout *layout(hone_ctx *ctx, const char *last, int64_t n, hone_err *err)
{
    hone_layout *l = hone_layout_create(ctx, err);
    if (!l)
        return NULL;
    hone_layout_add(l, "net/w", HONE_SHAPE(3, 5), HONE_GROUP_DECAY, (hone_init){HONE_INIT_NORMAL, 1}, err);
    hone_layout_add(l, "net/b", HONE_SHAPE(7), HONE_GROUP_PLAIN, (hone_init){HONE_INIT_UNIFORM, 1}, err);
    hone_layout_add(l, last, HONE_SHAPE(n), HONE_GROUP_FROZEN, (hone_init){HONE_INIT_ONE, 0}, err);
    return l;
}

static hone_status load(hone_ctx *ctx, const char *path, const char *prefix, const char *last, int64_t n,
                        hone_store **out, hone_layout **l, hone_err *err)
{
    *l = layout(ctx, last, n, err);
    *out = *l ? hone_store_create(ctx, *l, err) : NULL;
    hone_tensors *t = hone_tensors_open(ctx, path, err);
    if (*out && t)
        hone_store_load(*out, t, prefix, err);
    hone_tensors_close(t);
    return err->code;
}

static void round_trip(struct check *c, struct kit *k, const char *path)
{
    hone_layout *a = layout(k->ctx, "net/scale", 4, &k->err), *b;
    hone_store *s = hone_store_create(k->ctx, a, &k->err), *r;
    hone_store_init(s, 5, &k->err);
    CHECK(c, hone_store_save(s, path, "param/", NULL, 0, &k->err) == HONE_OK);
    CHECK_MSG(c, load(k->ctx, path, "param/", "net/scale", 4, &r, &b, &k->err) == HONE_OK, "%s: %s", k->err.where,
              k->err.text);
    for (int i = 0; i < 3; i++) {
        hone_shape shape = hone_layout_shape(a, i);
        CHECK(c, !memcmp(hone_store_get(s, i), hone_store_get(r, i), (size_t)hone_numel(&shape) * sizeof(float)));
    }
    hone_store_destroy(s);
    hone_store_destroy(r);
    hone_layout_destroy(a);
    hone_layout_destroy(b);
}

static void refusals(struct check *c, struct kit *k, const char *path)
{
    static const struct {
        const char *name, *prefix, *last, *says;
        int64_t n;
    } t[] = {{"another shape", "param/", "net/scale", "wants [5]; the file holds [4]", 5},
             {"a missing tensor", "param/", "net/scala", "net/scale", 4},
             {"another prefix", "", "net/scale", "net/w", 4}};
    for (int i = 0; i < 3; i++) {
        if (!check_case(c, "refused: %s", t[i].name))
            continue;
        hone_err e = {0};
        hone_store *s;
        hone_layout *l;
        CHECK(c, load(k->ctx, path, t[i].prefix, t[i].last, t[i].n, &s, &l, &e) != HONE_OK);
        CHECK_MSG(c, strstr(e.text, t[i].says) || strstr(e.where, t[i].says), "%s: %s", e.where, e.text);
        for (int q = 0; q < 15; q++)
            CHECK(c, hone_store_get(s, 0)[q] == 0);
        hone_store_destroy(s);
        hone_layout_destroy(l);
    }
    if (check_case(c, "refused: a tensor that the network lacks")) {
        hone_err e = {0};
        hone_layout *l = hone_layout_create(k->ctx, &e);
        hone_layout_add(l, "net/w", HONE_SHAPE(3, 5), HONE_GROUP_DECAY, (hone_init){0}, &e);
        hone_store *s = hone_store_create(k->ctx, l, &e);
        hone_tensors *f = hone_tensors_open(k->ctx, path, &e);
        CHECK(c, hone_store_load(s, f, "param/", &e) == HONE_E_FORMAT);
        hone_tensors_close(f);
        hone_store_destroy(s);
        hone_layout_destroy(l);
    }
}

static void allocations_fail(struct check *c, const char *path)
{
    char other[128];
    long calls = 1;
    snprintf(other, sizeof other, "%s.again", path);
    for (long n = 0; n <= calls + 5; n++) {
        struct failing f = {.countdown = n};
        hone_allocator al = kit_failing(&f);
        hone_err e = {0};
        hone_ctx *ctx = hone_ctx_create(&(hone_ctx_options){.allocator = &al}, &e);
        hone_layout *l = NULL;
        hone_store *s = NULL;
        if (ctx && load(ctx, path, "param/", "net/scale", 4, &s, &l, &e) == HONE_OK)
            hone_store_save(s, other, NULL, NULL, 0, &e);
        CHECK_MSG(c, n == 0 ? e.code == HONE_OK : e.code == HONE_E_NOMEM || f.countdown > 0, "%ld: %s: %s", n, e.where,
                  e.text);
        if (n == 0)
            calls = f.calls;
        hone_store_destroy(s);
        hone_layout_destroy(l);
        hone_ctx_destroy(ctx);
        CHECK_MSG(c, f.live == 0, "%ld: %ld blocks leaked", n, f.live);
    }
    remove(other);
}

void suite_store_file(struct check *c)
{
    struct kit k;
    char path[64];
    kit_open(&k, NULL);
    snprintf(path, sizeof path, "/tmp/hone_store_%ld.safetensors", (long)getpid());
    if (check_case(c, "round trip"))
        round_trip(c, &k, path);
    refusals(c, &k, path);
    if (check_case(c, "each allocation may fail"))
        allocations_fail(c, path);
    remove(path);
    if (check_case(c, "nothing leaks"))
        kit_close(&k, c);
    else
        kit_close(&k, &(struct check){.open = 1});
}
