/* Text: building it in fixed buffers, numbers to and from it, the nearest of some names, UTF-8. Nothing allocates, and
 * no result depends on the program's locale. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "hone/base.h"

/* A text that grows in a buffer of the caller's. It is closed by NUL after each call; what does not fit is cut off, in
 * front of the UTF-8 sequence it would split, and everything after a cut is dropped. */
struct text {
    char *at;
    size_t cap, len; /* bytes of the buffer (at least 1), and used without the NUL */
    bool cut;
};

void text_init(struct text *t, char *buf, size_t cap);
void text_add(struct text *t, const char *s);
void text_addf(struct text *t, const char *fmt, ...) HONE_PRINTF(2, 3);
/* The shortest decimal that reads back as the same double: "0.0003", "1e-08", "inf", "nan". */
void text_add_f64(struct text *t, double v);

/* The whole of s as a decimal number, as in JSON but with an optional + and with ".5" and "5." allowed. False: s is no
 * number, or one too large for the type. Hexadecimal, infinities, NaN and surrounding space are refused.
 * An integer may be written as 1e6 or 2.0, if its value is one and below 2^53. */
bool text_to_f64(const char *s, double *out);
bool text_to_i64(const char *s, int64_t *out);

/* The nearest name: start with a word, try each candidate, read `best` (NULL: none is near). Case, and '-' against '_',
 * do not count. Of two equally near names the first wins. Nearness is the restricted Damerau-Levenshtein distance
 * (insert, delete, replace, swap of neighbours; each place edited once); up to a third of the word may differ, and one
 * letter of a shorter one. Words of TEXT_NEAR or more bytes are near to nothing. */
#define TEXT_NEAR 64
struct text_near {
    const char *word, *best;
    size_t distance; /* of best; before there is one, the first that is too much */
};

void text_near_start(struct text_near *n, const char *word);
void text_near_try(struct text_near *n, const char *candidate); /* Nullable: candidate, then skipped */
/* The same over count names. */
const char *text_nearest(const char *word, const char *const *names, size_t count);

/* Equal, '-' and '_' taken as one. */
bool text_same_name(const char *a, const char *b);

/* Bytes at the start of s[0, n) that are whole, valid UTF-8 (RFC 3629: shortest forms only, no surrogates, nothing
 * above U+10FFFF); n if all is. NUL is a character like others. */
size_t text_utf8(const char *s, size_t n);

#endif
