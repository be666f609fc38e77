/* Text in fixed buffers, numbers, nearest names, UTF-8. */
#include "base/text.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- building --- */

void text_init(struct text *t, char *buf, size_t cap)
{
    *t = (struct text){.at = buf, .cap = cap};
    buf[0] = '\0';
}

/* The buffer is full: drop the sequence that was split, and close. */
static void cut(struct text *t)
{
    t->cut = true;
    size_t from = t->cap - 1;
    /* go back to the lead byte of the last sequence; a sequence has at most three bytes after it */
    for (int k = 0; k < 3 && from > t->len && ((unsigned char)t->at[from - 1] & 0xC0) == 0x80; k++)
        from--;
    if (from > t->len && (unsigned char)t->at[from - 1] >= 0xC0)
        from--;
    t->len = from + text_utf8(t->at + from, t->cap - 1 - from);
    t->at[t->len] = '\0';
}

void text_add(struct text *t, const char *s)
{
    if (t->cut)
        return;
    const size_t n = strlen(s), room = t->cap - 1 - t->len;
    memcpy(t->at + t->len, s, n < room ? n : room);
    if (n > room) {
        cut(t);
        return;
    }
    t->len += n;
    t->at[t->len] = '\0';
}

void text_addf(struct text *t, const char *fmt, ...)
{
    if (t->cut)
        return;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->at + t->len, t->cap - t->len, fmt, ap);
    va_end(ap);
    if (n < 0)
        t->at[t->len] = '\0';
    else if ((size_t)n >= t->cap - t->len)
        cut(t);
    else
        t->len += (size_t)n;
}

/* --- numbers --- */

#define NUMBER 400 /* bytes of a number as text: longer ones are refused */

void text_add_f64(struct text *t, double v)
{
    char buf[64];
    int digits = 15;
    if (isnan(v) || isinf(v)) {
        text_add(t, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    do /* 17 digits always do; both calls use the same locale */
        snprintf(buf, sizeof buf, "%.*g", digits, v);
    while (strtod(buf, NULL) != v && ++digits <= 17);
    /* whatever stands for the decimal point there, a point here */
    char plain[64];
    size_t n = 0;
    for (const char *p = buf; *p; p++)
        if (strchr("+-0123456789e", *p))
            plain[n++] = *p;
        else if (n && plain[n - 1] != '.')
            plain[n++] = '.';
    plain[n] = '\0';
    text_add(t, plain);
}

static const char *skip_digits(const char *p, bool *any)
{
    for (; *p >= '0' && *p <= '9'; p++)
        *any = true;
    return p;
}

/* Is s [+-] digits [. digits] [e [+-] digits], with a digit before the exponent? `plain`: digits and sign alone. */
static bool is_number(const char *s, bool *plain)
{
    bool mantissa = false, exponent = false;
    const char *p = skip_digits(s + (*s == '+' || *s == '-'), &mantissa);
    *plain = *p == '\0';
    if (*p == '.')
        p = skip_digits(p + 1, &mantissa);
    if (!mantissa)
        return false;
    if (*p == 'e' || *p == 'E') {
        p++;
        p = skip_digits(p + (*p == '+' || *p == '-'), &exponent);
        if (!exponent)
            return false;
    }
    return *p == '\0';
}

bool text_to_f64(const char *s, double *out)
{
    char buf[NUMBER];
    bool plain;
    if (strlen(s) >= NUMBER - 16 || !is_number(s, &plain))
        return false;
    /* strtod wants the locale's decimal point */
    const char *point = localeconv()->decimal_point, *dot = strchr(s, '.');
    struct text t;
    text_init(&t, buf, sizeof buf);
    text_addf(&t, "%.*s%s%s", dot ? (int)(dot - s) : (int)strlen(s), s, dot ? point : "", dot ? dot + 1 : "");
    double v = strtod(buf, NULL);
    if (t.cut || isinf(v))
        return false;
    *out = v;
    return true;
}

bool text_to_i64(const char *s, int64_t *out)
{
    bool plain;
    if (!is_number(s, &plain))
        return false;
    if (plain) {
        errno = 0;
        long long v = strtoll(s, NULL, 10);
        if (errno)
            return false;
        *out = v;
        return true;
    }
    double d;
    if (!text_to_f64(s, &d) || fabs(d) >= 0x1p53 || d != floor(d))
        return false;
    *out = (int64_t)d;
    return true;
}

/* --- names --- */

static unsigned char fold(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (unsigned char)(c - 'A' + 'a');
    return (unsigned char)(c == '-' ? '_' : c);
}

bool text_same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if ((*a == '-' ? '_' : *a) != (*b == '-' ? '_' : *b))
            return false;
    return *a == *b;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Three rows of the usual table: row[i % 3][j] is the distance of the first i letters of a and the first j of b. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t row[3][TEXT_NEAR];
    for (size_t j = 0; j <= nb; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *now = row[i % 3], *last = row[(i - 1) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t d = last[j - 1] + (fold(a[i - 1]) != fold(b[j - 1]));
            d = smaller(d, smaller(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1]))
                d = smaller(d, before[j - 2] + 1);
            now[j] = d;
        }
    }
    return row[na % 3][nb];
}

void text_near_start(struct text_near *n, const char *word)
{
    const size_t len = strlen(word);
    *n = (struct text_near){.word = word, .distance = len >= TEXT_NEAR ? 0 : len < 3 ? 2 : len / 3 + 1};
}

void text_near_try(struct text_near *n, const char *candidate)
{
    if (!candidate)
        return;
    const size_t na = strlen(n->word), nb = strlen(candidate);
    if (nb >= TEXT_NEAR || n->distance == 0)
        return;
    const size_t d = distance(n->word, na, candidate, nb);
    /* nothing in common is never near, however short the words */
    if (d < n->distance && (d == 0 || d < (na > nb ? na : nb))) {
        n->best = candidate;
        n->distance = d;
    }
}

const char *text_nearest(const char *word, const char *const *names, size_t count)
{
    struct text_near n;
    text_near_start(&n, word);
    for (size_t i = 0; i < count; i++)
        text_near_try(&n, names[i]);
    return n.best;
}

/* --- UTF-8 --- */

/* Bytes of the sequence at p (n > 0 bytes left), 0 if it is not valid. RFC 3629, section 4: the second byte's range
 * depends on the first, which is what keeps out long forms, surrogates and numbers above U+10FFFF. */
static size_t sequence(const unsigned char *p, size_t n)
{
    unsigned lo = 0x80, hi = 0xBF;
    size_t len;
    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xC2 && p[0] <= 0xDF) {
        len = 2;
    } else if (p[0] >= 0xE0 && p[0] <= 0xEF) {
        len = 3;
        lo = p[0] == 0xE0 ? 0xA0 : lo;
        hi = p[0] == 0xED ? 0x9F : hi;
    } else if (p[0] >= 0xF0 && p[0] <= 0xF4) {
        len = 4;
        lo = p[0] == 0xF0 ? 0x90 : lo;
        hi = p[0] == 0xF4 ? 0x8F : hi;
    } else {
        return 0;
    }
    if (n < len || p[1] < lo || p[1] > hi)
        return 0;
    for (size_t i = 2; i < len; i++)
        if (p[i] < 0x80 || p[i] > 0xBF)
            return 0;
    return len;
}

size_t text_utf8(const char *s, size_t n)
{
    size_t at = 0;
    while (at < n) {
        size_t k = sequence((const unsigned char *)s + at, n - at);
        if (!k)
            break;
        at += k;
    }
    return at;
}
