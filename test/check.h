/* A small test runner. A suite is a function; inside it, cases are opened by name, and each check that does not hold
 * fails the open case. The closing line of the program is `N passed, N failed`. */
#ifndef TEST_CHECK_H
#define TEST_CHECK_H

#include <stdbool.h>

struct check {
    const char *only;  /* nullable: run only cases whose "suite/case" contains this text */
    const char *suite; /* the suite that is running */
    char name[160];    /* the open case */
    int open, bad;     /* is a case open; checks of it that failed */
    int passed, failed, skipped, unmet_checks;
    bool verbose;
};

/* Opens a case (closing the one before); false: it is filtered out, do not run it. */
bool check_case(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The open case cannot run here; says why. */
void check_skip(struct check *c, const char *why);
/* Returns `ok`. The first few failures of a case are printed. */
bool check_that(struct check *c, bool ok, const char *file, int line, const char *expr, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

#define CHECK(c, ok)          check_that(c, ok, __FILE__, __LINE__, #ok, "%s", "")
#define CHECK_MSG(c, ok, ...) check_that(c, ok, __FILE__, __LINE__, #ok, __VA_ARGS__)

/* Suites, one line each in suites.def: SUITE(name) runs suite_name. */
#define SUITE(name) void suite_##name(struct check *c);
#include "suites.def"
#undef SUITE

#endif
