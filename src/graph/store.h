/* Layouts and stores, as programs see them. */
#ifndef GRAPH_STORE_H
#define GRAPH_STORE_H

#include <stdatomic.h>

#include "base/ctx.h"
#include "hone/graph.h"

struct layout_range {
    int64_t at, length; /* floats */
};

/* Both fix the layout. */
struct layout_range layout_group(hone_layout *l, int group);
struct layout_range layout_tensor(hone_layout *l, int index); /* without padding */
int64_t layout_floats(hone_layout *l);                        /* of a whole slab */

struct hone_store {
    hone_ctx *ctx;
    hone_layout *layout;
    float *slab;
    uint64_t id;              /* of this store among all of its context, never used again */
    _Atomic uint64_t version; /* rises with every change */
    atomic_int lease;         /* 0: free; n > 0: read by n programs; -1: written by one */
};

/* Sets the padding between the tensors of a group to zero, whatever was written there. */
void store_clear_padding(hone_store *s, int group);

/* Take or give back the right to read or write; false: somebody else has it. */
bool store_lease(hone_store *s, bool write);
void store_release(hone_store *s, bool write);

#endif
