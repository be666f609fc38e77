/* The device "record": results are computed by the CPU's kernels, and every request is written down as an Ascend
 * device would get it through CANN's C interface. It shows that a second device is a folder, and lets the mapping of
 * operations on CANN's operators be read and tested on any machine.
 *
 * A use of an operation is handled in the first of these ways that applies:
 *   - its results have no elements: nothing is launched;
 *   - maps.def has a mapping that accepts it: the operators are written, and the CPU's kernel computes (where it has
 *     none, the operation's reference);
 *   - the operation has an expansion: that is used, and each of its parts is asked for in turn;
 *   - the CPU's kernel computes, and the line `host <operation>` says that a real device would have to give way.
 *
 * What a transcript says. Addresses are slab<n>+<bytes>, slabs being numbered in the order of their allocation;
 * memory that the device did not allocate (stores, inputs) is `host`. An operator is a paragraph:
 *
 *     aclnnAdd: net/fc add
 *       self = ACL_FLOAT [2,3] strides [3,1] offset 0 ACL_FORMAT_ND storage [6] at slab0+64
 *       other = ...
 *       alpha = 1 ACL_FLOAT
 *       out = ...
 *       aclnnAddGetWorkspaceSize(self, other, alpha, out, &workspaceSize, &executor)
 *       aclnnAdd(workspace, workspaceSize, executor, stream)
 *
 * which is one aclCreateTensor or aclCreateScalar for each named tensor and scalar, the query of the workspace, the
 * launch (workspace: device memory of the size that the query told) and the destruction of the handles. Strides and
 * offset are in elements; the address is that of the storage, aligned to 32 bytes as aclCreateTensor wants it, and the
 * view starts at the offset. Descriptors promise no more than operators of CANN are known to take: a tensor is dense
 * and row-major, or an operand of a product of matrices with its last two dimensions swapped. */
#ifndef BACKEND_RECORD_RECORD_H
#define BACKEND_RECORD_RECORD_H

#include <pthread.h>

#include "base/text.h"
#include "graph/backend.h"

struct record_slab {
    const char *at;
    size_t bytes;
    int number;
};

/* The text is bounded: at least RECORD_ROOM bytes, and RECORD_ROOM_KERNEL more for each kernel that is prepared, up to
 * RECORD_ROOM_MOST. A paragraph that no longer fits is dropped whole, and so is all that follows; their lines are
 * counted. */
#define RECORD_ROOM        (256u << 10)
#define RECORD_ROOM_KERNEL (2u << 10)
#define RECORD_ROOM_MOST   (16u << 20)

struct bk_dev {
    hone_ctx *ctx;
    const struct bk_def *cpu; /* who computes */
    struct bk_dev *cpu_dev;
    pthread_mutex_t lock; /* of what follows: programs of one device may run in several threads */
    char *text;
    size_t cap, len;
    uint64_t dropped; /* lines */
    size_t kernels;   /* prepared so far */
    struct record_slab *slabs;
    int n_slabs, cap_slabs, made_slabs;
};

/* Appends whole lines, or counts them. */
void record_write(struct bk_dev *d, const char *lines);
/* "slab0+64" or "host". */
char *record_place(struct bk_dev *d, const void *p, char *buf, size_t n);

/* --- writing one use of a kernel --- */

/* What a descriptor says. */
struct record_view {
    hone_dtype dtype;
    hone_shape shape;
    int64_t stride[HONE_MAX_RANK]; /* elements */
    const char *format;
    const void *at;
};

struct record_use {
    const struct bk_io *io;
    const struct op_call *call;
    struct text t;
    char name[48];   /* of the operator being written */
    char args[1024]; /* the names of its arguments so far */
    struct text list;
    const char *temp; /* what is left of the memory that the mapping's `temp` asked for */
    char buf[16 << 10];
};

/* Operand k, result k: dense, ACL_FORMAT_ND; a scalar is [1] where the operator wants a dimension (record_ranked). */
struct record_view record_in(const struct record_use *u, int k);
struct record_view record_out(const struct record_use *u, int k);
/* A dense view of memory. */
struct record_view record_dense(hone_dtype t, hone_shape s, const void *at);
struct record_view record_ranked(struct record_view v);
/* The same elements in another shape; v is dense. */
struct record_view record_shaped(struct record_view v, hone_shape s);
const char *record_type(hone_dtype t); /* "ACL_FLOAT" */
/* The last two dimensions exchanged, by strides. */
struct record_view record_swapped(struct record_view v);
struct record_view record_ncl(struct record_view v);

/* Memory between operators, from what `temp` asked for: the bytes of each, and the next one. */
size_t record_temp_bytes(hone_dtype t, hone_shape s);
struct record_view record_temp(struct record_use *u, hone_dtype t, hone_shape s);
/* aclnnInplaceCopy: whatever to whatever, broadcasting. */
void record_copy(struct record_use *u, struct record_view to, struct record_view from);
/* Brings operand k, one f32, to the host, as for an operator that takes a number there; the value. After the last of
 * them, record_wait. */
float record_fetch(struct record_use *u, int k);
void record_wait(struct record_use *u);
/* The line of a use that needs no operator. */
void record_nothing(struct record_use *u);

/* An operator: open, its arguments in the order of the prototype, close. `name` without "aclnn". */
void record_open(struct record_use *u, const char *name);
void record_tensor(struct record_use *u, const char *arg, struct record_view v);
void record_tensors(struct record_use *u, const char *arg, int n, const struct record_view *v); /* an aclTensorList */
void record_none(struct record_use *u, const char *arg);                                        /* an optional one */
void record_scalar(struct record_use *u, const char *arg, double v);                            /* ACL_FLOAT */
void record_int(struct record_use *u, const char *arg, int64_t v);
void record_f64(struct record_use *u, const char *arg, double v);
void record_bool(struct record_use *u, const char *arg, bool v);
void record_word(struct record_use *u, const char *arg, const char *v); /* a string or the name of an enum's value */
void record_ints(struct record_use *u, const char *arg, int n, const int64_t *v);
void record_bools(struct record_use *u, const char *arg, int n, const bool *v);
void record_close(struct record_use *u);

/* --- mappings --- */

struct record_map {
    /* .op is the operation; .accepts what the operators take (NULL: every use); .inplace no more than the CPU's kernel
     * allows. The rest is filled in by RECORD_MAP. */
    struct bk_kernel kernel;
    void (*write)(struct record_use *u);
    size_t (*temp)(const struct op_call *c); /* bytes of memory that the operators pass results in; NULL: none */
};

/* const struct record_map record_<op>; the last argument: further members of the kernel, such as .inplace. */
#define RECORD_MAP_WITH(name, accepts_, write_, temp_, ...)                                                            \
    const struct record_map record_##name = {{.op = #name,                                                             \
                                              .accepts = accepts_,                                                     \
                                              .scratch = record_scratch,                                               \
                                              .prepare = record_prepare,                                               \
                                              .release = record_release,                                               \
                                              .run = record_run,                                                       \
                                              __VA_ARGS__},                                                            \
                                             write_,                                                                   \
                                             temp_}
#define RECORD_MAP(name, accepts, write)            RECORD_MAP_WITH(name, accepts, write, NULL, .inplace = {0})
#define RECORD_MAP_TEMP(name, accepts, write, temp) RECORD_MAP_WITH(name, accepts, write, temp, .inplace = {0})

size_t record_scratch(const struct op_call *c, int threads);
hone_status record_prepare(struct bk_dev *d, const struct op_call *c, int threads, void **state, hone_err *err);
void record_release(struct bk_dev *d, void *state);
hone_status record_run(const struct bk_io *io, hone_err *err);

/* reference.c: memory that it needs; the results. */
size_t record_reference_bytes(const struct op_call *c);
void record_reference_run(const struct bk_io *io, void *memory);

/* The mapping of this use; NULL: there is none. */
const struct record_map *record_map_of(const struct op_call *c);

/* What many `accepts` ask: no operand and no result without elements. */
bool record_full(const struct op_call *c);
/* The dimensions that the set bits of `axes` name; how many. */
int record_axes(int64_t axes, int rank, int64_t dims[HONE_MAX_RANK]);

#define MAP(name) extern const struct record_map record_##name;
#include "backend/record/maps.def"
#undef MAP

#endif
