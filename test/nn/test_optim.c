/* The optimiser against plain arithmetic in double, group by group, and what it leaves alone. */
#include <math.h>
#include <string.h>

#include "graph/kit.h"
#include "hone/nn.h"

enum { W, B, F, TENSORS, SIZE = 4 }; /* a weight, a bias, a frozen one, each of SIZE numbers */

struct plain {
    double p[TENSORS][SIZE], m[TENSORS][SIZE], v[TENSORS][SIZE], average[TENSORS][SIZE];
    int steps;
};

static const float gradients[3][TENSORS][SIZE] = {
    {{1, -2, 0.5f, 0}, {0.25f, -1, 3, 0.125f}, {9, 9, 9, 9}},
    {{-0.5f, 1, 2, 0.75f}, {1, 1, -0.25f, 0}, {9, 9, 9, 9}},
    {{0.01f, 0.02f, -0.01f, 0}, {0, 0.03f, 0, 0.01f}, {9, 9, 9, 9}},
};

/* One step in double; returns the norm before the clip. */
static double plain_step(struct plain *s, const float g[TENSORS][SIZE], const hone_adamw_config *o,
                         const hone_optim_args *a)
{
    double norm = 0;
    s->steps++;
    for (int i = 0; i < 2 * SIZE; i++)
        norm += (double)g[i / SIZE][i % SIZE] * (double)g[i / SIZE][i % SIZE];
    norm = sqrt(norm) * a->scale;
    const double cut = o->max_norm > 0 && norm > o->max_norm ? o->max_norm / norm : 1;
    for (int t = 0; t < F; t++)
        for (int i = 0; i < SIZE; i++) {
            const double x = (double)g[t][i] * a->scale * cut;
            double *m = &s->m[t][i], *v = &s->v[t][i], *p = &s->p[t][i];
            *p -= a->lr * (t == W || o->decay_plain ? o->weight_decay : 0) * *p;
            *m = o->beta1 * *m + (1 - o->beta1) * x;
            *v = o->beta2 * *v + (1 - o->beta2) * x * x;
            *p -= a->lr * (*m / (1 - pow(o->beta1, s->steps))) / (sqrt(*v / (1 - pow(o->beta2, s->steps))) + o->eps);
            s->average[t][i] = a->decay * s->average[t][i] + (1 - a->decay) * *p;
        }
    return norm;
}

static hone_layout *layout(struct kit *k)
{
    hone_layout *l = hone_layout_create(k->ctx, &k->err);
    const hone_init init = {HONE_INIT_NORMAL, 2};
    hone_layout_add(l, "w", HONE_SHAPE(SIZE), HONE_GROUP_DECAY, init, &k->err);
    hone_layout_add(l, "b", HONE_SHAPE(2, 2), HONE_GROUP_PLAIN, init, &k->err);
    hone_layout_add(l, "f", HONE_SHAPE(SIZE), HONE_GROUP_FROZEN, init, &k->err);
    return l;
}

static void set_gradients(hone_optim *opt, const float g[TENSORS][SIZE], hone_err *err)
{
    for (int t = 0; t < TENSORS; t++)
        hone_store_set(hone_optim_store(opt, "grad"), t, g[t], SIZE, err);
}

static void same(struct check *c, const hone_optim *opt, const char *role, double want[TENSORS][SIZE], int tensors)
{
    const hone_store *s = hone_optim_store(opt, role);
    for (int i = 0; s && i < tensors * SIZE; i++) {
        const double got = (double)hone_store_get(s, i / SIZE)[i % SIZE], w = want[i / SIZE][i % SIZE];
        CHECK_MSG(c, fabs(got - w) <= 2e-6 * fmax(1, fabs(w)), "%s %d: %.9g, should be %.9g", role, i, got, w);
    }
    CHECK(c, s != NULL);
}

static void all_same(struct check *c, const hone_optim *opt, struct plain *s, bool average)
{
    static double zero[TENSORS][SIZE];
    same(c, opt, "param", s->p, TENSORS);
    same(c, opt, "m", s->m, TENSORS);
    same(c, opt, "v", s->v, TENSORS);
    same(c, opt, "grad", zero, F); /* those of frozen tensors are nobody's */
    if (average)
        same(c, opt, "average", s->average, TENSORS);
    CHECK(c, hone_optim_count(opt) == (uint64_t)s->steps);
}

static void plain_start(struct plain *s, const hone_store *param)
{
    *s = (struct plain){.steps = 0};
    for (int i = 0; i < TENSORS * SIZE; i++)
        s->p[i / SIZE][i % SIZE] = s->average[i / SIZE][i % SIZE] = (double)hone_store_get(param, i / SIZE)[i % SIZE];
}

static void arithmetic(struct check *c, struct kit *k)
{
    static const struct {
        const char *name;
        hone_adamw_config o;
        hone_optim_args a;
    } t[] = {
        {"as it comes", {0.9, 0.999, 1e-8, 0.01, false, 0, false}, {0.1, 1, 1}},
        {"large decay", {0.9, 0.999, 1e-8, 0.5, false, 0, false}, {0.1, 1, 1}},
        {"decay of all", {0.9, 0.99, 1e-8, 0.5, true, 0, false}, {0.1, 1, 1}},
        {"clipped", {0.9, 0.99, 0.5, 0, false, 0.75, false}, {0.1, 1, 1}},
        {"scaled, clipped", {0.9, 0.99, 0.5, 0, false, 0.75, false}, {0.1, 0.25, 1}},
        {"scaled", {0.5, 0.5, 0.5, 0, false, 0, false}, {0.1, 4, 1}},
        {"averaged", {0.9, 0.99, 1e-8, 0.1, false, 0, true}, {0.1, 1, 0.75}},
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        if (!check_case(c, "three steps by plain arithmetic: %s", t[i].name))
            continue;
        hone_layout *l = layout(k);
        hone_store *param = hone_store_create(k->ctx, l, &k->err);
        hone_store_init(param, 5, &k->err);
        hone_optim *opt = hone_optim_create(k->cpu, param, &t[i].o, &k->err);
        struct plain s;
        plain_start(&s, param);
        for (int step = 0; opt && step < 3; step++) {
            hone_optim_report r;
            set_gradients(opt, gradients[step], &k->err);
            CHECK(c, hone_optim_step(opt, &t[i].a, &r, &k->err) == HONE_OK && !r.skipped);
            const double norm = plain_step(&s, gradients[step], &t[i].o, &t[i].a);
            CHECK_MSG(c, fabs((double)r.grad_norm - norm) <= 1e-6 * norm, "%g, should be %g", (double)r.grad_norm,
                      norm);
            all_same(c, opt, &s, t[i].o.average);
        }
        CHECK_MSG(c, k->err.code == HONE_OK, "%s: %s", k->err.where, k->err.text);
        CHECK(c, !hone_optim_store(opt, "average") == !t[i].o.average);
        hone_optim_destroy(opt);
        hone_store_destroy(param);
        hone_layout_destroy(l);
    }
}

/* --- steps that are skipped, counts that are set --- */

static void skips(struct check *c, struct kit *k, bool average)
{
    const hone_adamw_config o = {0.9, 0.99, 1e-8, 0.1, false, 1, average};
    const hone_optim_args a = {0.1, 1, 0.5};
    if (!check_case(c, "a step with a gradient that is no number changes nothing and does not count%s",
                    average ? "" : ", no average"))
        return;
    hone_layout *l = layout(k);
    hone_store *param = hone_store_create(k->ctx, l, &k->err);
    hone_store_init(param, 5, &k->err);
    hone_optim *opt = hone_optim_create(k->cpu, param, &o, &k->err);
    struct plain s;
    plain_start(&s, param);
    for (int step = 0; opt && step < 6; step++) {
        hone_optim_report r;
        float g[TENSORS][SIZE];
        memcpy(g, gradients[step / 2], sizeof g);
        if (step % 2)
            g[step % 4 == 1 ? W : B][step / 2] = step == 1 ? NAN : step == 3 ? INFINITY : -INFINITY;
        set_gradients(opt, (const float(*)[SIZE])g, &k->err);
        CHECK(c, hone_optim_step(opt, &a, &r, &k->err) == HONE_OK && r.skipped == (step % 2 == 1));
        CHECK(c, isnan(r.grad_norm) == r.skipped);
        if (!r.skipped)
            plain_step(&s, gradients[step / 2], &o, &a);
        all_same(c, opt, &s, average);
    }
    CHECK_MSG(c, k->err.code == HONE_OK, "%s: %s", k->err.where, k->err.text);
    hone_optim_destroy(opt);
    hone_store_destroy(param);
    hone_layout_destroy(l);
}

/* Stores and count, copied, go on as the original does. */
static void resumes(struct check *c, struct kit *k)
{
    static const char *const roles[] = {"m", "v", "average"};
    const hone_adamw_config o = {0.9, 0.99, 1e-8, 0.1, false, 1, true};
    const hone_optim_args a = {0.1, 1, 0.5};
    if (!check_case(c, "stores and count are all there is to resume from"))
        return;
    hone_layout *l = layout(k);
    hone_store *param[2];
    hone_optim *opt[2];
    for (int i = 0; i < 2; i++) {
        param[i] = hone_store_create(k->ctx, l, &k->err);
        hone_store_init(param[i], 5, &k->err);
        opt[i] = hone_optim_create(k->cpu, param[i], &o, &k->err);
    }
    for (int step = 0; step < 3 && opt[0] && opt[1]; step++) {
        if (step == 2) {
            hone_store_copy(param[1], param[0], &k->err);
            for (int i = 0; i < 3; i++)
                hone_store_copy(hone_optim_store(opt[1], roles[i]), hone_optim_store(opt[0], roles[i]), &k->err);
            hone_optim_set_count(opt[1], hone_optim_count(opt[0]));
        }
        for (int i = step < 2 ? 0 : 1; i >= 0; i--) {
            set_gradients(opt[i], gradients[step], &k->err);
            CHECK(c, hone_optim_step(opt[i], &a, NULL, &k->err) == HONE_OK);
        }
    }
    for (int t = 0; t < TENSORS; t++) {
        CHECK(c, !memcmp(hone_store_get(param[0], t), hone_store_get(param[1], t), SIZE * sizeof(float)));
        CHECK(c, !memcmp(hone_store_get(hone_optim_store(opt[0], "average"), t),
                         hone_store_get(hone_optim_store(opt[1], "average"), t), SIZE * sizeof(float)));
    }
    for (int i = 0; i < 2; i++) {
        hone_optim_destroy(opt[i]);
        hone_store_destroy(param[i]);
    }
    hone_layout_destroy(l);
}

/* --- what is trained --- */

static void frozen(struct check *c, struct kit *k)
{
    if (!check_case(c, "frozen parameters and those of other roles get no gradient"))
        return;
    hone_layout *l = hone_layout_create(k->ctx, &k->err);
    hone_nn nn = {.g = hone_graph_create(k->ctx, &k->err), .layout = l}, fixed = nn, other = nn;
    fixed.frozen = true;
    other.role = "target";
    hone_t x = hone_input(nn.g, "x", HONE_F32, HONE_SHAPE(2, 3));
    hone_t y = hone_nn_linear(&nn, "top", hone_nn_linear(&fixed, "bottom", x, 4, true), 1, true);
    y = hone_sub(y, hone_nn_linear(&other, "top", hone_nn_linear(&fixed, "bottom", x, 4, true), 1, true));
    hone_nn_gradients(&nn, hone_sum(hone_mul(y, y), HONE_AXES_ALL, false), NULL);
    hone_program *p = hone_compile(k->cpu, nn.g, NULL, &k->err);
    CHECK_MSG(c, p != NULL, "%s: %s", k->err.where, k->err.text);
    hone_store *s[3];
    for (int i = 0; i < 3; i++) {
        s[i] = hone_store_create(k->ctx, l, &k->err);
        if (i < 2)
            hone_store_init(s[i], 1 + (uint64_t)i, &k->err);
    }
    if (p && CHECK(c, hone_program_roles(p) == 3)) {
        hone_store *stores[3] = {NULL};
        stores[hone_program_role(p, "param")] = s[0];
        stores[hone_program_role(p, "target")] = s[1];
        stores[hone_program_role(p, "grad")] = s[2];
        const float in[6] = {1, 2, 3, -1, 0.5f, 2};
        CHECK(c, kit_run(k, p, (const void *[]){in}, stores, 0));
        CHECK(c, hone_store_get(s[2], hone_layout_find(l, "top/weight"))[0] != 0);
        CHECK(c, hone_store_get(s[2], hone_layout_find(l, "top/bias"))[0] != 0);
        for (int i = 0; i < 12; i++)
            CHECK(c, hone_store_get(s[2], hone_layout_find(l, "bottom/weight"))[i] == 0);
        for (int i = 0; i < 4; i++)
            CHECK(c, hone_store_get(s[2], hone_layout_find(l, "bottom/bias"))[i] == 0);
    }
    hone_program_destroy(p);
    hone_graph_destroy(nn.g);
    for (int i = 0; i < 3; i++)
        hone_store_destroy(s[i]);
    hone_layout_destroy(l);
}

/* Three steps of a long group on `threads` threads; 5 stores, one behind the other. */
static void steps_on(struct check *c, int threads, int64_t n, float *all)
{
    static const char *const roles[] = {"param", "grad", "m", "v", "average"};
    const hone_adamw_config o = {0.9, 0.99, 1e-8, 0.1, false, 1, true};
    struct kit k;
    kit_open(&k, &(hone_ctx_options){.threads = threads});
    hone_layout *l = hone_layout_create(k.ctx, &k.err);
    hone_layout_add(l, "w", HONE_SHAPE(n), HONE_GROUP_DECAY, (hone_init){HONE_INIT_NORMAL, 2}, &k.err);
    hone_store *param = hone_store_create(k.ctx, l, &k.err);
    hone_store_init(param, 5, &k.err);
    hone_optim *opt = hone_optim_create(k.cpu, param, &o, &k.err);
    for (int step = 0; opt && step < 3; step++) {
        for (int64_t i = 0; i < n; i++)
            all[i] = (float)((i * 7 + step * 3) % 101 - 50) / 64;
        hone_store_set(hone_optim_store(opt, "grad"), 0, all, (size_t)n, &k.err);
        hone_optim_step(opt, &(hone_optim_args){0.1, 1, 0.5}, NULL, &k.err);
    }
    CHECK_MSG(c, k.err.code == HONE_OK, "%s: %s", k.err.where, k.err.text);
    for (int r = 0; opt && r < 5; r++)
        memcpy(all + r * n, hone_store_get(hone_optim_store(opt, roles[r]), 0), (size_t)n * sizeof *all);
    hone_optim_destroy(opt);
    hone_store_destroy(param);
    hone_layout_destroy(l);
    kit_close(&k, c);
}

static void long_group(struct check *c)
{
    enum { N = 40003 };
    static float all[2][5 * N];
    if (!check_case(c, "a long group: 3 threads as 1, gradients zero"))
        return;
    steps_on(c, 1, N, all[0]);
    steps_on(c, 3, N, all[1]);
    CHECK(c, !memcmp(all[0], all[1], sizeof all[0]));
    for (int i = 0; i < N; i++)
        if (all[0][N + i] < 0 || all[0][N + i] > 0)
            CHECK_MSG(c, false, "gradient %d: %g", i, (double)all[0][N + i]);
    CHECK(c, all[0][0] < all[0][4 * N] || all[0][0] > all[0][4 * N]); /* the average lags behind */
}

void suite_optim(struct check *c)
{
    struct kit k;
    kit_open(&k, NULL);
    arithmetic(c, &k);
    skips(c, &k, true);
    skips(c, &k, false);
    long_group(c);
    resumes(c, &k);
    frozen(c, &k);
    if (check_case(c, "nothing leaks"))
        kit_close(&k, c);
    else
        kit_close(&k, &(struct check){.open = 1});
}
