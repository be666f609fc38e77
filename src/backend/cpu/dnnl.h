/* One primitive of oneDNN: a product or a convolution of plain f32 tensors. Made once a program, then only run.
 * Versions 2.6 and 3.x; only in builds with HONE_DNNL.
 *
 * Threads: a primitive divides its work when it is made, so it is made and run under the same number of threads. oneDNN
 * asks OpenMP for that number, and OpenMP keeps it for each calling thread apart (omp_set_num_threads); it is set
 * around each call and put back after, so two programs in two threads may have different numbers and the caller's own
 * OpenMP code sees nothing. A oneDNN built on something else than OpenMP keeps its own counsel. */
#ifndef BACKEND_CPU_DNNL_H
#define BACKEND_CPU_DNNL_H

#include "graph/backend.h"

enum cpu_dnnl_kind { CPU_DNNL_MATMUL, CPU_DNNL_CONV, CPU_DNNL_DATA_GRAD, CPU_DNNL_WEIGHT_GRAD };

/* The tensors, by their part in the forward operation: a data gradient gives X, a weight gradient W. */
enum { CPU_DNNL_X, CPU_DNNL_W, CPU_DNNL_B, CPU_DNNL_Y, CPU_DNNL_TENSORS };

struct cpu_dnnl_tensor {
    hone_shape shape; /* rank 0: there is none */
    int64_t stride[HONE_MAX_RANK];
    bool free; /* oneDNN may choose another layout for it: then it is reordered in scratch memory at each run */
};

struct cpu_dnnl_spec {
    enum cpu_dnnl_kind kind;
    struct cpu_dnnl_tensor t[CPU_DNNL_TENSORS];
    int64_t stride, dilation, padding; /* of a convolution */
    bool add;                          /* of a product: it is added to what the result holds; without bias */
};

/* Row-major strides for `shape`. */
struct cpu_dnnl_tensor cpu_dnnl_plain(hone_shape shape, bool free);

/* One run, by any thread; `threads` as it was made for. Returns 0 or what cpu_dnnl_tell makes a message of. A state is
 * run by one thread at a time. */
int cpu_dnnl_execute(void *state, const void *const t[CPU_DNNL_TENSORS], void *scratch, int threads);
hone_status cpu_dnnl_tell(int status, const char *where, const char *what, hone_err *err);

/* 20603 for 2.6.3. */
int cpu_dnnl_version(void);

/* The engine that primitives of one device share; used by any thread. */
void *cpu_dnnl_open(hone_err *err);
void cpu_dnnl_close(void *engine);

/* Bytes that a run needs; more than any budget where oneDNN cannot say. */
size_t cpu_dnnl_scratch(const struct cpu_dnnl_spec *s, int threads);
/* For prepare, release and run of a kernel. Owns: *state. */
hone_status cpu_dnnl_create(struct bk_dev *dev, const char *op, const struct cpu_dnnl_spec *s, int threads,
                            void **state, hone_err *err);
void cpu_dnnl_release(struct bk_dev *dev, void *state);
/* t: one pointer a tensor, that of the result not const in fact. */
hone_status cpu_dnnl_run(const struct bk_io *io, const void *const t[CPU_DNNL_TENSORS], hone_err *err);

#endif
