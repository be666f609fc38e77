/* What the files of the room share. */
#ifndef NN_NN_H
#define NN_NN_H

#include "hone/nn.h"

/* Sets the first error of the graph, at the open scope; returns poison. */
hone_t nn_refuse(hone_graph *g, hone_status code, const char *fmt, ...) HONE_PRINTF(3, 4);

/* Opens the scope of a layer; NULL: leaves the open one. Each has its nn_close, with the same name. */
void nn_open(const hone_nn *nn, const char *name);
void nn_close(const hone_nn *nn, const char *name);

/* Whether x has at least `rank` dimensions; if not, and it is no poison, the graph gets an error that says what `what`
 * must be. */
bool nn_rank(const hone_nn *nn, hone_t x, int rank, const char *what);
/* Dimension i of x, from the end where i is negative; 0 where there is none. */
int64_t nn_dim(hone_t x, int i);

/* The parameters `weight`, uniform on ±1/√fan_in, and `bias` of the open scope. */
hone_t nn_weight(const hone_nn *nn, hone_shape shape, int64_t fan_in);
hone_t nn_bias(const hone_nn *nn, int64_t n, int64_t fan_in, bool wanted); /* not wanted: HONE_NONE */

/* A dense layer, its weight as told, its bias 0. */
hone_t nn_dense(const hone_nn *nn, const char *name, hone_t x, int64_t out, hone_init weight);

/* Names of activations, up to a NULL, for field tables. */
extern const char *const nn_activations[];

/* --- networks --- */

/* Row of the table. The size of a config is checked where it is made. */
#define NN_NET(config) _Static_assert(sizeof(config) <= HONE_NET_CONFIG_MAX, "a config outgrew HONE_NET_CONFIG_MAX")
extern const hone_net nn_mlp, nn_unet, nn_dit;

/* The operands of a network fit its config (0: anything), and each other. */
struct nn_sizes {
    int64_t horizon, actions, cond;
};
bool nn_sizes_fit(const hone_nn *nn, const struct nn_sizes *want, hone_t x, hone_t t, hone_t cond);
/* What a network gives for each action of x. */
int64_t nn_outputs(int64_t outputs, hone_t x);
/* Layer "time" on t, [B] or one number, as [B, dim]. */
hone_t nn_time_of(const hone_nn *nn, hone_t t, int64_t batch, int64_t dim, int64_t hidden, int activation);

#endif
