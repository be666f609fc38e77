#include "graph/kit.h"

#include <stdlib.h>
#include <string.h>

void kit_open(struct kit *k, const hone_ctx_options *o)
{
    memset(k, 0, sizeof *k);
    k->ctx = hone_ctx_create(o, &k->err);
    k->cpu = hone_device_open(k->ctx, "cpu", &k->err);
}

void kit_close(struct kit *k, struct check *c)
{
    hone_device_close(k->cpu);
    hone_mem_stats m = hone_ctx_mem(k->ctx);
    CHECK_MSG(c, m.live_bytes == 0 && m.planned_bytes == 0, "%zu bytes live, %zu planned", m.live_bytes,
              m.planned_bytes);
    hone_ctx_destroy(k->ctx);
}

static hone_t parameter(hone_graph *g, hone_layout *l, const char *name, hone_shape s)
{
    int i = hone_layout_add(l, name, s, HONE_GROUP_DECAY, (hone_init){HONE_INIT_NORMAL, 0.3f}, &g->err);
    return i < 0 ? (hone_t){g, -1} : hone_read(g, "param", l, i);
}

hone_graph *kit_net(struct kit *k, hone_layout *l, int batch, int width, bool gradient)
{
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    if (!g)
        return NULL;
    hone_t x = hone_input(g, "x", HONE_F32, HONE_SHAPE(batch, 3));
    hone_t y = hone_input(g, "y", HONE_F32, HONE_SHAPE(batch, 2));
    hone_scope_push(g, "net");
    hone_t p[3] = {parameter(g, l, "w0", HONE_SHAPE(3, width)), parameter(g, l, "b0", HONE_SHAPE(width)),
                   parameter(g, l, "w1", HONE_SHAPE(width, 2))};
    hone_t h = hone_silu(hone_add(hone_matmul(x, p[0], false, false), p[1]));
    hone_t out = hone_matmul(h, p[2], false, false), d = hone_sub(out, y);
    hone_t loss = hone_sum(hone_mul(d, d), HONE_AXES_ALL, false);
    hone_scope_pop(g);
    hone_output(out, "out");
    hone_output(loss, "loss");
    if (gradient) {
        hone_t dp[3];
        hone_gradients(loss, p, 3, dp);
        for (int i = 0; i < 3; i++)
            hone_accumulate(dp[i], "grad", l, i);
    }
    return g;
}

bool kit_run(struct kit *k, hone_program *p, const void *const *in, hone_store *const *stores, uint64_t run)
{
    if (!p)
        return false;
    hone_run(p, &(hone_run_args){.inputs = in, .stores = stores, .seed = 1, .run = run}, &k->err);
    return hone_wait(p, &k->err) == HONE_OK;
}

static void *fail_alloc(void *user, size_t bytes)
{
    struct failing *f = user;
    f->calls++;
    if (f->countdown > 0 && --f->countdown == 0)
        return NULL;
    f->live++;
    return malloc(bytes);
}

static void fail_release(void *user, void *p)
{
    struct failing *f = user;
    f->live--;
    free(p);
}

hone_allocator kit_failing(struct failing *f)
{
    return (hone_allocator){fail_alloc, fail_release, f};
}
