/* What a device is: memory, and kernels by operation. One folder, one line in src/backend/devices.def.
 *
 * A kernel is prepared once, when a program is compiled, and then only run. Where a device has no kernel for a use of
 * an operation, the operation's expansion runs instead. */
#ifndef GRAPH_BACKEND_H
#define GRAPH_BACKEND_H

#include "base/ctx.h"
#include "base/err.h"
#include "op/op.h"

struct bk_dev; /* a device's own state */

/* What one run of a kernel gets. Tensors are dense and row-major; results never overlap operands, except a result
 * with the one operand that the kernel allowed (`inplace`). Results have 64-byte aligned addresses, unless they are
 * tensors of a store or views; operands need not (4-byte aligned at least). */
struct bk_io {
    struct bk_dev *dev;
    const struct op_call *call;
    const char *layer; /* the path of the layer, for messages */
    const void *const *in;
    void *const *out;
    void *scratch; /* as many bytes as `scratch` asked for */
    void *state;   /* what `prepare` made */
    int threads;
};

struct bk_kernel {
    const char *op;
    /* Whether it can do this use; NULL: every use. */
    bool (*accepts)(const struct op_call *c);
    /* Bytes of scratch memory; NULL: none. */
    size_t (*scratch)(const struct op_call *c, int threads);
    /* Bit i of inplace[k]: result k may be the same memory as operand i (which then is of the same size and not used
     * afterwards). */
    unsigned inplace[OP_MAX_OUT];
    /* Optional: what can be done once a program. `release` takes it back. Equal uses of a program share it: they run
     * one at a time. */
    hone_status (*prepare)(struct bk_dev *dev, const struct op_call *c, int threads, void **state, hone_err *err);
    void (*release)(struct bk_dev *dev, void *state);
    /* Must not allocate, print or block. */
    hone_status (*run)(const struct bk_io *io, hone_err *err);
};

struct bk_def {
    const char *name;
    const char *doc;
    struct bk_dev *(*open)(hone_ctx *ctx, hone_err *err);
    void (*close)(struct bk_dev *d);
    /* Device memory: one slab a program. NULL when there is none left. */
    void *(*alloc)(struct bk_dev *d, size_t bytes);
    void (*release)(struct bk_dev *d, void *p);
    hone_status (*upload)(struct bk_dev *d, void *dst, const void *src, size_t bytes, hone_err *err);
    hone_status (*copy)(struct bk_dev *d, void *dst, const void *src, size_t bytes, hone_err *err);
    /* Every launch so far has finished, or says why not. */
    hone_status (*sync)(struct bk_dev *d, hone_err *err);
    /* The kernel for this use; NULL: there is none. */
    const struct bk_kernel *(*find)(const struct op_call *c);
    /* Optional: what it was asked since it was opened, for a device that keeps a record. */
    const char *(*transcript)(struct bk_dev *d);
};

/* The devices that this build has, ending in NULL; defined by the backends. */
extern const struct bk_def *const bk_table[];

struct hone_device {
    hone_ctx *ctx;
    const struct bk_def *def;
    struct bk_dev *dev;
};

#endif
