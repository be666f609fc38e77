/* Files of tensors with more dimensions than hone holds, and stores that a load must leave alone. */
#include "check.h"
#include "graph/store.h"
#include "io/blob.h"

static void many_dimensions(struct check *c, hone_ctx *ctx)
{
    static const char header[] =
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,2,3,1,1,1,1,2,1,1,1,1,1,1,1,1,1,1],"
        "\"data_offsets\":[0,12]},\"b\":{\"dtype\":\"U8\",\"shape\":[3],"
        "\"data_offsets\":[12,15]}}";
    for (int in_file = 0; in_file < 2; in_file++) {
        if (!check_case(c, "dimensions beyond the eighth count, and hurt nothing (%s)", in_file ? "file" : "memory"))
            continue;
        hone_err e = {0};
        struct blob b = make(header, 15);
        hone_tensors *t = in_file ? open_in_file(ctx, b, &e) : hone_tensors_from_memory(ctx, b.p, b.n, &e);
        if (CHECK_MSG(c, t != NULL, "%s", e.text)) {
            const hone_tensor_info a = hone_tensors_at(t, 0);
            CHECK(c, a.rank == 25 && a.bytes == 12 && a.type.shape.rank == -1 && !strcmp(a.name, "a"));
            CHECK(c, hone_tensors_find(t, "b", NULL) == 1 && hone_tensors_at(t, 1).type.shape.dim[0] == 3);
        }
        hone_tensors_close(t);
        free(b.p);
    }
}

static bool all_are(const hone_store *s, float want)
{
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            if (hone_store_get(s, i)[k] != want)
                return false;
    return true;
}

static void store_left_alone(struct check *c, hone_ctx *ctx)
{
    /* in the order of the layout, "w" would be read before "z" is seen to be wrong */
    static const char good[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                               "\"z\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}",
                      integers[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                                   "\"z\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[8,16]}}";
    hone_err e = {0}, none = {0};
    hone_layout *l = hone_layout_create(ctx, &e);
    hone_layout_add(l, "w", HONE_SHAPE(2), HONE_GROUP_DECAY, (hone_init){HONE_INIT_ONE, 0}, &e);
    hone_layout_add(l, "z", HONE_SHAPE(2), HONE_GROUP_DECAY, (hone_init){HONE_INIT_ONE, 0}, &e);
    hone_store *s = hone_store_create(ctx, l, &e);
    hone_store_init(s, 1, &e);
    if (check_case(c, "integers are no weights, and nothing is read before that is seen")) {
        struct blob b = make(integers, 16);
        hone_tensors *t = hone_tensors_from_memory(ctx, b.p, b.n, &none);
        CHECK(c, t && hone_store_load(s, t, NULL, &e) == HONE_E_SHAPE && !strcmp(e.where, "z"));
        CHECK(c, all_are(s, 1));
        hone_tensors_close(t);
        free(b.p);
    }
    if (check_case(c, "a store in use is not loaded")) {
        struct blob b = make(good, 16);
        memset(b.p + b.n - 16, 0, 16);
        hone_tensors *t = hone_tensors_from_memory(ctx, b.p, b.n, &none);
        for (int write = 0; write < 2; write++) {
            CHECK(c, store_lease(s, write));
            CHECK(c, hone_store_load(s, t, NULL, NULL) == HONE_E_BUSY && all_are(s, 1));
            store_release(s, write);
        }
        const uint64_t version = s->version;
        CHECK(c, hone_store_load(s, t, NULL, NULL) == HONE_OK && all_are(s, 0) && s->version > version);
        hone_tensors_close(t);
        free(b.p);
    }
    hone_store_destroy(s);
    hone_layout_destroy(l);
}

void suite_tensor_limits(struct check *c)
{
    hone_ctx *ctx = hone_ctx_create(NULL, NULL);
    many_dimensions(c, ctx);
    store_left_alone(c, ctx);
    if (check_case(c, "nothing leaks"))
        CHECK(c, hone_ctx_mem(ctx).live_bytes == 0);
    hone_ctx_destroy(ctx);
}
