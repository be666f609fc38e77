/* conv_block for a few samples: a decision. It is bound by reading the weights, so they are read once, in order, by one
 * vector of 16 output channels a tap, while up to 16 rows of time stay in registers; norm, activation, FiLM and
 * residual follow while the result (a few kilobytes) is in the first-level cache.
 *
 * Flops and bytes of the reference network, one step at batch 1: 36 MFLOP against 15.2 MB of weights, which lie beyond
 * the second-level cache. Vectors are GCC's portable ones; the same code is compiled for AVX-512, AVX2 and plainly, and
 * the widest that the machine has is taken. */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "op/conv_block.h"

typedef float vec __attribute__((vector_size(64)));
typedef int32_t ivec __attribute__((vector_size(64)));
/* The same in memory, where it may stand at any float. */
typedef float mem_vec __attribute__((vector_size(64), aligned(4), may_alias));

struct shape {
    int64_t t, b, c, o, k, stride, pad, t_out, blocks;
    int gamma, film, residual;
};

static struct shape shape_of(const struct op_call *c)
{
    const int64_t *a = c->attr.i, *x = c->in[0].shape.dim;
    struct shape s = {x[0],
                      x[1],
                      x[2],
                      a[CB_OUT],
                      c->in[1].shape.dim[2],
                      a[CB_STRIDE],
                      a[CB_PAD],
                      c->out[0].shape.dim[0],
                      c->in[1].shape.dim[0],
                      0,
                      0,
                      0};
    int at = 3;
    s.gamma = a[CB_GROUPS] > 0 ? at : 0;
    at += s.gamma ? 2 : 0;
    s.film = a[CB_FILM] ? at : 0;
    at += s.film ? 2 : 0;
    s.residual = a[CB_RESIDUAL] ? at++ : 0;
    return s;
}

/* Scratch of one thread: the padded input of a sample, the result before it is cut to O channels, and what its
 * channels are normalised with. */
static size_t floats_in(const struct shape *s)
{
    return (size_t)((s->t + 2 * s->pad) * s->c + CB_LANES);
}

static size_t floats_out(const struct shape *s)
{
    return (size_t)(s->t_out * s->blocks * CB_LANES);
}

static size_t scratch(const struct op_call *c, int threads)
{
    struct shape s = shape_of(c);
    (void)threads;
    return (floats_in(&s) + floats_out(&s) + 3 * (size_t)(s.blocks * CB_LANES) + 64) * sizeof(float);
}

/* a where the mask is set (all bits of an element), b elsewhere. */
static inline __attribute__((always_inline)) vec pick(ivec mask, vec a, vec b)
{
    return (vec)(((ivec)a & mask) | ((ivec)b & ~mask));
}

/* exp of 16 floats: 2^n e^r with a polynomial of degree 6; the argument is held in [-87, 88]. */
static inline __attribute__((always_inline)) vec exp16(vec x)
{
    const vec hi = (vec){0} + 88.0f, lo = (vec){0} - 87.0f;
    x = pick(x > hi, hi, x);
    x = pick(x < lo, lo, x);
    vec n = x * 1.44269504f + 12582912.0f; /* rounds to an integer in the low bits */
    ivec e = (ivec)n - 0x4B400000;
    n -= 12582912.0f;
    vec r = x - n * 0.693359375f + n * 2.12194440e-4f;
    vec p = (vec){0} + 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return (vec)((ivec)p + (e << 23));
}

/* x tanh(log(1 + e^x)) = x n / (n + 2) with n = e^x (e^x + 2); beyond 20 that is x. */
static inline __attribute__((always_inline)) vec act16(int64_t act, vec x)
{
    if (act == CB_MISH) {
        vec e = exp16(pick(x > 20.0f, (vec){0} + 20.0f, x)), n = e * (e + 2.0f), y = x * n / (n + 2.0f);
        return pick(x > 20.0f, x, y);
    }
    if (act == CB_SILU)
        return x / (1.0f + exp16(-x));
    if (act == CB_RELU)
        return pick(x > 0.0f, x, (vec){0});
    return x;
}

/* R rows of one block of 16 output channels. x: first padded row of the first result; rows are `row` floats apart,
 * results `stride` rows apart. */
#define ROWS(R)                                                                                                        \
    {                                                                                                                  \
        vec a[R];                                                                                                      \
        for (int r = 0; r < R; r++)                                                                                    \
            a[r] = (vec){0};                                                                                           \
        for (int64_t c = 0; c < s->c; c++)                                                                             \
            for (int64_t k = 0; k < taps; k++, w += CB_LANES) {                                                        \
                const vec v = *(const mem_vec *)w;                                                                     \
                const float *q = x + k * s->c + c;                                                                     \
                CPU_PRAGMA(GCC unroll 16)                                                                              \
                for (int r = 0; r < R; r++)                                                                            \
                    a[r] += v * q[r * step];                                                                           \
            }                                                                                                          \
        for (int r = 0; r < R; r++)                                                                                    \
            *(mem_vec *)(y + r * width) = a[r];                                                                        \
        return;                                                                                                        \
    }

static inline __attribute__((always_inline)) void block_rows(const struct shape *s, int64_t taps, const float *x,
                                                             const float *w, float *y, int rows)
{
    const int64_t step = s->stride * s->c, width = s->blocks * CB_LANES;
    switch (rows) {
    case 16:
        ROWS(16)
    case 8:
        ROWS(8)
    case 4:
        ROWS(4)
    case 2:
        ROWS(2)
    default:
        ROWS(1)
    }
}

/* All rows of one block of channels, in tiles of at most 16; a tap count known to the compiler unrolls. */
static inline __attribute__((always_inline)) void conv_block_channels(const struct shape *s, int64_t taps,
                                                                      const float *x, const float *w, float *y)
{
    const int64_t step = s->stride * s->c, width = s->blocks * CB_LANES;
    for (int64_t t = 0; t < s->t_out;) {
        const int64_t left = s->t_out - t;
        const int rows = left >= 16 ? 16 : left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        block_rows(s, taps, x + t * step, w, y + t * width, rows);
        t += rows;
    }
}

static inline __attribute__((always_inline)) void convolve(const struct shape *s, const float *x, const float *w,
                                                           float *y)
{
    const int64_t block = s->c * s->k * CB_LANES;
    for (int64_t o = 0; o < s->blocks; o++)
        if (s->k == 5)
            conv_block_channels(s, 5, x, w + o * block, y + o * CB_LANES);
        else if (s->k == 1)
            conv_block_channels(s, 1, x, w + o * block, y + o * CB_LANES);
        else
            conv_block_channels(s, s->k, x, w + o * block, y + o * CB_LANES);
}

/* What a channel's results are normalised with. */
struct norm {
    float *centre, *factor, *offset; /* (y - centre) factor + offset, y without bias */
};

/* gamma (y + bias - mean) / sqrt(var + eps) + beta. Sums are in double over the few rows; the variance is taken about
 * the mean, and the mean is taken off before anything is multiplied: where the variance is small, factor y + offset
 * would cancel. */
static void norm_factors(const struct bk_io *io, const struct shape *s, const float *y, const struct norm *n)
{
    const int64_t groups = io->call->attr.i[CB_GROUPS], wide = s->o / groups, width = s->blocks * CB_LANES;
    const float *bias = io->in[2], *gamma = io->in[s->gamma], *beta = io->in[s->gamma + 1];
    for (int64_t g = 0; g < groups; g++) {
        double sum = 0, var = 0;
        for (int64_t t = 0; t < s->t_out; t++)
            for (int64_t o = g * wide; o < (g + 1) * wide; o++)
                sum += y[t * width + o] + bias[o];
        const double mean = sum / (double)(wide * s->t_out);
        for (int64_t t = 0; t < s->t_out; t++)
            for (int64_t o = g * wide; o < (g + 1) * wide; o++) {
                const double d = y[t * width + o] + bias[o] - mean;
                var += d * d;
            }
        const double rstd = 1 / sqrt(var / (double)(wide * s->t_out) + io->call->attr.f[0]);
        for (int64_t o = g * wide; o < (g + 1) * wide; o++) {
            n->centre[o] = (float)(mean - bias[o]);
            n->factor[o] = (float)(gamma[o] * rstd);
            n->offset[o] = beta[o];
        }
    }
}

static inline __attribute__((always_inline)) vec load_part(const float *p, int64_t n)
{
    vec v = {0};
    if (n >= CB_LANES)
        return *(const mem_vec *)p;
    memcpy(&v, p, (size_t)n * sizeof(float));
    return v;
}

/* norm, activation, FiLM, residual; y [T'][blocks 16] -> out, whose rows are B O apart. */
static inline __attribute__((always_inline)) void finish(const struct bk_io *io, const struct shape *s, int64_t b,
                                                         const float *y, const struct norm *norm)
{
    const int64_t width = s->blocks * CB_LANES, act = io->call->attr.i[CB_ACT];
    const float *scale = s->film ? (const float *)io->in[s->film] + b * s->o : NULL;
    const float *shift = s->film ? (const float *)io->in[s->film + 1] + b * s->o : NULL;
    for (int64_t t = 0; t < s->t_out; t++) {
        float *out = (float *)io->out[0] + (t * s->b + b) * s->o;
        const float *res = s->residual ? (const float *)io->in[s->residual] + (t * s->b + b) * s->o : NULL;
        for (int64_t o = 0; o < s->o; o += CB_LANES) {
            const int64_t n = s->o - o;
            vec v = *(const mem_vec *)(y + t * width + o);
            v = (v - *(const mem_vec *)(norm->centre + o)) * *(const mem_vec *)(norm->factor + o);
            v = act16(act, v + *(const mem_vec *)(norm->offset + o));
            if (scale)
                v = v * load_part(scale + o, n) + load_part(shift + o, n);
            if (res)
                v += load_part(res + o, n);
            if (n >= CB_LANES)
                *(mem_vec *)(out + o) = v;
            else
                memcpy(out + o, &v, (size_t)n * sizeof(float));
        }
    }
}

static inline __attribute__((always_inline)) void run_all(const struct bk_io *io)
{
    const struct shape s = shape_of(io->call);
    float *x = io->scratch, *y = x + (floats_in(&s) + 15) / 16 * 16, *base = y + floats_out(&s);
    const int64_t lanes = s.blocks * CB_LANES;
    const struct norm n = {base, base + lanes, base + 2 * lanes};
    memset(x, 0, (size_t)(s.pad * s.c) * sizeof(float));
    memset(x + (s.pad + s.t) * s.c, 0, (size_t)(s.pad * s.c) * sizeof(float));
    memset(base, 0, 3 * (size_t)lanes * sizeof(float));
    for (int64_t b = 0; b < s.b; b++) {
        for (int64_t t = 0; t < s.t && s.c; t++)
            memcpy(x + (s.pad + t) * s.c, (const float *)io->in[0] + (t * s.b + b) * s.c, (size_t)s.c * sizeof(float));
        convolve(&s, x, io->in[1], y);
        if (s.gamma)
            norm_factors(io, &s, y, &n);
        else
            for (int64_t o = 0; o < s.o; o++) {
                n.factor[o] = 1;
                n.offset[o] = ((const float *)io->in[2])[o];
            }
        finish(io, &s, b, y, &n);
    }
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma"))) static void run_avx512(const struct bk_io *io)
{
    run_all(io);
}

__attribute__((target("avx2,fma"))) static void run_avx2(const struct bk_io *io)
{
    run_all(io);
}
#endif

static hone_status conv_block_run(const struct bk_io *io, hone_err *err)
{
    (void)err;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        run_avx512(io);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        run_avx2(io);
    else
#endif
        run_all(io);
    return HONE_OK;
}

const struct bk_kernel cpu_conv_block = {.op = "conv_block", .scratch = scratch, .run = conv_block_run};

static hone_status conv_pack_run(const struct bk_io *io, hone_err *err)
{
    const int64_t *w = io->call->in[0].shape.dim;
    const float *x = io->in[0];
    float *y = io->out[0];
    (void)err;
    for (int64_t o = 0; o < (w[0] + CB_LANES - 1) / CB_LANES * CB_LANES; o++)
        for (int64_t c = 0; c < w[1]; c++)
            for (int64_t k = 0; k < w[2]; k++)
                y[((o / CB_LANES * w[1] + c) * w[2] + k) * CB_LANES + o % CB_LANES] =
                    o < w[0] ? x[(o * w[1] + c) * w[2] + k] : 0;
    return HONE_OK;
}

const struct bk_kernel cpu_conv_pack = {.op = "conv_pack", .run = conv_pack_run};
