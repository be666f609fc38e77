/* Reading the words of a call, telling mistakes. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

int cli_fail(const hone_err *err)
{
    fprintf(stderr, "hone: %s%s%s\n", err->where, *err->where ? ": " : "", err->text);
    return err->code == HONE_E_CONFIG ? CLI_USAGE : CLI_FAILED;
}

bool cli_number(const char *flag, const char *text, long lo, long hi, long *out)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (*text && !*end && !errno && v >= lo && v <= hi) {
        *out = v;
        return true;
    }
    fprintf(stderr, "hone: --%s wants a whole number from %ld to %ld; got \"%s\"\n", flag, lo, hi, text);
    return false;
}

void cli_help(const struct cli_verb *v)
{
    printf("hone %s %s\n%s\n", v->name, v->usage, v->doc);
    for (int i = 0; i < v->n_flags; i++) {
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", v->flags[i].name, v->flags[i].value ? " " : "",
                 v->flags[i].value ? v->flags[i].value : "");
        printf("  %-24s %s\n", left, v->flags[i].doc);
    }
}

static const struct cli_flag *find(const struct cli_verb *v, const char *word)
{
    char name[64];
    const char *end = strchr(word, '=');
    size_t n = end ? (size_t)(end - word) : strlen(word);
    struct text_near near;
    snprintf(name, sizeof name, "%.*s", (int)(n < 60 ? n : 60), word);
    text_near_start(&near, name);
    for (int i = 0; i < v->n_flags; i++) {
        if (text_same_name(v->flags[i].name, name))
            return &v->flags[i];
        text_near_try(&near, v->flags[i].name);
    }
    fprintf(stderr, "hone: %s: unknown flag --%s%s%s%s; hone %s --help tells the flags\n", v->name, name,
            near.best ? "; did you mean --" : "", near.best ? near.best : "", near.best ? "?" : "", v->name);
    return NULL;
}

/* Flag at argv[*i]; moves *i over its value. */
static bool take(const struct cli_verb *v, int argc, char **argv, int *i)
{
    const char *word = argv[*i] + 2, *value = strchr(word, '=');
    const struct cli_flag *f = find(v, word);
    if (!f)
        return false;
    if (!f->value) {
        if (value)
            fprintf(stderr, "hone: %s: --%s is a switch and takes no value\n", v->name, f->name);
        *f->on = true;
        return !value;
    }
    if (!value && *i + 1 >= argc) {
        fprintf(stderr, "hone: %s: --%s wants %s\n", v->name, f->name, f->value);
        return false;
    }
    const char *given = value ? value + 1 : argv[++*i];
    if (!f->n) {
        *f->text = given;
        return true;
    }
    if (*f->n == f->max) {
        fprintf(stderr, "hone: %s: --%s may be given at most %d times\n", v->name, f->name, f->max);
        return false;
    }
    f->text[(*f->n)++] = given;
    return true;
}

bool cli_parse(const struct cli_verb *v, int argc, char **argv, const char **words, int *n_words, int *code)
{
    *n_words = 0;
    *code = CLI_USAGE;
    for (int i = 0; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            cli_help(v);
            *code = CLI_OK;
            return false;
        }
        if (!strncmp(argv[i], "--", 2) && argv[i][2]) {
            if (!take(v, argc, argv, &i))
                return false;
        } else if (*n_words < v->max_words) {
            words[(*n_words)++] = argv[i];
        } else {
            fprintf(stderr, "hone: %s: \"%s\" is one word too many; usage: hone %s %s\n", v->name, argv[i], v->name,
                    v->usage);
            return false;
        }
    }
    if (*n_words < v->min_words) {
        fprintf(stderr, "hone: usage: hone %s %s\n", v->name, v->usage);
        return false;
    }
    return true;
}
