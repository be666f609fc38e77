/* The residual MLP denoiser (Ren et al. 2024, DPPO). */
#include "base/err.h"
#include "nn/nn.h"

#define C hone_mlp_config
static const hone_field rows[] = {
    HONE_FIELD_I64(C, horizon, 0, 0, 1 << 20, "actions of a sequence; 0: as many as the input has"),
    HONE_FIELD_I64(C, actions, 0, 0, 1 << 20, "numbers of one action; 0: as many as the input has"),
    HONE_FIELD_I64(C, cond, 0, 0, 1 << 20, "numbers of the condition; 0: as many as it has"),
    HONE_FIELD_I64(C, hidden, 512, 1, 1 << 20, "width of the hidden layers"),
    HONE_FIELD_I64(C, blocks, 1, 0, 1000, "residual blocks, of two layers each"),
    HONE_FIELD_I64(C, time_dim, 16, 4, 1 << 16, "elements of the time embedding, an even number"),
    HONE_FIELD_I64(C, time_hidden, 0, 0, 1 << 20, "width inside of the time embedding; 0: 2 time_dim"),
    HONE_FIELD_CHOICE(C, activation, HONE_ACT_MISH, nn_activations, "what stands between layers"),
    HONE_FIELD_I64(C, outputs, 0, 0, 1 << 20, "numbers put out an action; 0: as many as an action has"),
};
static const hone_field_table fields = HONE_FIELD_TABLE("mlp", C, rows);
#undef C
NN_NET(hone_mlp_config);

static hone_status check(const void *config, hone_err *err)
{
    const hone_mlp_config *c = config;
    if (c->time_dim % 2)
        return err_set(err, HONE_E_CONFIG, "mlp", "time_dim must be even; got %lld", (long long)c->time_dim);
    return HONE_OK;
}

static hone_t block(const hone_nn *nn, const hone_mlp_config *c, int i, hone_t h)
{
    hone_scope_push(nn->g, "block%d", i);
    hone_t r = hone_nn_linear(nn, "linear0", hone_nn_activate(h, c->activation), c->hidden, true);
    r = hone_nn_linear(nn, "linear1", hone_nn_activate(r, c->activation), c->hidden, true);
    hone_scope_pop(nn->g);
    return hone_add(h, r);
}

static hone_t build(const hone_nn *nn, const void *config, hone_t x, hone_t t, hone_t cond)
{
    const hone_mlp_config *c = config;
    const struct nn_sizes want = {c->horizon, c->actions, c->cond};
    if (!nn_sizes_fit(nn, &want, x, t, cond))
        return (hone_t){nn->g, -1};
    hone_shape s = hone_type_of(x).shape;
    hone_t flat = hone_reshape(x, HONE_SHAPE(s.dim[0], s.dim[1] * s.dim[2]));
    hone_t e =
        nn_time_of(nn, t, s.dim[0], c->time_dim, c->time_hidden ? c->time_hidden : 2 * c->time_dim, c->activation);
    hone_t seen = hone_concat(cond.g ? 3 : 2, (hone_t[]){flat, e, cond}, 1);
    hone_t h = hone_nn_linear(nn, "input", seen, c->hidden, true);
    for (int i = 0; i < c->blocks; i++)
        h = block(nn, c, i, h);
    s.dim[2] = nn_outputs(c->outputs, x);
    return hone_reshape(hone_nn_linear(nn, "output", h, s.dim[1] * s.dim[2], true), s);
}

const hone_net nn_mlp = {"mlp", "residual MLP over the flattened sequence, time and condition", &fields, check, build};
