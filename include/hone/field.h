/* hone/field.h: a table that owns the settings of one config struct.
 *
 * Each row names a member, its type, default, range or choices, and says what it is for. Defaults, reading from text,
 * checks, help and printing all come from the row; a setting is written down once.
 *
 *     struct adam { double lr; int64_t warmup; bool decoupled; int mode; char name[32]; };
 *     static const char *const modes[] = {"constant", "cosine", NULL};
 *     static const hone_field adam_rows[] = {
 *         HONE_FIELD_F64_X(struct adam, lr, 3e-4, 0, 1, HONE_ABOVE, "learning rate"),
 *         HONE_FIELD_I64(struct adam, warmup, 0, 0, INT64_MAX, "steps until lr is reached"),
 *         HONE_FIELD_BOOL(struct adam, decoupled, true, "decay weights apart from the gradient"),
 *         HONE_FIELD_CHOICE(struct adam, mode, 1, modes, "how lr falls"),
 *         HONE_FIELD_TEXT(struct adam, name, "adam", "name in reports"),
 *     };
 *     static const hone_field_table adam_fields = HONE_FIELD_TABLE("adam", struct adam, adam_rows);
 *
 * Names are those of the members; in what users write, '-' and '_' are the same. A member of a member may be named
 * ("unet.kernel"). Text lives inside of the struct, so a config is copied by assignment and owns nothing.
 * Mistakes of the user's are HONE_E_CONFIG, with the table's name in `where`; a table that is wrong itself is found by
 * hone_field_table_check, which the tests call for each one. Tables are const: any number of threads may read them. */
#ifndef HONE_FIELD_H
#define HONE_FIELD_H

#include <limits.h>

#include "hone/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hone_field_type {
    HONE_FIELD_IS_BOOL,  /* bool */
    HONE_FIELD_IS_I64,   /* int64_t or int */
    HONE_FIELD_IS_F64,   /* double, always finite */
    HONE_FIELD_IS_TEXT,  /* char[N]: up to N - 1 bytes of UTF-8 without control characters, and a NUL */
    HONE_FIELD_IS_CHOICE /* int or an enum: the index of one of some names */
} hone_field_type;

/* Ends of a range of doubles that do not belong to it. */
enum { HONE_ABOVE = 1 /* lo is too little */, HONE_BELOW = 2 /* hi is too much */ };

typedef struct hone_field {
    const char *name;
    hone_field_type type;
    size_t offset, size; /* of the member, in bytes */
    const char *doc;     /* one sentence: what it does, and its unit */
    union {
        bool yes;
        struct {
            int64_t def, lo, hi;
        } i;
        struct {
            double def, lo, hi; /* -INFINITY, INFINITY: no such end */
            int open;           /* HONE_ABOVE | HONE_BELOW */
        } f;
        const char *text;
        struct {
            int def;
            const char *const *names; /* up to a NULL */
        } c;
    } u;
} hone_field;

typedef struct hone_field_table {
    const char *name; /* of the section, for messages */
    const hone_field *row;
    size_t rows, size; /* size: bytes of the struct */
} hone_field_table;

/* A row whose member has another type than the macro says does not compile (an enum is checked by its size only). */
#define HONE_FIELD_MEMBER(s, m) ((s *)0)->m
#define HONE_FIELD_BOOL(s, m, def_, doc_)                                                                              \
    {                                                                                                                  \
        .name = #m, .type = HONE_FIELD_IS_BOOL, .offset = offsetof(s, m),                                              \
        .size = _Generic(HONE_FIELD_MEMBER(s, m), bool                                                                 \
                         : sizeof(bool)),                                                                              \
        .doc = doc_, .u = {                                                                                            \
            .yes = def_                                                                                                \
        }                                                                                                              \
    }
#define HONE_FIELD_I64(s, m, def_, lo_, hi_, doc_)                                                                     \
    {                                                                                                                  \
        .name = #m, .type = HONE_FIELD_IS_I64, .offset = offsetof(s, m),                                               \
        .size = _Generic(HONE_FIELD_MEMBER(s, m), int64_t                                                              \
                         : sizeof(int64_t), int                                                                        \
                         : sizeof(int)),                                                                               \
        .doc = doc_, .u = {                                                                                            \
            .i = {def_, lo_, hi_}                                                                                      \
        }                                                                                                              \
    }
#define HONE_FIELD_F64_X(s, m, def_, lo_, hi_, open_, doc_)                                                            \
    {                                                                                                                  \
        .name = #m, .type = HONE_FIELD_IS_F64, .offset = offsetof(s, m),                                               \
        .size = _Generic(HONE_FIELD_MEMBER(s, m), double                                                               \
                         : sizeof(double)),                                                                            \
        .doc = doc_, .u = {                                                                                            \
            .f = {def_, lo_, hi_, open_}                                                                               \
        }                                                                                                              \
    }
#define HONE_FIELD_F64(s, m, def_, lo_, hi_, doc_) HONE_FIELD_F64_X(s, m, def_, lo_, hi_, 0, doc_)
#define HONE_FIELD_TEXT(s, m, def_, doc_)                                                                                   \
    {                                                                                                                       \
        .name = #m,                                                                                                       \
     .type = HONE_FIELD_IS_TEXT,                                                                                       \
     .offset = _Generic(&HONE_FIELD_MEMBER(s, m), char **: (void)0, default: offsetof(s, m)),                          \
     .size = _Generic(HONE_FIELD_MEMBER(s, m)[0], char: sizeof(HONE_FIELD_MEMBER(s, m))),                              \
     .doc = doc_,                                                                                                      \
     .u = {.text = def_} \
    }
#define HONE_FIELD_CHOICE(s, m, def_, names_, doc_)                                                                    \
    {                                                                                                                  \
        .name = #m, .type = HONE_FIELD_IS_CHOICE, .offset = offsetof(s, m), .size = sizeof(HONE_FIELD_MEMBER(s, m)),   \
        .doc = doc_, .u = {                                                                                            \
            .c = {def_, names_}                                                                                        \
        }                                                                                                              \
    }
#define HONE_FIELD_TABLE(name_, s, rows_)                                                                              \
    {                                                                                                                  \
        name_, rows_, sizeof(rows_) / sizeof((rows_)[0]), sizeof(s)                                                    \
    }

/* The row of that name; NULL: there is none. */
HONE_API const hone_field *hone_field_find(const hone_field_table *t, const char *name);

/* Every member that has a row gets its default; the others stay. */
HONE_API void hone_field_defaults(const hone_field_table *t, void *config);

/* One member from text, as a user writes it: true/yes/on and false/no/off; 64, 1e6; 3e-4; one of the choices; any text.
 * HONE_E_CONFIG: no such name (the nearest is told), not of the type, or out of its range (which is told). Then the
 * struct is as it was. */
HONE_API hone_status hone_field_set(const hone_field_table *t, void *config, const char *name, const char *text,
                                    hone_err *err);

/* Every member that has a row is in its range; HONE_E_CONFIG for the first that is not. */
HONE_API hone_status hone_field_check(const hone_field_table *t, const void *config, hone_err *err);

/* A member as text that hone_field_set reads back to the same value. Returns buf; what does not fit is cut. */
HONE_API char *hone_field_text(const hone_field *f, const void *config, char *buf, size_t n);

/* Takes a piece of output: NUL-terminated, not always a whole line. */
typedef void (*hone_put_fn)(void *user, const char *text);

/* For each row, two lines: `lr: a number above 0 and at most 1, default 0.0003` and, indented, its doc. */
HONE_API void hone_field_help(const hone_field_table *t, hone_put_fn put, void *user);
/* For each row, `indent` spaces and `name: value`, which is YAML (texts are in double quotes).
 * The struct must have passed hone_field_check. */
HONE_API void hone_field_print(const hone_field_table *t, const void *config, int indent, hone_put_fn put, void *user);

/* The table itself: names are there, well formed and unique; docs are there; members lie inside of the struct and
 * apart; ranges are in order and hold the default; choices are unique. HONE_E_ARG if not, with the row in the text. */
HONE_API hone_status hone_field_table_check(const hone_field_table *t, hone_err *err);

#ifdef __cplusplus
}
#endif
#endif
