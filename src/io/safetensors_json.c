/* A streaming reader of the JSON of tensor files. */
#include "io/safetensors_json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"

bool json_fail(struct json *j, hone_status code, const char *fmt, ...)
{
    char text[160];
    if (j->status != HONE_OK)
        return false;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    j->status = err_set(j->err, code, j->where, "header byte %" PRIu64 "%s: %s", j->at, j->subject, text);
    return false;
}

/* --- bytes --- */

/* Makes byte j->at available. */
static bool fill(struct json *j)
{
    if (j->status != HONE_OK || j->at >= j->size || !j->file)
        return false;
    uint64_t n = j->size - j->at;
    n = n < JSON_ROOM ? n : JSON_ROOM;
    j->status = file_in_read(j->file, j->room, (size_t)n, j->base + j->at, j->err);
    if (j->status != HONE_OK)
        return false;
    j->buf = j->room;
    j->buf_at = j->at;
    j->n_buf = n;
    return true;
}

/* The next byte, not taken; -1 if there is none. */
static int look(struct json *j)
{
    /* going back in the header makes the difference wrap, which is out of the buffer too */
    if (j->status != HONE_OK || (j->at - j->buf_at >= j->n_buf && !fill(j)))
        return -1;
    return j->buf[j->at - j->buf_at];
}

/* The next byte, taken; -1 and a failure if there is none. */
static int take(struct json *j)
{
    int c = look(j);
    if (c < 0)
        json_fail(j, HONE_E_FORMAT, "the header ends in the middle of its JSON");
    else
        j->at++;
    return c;
}

static bool unexpected(struct json *j, const char *wanted, int c)
{
    if (c < 0)
        return json_fail(j, HONE_E_FORMAT, "the header ends; wanted %s", wanted);
    if (c > 0x20 && c < 0x7F)
        return json_fail(j, HONE_E_FORMAT, "wanted %s; got '%c'", wanted, c);
    return json_fail(j, HONE_E_FORMAT, "wanted %s; got byte 0x%02X", wanted, (unsigned)c);
}

/* --- marks --- */

int json_peek(struct json *j)
{
    for (;;) {
        int c = look(j);
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
            return c;
        j->at++;
    }
}

bool json_end(struct json *j)
{
    return json_peek(j) < 0 && j->status == HONE_OK;
}

bool json_mark(struct json *j, char c)
{
    const char wanted[] = {'\'', c, '\'', 0};
    int got = json_peek(j);
    if (got != c)
        return unexpected(j, wanted, got);
    j->at++;
    return true;
}

bool json_more(struct json *j, char close, bool *more)
{
    const char wanted[] = {'\'', ',', '\'', ' ', 'o', 'r', ' ', '\'', close, '\'', 0};
    int got = json_peek(j);
    if (got != ',' && got != close)
        return unexpected(j, wanted, got);
    j->at++;
    *more = got == ',';
    return true;
}

bool json_null(struct json *j)
{
    if (json_peek(j) != 'n')
        return false;
    for (const char *p = "null"; *p; p++)
        if (look(j) != *p)
            return unexpected(j, "null", look(j));
        else
            j->at++;
    return true;
}

/* --- texts --- */

struct sink {
    char *out;
    size_t cap, kept, n; /* kept falls behind n at the first character that does not fit, and stays */
};

static void put(struct sink *s, const char *bytes, size_t n)
{
    if (s->kept == s->n && s->n + n < s->cap) {
        memcpy(s->out + s->n, bytes, n);
        s->kept += n;
    }
    s->n += n;
}

/* Four hexadecimal digits. */
static bool hex4(struct json *j, unsigned *v)
{
    *v = 0;
    for (int i = 0; i < 4; i++) {
        int c = take(j);
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return unexpected(j, "four hexadecimal digits", c);
        *v = *v << 4 | (unsigned)digit;
    }
    return true;
}

/* After "\u": a character of the first plane, or the two halves of one beyond it. */
static bool escaped_char(struct json *j, struct sink *s)
{
    unsigned v, low;
    if (!hex4(j, &v))
        return false;
    if (v >= 0xD800 && v <= 0xDBFF) {
        if (take(j) != '\\' || take(j) != 'u' || !hex4(j, &low) || low < 0xDC00 || low > 0xDFFF)
            return json_fail(j, HONE_E_FORMAT, "\\u%04x is half a character, and no other half follows", v);
        v = 0x10000 + ((v - 0xD800) << 10) + (low - 0xDC00);
    } else if (v >= 0xDC00 && v <= 0xDFFF) {
        return json_fail(j, HONE_E_FORMAT, "\\u%04x is the second half of a character without a first", v);
    }
    if (v == 0)
        return json_fail(j, HONE_E_UNSUPPORTED, "a NUL character in a text");
    unsigned char b[4];
    size_t n;
    if (v < 0x80) {
        b[0] = (unsigned char)v;
        n = 1;
    } else if (v < 0x800) {
        b[0] = (unsigned char)(0xC0 | v >> 6);
        n = 2;
    } else if (v < 0x10000) {
        b[0] = (unsigned char)(0xE0 | v >> 12);
        n = 3;
    } else {
        b[0] = (unsigned char)(0xF0 | v >> 18);
        n = 4;
    }
    for (size_t i = 1; i < n; i++)
        b[i] = (unsigned char)(0x80 | (v >> 6 * (n - 1 - i) & 0x3F));
    put(s, (const char *)b, n);
    return true;
}

static bool escape(struct json *j, struct sink *s)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int c = take(j);
    if (c == 'u')
        return escaped_char(j, s);
    const char *p = c > 0 ? strchr(from, c) : NULL;
    if (!p)
        return unexpected(j, "an escape of JSON after '\\'", c);
    put(s, &to[p - from], 1);
    return true;
}

/* One character of more than one byte; `lead` is taken. */
static bool sequence(struct json *j, struct sink *s, int lead)
{
    char b[4] = {(char)lead};
    size_t n = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    for (size_t i = 1; i < n; i++) {
        int c = take(j);
        if (c < 0)
            return false;
        b[i] = (char)c;
    }
    if (text_utf8(b, n) != n)
        return json_fail(j, HONE_E_FORMAT, "the bytes from 0x%02X on are not UTF-8", (unsigned)lead);
    put(s, b, n);
    return true;
}

bool json_text(struct json *j, char *out, size_t cap, size_t *n)
{
    struct sink s = {.out = out, .cap = cap};
    if (json_peek(j) != '"')
        return unexpected(j, "a text", json_peek(j));
    j->at++;
    for (;;) {
        int c = take(j);
        if (c < 0)
            return false;
        if (c == '"')
            break;
        char plain = (char)c;
        if (c < 0x20)
            return json_fail(j, HONE_E_FORMAT, "control character 0x%02X in a text; it must be escaped", (unsigned)c);
        if (c == '\\' ? !escape(j, &s) : c >= 0x80 && !sequence(j, &s, c))
            return false;
        if (c != '\\' && c < 0x80)
            put(&s, &plain, 1);
    }
    if (cap)
        out[s.kept] = '\0';
    *n = s.n;
    return true;
}

/* --- numbers --- */

bool json_u64(struct json *j, uint64_t *v)
{
    int c = json_peek(j);
    if (c < '0' || c > '9')
        return unexpected(j, "a whole number of at least 0", c);
    const bool zero = c == '0';
    const uint64_t start = j->at;
    for (*v = 0; (c = look(j)) >= '0' && c <= '9'; j->at++) {
        unsigned digit = (unsigned)(c - '0');
        if (zero && j->at > start)
            return json_fail(j, HONE_E_FORMAT, "a number with a leading zero");
        if (*v > (UINT64_MAX - digit) / 10)
            return json_fail(j, HONE_E_FORMAT, "a number of 2^64 or more");
        *v = *v * 10 + digit;
    }
    if (c == '.' || c == 'e' || c == 'E')
        return json_fail(j, HONE_E_FORMAT, "a number with a fraction or an exponent; wanted a whole number");
    return j->status == HONE_OK;
}
