/* conv_block for a few samples: a decision. It is bound by reading the weights, so they are read once, in order, while
 * the rows of time stay in registers; norm, activation, FiLM and residual follow while the result (a few kilobytes) is
 * in the first-level cache. A team of threads shares the output channels, in parts that hold whole groups of the norm:
 * then no part waits for another, and the result does not depend on who made which.
 *
 * Flops and bytes of the reference U-Net, one step at batch 1: 36 MFLOP (28 without padding) against 15.2 MB of
 * weights, which lie beyond the second-level cache.
 *
 * The code is compiled for AVX-512, AVX2 and plainly, and the widest that the machine has is taken. */
#include <math.h>
#include <string.h>

#include "backend/cpu/conv_tile.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/turn16.h"
#include "base/team.h"
#include "op/conv_block.h"

struct shape {
    int64_t t, b, c, o, k, stride, pad, t_out, blocks;
    int64_t part; /* blocks of one part: whole groups */
    int gamma, film, residual;
    bool half;
};

enum {
    LANES_ARRAYS = 5,
    NEAR_CHANNELS = 256 /* 16 kilobytes of rows, and as many of weights */
};

/* Whole groups, and as many blocks as tiles take at once; two parts at least, more for the larger ones, so that a
 * thread which comes late finds some left. */
static int64_t part_of(const struct shape *s, int64_t groups)
{
    const int64_t wide = groups ? s->o / groups : 1, whole = s->blocks * CB_LANES;
    int64_t lanes = CB_LANES; /* least common multiple of a block and a group */
    while (lanes < whole && lanes % wide)
        lanes += CB_LANES;
    const int64_t unit = lanes / CB_LANES;
    const int64_t want = s->blocks >= 32 ? 8 : s->blocks >= 8 ? 4 : (s->blocks + 1) / 2;
    return want ? (want + unit - 1) / unit * unit : 1;
}

static struct shape shape_of(const struct op_call *c)
{
    const int64_t *a = c->attr.i, *x = c->in[0].shape.dim;
    struct shape s = {.t = x[0],
                      .b = x[1],
                      .c = x[2],
                      .o = a[CB_OUT],
                      .k = c->in[1].shape.dim[2],
                      .stride = a[CB_STRIDE],
                      .pad = a[CB_PAD],
                      .t_out = c->out[0].shape.dim[0],
                      .blocks = c->in[1].shape.dim[0],
                      .half = c->in[1].dtype == HONE_BF16};
    int at = 3;
    s.gamma = a[CB_GROUPS] > 0 ? at : 0;
    at += s.gamma ? 2 : 0;
    s.film = a[CB_FILM] ? at : 0;
    at += s.film ? 2 : 0;
    s.residual = a[CB_RESIDUAL] ? at++ : 0;
    s.part = part_of(&s, a[CB_GROUPS]);
    return s;
}

/* Whether tiles may read the operand where it is, leaving out what padding would add. */
static bool reads_directly(const struct shape *s)
{
    if (s->stride != 1 || s->pad != s->k / 2 || s->t_out != s->t)
        return false;
    return s->k == 1 || ((s->k == 3 || s->k == 5) && (s->t == 4 || s->t == 8 || s->t == 16));
}

struct work {
    const struct bk_io *io;
    struct shape s;
    bool direct;
    float *padded; /* [B][T + 2 pad][C], unless direct; tiles of rows: [B][tiles][C][16] */
    float *y;      /* [T'][blocks 16]: results before they are cut to O channels */
    /* [blocks 16] each. (y - centre) factor + offset, y without bias; sums over time of a channel, and of squares */
    float *centre, *factor, *offset, *sum, *square;
};

/* Of one tap: how many tiles of 16 rows, the last perhaps not full, are worth turning; the rows are then side by side,
 * and each weight is read once for all of them. Eight rows or less are read where they are. */
static int64_t turned_tiles(const struct shape *s)
{
    return s->k == 1 ? (s->t + 7) / CB_LANES : 0;
}

static size_t floats_in(const struct shape *s)
{
    const int64_t padded = (s->t + 2 * s->pad) * s->c, turned = turned_tiles(s) * CB_LANES * s->c;
    return ((size_t)(s->b * (padded > turned ? padded : turned)) + 2 * CB_LANES) / CB_LANES * CB_LANES;
}

/* Rows of results: whole tiles. */
static int64_t rows_out(const struct shape *s)
{
    return s->t_out + CB_LANES - 1;
}

static size_t scratch(const struct op_call *c, int threads)
{
    const struct shape s = shape_of(c);
    (void)threads;
    return (floats_in(&s) + (size_t)((rows_out(&s) + LANES_ARRAYS) * s.blocks * CB_LANES)) * sizeof(float);
}

/* --- products --- */

/* Tiles of `rows` rows for n blocks, 1, 2 or 4; with eight rows there are registers for two. */
#define TILES(rows, taps, same, first, last)                                                                           \
    do {                                                                                                               \
        if (n == 4 && (rows) < 8)                                                                                      \
            conv_tile(&j, rows, (rows) < 8 ? 4 : 1, taps, half, same, first, last);                                    \
        else if (n == 2)                                                                                               \
            conv_tile(&j, rows, 2, taps, half, same, first, last);                                                     \
        else                                                                                                           \
            conv_tile(&j, rows, 1, taps, half, same, first, last);                                                     \
    } while (0)

/* The tiles of 16 rows, for blocks [from, to): some input channels at a time, so that rows stay in the first-level
 * cache while the blocks go by, and the weights of a block while the tiles do. */
VEC_INLINE void turned(const struct work *w, int64_t b, int64_t from, int64_t to, const bool half)
{
    const struct shape *s = &w->s;
    const int64_t vector = CB_LANES * (half ? 2 : 4), block = s->c * vector, tiles = turned_tiles(s);
    const int64_t most = tiles < 4 ? NEAR_CHANNELS / 2 / tiles * 2 : NEAR_CHANNELS / 4;
    for (int64_t c = 0; c < s->c; c += most) {
        const int64_t n = s->c - c < most ? s->c - c : most;
        const char *first = (const char *)w->io->in[1] + c * vector;
        for (int64_t o = from; o < to; o++)
            for (int64_t i = 0; i < tiles; i++) {
                const char *v = first + o * block, *behind = o + 1 < to ? v + block : first + from * block + n * vector;
                const struct conv_tile j = {.channels = n,
                                            .x = w->padded + ((b * tiles + i) * s->c + c) * CB_LANES,
                                            .w = v,
                                            .then = i + 1 < tiles ? v : behind,
                                            .y = w->y + (i * CB_LANES * s->blocks + o) * CB_LANES,
                                            .width = s->blocks * CB_LANES};
                const bool few = s->t - i * CB_LANES <= 12;
                if (few && c)
                    conv_turned(&j, 12, half, true);
                else if (few)
                    conv_turned(&j, 12, half, false);
                else if (c)
                    conv_turned(&j, CB_LANES, half, true);
                else
                    conv_turned(&j, CB_LANES, half, false);
            }
    }
}

/* Rows that no padding touches: one tap. */
VEC_INLINE void one_tap(struct conv_tile j, int64_t left, const int n, const bool half)
{
    while (left > 0) {
        const int rows = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        if (rows == 8)
            TILES(8, 1, true, false, false);
        else if (rows == 4)
            TILES(4, 1, true, false, false);
        else if (rows == 2)
            TILES(2, 1, true, false, false);
        else
            TILES(1, 1, true, false, false);
        left -= rows;
        j.x += rows * j.step;
        j.y += rows * j.width;
    }
}

/* The whole length at once, or as two tiles. */
VEC_INLINE void few_taps(struct conv_tile j, const int64_t t, const int n, const int taps, const bool half)
{
    if (t == 4) {
        TILES(4, taps, true, true, true);
    } else if (t == 8) {
        TILES(8, taps, true, true, true);
    } else {
        TILES(8, taps, true, true, false);
        j.x += 8 * j.step;
        j.y += 8 * j.width;
        TILES(8, taps, true, false, true);
    }
}

/* How many blocks the tiles of `directly` take at once. */
static int blocks_at_once(const struct shape *s, int64_t left)
{
    return left >= 4 && s->t < 8 ? 4 : left >= 2 ? 2 : 1;
}

/* The first lines of the weights that come next: loads of them then run beside what is done with the results. */
VEC_INLINE void prefetch_blocks(const char *w, int64_t block, int n)
{
    for (int b = 0; b < n; b++)
        for (int i = 0; i < 12; i++)
            __builtin_prefetch(w + b * block + 64 * i, 0, 2);
}

VEC_INLINE int directly(const struct work *w, int64_t b, int64_t o, int64_t left, const bool half)
{
    const struct shape *s = &w->s;
    const int64_t block = s->c * s->k * CB_LANES * (half ? 2 : 4), width = s->blocks * CB_LANES;
    const int n = blocks_at_once(s, left);
    const int64_t done = turned_tiles(s) * CB_LANES;
    const struct conv_tile j = {.channels = s->c,
                                .step = s->b * s->c,
                                .next = 1,
                                .x = (const float *)w->io->in[0] + (done * s->b + b) * s->c,
                                .w = (const char *)w->io->in[1] + o * block,
                                .block = block,
                                .y = w->y + done * width + o * CB_LANES,
                                .width = width};
    if (s->k == 1)
        one_tap(j, s->t - done, n, half);
    else if (s->k == 3)
        few_taps(j, s->t, n, 3, half);
    else
        few_taps(j, s->t, n, 5, half);
    if (left > n || o + n < s->blocks)
        prefetch_blocks(j.w + n * block, block, n);
    return n;
}

/* One block, any taps, any stride, from the padded copy. */
VEC_INLINE void from_padded(const struct work *w, int64_t b, int64_t o, const bool wide, const bool half)
{
    const struct shape *s = &w->s;
    const int64_t block = s->c * s->k * CB_LANES * (half ? 2 : 4), width = s->blocks * CB_LANES;
    struct conv_tile j = {.channels = s->c,
                          .step = s->stride * s->c,
                          .next = 1,
                          .tap = s->c,
                          .taps = s->k,
                          .x = w->padded + b * (s->t + 2 * s->pad) * s->c,
                          .w = (const char *)w->io->in[1] + o * block,
                          .block = block,
                          .y = w->y + o * CB_LANES,
                          .width = width};
    for (int64_t left = s->t_out; left > 0;) {
        const int rows = wide && left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        if (wide && rows == 8)
            conv_tile(&j, 8, 1, 0, half, false, false, false);
        else if (rows == 4)
            conv_tile(&j, 4, 1, 0, half, false, false, false);
        else if (rows == 2)
            conv_tile(&j, 2, 1, 0, half, false, false, false);
        else
            conv_tile(&j, 1, 1, 0, half, false, false, false);
        left -= rows;
        j.x += rows * j.step;
        j.y += rows * width;
    }
}

VEC_INLINE void convolve(const struct work *w, int64_t b, int64_t from, int64_t to, const bool wide, const bool half)
{
    const bool tiles = wide && w->direct && turned_tiles(&w->s) > 0;
    if (tiles)
        turned(w, b, from, to, half);
    if (tiles && w->s.t <= turned_tiles(&w->s) * CB_LANES)
        return;
    for (int64_t o = from; o < to;)
        if (wide && w->direct) {
            o += directly(w, b, o, to - o, half);
        } else {
            from_padded(w, b, o, wide, half);
            o++;
        }
}

/* --- what follows them --- */

/* Sums over time of each channel of the blocks, and of squares about `centre`. */
VEC_INLINE void sum_rows(const struct work *w, int64_t from, int64_t to, const bool squares)
{
    const int64_t width = w->s.blocks * CB_LANES;
    for (int64_t o = from * CB_LANES; o < to * CB_LANES; o += CB_LANES) {
        const vec centre = vec_load(w->centre + o);
        vec sum = {0};
        for (int64_t t = 0; t < w->s.t_out; t++) {
            const vec d = vec_load(w->y + t * width + o) - centre;
            sum += squares ? d * d : d;
        }
        *(mem_vec *)((squares ? w->square : w->sum) + o) = sum;
    }
}

/* gamma (y + bias - mean) / sqrt(var + eps) + beta. The variance is taken about the mean, and the mean is taken off
 * before anything is multiplied: where the variance is small, factor y + offset would cancel. */
VEC_INLINE void find_norm(const struct work *w, int64_t from, int64_t to)
{
    const struct shape *s = &w->s;
    const int64_t wide = s->o / w->io->call->attr.i[CB_GROUPS];
    const int64_t end = to * CB_LANES < s->o ? to * CB_LANES : s->o;
    const float *bias = w->io->in[2], *gamma = w->io->in[s->gamma], *beta = w->io->in[s->gamma + 1];
    const double n = (double)(wide * s->t_out), eps = w->io->call->attr.f[0];
    for (int64_t o = from * CB_LANES; o < end; o++)
        w->centre[o] = -bias[o];
    sum_rows(w, from, to, false);
    for (int64_t g = from * CB_LANES; g < end; g += wide) {
        double mean = 0;
        for (int64_t o = g; o < g + wide; o++)
            mean += w->sum[o];
        for (int64_t o = g; o < g + wide; o++)
            w->centre[o] = (float)(mean / n - bias[o]);
    }
    sum_rows(w, from, to, true);
    for (int64_t g = from * CB_LANES; g < end; g += wide) {
        double var = 0;
        for (int64_t o = g; o < g + wide; o++)
            var += w->square[o];
        const double rstd = 1 / sqrt(var / n + eps);
        for (int64_t o = g; o < g + wide; o++) {
            w->factor[o] = (float)(gamma[o] * rstd);
            w->offset[o] = beta[o];
        }
    }
}

VEC_INLINE vec activate(int64_t act, vec x)
{
    switch (act) {
    case CB_MISH:
        return vec_mish(x);
    case CB_SILU:
        return vec_silu(x);
    case CB_GELU_TANH:
        return vec_gelu_tanh(x);
    case CB_RELU:
        return vec_relu(x);
    default:
        return x;
    }
}

/* norm or bias, activation, FiLM, residual; y -> out, whose rows are B O apart. */
VEC_INLINE void finish(const struct work *w, int64_t b, int64_t from, int64_t to, const int64_t act)
{
    const struct bk_io *io = w->io;
    const struct shape *s = &w->s;
    const float *bias = io->in[2];
    const float *scale = s->film ? (const float *)io->in[s->film] + b * s->o : NULL;
    const float *shift = s->film ? (const float *)io->in[s->film + 1] + b * s->o : NULL;
    for (int64_t o = from * CB_LANES; o < to * CB_LANES; o += CB_LANES) {
        const int64_t n = s->o - o;
        const vec add = s->gamma ? vec_load(w->offset + o) : vec_load_part(bias + o, n);
        const vec centre = s->gamma ? vec_load(w->centre + o) : vec_all(0);
        const vec factor = s->gamma ? vec_load(w->factor + o) : vec_all(1.0f);
        const vec mul = scale ? vec_load_part(scale + o, n) : vec_all(0);
        const vec plus = scale ? vec_load_part(shift + o, n) : vec_all(0);
        for (int64_t t = 0; t < s->t_out; t++) {
            const int64_t at = (t * s->b + b) * s->o + o;
            vec v = vec_load(w->y + t * s->blocks * CB_LANES + o);
            v = activate(act, (v - centre) * factor + add);
            if (scale)
                v = v * mul + plus;
            if (s->residual)
                v += vec_load_part((const float *)io->in[s->residual] + at, n);
            vec_store_part((float *)io->out[0] + at, v, n);
        }
    }
}

/* The activation as a constant: its numbers then stay in registers. */
VEC_INLINE void finish_with(const struct work *w, int64_t b, int64_t from, int64_t to)
{
    const int64_t act = w->io->call->attr.i[CB_ACT];
    if (act == CB_MISH)
        finish(w, b, from, to, CB_MISH);
    else if (act == CB_GELU_TANH)
        finish(w, b, from, to, CB_GELU_TANH);
    else if (act == CB_SILU)
        finish(w, b, from, to, CB_SILU);
    else if (act == CB_RELU)
        finish(w, b, from, to, CB_RELU);
    else
        finish(w, b, from, to, CB_IDENTITY);
}

VEC_INLINE void do_part(const struct work *w, int32_t item, const bool wide)
{
    const struct shape *s = &w->s;
    const int64_t from = item * s->part, to = from + s->part < s->blocks ? from + s->part : s->blocks;
    for (int64_t b = 0; b < s->b; b++) {
        if (s->half)
            convolve(w, b, from, to, wide, true);
        else
            convolve(w, b, from, to, wide, false);
        if (s->gamma)
            find_norm(w, from, to);
        finish_with(w, b, from, to);
    }
}

/* --- */

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma"))) static void part_avx512(void *work, int32_t item)
{
    do_part(work, item, true);
}

__attribute__((target("avx2,fma"))) static void part_avx2(void *work, int32_t item)
{
    do_part(work, item, false);
}
#endif

static void part_plain(void *work, int32_t item)
{
    do_part(work, item, false);
}

static team_fn widest(bool *wide)
{
    *wide = false;
#if defined(__x86_64__)
    if (cpu_vectors() == CPU_AVX512) {
        *wide = true;
        return part_avx512;
    }
    if (cpu_vectors() == CPU_AVX2)
        return part_avx2;
#endif
    return part_plain;
}

static void copy_padded(const struct work *w)
{
    const struct shape *s = &w->s;
    const size_t edge = (size_t)(s->pad * s->c) * sizeof(float);
    for (int64_t b = 0; b < s->b && s->c; b++) {
        float *x = w->padded + b * (s->t + 2 * s->pad) * s->c;
        memset(x, 0, edge);
        memset(x + (s->pad + s->t) * s->c, 0, edge);
        for (int64_t t = 0; t < s->t; t++)
            memcpy(x + (s->pad + t) * s->c, (const float *)w->io->in[0] + (t * s->b + b) * s->c,
                   (size_t)s->c * sizeof(float));
    }
}

/* Rows of time side by side, in tiles of 16; rows that are missing in the last are zeros. */
VEC_INLINE void turn_all(const struct work *w, const bool wide)
{
    const struct shape *s = &w->s;
    const int64_t tiles = turned_tiles(s), step = s->b * s->c;
    for (int64_t b = 0; b < s->b; b++)
        for (int64_t i = 0; i < tiles; i++)
            turn_rows16(w->padded + (b * tiles + i) * s->c * CB_LANES,
                        (const float *)w->io->in[0] + i * CB_LANES * step + b * s->c, step, s->t - i * CB_LANES, s->c,
                        wide);
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma"))) static void turn_rows(const struct work *w)
{
    turn_all(w, true);
}
#else
static void turn_rows(const struct work *w)
{
    turn_all(w, false);
}
#endif

static hone_status conv_block_run(const struct bk_io *io, hone_err *err)
{
    struct work w = {.io = io, .s = shape_of(io->call), .padded = io->scratch};
    const int64_t lanes = w.s.blocks * CB_LANES;
    bool wide;
    const team_fn part = widest(&wide);
    (void)err;
    w.y = w.padded + floats_in(&w.s);
    w.centre = w.y + rows_out(&w.s) * lanes;
    w.factor = w.centre + lanes;
    w.offset = w.factor + lanes;
    w.sum = w.offset + lanes;
    w.square = w.sum + lanes;
    if (w.s.o < lanes) /* lanes that are no channel go through the arithmetic too */
        for (float *p = w.centre; p < w.square + lanes; p += lanes)
            memset(p + lanes - CB_LANES, 0, CB_LANES * sizeof(float));
    w.direct = wide && reads_directly(&w.s);
    if (w.direct)
        turn_rows(&w);
    else
        copy_padded(&w);
    cpu_share(io, part, &w, (int32_t)((w.s.blocks + w.s.part - 1) / w.s.part));
    return HONE_OK;
}

const struct bk_kernel cpu_conv_block = {.op = "conv_block", .scratch = scratch, .run = conv_block_run};
