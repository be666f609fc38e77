/* hone: one verb, one file. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"

static const struct {
    const char *name, *help;
    int (*run)(int argc, char **argv);
} verbs[] = {
#define VERB(name, help) {#name, help, cmd_##name},
#include "cli/verbs.def"
#undef VERB
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static void usage(FILE *f)
{
    fprintf(f, "hone %s: trains robot policies that are diffusion models\n\nhone VERB ...\n", HONE_VERSION);
    for (int i = 0; i < VERBS; i++)
        fprintf(f, "  %-10s %s\n", verbs[i].name, verbs[i].help);
    fprintf(f, "hone VERB --help tells more of one.\n");
}

/* A team of OpenMP threads that spins while it waits takes the cores from everything else: beside busy threads one
 * step then takes fifty times as long. The runtime reads its setting when it is loaded, before main, so the program
 * sets it and starts itself once more. */
static void wait_passively(char **argv)
{
#if defined(_OPENMP) && defined(__linux__)
    if (!getenv("OMP_WAIT_POLICY") && setenv("OMP_WAIT_POLICY", "passive", 1) == 0)
        execv("/proc/self/exe", argv); /* where that fails, it goes on as it is */
#endif
    (void)argv;
}

int main(int argc, char **argv)
{
    wait_passively(argv);
#ifdef SIGXFSZ
    signal(SIGXFSZ, SIG_IGN); /* a file larger than allowed is an error of the write, told and cleaned up after */
#endif
    if (argc < 2) {
        usage(stderr);
        return CLI_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        usage(stdout);
        return CLI_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("hone %s\n", HONE_VERSION);
        return CLI_OK;
    }
    struct text_near near;
    text_near_start(&near, argv[1]);
    for (int i = 0; i < VERBS; i++) {
        if (text_same_name(verbs[i].name, argv[1])) {
            int code = verbs[i].run(argc - 2, argv + 2);
            if (fflush(stdout) != 0 && code == CLI_OK) {
                fprintf(stderr, "hone: the output could not be written\n");
                code = CLI_FAILED;
            }
            return code;
        }
        text_near_try(&near, verbs[i].name);
    }
    fprintf(stderr, "hone: there is no verb \"%s\"%s%s%s\n", argv[1], near.best ? "; did you mean \"" : "",
            near.best ? near.best : "", near.best ? "\"?" : "");
    usage(stderr);
    return CLI_USAGE;
}
