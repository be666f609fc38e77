/* hone/graph.h: building graphs, the stores they read and write, and the programs they compile to.
 *
 * A graph is a list of operations on values. Handles (hone_t) are small structs passed by value; they carry their
 * graph, so operations take operands only. Shape errors are found while building: the first one stays in the graph,
 * later operations on a poisoned value do nothing, and hone_compile reports it, naming the layer and the shapes.
 *
 * A program is a compiled graph: its memory is planned, its kernels are chosen, and running it allocates nothing.
 * Parameters live outside, in stores that are bound when a program runs. */
#ifndef HONE_GRAPH_H
#define HONE_GRAPH_H

#include "hone/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_graph hone_graph;

/* A value of a graph. `g == NULL` means no value (an optional operand left out). */
typedef struct hone_t {
    hone_graph *g;
    int32_t id; /* < 0: poisoned by an earlier error */
} hone_t;

#define HONE_NONE ((hone_t){NULL, 0})

/* ------------------------------------------------------------------ layouts and stores */

/* A layout names the tensors of a set of parameters; stores with one layout are interchangeable (values, gradients,
 * moments, averages). Tensors are ordered by group, then by the order in which they were added, each aligned to 64
 * bytes; a group is thus one contiguous range of floats. */
typedef struct hone_layout hone_layout;

/* How a fresh parameter is drawn. */
typedef enum hone_init_kind {
    HONE_INIT_ZERO,
    HONE_INIT_ONE,
    HONE_INIT_UNIFORM, /* in [-scale, scale] */
    HONE_INIT_NORMAL   /* standard deviation scale */
} hone_init_kind;

typedef struct hone_init {
    hone_init_kind kind;
    float scale;
} hone_init;

enum { HONE_GROUP_DECAY, HONE_GROUP_PLAIN, HONE_GROUP_FROZEN, HONE_GROUPS }; /* weights; biases and norms; fixed */

HONE_API hone_layout *hone_layout_create(hone_ctx *ctx, hone_err *err);
HONE_API void hone_layout_destroy(hone_layout *l); /* after the graphs and stores that use it */

/* Adds tensor `name` ("unet/down0/block0/conv/weight"), or finds it: adding a name again with the same shape is how
 * a second graph shares parameters. Returns its index, or -1 (another shape; or the layout is fixed, because a store
 * or a compiled program uses it, and the name is new: then the nearest name is told). */
HONE_API int hone_layout_add(hone_layout *l, const char *name, hone_shape shape, int group, hone_init init,
                             hone_err *err);
HONE_API int hone_layout_count(const hone_layout *l);
HONE_API int hone_layout_find(const hone_layout *l, const char *name); /* -1: no such tensor */
HONE_API const char *hone_layout_name(const hone_layout *l, int index);
HONE_API hone_shape hone_layout_shape(const hone_layout *l, int index);
HONE_API int64_t hone_layout_parameters(const hone_layout *l); /* elements of all tensors, padding apart */

/* A flat slab of f32 with a layout. A program that writes it has it alone; programs that read it may share it. A run
 * that would break this is refused with HONE_E_BUSY. */
typedef struct hone_store hone_store;

/* All zero. Fixes the layout. Owns: the result. */
HONE_API hone_store *hone_store_create(hone_ctx *ctx, hone_layout *l, hone_err *err);
/* After the runs that use it. The calls below give HONE_E_BUSY while a program is using the store; hone_store_get does
 * not look. */
HONE_API void hone_store_destroy(hone_store *s);
/* Draws every tensor as its layout says, from (seed, name): the order of tensors does not matter. */
HONE_API hone_status hone_store_init(hone_store *s, uint64_t seed, hone_err *err);
HONE_API const hone_layout *hone_store_layout(const hone_store *s);
HONE_API const float *hone_store_get(const hone_store *s, int index); /* borrowed, valid with the store */
/* Copies `n` floats in, n being the tensor's element count. */
HONE_API hone_status hone_store_set(hone_store *s, int index, const float *values, int64_t n, hone_err *err);
HONE_API hone_status hone_store_copy(hone_store *to, const hone_store *from, hone_err *err);
HONE_API hone_status hone_store_zero(hone_store *s, hone_err *err);

/* ------------------------------------------------------------------ graphs */

/* Owns: the result. Thread: one thread builds a graph at a time. */
HONE_API hone_graph *hone_graph_create(hone_ctx *ctx, hone_err *err);
HONE_API void hone_graph_destroy(hone_graph *g);
/* The first error of building, copied to `err`; HONE_OK if there was none. */
HONE_API hone_status hone_graph_status(const hone_graph *g, hone_err *err);

/* Layers name themselves: what is built between push and pop belongs to "outer/inner". */
HONE_API void hone_scope_push(hone_graph *g, const char *fmt, ...) HONE_PRINTF(2, 3);
HONE_API void hone_scope_pop(hone_graph *g);
HONE_API const char *hone_scope(const hone_graph *g); /* the whole path now */

HONE_API hone_type hone_type_of(hone_t x); /* rank -1 for none or poison */

/* Sources. An input is given at each run and copied then. */
HONE_API hone_t hone_input(hone_graph *g, const char *name, hone_dtype dtype, hone_shape shape);
/* An i32 input of indices: a run whose values are not in [0, below) is refused, naming the place. */
HONE_API hone_t hone_input_index(hone_graph *g, const char *name, hone_shape shape, int32_t below);
HONE_API hone_t hone_const(hone_graph *g, hone_dtype dtype, hone_shape shape, const void *data); /* data is copied */
HONE_API hone_t hone_const_f32(hone_graph *g, float value);                                      /* one element */
HONE_API hone_t hone_full(hone_graph *g, hone_shape shape, float value); /* every element the same */

/* Random buffers: filled at each run from (seed, stream name, run number, element), the same on every CPU. */
HONE_API hone_t hone_random_normal(hone_graph *g, const char *stream, hone_shape shape);
HONE_API hone_t hone_random_uniform(hone_graph *g, const char *stream, hone_shape shape); /* in [0, 1) */
HONE_API hone_t hone_random_index(hone_graph *g, const char *stream, hone_shape shape, int32_t below);

/* Stores. A role is a name ("param", "grad", "average") for a store that is bound when the program runs. A program
 * sees each tensor as it was when the run began, and may write each once. */
HONE_API hone_t hone_read(hone_graph *g, const char *role, hone_layout *l, int index);
HONE_API void hone_write(hone_t x, const char *role, hone_layout *l, int index);
HONE_API void hone_accumulate(hone_t x, const char *role, hone_layout *l, int index); /* += x */
/* A whole group as one flat vector, its alignment padding (always zero) included; [0] if the group is empty. */
HONE_API hone_t hone_read_group(hone_graph *g, const char *role, hone_layout *l, int group);
HONE_API void hone_write_group(hone_t x, const char *role, hone_layout *l, int group);

/* What a run gives back under `name`. */
HONE_API void hone_output(hone_t x, const char *name);

/* A chain: x <- body(x, row of each table) for `steps` steps; the body of a sampler.
 * Tables have shape [steps, ...] and the body gets row i as [...].
 * Repeated (the default), the body is compiled once and runs `steps` times; what in it does not depend on x or a
 * row is done once, before. Its body may hold neither random buffers nor writes to stores nor another repeated chain,
 * and gives its values out by returning them. Unrolled, it is built `steps` times; only then can a gradient go through
 * it. */
typedef hone_t (*hone_chain_fn)(void *user, hone_t x, const hone_t *rows);
typedef struct hone_chain_options {
    int steps;
    const hone_t *tables;
    int n_tables; /* at most HONE_CHAIN_TABLES */
    bool unroll;
    int grad_last; /* unrolled: gradient through the last n steps only; 0: through all */
    int segment;   /* unrolled: the gradient is cut between segments of this many steps; 0: never */
} hone_chain_options;
#define HONE_CHAIN_TABLES 8
HONE_API hone_t hone_chain(hone_t x0, const hone_chain_options *o, hone_chain_fn body, void *user);

/* Gradients: dx[i] = d(loss)/d(x[i]), loss having one element. Built as operations, so they can be differentiated
 * again. A value on which the loss does not depend gets zeros. A repeated chain between them is refused. */
HONE_API void hone_gradients(hone_t loss, const hone_t *x, int n, hone_t *dx);

/* ------------------------------------------------------------------ programs */

typedef struct hone_device hone_device;

/* "cpu" (kernels, oneDNN), or "record" (runs on the CPU and writes what a device would be asked).
 * The cpu's kernels share the context's threads, which look for work for a tenth of a millisecond and sleep then;
 * oneDNN uses OpenMP for what is left to it. Set OMP_WAIT_POLICY=passive in the environment before the program starts:
 * a team that spins while it waits takes the cores from everything else (the program hone does). */
HONE_API hone_device *hone_device_open(hone_ctx *ctx, const char *name, hone_err *err);
HONE_API void hone_device_close(hone_device *d); /* after its programs */

/* What a device that keeps a record ("record") was asked since it was opened: lines of text for memory, copies,
 * operators with their descriptors, and waiting, in order. Its size is bounded; where it was full, the last line counts
 * the lines that are missing. NULL for other devices. Borrowed: valid until the device is used again; not while a
 * program of it runs. src/backend/record/record.h says how to read it. */
HONE_API const char *hone_device_transcript(const hone_device *d);

typedef struct hone_program hone_program;

typedef struct hone_compile_options {
    const char *name;  /* for messages and reports; nullable */
    bool debug;        /* one operation at a time, each checked against its double reference, guard bytes checked,
                          execution put off until hone_wait; slow */
    bool no_prepare;   /* do not keep what depends on parameters alone between runs */
    bool no_inplace;   /* every value its own bytes; for tests */
    bool expand;       /* use expansions even where a kernel exists; for tests */
    bool bf16_weights; /* weights that fusion packs for decisions are kept as bf16, rounded to nearest: half the bytes
                          to read; arithmetic stays f32 */
    bool plain;        /* without the passes that make it faster; for tests */
} hone_compile_options;

/* Plans and prepares everything that a run needs. Refused with HONE_E_NOMEM and advice when the plan exceeds the
 * memory budget of the context. The graph may be destroyed afterwards. Owns: the result.
 * Thread: a program is run by one thread at a time; two programs may run in two threads. */
HONE_API hone_program *hone_compile(hone_device *d, hone_graph *g, const hone_compile_options *o, hone_err *err);
HONE_API void hone_program_destroy(hone_program *p);

HONE_API int hone_program_inputs(const hone_program *p); /* inputs are numbered in the order of their making */
HONE_API int hone_program_outputs(const hone_program *p);
HONE_API int hone_program_roles(const hone_program *p);
HONE_API int hone_program_input(const hone_program *p, const char *name);  /* index; -1: no such input */
HONE_API int hone_program_output(const hone_program *p, const char *name); /* index; -1 */
HONE_API int hone_program_role(const hone_program *p, const char *name);   /* index; -1 */
HONE_API const char *hone_program_input_name(const hone_program *p, int index);
HONE_API const char *hone_program_output_name(const hone_program *p, int index);
HONE_API const char *hone_program_role_name(const hone_program *p, int index);
HONE_API hone_type hone_program_input_type(const hone_program *p, int index);
HONE_API hone_type hone_program_output_type(const hone_program *p, int index);

typedef struct hone_run_args {
    const void *const *inputs; /* one pointer an input, each to the whole tensor; copied before hone_run returns */
    hone_store *const *stores; /* one a role */
    uint64_t seed, run;        /* what random buffers are drawn from */
} hone_run_args;

/* Submits a run; it may return early. Until hone_wait, another hone_run is refused and outputs are not valid.
 * Allocates nothing. A failure (indices out of range, a store in use, a non-finite value in debug) may be told by
 * either call; after it the program can run again. Stores written by a run that failed while executing are
 * unspecified. */
HONE_API hone_status hone_run(hone_program *p, const hone_run_args *args, hone_err *err);
HONE_API hone_status hone_wait(hone_program *p, hone_err *err);
/* The output's bytes, valid until the next run; NULL before hone_wait. */
HONE_API const void *hone_result(const hone_program *p, int index);

typedef struct hone_plan_info {
    size_t bytes;     /* of the program's one slab: transient, prepared, constants, inputs */
    size_t transient; /* the part planned by lifetimes */
    size_t live_peak; /* the most bytes of that part that are alive at once: what no plan can undercut */
    size_t prepared;  /* kept between runs: what depends on parameters alone */
    size_t constants;
    size_t scratch; /* the largest need of one kernel */
    int operations; /* launches of one run, loops counted once */
    int prepare_operations;
    double flops, moved_bytes; /* of one run, loops counted in full */
} hone_plan_info;

HONE_API hone_plan_info hone_program_plan(const hone_program *p);
/* How often the prepare segment has run. */
HONE_API uint64_t hone_program_prepares(const hone_program *p);

/* ------------------------------------------------------------------ where the time goes */

/* One launch of a program: what it is, and what was measured since the profile was turned on. */
typedef struct hone_profile_row {
    const char *op;      /* the operation; "copy" for a move of bytes */
    const char *layer;   /* path of the layer that asked for it; "" outside of all */
    const char *call;    /* operand types and attributes: "f32[2,64,16] f32[64,64,5] padding=2" */
    bool prepare;        /* done once for a set of parameters, not in each run */
    int64_t per_run;     /* calls in one run: the steps of its chain, or 1 */
    uint64_t calls;      /* measured, */
    uint64_t ns, min_ns; /* the time of all of them, and of the shortest */
    double flops, bytes; /* of one call: what it computes, and what must move at the least */
    double fixed_bytes; /* the part of `bytes` that is the same in each run: parameters, constants, what was prepared */
} hone_profile_row;

/* One call of the last run. */
typedef struct hone_profile_event {
    int row;
    uint64_t begin_ns, ns; /* since the first call of that run began; how long it took */
} hone_profile_event;

/* Turns timing on, with all counters at zero, or off, which forgets the rows. Each call is timed alone: a device that
 * runs behind is waited for after each. Allocates here, never in a run; off, a run pays one branch a call. Errors:
 * HONE_E_STATE while a run is under way; HONE_E_NOMEM (timing is then off). Thread: that of the program. */
HONE_API hone_status hone_program_profile(hone_program *p, bool on, hone_err *err);
/* Rows are in the order of execution; 0 while timing is off. Text is borrowed, valid until timing is turned off or on.
 */
HONE_API int hone_program_profile_rows(const hone_program *p);
HONE_API hone_profile_row hone_program_profile_row(const hone_program *p, int index);
/* Calls of the last run, in order. */
HONE_API int64_t hone_program_profile_events(const hone_program *p);
HONE_API hone_profile_event hone_program_profile_event(const hone_program *p, int64_t index);

#ifdef __cplusplus
}
#endif
#endif
