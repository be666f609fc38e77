/* The diffusion transformer over time (Peebles, Xie 2023), its positions as rotations (Su et al. 2021).
 *
 * Whatever follows from the time and the condition alone is made from e, [B, D], before it meets a token: one linear
 * layer a block gives all of its shifts, scales and gates. So the passes can take it out of a denoising loop. */
#include <math.h>

#include "base/err.h"
#include "graph/ir.h"
#include "nn/nn.h"

#define C hone_dit_config
static const hone_field rows[] = {
    HONE_FIELD_I64(C, horizon, 0, 0, 1 << 20, "actions of a sequence; 0: as many as the input has"),
    HONE_FIELD_I64(C, actions, 0, 0, 1 << 20, "numbers of one action; 0: as many as the input has"),
    HONE_FIELD_I64(C, cond, 0, 0, 1 << 20, "numbers of the condition; 0: as many as it has"),
    HONE_FIELD_I64(C, width, 256, 2, 1 << 16, "numbers of a token"),
    HONE_FIELD_I64(C, layers, 6, 0, 1000, "blocks of attention and MLP"),
    HONE_FIELD_I64(C, heads, 8, 1, 1 << 15, "heads of the attention; width / heads is an even number"),
    HONE_FIELD_I64(C, mlp_ratio, 4, 1, 64, "hidden width of the MLP over the width"),
    HONE_FIELD_I64(C, time_dim, 256, 4, 1 << 16, "elements of the time embedding, an even number"),
    HONE_FIELD_I64(C, time_hidden, 0, 0, 1 << 20, "width inside of the time embedding; 0: time_dim"),
    HONE_FIELD_CHOICE(C, activation, HONE_ACT_GELU_TANH, nn_activations, "what stands inside of the MLP"),
    HONE_FIELD_I64(C, outputs, 0, 0, 1 << 20, "numbers put out an action; 0: as many as an action has"),
};
static const hone_field_table fields = HONE_FIELD_TABLE("dit", C, rows);
#undef C
NN_NET(hone_dit_config);

static hone_status check(const void *config, hone_err *err)
{
    const hone_dit_config *c = config;
    if (c->time_dim % 2)
        return err_set(err, HONE_E_CONFIG, "dit", "time_dim must be even; got %lld", (long long)c->time_dim);
    if (c->width % (2 * c->heads))
        return err_set(err, HONE_E_CONFIG, "dit", "width / heads must be an even number; got width %lld, %lld heads",
                       (long long)c->width, (long long)c->heads);
    return HONE_OK;
}

/* --- building --- */

struct dit {
    const hone_nn *nn;
    const hone_dit_config *c;
    hone_t given;    /* silu(e): [B, D], or [1, D] where all of the batch is given the same */
    hone_t cos, sin; /* [T, width / heads] */
};

/* Row p, column i, h = columns / 2: cos(p f_k), and sin(p f_k), negative in the first half, k = i mod h,
 * f_k = 10000^(-k / h). */
static void turns(struct dit *d, int64_t tokens, int64_t columns)
{
    hone_graph *g = d->nn->g;
    const int64_t h = columns / 2;
    float *c = arena_alloc(&g->arena, (size_t)(2 * tokens * columns) * sizeof *c), *s = c + tokens * columns;
    if (!c) {
        nn_refuse(g, HONE_E_NOMEM, "no memory for the positions of %lld tokens", (long long)tokens);
        d->cos = d->sin = (hone_t){g, -1};
        return;
    }
    for (int64_t p = 0; p < tokens; p++)
        for (int64_t i = 0; i < columns; i++) {
            double angle = (double)p * pow(10000, -(double)(i % h) / (double)h);
            c[p * columns + i] = (float)cos(angle);
            s[p * columns + i] = (float)(i < h ? -sin(angle) : sin(angle));
        }
    d->cos = hone_const(g, HONE_F32, HONE_SHAPE(tokens, columns), c);
    d->sin = hone_const(g, HONE_F32, HONE_SHAPE(tokens, columns), s);
}

/* n vectors [B, width] of what is given, zero at first. */
static void modulations(const struct dit *d, int n, hone_t *out)
{
    const int64_t width = d->c->width;
    hone_t all = nn_dense(d->nn, "modulate", d->given, n * width, (hone_init){HONE_INIT_ZERO, 0});
    for (int i = 0; i < n; i++)
        out[i] = hone_slice(all, 1, i * width, width);
}

static hone_t per_token(hone_t v)
{
    return hone_reshape(v, HONE_SHAPE(nn_dim(v, 0), 1, nn_dim(v, 1)));
}

/* norm(x) (1 + scale) + shift; inside of the norm where all of the batch has the same. */
static hone_t modulate(hone_t x, hone_t shift, hone_t scale)
{
    scale = hone_affine(scale, 1, 1);
    if (nn_dim(scale, 0) == 1) {
        const hone_shape s = HONE_SHAPE(nn_dim(scale, 1));
        return hone_layer_norm(x, hone_reshape(scale, s), hone_reshape(shift, s), 1e-6);
    }
    hone_t h = hone_layer_norm(x, HONE_NONE, HONE_NONE, 1e-6);
    return hone_add(hone_mul(h, per_token(scale)), per_token(shift));
}

static hone_t attention(const struct dit *d, hone_t x)
{
    hone_scope_push(d->nn->g, "attention");
    hone_t y = hone_nn_linear(d->nn, "qkv", x, 3 * d->c->width, true);
    y = hone_rotary_attention(y, d->cos, d->sin, d->c->heads, 0);
    y = hone_nn_linear(d->nn, "output", y, d->c->width, true);
    hone_scope_pop(d->nn->g);
    return y;
}

static hone_t mlp(const struct dit *d, hone_t x)
{
    hone_scope_push(d->nn->g, "mlp");
    hone_t h = hone_nn_linear(d->nn, "linear0", x, d->c->mlp_ratio * d->c->width, true);
    h = hone_nn_linear(d->nn, "linear1", hone_nn_activate(h, d->c->activation), d->c->width, true);
    hone_scope_pop(d->nn->g);
    return h;
}

static hone_t block(const struct dit *d, int i, hone_t x)
{
    hone_t m[6];
    hone_scope_push(d->nn->g, "block%d", i);
    modulations(d, 6, m);
    x = hone_add(x, hone_mul(attention(d, modulate(x, m[0], m[1])), per_token(m[2])));
    x = hone_add(x, hone_mul(mlp(d, modulate(x, m[3], m[4])), per_token(m[5])));
    hone_scope_pop(d->nn->g);
    return x;
}

/* silu(time + cond), in a row of its own where t is one number. */
static hone_t given(const hone_nn *nn, const hone_dit_config *c, hone_t t, hone_t cond)
{
    hone_t e = hone_nn_time(nn, "time", t, c->time_dim, c->time_hidden ? c->time_hidden : c->time_dim, HONE_ACT_SILU);
    if (hone_type_of(e).shape.rank == 1)
        e = hone_reshape(e, HONE_SHAPE(1, c->time_dim));
    return hone_silu(cond.g ? hone_add(e, hone_nn_linear(nn, "cond", cond, c->time_dim, true)) : e);
}

static hone_t build(const hone_nn *nn, const void *config, hone_t x, hone_t t, hone_t cond)
{
    const hone_dit_config *c = config;
    const struct nn_sizes want = {c->horizon, c->actions, c->cond};
    hone_t m[2];
    if (!nn_sizes_fit(nn, &want, x, t, cond))
        return (hone_t){nn->g, -1};
    struct dit d = {.nn = nn, .c = c, .given = given(nn, c, t, cond)};
    turns(&d, nn_dim(x, 1), c->width / c->heads);
    hone_t h = hone_nn_linear(nn, "input", x, c->width, true);
    for (int i = 0; i < c->layers; i++)
        h = block(&d, i, h);
    hone_scope_push(nn->g, "final");
    modulations(&d, 2, m);
    h = nn_dense(nn, "output", modulate(h, m[0], m[1]), nn_outputs(c->outputs, x), (hone_init){HONE_INIT_ZERO, 0});
    hone_scope_pop(nn->g);
    return h;
}

const hone_net nn_dit = {"dit", "diffusion transformer over the sequence, conditioned through its norms", &fields,
                         check, build};
