/* The profile of a program: rows, counts, times, memory. */
#include <string.h>

#include "base/clock.h"
#include "graph/kit.h"
#include "hone/nn.h"

enum { STEPS = 5, B = 4, N = 8 };

static hone_t body(void *user, hone_t x, const hone_t *rows)
{
    const hone_nn *nn = user;
    return hone_add(hone_tanh(hone_nn_linear(nn, "dense", x, N, true)), rows[0]);
}

/* y = exp(chain of tanh(dense(x)) + row), and a product that depends on parameters alone. */
static hone_program *make(struct kit *k, hone_layout *l)
{
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_nn nn = {.g = g, .layout = l};
    hone_t table = hone_full(g, HONE_SHAPE(STEPS, 1), 0.25f), x = hone_input(g, "x", HONE_F32, HONE_SHAPE(B, N));
    hone_t y = hone_chain(x, &(hone_chain_options){.steps = STEPS, .tables = &table, .n_tables = 1}, body, &nn);
    hone_scope_push(g, "last");
    hone_t w = hone_nn_param(&nn, "w", HONE_SHAPE(N, N), HONE_GROUP_DECAY, (hone_init){HONE_INIT_NORMAL, 0.1f});
    hone_output(hone_exp(hone_matmul(y, hone_sin(w), false, false)), "y");
    hone_scope_pop(g);
    hone_program *p = hone_compile(k->cpu, g, &(hone_compile_options){.name = "p", .plain = true}, &k->err);
    hone_graph_destroy(g);
    return p;
}

/* The one row of this operation; calls < 0: there are none or several. */
static hone_profile_row row(const hone_program *p, const char *op)
{
    hone_profile_row found = {.per_run = -1, .layer = "", .call = ""};
    int n = 0;
    for (int i = 0; i < hone_program_profile_rows(p); i++)
        if (!strcmp(hone_program_profile_row(p, i).op, op)) {
            found = hone_program_profile_row(p, i);
            n++;
        }
    if (n != 1)
        found.per_run = -n;
    return found;
}

static void rows(struct check *c, hone_program *p)
{
    if (!check_case(c, "a row says what is called, how often, and what it costs"))
        return;
    const hone_profile_row dense = row(p, "linear"), sine = row(p, "sin"), product = row(p, "matmul"),
                           e = row(p, "exp");
    CHECK_MSG(c, dense.per_run == STEPS && dense.calls == 3 * STEPS, "%d of %d", (int)dense.calls, (int)dense.per_run);
    CHECK_MSG(c, !strcmp(dense.layer, "dense"), "%s", dense.layer);
    CHECK_MSG(c, !strcmp(dense.call, "f32[4,8] f32[8,8] f32[8]"), "%s", dense.call);
    CHECK(c, dense.flops == 2.0 * B * N * N && !dense.prepare);
    CHECK_MSG(c, dense.fixed_bytes == 4.0 * (N * N + N), "%g", dense.fixed_bytes);
    CHECK(c, dense.bytes == 4.0 * (N * N + N + 2 * B * N));
    CHECK_MSG(c, sine.prepare && sine.per_run == 1 && sine.calls == 1, "%d", (int)sine.calls);
    CHECK_MSG(c, product.fixed_bytes == 4.0 * N * N && product.calls == 3, "%g", product.fixed_bytes);
    CHECK_MSG(c, !strcmp(e.layer, "last") && e.per_run == 1 && e.calls == 3 && e.fixed_bytes == 0, "%s", e.layer);
    CHECK(c, row(p, "tanh").calls == 3 * STEPS && row(p, "loop").per_run == 0);
    CHECK(c, !*hone_program_profile_row(p, -1).op && !*hone_program_profile_row(p, 99).op);
}

static void times(struct check *c, hone_program *p, uint64_t wall)
{
    if (!check_case(c, "times add up to no more than passed"))
        return;
    uint64_t sum = 0;
    for (int i = 0; i < hone_program_profile_rows(p); i++) {
        const hone_profile_row r = hone_program_profile_row(p, i);
        CHECK_MSG(c, r.min_ns > 0 && r.calls * r.min_ns <= r.ns, "%s: %d calls, least %d, all %d", r.op, (int)r.calls,
                  (int)r.min_ns, (int)r.ns);
        sum += r.ns;
    }
    CHECK_MSG(c, sum > 0 && sum <= wall, "%d of %d ns", (int)sum, (int)wall);
}

/* Those of the last run, which prepared nothing. */
static void events(struct check *c, hone_program *p)
{
    if (!check_case(c, "events are the calls of the last run, one after the other"))
        return;
    int64_t wanted = 0, dense = 0;
    uint64_t end = 0;
    for (int i = 0; i < hone_program_profile_rows(p); i++)
        wanted += hone_program_profile_row(p, i).prepare ? 0 : hone_program_profile_row(p, i).per_run;
    const int64_t n = hone_program_profile_events(p);
    CHECK_MSG(c, n == wanted && n > 2 * STEPS, "%d of %d", (int)n, (int)wanted);
    for (int64_t i = 0; i < n; i++) {
        const hone_profile_event e = hone_program_profile_event(p, i);
        CHECK_MSG(c, e.begin_ns >= end && (i > 0 || e.begin_ns == 0), "event %d", (int)i);
        end = e.begin_ns + e.ns;
        dense += !strcmp(hone_program_profile_row(p, e.row).op, "linear");
    }
    CHECK_MSG(c, dense == STEPS, "%d", (int)dense);
    CHECK(c, hone_program_profile_event(p, n).row == -1 && hone_program_profile_event(p, -1).row == -1);
}

static void on_and_off(struct check *c, struct kit *k, hone_program *p, const void *const *in, hone_store *s)
{
    if (!check_case(c, "turned on again counters are zero; off there is nothing, and memory is given back"))
        return;
    CHECK(c, hone_program_profile(p, true, &k->err) == HONE_OK);
    CHECK(c, row(p, "linear").calls == 0 && row(p, "linear").ns == 0 && hone_program_profile_events(p) == 0);
    CHECK(c, kit_run(k, p, in, &s, 0) && row(p, "linear").calls == STEPS && row(p, "sin").calls == 0);
    hone_program_profile(p, false, &k->err);
    CHECK(c, hone_program_profile_rows(p) == 0 && hone_program_profile_events(p) == 0);
    const size_t off = hone_ctx_mem(k->ctx).live_bytes;
    hone_program_profile(p, true, &k->err);
    CHECK(c, hone_ctx_mem(k->ctx).live_bytes > off);
    const uint64_t before = hone_ctx_mem(k->ctx).allocations;
    CHECK(c, kit_run(k, p, in, &s, 0) && kit_run(k, p, in, &s, 0));
    CHECK(c, hone_ctx_mem(k->ctx).allocations == before);
    hone_program_profile(p, false, &k->err);
    CHECK(c, hone_ctx_mem(k->ctx).live_bytes == off && kit_run(k, p, in, &s, 0));
    CHECK(c, hone_ctx_mem(k->ctx).live_bytes == off);
}

static void under_way(struct check *c, struct kit *k, hone_program *p, const void *const *in, hone_store *s)
{
    if (!check_case(c, "refused while a run is under way"))
        return;
    hone_err err = {0};
    hone_run(p, &(hone_run_args){.inputs = in, .stores = &s}, &k->err);
    CHECK(c, hone_program_profile(p, true, &err) == HONE_E_STATE && hone_program_profile_rows(p) == 0);
    CHECK(c, hone_wait(p, &k->err) == HONE_OK);
}

static void memory_fails(struct check *c)
{
    if (!check_case(c, "each allocation may fail"))
        return;
    struct failing f = {0};
    hone_allocator a = kit_failing(&f);
    struct kit k;
    kit_open(&k, &(hone_ctx_options){.allocator = &a, .threads = 1});
    hone_layout *l = hone_layout_create(k.ctx, &k.err);
    hone_program *p = make(&k, l);
    hone_status s = HONE_E_NOMEM;
    int tries = 0;
    for (; s != HONE_OK && tries < 100; tries++) {
        hone_err err = {0};
        f.calls = 0;
        f.countdown = tries + 1;
        s = hone_program_profile(p, true, &err);
        f.countdown = 0;
        CHECK_MSG(c, s == HONE_OK || (s == HONE_E_NOMEM && hone_program_profile_rows(p) == 0), "%s", err.text);
    }
    CHECK_MSG(c, tries > 4 && tries < 100, "%d", tries);
    hone_program_destroy(p); /* takes the profile with it */
    hone_layout_destroy(l);
    kit_close(&k, c);
    CHECK(c, f.live == 0);
}

/* All that a run touches lies in the slab, and the plan wastes no more than its alignment. */
static void extent(struct check *c, hone_program *p)
{
    if (!check_case(c, "the slab is used to its end"))
        return;
    const size_t planned = hone_program_plan(p).bytes, used = profile_extent(p);
    CHECK_MSG(c, used <= planned && used + 2 * MEM_ALIGN >= planned, "%zu of %zu", used, planned);
}

void suite_profile(struct check *c)
{
    struct kit k;
    kit_open(&k, NULL);
    float x[B * N];
    for (int i = 0; i < B * N; i++)
        x[i] = 0.1f * (float)i;
    const void *in[1] = {x};
    hone_layout *l = hone_layout_create(k.ctx, &k.err);
    hone_program *p = make(&k, l);
    hone_store *s = p ? hone_store_create(k.ctx, l, &k.err) : NULL;
    if (s)
        hone_store_init(s, 1, &k.err);
    if (s && hone_program_profile(p, true, &k.err) == HONE_OK) {
        const uint64_t begin = clock_ns();
        for (uint64_t i = 0; i < 3; i++)
            kit_run(&k, p, in, &s, i);
        const uint64_t wall = clock_ns() - begin;
        rows(c, p);
        times(c, p, wall);
        events(c, p);
        extent(c, p);
        on_and_off(c, &k, p, in, s);
        under_way(c, &k, p, in, s);
    }
    check_case(c, "nothing failed");
    CHECK_MSG(c, s && k.err.code == HONE_OK, "%s: %s", k.err.where, k.err.text);
    memory_fails(c);
    hone_program_destroy(p);
    hone_store_destroy(s);
    hone_layout_destroy(l);
    kit_close(&k, c);
}
