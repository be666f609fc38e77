/* Activations by name. */
#include "base/text.h"
#include "graph/ir.h"
#include "nn/nn.h"

static hone_t identity(hone_t x)
{
    return x;
}

/* In the order of hone_activation. */
const char *const nn_activations[] = {"identity",  "relu", "silu",     "mish", "gelu",
                                      "gelu_tanh", "tanh", "softplus", NULL};
static hone_t (*const build[HONE_ACTIVATIONS])(hone_t x) = {
    [HONE_ACT_IDENTITY] = identity, [HONE_ACT_RELU] = hone_relu,        [HONE_ACT_SILU] = hone_silu,
    [HONE_ACT_MISH] = hone_mish,    [HONE_ACT_GELU] = hone_gelu,        [HONE_ACT_GELU_TANH] = hone_gelu_tanh,
    [HONE_ACT_TANH] = hone_tanh,    [HONE_ACT_SOFTPLUS] = hone_softplus};
_Static_assert(sizeof nn_activations / sizeof *nn_activations == HONE_ACTIVATIONS + 1, "a name for each activation");

const char *hone_activation_name(int i)
{
    return i >= 0 && i < HONE_ACTIVATIONS ? nn_activations[i] : NULL;
}

int hone_activation_find(const char *name, hone_err *err)
{
    char buf[160];
    struct text list;
    text_init(&list, buf, sizeof buf);
    for (int i = 0; i < HONE_ACTIVATIONS; i++) {
        if (text_same_name(nn_activations[i], name))
            return i;
        text_addf(&list, "%s%s", i ? ", " : "", nn_activations[i]);
    }
    const char *near = text_nearest(name, nn_activations, HONE_ACTIVATIONS);
    err_set(err, HONE_E_ARG, "activation", "must be one of %s; got \"%.60s\"%s%s%s", buf, name,
            near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    return -1;
}

hone_t hone_nn_activate(hone_t x, int activation)
{
    if (!x.g || x.id < 0)
        return x;
    if (activation < 0 || activation >= HONE_ACTIVATIONS)
        return nn_refuse(x.g, HONE_E_ARG, "activations are 0 to %d; got %d", HONE_ACTIVATIONS - 1, activation);
    return build[activation](x);
}
