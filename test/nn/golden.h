/* A network of test/golden with its fixtures: what PyTorch computed in double. dev/fixtures/README.md describes them.
 */
#ifndef TEST_NN_GOLDEN_H
#define TEST_NN_GOLDEN_H

#include "check.h"
#include "hone/io.h"
#include "hone/nn.h"

struct golden {
    hone_ctx *ctx;
    hone_device *cpu;
    hone_err err;
    hone_tensors *file;
    const hone_net *net;
    union {
        max_align_t align;
        char bytes[HONE_NET_CONFIG_MAX];
    } config; /* from the metadata of the file */
    hone_layout *layout;
    hone_store *param; /* as in the file */
    float *x, *cond, *target;
    int32_t *t;
    hone_shape s, s_cond; /* [B, T, A] and [B, C] */
};

/* Opens test/golden/<name>.safetensors; false, a failed check, and g closed, if anything is wrong. The context has one
 * thread, so that tests are quick on a busy machine; or as many as are said. */
bool golden_open(struct golden *g, struct check *c, const char *name);
bool golden_open_threads(struct golden *g, struct check *c, const char *name, int threads);
/* Closes and checks that nothing leaked. */
void golden_close(struct golden *g, struct check *c);

/* The values of a tensor of the file as doubles, *n of them; freed by the caller. NULL, and a failed check. */
double *golden_values(struct golden *g, struct check *c, const char *name, int64_t *n);
/* Largest |got - wanted| / largest |wanted|, where what is wanted is a tensor of the file of n elements. Checks that it
 * is at most `tol`. */
double golden_compare(struct golden *g, struct check *c, const char *name, const float *got, int64_t n, double tol);

/* A graph with inputs "x", "t" (i32), "cond", "target", output "y" of the network and "loss", the mean of squares. */
struct golden_graph {
    hone_graph *g;
    hone_t x, t, cond, y, loss;
};
struct golden_graph golden_build(struct golden *g, const hone_nn *nn);
/* A context of the golden layout, its graph new. */
hone_nn golden_nn(struct golden *g);
/* The inputs above in the order of the program. `in` has four places. */
void golden_inputs(const struct golden *g, const hone_program *p, const void **in);
/* Compiles, destroys the graph, and runs once over `stores`; NULL and a failed check if that fails. Owns: the result.
 */
hone_program *golden_run(struct golden *g, struct check *c, hone_graph *graph, const hone_compile_options *o,
                         hone_store *const *stores);
/* An output of a program that has run. */
const float *golden_result(const hone_program *p, const char *name);

#endif
