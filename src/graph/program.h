/* The inside of a program. */
#ifndef GRAPH_PROGRAM_H
#define GRAPH_PROGRAM_H

#include "graph/plan.h"
#include "graph/store.h"

struct hone_program {
    hone_device *device;
    hone_graph *g; /* lowered; its operations carry attributes and names while the program lives */
    struct plan plan;
    const char *name;
    bool debug;
    char *slab;
    size_t reserved;
    size_t slab_bytes;
    char **base;                      /* [0] the slab, [1 + r] the store of role r, while a run lasts */
    hone_store **store;               /* of the run */
    uint64_t *seen_id, *seen_version; /* of the store that each role was prepared from */
    bool prepared;
    bool running;  /* submitted, not executed */
    bool finished; /* executed, hone_wait not yet called */
    bool done;     /* results may be read */
    uint64_t prepares;
    struct program_debug *check; /* debug only */
    struct profile *profile;     /* NULL: calls are not timed */
};

/* Gives the stores of a run back; those that were written get a new version. */
void program_release(struct hone_program *p);

/* Executes the steps [from, to); the base pointers are set. */
hone_status program_steps(struct hone_program *p, int32_t from, int32_t to, hone_err *err);

/* Where a place is now, in step `it` of the chain. */
static inline void *program_at(const struct hone_program *p, const struct plan_place *x, int32_t it)
{
    return p->base[x->base] + x->at + (size_t)it * x->row;
}

/* --- debug.c: every step checked --- */
hone_status debug_create(struct hone_program *p, hone_err *err);
void debug_destroy(struct hone_program *p);
/* Before the first step: paints what no value lies in, and spoils outputs. */
void debug_begin(struct hone_program *p);
/* Before and after step s ran, in step `it` of the chain. */
hone_status debug_before(struct hone_program *p, const struct plan_step *s, int32_t it, hone_err *err);
hone_status debug_after(struct hone_program *p, const struct plan_step *s, int32_t it, hone_err *err);

/* --- profile.c: every call timed --- */
void profile_begin(struct hone_program *p); /* of a run */
/* Step s was begun at `begin`, a time of clock_ns, and is done. */
void profile_note(struct hone_program *p, const struct plan_step *s, uint64_t begin);
void profile_destroy(struct hone_program *p);
/* Bytes from the start of the slab to the end of the last one that a run reads or writes. */
size_t profile_extent(const struct hone_program *p);

#endif
