/* Random numbers: the published answers of Philox, one answer for every way of asking, golden bits, distributions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "check.h"

#define MANY 1000000

/* FNV-1a over 32-bit words. */
static uint64_t hash_words(const void *p, size_t words)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < words; i++) {
        uint32_t w;
        memcpy(&w, (const char *)p + 4 * i, 4);
        h = (h ^ w) * 0x100000001b3u;
    }
    return h;
}

static void known_answers(struct check *c)
{
    /* The vectors "philox4x32 10" of the Random123 distribution. */
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } v[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    if (check_case(c, "philox known answers"))
        for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
            uint32_t out[4];
            random_philox(out, v[i].counter, v[i].key);
            CHECK(c, !memcmp(out, v[i].out, sizeof out));
        }
    if (check_case(c, "stream names are FNV-1a")) {
        CHECK(c, hone_stream("") == 0xcbf29ce484222325u && hone_stream(NULL) == hone_stream(""));
        CHECK(c, hone_stream("a") == 0xaf63dc4c8601ec8cu);
        CHECK(c, hone_stream("foobar") == 0x85944171f73967e8u);
    }
}

/* --- one name, one number --- */

/* Every fill as a fill of words, so that one test does for all. */
struct fill {
    const char *name;
    void (*fn)(void *out, size_t n, uint64_t seed, uint64_t stream, uint64_t run, uint64_t first);
    uint64_t golden; /* hash of MANY elements from first = 0, seed 1, stream 2, run 3 */
};

static void fill_u32(void *out, size_t n, uint64_t seed, uint64_t stream, uint64_t run, uint64_t first)
{
    hone_fill_u32(out, n, seed, stream, run, first);
}

static void fill_uniform(void *out, size_t n, uint64_t seed, uint64_t stream, uint64_t run, uint64_t first)
{
    hone_fill_uniform(out, n, seed, stream, run, first);
}

static void fill_normal(void *out, size_t n, uint64_t seed, uint64_t stream, uint64_t run, uint64_t first)
{
    hone_fill_normal(out, n, seed, stream, run, first);
}

static void fill_below(void *out, size_t n, uint64_t seed, uint64_t stream, uint64_t run, uint64_t first)
{
    hone_fill_below(out, n, 1000003, seed, stream, run, first);
}

static const struct fill fills[] = {
    {"u32", fill_u32, 0x9ece172d56f60411},
    {"uniform", fill_uniform, 0xe8eaedcec617dc84},
    {"normal", fill_normal, 0x3ed2c72bc01ddd6a},
    {"below", fill_below, 0xfdf0d5ccf267d2a4},
};
#define FILLS (sizeof fills / sizeof fills[0])

static void golden(struct check *c)
{
    void *buf = malloc(MANY * sizeof(uint32_t));
    for (size_t f = 0; f < FILLS; f++)
        if (check_case(c, "golden bits of %s", fills[f].name)) {
            fills[f].fn(buf, MANY, 1, 2, 3, 0);
            uint64_t h = hash_words(buf, MANY);
            CHECK_MSG(c, h == fills[f].golden, "(got 0x%016llx)", (unsigned long long)h);
        }
    /* A float hides most differences of a double's last bit; here none is hidden. */
    if (check_case(c, "golden bits of the quantile in double")) {
        uint64_t h = 0xcbf29ce484222325u;
        for (uint32_t i = 0; i < MANY; i++) {
            double z = random_quantile(i * 4294u + i / 7u);
            uint64_t bits;
            memcpy(&bits, &z, sizeof bits);
            h = (h ^ bits) * 0x100000001b3u;
        }
        CHECK_MSG(c, h == 0xc877d1b9426e39f3u, "(got 0x%016llx)", (unsigned long long)h);
    }
    if (check_case(c, "golden first normals")) {
        static const float want[4] = {0x1.0a1d2ep+0f, -0x1.255388p-3f, -0x1.95a0fp-1f, 0x1.857d14p+0f};
        float got[4];
        hone_fill_normal(got, 4, 1, 2, 3, 0);
        for (int i = 0; i < 4; i++)
            CHECK_MSG(c, got[i] == want[i], "([%d] is %a)", i, (double)got[i]);
    }
    if (check_case(c, "golden permutation")) {
        static const int32_t want[10] = {4, 0, 3, 8, 9, 7, 6, 2, 1, 5};
        int32_t got[10];
        hone_fill_permutation(got, 10, 1, 2, 3);
        for (int i = 0; i < 10; i++)
            CHECK_MSG(c, got[i] == want[i], "([%d] is %d)", i, got[i]);
    }
    free(buf);
}

static void pieces(struct check *c)
{
    enum { N = 2000 };
    uint32_t *whole = malloc(N * sizeof *whole), *part = malloc((N + 1) * sizeof *part);
    for (size_t f = 0; f < FILLS; f++) {
        if (check_case(c, "%s in pieces", fills[f].name)) {
            const uint64_t first = 0xfffffffffffffc01u; /* wraps inside of the buffer */
            fills[f].fn(whole, N, 7, 8, 9, first);
            /* pieces of 1, 2, 3 ... elements, from the end to the start */
            size_t end = N;
            for (size_t k = 1; end > 0; k++) {
                size_t n = k < end ? k : end;
                end -= n;
                memset(part + n, 0x5a, 4);
                fills[f].fn(part, n, 7, 8, 9, first + end);
                CHECK(c, !memcmp(part, whole + end, 4 * n));
                CHECK(c, !memcmp(part + n, "ZZZZ", 4)); /* 0x5a: nothing is written behind the piece */
            }
            fills[f].fn(NULL, 0, 7, 8, 9, first);
        }
        if (check_case(c, "%s depends on each part of its name", fills[f].name)) {
            const uint64_t bit[] = {1, (uint64_t)1 << 31, (uint64_t)1 << 32, (uint64_t)1 << 63};
            fills[f].fn(whole, 64, 7, 8, 9, 0);
            for (int k = 0; k < 12; k++) {
                uint64_t name[3] = {7, 8, 9};
                int same = 0;
                name[k / 4] ^= bit[k % 4];
                fills[f].fn(part, 64, name[0], name[1], name[2], 0);
                for (int i = 0; i < 64; i++)
                    same += !memcmp(part + i, whole + i, 4);
                CHECK_MSG(c, same <= 1, "(%d equal after flipping bit %d of part %d)", same, k % 4, k / 4);
            }
        }
    }
    if (check_case(c, "kinds of one stream have nothing in common")) {
        float uniform[64];
        uint32_t word[64];
        int same = 0;
        hone_fill_u32(word, 64, 1, 2, 3, 0);
        hone_fill_uniform(uniform, 64, 1, 2, 3, 0);
        for (int i = 0; i < 64; i++)
            same += uniform[i] == (float)(word[i] >> 8) * 0x1p-24f;
        CHECK(c, same <= 1);
    }
    free(whole);
    free(part);
}

static void draws(struct check *c)
{
    if (check_case(c, "single draws are the fills' elements")) {
        enum { N = 40 };
        uint32_t u[N];
        float f[N], z[N];
        int32_t b[N];
        hone_rng r[4] = {{5, 6, 7, 1}, {5, 6, 7, 1}, {5, 6, 7, 1}, {5, 6, 7, 1}};
        hone_fill_u32(u, N, 5, 6, 7, 1);
        hone_fill_uniform(f, N, 5, 6, 7, 1);
        hone_fill_normal(z, N, 5, 6, 7, 1);
        hone_fill_below(b, N, 17, 5, 6, 7, 1);
        for (int i = 0; i < N; i++) {
            CHECK(c, hone_rng_u32(&r[0]) == u[i]);
            CHECK(c, hone_rng_uniform(&r[1]) == f[i]);
            CHECK(c, hone_rng_normal(&r[2]) == z[i]);
            CHECK(c, hone_rng_below(&r[3], 17) == b[i]);
        }
        CHECK(c, r[0].next == N + 1);
    }
    if (check_case(c, "range")) {
        hone_rng r = {.seed = 1};
        double sum = 0;
        for (int i = 0; i < 10000; i++) {
            double x = hone_rng_range(&r, -2.0, 6.0);
            CHECK(c, x >= -2.0 && x < 6.0);
            sum += x;
        }
        CHECK(c, fabs(sum / 10000 - 2.0) < 5 * 8.0 / sqrt(12.0 * 10000));
        CHECK(c, hone_rng_range(&r, 3.0, 3.0) == 3.0);
    }
    if (check_case(c, "streams below a stream")) {
        /* no index of some streams meets another */
        enum { S = 8, I = 512 };
        static uint64_t all[S * I];
        int met = 0;
        for (uint64_t s = 0; s < S; s++)
            for (uint64_t i = 0; i < I; i++)
                all[s * I + i] = hone_stream_at(s, i);
        for (int i = 0; i < S * I; i++)
            for (int j = 0; j < i; j++)
                met += all[i] == all[j];
        CHECK(c, met == 0);
    }
}

/* --- distributions: the seeds are fixed, so the bounds (5 standard errors, or a chance below 1e-5) never waver --- */

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double phi(double z)
{
    return 0.5 * erfc(-z * 0.70710678118654752440);
}

/* sqrt(n) times the Kolmogorov-Smirnov distance; above 2.5 with a chance of 7e-6. Sorts x. */
static double kolmogorov(float *x, size_t n, bool normal)
{
    double worst = 0;
    qsort(x, n, sizeof *x, by_value);
    for (size_t i = 0; i < n; i++) {
        double p = normal ? phi(x[i]) : x[i];
        double over = (double)(i + 1) / (double)n - p, under = p - (double)i / (double)n;
        double d = over > under ? over : under;
        if (d > worst)
            worst = d;
    }
    return worst * sqrt((double)n);
}

static int above(const float *x, int n, float bound)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += x[i] > bound;
    return count;
}

/* The mean of the k-th powers. */
static double moment(const float *x, int n, int k)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double power = 1;
        for (int j = 0; j < k; j++)
            power *= x[i];
        sum += power;
    }
    return sum / n;
}

static void moments(struct check *c, float *x)
{
    if (check_case(c, "moments of the normal")) {
        hone_fill_normal(x, MANY, 11, hone_stream("moments"), 0, 0);
        double m[5];
        for (int k = 1; k <= 4; k++)
            m[k] = moment(x, MANY, k);
        CHECK_MSG(c, fabs(m[1]) < 5 * sqrt(1.0 / MANY), "(mean %g)", m[1]);
        CHECK_MSG(c, fabs(m[2] - 1) < 5 * sqrt(2.0 / MANY), "(second %g)", m[2]);
        CHECK_MSG(c, fabs(m[3]) < 5 * sqrt(15.0 / MANY), "(third %g)", m[3]);
        CHECK_MSG(c, fabs(m[4] - 3) < 5 * sqrt(96.0 / MANY), "(fourth %g)", m[4]);
    }
    if (check_case(c, "tails of the normal")) {
        hone_fill_normal(x, MANY, 12, hone_stream("tails"), 0, 0);
        for (int t = 1; t <= 5; t++) {
            const int up = above(x, MANY, (float)t), down = MANY - above(x, MANY, -(float)t);
            const double want = MANY * phi(-t), slack = 5 * sqrt(want) + 3;
            CHECK_MSG(c, fabs(up - want) < slack && fabs(down - want) < slack, "(beyond %d: %d, %d; %g)", t, up, down,
                      want);
        }
    }
    if (check_case(c, "moments of the uniform")) {
        float lo = 1, hi = 0;
        hone_fill_uniform(x, MANY, 13, hone_stream("moments"), 0, 0);
        for (int i = 0; i < MANY; i++) {
            lo = x[i] < lo ? x[i] : lo;
            hi = x[i] > hi ? x[i] : hi;
        }
        CHECK(c, lo >= 0 && lo < 2e-5f && hi < 1 && hi > 1 - 2e-5f);
        CHECK(c, fabs(moment(x, MANY, 1) - 0.5) < 5 / sqrt(12.0 * MANY));
        CHECK(c, fabs(moment(x, MANY, 2) - 1.0 / 3) < 5 * sqrt(4.0 / 45 / MANY));
    }
    if (check_case(c, "Kolmogorov-Smirnov")) {
        hone_fill_normal(x, 100000, 14, hone_stream("ks"), 0, 0);
        CHECK(c, kolmogorov(x, 100000, true) < 2.5);
        hone_fill_uniform(x, 100000, 14, hone_stream("ks"), 0, 0);
        CHECK(c, kolmogorov(x, 100000, false) < 2.5);
    }
}

/* The correlation of n pairs of standard normals, in standard errors. */
static double correlation(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * (double)b[i];
    return fabs(sum) / sqrt((double)n);
}

static void independence(struct check *c, float *x)
{
    enum { N = 100000 };
    if (!check_case(c, "neighbours in every part of the name are independent"))
        return;
    float *y = x + MANY / 2;
    hone_fill_normal(x, N + 16, 1, 1, 1, 0);
    for (int lag = 1; lag <= 16; lag++)
        CHECK(c, correlation(x, x + lag, N) < 5);
    for (int part = 0; part < 4; part++) {
        uint64_t name[4] = {1, 1, 1, 1 << 20};
        hone_fill_normal(x, N, name[0], name[1], name[2], name[3]);
        name[part] += part == 3 ? N : 1;
        hone_fill_normal(y, N, name[0], name[1], name[2], name[3]);
        CHECK_MSG(c, correlation(x, y, N) < 5, "(part %d)", part);
        for (int i = 0; i < N; i++) { /* and their squares */
            x[i] = (x[i] * x[i] - 1) * 0.70710678f;
            y[i] = (y[i] * y[i] - 1) * 0.70710678f;
        }
        CHECK_MSG(c, correlation(x, y, N) < 5, "(squares, part %d)", part);
    }
    /* the first element of each of many streams is as random as the elements of one */
    for (int i = 0; i < N / 10; i++)
        hone_fill_normal(x + i, 1, 1, hone_stream_at(5, (uint64_t)i), 0, 0);
    CHECK(c, kolmogorov(x, N / 10, true) < 2.5);
    for (int i = 0; i < N / 10; i++)
        hone_fill_normal(x + i, 1, 1, 5, (uint64_t)i, 0);
    CHECK(c, kolmogorov(x, N / 10, true) < 2.5);
}

static void quantile(struct check *c)
{
    if (check_case(c, "the quantile inverts the distribution")) {
        /* phi(z) in the smaller tail has a relative error of about 1e-15, and z moves by it over z */
        for (uint64_t k = 0; k < 200000; k++) {
            uint32_t u = k < 100000 ? (uint32_t)(k * 21474u) : (uint32_t)(k - 100000); /* evenly, and the far tail */
            double p = (u + 0.5) * 0x1p-32, z = random_quantile(u);
            double got = u < 0x80000000u ? phi(z) : phi(-z), want = u < 0x80000000u ? p : 1 - p;
            CHECK_MSG(c, fabs(got - want) < 2e-14 * want, "(u %u: %.17g, wanted %.17g)", u, got, want);
        }
    }
    if (check_case(c, "the quantile is odd, rises and stays finite")) {
        for (uint32_t k = 0; k < 100000; k++) {
            uint32_t u = k * 42949u;
            CHECK(c, random_quantile(u) == -random_quantile(~u));
            CHECK(c, random_quantile(u) < random_quantile(u + 1) || u == 0xffffffff);
        }
        /* across the seam between the two formulas */
        for (uint32_t u = 322122540; u < 322122560; u++)
            CHECK(c, random_quantile(u) < random_quantile(u + 1));
        CHECK(c, random_quantile(0) > -6.34 && random_quantile(0) < -6.33);
        CHECK(c, random_quantile(0xffffffff) == -random_quantile(0));
        CHECK(c, random_quantile(0x80000000) > 0 && random_quantile(0x80000000) < 3e-10);
    }
}

static void integers(struct check *c)
{
    enum { N = 200000 };
    static int32_t x[N];
    if (check_case(c, "integers below a bound")) {
        static const int32_t bounds[] = {1, 2, 3, 10, 97};
        for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++) {
            int count[97] = {0};
            double chi = 0, want = (double)N / bounds[b];
            hone_fill_below(x, N, bounds[b], 3, 4, 5, 6);
            for (int i = 0; i < N; i++)
                if (CHECK(c, x[i] >= 0 && x[i] < bounds[b]))
                    count[x[i]]++;
            for (int i = 0; i < bounds[b]; i++)
                chi += (count[i] - want) * (count[i] - want) / want;
            CHECK_MSG(c, chi < bounds[b] - 1 + 6 * sqrt(2.0 * bounds[b]) + 6, "(bound %d: %g)", bounds[b], chi);
        }
        hone_fill_below(x, N, INT32_MAX, 3, 4, 5, 6);
        int high = 0;
        for (int i = 0; i < N; i++) {
            CHECK(c, x[i] >= 0 && x[i] < INT32_MAX);
            high += x[i] >= INT32_MAX / 2;
        }
        CHECK(c, abs(high - N / 2) < 5 * (int)sqrt(N / 4.0));
        hone_fill_below(x, 10, 0, 3, 4, 5, 6);
        hone_fill_below(x + 10, 10, -5, 3, 4, 5, 6);
        for (int i = 0; i < 20; i++)
            CHECK(c, x[i] == 0);
    }
    if (check_case(c, "permutations")) {
        static bool seen[N];
        hone_fill_permutation(x, N, 1, 2, 3);
        for (int i = 0; i < N; i++)
            if (CHECK(c, x[i] >= 0 && x[i] < N && !seen[x[i]]))
                seen[x[i]] = true;
        x[0] = 77;
        hone_fill_permutation(x, 0, 1, 2, 3);
        hone_fill_permutation(x, -1, 1, 2, 3);
        CHECK(c, x[0] == 77);
        hone_fill_permutation(x, 1, 1, 2, 3);
        CHECK(c, x[0] == 0);
    }
    if (check_case(c, "all permutations are equally likely")) {
        int count[24] = {0};
        double chi = 0;
        for (uint64_t run = 0; run < 24000; run++) {
            int32_t p[4], code = 0;
            hone_fill_permutation(p, 4, 1, 2, run);
            for (int i = 0; i < 3; i++) { /* the place among all 24 */
                int32_t smaller = 0;
                for (int j = i + 1; j < 4; j++)
                    smaller += p[j] < p[i];
                code = code * (4 - i) + smaller;
            }
            count[code]++;
        }
        for (int i = 0; i < 24; i++)
            chi += (count[i] - 1000) * (count[i] - 1000) / 1000.0;
        CHECK_MSG(c, chi < 60, "(chi squared %g with 23 degrees of freedom)", chi);
    }
}

void suite_random(struct check *c)
{
    float *x = malloc(MANY * sizeof *x);
    known_answers(c);
    golden(c);
    pieces(c);
    draws(c);
    quantile(c);
    moments(c, x);
    independence(c, x);
    integers(c);
    free(x);
}
