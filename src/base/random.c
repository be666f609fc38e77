/* Counter-based random numbers.
 *
 * Normals have to be bit-equal everywhere, so this file uses only operations that IEEE 754 rounds in one way (+ - * /
 * and sqrt), in double, and no function of the C library that may differ from one to the next. Two things could still
 * change a bit: a compiler that fuses a product and a sum into one rounding, and one that may reorder sums. The first
 * is switched off here, the second refused. */
#include "base/random.h"

#include <float.h>
#include <math.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "random numbers need IEEE arithmetic: compile without -ffast-math"
#endif
#if FLT_EVAL_METHOD < 0 || FLT_EVAL_METHOD == 2
#error "random numbers need doubles that are rounded as such: no x87 arithmetic (-mfpmath=sse)"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

/* --- Philox4x32-10 --- */

#define PHILOX_M0 0xD2511F53u /* multipliers of the round function */
#define PHILOX_M1 0xCD9E8D57u
#define PHILOX_W0 0x9E3779B9u /* what is added to the key each round */
#define PHILOX_W1 0xBB67AE85u

void random_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)PHILOX_M0 * a, p1 = (uint64_t)PHILOX_M1 * c;
        a = (uint32_t)(p1 >> 32) ^ b ^ k0;
        b = (uint32_t)p1;
        c = (uint32_t)(p0 >> 32) ^ d ^ k1;
        d = (uint32_t)p0;
        k0 += PHILOX_W0;
        k1 += PHILOX_W1;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

/* What is drawn; part of the key, so that two kinds of one stream have nothing in common. */
enum kind { KIND_U32 = 1, KIND_UNIFORM, KIND_NORMAL, KIND_BELOW, KIND_PERMUTATION, KIND_RANGE };

struct source {
    uint32_t key[2], run[2];
};

/* Seed and stream are 128 bits and a Philox key is 64: the key is itself a Philox output, keyed by the seed. Two
 * streams meet with odds of 2^-64. */
static struct source source_of(uint64_t seed, uint64_t stream, uint64_t run, enum kind kind)
{
    const uint32_t tag = 0x686f6e65; /* "hone" */
    const uint32_t counter[4] = {(uint32_t)stream, (uint32_t)(stream >> 32), (uint32_t)kind, tag};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t out[4];
    random_philox(out, counter, key);
    return (struct source){{out[0], out[1]}, {(uint32_t)run, (uint32_t)(run >> 32)}};
}

static void block_at(uint32_t out[4], const struct source *s, uint64_t index)
{
    const uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), s->run[0], s->run[1]};
    random_philox(out, counter, s->key);
}

/* Words are made CHUNK at a time on the stack. A walk goes over the elements [first, first + n) in chunks that begin on
 * a block's edge; `per_block` elements (4, or 2 of 64 bits) come from a block. */
#define CHUNK 256

struct walk {
    struct source s;
    uint64_t at; /* the next element */
    size_t left; /* elements still wanted */
    unsigned per_block;
    uint32_t word[CHUNK];
};

/* Makes the next chunk; returns how many elements it holds, the first of them at *from; 0 at the end. */
static size_t walk_next(struct walk *w, const uint32_t **from)
{
    const size_t width = 4 / w->per_block, skip = (size_t)(w->at % w->per_block);
    size_t n = CHUNK / width - skip;
    if (n > w->left)
        n = w->left;
    const size_t blocks = (skip + n + w->per_block - 1) / w->per_block;
    for (size_t i = 0; i < blocks && n; i++)
        block_at(w->word + 4 * i, &w->s, (w->at / w->per_block + i) & (UINT64_MAX / w->per_block)); /* wraps */
    *from = w->word + skip * width;
    w->at += n;
    w->left -= n;
    return n;
}

/* --- the normal quantile --- */

/* AS 241, |q| <= 0.425: z = q num(r) / den(r) with r = 0.425^2 - q^2. */
static inline double quantile_centre(double q)
{
    double r = 0.180625 - q * q;
    r = r < 0 ? 0 : r; /* outside of its range the value is thrown away; it must only be finite */
    double num = 2509.0809287301226727;
    num = num * r + 33430.575583588128105;
    num = num * r + 67265.770927008700853;
    num = num * r + 45921.953931549871457;
    num = num * r + 13731.693765509461125;
    num = num * r + 1971.5909503065514427;
    num = num * r + 133.14166789178437745;
    num = num * r + 3.387132872796366608;
    double den = 5226.495278852854561;
    den = den * r + 28729.085735721942674;
    den = den * r + 39307.89580009271061;
    den = den * r + 21213.794301586595867;
    den = den * r + 5394.1960214247511077;
    den = den * r + 687.1870074920579083;
    den = den * r + 42.313330701600911252;
    den = den * r + 1.0;
    return q * num / den;
}

/* log p for a normal p: p = 2^e f with f in [0.7, 1.42), and log f = 2 atanh(s) = 2 (s + s^3/3 + s^5/5 + ...) with
 * s = (f - 1) / (f + 1). |s| < 0.1726, so the first term that is left out is below 3e-17. */
static double log_of(double p)
{
    uint64_t bits;
    memcpy(&bits, &p, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    bits = (bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
    double f;
    memcpy(&f, &bits, sizeof f);
    if (f > 1.41421356) {
        f *= 0.5;
        e++;
    }
    double s = (f - 1.0) / (f + 1.0), t = s * s, sum = 0;
    for (int k = 19; k >= 3; k -= 2)
        sum = (sum + 1.0 / k) * t;
    return e * 0.69314718055994530942 + 2.0 * (s + s * sum);
}

/* AS 241, the tail below p: minus the quantile, for p from 2^-33 to 0.075. The square root is then at most 4.79, and
 * the third piece of AS 241, from 5 on, is never reached. */
static double quantile_tail(double p)
{
    double r = sqrt(-log_of(p)) - 1.6;
    double num = 7.7454501427834140764e-4;
    num = num * r + 0.0227238449892691845833;
    num = num * r + 0.24178072517745061177;
    num = num * r + 1.27045825245236838258;
    num = num * r + 3.64784832476320460504;
    num = num * r + 5.7694972214606914055;
    num = num * r + 4.6303378461565452959;
    num = num * r + 1.42343711074968357734;
    double den = 1.05075007164441684324e-9;
    den = den * r + 5.475938084995344946e-4;
    den = den * r + 0.0151986665636164571966;
    den = den * r + 0.14810397642748007459;
    den = den * r + 0.68976733498510000455;
    den = den * r + 1.6763848301838038494;
    den = den * r + 2.05319162663775882187;
    den = den * r + 1.0;
    return num / den;
}

/* u as a signed distance from the median: q = (centred(u) + 1/2) / 2^32. */
static inline int32_t centred(uint32_t u)
{
    return (int32_t)(u ^ 0x80000000u);
}

/* |q| > 0.425, told by integers: (a + 1/2) / 2^32 > 0.425 for the distance a >= 0 on the element's own side. */
static inline bool in_tail(uint32_t u)
{
    int32_t c = centred(u);
    return (c < 0 ? ~c : c) > 1825361100;
}

double random_quantile(uint32_t u)
{
    double q = (centred(u) + 0.5) * 0x1p-32;
    if (!in_tail(u))
        return quantile_centre(q);
    return q < 0 ? -quantile_tail(0.5 + q) : quantile_tail(0.5 - q);
}

/* Groups of a fixed size let the compiler use vectors. The centre is computed for all, then the tail, one in seven, is
 * written over it; the list of places keeps the branch out of the loop. `z` and `u` hold whole groups. */
#define GROUP 16

static void normal_groups(float *z, const uint32_t *u, size_t n)
{
    uint16_t place[CHUNK];
    size_t tails = 0;
    for (size_t g = 0; g < n; g += GROUP)
        for (size_t i = 0; i < GROUP; i++)
            z[g + i] = (float)quantile_centre((centred(u[g + i]) + 0.5) * 0x1p-32);
    for (size_t i = 0; i < n; i++) {
        place[tails] = (uint16_t)i;
        tails += in_tail(u[i]);
    }
    for (size_t i = 0; i < tails; i++)
        z[place[i]] = (float)random_quantile(u[place[i]]);
}

/* --- fills --- */

static inline float uniform_of(uint32_t u)
{
    return (float)(u >> 8) * 0x1p-24f;
}

/* floor(x bound / 2^64) for the 64-bit x = (w[1], w[0]). */
static inline uint32_t below_of(const uint32_t w[2], uint32_t bound)
{
    return (uint32_t)(((uint64_t)w[1] * bound + ((uint64_t)w[0] * bound >> 32)) >> 32);
}

void hone_fill_u32(uint32_t *out, size_t n, uint64_t seed, uint64_t stream, uint64_t run, uint64_t first)
{
    struct walk w = {.s = source_of(seed, stream, run, KIND_U32), .at = first, .left = n, .per_block = 4};
    const uint32_t *u;
    for (size_t k; (k = walk_next(&w, &u)) > 0; out += k)
        memcpy(out, u, k * sizeof *out);
}

void hone_fill_uniform(float *out, size_t n, uint64_t seed, uint64_t stream, uint64_t run, uint64_t first)
{
    struct walk w = {.s = source_of(seed, stream, run, KIND_UNIFORM), .at = first, .left = n, .per_block = 4};
    const uint32_t *u;
    for (size_t k; (k = walk_next(&w, &u)) > 0; out += k)
        for (size_t i = 0; i < k; i++)
            out[i] = uniform_of(u[i]);
}

void hone_fill_normal(float *out, size_t n, uint64_t seed, uint64_t stream, uint64_t run, uint64_t first)
{
    struct walk w = {.s = source_of(seed, stream, run, KIND_NORMAL), .at = first, .left = n, .per_block = 4};
    const uint32_t *u;
    for (size_t k; (k = walk_next(&w, &u)) > 0; out += k) {
        const size_t whole = k - k % GROUP;
        normal_groups(out, u, whole);
        for (size_t i = whole; i < k; i++)
            out[i] = (float)random_quantile(u[i]);
    }
}

void hone_fill_below(int32_t *out, size_t n, int32_t bound, uint64_t seed, uint64_t stream, uint64_t run,
                     uint64_t first)
{
    struct walk w = {.s = source_of(seed, stream, run, KIND_BELOW), .at = first, .left = n, .per_block = 2};
    const uint32_t *u;
    const uint32_t b = bound < 1 ? 1 : (uint32_t)bound;
    for (size_t k; (k = walk_next(&w, &u)) > 0; out += k)
        for (size_t i = 0; i < k; i++)
            out[i] = (int32_t)below_of(u + 2 * i, b);
}

void hone_fill_permutation(int32_t *out, int32_t n, uint64_t seed, uint64_t stream, uint64_t run)
{
    struct walk w = {
        .s = source_of(seed, stream, run, KIND_PERMUTATION), .left = n < 1 ? 0 : (size_t)n, .per_block = 2};
    const uint32_t *u;
    /* inside out: `at` is put at a random place among the first at + 1, and what stood there moves to place `at` */
    int32_t at = 0;
    for (size_t k; (k = walk_next(&w, &u)) > 0;)
        for (size_t i = 0; i < k; i++, at++) {
            uint32_t j = below_of(u + 2 * i, (uint32_t)at + 1);
            out[at] = at;
            out[at] = out[j];
            out[j] = at;
        }
}

/* --- streams and single draws --- */

uint64_t hone_stream(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (const char *p = name ? name : ""; *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    return h;
}

/* The finaliser of SplitMix64 (Steele, Lea, Flood 2014), a bijection. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t hone_stream_at(uint64_t stream, uint64_t index)
{
    return mix(stream + mix(index + 0x9e3779b97f4a7c15u));
}

/* Fills w with the draw's words and moves on. */
static void draw(hone_rng *r, enum kind kind, unsigned per_block, uint32_t w[2])
{
    struct source s = source_of(r->seed, r->stream, r->run, kind);
    uint32_t block[4];
    block_at(block, &s, r->next / per_block);
    const size_t from = (size_t)(r->next % per_block) * (4 / per_block);
    w[0] = block[from];
    w[1] = per_block == 2 ? block[from + 1] : 0;
    r->next++;
}

uint32_t hone_rng_u32(hone_rng *r)
{
    uint32_t w[2];
    draw(r, KIND_U32, 4, w);
    return w[0];
}

float hone_rng_uniform(hone_rng *r)
{
    uint32_t w[2];
    draw(r, KIND_UNIFORM, 4, w);
    return uniform_of(w[0]);
}

float hone_rng_normal(hone_rng *r)
{
    uint32_t w[2];
    draw(r, KIND_NORMAL, 4, w);
    return (float)random_quantile(w[0]);
}

int32_t hone_rng_below(hone_rng *r, int32_t bound)
{
    uint32_t w[2];
    draw(r, KIND_BELOW, 2, w);
    return (int32_t)below_of(w, bound < 1 ? 1 : (uint32_t)bound);
}

double hone_rng_range(hone_rng *r, double lo, double hi)
{
    uint32_t w[2];
    draw(r, KIND_RANGE, 2, w);
    const uint64_t bits = (uint64_t)w[1] << 32 | w[0];
    return lo + (hi - lo) * ((double)(bits >> 11) * 0x1p-53);
}
