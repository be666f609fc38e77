/* The conditional 1-D U-Net over time (Chi et al. 2023, Diffusion Policy). */
#include "base/err.h"
#include "nn/nn.h"

#define MAX_WIDTHS 8

#define C hone_unet_config
static const hone_field rows[] = {
    HONE_FIELD_I64(C, horizon, 0, 0, 1 << 20, "actions of a sequence; 0: as many as the input has"),
    HONE_FIELD_I64(C, actions, 0, 0, 1 << 20, "numbers of one action; 0: as many as the input has"),
    HONE_FIELD_I64(C, cond, 0, 0, 1 << 20, "numbers of the condition; 0: as many as it has"),
    HONE_FIELD_TEXT(C, widths, "64,128,256", "channels of each stage, from the top down"),
    HONE_FIELD_I64(C, kernel, 5, 1, 1001, "taps of the convolutions, an odd number"),
    HONE_FIELD_I64(C, groups, 8, 1, 1 << 20, "groups of the norms; divides every width"),
    HONE_FIELD_I64(C, time_dim, 128, 4, 1 << 16, "elements of the time embedding, an even number"),
    HONE_FIELD_I64(C, time_hidden, 0, 0, 1 << 20, "width inside of the time embedding; 0: 4 time_dim"),
    HONE_FIELD_CHOICE(C, activation, HONE_ACT_MISH, nn_activations, "what follows norms and linear layers"),
    HONE_FIELD_I64(C, outputs, 0, 0, 1 << 20, "numbers put out an action; 0: as many as an action has"),
};
static const hone_field_table fields = HONE_FIELD_TABLE("unet", C, rows);
#undef C
NN_NET(hone_unet_config);

/* "64,128,256" -> widths; how many, 0 if the text is no such list. */
static int widths_of(const char *s, int64_t *width)
{
    int n = 0;
    while (n < MAX_WIDTHS) {
        int64_t w = 0;
        const char *from = s;
        for (; *s >= '0' && *s <= '9' && w < 1 << 20; s++)
            w = 10 * w + (*s - '0');
        if (s == from || w < 1 || w > 1 << 20 || (*s && *s != ','))
            return 0;
        width[n++] = w;
        if (!*s++)
            return n;
        while (*s == ' ')
            s++;
    }
    return 0;
}

/* What the widths of a config say; false and an error in `err` if they do not fit it. */
static bool read_widths(const hone_unet_config *c, int64_t *width, int *n, hone_err *err)
{
    *n = widths_of(c->widths, width);
    if (*n == 0)
        err_set(err, HONE_E_CONFIG, "unet", "widths must be 1 to %d numbers such as \"64,128,256\"; got \"%s\"",
                MAX_WIDTHS, c->widths);
    for (int i = 0; i < *n; i++)
        if (width[i] % c->groups) {
            err_set(err, HONE_E_CONFIG, "unet", "groups must divide every width; got %lld groups, width %lld",
                    (long long)c->groups, (long long)width[i]);
            return false;
        }
    return *n > 0;
}

static bool horizon_fits(int64_t horizon, int n)
{
    return horizon % ((int64_t)1 << (n - 1)) == 0;
}

static hone_status check(const void *config, hone_err *err)
{
    const hone_unet_config *c = config;
    int64_t width[MAX_WIDTHS];
    int n;
    if (c->kernel % 2 == 0)
        return err_set(err, HONE_E_CONFIG, "unet", "kernel must be odd; got %lld", (long long)c->kernel);
    if (c->time_dim % 2)
        return err_set(err, HONE_E_CONFIG, "unet", "time_dim must be even; got %lld", (long long)c->time_dim);
    if (!read_widths(c, width, &n, err))
        return HONE_E_CONFIG;
    if (!horizon_fits(c->horizon, n))
        return err_set(err, HONE_E_CONFIG, "unet",
                       "horizon must be a multiple of %d, for it is halved %d times; got %lld", 1 << (n - 1), n - 1,
                       (long long)c->horizon);
    return HONE_OK;
}

/* --- building --- */

struct unet {
    const hone_nn *nn;
    const hone_unet_config *c;
    hone_t given; /* [B, dim + C], act(time embedding, cond): what FiLM is made of */
};

static hone_t conv_norm(const struct unet *u, const char *conv, const char *norm, hone_t x, int64_t width)
{
    hone_t h = hone_nn_conv1d(u->nn, conv, x, width, &(hone_conv){.kernel = u->c->kernel, .padding = HONE_PAD_SAME});
    return hone_nn_activate(hone_nn_group_norm(u->nn, norm, h, u->c->groups), u->c->activation);
}

/* scale h + shift, one number a channel each. */
static hone_t film(const struct unet *u, hone_t h, int64_t width)
{
    hone_t f = hone_nn_linear(u->nn, "film", u->given, 2 * width, true);
    hone_shape s = HONE_SHAPE(nn_dim(f, 0), width, 1);
    hone_t scale = hone_reshape(hone_slice(f, 1, 0, width), s);
    hone_t shift = hone_reshape(hone_slice(f, 1, width, width), s);
    return hone_add(hone_mul(h, scale), shift);
}

static hone_t block(const struct unet *u, const char *name, hone_t x, int64_t width)
{
    hone_scope_push(u->nn->g, "%s", name);
    hone_t h = film(u, conv_norm(u, "conv0", "norm0", x, width), width);
    h = conv_norm(u, "conv1", "norm1", h, width);
    hone_t skip = nn_dim(x, 1) == width ? x : hone_nn_conv1d(u->nn, "skip", x, width, &(hone_conv){.kernel = 1});
    hone_scope_pop(u->nn->g);
    return hone_add(h, skip);
}

static hone_t blocks(const struct unet *u, hone_t x, int64_t width)
{
    return block(u, "block1", block(u, "block0", x, width), width);
}

static hone_t stages(const struct unet *u, hone_t h, const int64_t *width, int n)
{
    hone_t kept[MAX_WIDTHS];
    for (int i = 0; i < n; i++) {
        hone_scope_push(u->nn->g, "down%d", i);
        h = kept[i] = blocks(u, h, width[i]);
        if (i + 1 < n)
            h = hone_nn_conv1d(u->nn, "down", h, width[i], &(hone_conv){.kernel = 3, .stride = 2, .padding = 1});
        hone_scope_pop(u->nn->g);
    }
    hone_scope_push(u->nn->g, "mid");
    h = blocks(u, h, width[n - 1]);
    hone_scope_pop(u->nn->g);
    for (int i = 0; i + 1 < n; i++) {
        int64_t w = width[n - 2 - i];
        hone_scope_push(u->nn->g, "up%d", i);
        h = blocks(u, hone_concat(2, (hone_t[]){h, kept[n - 1 - i]}, 1), w);
        h = hone_nn_conv_transpose1d(u->nn, "up", h, w, &(hone_conv){.kernel = 4, .stride = 2, .padding = 1});
        hone_scope_pop(u->nn->g);
    }
    return h;
}

static hone_t build(const hone_nn *nn, const void *config, hone_t x, hone_t t, hone_t cond)
{
    const hone_unet_config *c = config;
    const struct nn_sizes want = {c->horizon, c->actions, c->cond};
    struct unet u = {nn, c, HONE_NONE};
    int64_t width[MAX_WIDTHS];
    int n = widths_of(c->widths, width);
    if (!nn_sizes_fit(nn, &want, x, t, cond))
        return (hone_t){nn->g, -1};
    if (!horizon_fits(nn_dim(x, 1), n))
        return nn_refuse(nn->g, HONE_E_SHAPE,
                         "the horizon must be a multiple of %d, for it is halved %d times; got %lld", 1 << (n - 1),
                         n - 1, (long long)nn_dim(x, 1));
    hone_t e =
        nn_time_of(nn, t, nn_dim(x, 0), c->time_dim, c->time_hidden ? c->time_hidden : 4 * c->time_dim, c->activation);
    u.given = hone_nn_activate(hone_concat(cond.g ? 2 : 1, (hone_t[]){e, cond}, 1), c->activation);
    hone_t h = stages(&u, hone_permute(x, (int[]){0, 2, 1}), width, n);
    hone_scope_push(nn->g, "final");
    h = conv_norm(&u, "conv", "norm", h, width[0]);
    h = hone_nn_conv1d(nn, "output", h, nn_outputs(c->outputs, x), &(hone_conv){.kernel = 1});
    hone_scope_pop(nn->g);
    return hone_permute(h, (int[]){0, 2, 1});
}

const hone_net nn_unet = {"unet", "1-D U-Net over time, conditioned through FiLM", &fields, check, build};
