/* The only place that asks for memory: counted, zeroed, 64-byte aligned, and able to fail on purpose. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdatomic.h>

#include "hone/base.h"

#define MEM_ALIGN 64

struct mem {
    hone_allocator a;
    atomic_uint_fast64_t calls;
    atomic_size_t live, peak;
    atomic_size_t planned; /* bytes reserved by stores and programs */
    size_t budget;         /* what `planned` may reach */
};

void mem_init(struct mem *m, const hone_allocator *a, size_t budget); /* Nullable: a */

/* n bytes of zeros, aligned to MEM_ALIGN; NULL when there is none (n == 0 gives a valid pointer). */
void *mem_alloc(struct mem *m, size_t n);
/* count elements of size bytes each; NULL also when the product overflows. */
void *mem_array(struct mem *m, size_t count, size_t size);
/* A larger copy of `p` (NULL: as mem_alloc), the new part zero; on failure NULL, and `p` stays valid. */
void *mem_grow(struct mem *m, void *p, size_t old_n, size_t new_n);
void mem_free(struct mem *m, void *p); /* Nullable: p */

/* Reserve n planned bytes out of the budget; refused with HONE_E_NOMEM and both figures in the text.
 * `advice` (nullable) is appended to it. */
hone_status mem_reserve(struct mem *m, size_t n, const char *where, const char *advice, hone_err *err);
void mem_unreserve(struct mem *m, size_t n);

/* An arena: small objects of one lifetime, freed together. Grows by blocks. */
struct arena {
    struct mem *m;
    struct arena_block *head;
    size_t used, high; /* bytes handed out now, and the most ever */
};

void arena_init(struct arena *a, struct mem *m);
void *arena_alloc(struct arena *a, size_t n); /* zeros, 16-byte aligned; NULL when there is no memory */
char *arena_text(struct arena *a, const char *s);
void arena_finish(struct arena *a);

#endif
