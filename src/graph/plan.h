/* The plan of a program: in what order things are done, and where every value lies. */
#ifndef GRAPH_PLAN_H
#define GRAPH_PLAN_H

#include "graph/backend.h"
#include "graph/ir.h"

/* Where a value lies: base 0 is the program's slab, base 1 + r the store bound to role r. */
struct plan_place {
    int32_t base;
    size_t at;  /* bytes */
    size_t row; /* in the body of a chain, the step's row is `row` bytes further each step */
};

enum plan_kind { PLAN_RUN, PLAN_COPY, PLAN_LOOP, PLAN_END };

struct plan_step {
    enum plan_kind kind;
    int32_t node;  /* PLAN_RUN */
    int32_t steps; /* PLAN_LOOP: how often; PLAN_END: where its PLAN_LOOP stands */
    const struct bk_kernel *kernel;
    int32_t like;                /* PLAN_RUN: the first step of the same descriptor, perhaps this one */
    void *state;                 /* of the kernel; that of `like` */
    struct plan_place *in, *out; /* PLAN_COPY: one each */
    int32_t n_in, n_out;
    size_t bytes;   /* PLAN_COPY */
    size_t scratch; /* place in the slab */
    size_t scratch_bytes;
    int32_t from, to; /* PLAN_COPY: values, for messages; to -1 where it is a store */
};

struct plan_buffer {
    size_t size, at;
    int32_t first, last; /* steps during which it is in use; -1: from before the first step */
};

struct plan {
    hone_graph *g; /* lowered; not owned */
    struct arena arena;
    const hone_device *device;
    int threads;
    bool no_inplace, no_prepare;
    size_t guard; /* bytes kept free behind every buffer; 0 unless debugging */

    struct plan_step *steps; /* [0, n_prepare) is the prepare segment */
    int32_t n_steps, cap_steps, n_prepare;
    struct plan_place *place;  /* of each value */
    struct plan_place *output; /* of each output */
    struct plan_buffer *buffers;
    int32_t n_buffers, cap_buffers;
    size_t asked; /* sum of what buffers need, shared or not */
    size_t slab, transient, live_peak, prepared, constants, scratch;
    bool *role_written;  /* of each role */
    bool writes_groups;  /* some role, as whole groups */
    bool *role_prepared; /* the prepare segment reads it */

    /* while planning */
    int32_t *root;   /* of each value: the value whose bytes it shows */
    int32_t *buffer; /* of each root: its buffer, or -1 */
    int32_t *made;   /* of each root: the step that makes it; -1: from the start */
    int32_t *used;   /* of each root: the last step that reads it; n_steps: kept for ever */
    uint8_t *early;  /* of each node: belongs to the prepare segment */
    int32_t *dep;    /* of each node: the chain on whose step it depends, or 0 */
};

/* Fills *p. What it allocates is freed by plan_finish, also after a failure. */
hone_status plan_make(struct plan *p, hone_graph *g, const hone_device *d, const hone_compile_options *o,
                      hone_err *err);
void plan_finish(struct plan *p);

/* Gives each buffer its place so that buffers in use at one time do not overlap; the result's size and the most that
 * is alive at once. */
hone_status plan_offsets(struct mem *m, struct plan_buffer *b, int n, size_t *size, size_t *live, hone_err *err);

#endif
