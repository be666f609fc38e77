/* Field tables: defaults, reading, checking, printing, and the faults of tables themselves. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "check.h"
#include "hone/field.h"

enum mode { MODE_CONSTANT, MODE_COSINE, MODE_WARM_UP };

struct config {
    char before;
    bool decoupled;
    double lr, decay, temperature;
    int64_t steps;
    int width;
    enum mode mode;
    char name[16];
    struct {
        int64_t kernel;
    } unet;
    char after;
};

static const char *const modes[] = {"constant", "cosine", "warm-up", NULL};

static const hone_field rows[] = {
    HONE_FIELD_BOOL(struct config, decoupled, true, "decay apart from the gradient"),
    HONE_FIELD_F64_X(struct config, lr, 3e-4, 0, 1, HONE_ABOVE, "learning rate"),
    HONE_FIELD_F64_X(struct config, decay, 0, 0, 1, HONE_BELOW, "weight decay"),
    HONE_FIELD_F64(struct config, temperature, -2.5, -INFINITY, INFINITY, "any number"),
    HONE_FIELD_I64(struct config, steps, 100, 1, INT64_MAX, "steps to train"),
    HONE_FIELD_I64(struct config, width, 64, 8, 512, "channels"),
    HONE_FIELD_CHOICE(struct config, mode, MODE_COSINE, modes, "how lr falls"),
    HONE_FIELD_TEXT(struct config, name, "adam", "name in reports"),
    HONE_FIELD_I64(struct config, unet.kernel, 5, 1, 31, "width of a kernel"),
};
static const hone_field_table fields = HONE_FIELD_TABLE("optimiser", struct config, rows);

/* A sink for put: a text. */
static void put_text(void *user, const char *s)
{
    text_add(user, s);
}

static bool set(struct config *k, const char *name, const char *text)
{
    return hone_field_set(&fields, k, name, text, NULL) == HONE_OK;
}

static void reading(struct check *c)
{
    struct config k;
    memset(&k, 0x5A, sizeof k);
    hone_field_defaults(&fields, &k);
    if (check_case(c, "defaults")) {
        CHECK(c, k.decoupled && k.lr == 3e-4 && k.decay == 0 && k.temperature == -2.5 && k.steps == 100);
        CHECK(c, k.width == 64 && k.mode == MODE_COSINE && !strcmp(k.name, "adam") && k.unet.kernel == 5);
        CHECK(c, k.before == 0x5A && k.after == 0x5A);
        CHECK(c, hone_field_check(&fields, &k, NULL) == HONE_OK);
        CHECK(c, hone_field_table_check(&fields, NULL) == HONE_OK);
    }
    if (check_case(c, "set by name")) {
        CHECK(c, set(&k, "lr", "1e-3") && k.lr == 1e-3);
        CHECK(c, set(&k, "decoupled", "No") && !k.decoupled && set(&k, "decoupled", "on") && k.decoupled);
        CHECK(c, set(&k, "steps", "1e6") && k.steps == 1000000);
        CHECK(c, set(&k, "width", "512") && k.width == 512);
        CHECK(c, set(&k, "mode", "warm_up") && k.mode == MODE_WARM_UP);
        CHECK(c, set(&k, "name", "fifteen letters") && !strcmp(k.name, "fifteen letters"));
        CHECK(c, set(&k, "name", "b") && !memcmp(k.name, "b\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16));
        CHECK(c, set(&k, "name", "") && k.name[0] == '\0');
        CHECK(c, set(&k, "unet.kernel", "3") && k.unet.kernel == 3);
        CHECK(c, k.before == 0x5A && k.after == 0x5A);
        CHECK(c, hone_field_find(&fields, "unet.kernel") == &rows[8] && !hone_field_find(&fields, "unet"));
    }
}

static void refusing(struct check *c)
{
    static const struct {
        const char *name, *text, *message;
    } v[] = {
        {"widht", "3", "unknown key \"widht\"; did you mean \"width\"?"},
        {"momentum", "3", "unknown key \"momentum\""},
        {"lr", "fast", "lr: wanted a number above 0 and at most 1, got \"fast\""},
        {"lr", "0", "lr: wanted a number above 0 and at most 1, got \"0\""},
        {"lr", "1.5", "lr: wanted a number above 0 and at most 1, got \"1.5\""},
        {"lr", "nan", "lr: wanted a number above 0 and at most 1, got \"nan\""},
        {"decay", "1", "decay: wanted a number at least 0 and below 1, got \"1\""},
        {"temperature", "inf", "temperature: wanted a number, got \"inf\""},
        {"steps", "0", "steps: wanted an integer at least 1, got \"0\""},
        {"steps", "2.5", "steps: wanted an integer at least 1, got \"2.5\""},
        {"width", "4294967360", "width: wanted an integer from 8 to 512, got \"4294967360\""},
        {"decoupled", "maybe", "decoupled: wanted true or false, got \"maybe\""},
        {"decoupled", "", "decoupled: wanted true or false, got \"\""},
        {"mode", "cosin", "mode: wanted one of constant, cosine, warm-up, got \"cosin\"; did you mean \"cosine\"?"},
        {"mode", "1", "mode: wanted one of constant, cosine, warm-up, got \"1\""},
        {"name", "sixteen letters.", "name: wanted a text of at most 15 bytes, got \"sixteen letters.\""},
        {"name", "two\nlines", "name: wanted UTF-8 without control characters, got \"two?lines\""},
        {"name", "\xC0\x80", NULL},
    };
    struct config k, before;
    memset(&k, 0, sizeof k);
    hone_field_defaults(&fields, &k);
    memcpy(&before, &k, sizeof k);
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++)
        if (check_case(c, "refused: %s = %s", v[i].name, i + 1 < sizeof v / sizeof v[0] ? v[i].text : "bad utf-8")) {
            hone_err e = {0};
            CHECK(c, hone_field_set(&fields, &k, v[i].name, v[i].text, &e) == HONE_E_CONFIG);
            CHECK(c, e.code == HONE_E_CONFIG && !strcmp(e.where, "optimiser"));
            CHECK_MSG(c, !v[i].message || !strcmp(e.text, v[i].message), "(%s)", e.text);
            CHECK(c, !memcmp(&k, &before, sizeof k));
            CHECK(c, hone_field_set(&fields, &k, v[i].name, v[i].text, NULL) == HONE_E_CONFIG);
            CHECK(c, hone_field_set(&fields, &k, "lr", "0.5", &e) == HONE_E_CONFIG && k.lr == 3e-4);
        }
    if (check_case(c, "long values make short messages")) {
        char text[2000];
        hone_err e = {0};
        memset(text, 'x', sizeof text);
        text[sizeof text - 1] = '\0';
        CHECK(c, hone_field_set(&fields, &k, "lr", text, &e) == HONE_E_CONFIG);
        CHECK(c, strstr(e.text, "xxx...\"") && strlen(e.text) < 200);
        e = (hone_err){0};
        CHECK(c, hone_field_set(&fields, &k, text, "1", &e) == HONE_E_CONFIG && strstr(e.text, "xxx...\""));
    }
}

static void checking(struct check *c)
{
    struct config good, k;
    memset(&good, 0, sizeof good);
    hone_field_defaults(&fields, &good);
    if (!check_case(c, "a whole struct is checked"))
        return;
#define BAD(change, part)                                                                                              \
    do {                                                                                                               \
        hone_err e = {0};                                                                                              \
        k = good;                                                                                                      \
        change;                                                                                                        \
        CHECK(c, hone_field_check(&fields, &k, &e) == HONE_E_CONFIG);                                                  \
        CHECK_MSG(c, strstr(e.text, part) != NULL, "(%s)", e.text);                                                    \
    } while (0)
    BAD(k.lr = 0, "lr: wanted a number above 0 and at most 1, got \"0\"");
    BAD(k.lr = NAN, "got \"nan\"");
    BAD(k.temperature = -INFINITY, "got \"-inf\"");
    BAD(k.decay = 1, "decay");
    BAD(k.steps = -3, "got \"-3\"");
    BAD(k.width = 7, "width");
    BAD(k.mode = 3, "mode: wanted one of constant, cosine, warm-up, got \"3\"");
    BAD(memset(k.name, 'x', sizeof k.name), "name: the text has no end");
    BAD(memcpy(k.name, "\x01", 2), "without control");
    BAD(memset(&k.decoupled, 2, 1), "decoupled: the byte is no bool");
#undef BAD
    k = good;
    CHECK(c, hone_field_check(&fields, &k, NULL) == HONE_OK);
}

static void output(struct check *c)
{
    static char buf[4096];
    struct text t;
    struct config k, back;
    memset(&k, 0, sizeof k);
    memset(&back, 0, sizeof back);
    hone_field_defaults(&fields, &k);
    if (check_case(c, "print")) {
        CHECK(c, set(&k, "name", "a \"b\" \\ c"));
        text_init(&t, buf, sizeof buf);
        hone_field_print(&fields, &k, 2, put_text, &t);
        CHECK_MSG(c,
                  !strcmp(buf, "  decoupled: true\n  lr: 0.0003\n  decay: 0\n  temperature: -2.5\n  steps: 100\n"
                               "  width: 64\n  mode: cosine\n  name: \"a \\\"b\\\" \\\\ c\"\n  unet.kernel: 5\n"),
                  "(%s)", buf);
    }
    if (check_case(c, "every value reads back from its text")) {
        CHECK(c, set(&k, "lr", "0.1234567890123456") && set(&k, "steps", "9223372036854775807"));
        CHECK(c, set(&k, "mode", "warm-up") && set(&k, "decoupled", "false") && set(&k, "width", "9"));
        hone_field_defaults(&fields, &back);
        for (size_t i = 0; i < fields.rows; i++) {
            char text[64];
            CHECK(c, set(&back, rows[i].name, hone_field_text(&rows[i], &k, text, sizeof text)));
        }
        CHECK(c, !memcmp(&k, &back, sizeof k));
    }
    if (check_case(c, "help names type, range, default and doc")) {
        text_init(&t, buf, sizeof buf);
        hone_field_help(&fields, put_text, &t);
        CHECK(c, strstr(buf, "lr: a number above 0 and at most 1, default 0.0003\n    learning rate\n"));
        CHECK(c, strstr(buf, "width: an integer from 8 to 512, default 64\n    channels\n"));
        CHECK(c, strstr(buf, "mode: one of constant, cosine, warm-up, default cosine\n    how lr falls\n"));
        CHECK(c, strstr(buf, "name: a text of at most 15 bytes, default \"adam\"\n    name in reports\n"));
        CHECK(c, strstr(buf, "decoupled: true or false, default true\n    decay apart from the gradient\n"));
    }
    if (check_case(c, "long texts print whole")) {
        struct wide {
            char text[300];
        } w;
        static const hone_field row[] = {HONE_FIELD_TEXT(struct wide, text, "", "long")};
        static const hone_field_table one = HONE_FIELD_TABLE("wide", struct wide, row);
        memset(&w, 0, sizeof w);
        memset(w.text, '"', 299);
        text_init(&t, buf, sizeof buf);
        hone_field_print(&one, &w, 0, put_text, &t);
        CHECK_MSG(c, t.len == strlen("text: \"\"\n") + 598, "(%zu)", t.len);
    }
}

/* A copy of the good rows with one of them spoilt. */
static void tables(struct check *c)
{
    static const char *const twins[] = {"a-b", "a_b", NULL}, *const none[] = {NULL};
    hone_field r[9];
    const hone_field_table t = {"spoilt", r, 9, sizeof(struct config)};
    if (!check_case(c, "a wrong table is found"))
        return;
#define BAD(change, part)                                                                                              \
    do {                                                                                                               \
        hone_err e = {0};                                                                                              \
        memcpy(r, rows, sizeof r);                                                                                     \
        change;                                                                                                        \
        CHECK(c, hone_field_table_check(&t, &e) == HONE_E_ARG && !strcmp(e.where, "spoilt"));                          \
        CHECK_MSG(c, strstr(e.text, part) != NULL, "(%s)", e.text);                                                    \
    } while (0)
    BAD(r[0].name = NULL, "row 0");
    BAD(r[1].name = "Lr", "row 1 (Lr): the name");
    BAD(r[1].name = "l-r", "the name");
    BAD(r[1].name = "", "the name");
    BAD(r[2].name = "lr", "another row has this name");
    BAD(r[2].doc = "", "no doc");
    BAD(r[2].doc = NULL, "no doc");
    BAD(r[2].offset = r[1].offset, "another row has this member");
    BAD(r[2].offset = r[1].offset + 4, "another row has this member");
    BAD(r[2].offset = sizeof(struct config) - 4, "outside");
    BAD(r[2].offset = SIZE_MAX - 3, "outside");
    BAD(r[1].u.f.def = 0, "default");
    BAD(r[1].u.f.def = NAN, "default");
    BAD(r[1].u.f.lo = 2, "empty");
    BAD(r[1].u.f.lo = NAN, "empty");
    BAD(r[1].u.f.open = 4, "open");
    BAD(r[4].u.i.def = 0, "default");
    BAD(r[4].u.i.hi = 0, "empty");
    BAD(r[4].size = 2, "int64_t or int");
    BAD(r[5].u.i.hi = (int64_t)INT32_MAX + 1, "wider");
    BAD(r[6].u.c.def = 3, "default");
    BAD(r[6].u.c.def = -1, "default");
    BAD(r[6].u.c.names = twins, "two choices");
    BAD(r[6].u.c.names = none, "no choices");
    BAD(r[6].size = 8, "int or enum");
    BAD(r[7].u.text = NULL, "no default");
    BAD(r[7].u.text = "sixteen letters.", "default");
    BAD(r[7].u.text = "\xFF", "default");
    BAD(r[0].size = 4, "no bool");
    BAD(r[0].type = (hone_field_type)99, "no such type");
#undef BAD
    memcpy(r, rows, sizeof r);
    CHECK(c, hone_field_table_check(&t, NULL) == HONE_OK);
}

void suite_field(struct check *c)
{
    reading(c);
    refusing(c);
    checking(c);
    output(c);
    tables(c);
}
