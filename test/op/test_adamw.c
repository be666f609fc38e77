/* The operations of a training program together: AdamW's numbers against PyTorch's, in place in stores; skipped steps;
 * long slabs. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/kit.h"

enum { P, G, M, V, AVERAGE, ROLES };
static const char *const roles[ROLES] = {"param", "grad", "m", "v", "average"};

/* An update of n parameters (two tensors, so that padding lies between) over stores. */
struct update {
    hone_layout *l;
    hone_program *p;
    hone_store *s[ROLES];
};

static void update_open(struct update *u, struct kit *k, int64_t n, double max_norm, bool no_inplace)
{
    u->l = hone_layout_create(k->ctx, &k->err);
    hone_layout_add(u->l, "a", HONE_SHAPE(n), HONE_GROUP_DECAY, (hone_init){0}, &k->err);
    hone_layout_add(u->l, "b", HONE_SHAPE(1), HONE_GROUP_DECAY, (hone_init){0}, &k->err);
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t x[ROLES], out[3];
    for (int i = 0; i < ROLES; i++)
        x[i] = hone_read_group(g, roles[i], u->l, HONE_GROUP_DECAY);
    hone_t lr = hone_input(g, "lr", HONE_F32, HONE_SHAPE(1)), step = hone_input(g, "step", HONE_F32, HONE_SCALAR);
    hone_t decay = hone_input(g, "decay", HONE_F32, HONE_SCALAR), squares = hone_sum_squares(x[G]);
    hone_t scale = max_norm > 0 ? hone_clip_scale(squares, max_norm) : HONE_NONE;
    hone_adamw(x[P], x[G], x[M], x[V], lr, step, scale, hone_nonfinite(x[G]), 0.9, 0.99, 1e-6, 0.1, &out[0], &out[1],
               &out[2]);
    hone_write_group(out[0], roles[P], u->l, HONE_GROUP_DECAY);
    hone_write_group(out[1], roles[M], u->l, HONE_GROUP_DECAY);
    hone_write_group(out[2], roles[V], u->l, HONE_GROUP_DECAY);
    hone_write_group(hone_average(x[AVERAGE], out[0], decay), roles[AVERAGE], u->l, HONE_GROUP_DECAY);
    hone_output(hone_sqrt(squares), "norm");
    u->p = hone_compile(k->cpu, g, &(hone_compile_options){.no_inplace = no_inplace}, &k->err);
    hone_graph_destroy(g);
    for (int i = 0; i < ROLES; i++)
        u->s[i] = hone_store_create(k->ctx, u->l, &k->err);
}

static void update_close(struct update *u)
{
    for (int i = 0; i < ROLES; i++)
        hone_store_destroy(u->s[i]);
    hone_program_destroy(u->p);
    hone_layout_destroy(u->l);
}

static bool update_run(struct update *u, struct kit *k, float lr, float step, float decay)
{
    if (!u->p)
        return false;
    hone_store *bound[ROLES];
    const void *in[3] = {&lr, &step, &decay};
    for (int i = 0; i < hone_program_roles(u->p); i++)
        for (int r = 0; r < ROLES; r++)
            if (strcmp(hone_program_role_name(u->p, i), roles[r]) == 0)
                bound[i] = u->s[r];
    return kit_run(k, u->p, in, bound, 0);
}

/* From PyTorch 2.15 in float64: AdamW(lr=0.02/(t+1), betas=(0.9, 0.99), eps=1e-6, weight_decay=0.1). */
static const float start[4] = {0.5f, -1.25f, 2, 0}, gradient[4][4] = {{0.3f, -0.2f, 0.05f, 1},
                                                                      {-0.1f, 0.4f, 0, -1},
                                                                      {0.7f, 0.1f, -0.3f, 0.25f},
                                                                      {0, -0.6f, 0.2f, 0.125f}};
static const double after[4][4] = {{0.479000067, -1.2275001, 1.9760004, -0.01999998},
                                   {0.474511632, -1.22992867, 1.96730879, -0.0194536648},
                                   {0.469479614, -1.23188153, 1.96961556, -0.0199164891},
                                   {0.466341173, -1.22999222, 1.96889774, -0.0204517065}};
static const double last_m[4] = {0.07677, -0.03318, -0.003355, 0.0269};
static const double last_v[4] = {0.0058222791, 0.0056552796, 0.00131525748, 0.02027899};

static void as_pytorch(struct check *c, struct kit *k, bool no_inplace)
{
    if (!check_case(c, "four steps as PyTorch's%s", no_inplace ? ", not in place" : ""))
        return;
    struct update u;
    update_open(&u, k, 4, 0, no_inplace);
    hone_store_set(u.s[P], 0, start, 4, &k->err);
    hone_store_set(u.s[AVERAGE], 0, start, 4, &k->err);
    double average[4];
    for (int i = 0; i < 4; i++)
        average[i] = (double)start[i];
    for (int t = 0; t < 4; t++) {
        hone_store_set(u.s[G], 0, gradient[t], 4, &k->err);
        if (!CHECK_MSG(c, update_run(&u, k, 0.02f / (float)(t + 1), (float)(t + 1), 0.75f), "%s: %s", k->err.where,
                       k->err.text))
            break;
        for (int i = 0; i < 4; i++) {
            average[i] += 0.25 * (after[t][i] - average[i]);
            CHECK_MSG(c,
                      fabs((double)hone_store_get(u.s[P], 0)[i] - after[t][i]) <= 2e-7 * fmax(0.1, fabs(after[t][i])),
                      "step %d, %d: %.9g, should be %.9g", t + 1, i, (double)hone_store_get(u.s[P], 0)[i], after[t][i]);
            CHECK(c, fabs((double)hone_store_get(u.s[AVERAGE], 0)[i] - average[i]) <= 3e-7);
        }
    }
    for (int i = 0; i < 4 && k->err.code == HONE_OK; i++) {
        CHECK(c, fabs((double)hone_store_get(u.s[M], 0)[i] - last_m[i]) <= 1e-8);
        CHECK(c, fabs((double)hone_store_get(u.s[V], 0)[i] - last_v[i]) <= 2e-9);
    }
    if (u.p &&
        !no_inplace) /* norm and its root, count of bad ones, adamw, average; no copy: they write to the stores */
        CHECK_MSG(c, hone_program_plan(u.p).operations == 5, "%d operations", hone_program_plan(u.p).operations);
    update_close(&u);
}

static void skips(struct check *c, struct kit *k, int64_t n, float bad, bool no_inplace)
{
    if (!check_case(c, "a gradient of %g leaves %lld elements as they were%s", (double)bad, (long long)n,
                    no_inplace ? ", not in place" : ""))
        return;
    struct update u;
    update_open(&u, k, n, 1, no_inplace);
    float *x = malloc((size_t)n * sizeof *x);
    for (int r = 0; r < 4; r++) {
        for (int64_t i = 0; i < n; i++)
            x[i] = 0.1f * (float)(r + 1) + (float)(i % 13);
        x[n / 2] = r == G ? bad : -0.0f;
        hone_store_set(u.s[r], 0, x, n, &k->err);
    }
    hone_store *before[ROLES];
    for (int r = 0; r < ROLES; r++) {
        before[r] = hone_store_create(k->ctx, u.l, &k->err);
        hone_store_copy(before[r], u.s[r], &k->err);
    }
    /* no step number is wrong where none is made */
    CHECK_MSG(c, update_run(&u, k, 0.1f, 0, 1), "%s: %s", k->err.where, k->err.text);
    for (int r = 0; r < ROLES; r++)
        CHECK_MSG(c, !memcmp(hone_store_get(u.s[r], 0), hone_store_get(before[r], 0), (size_t)n * sizeof *x), "%s",
                  roles[r]);
    memset(x, 0, (size_t)n * sizeof *x); /* and the next, finite one moves */
    hone_store_set(u.s[G], 0, x, n, &k->err);
    CHECK_MSG(c, update_run(&u, k, 0.1f, 1, 1), "%s: %s", k->err.where, k->err.text);
    CHECK(c, hone_store_get(u.s[P], 0)[0] != hone_store_get(before[P], 0)[0]);
    CHECK(c, hone_store_get(u.s[M], 0)[0] != hone_store_get(before[M], 0)[0]);
    for (int r = 0; r < ROLES; r++)
        hone_store_destroy(before[r]);
    free(x);
    update_close(&u);
}

static void step_zero(struct check *c, struct kit *k)
{
    if (!check_case(c, "step 0 is refused"))
        return;
    struct update u;
    update_open(&u, k, 3, 0, false);
    CHECK(c, !update_run(&u, k, 0.1f, 0, 1));
    CHECK_MSG(c, k->err.code == HONE_E_ARG && strstr(k->err.text, "count from 1"), "%s", k->err.text);
    k->err = (hone_err){0};
    update_close(&u);
}

/* Both paths of a long slab: many threads give the bits of one. */
static void long_slab(struct check *c, struct kit *k)
{
    enum { N = 40003 };
    if (!check_case(c, "a long slab: 3 threads as 1, and as the reference"))
        return;
    static float x[N];
    struct update u[2];
    for (int t = 0; t < 2; t++) {
        update_open(&u[t], &k[t], N, 2, false);
        for (int r = 0; r < ROLES; r++) {
            for (int i = 0; i < N; i++)
                x[i] = (r == V ? 1e-3f : r == P || r == AVERAGE ? 1 : 0.02f) * (float)(1 + i * (r + 7) % 101);
            hone_store_set(u[t].s[r], 0, x, N, &k[t].err);
        }
        CHECK_MSG(c, update_run(&u[t], &k[t], 0.01f, 5, 0.9f), "%s: %s", k[t].err.where, k[t].err.text);
    }
    double norm = 0, worst = 0;
    for (int i = 0; i < N; i++)
        norm += 4e-4 * pow(1 + i * (G + 7) % 101, 2);
    const double scale = 2 / sqrt(norm);
    for (int i = 0; i < N; i++) {
        const double p = 1 + i * (P + 7) % 101, g = scale * 0.02 * (1 + i * (G + 7) % 101);
        const double m = 0.9 * 0.02 * (1 + i * (M + 7) % 101) + 0.1 * g;
        const double v = 0.99 * 1e-3 * (1 + i * (V + 7) % 101) + 0.01 * g * g;
        const double move = 0.01 / (1 - pow(0.9, 5)) * m / (sqrt(v / (1 - pow(0.99, 5))) + 1e-6);
        const double want = p * (1 - 0.01 * 0.1) - move;
        worst = fmax(worst, fabs((double)hone_store_get(u[0].s[P], 0)[i] - want) / (fabs(want) + 1));
    }
    CHECK_MSG(c, worst < 1e-6, "%g", worst);
    if (u[0].p && hone_result(u[0].p, 0))
        CHECK(c, fabs((double)*(const float *)hone_result(u[0].p, 0) - sqrt(norm)) <= 1e-6 * sqrt(norm));
    for (int r = 0; r < ROLES; r++)
        CHECK(c, !memcmp(hone_store_get(u[0].s[r], 0), hone_store_get(u[1].s[r], 0), N * sizeof(float)));
    update_close(&u[0]);
    update_close(&u[1]);
}

/* With a small rate the decay is about one ulp of a parameter: over many of them it must come out right, which it would
 * not as a factor, for 1 - 1e-7 is not a float. */
static void small_decay(struct check *c, struct kit *k)
{
    enum { N = 1000 };
    if (!check_case(c, "a small decay is not lost"))
        return;
    struct update u;
    float x[N];
    double moved = 0, want = 0;
    update_open(&u, k, N, 0, false);
    for (int i = 0; i < N; i++)
        x[i] = 1 + (float)i / N;
    hone_store_set(u.s[P], 0, x, N, &k->err);
    CHECK_MSG(c, update_run(&u, k, 1e-6f, 1, 1), "%s: %s", k->err.where, k->err.text);
    for (int i = 0; i < N; i++) {
        moved += (double)x[i] - (double)hone_store_get(u.s[P], 0)[i];
        want += 1e-7 * (double)x[i];
    }
    CHECK_MSG(c, fabs(moved - want) <= 0.08 * want, "%g, should be %g", moved, want);
    update_close(&u);
}

void suite_adamw(struct check *c)
{
    struct kit k[2];
    kit_open(&k[0], &(hone_ctx_options){.threads = 1});
    kit_open(&k[1], &(hone_ctx_options){.threads = 3});
    for (int i = 0; i < 2; i++) {
        as_pytorch(c, &k[0], i);
        skips(c, &k[1], 21, NAN, i);
        skips(c, &k[1], 20001, INFINITY, i);
    }
    step_zero(c, &k[0]);
    long_slab(c, k);
    small_decay(c, &k[0]);
    kit_close(&k[0], c);
    kit_close(&k[1], c);
}
