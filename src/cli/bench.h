/* What the files of `hone bench` share. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include <stdio.h>

#include "hone/head.h"

/* A reference network: sizes of its operands and settings that differ from the defaults. */
struct bench_net {
    const char *name;
    int64_t horizon, actions, cond;
    int steps;           /* of the sampler */
    const char *set[10]; /* key, value, ..., NULL */
};
/* NULL and told in `err`: no such network. */
const struct bench_net *bench_net_find(const char *name, hone_err *err);

struct bench_options {
    const char *what; /* decision, step, ops */
    const struct bench_net *net;
    long batch, threads, steps, repeats; /* repeats 0: as many as take about 3 s */
    bool bf16, json, force, plain;
    const char *profile;
};

/* Everything that one measurement is made with. */
struct bench {
    struct bench_options o;
    hone_ctx *ctx;
    hone_device *device;
    const hone_net *net;
    char config[HONE_NET_CONFIG_MAX];
    hone_layout *layout;
    hone_schedule *schedule;
    hone_objective *objective;
    hone_sampler *sampler;
    hone_program *program;
    hone_store *param;
    hone_optim *optim;
    float *data[2];         /* SETS of each input, one behind the other */
    size_t data_n[2];       /* floats of one set */
    hone_store *stores[16]; /* one a role */
};
enum { BENCH_SETS = 16 }; /* operands that runs take turns with */

/* Network, layout, device; then bench_decision or bench_step builds its program. bench_close also after failures. */
hone_status bench_open(struct bench *b, hone_err *err);
void bench_close(struct bench *b);
hone_status bench_decision(struct bench *b, hone_err *err);
hone_status bench_step(struct bench *b, hone_err *err);
/* One decision, or one training step; i counts them. */
hone_status bench_once(struct bench *b, uint64_t i, hone_err *err);
/* Floating point operations of the products (multiply, add: 2) in one forward pass of a batch, as the network is
 * written: nothing shared between steps or prepared. */
hone_status bench_forward_flops(struct bench *b, double *flops, hone_err *err);

struct bench_timing {
    double p50, p99, min, mean; /* ms */
    int repeats;
    uint64_t allocations;        /* hone's, in all timed runs */
    int64_t process_allocations; /* of the whole process; -1: cannot be counted here */
};
/* Warms up and times bench_once. */
hone_status bench_time(struct bench *b, struct bench_timing *t, hone_err *err);

/* What this machine reaches with as many threads as the context has. */
hone_status bench_peak_flops(struct bench *b, double *gflops, hone_err *err);
hone_status bench_read_rate(struct bench *b, size_t bytes, double *gbs, hone_err *err);

/* Share of the machine, 0 to 1, that other processes use now (over 200 ms); < 0: not known. */
double bench_load(void);
void bench_cpu(char *text, size_t n);

/* Calls of the C allocator by the whole process so far; -1: not counted in this build. */
int64_t bench_allocations(void);

/* --- the profile of some runs --- */

struct bench_profile {
    hone_profile_row *rows;
    int n_rows, n_program;      /* the rows from n_program on are those of the optimiser's update */
    hone_profile_event *events; /* of the last run */
    int64_t n_events;
    int runs;
    uint64_t wall_ns; /* of all runs */
};
hone_status bench_profile_make(struct bench *b, int runs, struct bench_profile *p, hone_err *err);
void bench_profile_free(struct bench *b, struct bench_profile *p);
/* Chrome's trace format: chrome://tracing or ui.perfetto.dev open it. */
hone_status bench_profile_write(const struct bench_profile *p, const char *path, hone_err *err);
/* Tables by operation and by layer, or by call. */
void bench_profile_print(struct bench *b, const struct bench_profile *p, FILE *f);
void bench_ops_print(struct bench *b, const struct bench_profile *p, double peak, double gbs, FILE *f);

/* ms of a decision that are no products: norms, activations and residuals, normalisers, the sampler. */
hone_status bench_rest(struct bench *b, const struct bench_profile *profile, double *ms, hone_err *err);

struct bench_result {
    struct bench_timing time;
    double rest_ms; /* of a decision */
    double floor_ms, gflops, peak_gflops, read_gbs, load;
    size_t arena_bytes, peak_bytes;
    hone_plan_info plan;
    int64_t params;
    char cpu[128];
};
void bench_text(FILE *f, const char *s); /* in quotes, as JSON wants it */
void bench_json(const struct bench *b, const struct bench_result *r, FILE *f);
void bench_table(const struct bench *b, const struct bench_result *r, FILE *f);
void bench_ops_json(struct bench *b, const struct bench_profile *p, double peak, double gbs, FILE *f);

#endif
