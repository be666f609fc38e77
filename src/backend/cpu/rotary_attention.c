/* rotary_attention of short sequences: each head by itself, in a few kilobytes, with nothing permuted. Both products
 * are tiles of conv_tile.h. Scores are made with the queries of a tile side by side, so that a softmax runs along
 * vectors, 16 queries at once; the second product reads the weights number by number, and so in any order.
 *
 * A head of 16 tokens and 32 features: 16 kFLOP twice. */
#include "backend/cpu/conv_tile.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/turn16.h"

enum { MANY_TOKENS = 64 };

struct work {
    const struct bk_io *io;
    int64_t t, w, heads, n;
    int64_t lanes; /* n in whole vectors */
    int64_t pairs; /* heads of all samples */
    int32_t parts;
    float *scratch; /* of the part */
};

static int64_t whole(int64_t n)
{
    return (n + VEC_LANES - 1) / VEC_LANES * VEC_LANES;
}

/* Parts that heads are handed out in: a few a thread, for one that comes late. */
static int32_t parts_of(int64_t pairs, int threads)
{
    const int64_t want = threads > 1 ? 4 * (int64_t)threads : 1;
    return (int32_t)(pairs < want ? pairs : want);
}

static struct work work_of(const struct op_call *c, int threads)
{
    const int64_t *x = c->in[0].shape.dim, heads = c->attr.i[0], n = x[2] / 3 / heads;
    return (struct work){.t = x[1],
                         .w = x[2] / 3,
                         .heads = heads,
                         .n = n,
                         .lanes = whole(n),
                         .pairs = x[0] * heads,
                         .parts = parts_of(x[0] * heads, threads)};
}

/* Floats of one part: keys and values [T, lanes] each, a tile of queries twice [16, lanes], weights [T, 16], sums [16].
 */
static int64_t floats_of(const struct work *w)
{
    return 2 * w->t * w->lanes + 2 * VEC_LANES * w->lanes + w->t * VEC_LANES + VEC_LANES;
}

static size_t scratch(const struct op_call *c, int threads)
{
    const struct work w = work_of(c, threads);
    return (size_t)(w.parts * floats_of(&w)) * sizeof(float);
}

static bool accepts(const struct op_call *c)
{
    return c->in[0].shape.dim[1] <= MANY_TOKENS;
}

/* `rows` rows from token `from` on, 3 W apart, turned and multiplied by `scale` -> y [rows, lanes]. */
VEC_INLINE void rotate(const struct work *w, const float *x, int64_t from, int64_t rows, float scale, float *y)
{
    const int64_t h = w->n / 2;
    for (int64_t t = 0; t < rows; t++, x += 3 * w->w, y += w->lanes) {
        const float *c = (const float *)w->io->in[1] + (from + t) * w->n;
        const float *s = (const float *)w->io->in[2] + (from + t) * w->n;
        for (int64_t i = 0; i < h; i += VEC_LANES) {
            const vec a = vec_load_part(x + i, h - i), b = vec_load_part(x + h + i, h - i);
            const vec p = a * vec_load_part(c + i, h - i) + b * vec_load_part(s + i, h - i);
            const vec q = b * vec_load_part(c + h + i, h - i) + a * vec_load_part(s + h + i, h - i);
            vec_store_part(y + i, p * scale, h - i);
            vec_store_part(y + h + i, q * scale, h - i);
        }
    }
}

/* Rows of results of one tile after another. */
VEC_INLINE void product(struct conv_tile j, int64_t rows, const bool wide)
{
    while (rows > 0) {
        const int n = wide && rows >= 16 ? 16 : wide && rows >= 8 ? 8 : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
        if (wide && n == 16)
            conv_tile(&j, 16, 1, 1, false, true, false, false);
        else if (wide && n == 8)
            conv_tile(&j, 8, 1, 1, false, true, false, false);
        else if (n == 4)
            conv_tile(&j, 4, 1, 1, false, true, false, false);
        else if (n == 2)
            conv_tile(&j, 2, 1, 1, false, true, false, false);
        else
            conv_tile(&j, 1, 1, 1, false, true, false, false);
        rows -= n;
        j.x += n * j.step;
        j.y += n * j.width;
    }
}

/* p [keys, 16] -> exp(p - largest) of each of 16 queries; one over the sums -> part. */
VEC_INLINE void weigh(float *p, int64_t keys, float *part)
{
    vec largest = vec_load(p), sum = {0};
    for (int64_t s = 1; s < keys; s++) {
        const vec x = vec_load(p + s * VEC_LANES);
        largest = vec_pick(x > largest, x, largest);
    }
    for (int64_t s = 0; s < keys; s++) {
        const vec e = vec_exp(vec_load(p + s * VEC_LANES) - largest);
        *(mem_vec *)(p + s * VEC_LANES) = e;
        sum += e;
    }
    *(mem_vec *)part = 1.0f / sum;
}

VEC_INLINE void head(const struct work *w, int64_t pair, const bool wide)
{
    const int64_t at = pair / w->heads * w->t, of = pair % w->heads * w->n;
    const float *q = (const float *)w->io->in[0] + at * 3 * w->w + of;
    float *k = w->scratch, *v = k + w->t * w->lanes, *rows = v + w->t * w->lanes, *turned = rows + 16 * w->lanes;
    float *p = turned + 16 * w->lanes, *part = p + w->t * VEC_LANES;
    rotate(w, q + w->w, 0, w->t, 1, k);
    for (int64_t i = 0; i < w->n; i += VEC_LANES)
        for (int64_t t = 0; t < w->t; t++)
            *(mem_vec *)(v + i * w->t + t * VEC_LANES) = vec_load_part(q + 2 * w->w + t * 3 * w->w + i, w->n - i);
    for (int64_t from = 0; from < w->t; from += VEC_LANES) {
        const int64_t n = w->t - from < VEC_LANES ? w->t - from : VEC_LANES;
        rotate(w, q + from * 3 * w->w, from, n, (float)w->io->call->attr.f[0], rows);
        turn_rows16(turned, rows, w->lanes, n, w->n, wide);
        const struct conv_tile scores = {.channels = w->n,
                                         .step = w->lanes,
                                         .next = 1,
                                         .x = k,
                                         .w = (const char *)turned,
                                         .y = p,
                                         .width = VEC_LANES};
        product(scores, w->t, wide);
        weigh(p, w->t, part);
        for (int64_t i = 0; i < w->n; i += VEC_LANES) {
            const struct conv_tile sums = {.channels = w->t,
                                           .step = 1,
                                           .next = VEC_LANES,
                                           .x = p,
                                           .w = (const char *)(v + i * w->t),
                                           .y = rows,
                                           .width = VEC_LANES};
            product(sums, n, wide);
            float *y = (float *)w->io->out[0] + (at + from) * w->w + of + i;
            for (int64_t t = 0; t < n; t++)
                vec_store_part(y + t * w->w, vec_load(rows + t * VEC_LANES) * part[t], w->n - i);
        }
    }
}

VEC_INLINE void do_part(const struct work *all, int32_t item, const bool wide)
{
    struct work w = *all;
    w.scratch += item * floats_of(all);
    for (int64_t i = w.pairs * item / w.parts; i < w.pairs * (item + 1) / w.parts; i++)
        head(&w, i, wide);
}

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

static team_fn widest(void)
{
#if defined(__x86_64__)
    if (cpu_vectors() == CPU_AVX512)
        return part_avx512;
    if (cpu_vectors() == CPU_AVX2)
        return part_avx2;
#endif
    return part_plain;
}

static hone_status run(const struct bk_io *io, hone_err *err)
{
    struct work w = work_of(io->call, io->threads);
    (void)err;
    w.io = io;
    w.scratch = io->scratch;
    cpu_share(io, widest(), &w, w.parts);
    return HONE_OK;
}

const struct bk_kernel cpu_rotary_attention = {
    .op = "rotary_attention", .accepts = accepts, .scratch = scratch, .run = run};
