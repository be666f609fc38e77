/* What the files of the room share: tables of named rows, and slabs of arrays. */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "hone/sched.h"

/* A table: `count` rows of `stride` bytes, each beginning with a `const char *name`. */
struct sched_table {
    const char *what; /* "sampler", for messages */
    const void *rows;
    size_t stride;
    int count;
};
#define SCHED_TABLE(what, rows)                                                                                        \
    {                                                                                                                  \
        what, rows, sizeof(rows)[0], (int)(sizeof(rows) / sizeof(rows)[0])                                             \
    }

/* The name of row i; NULL past either end. */
const char *sched_name(const struct sched_table *t, int i);
/* The index of a row, or -1 with `err` set. Nullable: name, then `standard`. */
int sched_find(const struct sched_table *t, const char *name, const char *standard, hone_err *err);

/* Finite and lo <= v <= hi; else HONE_E_ARG: "what must be wanted; got v". */
hone_status sched_range(const char *where, const char *what, double v, double lo, double hi, const char *wanted,
                        hone_err *err);

/* Where parameterisations may be used. */
enum { SCHED_DIFFUSION = 1, SCHED_FLOW = 2 };
/* The index of a parameterisation that the process allows, or -1 with `err` set. */
int sched_param_find(const char *name, int process, hone_err *err);
hone_status sched_param_fill(int row, double alpha, double sigma, hone_param_row *out, hone_err *err);

#endif
