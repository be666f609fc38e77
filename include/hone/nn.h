/* hone/nn.h: layers, denoising networks and the optimiser, built from the operations of hone/ops.h.
 *
 * A layer registers its parameters in a layout and reads them from a store, so a network is a plain function that
 * builds a graph. Parameters are named by the open scope: what hone_nn_linear(nn, "linear0", ...) makes inside of scope
 * "time" is "time/linear0/weight" and "time/linear0/bias". Building the same network again on the same layout, in the
 * same graph or in another, shares its parameters, whose groups and initial values stay as they were first told;
 * two layers of one name in one scope are thus one layer.
 *
 * Errors stay in the graph, as those of operations do, and name the layer; hone_compile or hone_graph_status tells
 * them. Nothing here owns anything but hone_optim. Thread: as for the graph and layout that are handed in.
 *
 * Initial values follow PyTorch's defaults where there are any: weights and biases of dense and convolutional layers
 * are uniform on ±1/√fan_in (He et al. 2015 with a = √5), gains of norms are 1, their biases 0. fan_in is the product
 * of all dimensions of the weight but the first. Weights are in HONE_GROUP_DECAY; biases, gains and tables of
 * embeddings in HONE_GROUP_PLAIN. */
#ifndef HONE_NN_H
#define HONE_NN_H

#include "hone/field.h"
#include "hone/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where layers put their parameters. Filled in by the caller and copied freely. */
typedef struct hone_nn {
    hone_graph *g;
    hone_layout *layout;
    const char *role; /* the store they are read from. Nullable: "param" */
    bool frozen;      /* parameters added now are in HONE_GROUP_FROZEN: no gradient, no update */
} hone_nn;

/* Parameter `name` of the open scope: added to the layout, or found there, and read. */
HONE_API hone_t hone_nn_param(const hone_nn *nn, const char *name, hone_shape shape, int group, hone_init init);

/* ------------------------------------------------------------------ activations */

/* By name: "identity", "relu", "silu" (swish), "mish", "gelu", "gelu_tanh", "tanh", "softplus"; the formulas stand in
 * hone/ops.def. */
typedef enum hone_activation {
    HONE_ACT_IDENTITY,
    HONE_ACT_RELU,
    HONE_ACT_SILU,
    HONE_ACT_MISH,
    HONE_ACT_GELU,
    HONE_ACT_GELU_TANH,
    HONE_ACT_TANH,
    HONE_ACT_SOFTPLUS,
    HONE_ACTIVATIONS
} hone_activation;

HONE_API const char *hone_activation_name(int i);                   /* NULL past the last */
HONE_API int hone_activation_find(const char *name, hone_err *err); /* -1: HONE_E_ARG, the nearest name is told */
HONE_API hone_t hone_nn_activate(hone_t x, int activation);

/* ------------------------------------------------------------------ layers */

/* `name` is the layer's scope; NULL: parameters stand in the open scope itself. */

/* x [..., in] -> [..., out]: x W' + b. Parameters: weight [out, in]; bias [out] if wanted. */
HONE_API hone_t hone_nn_linear(const hone_nn *nn, const char *name, hone_t x, int64_t out, bool bias);

/* All zero but the kernel is a good default. */
typedef struct hone_conv {
    int64_t kernel;         /* taps, at least 1 */
    int64_t stride;         /* 0: 1 */
    int64_t padding;        /* zeros at both ends; HONE_PAD_SAME: as many as keep the length at stride 1 (odd kernel) */
    int64_t dilation;       /* 0: 1; not for transposed ones */
    int64_t output_padding; /* transposed ones only: less than the stride */
    bool no_bias;
} hone_conv;
#define HONE_PAD_SAME (-1)

/* x [N, in, L] -> [N, out, M]; M as told for conv1d in hone/ops.def. Parameters: weight [out, in, kernel], bias [out].
 */
HONE_API hone_t hone_nn_conv1d(const hone_nn *nn, const char *name, hone_t x, int64_t out, const hone_conv *o);
/* x [N, in, L] -> [N, out, J]; J as told for conv_transpose1d. Parameters: weight [in, out, kernel], bias [out].
 * fan_in is out * kernel here, as in PyTorch. */
HONE_API hone_t hone_nn_conv_transpose1d(const hone_nn *nn, const char *name, hone_t x, int64_t out,
                                         const hone_conv *o);

/* Norms: y = (x - mean) / √(variance + eps) * weight + bias, the variance being the biased one.
 * Group: x [N, C, ...], over C / groups consecutive channels and all that follows; eps 1e-5; weight and bias [C] (Wu,
 * He 2018). Layer: over the last dimension D; eps 1e-5; weight and bias [D] (Ba et al. 2016). RMS: no mean is taken off
 * and there is no bias; eps 1e-6 (Zhang, Sennrich 2019). */
HONE_API hone_t hone_nn_group_norm(const hone_nn *nn, const char *name, hone_t x, int64_t groups);
HONE_API hone_t hone_nn_layer_norm(const hone_nn *nn, const char *name, hone_t x);
HONE_API hone_t hone_nn_rms_norm(const hone_nn *nn, const char *name, hone_t x);

/* Rows of a table: index i32 [...] with values in [0, count) -> [..., width]. Parameter: weight [count, width], drawn
 * from N(0, 1). The range is the caller's to keep: hone_input_index does. */
HONE_API hone_t hone_nn_embedding(const hone_nn *nn, const char *name, hone_t index, int64_t count, int64_t width);

/* Multi-head attention (Vaswani et al. 2017). x [B, L, D] asks `memory` [B, M, E] (HONE_NONE: x itself) -> [B, L, D]:
 * with q, k, v of D / heads numbers a head, softmax(q k' / √(D / heads)) v, heads side by side, then a dense layer.
 * mask, bool, true where a query may attend, broadcasts to [B, heads, L, M]; HONE_NONE: everywhere. A query that may
 * attend nowhere is given zeros by every head.
 * Parameters: {query, key, value, output}/{weight, bias}. The first three weights are uniform on ±√(6 / (in + out))
 * (Glorot, Bengio 2010), biases 0. */
HONE_API hone_t hone_nn_attention(const hone_nn *nn, const char *name, hone_t x, hone_t memory, hone_t mask,
                                  int64_t heads);

/* A time as a vector: t, f32 or i32 [...] -> [..., dim]: sin(t f_0), sin(t f_1) ..., cos(t f_0), cos(t f_1) ... with
 * f_i = 10000^(-i / (h - 1)), i = 0 .. h - 1, h = dim / 2; dim is even and at least 4. The arithmetic is f32: for whole
 * t the error grows as 6e-8 t. */
HONE_API hone_t hone_nn_sinusoid(hone_t t, int64_t dim);
/* sinusoid, then linear0 dim -> hidden, the activation, linear1 hidden -> dim. */
HONE_API hone_t hone_nn_time(const hone_nn *nn, const char *name, hone_t t, int64_t dim, int64_t hidden,
                             int activation);

/* ------------------------------------------------------------------ denoising networks */

/* A network that sees a noisy action sequence x [B, T, A], its time t (f32 or i32), and a condition cond [B, C]
 * (HONE_NONE: there is none), and returns [B, T, A]: noise, clean actions or velocity, as it is trained. With `outputs`
 * in its config it returns as many numbers an action as that says: 2 A for two heads (hone/head.h).
 * t is [B], or one number, rank 0, for the whole batch. It goes into the sinusoid above: timesteps as they are; a
 * flow's time in [0, 1] should come multiplied by about 1000. Parameters are named in the open scope. */
typedef hone_t (*hone_net_build_fn)(const hone_nn *nn, const void *config, hone_t x, hone_t t, hone_t cond);

/* A row of the table of networks. */
typedef struct hone_net {
    const char *name, *doc;
    const hone_field_table *fields;                          /* of its config: a struct of fields->size bytes */
    hone_status (*check)(const void *config, hone_err *err); /* what holds between fields */
    hone_net_build_fn build;                                 /* call hone_net_build */
} hone_net;

#define HONE_NET_CONFIG_MAX 512 /* bytes; room for the config of any network */

HONE_API const hone_net *hone_net_at(int i); /* NULL past the last */
HONE_API const hone_net *hone_net_find(const char *name,
                                       hone_err *err); /* NULL: HONE_E_ARG, the nearest name is told */
/* Ranges of the fields, and what holds between them; HONE_E_CONFIG names the field. */
HONE_API hone_status hone_net_check(const hone_net *net, const void *config, hone_err *err);
/* Checks config and operands, and builds. */
HONE_API hone_t hone_net_build(const hone_net *net, const hone_nn *nn, const void *config, hone_t x, hone_t t,
                               hone_t cond);

/* "mlp": the residual MLP denoiser of DPPO (Ren et al. 2024). With e the time embedding and x flattened step by step:
 * h = input[x, e, cond]; for each block, h += linear1(act(linear0(act(h)))); output(h) -> T A numbers.
 * Parameters: time/linear{0,1}, input, block<i>/linear{0,1}, output; each weight and bias. */
typedef struct hone_mlp_config {
    int64_t horizon, actions, cond; /* T, A, C; 0: what x and cond have */
    int64_t hidden, blocks;
    int64_t time_dim, time_hidden; /* time_hidden 0: 2 time_dim */
    int activation;                /* a hone_activation */
    int64_t outputs;               /* 0: A */
} hone_mlp_config;

/* "unet": the conditional 1-D U-Net of Diffusion Policy (Chi et al. 2023), over time, with actions as channels. Two
 * residual blocks a stage: conv, group norm, activation, FiLM (scale h + shift, from act[e, cond]), conv, group norm,
 * activation, plus the input (through a 1 x 1 convolution `skip` where widths differ). Stages: down<i> for each width,
 * its result kept; all but the last are halved by a convolution of 3 taps. mid. up<i> takes [h, kept result] and
 * doubles by a transposed convolution of 4 taps; there is one less of them than of down, and down0's result is kept by
 * none. Then conv, norm, activation, and a 1 x 1 convolution to A channels. Parameters: time/linear{0,1};
 * <stage>/block{0,1}/{conv0,norm0,film,conv1,norm1,skip} for stages down<i>, mid, up<i>; down<i>/down; up<i>/up;
 * final/{conv,norm,output}; each weight and bias. */
typedef struct hone_unet_config {
    int64_t horizon, actions, cond; /* T, a multiple of 2^(widths - 1); A, C; 0: what x and cond have */
    char widths[64];                /* channels from the top down, "64,128,256": 1 to 8 numbers */
    int64_t kernel, groups;         /* odd; groups divides every width */
    int64_t time_dim, time_hidden;  /* time_hidden 0: 4 time_dim */
    int activation;                 /* a hone_activation */
    int64_t outputs;                /* 0: A */
} hone_unet_config;

/* "dit": a diffusion transformer (Peebles, Xie 2023) whose tokens are the T actions. With D = time_dim and
 * e = time embedding (its activation is silu) + cond(c), [B, D], modulate(silu(e)) of each block is six vectors of
 * `width` numbers: shift, scale and gate of the attention, then of the MLP. h = input(x); each block:
 *   h += gate0 attention(norm(h) (1 + scale0) + shift0),
 *   h += gate1 linear1(act(linear0(norm(h) (1 + scale1) + shift1)));
 * last, output(norm(h) (1 + scale) + shift), these two from final/modulate. norm: over a token, eps 1e-6, without gain
 * and bias. Attention: qkv gives queries, keys, values, in each of them the heads one behind the other; positions are
 * rotations (Su et al. 2021): with n = width / heads, numbers k and k + n/2 of a query or key at place p are turned by
 * p 10000^(-2k/n). modulate and final/output are zero at first, so that a fresh network gives zeros.
 * Parameters: time/linear{0,1}, cond (where there is one), input, block<i>/{modulate, attention/{qkv,output},
 * mlp/linear{0,1}}, final/{modulate,output}; each weight and bias. */
typedef struct hone_dit_config {
    int64_t horizon, actions, cond; /* T, A, C; 0: what x and cond have */
    int64_t width, layers;
    int64_t heads;                 /* width / heads is even */
    int64_t mlp_ratio;             /* linear0 has mlp_ratio width outputs */
    int64_t time_dim, time_hidden; /* time_hidden 0: time_dim */
    int activation;                /* a hone_activation: of the MLP */
    int64_t outputs;               /* 0: A */
} hone_dit_config;

/* ------------------------------------------------------------------ training */

/* Adds d(loss)/d(p) to store `role` (nullable: "grad") for every parameter p of nn's layout that the graph has read so
 * far under nn's role, those in HONE_GROUP_FROZEN apart. `loss` has one element. Fixes the layout. A program that does
 * this once a minibatch accumulates: the update divides. */
HONE_API void hone_nn_gradients(const hone_nn *nn, hone_t loss, const char *role);

/* AdamW (Loshchilov, Hutter 2019), the gradient clipped by its norm first, and an average of the parameters. */
typedef struct hone_adamw_config {
    double beta1, beta2, eps;
    double weight_decay; /* p -= rate weight_decay p */
    bool decay_plain;    /* HONE_GROUP_PLAIN decays too, as it does in PyTorch if nothing is said */
    double max_norm;     /* the norm, over all parameters, that gradients are cut down to; 0: any */
    bool average;        /* keep an average: average = decay average + (1 - decay) param */
} hone_adamw_config;
HONE_API const hone_field_table *hone_adamw_fields(void);

/* One update of all parameters that are not frozen, as a graph: from gradients in role "grad" (times scale) to roles
 * "param", "m", "v" and, where wanted, "average"; gradients are set to zero. Fixes the layout. Inputs, f32 of rank 0:
 * "lr", "step" (from 1), "scale", and "decay" of the average. Outputs: "grad_norm", of gradients times scale and before
 * the clip; and "skipped", not 0 if a gradient is NaN or infinite, or the sum of their squares is beyond f32. Then
 * parameters, moments and average stay as they are, bit by bit, and grad_norm is 0. A program compiled with `debug`
 * reports HONE_E_NONFINITE instead. */
HONE_API void hone_adamw_update(hone_graph *g, hone_layout *l, const hone_adamw_config *o);

/* The update as a program, with the stores it needs. Thread: one at a time. */
typedef struct hone_optim hone_optim;

/* Gradients and moments start at zero, the average (if the config wants one) as a copy of `param`, so fill that first.
 * Borrows d and param, which must outlive it. Owns: the result. */
HONE_API hone_optim *hone_optim_create(hone_device *d, hone_store *param, const hone_adamw_config *o, hone_err *err);
HONE_API void hone_optim_destroy(hone_optim *o); /* Nullable: o */

/* The store of role "param", "grad", "m", "v" or "average"; NULL: there is none. Borrowed. A checkpoint is these and
 * the count. */
HONE_API hone_store *hone_optim_store(const hone_optim *o, const char *role);
/* Puts them where program p wants them, by the names of its roles; roles of other names are left as they are.
 * `stores` has hone_program_roles(p) places. */
HONE_API void hone_optim_bind(const hone_optim *o, const hone_program *p, hone_store **stores);
/* The update, for its plan and its profile; hone_optim_step runs it. Borrowed. */
HONE_API hone_program *hone_optim_program(const hone_optim *o);
/* Steps taken (those skipped do not count): what the correction of the moments goes by. */
HONE_API uint64_t hone_optim_count(const hone_optim *o);
HONE_API void hone_optim_set_count(hone_optim *o, uint64_t count);

typedef struct hone_optim_args {
    double lr;
    double scale; /* what gradients are multiplied with: 1 / minibatches that were accumulated; 0: 1 */
    double decay; /* of the average; 1 leaves it as it is */
} hone_optim_args;

typedef struct hone_optim_report {
    float grad_norm; /* before the clip; NaN if skipped */
    bool skipped;    /* a gradient was not finite: nothing has changed but the gradients, now zero */
} hone_optim_report;

/* Runs one update and waits. Allocates nothing. Nullable: report. Errors: HONE_E_ARG for a setting out of its range;
 * HONE_E_BUSY when a program is using one of the stores. */
HONE_API hone_status hone_optim_step(hone_optim *o, const hone_optim_args *a, hone_optim_report *report, hone_err *err);

#ifdef __cplusplus
}
#endif
#endif
