/* hone/head.h: denoisers, the objective they are trained with, and the sampler loop.
 *
 * Everything here builds a graph. Numbers come from hone/sched.h alone: an objective for training, a sampler for
 * sampling; a graph holds them as constants. Shapes: B batch, T horizon, A actions, S steps of a sampler, K training
 * timesteps. Noise and timesteps are random buffers of the graph, or given as values, so that a test or a replay can
 * supply them.
 *
 * Errors stay in the graph, as those of operations do, and name the layer; hone_compile or hone_graph_status tells
 * them. Nothing is owned. Pointers handed in must live while the graph is built. Thread: as for the graph. */
#ifndef HONE_HEAD_H
#define HONE_HEAD_H

#include "hone/field.h"
#include "hone/graph.h"
#include "hone/nn.h"
#include "hone/sched.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ denoisers */

/* Builds a network's output [B,T,A] for the noisy x [B,T,A] at time t under condition `cond` (HONE_NONE: there is none;
 * else [B, ...]). What the output stands for (ε, x0, v, velocity) is the business of the objective and the sampler.
 * t is f32, [B], or rank 0 when it is the same for the whole batch, as it is in a sampler: the timestep in diffusion,
 * HONE_FLOW_TIME times the time in flow. It may be called several times for one graph. */
typedef hone_t (*hone_denoiser_fn)(void *user, hone_t x, hone_t t, hone_t cond);

typedef struct hone_denoiser {
    hone_denoiser_fn fn;
    void *user;
} hone_denoiser;

/* A flow's time in [0, 1] is multiplied by this for the network, whose time embedding is made for timesteps. */
#define HONE_FLOW_TIME 1000.0

/* Calls it, and refuses a result that is not of x's type. */
HONE_API hone_t hone_denoise(hone_denoiser d, hone_t x, hone_t t, hone_t cond);

/* A network of hone/nn.h. `n` and what it points to are borrowed; its layers share their parameters between calls. */
typedef struct hone_net_denoiser {
    const hone_net *net;
    const hone_nn *nn;
    const void *config;
} hone_net_denoiser;
HONE_API hone_denoiser hone_denoiser_net(hone_net_denoiser *n);

/* A denoiser whose condition is fixed; what it is called with does not count. `c` is borrowed. */
typedef struct hone_conditioned {
    hone_denoiser inner;
    hone_t cond;
} hone_conditioned;
HONE_API hone_denoiser hone_denoiser_conditioned(hone_conditioned *c);

/* Classifier-free guidance (Ho, Salimans 2022): out = out_∅ + w (out_c - out_∅), from one evaluation of 2 B, the
 * unconditional half first; so w = 0 is unconditional, 1 conditional, above 1 sharper than was learned. It is linear in
 * the output, so it means the same for ε, x0, v and velocity; a sampler clamps x̂0 after it. w far above 1 drives x̂0
 * into the clamp. `guidance` is borrowed. */
typedef struct hone_guidance {
    hone_denoiser inner;
    hone_t null;  /* stands for a dropped condition, usually a learned parameter: [..., C - keep], broadcast */
    int64_t keep; /* cond is [B, ..., C]; its first `keep` numbers (the state) are never dropped, the others are */
    hone_t w;     /* one element: hone_const_f32(g, 1.5), or an input to move it without compiling again */
} hone_guidance;
HONE_API hone_denoiser hone_denoiser_guided(hone_guidance *guidance);

/* Two heads: a network that gives [B,T,2A], in each action first the noise ε̂, then the clean action x̂ (a config of
 * hone/nn.h with `outputs` = 2 A). An x0 that follows from ε̂ has σ/α times its error: too much in pure noise, hardly
 * any near the end. So the clean head has a share ρ, 1 in pure noise, 0 at the end, by which both the loss and the
 * estimate go:
 *   ρ = 1 / (1 + (α/σ)^(2 sharp)),
 *   loss = ρ (x̂ - x0)² + (1-ρ) (ε̂ - ε)²,
 *   x̂0 = ρ x̂ + (1-ρ) (x - σ ε̂) / α.
 * Exact heads give an exact x̂0, whatever ρ. sharp 1: ρ = σ², and x̂0 = α x - σ (α ε̂ - σ x̂), which is v-prediction with
 * v̂ = α ε̂ - σ x̂; with heads of equal, independent errors no other ρ leaves x̂0 a smaller one. A larger sharp passes
 * from head to head within fewer timesteps. No factor of x̂0 exceeds √2, however small α is. */
typedef struct hone_two_head {
    hone_denoiser inner;
    const hone_schedule *schedule; /* timesteps are those of it, so whole; flow has none */
    double sharp;                  /* 0.5 .. 8; 0: 1 */
} hone_two_head;

/* x̂0 of both heads as the output of one: sample it, guide it, as parameterisation "x0". `h` is borrowed. */
HONE_API hone_denoiser hone_denoiser_two_head(hone_two_head *h);
/* ρ. Pure. σ is above 0. */
HONE_API double hone_two_head_share(double alpha, double sigma, double sharp);

/* cond [B, ..., C], its numbers from `keep` on replaced by `null` where `drop`, bool [B], is true; HONE_NONE:
 * everywhere.
 */
HONE_API hone_t hone_condition_drop(hone_t cond, hone_t null, int64_t keep, hone_t drop);

/* ------------------------------------------------------------------ training */

/* What one batch is trained on. x0 is a must; everything else may be left out. */
typedef struct hone_diffusion_batch {
    hone_t x0;          /* f32 [B,T,A], clean and normalised */
    hone_t cond;        /* [B, ...] */
    hone_t mask;        /* bool [B,T]: false are padded actions, which do not count */
    hone_t scale;       /* f32 [B]: what each sample's error is multiplied with */
    hone_t weight;      /* f32 [K]: in place of the objective's weights, to move them while training. Diffusion only */
    hone_t t;           /* i32 [B] below K; in flow f32 [B] in [0, 1]. Left out: drawn evenly */
    hone_t noise;       /* f32 [B,T,A]. Left out: drawn, standard normal */
    double drop;        /* probability of dropping the condition, 0 .. 1, for guidance */
    hone_t null;        /* if drop > 0: as in hone_guidance */
    int64_t keep;       /* "" */
    hone_t uniform;     /* f32 [B] in [0, 1): a sample is dropped where it is below `drop`. Left out: drawn */
    const char *stream; /* what is drawn are the streams <stream>/noise, /time, /drop. Nullable: "diffusion" */
} hone_diffusion_batch;

typedef struct hone_diffusion_loss {
    hone_t loss;   /* rank 0: mean of scale weight (out - target)², over elements that count */
    hone_t each;   /* [B]: the same for each sample by itself, without `scale`; 0 where nothing counts */
    hone_t x;      /* [B,T,A]: x0 with its noise */
    hone_t target; /* [B,T,A] */
    hone_t out;    /* [B,T,A]: the denoiser's */
    hone_t heads;  /* [B,T,2A]: of two heads; HONE_NONE: there are none */
} hone_diffusion_loss;

/* The objective of one batch: x = α_t x0 + σ_t ε, target = q_0 x0 + q_e ε, weights as in hone_loss_weights, all from
 * `o`. NULL `o`: flow matching (Lipman et al. 2023), x = (1-t) x0 + t ε, target = ε - x0, t uniform, weight 1.
 * The objective's K bounds the timesteps that are drawn; those given are the caller's to bound (hone_input_index). */
HONE_API hone_diffusion_loss hone_diffusion_objective(const hone_objective *o, hone_denoiser d,
                                                      const hone_diffusion_batch *batch);

/* The same of two heads: loss and `each` are the means of ρ (x̂ - x0)² + (1-ρ) (ε̂ - ε)², times batch->weight where it
 * is given; out is x̂0 of both heads, target is x0. */
HONE_API hone_diffusion_loss hone_two_head_objective(const hone_two_head *h, const hone_diffusion_batch *batch);

/* ------------------------------------------------------------------ sampling */

/* Which standard deviation of hone_sampler noise has. */
typedef enum hone_sample_std {
    HONE_SAMPLE_PLAIN,  /* std */
    HONE_SAMPLE_EXPLORE /* std_sample: with the floor meant for training */
} hone_sample_std;

/* All but the first two may be left out. */
typedef struct hone_sample_args {
    const hone_sampler *sampler;
    hone_denoiser denoiser;
    hone_t cond;        /* handed to the denoiser */
    hone_shape shape;   /* [B,T,A], where `start` is left out */
    hone_t start;       /* f32 [B,T,A]: x before the first step. Left out: drawn, standard normal */
    hone_t noise;       /* f32 [S,B,T,A]: z of each step. Left out: drawn, if any step has noise */
    const char *stream; /* what is drawn are the streams <stream>/start, /noise. Nullable: "sampler" */
    hone_sample_std std;
    bool unroll;    /* needed for gradients; else one body is repeated: compiled once, run S times */
    int grad_last;  /* unrolled: gradient through the last n steps only; 0: through all */
    int segment;    /* unrolled: the gradient is cut between segments of this many steps; 0: never */
    hone_t *states; /* unrolled: S + 1 places for x before each step, and the result; NULL: not wanted */
} hone_sample_args;

/* Clean actions [B,T,A]. The one loop of every sampler: with out = denoiser(x, time, cond),
 *   x̂0 = clamp(p_x x + p_o out, ± x0_clip),   x <- c_x x + c_0 x̂0 + std z,
 * S times, over the arrays of the sampler. ε̂ is derived again from the clamped x̂0: that is in c_x and c_0 (see
 * hone_sampler). Where the clamp acts no gradient passes. */
HONE_API hone_t hone_sample(hone_graph *g, const hone_sample_args *args);

/* ------------------------------------------------------------------ settings */

/* How to sample, as a section of a config. Names are those of rows in hone/sched.h. */
typedef struct hone_sampling_config {
    int sampler;    /* ddpm, ddim, flow-ode, flow-sde, flow-cps */
    int64_t steps;  /* 0: all of the schedule */
    int spacing;    /* trailing, leading; flow has none */
    double eta;     /* these three as in hone_sampler_options */
    double clip;    /* x0_clip */
    double min_std; /* min_std_sample */
} hone_sampling_config;
HONE_API const hone_field_table *hone_sampling_fields(void);

/* What the network puts out: rows of hone/sched.h, or two heads. */
typedef enum hone_predict { HONE_PREDICT_EPSILON, HONE_PREDICT_X0, HONE_PREDICT_V, HONE_PREDICT_BOTH } hone_predict;

/* How to train, as a section of a config. */
typedef struct hone_diffusion_config {
    int64_t steps;  /* K */
    int schedule;   /* cosine, linear, scaled_linear, vp */
    int predict;    /* a hone_predict: epsilon, x0, v, both */
    int loss;       /* uniform, min_snr, mixed */
    double min_snr; /* gamma, */
    double lambda;  /* and lambda of hone_loss_options */
    double drop;    /* probability of dropping the condition, for guidance */
    double sharp;   /* of hone_two_head */
} hone_diffusion_config;
HONE_API const hone_field_table *hone_diffusion_fields(void);

/* What hone/sched.h makes of these settings. HONE_E_CONFIG for a value that its field refuses; else errors as there.
 * Owns: the results. Nullable: `s` for a flow sampler; then `predict` is not looked at, the output is a velocity.
 * Two heads have no hone_objective, they are trained by hone_two_head_objective: hone_diffusion_create gives
 * HONE_E_CONFIG; their sampler is that of x0. */
HONE_API hone_schedule *hone_diffusion_schedule(hone_ctx *ctx, const hone_diffusion_config *c, hone_err *err);
HONE_API hone_objective *hone_diffusion_create(hone_ctx *ctx, const hone_schedule *s, const hone_diffusion_config *c,
                                               hone_err *err);
HONE_API hone_sampler *hone_sampling_create(hone_ctx *ctx, const hone_schedule *s, int predict,
                                            const hone_sampling_config *c, hone_err *err);

#ifdef __cplusplus
}
#endif
#endif
