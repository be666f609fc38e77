/* Normalisations. Statistics are results of the operators as they are of the operations: [N,G], or the dimensions of x
 * with a last one of 1; all f32. */
#include "backend/record/record.h"
#include "op/norm.h"

enum { MOST_CHANNELS = 8000 }; /* in a group, of the gradient */

static void group_sizes(struct record_use *u, const hone_shape *x, int64_t groups)
{
    record_int(u, "N", x->dim[0]);
    record_int(u, "C", x->dim[1]);
    record_int(u, "HxW", hone_numel(x) / (x->dim[0] * x->dim[1]));
    record_int(u, "group", groups);
}

static void group_norm(struct record_use *u)
{
    const struct op_call *c = u->call;
    record_open(u, "GroupNorm");
    record_tensor(u, "self", record_in(u, 0));
    record_tensor(u, "gamma", record_in(u, 1));
    record_tensor(u, "beta", record_in(u, 2));
    group_sizes(u, &c->in[0].shape, c->attr.i[NORM_GROUPS]);
    record_f64(u, "eps", c->attr.f[NORM_EPS]);
    record_tensor(u, "out", record_out(u, 0));
    record_tensor(u, "meanOut", record_out(u, 1));
    record_tensor(u, "rstdOut", record_out(u, 2));
    record_close(u);
}

static bool group_grad_takes(const struct op_call *c)
{
    return record_full(c) && c->in[NORM_X].shape.dim[1] / c->in[GROUP_MEAN].shape.dim[1] <= MOST_CHANNELS;
}

/* Its order of summation is the device's, unless determinism is asked for. */
static void group_norm_grad(struct record_use *u)
{
    const struct op_call *c = u->call;
    record_open(u, "GroupNormBackward");
    record_tensor(u, "gradOut", record_in(u, NORM_DY));
    record_tensor(u, "input", record_in(u, NORM_X));
    record_tensor(u, "mean", record_in(u, GROUP_MEAN));
    record_tensor(u, "rstd", record_in(u, GROUP_RSTD));
    record_tensor(u, "gamma", record_in(u, GROUP_GAMMA));
    group_sizes(u, &c->in[NORM_X].shape, c->in[GROUP_MEAN].shape.dim[1]);
    record_bools(u, "outputMask", 3, (bool[]){true, true, true});
    record_tensor(u, "gradInput", record_out(u, 0));
    record_tensor(u, "gradGammaOut", record_out(u, 1));
    record_tensor(u, "gradBetaOut", record_out(u, 2));
    record_close(u);
}

/* Operand k, or NULL where the use has none. */
static void optional(struct record_use *u, const char *arg, int k)
{
    if (k < u->call->n_in)
        record_tensor(u, arg, record_in(u, k));
    else
        record_none(u, arg);
}

static void layer_norm(struct record_use *u)
{
    const hone_shape *x = &u->call->in[0].shape;
    record_open(u, "LayerNorm");
    record_tensor(u, "input", record_in(u, 0));
    record_ints(u, "normalizedShape", 1, &x->dim[x->rank - 1]);
    optional(u, "weightOptional", 1);
    optional(u, "biasOptional", 2);
    record_f64(u, "eps", u->call->attr.f[NORM_EPS]);
    record_tensor(u, "out", record_out(u, 0));
    record_tensor(u, "meanOutOptional", record_out(u, 1));
    record_tensor(u, "rstdOutOptional", record_out(u, 2));
    record_close(u);
}

/* Without gamma its gradient and that of beta are not asked for. */
static bool layer_grad_takes(const struct op_call *c)
{
    return op_numel(&c->in[NORM_X]) > 0;
}

static void layer_norm_grad(struct record_use *u)
{
    const hone_shape *x = &u->call->in[NORM_X].shape;
    const bool gamma = u->call->n_in > LAYER_GAMMA;
    record_open(u, "LayerNormBackward");
    record_tensor(u, "gradOut", record_in(u, NORM_DY));
    record_tensor(u, "input", record_in(u, NORM_X));
    record_ints(u, "normalizedShape", 1, &x->dim[x->rank - 1]);
    record_tensor(u, "mean", record_in(u, LAYER_MEAN));
    record_tensor(u, "rstd", record_in(u, LAYER_RSTD));
    optional(u, "weightOptional", LAYER_GAMMA);
    record_none(u, "biasOptional");
    record_bools(u, "outputMask", 3, (bool[]){true, gamma, gamma});
    record_tensor(u, "gradInputOut", record_out(u, 0));
    if (gamma) {
        record_tensor(u, "gradWeightOut", record_out(u, 1));
        record_tensor(u, "gradBiasOut", record_out(u, 2));
    } else {
        record_none(u, "gradWeightOut");
        record_none(u, "gradBiasOut");
    }
    record_close(u);
}

/* The operators of the root mean square want a gamma; its gradient also a dimension of rows. */
static bool rms_takes(const struct op_call *c)
{
    return record_full(c) && c->n_in == 2;
}

static void rms_norm(struct record_use *u)
{
    record_open(u, "RmsNorm");
    record_tensor(u, "x", record_in(u, 0));
    record_tensor(u, "gamma", record_in(u, 1));
    record_f64(u, "epsilon", u->call->attr.f[NORM_EPS]);
    record_tensor(u, "yOut", record_out(u, 0));
    record_tensor(u, "rstdOut", record_out(u, 1));
    record_close(u);
}

RECORD_MAP(group_norm, record_full, group_norm);
RECORD_MAP(group_norm_grad, group_grad_takes, group_norm_grad);
RECORD_MAP(layer_norm, record_full, layer_norm);
RECORD_MAP(layer_norm_grad, layer_grad_takes, layer_norm_grad);
RECORD_MAP(rms_norm, rms_takes, rms_norm);
