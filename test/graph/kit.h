/* What the tests of graphs and programs share. */
#ifndef TEST_GRAPH_KIT_H
#define TEST_GRAPH_KIT_H

#include "check.h"
#include "graph/ir.h"
#include "graph/program.h"

struct kit {
    hone_ctx *ctx;
    hone_device *cpu;
    hone_err err;
};

void kit_open(struct kit *k, const hone_ctx_options *o);
/* Closes and checks that nothing leaked. */
void kit_close(struct kit *k, struct check *c);
/* A shallow net with its gradient: sum((silu(x w0 + b0) w1 - y)^2), parameters accumulated into role "grad". */
hone_graph *kit_net(struct kit *k, hone_layout *l, int batch, int width, bool gradient);
/* Runs and waits; false and k->err on failure. */
bool kit_run(struct kit *k, hone_program *p, const void *const *in, hone_store *const *stores, uint64_t run);

/* An allocator that fails the n-th call (from 1); 0: never. */
struct failing {
    long countdown, calls, live;
};
hone_allocator kit_failing(struct failing *f);

#endif
