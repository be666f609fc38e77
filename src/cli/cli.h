/* What the verbs of the command line share. Exit codes: 0, 1 for a failed run, 2 for a mistake in the call. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "hone/base.h"

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* One flag of a verb. Text flags take the next word or what stands behind '='; a flag that may be given several times
 * collects its words. '-' and '_' are the same in names. */
struct cli_flag {
    const char *name;  /* without the dashes */
    const char *value; /* what it takes, for the help; NULL: it is a switch */
    const char *doc;
    bool *on;          /* of a switch */
    const char **text; /* of the others: the words given */
    int max, *n;       /* how many words `text` holds, and holds now; n NULL: one, the last given */
};

struct cli_verb {
    const char *name, *usage, *doc; /* usage: what stands behind the verb */
    const struct cli_flag *flags;
    int n_flags;
    int min_words, max_words; /* words that are no flags */
};

/* Reads the words behind the verb. *words gets those that are no flags. CLI_OK: go on; otherwise *code is how the
 * program ends (help was printed, or the mistake was told). */
bool cli_parse(const struct cli_verb *v, int argc, char **argv, const char **words, int *n_words, int *code);
void cli_help(const struct cli_verb *v);
/* "hone: where: text" on stderr; returns CLI_USAGE for mistakes in settings, CLI_FAILED for the rest. */
int cli_fail(const hone_err *err);
/* A whole number in [lo, hi]; false and told if it is none. */
bool cli_number(const char *flag, const char *text, long lo, long hi, long *out);

#define VERB(name, help) int cmd_##name(int argc, char **argv);
#include "cli/verbs.def"
#undef VERB

#endif
