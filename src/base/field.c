/* Settings of a struct by the rows of a table. Values are read and written by memcpy: what a config struct holds may be
 * anything until it has been checked. */
#include "hone/field.h"

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"

/* A value of any type, out of its struct. */
union value {
    bool yes;
    int64_t i; /* also the index of a choice */
    double f;
    const char *text;
};

/* --- rows --- */

const hone_field *hone_field_find(const hone_field_table *t, const char *name)
{
    for (size_t i = 0; i < t->rows; i++)
        if (text_same_name(t->row[i].name, name))
            return &t->row[i];
    return NULL;
}

static size_t choices(const hone_field *f)
{
    size_t n = 0;
    while (f->u.c.names[n])
        n++;
    return n;
}

static union value default_of(const hone_field *f)
{
    switch (f->type) {
    case HONE_FIELD_IS_BOOL:
        return (union value){.yes = f->u.yes};
    case HONE_FIELD_IS_I64:
        return (union value){.i = f->u.i.def};
    case HONE_FIELD_IS_F64:
        return (union value){.f = f->u.f.def};
    case HONE_FIELD_IS_TEXT:
        return (union value){.text = f->u.text};
    case HONE_FIELD_IS_CHOICE:
        break;
    }
    return (union value){.i = f->u.c.def};
}

/* v is known to be right for the row. */
static void store(const hone_field *f, void *config, union value v)
{
    char *at = (char *)config + f->offset;
    const int small = (int)v.i;
    switch (f->type) {
    case HONE_FIELD_IS_BOOL:
        memcpy(at, &v.yes, sizeof v.yes);
        return;
    case HONE_FIELD_IS_F64:
        memcpy(at, &v.f, sizeof v.f);
        return;
    case HONE_FIELD_IS_TEXT:
        memset(at, 0, f->size); /* equal texts make equal bytes */
        memcpy(at, v.text, strlen(v.text));
        return;
    case HONE_FIELD_IS_I64:
    case HONE_FIELD_IS_CHOICE:
        memcpy(at, f->size == sizeof small ? (const void *)&small : (const void *)&v.i, f->size);
        return;
    }
}

/* False: the bytes are no value of the type at all (a bool that is neither 0 nor 1, a text without its NUL). */
static bool load(const hone_field *f, const void *config, union value *v)
{
    const char *at = (const char *)config + f->offset;
    int small;
    switch (f->type) {
    case HONE_FIELD_IS_BOOL:
        v->yes = at[0] == 1;
        return at[0] == 0 || at[0] == 1;
    case HONE_FIELD_IS_F64:
        memcpy(&v->f, at, sizeof v->f);
        return true;
    case HONE_FIELD_IS_TEXT:
        v->text = at;
        return memchr(at, '\0', f->size) != NULL;
    case HONE_FIELD_IS_I64:
    case HONE_FIELD_IS_CHOICE:
        if (f->size == sizeof small) {
            memcpy(&small, at, sizeof small);
            v->i = small;
        } else {
            memcpy(&v->i, at, sizeof v->i);
        }
        return true;
    }
    return false;
}

void hone_field_defaults(const hone_field_table *t, void *config)
{
    for (size_t i = 0; i < t->rows; i++)
        store(&t->row[i], config, default_of(&t->row[i]));
}

/* --- text of types, ranges and values --- */

/* " from 0 to 1", " above 0 and at most 1", " at least 0", or nothing. */
static void add_range_f64(struct text *t, double lo, double hi, int open)
{
    const bool has_lo = !isinf(lo), has_hi = !isinf(hi), closed = has_lo && has_hi && !open;
    if (has_lo) {
        text_add(t, closed ? " from " : open & HONE_ABOVE ? " above " : " at least ");
        text_add_f64(t, lo);
    }
    if (has_hi) {
        text_add(t, has_lo && !closed ? " and" : "");
        text_add(t, closed ? " to " : open & HONE_BELOW ? " below " : " at most ");
        text_add_f64(t, hi);
    }
}

static void add_range_i64(struct text *t, int64_t lo, int64_t hi, size_t size)
{
    const bool has_lo = lo != INT64_MIN && !(size == sizeof(int) && lo == INT_MIN);
    const bool has_hi = hi != INT64_MAX && !(size == sizeof(int) && hi == INT_MAX);
    if (has_lo)
        text_addf(t, has_hi ? " from %lld" : " at least %lld", (long long)lo);
    if (has_hi)
        text_addf(t, has_lo ? " to %lld" : " at most %lld", (long long)hi);
}

static void add_wanted(struct text *t, const hone_field *f)
{
    switch (f->type) {
    case HONE_FIELD_IS_BOOL:
        text_add(t, "true or false");
        return;
    case HONE_FIELD_IS_I64:
        text_add(t, "an integer");
        add_range_i64(t, f->u.i.lo, f->u.i.hi, f->size);
        return;
    case HONE_FIELD_IS_F64:
        text_add(t, "a number");
        add_range_f64(t, f->u.f.lo, f->u.f.hi, f->u.f.open);
        return;
    case HONE_FIELD_IS_TEXT:
        text_addf(t, "a text of at most %zu bytes", f->size - 1);
        return;
    case HONE_FIELD_IS_CHOICE:
        for (size_t i = 0; f->u.c.names[i]; i++)
            text_addf(t, "%s%s", i ? ", " : "one of ", f->u.c.names[i]);
        return;
    }
}

static void add_value(struct text *t, const hone_field *f, union value v)
{
    switch (f->type) {
    case HONE_FIELD_IS_BOOL:
        text_add(t, v.yes ? "true" : "false");
        return;
    case HONE_FIELD_IS_I64:
        text_addf(t, "%lld", (long long)v.i);
        return;
    case HONE_FIELD_IS_F64:
        text_add_f64(t, v.f);
        return;
    case HONE_FIELD_IS_TEXT:
        text_add(t, v.text);
        return;
    case HONE_FIELD_IS_CHOICE:
        if (v.i >= 0 && (size_t)v.i < choices(f))
            text_add(t, f->u.c.names[v.i]);
        else
            text_addf(t, "%lld", (long long)v.i);
        return;
    }
}

char *hone_field_text(const hone_field *f, const void *config, char *buf, size_t n)
{
    struct text t;
    union value v;
    if (!n)
        return buf;
    text_init(&t, buf, n);
    if (load(f, config, &v))
        add_value(&t, f, v);
    return buf;
}

/* --- checks --- */

static bool text_is_fit(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7F)
            return false;
    return text_utf8(s, n) == n;
}

static bool in_range(const hone_field *f, union value v)
{
    switch (f->type) {
    case HONE_FIELD_IS_BOOL:
        return true;
    case HONE_FIELD_IS_I64:
        return v.i >= f->u.i.lo && v.i <= f->u.i.hi;
    case HONE_FIELD_IS_F64:
        if (!isfinite(v.f) || v.f < f->u.f.lo || v.f > f->u.f.hi)
            return false;
        return !(f->u.f.open & HONE_ABOVE && v.f == f->u.f.lo) && !(f->u.f.open & HONE_BELOW && v.f == f->u.f.hi);
    case HONE_FIELD_IS_TEXT:
        return strlen(v.text) < f->size && text_is_fit(v.text, strlen(v.text));
    case HONE_FIELD_IS_CHOICE:
        return v.i >= 0 && (size_t)v.i < choices(f);
    }
    return false;
}

/* A user's text for a message: short, and without control characters. */
static const char *shown(const char *s, char *buf, size_t n)
{
    struct text t;
    text_init(&t, buf, n - 3);
    text_add(&t, s);
    for (char *p = buf; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7F)
            *p = '?';
    return t.cut ? strcat(buf, "...") : buf;
}

/* `got` is the user's text, or the value's where there is none. */
static hone_status refuse(const hone_field_table *t, const hone_field *f, const char *got, const char *hint,
                          hone_err *err)
{
    char wanted[192], short_got[80];
    struct text w;
    text_init(&w, wanted, sizeof wanted);
    if (f->type == HONE_FIELD_IS_TEXT && strlen(got) < f->size)
        text_add(&w, "UTF-8 without control characters");
    else
        add_wanted(&w, f);
    return err_set(err, HONE_E_CONFIG, t->name, "%s: wanted %s%s, got \"%s\"%s%s%s", f->name, wanted,
                   w.cut ? "..." : "", shown(got, short_got, sizeof short_got), hint ? "; did you mean \"" : "",
                   hint ? hint : "", hint ? "\"?" : "");
}

hone_status hone_field_check(const hone_field_table *t, const void *config, hone_err *err)
{
    if (err_is(err))
        return err->code;
    for (size_t i = 0; i < t->rows; i++) {
        const hone_field *f = &t->row[i];
        union value v;
        char got[96];
        if (!load(f, config, &v))
            return err_set(err, HONE_E_CONFIG, t->name, "%s: %s", f->name,
                           f->type == HONE_FIELD_IS_TEXT ? "the text has no end" : "the byte is no bool");
        if (!in_range(f, v))
            return refuse(t, f, hone_field_text(f, config, got, sizeof got), NULL, err);
    }
    return HONE_OK;
}

/* --- from text --- */

static bool read_bool(const char *s, bool *out)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t k = 0;
        while (s[k] && (s[k] == words[i][k] || (s[k] >= 'A' && s[k] <= 'Z' && s[k] - 'A' + 'a' == words[i][k])))
            k++;
        if (!s[k] && !words[i][k]) {
            *out = i % 2;
            return true;
        }
    }
    return false;
}

static bool read_value(const hone_field *f, const char *s, union value *v)
{
    switch (f->type) {
    case HONE_FIELD_IS_BOOL:
        return read_bool(s, &v->yes);
    case HONE_FIELD_IS_I64:
        return text_to_i64(s, &v->i);
    case HONE_FIELD_IS_F64:
        return text_to_f64(s, &v->f);
    case HONE_FIELD_IS_TEXT:
        v->text = s;
        return true;
    case HONE_FIELD_IS_CHOICE:
        for (v->i = 0; f->u.c.names[v->i]; v->i++)
            if (text_same_name(f->u.c.names[v->i], s))
                return true;
        return false;
    }
    return false;
}

hone_status hone_field_set(const hone_field_table *t, void *config, const char *name, const char *text, hone_err *err)
{
    if (err_is(err))
        return err->code;
    const hone_field *f = hone_field_find(t, name);
    if (!f) {
        char short_name[80];
        struct text_near n;
        text_near_start(&n, name);
        for (size_t i = 0; i < t->rows; i++)
            text_near_try(&n, t->row[i].name);
        return err_set(err, HONE_E_CONFIG, t->name, "unknown key \"%s\"%s%s%s",
                       shown(name, short_name, sizeof short_name), n.best ? "; did you mean \"" : "",
                       n.best ? n.best : "", n.best ? "\"?" : "");
    }
    union value v;
    if (!read_value(f, text, &v))
        return refuse(t, f, text, f->type == HONE_FIELD_IS_CHOICE ? text_nearest(text, f->u.c.names, choices(f)) : NULL,
                      err);
    if (!in_range(f, v))
        return refuse(t, f, text, NULL, err);
    store(f, config, v);
    return HONE_OK;
}

/* --- output --- */

/* As a double-quoted YAML scalar. The text holds no control characters. */
static void put_quoted(const char *s, hone_put_fn put, void *user)
{
    char buf[64];
    size_t n = 0;
    put(user, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            buf[n++] = '\\';
        buf[n++] = *s;
        if (n + 3 > sizeof buf || !s[1]) {
            buf[n] = '\0';
            put(user, buf);
            n = 0;
        }
    }
    put(user, "\"");
}

static void put_value(const hone_field *f, union value v, hone_put_fn put, void *user)
{
    char buf[128];
    struct text t;
    if (f->type == HONE_FIELD_IS_TEXT) {
        put_quoted(v.text, put, user);
        return;
    }
    text_init(&t, buf, sizeof buf);
    add_value(&t, f, v);
    put(user, buf);
}

void hone_field_help(const hone_field_table *t, hone_put_fn put, void *user)
{
    for (size_t i = 0; i < t->rows; i++) {
        const hone_field *f = &t->row[i];
        char buf[512];
        struct text w;
        text_init(&w, buf, sizeof buf);
        text_addf(&w, "%s: ", f->name);
        add_wanted(&w, f);
        put(user, buf);
        put(user, w.cut ? "..., default " : ", default ");
        put_value(f, default_of(f), put, user);
        put(user, "\n    ");
        put(user, f->doc);
        put(user, "\n");
    }
}

void hone_field_print(const hone_field_table *t, const void *config, int indent, hone_put_fn put, void *user)
{
    for (size_t i = 0; i < t->rows; i++) {
        union value v;
        for (int k = 0; k < indent; k++)
            put(user, " ");
        put(user, t->row[i].name);
        put(user, ": ");
        if (load(&t->row[i], config, &v))
            put_value(&t->row[i], v, put, user);
        put(user, "\n");
    }
}

/* --- the table itself --- */

static bool name_is_fit(const char *s)
{
    if (!s || *s < 'a' || *s > 'z')
        return false;
    return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_.") == strlen(s);
}

/* What is wrong with the row by itself; NULL: nothing. */
static const char *row_fault(const hone_field *f)
{
    const bool whole = f->size == sizeof(int64_t), small = f->size == sizeof(int);
    if (!name_is_fit(f->name))
        return "the name must be small letters, digits, '_' and '.', from a letter on";
    if (!f->doc || !*f->doc)
        return "there is no doc";
    switch (f->type) {
    case HONE_FIELD_IS_BOOL:
        return f->size == sizeof(bool) ? NULL : "the member is no bool";
    case HONE_FIELD_IS_I64:
        if (!whole && !small)
            return "the member is no int64_t or int";
        if (small && (f->u.i.lo < INT_MIN || f->u.i.hi > INT_MAX))
            return "the range is wider than an int";
        return f->u.i.lo <= f->u.i.hi ? NULL : "the range is empty";
    case HONE_FIELD_IS_F64:
        if (f->size != sizeof(double))
            return "the member is no double";
        if (f->u.f.open & ~(HONE_ABOVE | HONE_BELOW))
            return "no such open ends";
        return f->u.f.lo <= f->u.f.hi ? NULL : "the range is empty";
    case HONE_FIELD_IS_TEXT:
        return f->size && f->u.text ? NULL : "there is no room or no default";
    case HONE_FIELD_IS_CHOICE:
        if (!small)
            return "the member is no int or enum";
        if (!f->u.c.names || !f->u.c.names[0])
            return "there are no choices";
        for (size_t i = 0; f->u.c.names[i]; i++)
            for (size_t j = 0; j < i; j++)
                if (text_same_name(f->u.c.names[i], f->u.c.names[j]))
                    return "two choices have one name";
        return NULL;
    }
    return "no such type";
}

hone_status hone_field_table_check(const hone_field_table *t, hone_err *err)
{
    if (err_is(err))
        return err->code;
    for (size_t i = 0; i < t->rows; i++) {
        const hone_field *f = &t->row[i];
        const char *fault = row_fault(f);
        if (!fault && !in_range(f, default_of(f)))
            fault = "the default is out of range";
        if (!fault && (f->offset > t->size || f->size > t->size - f->offset))
            fault = "the member is outside of the struct";
        for (size_t j = 0; j < i && !fault; j++) {
            if (text_same_name(f->name, t->row[j].name))
                fault = "another row has this name";
            else if (f->offset < t->row[j].offset + t->row[j].size && t->row[j].offset < f->offset + f->size)
                fault = "another row has this member";
        }
        if (fault)
            return err_set(err, HONE_E_ARG, t->name, "row %zu (%s): %s", i, f->name ? f->name : "no name", fault);
    }
    return HONE_OK;
}
