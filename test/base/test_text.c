/* Building text, numbers and text, nearest names, UTF-8, and the time as text. */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "check.h"
#include "hone/random.h"

static void building(struct check *c)
{
    char buf[8];
    struct text t;
    if (check_case(c, "building, and cutting for good")) {
        text_init(&t, buf, sizeof buf);
        CHECK(c, !strcmp(buf, ""));
        text_add(&t, "abc");
        text_addf(&t, "%d", 4567);
        CHECK(c, !strcmp(buf, "abc4567") && t.len == 7 && !t.cut);
        text_add(&t, "");
        CHECK(c, !t.cut);
        text_add(&t, "8");
        CHECK(c, !strcmp(buf, "abc4567") && t.cut);
        text_init(&t, buf, sizeof buf);
        text_addf(&t, "%s", "123456789");
        CHECK(c, !strcmp(buf, "1234567") && t.cut && t.len == 7);
        text_init(&t, buf, 1);
        text_add(&t, "x");
        CHECK(c, !strcmp(buf, "") && t.cut);
    }
    if (check_case(c, "a cut splits no character")) {
        /* a, then characters of 2, 3 and 4 bytes over the edge at each place */
        static const char *const wide[] = {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\xA4\x96"};
        for (size_t w = 0; w < 3; w++)
            for (size_t pre = 0; pre < sizeof buf; pre++) {
                const size_t n = strlen(wide[w]);
                text_init(&t, buf, sizeof buf);
                for (size_t i = 0; i < pre; i++)
                    text_add(&t, "a");
                text_addf(&t, "%s%s", wide[w], wide[w]);
                const size_t fit = (sizeof buf - 1 - pre) / n;
                CHECK_MSG(c, t.len == pre + n * (fit < 2 ? fit : 2), "(width %zu after %zu: %zu)", n, pre, t.len);
                CHECK(c, strlen(buf) == t.len && text_utf8(buf, t.len) == t.len);
            }
    }
}

static const char *f64_text(double v)
{
    static char buf[64];
    struct text t;
    text_init(&t, buf, sizeof buf);
    text_add_f64(&t, v);
    return buf;
}

static void numbers(struct check *c)
{
    double d = 0;
    int64_t i = 0;
    if (check_case(c, "doubles to text and back")) {
        static const struct {
            double v;
            const char *text;
        } fixed[] = {{0, "0"},          {1, "1"},           {-0.5, "-0.5"},  {3e-4, "0.0003"},
                     {0.1, "0.1"},      {1e-8, "1e-08"},    {1e22, "1e+22"}, {1.0 / 3, "0.3333333333333333"},
                     {INFINITY, "inf"}, {-INFINITY, "-inf"}};
        for (size_t k = 0; k < sizeof fixed / sizeof fixed[0]; k++)
            CHECK_MSG(c, !strcmp(f64_text(fixed[k].v), fixed[k].text), "(%s, wanted %s)", f64_text(fixed[k].v),
                      fixed[k].text);
        CHECK(c, !strcmp(f64_text(NAN), "nan"));
        hone_rng r = {.seed = 5};
        for (int k = 0; k < 20000; k++) {
            uint64_t bits = (uint64_t)hone_rng_u32(&r) << 32 | hone_rng_u32(&r);
            double v;
            memcpy(&v, &bits, sizeof v);
            if (isfinite(v))
                CHECK_MSG(c, text_to_f64(f64_text(v), &d) && d == v, "(%s)", f64_text(v));
        }
        CHECK(c, text_to_f64(f64_text(DBL_MAX), &d) && d == DBL_MAX);
        CHECK(c, text_to_f64(f64_text(DBL_TRUE_MIN), &d) && d == DBL_TRUE_MIN);
    }
    if (check_case(c, "what is a number")) {
        static const char *const good[] = {"1", "-1", "+1", "0.5", ".5", "5.", "1e3", "1E-3", "1.5e+3", "007"};
        static const char *const bad[] = {"",    " 1", "1 ", "a",   "1a",  "0x10",  "inf",   "nan", ".inf", "1e",
                                          "1e+", ".",  "-",  "--1", "1,5", "1.2.3", "1e400", "e5",  "1_000"};
        for (size_t k = 0; k < sizeof good / sizeof good[0]; k++)
            CHECK_MSG(c, text_to_f64(good[k], &d) && d == strtod(good[k], NULL), "(%s)", good[k]);
        for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
            CHECK_MSG(c, !text_to_f64(bad[k], &d) && !text_to_i64(bad[k], &i), "(%s)", bad[k]);
        char digits[1000];
        memset(digits, '1', sizeof digits);
        digits[sizeof digits - 1] = '\0';
        CHECK(c, !text_to_f64(digits, &d) && !text_to_i64(digits, &i));
    }
    if (check_case(c, "integers")) {
        CHECK(c, text_to_i64("9223372036854775807", &i) && i == INT64_MAX);
        CHECK(c, text_to_i64("-9223372036854775808", &i) && i == INT64_MIN);
        CHECK(c, !text_to_i64("9223372036854775808", &i));
        CHECK(c, text_to_i64("1e6", &i) && i == 1000000);
        CHECK(c, text_to_i64("2.0", &i) && i == 2);
        CHECK(c, !text_to_i64("2.5", &i) && !text_to_i64("1e-1", &i) && !text_to_i64("1e17", &i));
    }
    if (check_case(c, "a locale with a decimal comma changes nothing")) {
        static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8", "ru_RU.UTF-8"};
        bool found = false;
        for (size_t k = 0; k < sizeof names / sizeof names[0] && !found; k++)
            found = setlocale(LC_NUMERIC, names[k]) != NULL;
        if (!found) {
            check_skip(c, "no such locale here");
        } else {
            CHECK(c, text_to_f64("1.5e-3", &d) && d == 0.0015);
            CHECK(c, !strcmp(f64_text(0.0015), "0.0015"));
            CHECK(c, !text_to_f64("1,5", &d));
        }
        setlocale(LC_NUMERIC, "C");
    }
}

static void names(struct check *c)
{
    static const char *const keys[] = {"lr", "learning_rate", "clip_epsilon", "gamma", "batch_size", "n"};
    static const struct {
        const char *word, *near;
    } v[] = {
        {"clip_epsilom", "clip_epsilon"},
        {"clip-epsilon", "clip_epsilon"},
        {"Gamma", "gamma"},
        {"gmama", "gamma"},
        {"gama", "gamma"},
        {"gammma", "gamma"},
        {"batchsize", "batch_size"},
        {"bacth_siez", "batch_size"},
        {"lrr", "lr"},
        {"LR", "lr"},
        {"learning_rat", "learning_rate"},
        {"momentum", NULL},
        {"xy", NULL},
        {"m", NULL},
        {"", NULL},
        {"gxxxa", NULL},
    };
    if (check_case(c, "nearest names")) {
        for (size_t k = 0; k < sizeof v / sizeof v[0]; k++) {
            const char *got = text_nearest(v[k].word, keys, sizeof keys / sizeof keys[0]);
            CHECK_MSG(c, got == v[k].near || (got && v[k].near && !strcmp(got, v[k].near)), "(%s: %s)", v[k].word,
                      got ? got : "none");
        }
        /* of two, the nearer, wherever it stands; of equals the first */
        static const char *const two[] = {"abcdxx", "abcdex", "abcdey"};
        CHECK(c, text_nearest("abcdef", two, 3) == two[1]);
        CHECK(c, text_nearest("abcdef", two, 1) == two[0]);
        CHECK(c, text_nearest("abcdef", two, 0) == NULL);
    }
    if (check_case(c, "long names are near to nothing, and harmless")) {
        char a[200], b[200];
        memset(a, 'a', sizeof a);
        memset(b, 'a', sizeof b);
        a[199] = b[198] = '\0';
        const char *one[] = {b, NULL, "gamma"};
        CHECK(c, text_nearest(a, one, 3) == NULL);
        CHECK(c, text_nearest("gama", one, 3) == one[2]);
        b[63] = '\0';
        a[63] = '\0';
        CHECK(c, text_nearest(a, one, 1) == b);
        a[63] = 'a';
        a[64] = '\0';
        CHECK(c, text_nearest(a, one, 1) == NULL);
    }
    if (check_case(c, "equal names")) {
        CHECK(c, text_same_name("a-b_c", "a_b-c") && !text_same_name("a", "ab") && !text_same_name("ab", "a"));
        CHECK(c, !text_same_name("A", "a") && text_same_name("", ""));
    }
}

static void utf8(struct check *c)
{
    if (check_case(c, "utf-8: every code point, and no other")) {
        for (uint32_t u = 0; u <= 0x10FFFF; u++) {
            char s[4];
            size_t n = u < 0x80 ? 1 : u < 0x800 ? 2 : u < 0x10000 ? 3 : 4;
            static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
            for (size_t k = n; k > 1; k--)
                s[k - 1] = (char)(0x80 | ((u >> (6 * (n - k))) & 0x3F));
            s[0] = (char)(lead[n] | u >> (6 * (n - 1)));
            bool surrogate = u >= 0xD800 && u <= 0xDFFF;
            if (text_utf8(s, n) != (surrogate ? 0 : n) || (n > 1 && text_utf8(s, n - 1) != 0))
                CHECK_MSG(c, false, "(U+%04X)", (unsigned)u);
        }
    }
    if (check_case(c, "utf-8: what is refused")) {
        static const char *const bad[] = {
            "\x80",
            "\xBF",
            "\xC0\x80",
            "\xC1\xBF",
            "\xE0\x80\x80",
            "\xE0\x9F\xBF",
            "\xF0\x80\x80\x80",
            "\xF0\x8F\xBF\xBF",
            "\xF4\x90\x80\x80",
            "\xED\xA0\x80",
            "\xED\xBF\xBF",
            "\xF5\x80\x80\x80",
            "\xFE",
            "\xFF",
            "\xC3\x28",
            "\xE2\x28\xA1",
            "\xE2\x82\x28",
            "\xF0\x9F\x28\x96",
            "\xC3\xC3",
            "\xF8\x88\x80\x80\x80",
        };
        char s[16];
        for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
            const size_t n = strlen(bad[k]);
            memcpy(s, "ok", 2);
            memcpy(s + 2, bad[k], n);
            CHECK_MSG(c, text_utf8(s, n + 2) == 2, "(sequence %zu)", k);
        }
        CHECK(c, text_utf8("a\0b", 3) == 3 && text_utf8("", 0) == 0);
    }
    if (check_case(c, "utf-8: all sequences of two bytes")) {
        int valid = 0;
        for (int a = 0; a < 256; a++)
            for (int b = 0; b < 256; b++) {
                char s[2] = {(char)a, (char)b};
                valid += text_utf8(s, 2) == 2;
            }
        CHECK_MSG(c, valid == 128 * 128 + 30 * 64, "(%d)", valid);
    }
}

static void times(struct check *c)
{
    char buf[CLOCK_TEXT];
    if (check_case(c, "the time as text")) {
        CHECK(c, !strcmp(clock_utc(0, buf, sizeof buf), "1970-01-01T00:00:00Z"));
        CHECK(c, !strcmp(clock_utc(1709251199, buf, sizeof buf), "2024-02-29T23:59:59Z"));
        CHECK(c, !strcmp(clock_utc(-1, buf, sizeof buf), "1969-12-31T23:59:59Z"));
        CHECK(c, !strcmp(clock_utc(INT64_MAX, buf, sizeof buf), ""));
        CHECK(c, !strcmp(clock_utc(0, buf, 20), ""));
        CHECK(c, clock_wall() > 1600000000);
    }
    if (check_case(c, "the clock goes forward")) {
        uint64_t last = clock_ns();
        double s = clock_seconds();
        for (int i = 0; i < 1000; i++) {
            uint64_t now = clock_ns();
            CHECK(c, now >= last);
            last = now;
        }
        CHECK(c, fabs(clock_seconds() - 1e-9 * (double)last) < 10 && clock_seconds() >= s);
    }
}

void suite_text(struct check *c)
{
    building(c);
    numbers(c);
    names(c);
    utf8(c);
    times(c);
}
