/* The table of networks. */
#include "base/text.h"
#include "graph/ir.h"
#include "nn/nn.h"

static const hone_net *const nets[] = {&nn_mlp, &nn_unet, &nn_dit};
enum { NETS = sizeof nets / sizeof *nets };

const hone_net *hone_net_at(int i)
{
    return i >= 0 && i < NETS ? nets[i] : NULL;
}

const hone_net *hone_net_find(const char *name, hone_err *err)
{
    char buf[160];
    struct text list;
    struct text_near near;
    text_init(&list, buf, sizeof buf);
    text_near_start(&near, name);
    for (int i = 0; i < NETS; i++) {
        if (text_same_name(nets[i]->name, name))
            return nets[i];
        text_addf(&list, "%s%s", i ? ", " : "", nets[i]->name);
        text_near_try(&near, nets[i]->name);
    }
    err_set(err, HONE_E_ARG, "network", "must be one of %s; got \"%.60s\"%s%s%s", buf, name,
            near.best ? "; did you mean \"" : "", near.best ? near.best : "", near.best ? "\"?" : "");
    return NULL;
}

hone_status hone_net_check(const hone_net *net, const void *config, hone_err *err)
{
    hone_status s = hone_field_check(net->fields, config, err);
    return s == HONE_OK ? net->check(config, err) : s;
}

/* `got` is what was wanted, or anything where nothing was. */
static bool size_fits(const hone_nn *nn, const char *what, int64_t want, int64_t got)
{
    if (want == 0 || want == got)
        return true;
    nn_refuse(nn->g, HONE_E_SHAPE, "%s is set to %lld; the operand has %lld", what, (long long)want, (long long)got);
    return false;
}

bool nn_sizes_fit(const hone_nn *nn, const struct nn_sizes *want, hone_t x, hone_t t, hone_t cond)
{
    char got[3][96];
    const hone_type tx = hone_type_of(x), tt = hone_type_of(t), tc = hone_type_of(cond);
    if (hone_graph_status(nn->g, NULL) != HONE_OK)
        return false;
    bool fit = tx.dtype == HONE_F32 && tx.shape.rank == 3;
    fit = fit && (tt.dtype == HONE_F32 || tt.dtype == HONE_I32) &&
          (tt.shape.rank == 0 || (tt.shape.rank == 1 && tt.shape.dim[0] == tx.shape.dim[0]));
    if (cond.g)
        fit = fit && tc.dtype == HONE_F32 && tc.shape.rank == 2 && tc.shape.dim[0] == tx.shape.dim[0];
    if (!fit) {
        nn_refuse(
            nn->g, HONE_E_SHAPE,
            "a network wants x f32[batch, horizon, actions], t f32 or i32 [batch] or one number, and cond f32[batch, "
            "numbers]; got %s%s, %s%s, %s%s",
            hone_dtype_name(tx.dtype), hone_shape_text(&tx.shape, got[0], sizeof got[0]), hone_dtype_name(tt.dtype),
            hone_shape_text(&tt.shape, got[1], sizeof got[1]), hone_dtype_name(tc.dtype),
            cond.g ? hone_shape_text(&tc.shape, got[2], sizeof got[2]) : " none");
        return false;
    }
    return size_fits(nn, "horizon", want->horizon, tx.shape.dim[1]) &&
           size_fits(nn, "actions", want->actions, tx.shape.dim[2]) &&
           size_fits(nn, "cond", want->cond, cond.g ? tc.shape.dim[1] : 0);
}

int64_t nn_outputs(int64_t outputs, hone_t x)
{
    return outputs ? outputs : nn_dim(x, 2);
}

hone_t nn_time_of(const hone_nn *nn, hone_t t, int64_t batch, int64_t dim, int64_t hidden, int activation)
{
    hone_t e = hone_nn_time(nn, "time", t, dim, hidden, activation);
    return hone_type_of(e).shape.rank == 1 ? hone_broadcast(e, HONE_SHAPE(batch, dim)) : e;
}

hone_t hone_net_build(const hone_net *net, const hone_nn *nn, const void *config, hone_t x, hone_t t, hone_t cond)
{
    if (hone_graph_status(nn->g, NULL) != HONE_OK || hone_net_check(net, config, &nn->g->err) != HONE_OK)
        return (hone_t){nn->g, -1};
    return net->build(nn, config, x, t, cond);
}
