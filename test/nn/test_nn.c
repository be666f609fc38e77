/* Layers: parameters, shapes, values against plain arithmetic, refusals. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/kit.h"
#include "graph/store.h"
#include "hone/nn.h"

struct room {
    struct kit k;
    hone_layout *layout;
    hone_nn nn;
    hone_store *param;
    hone_program *p;
};

static void room_open(struct room *r)
{
    *r = (struct room){0};
    kit_open(&r->k, &(hone_ctx_options){.threads = 1});
    r->layout = hone_layout_create(r->k.ctx, &r->k.err);
    r->nn = (hone_nn){.g = hone_graph_create(r->k.ctx, &r->k.err), .layout = r->layout};
}

static void room_close(struct room *r, struct check *c)
{
    hone_program_destroy(r->p);
    hone_store_destroy(r->param);
    hone_graph_destroy(r->nn.g);
    hone_layout_destroy(r->layout);
    kit_close(&r->k, c);
}

/* Draws the parameters, makes every gain and bias something else than 1 and 0, runs, and returns output "y". */
static const float *run(struct room *r, struct check *c, const void *const *in)
{
    hone_err *err = &r->k.err;
    r->param = hone_store_create(r->k.ctx, r->layout, err);
    for (int i = 0; r->param && i < hone_layout_count(r->layout); i++) {
        hone_shape s = hone_layout_shape(r->layout, i);
        int64_t n = hone_numel(&s);
        float *v = malloc((size_t)n * sizeof *v + 1);
        for (int64_t j = 0; j < n; j++)
            v[j] = 0.4f * sinf((float)(7 * i + j + 1));
        hone_store_set(r->param, i, v, n, err);
        free(v);
    }
    r->p = hone_compile(r->k.cpu, r->nn.g, NULL, err);
    hone_store *stores[1] = {r->param};
    if (CHECK_MSG(c, kit_run(&r->k, r->p, in, stores, 0), "%s: %s", err->where, err->text))
        return hone_result(r->p, hone_program_output(r->p, "y"));
    return NULL;
}

static const float *get(const struct room *r, const char *name)
{
    return hone_store_get(r->param, hone_layout_find(r->layout, name));
}

static void ramp(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = cosf(3.0f * (float)i + 1);
}

/* --- parameters --- */

static int group_of(hone_layout *l, const char *name)
{
    int64_t at = layout_tensor(l, hone_layout_find(l, name)).at;
    int g = HONE_GROUPS - 1;
    while (g > 0 && at < layout_group(l, g).at)
        g--;
    return g;
}

static void names_and_groups(struct check *c)
{
    struct room r;
    room_open(&r);
    hone_t x = hone_input(r.nn.g, "x", HONE_F32, HONE_SHAPE(2, 6));
    hone_scope_push(r.nn.g, "net");
    hone_t h = hone_nn_linear(&r.nn, "a", x, 4, true), same = hone_nn_linear(&r.nn, "a", x, 4, true);
    CHECK(c, hone_layout_count(r.layout) == 2 && strcmp(hone_scope(r.nn.g), "net") == 0);
    hone_nn fixed = r.nn;
    fixed.frozen = true;
    hone_nn_linear(&fixed, "b", h, 4, false);
    hone_nn_layer_norm(&r.nn, NULL, hone_add(h, same));
    hone_nn_embedding(&r.nn, "tokens", hone_input_index(r.nn.g, "i", HONE_SHAPE(3), 9), 9, 5);
    hone_scope_pop(r.nn.g);
    CHECK(c, hone_layout_count(r.layout) == 6 && hone_graph_status(r.nn.g, NULL) == HONE_OK);
    CHECK(c, group_of(r.layout, "net/a/weight") == HONE_GROUP_DECAY);
    CHECK(c, group_of(r.layout, "net/a/bias") == HONE_GROUP_PLAIN);
    CHECK(c, group_of(r.layout, "net/b/weight") == HONE_GROUP_FROZEN);
    CHECK(c,
          group_of(r.layout, "net/weight") == HONE_GROUP_PLAIN && group_of(r.layout, "net/bias") == HONE_GROUP_PLAIN);
    CHECK(c, group_of(r.layout, "net/tokens/weight") == HONE_GROUP_PLAIN);
    /* the layout is fixed by now: the same layer may be built again, a new one may not */
    hone_nn again = {.g = hone_graph_create(r.k.ctx, &r.k.err), .layout = r.layout, .role = "average"};
    x = hone_input(again.g, "x", HONE_F32, HONE_SHAPE(5, 6));
    hone_scope_push(again.g, "net");
    hone_nn_linear(&again, "a", x, 4, true);
    CHECK(c, hone_graph_status(again.g, NULL) == HONE_OK && !strcmp(again.g->roles[0].name, "average"));
    hone_nn_linear(&again, "aa", x, 4, true);
    hone_err err = {0};
    CHECK(c, hone_graph_status(again.g, &err) == HONE_E_ARG && strstr(err.where, "net/aa/weight") != NULL);
    hone_graph_destroy(again.g);
    room_close(&r, c);
}

/* Mean square, and largest, of a tensor over what its uniform distribution allows. */
static void check_uniform(struct check *c, const struct room *r, const char *name, double bound)
{
    int i = hone_layout_find(r->layout, name);
    hone_shape s = hone_layout_shape(r->layout, i);
    const float *x = hone_store_get(r->param, i);
    double squares = 0, most = 0;
    int64_t n = hone_numel(&s);
    if (!CHECK_MSG(c, x != NULL, "%s", name))
        return;
    for (int64_t k = 0; k < n; k++) {
        squares += (double)x[k] * (double)x[k] / (double)n;
        most = fmax(most, fabs((double)x[k]));
    }
    CHECK_MSG(c, most <= bound * (1 + 1e-6) && most > 0.9 * bound, "%s: at most %g, wanted %g", name, most, bound);
    CHECK_MSG(c, fabs(squares / (bound * bound / 3) - 1) < 0.3, "%s: mean square %g", name, squares);
}

static void initial_values(struct check *c)
{
    struct room r;
    room_open(&r);
    hone_t x = hone_input(r.nn.g, "x", HONE_F32, HONE_SHAPE(2, 25, 8));
    hone_nn_linear(&r.nn, "linear", x, 50, true);
    hone_nn_conv1d(&r.nn, "conv", x, 40, &(hone_conv){.kernel = 3, .padding = HONE_PAD_SAME});
    hone_nn_conv_transpose1d(&r.nn, "up", x, 16, &(hone_conv){.kernel = 4, .stride = 2, .padding = 1});
    hone_nn_group_norm(&r.nn, "norm", x, 5);
    hone_nn_embedding(&r.nn, "tokens", hone_input_index(r.nn.g, "i", HONE_SHAPE(3), 99), 99, 50);
    hone_nn_attention(&r.nn, "attend", hone_input(r.nn.g, "s", HONE_F32, HONE_SHAPE(2, 3, 24)), x, HONE_NONE, 4);
    CHECK(c, hone_graph_status(r.nn.g, &r.k.err) == HONE_OK);
    r.param = hone_store_create(r.k.ctx, r.layout, &r.k.err);
    hone_store_init(r.param, 5, &r.k.err);
    check_uniform(c, &r, "linear/weight", 1 / sqrt(8));
    check_uniform(c, &r, "linear/bias", 1 / sqrt(8));
    check_uniform(c, &r, "conv/weight", 1 / sqrt(75));
    check_uniform(c, &r, "conv/bias", 1 / sqrt(75));
    check_uniform(c, &r, "up/weight", 1 / sqrt(64));
    check_uniform(c, &r, "attend/query/weight", sqrt(6.0 / 48));
    check_uniform(c, &r, "attend/key/weight", sqrt(6.0 / 32));
    check_uniform(c, &r, "attend/output/weight", 1 / sqrt(24));
    double squares = 0;
    for (int i = 0; i < 99 * 50; i++)
        squares += (double)get(&r, "tokens/weight")[i] * (double)get(&r, "tokens/weight")[i] / (99 * 50);
    CHECK_MSG(c, fabs(squares - 1) < 0.1, "embedding: mean square %g", squares);
    for (int i = 0; i < 24; i++)
        CHECK(c,
              get(&r, "norm/weight")[i] == 1 && get(&r, "norm/bias")[i] == 0 && get(&r, "attend/value/bias")[i] == 0);
    room_close(&r, c);
}

static void long_names(struct check *c)
{
    struct room r;
    char name[80];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    room_open(&r);
    hone_t x = hone_input(r.nn.g, "x", HONE_F32, HONE_SHAPE(2, 6));
    for (int i = 0; i < 8; i++)
        hone_scope_push(r.nn.g, "%s", name);
    hone_nn_linear(&r.nn, "a", x, 4, true);
    CHECK(c, hone_graph_status(r.nn.g, &r.k.err) == HONE_E_ARG && strstr(r.k.err.text, "too long") != NULL);
    CHECK(c, hone_layout_count(r.layout) == 0);
    room_close(&r, c);
}

/* --- values --- */

static void near(struct check *c, const char *what, const float *got, const double *want, int n)
{
    double worst = 0, most = 0;
    for (int i = 0; got && i < n; i++) {
        worst = fmax(worst, fabs((double)got[i] - want[i]));
        most = fmax(most, fabs(want[i]));
    }
    CHECK_MSG(c, got && worst <= 2e-6 * most && most > 0, "%s: off by %g of %g", what, worst, most);
}

/* y[out] = x[in] w' + b */
static void dense(const double *x, int in, const float *w, const float *b, int out, double *y)
{
    for (int o = 0; o < out; o++) {
        y[o] = (double)b[o];
        for (int i = 0; i < in; i++)
            y[o] += x[i] * (double)w[o * in + i];
    }
}

enum { B = 2, L = 3, M = 4, D = 6, E = 5, H = 2, W = D / H };

/* One head of one query over what it may attend to; zeros if that is nothing. */
static void attend(const double *q, const double *k, const double *v, const uint8_t *mask, double *y)
{
    double s[M], sum = 0, most = -1e300;
    for (int j = 0; j < M; j++) {
        s[j] = 0;
        for (int e = 0; e < W; e++)
            s[j] += q[e] * k[j * D + e] / sqrt(W);
        if (mask[j])
            most = fmax(most, s[j]);
    }
    for (int j = 0; j < M; j++)
        sum += mask[j] ? exp(s[j] - most) : 0;
    for (int e = 0; e < W; e++) {
        y[e] = 0;
        for (int j = 0; j < M; j++)
            y[e] += mask[j] ? exp(s[j] - most) / sum * v[j * D + e] : 0;
    }
}

static void attention_reference(const struct room *r, const float *x, const float *memory, const uint8_t *mask,
                                double *y)
{
    const char *const name[] = {"a/key/weight", "a/key/bias", "a/value/weight", "a/value/bias"};
    double q[D], k[M * D], v[M * D], h[D], row[D];
    for (int b = 0; b < B; b++) {
        for (int j = 0; j < M; j++) {
            for (int e = 0; e < E; e++)
                row[e] = (double)memory[(b * M + j) * E + e];
            dense(row, E, get(r, name[0]), get(r, name[1]), D, k + j * D);
            dense(row, E, get(r, name[2]), get(r, name[3]), D, v + j * D);
        }
        for (int i = 0; i < L; i++) {
            for (int e = 0; e < D; e++)
                row[e] = (double)x[(b * L + i) * D + e];
            dense(row, D, get(r, "a/query/weight"), get(r, "a/query/bias"), D, q);
            for (int head = 0; head < H; head++)
                attend(q + head * W, k + head * W, v + head * W, mask + (b * L + i) * M, h + head * W);
            dense(h, D, get(r, "a/output/weight"), get(r, "a/output/bias"), D, y + (b * L + i) * D);
        }
    }
}

static void attention(struct check *c)
{
    struct room r;
    float x[B * L * D], memory[B * M * E];
    uint8_t mask[B * L * M];
    double want[B * L * D];
    ramp(x, B * L * D);
    ramp(memory, B * M * E);
    for (int i = 0; i < B * L * M; i++)
        mask[i] = i % 3 != 0 && i >= M; /* the first query may attend nowhere */
    room_open(&r);
    hone_t q = hone_input(r.nn.g, "x", HONE_F32, HONE_SHAPE(B, L, D));
    hone_t from = hone_input(r.nn.g, "memory", HONE_F32, HONE_SHAPE(B, M, E));
    hone_t m = hone_input(r.nn.g, "mask", HONE_BOOL, HONE_SHAPE(B, 1, L, M));
    hone_output(hone_nn_attention(&r.nn, "a", q, from, m, H), "y");
    hone_output(hone_nn_attention(&r.nn, "self", q, HONE_NONE, HONE_NONE, H), "self");
    const float *y = run(&r, c, (const void *[]){x, memory, mask});
    if (y) {
        attention_reference(&r, x, memory, mask, want);
        near(c, "attention", y, want, B * L * D);
    }
    room_close(&r, c);
}

static void norms(struct check *c)
{
    struct room r;
    float x[12];
    double group[12], layer[12], rms[12];
    ramp(x, 12);
    room_open(&r);
    hone_t t = hone_input(r.nn.g, "x", HONE_F32, HONE_SHAPE(1, 4, 3));
    hone_output(hone_nn_group_norm(&r.nn, "g", t, 2), "y");
    hone_output(hone_nn_layer_norm(&r.nn, "l", t), "layer");
    hone_output(hone_nn_rms_norm(&r.nn, "r", t), "rms");
    const float *y = run(&r, c, (const void *[]){x});
    for (int i = 0; y && i < 12; i++) {
        const int n[2] = {6, 3}, ch = i / 3, f = i % 3;
        double mean[2] = {0}, var[2] = {0}, sq = 0;
        for (int k = 0; k < 2; k++) {
            const float *from = x + i / n[k] * n[k];
            for (int j = 0; j < n[k]; j++)
                mean[k] += (double)from[j] / n[k];
            for (int j = 0; j < n[k]; j++)
                var[k] += ((double)from[j] - mean[k]) * ((double)from[j] - mean[k]) / n[k];
        }
        for (int j = 0; j < 3; j++)
            sq += (double)x[3 * ch + j] * (double)x[3 * ch + j] / 3;
        group[i] = ((double)x[i] - mean[0]) / sqrt(var[0] + 1e-5) * (double)get(&r, "g/weight")[ch] +
                   (double)get(&r, "g/bias")[ch];
        layer[i] = ((double)x[i] - mean[1]) / sqrt(var[1] + 1e-5) * (double)get(&r, "l/weight")[f] +
                   (double)get(&r, "l/bias")[f];
        rms[i] = (double)x[i] / sqrt(sq + 1e-6) * (double)get(&r, "r/weight")[f];
    }
    if (y) {
        near(c, "group", y, group, 12);
        near(c, "layer", hone_result(r.p, hone_program_output(r.p, "layer")), layer, 12);
        near(c, "rms", hone_result(r.p, hone_program_output(r.p, "rms")), rms, 12);
    }
    CHECK(c, hone_layout_find(r.layout, "r/bias") < 0);
    room_close(&r, c);
}

/* A strided, dilated, padded convolution and its transpose, and an embedding. */
static void convolutions(struct check *c)
{
    enum { LEN = 9, OUT = 2, IN = 3, K = 3, LONG = (LEN - 1) * 2 - 2 + 4 + 1 };
    struct room r;
    float x[IN * LEN];
    double conv[OUT * 5], up[OUT * LONG], rows[3 * 4];
    const int32_t index[3] = {4, 0, 4};
    ramp(x, IN * LEN);
    room_open(&r);
    hone_t t = hone_input(r.nn.g, "x", HONE_F32, HONE_SHAPE(1, IN, LEN));
    hone_t i = hone_input_index(r.nn.g, "i", HONE_SHAPE(3), 5);
    hone_conv o = {.kernel = K, .stride = 2, .dilation = 2, .padding = HONE_PAD_SAME};
    hone_conv u = {.kernel = 4, .stride = 2, .padding = 1, .output_padding = 1, .no_bias = true};
    hone_output(hone_nn_conv1d(&r.nn, "c", t, OUT, &o), "y");
    hone_output(hone_nn_conv_transpose1d(&r.nn, "u", t, OUT, &u), "up");
    hone_output(hone_nn_embedding(&r.nn, "e", i, 5, 4), "rows");
    const float *y = run(&r, c, (const void *[]){x, index});
    memset(up, 0, sizeof up);
    for (int a = 0; y && a < OUT; a++)
        for (int m = 0; m < 5; m++) {
            conv[a * 5 + m] = (double)get(&r, "c/bias")[a];
            for (int ch = 0; ch < IN; ch++)
                for (int k = 0; k < K; k++) {
                    int at = 2 * m + 2 * k - 2;
                    if (at >= 0 && at < LEN)
                        conv[a * 5 + m] +=
                            (double)get(&r, "c/weight")[(a * IN + ch) * K + k] * (double)x[ch * LEN + at];
                }
        }
    for (int a = 0; y && a < OUT; a++)
        for (int ch = 0; ch < IN; ch++)
            for (int l = 0; l < LEN; l++)
                for (int k = 0; k < 4; k++) {
                    int at = 2 * l + k - 1;
                    if (at >= 0 && at < LONG)
                        up[a * LONG + at] +=
                            (double)get(&r, "u/weight")[(ch * OUT + a) * 4 + k] * (double)x[ch * LEN + l];
                }
    for (int k = 0; y && k < 12; k++)
        rows[k] = (double)get(&r, "e/weight")[index[k / 4] * 4 + k % 4];
    if (y) {
        near(c, "convolution", y, conv, OUT * 5);
        near(c, "transposed", hone_result(r.p, hone_program_output(r.p, "up")), up, OUT * LONG);
        near(c, "embedding", hone_result(r.p, hone_program_output(r.p, "rows")), rows, 12);
    }
    CHECK(c, hone_layout_find(r.layout, "u/bias") < 0);
    room_close(&r, c);
}

static void activations(struct check *c)
{
    struct room r;
    const float x[4] = {-1.5f, 0.5f, 2, -0.25f};
    hone_err err = {0};
    room_open(&r);
    hone_t t = hone_input(r.nn.g, "x", HONE_F32, HONE_SHAPE(4));
    for (int i = 0; i < HONE_ACTIVATIONS; i++)
        hone_output(hone_nn_activate(t, i), i ? hone_activation_name(i) : "y");
    const float *y = run(&r, c, (const void *[]){x});
    for (int i = 0; y && i < 4; i++) {
        const double v = (double)x[i], softplus = log1p(exp(v)),
                     cubic = sqrt(2 / acos(-1)) * (v + 0.044715 * v * v * v);
        const double want[HONE_ACTIVATIONS] = {v,
                                               fmax(v, 0),
                                               v / (1 + exp(-v)),
                                               v * tanh(softplus),
                                               v * 0.5 * (1 + erf(v / sqrt(2))),
                                               0.5 * v * (1 + tanh(cubic)),
                                               tanh(v),
                                               softplus};
        for (int a = 0; a < HONE_ACTIVATIONS; a++) {
            double got = (double)((const float *)hone_result(r.p, a))[i];
            CHECK_MSG(c, fabs(got - want[a]) < 1e-6, "%s(%g) = %g", hone_activation_name(a), v, got);
        }
    }
    CHECK(c, hone_activation_name(HONE_ACTIVATIONS) == NULL && hone_activation_name(-1) == NULL);
    CHECK(c, hone_activation_find("gelu-tanh", NULL) == HONE_ACT_GELU_TANH);
    CHECK(c, hone_activation_find("mich", &err) == -1 && err.code == HONE_E_ARG && strstr(err.text, "\"mish\"?"));
    room_close(&r, c);
}

/* --- refusals --- */

static hone_t refused(const hone_nn *nn, int i)
{
    hone_t v = hone_input(nn->g, "v", HONE_F32, HONE_SHAPE(4)),
           x = hone_input(nn->g, "x", HONE_F32, HONE_SHAPE(2, 6, 4));
    switch (i) {
    case 0:
        return hone_nn_linear(nn, "l", HONE_NONE, 3, true);
    case 1:
        return hone_nn_linear(nn, "l", hone_const_f32(nn->g, 1), 3, true);
    case 2:
        return hone_nn_conv1d(nn, "l", v, 3, &(hone_conv){.kernel = 3});
    case 3:
        return hone_nn_conv1d(nn, "l", x, 3, &(hone_conv){0});
    case 4:
        return hone_nn_conv1d(nn, "l", x, 3, &(hone_conv){.kernel = 4, .padding = HONE_PAD_SAME});
    case 5:
        return hone_nn_conv1d(nn, "l", x, 3, &(hone_conv){.kernel = 3, .output_padding = 1});
    case 6:
        return hone_nn_conv_transpose1d(nn, "l", x, 3, &(hone_conv){.kernel = 3, .dilation = 2});
    case 7:
        return hone_nn_group_norm(nn, "l", x, 4);
    case 8:
        return hone_nn_attention(nn, "l", x, HONE_NONE, HONE_NONE, 3);
    case 9:
        return hone_nn_attention(nn, "l", x, v, HONE_NONE, 2);
    case 10:
        return hone_nn_sinusoid(v, 5);
    case 11:
        return hone_nn_activate(v, 99);
    case 12:
        return hone_nn_conv_transpose1d(nn, "l", x, 3, &(hone_conv){.kernel = 3, .padding = HONE_PAD_SAME});
    default:
        return hone_nn_linear(nn, "l", v, -1, true);
    }
}

static void refusals(struct check *c)
{
    static const char *const says[] = {"got nothing",
                                       "[..., features]; got f32[]",
                                       "[batch, channels, length]; got f32[4]",
                                       "at least 1 tap",
                                       "odd kernel",
                                       "output padding",
                                       "no dilation",
                                       "groups must divide",
                                       "3 heads, 4 features",
                                       "a memory",
                                       "even number of at least 4",
                                       "0 to 7; got 99",
                                       "odd kernel",
                                       "0 to 8 dimensions"};
    for (int i = 0; i < (int)(sizeof says / sizeof *says); i++) {
        struct room r;
        hone_err err = {0};
        room_open(&r);
        hone_t y = refused(&r.nn, i);
        CHECK_MSG(c, y.id < 0 && hone_graph_status(r.nn.g, &err) != HONE_OK && strstr(err.text, says[i]), "%d: %s: %s",
                  i, err.where, err.text);
        CHECK_MSG(c, i == 10 || i == 11 || strstr(err.where, "l") == err.where, "%d: %s", i, err.where);
        CHECK(c, !*hone_scope(r.nn.g));
        /* poison goes through everything, and the first error stays */
        y = hone_nn_attention(&r.nn, "z", hone_nn_layer_norm(&r.nn, "z", y), y, HONE_NONE, 2);
        CHECK(c, y.id < 0 && r.nn.g->err.code == err.code && !strcmp(r.nn.g->err.text, err.text));
        room_close(&r, c);
    }
}

void suite_nn(struct check *c)
{
    if (check_case(c, "parameters are named by scope, grouped and shared"))
        names_and_groups(c);
    if (check_case(c, "initial values"))
        initial_values(c);
    if (check_case(c, "a name that would be cut is refused"))
        long_names(c);
    if (check_case(c, "attention by plain arithmetic"))
        attention(c);
    if (check_case(c, "norms by plain arithmetic"))
        norms(c);
    if (check_case(c, "convolutions and embedding by plain arithmetic"))
        convolutions(c);
    if (check_case(c, "activations"))
        activations(c);
    if (check_case(c, "refusals name the layer"))
        refusals(c);
}
