/* The test runner: hone_test [--list] [-v] [FILTER]. */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void close_case(struct check *c)
{
    if (!c->open)
        return;
    if (c->bad)
        c->failed++;
    else
        c->passed++;
    if (c->bad || c->verbose)
        printf("%s %s/%s\n", c->bad ? "FAIL" : "ok  ", c->suite, c->name);
    c->open = 0;
}

bool check_case(struct check *c, const char *fmt, ...)
{
    char whole[256];
    close_case(c);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->name, sizeof c->name, fmt, ap);
    va_end(ap);
    snprintf(whole, sizeof whole, "%s/%s", c->suite, c->name);
    if (c->only && !strstr(whole, c->only))
        return false;
    c->open = 1;
    c->bad = 0;
    return true;
}

void check_skip(struct check *c, const char *why)
{
    if (!c->open)
        return;
    printf("SKIP %s/%s: %s\n", c->suite, c->name, why);
    c->skipped++;
    c->open = 0;
}

bool check_that(struct check *c, bool ok, const char *file, int line, const char *expr, const char *fmt, ...)
{
    if (ok)
        return true;
    if (!c->open) { /* a check outside a case must not get lost */
        snprintf(c->name, sizeof c->name, "outside a case");
        c->open = 1;
        c->bad = 0;
    }
    if (c->bad++ < 5) {
        printf("%s:%d: %s/%s: %s ", file, line, c->suite, c->name, expr);
        va_list ap;
        va_start(ap, fmt);
        vprintf(fmt, ap);
        va_end(ap);
        printf("\n");
    }
    return false;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*fn)(struct check *c);
    } suites[] = {
#define SUITE(name) {#name, suite_##name},
#include "suites.def"
#undef SUITE
    };
    struct check c = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--list")) {
            for (size_t s = 0; s < sizeof suites / sizeof suites[0]; s++)
                printf("%s\n", suites[s].name);
            return 0;
        }
        if (!strcmp(argv[i], "-v"))
            c.verbose = true;
        else
            c.only = argv[i];
    }
    for (size_t s = 0; s < sizeof suites / sizeof suites[0]; s++) {
        struct timespec a, b;
        int before = c.passed + c.failed;
        size_t n = strlen(suites[s].name);
        /* a filter that names another suite skips this one whole */
        if (c.only && strchr(c.only, '/') && (strncmp(c.only, suites[s].name, n) != 0 || c.only[n] != '/'))
            continue;
        c.suite = suites[s].name;
        clock_gettime(CLOCK_MONOTONIC, &a);
        suites[s].fn(&c);
        close_case(&c);
        clock_gettime(CLOCK_MONOTONIC, &b);
        if (c.passed + c.failed > before)
            printf("%-14s %5d cases  %6.2f s\n", c.suite, c.passed + c.failed - before,
                   (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec));
    }
    if (c.passed + c.failed == 0) {
        printf("no case matches\n0 passed, 1 failed\n");
        return 1;
    }
    if (c.skipped)
        printf("%d passed, %d failed, %d skipped\n", c.passed, c.failed, c.skipped);
    else
        printf("%d passed, %d failed\n", c.passed, c.failed);
    return c.failed != 0;
}
