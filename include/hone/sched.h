/* hone/sched.h: noise schedules, parameterisations, sampler coefficients, and rates: arrays in, arrays out.
 *
 * Everything a denoiser needs that is not a network, in double, computed once and only here; training, sampling,
 * scoring and the real-time runtime read the same numbers.
 *
 * Notation. Clean data x0, standard normal noise ε, a noisy value x = α x0 + σ ε. Diffusion (variance preserving) has K
 * training timesteps t = 0 .. K-1, t = 0 the cleanest: α = √ᾱ_t, σ = √(1-ᾱ_t), and below t = 0 lies ᾱ = 1. Flow has a
 * time t in [0, 1]: α = 1-t, σ = t, x goes from noise at t = 1 to data at t = 0.
 * "Previous" is the cleaner level that a sampling step leads to, as in the literature.
 *
 * Names of rows may be written with '-' or '_'. A NULL name takes the default that is told. Numbers must be finite.
 * Errors: HONE_E_ARG unless told otherwise, naming the setting, what was wanted and what was got (and the nearest name
 * of a row); HONE_E_NOMEM. Objects are constant after creation: any number of threads may read them. Each is freed by
 * its own destroy (NULL is allowed) before its context. */
#ifndef HONE_SCHED_H
#define HONE_SCHED_H

#include "hone/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HONE_SCHED_MAX_STEPS 1000

/* ------------------------------------------------------------------ noise schedules */

/* The rows, and what beta_start and beta_end are in each (both 0: the defaults in brackets):
 *   cosine         ᾱ(u) = cos²((u + 0.008) / 1.008 · π/2), β_t = 1 - ᾱ((t+1)/K) / ᾱ(t/K); takes neither
 *                  (Nichol, Dhariwal 2021; in diffusers "squaredcos_cap_v2")
 *   linear         β of the first and of the last timestep, and evenly between [0.0001, 0.02]
 *   scaled_linear  the same, √β evenly [0.0001, 0.02]
 *   vp             rates b_min, b_max of the continuous process: β_t = 1 - exp(-b_min/K - (b_max-b_min)(2t+1)/(2K²))
 *                  [0.1, 10], as in Diffusion-QL (Wang et al. 2022)
 * No β exceeds 0.999. */
typedef struct hone_schedule_options {
    const char *name; /* Nullable: "cosine" */
    int steps;        /* K, 1 .. HONE_SCHED_MAX_STEPS */
    double beta_start, beta_end;
    bool rescale; /* linear, scaled_linear: multiply every β by 1000 / K. The usual values are meant for K = 1000; with
                   * a small K and without this, the last timestep is far from pure noise. */
} hone_schedule_options;

typedef struct hone_schedule {
    char name[32];
    int steps;               /* K */
    const double *beta;      /* [K], each in (0, 1) */
    const double *alpha_bar; /* [K], ᾱ_t = Π (1 - β), strictly falling, in (0, 1) */
    hone_ctx *ctx;           /* private */
} hone_schedule;

/* Refuses also what makes ᾱ fall below 1e-30. Owns: the result. */
HONE_API hone_schedule *hone_schedule_create(hone_ctx *ctx, const hone_schedule_options *options, hone_err *err);
HONE_API void hone_schedule_destroy(hone_schedule *s);

/* The name of row i, NULL past the last. */
HONE_API const char *hone_schedule_name(int i);

/* A schedule as plain data, for a checkpoint. A policy must be run with the arrays it was trained with, not with those
 * that a name gives today. */
typedef struct hone_schedule_data {
    const char *name; /* 1 to 31 bytes; needs not be that of a row */
    int64_t steps;
    const double *beta, *alpha_bar;
    size_t beta_count, alpha_bar_count; /* elements there are */
} hone_schedule_data;

/* Points into `s`, valid as long as it lives. */
HONE_API hone_schedule_data hone_schedule_give(const hone_schedule *s);
/* Copies, bit by bit. HONE_E_FORMAT: not a schedule (counts other than `steps`, ᾱ not strictly falling inside of
 * (0, 1), β_t off 1 - ᾱ_t/ᾱ_{t-1} by more than 1e-5, which leaves room for arrays computed in float). */
HONE_API hone_schedule *hone_schedule_take(hone_ctx *ctx, const hone_schedule_data *data, hone_err *err);

/* ------------------------------------------------------------------ parameterisations: what the network's output is */

/* The rows:
 *   epsilon   out = ε             diffusion, flow below t = 1
 *   x0        out = x0            diffusion, flow
 *   v         out = α ε - σ x0    diffusion only (Salimans, Ho 2022)
 *   velocity  out = ε - x0        flow only
 * target = q_0 x0 + q_e ε;  x̂0 = p_x x + p_o out;  ε̂ = e_x x + e_o out.
 * A squared error of the output is `gain` times that of x̂0. */
typedef struct hone_param_row {
    double q_0, q_e, p_x, p_o, e_x, e_o, gain;
} hone_param_row;

/* Nullable: name ("epsilon"). The level is α, σ as above. HONE_E_ARG also for a level that the row cannot have: σ = 0,
 * α = 0 in epsilon, α² + σ² ≠ 1 in v, α + σ ≠ 1 in velocity. */
HONE_API hone_status hone_param_at(const char *name, double alpha, double sigma, hone_param_row *out, hone_err *err);
HONE_API const char *hone_param_name(int i);

/* Weights over timesteps of the squared error, with SNR = ᾱ/(1-ᾱ). The rows, told as weights of the error of x̂0:
 *   uniform  plain squared error of the output: `gain`
 *   min_snr  min(SNR, gamma) (Hang et al. 2023)
 *   mixed    λ |ε-ε̂|² + (1-λ) |x0-x̂0|² from one output: min(λ SNR + 1-λ, w_max). Wants x0 or v: with epsilon the
 *            weight of the output's error would grow as 1/SNR. */
typedef struct hone_loss_options {
    const char *name; /* Nullable: "uniform" */
    double gamma;     /* min_snr: > 0; 0: 5 */
    double lambda;    /* mixed: share of the ε objective, 0 .. 1 */
    double w_max;     /* mixed: > 0; 0: 5 */
} hone_loss_options;

HONE_API const char *hone_loss_name(int i);

/* weight[K]: what the squared error of the *output* is multiplied with at each timestep. Allocates nothing, so λ may
 * move while training runs. Nullable: param ("epsilon"), options (uniform). */
HONE_API hone_status hone_loss_weights(const hone_schedule *s, const char *param, const hone_loss_options *options,
                                       double *weight, hone_err *err);

/* All of training, by timestep: x = alpha x0 + sigma ε, target = q_0 x0 + q_e ε, and back from an output. */
typedef struct hone_objective {
    const char *param, *loss; /* names of rows */
    int steps;                /* K, the length of every array */
    const double *alpha, *sigma;
    const double *q_0, *q_e;
    const double *p_x, *p_o, *e_x, *e_o;
    const double *weight;
    hone_ctx *ctx; /* private */
} hone_objective;

/* Nullable: param, loss, as above. `s` is not needed afterwards. Owns: the result. */
HONE_API hone_objective *hone_objective_create(hone_ctx *ctx, const hone_schedule *s, const char *param,
                                               const hone_loss_options *loss, hone_err *err);
HONE_API void hone_objective_destroy(hone_objective *o);

/* ------------------------------------------------------------------ samplers */

/* The rows. A step goes from (α, σ) to (α_p, σ_p):   x_next = c_x x + c_0 x̂0 + std z,   z standard normal.
 * Diffusion, parameterisations epsilon, x0, v:
 *   ddpm      posterior mean of x0 and x (Ho et al. 2020); with fewer than K steps β = 1 - ᾱ/ᾱ_p of the listed steps
 *   ddim      √ᾱ_p x̂0 + √max(0, 1-ᾱ_p-std²) ε̂, std = eta √((1-ᾱ_p)/(1-ᾱ) (1-ᾱ/ᾱ_p)) (Song et al. 2020);
 *             eta 0: deterministic, eta 1: the same as ddpm
 * Flow, parameterisations velocity, x0; grid t_i = 1 - i/S, u = t_{i+1}, x̂1 = ε̂:
 *   flow-ode  (1-u) x̂0 + u x̂1, an Euler step along the velocity
 *   flow-sde  (1-u) x̂0 + (u - s²(t-u)/(2t)) x̂1, std = s √(t-u), s = eta √(t/(1-t)), where t = 1 takes the t of the
 *             next grid point (Flow-GRPO, Liu et al. 2025). Noise is added in the last step too. With S = 1 there is
 *             none.
 *   flow-cps  (1-u) x̂0 + u cos(π eta/2) x̂1, std = u sin(π eta/2) (coefficients-preserving sampling)
 * All but flow-sde end in x̂0 exactly. */
typedef struct hone_sampler_options {
    const char *name;    /* Nullable: "ddim" */
    const char *spacing; /* diffusion; nullable: "trailing" (t = round(K (S-i)/S) - 1, ties to even: begins at K-1).
                          * "leading" (t = (S-1-i) ⌊K/S⌋) is for policies made elsewhere: it begins below pure noise. */
    const char *param;   /* Nullable: "epsilon" in diffusion, "velocity" in flow */
    int steps;           /* S: 1 .. K in diffusion, 0: K; 1 .. HONE_SCHED_MAX_STEPS in flow */
    double eta;          /* amount of noise: ddim and flow-cps 0 .. 1, flow-sde 0 .. 2, others 0 */
    double x0_clip; /* x̂0 is clamped to ± this; 0: not at all. Right only for data normalised to ± this (min-max):
                     * with a mean-std normaliser it cuts off good actions. */
    double min_std_sample, min_std_score; /* floors of std, >= 0: for sampling in training, for likelihoods (DPPO, Ren
                                           * et al. 2024). They change neither c_x nor c_0. */
} hone_sampler_options;

/* One sampling program. Every array is [steps], in order of execution: i = 0 is the noisiest. */
typedef struct hone_sampler {
    const char *name, *spacing, *param; /* names of rows; spacing is NULL in flow */
    int steps;                          /* S */
    bool flow, stochastic;              /* stochastic: some std > 0 */
    double eta, x0_clip, min_std_sample, min_std_score;
    const int *timestep; /* NULL in flow */
    const double *time;  /* what a time embedding is given: the timestep, or t */
    /* the level of x before step i and after it; alpha_bar and its previous are NULL in flow */
    const double *alpha, *sigma, *alpha_prev, *sigma_prev;
    const double *alpha_bar, *alpha_bar_prev;
    const double *p_x, *p_o; /* x̂0 = clamp(p_x x + p_o out) */
    const double *e_x, *e_o; /* ε̂ = e_x x + e_o out, before the clamp */
    const double *r_x, *r_0; /* ε̂ = r_x x + r_0 x̂0, the one that belongs to a clamped x̂0: c_x and c_0 use it */
    const double *c_x, *c_0, *std;
    const double *std_sample, *std_score; /* std with its floors */
    hone_ctx *ctx;                        /* private */
} hone_sampler;

/* Nullable: s, in flow. It is not needed afterwards. Owns: the result. */
HONE_API hone_sampler *hone_sampler_create(hone_ctx *ctx, const hone_schedule *s, const hone_sampler_options *options,
                                           hone_err *err);
HONE_API void hone_sampler_destroy(hone_sampler *p);
HONE_API const char *hone_sampler_name(int i);

/* The reference of one element of step i, 0 <= i < steps: x̂0 of the network's output, with the clamp; its ε̂; the mean
 * of x_next. A NaN goes through. */
HONE_API double hone_sampler_x0(const hone_sampler *p, int i, double x, double out);
HONE_API double hone_sampler_eps(const hone_sampler *p, int i, double x, double x0);
HONE_API double hone_sampler_mean(const hone_sampler *p, int i, double x, double x0);

/* The clip range of a likelihood ratio at step i of the last n (i = n-1 the cleanest), growing from `base` to `full`:
 * base + (full-base) (e^{rate τ}-1)/(e^rate-1), τ = i/(n-1) (DPPO). n = 1 has τ = 1; rate 0 is linear. Pure; i is
 * taken into 0 .. n-1. */
HONE_API double hone_clip_range(double base, double full, double rate, int i, int n);

/* ------------------------------------------------------------------ rates of training */

/* The rows: constant, cosine. Both first rise: lr (step+1)/(warmup+1) for step < warmup. cosine then falls from lr at
 * step = warmup to `floor` at step = total, along half a cosine, and stays there. */
typedef struct hone_lr_options {
    const char *name; /* Nullable: "constant" */
    double lr, floor; /* lr > 0, 0 <= floor <= lr; constant has no floor */
    int64_t warmup;   /* steps, >= 0 */
    int64_t total;    /* steps, > warmup; constant has none */
} hone_lr_options;

HONE_API hone_status hone_lr_check(const hone_lr_options *o, hone_err *err);
/* The rate of a step, 0 the first (a negative one counts as 0); a function of the step alone, so a resume needs nothing
 * else. With options that hone_lr_check refuses, 0. */
HONE_API double hone_lr_at(const hone_lr_options *o, int64_t step);
HONE_API const char *hone_lr_name(int i);

/* The decay of the n-th update (from 0) of an average of the weights: min(decay, (1+n)/(10+n)). */
HONE_API double hone_average_decay(double decay, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
