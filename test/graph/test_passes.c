/* Passes change how a graph is worked out, never what comes out: graphs near to the patterns that passes look for, each
 * compiled with and without them. */
#include <math.h>
#include <stdio.h>

#include "graph/kit.h"
#include "hone/random.h"
#include "op/time_conv.h"

static hone_t drawn(hone_graph *g, const char *name, hone_shape s)
{
    float x[2048];
    hone_fill_normal(x, (size_t)hone_numel(&s), 11, hone_stream(name), 0, 0);
    return hone_const(g, HONE_F32, s, x);
}

static hone_t input(hone_graph *g, const char *name, hone_shape s)
{
    return hone_input(g, name, HONE_F32, s);
}

/* --- convolution blocks: x [B,6,8] -> [B,8,8] --- */

static hone_t conv(hone_t x, const char *name, int64_t stride, int64_t padding, int64_t dilation)
{
    char full[2][32];
    snprintf(full[0], sizeof full[0], "%s/w", name);
    snprintf(full[1], sizeof full[1], "%s/b", name);
    hone_t w = drawn(x.g, full[0], HONE_SHAPE(8, hone_type_of(x).shape.dim[1], 3));
    return hone_conv1d(x, w, drawn(x.g, full[1], HONE_SHAPE(8)), stride, padding, dilation);
}

static hone_t norm(hone_t x, int64_t groups)
{
    return hone_group_norm(x, drawn(x.g, "gamma", HONE_SHAPE(8)), drawn(x.g, "beta", HONE_SHAPE(8)), groups, 0.5);
}

static hone_t film(hone_t x, hone_t scale, hone_t shift)
{
    return hone_add(hone_mul(scale, x), shift);
}

static void whole_block(hone_graph *g)
{
    hone_t x = input(g, "x", HONE_SHAPE(2, 6, 8)), a = input(g, "a", HONE_SHAPE(2, 8, 1));
    hone_t y = film(hone_mish(norm(conv(x, "one", 1, 1, 1), 4)), a, input(g, "b", HONE_SHAPE(2, 8, 1)));
    hone_output(hone_add(conv(x, "skip", 1, 1, 1), norm(conv(y, "two", 1, 1, 1), 2)), "y");
}

static void inner_values_read(hone_graph *g)
{
    hone_t x = input(g, "x", HONE_SHAPE(2, 6, 8)), c = conv(x, "one", 1, 1, 1), n = norm(c, 4), m = hone_silu(n);
    hone_t s = hone_mul(m, input(g, "a", HONE_SHAPE(2, 8, 1)));
    hone_output(hone_add(s, input(g, "b", HONE_SHAPE(2, 8, 1))), "y");
    hone_output(c, "conv");
    hone_output(n, "norm");
    hone_output(m, "act");
    hone_output(s, "scaled");
}

static void statistics_read(hone_graph *g)
{
    hone_t x = input(g, "x", HONE_SHAPE(2, 6, 8)), out[3];
    hone_t in[3] = {conv(x, "one", 1, 1, 1), drawn(g, "gamma", HONE_SHAPE(8)), drawn(g, "beta", HONE_SHAPE(8))};
    op_emit(&op_group_norm, 3, in, &(struct op_attr){.i = {4}, .f = {0.5}}, out);
    hone_output(hone_mish(out[0]), "y");
    hone_output(out[1], "mean");
    hone_output(out[2], "rstd");
}

static void dilated(hone_graph *g)
{
    hone_output(hone_mish(norm(conv(input(g, "x", HONE_SHAPE(2, 6, 8)), "one", 1, 2, 2), 4)), "y");
}

static void strided(hone_graph *g)
{
    hone_output(hone_relu(norm(conv(input(g, "x", HONE_SHAPE(2, 6, 8)), "one", 2, 1, 1), 4)), "y");
}

static void large_batch(hone_graph *g)
{
    hone_output(hone_mish(norm(conv(input(g, "x", HONE_SHAPE(5, 6, 8)), "one", 1, 1, 1), 4)), "y");
}

/* The sum broadcasts one of its operands: over samples, over time, over channels. */
static void sums_that_stretch(hone_graph *g)
{
    static const struct {
        const char *name;
        hone_shape s;
    } t[] = {{"one sample", {3, {1, 8, 8}}},
             {"one time", {3, {2, 8, 1}}},
             {"one channel", {3, {2, 1, 8}}},
             {"a row", {1, {8}}},
             {"a number", {0, {0}}}};
    hone_t x = input(g, "x", HONE_SHAPE(2, 6, 8));
    for (int i = 0; i < 5; i++) {
        hone_t y = norm(conv(x, t[i].name, 1, 1, 1), 4), z = input(g, t[i].name, t[i].s);
        hone_output(i % 2 ? hone_add(z, y) : hone_add(y, z), t[i].name);
    }
}

static void film_of_one_step(hone_graph *g)
{
    hone_t x = input(g, "x", HONE_SHAPE(2, 6, 1)), a = input(g, "a", HONE_SHAPE(2, 8, 1));
    hone_output(film(hone_mish(norm(conv(x, "one", 1, 1, 1), 4)), a, input(g, "b", HONE_SHAPE(2, 8, 1))), "y");
}

static void concat_before(hone_graph *g)
{
    hone_t x = input(g, "x", HONE_SHAPE(2, 6, 8)), y = hone_mish(norm(conv(x, "one", 1, 1, 1), 4));
    hone_output(hone_mish(norm(conv(hone_concat(3, (hone_t[]){y, x, y}, 1), "two", 1, 1, 1), 2)), "channels");
    hone_output(norm(conv(hone_concat(2, (hone_t[]){y, y}, 2), "three", 1, 1, 1), 8), "time");
}

static void transposed(hone_graph *g)
{
    static const struct {
        const char *name;
        int64_t taps, stride, padding, extra;
    } t[] = {{"4 2 1", 4, 2, 1, 0},   {"4 2 0", 4, 2, 0, 0}, {"4 2 2", 4, 2, 2, 0},
             {"4 2 1 1", 4, 2, 1, 1}, {"4 1 1", 4, 1, 1, 0}, {"3 2 1", 3, 2, 1, 0}};
    hone_t x = norm(conv(input(g, "x", HONE_SHAPE(2, 6, 8)), "one", 1, 1, 1), 4);
    for (int i = 0; i < 6; i++)
        hone_output(hone_conv_transpose1d(x, drawn(g, t[i].name, HONE_SHAPE(8, 5, t[i].taps)),
                                          drawn(g, "tb", HONE_SHAPE(5)), t[i].stride, t[i].padding, t[i].extra),
                    t[i].name);
}

/* --- dense layers: x [B,5,6] -> [B,5,8] --- */

static hone_t dense(hone_t x, const char *name)
{
    const int64_t last = hone_type_of(x).shape.dim[hone_type_of(x).shape.rank - 1];
    return hone_linear(x, drawn(x.g, name, HONE_SHAPE(8, last)), HONE_NONE);
}

static void gated(hone_graph *g)
{
    hone_t x = input(g, "x", HONE_SHAPE(1, 5, 6)), gate = input(g, "gate", HONE_SHAPE(1, 1, 8));
    hone_t y = input(g, "residual", HONE_SHAPE(1, 5, 8));
    hone_output(hone_add(y, hone_mul(dense(x, "one"), gate)), "residual before");
    hone_output(hone_add(hone_mul(hone_reshape(gate, HONE_SHAPE(8)), hone_gelu_tanh(dense(x, "two"))), y), "behind");
    hone_output(hone_mul(gate, hone_silu(dense(hone_reshape(x, HONE_SHAPE(5, 6)), "three"))), "none");
    hone_output(hone_mul(dense(hone_slice(x, 1, 1, 1), "four"), dense(hone_slice(x, 1, 2, 1), "five")), "of both");
    hone_t read = hone_mul(dense(x, "six"), gate);
    hone_output(read, "gated");
    hone_output(hone_add(read, y), "gated, more");
}

/* One number a row, one of each number, one row of each sample, one number alone; and a layer that is itself stretched.
 */
static void gates_that_stretch(hone_graph *g)
{
    static const struct {
        const char *name;
        hone_shape s;
    } t[] = {{"rows", {3, {1, 5, 1}}}, {"all", {2, {5, 8}}}, {"samples", {3, {2, 1, 8}}}, {"a number", {0, {0}}}};
    hone_t x = input(g, "x", HONE_SHAPE(2, 5, 6)), y = input(g, "residual", HONE_SHAPE(2, 5, 8));
    for (int i = 0; i < 4; i++)
        hone_output(hone_add(y, hone_mul(dense(x, t[i].name), input(g, t[i].name, t[i].s))), t[i].name);
    hone_t narrow = hone_linear(x, drawn(g, "narrow", HONE_SHAPE(1, 6)), drawn(g, "bias", HONE_SHAPE(1)));
    hone_output(hone_add(hone_mul(narrow, input(g, "row", HONE_SHAPE(8))), y), "stretched");
}

/* What is FiLM behind a convolution: rows here. */
static void film_of_rows(hone_graph *g)
{
    hone_t x = input(g, "x", HONE_SHAPE(2, 5, 6)), a = input(g, "a", HONE_SHAPE(2, 5, 1));
    hone_output(film(hone_relu(dense(x, "one")), a, input(g, "b", HONE_SHAPE(2, 5, 1))), "y");
}

static void activated(hone_graph *g)
{
    static hone_t (*const f[])(hone_t) = {hone_mish, hone_silu, hone_relu, hone_gelu_tanh};
    hone_t x = input(g, "x", HONE_SHAPE(5, 6));
    for (int i = 0; i < 4; i++)
        hone_output(f[i](dense(x, (const char *[]){"m", "s", "r", "g"}[i])), (const char *[]){"1", "2", "3", "4"}[i]);
}

/* --- dense layers on concats of what changes unequally often --- */

static void split_last(hone_graph *g)
{
    hone_t fixed = hone_silu(drawn(g, "fixed", HONE_SHAPE(3, 4))), x = input(g, "x", HONE_SHAPE(3, 6));
    hone_t both = hone_mish(hone_affine(hone_concat(3, (hone_t[]){fixed, x, fixed}, 1), 2, 0.5));
    hone_output(hone_linear(both, drawn(g, "w", HONE_SHAPE(5, 14)), drawn(g, "b", HONE_SHAPE(5))), "y");
    hone_output(hone_linear(both, drawn(g, "w2", HONE_SHAPE(2, 14)), HONE_NONE), "no bias");
    hone_output(both, "both");
}

static void split_other_axis(hone_graph *g)
{
    hone_t fixed = drawn(g, "fixed", HONE_SHAPE(3, 4)), x = input(g, "x", HONE_SHAPE(3, 4));
    hone_t both = hone_mish(hone_concat(2, (hone_t[]){fixed, x}, 0));
    hone_output(hone_linear(both, drawn(g, "w", HONE_SHAPE(5, 4)), drawn(g, "b", HONE_SHAPE(5))), "y");
}

static hone_t step(void *user, hone_t x, const hone_t *rows)
{
    hone_t obs = *(hone_t *)user;
    hone_t time = hone_broadcast(hone_reshape(rows[0], HONE_SHAPE(1, 2)), HONE_SHAPE(3, 2));
    hone_t both = hone_silu(hone_concat(3, (hone_t[]){x, time, obs}, 1));
    hone_t h = hone_linear(both, drawn(x.g, "w", HONE_SHAPE(4, 9)), drawn(x.g, "b", HONE_SHAPE(4)));
    hone_t other = hone_linear(hone_concat(2, (hone_t[]){time, hone_slice(obs, 1, 0, 2)}, 0),
                               drawn(x.g, "w2", HONE_SHAPE(4, 2)), HONE_NONE);
    return hone_add(hone_affine(h, 0.25, 0), hone_slice(other, 0, 2, 3));
}

static void split_in_chain(hone_graph *g)
{
    hone_t obs = input(g, "obs", HONE_SHAPE(3, 3)), times = drawn(g, "times", HONE_SHAPE(5, 2));
    hone_t x = input(g, "x", HONE_SHAPE(3, 4));
    hone_output(hone_chain(x, &(hone_chain_options){.steps = 5, .tables = &times, .n_tables = 1}, step, &obs), "y");
}

/* --- signals of a larger batch: x [6,6,8], laid out as [6,8,8] once a convolution has made it so --- */

static hone_t signal(hone_graph *g)
{
    return conv(input(g, "x", HONE_SHAPE(6, 6, 8)), "one", 1, 1, 1);
}

static void signal_norms(hone_graph *g)
{
    hone_t a = norm(signal(g), 4), b = norm(conv(a, "two", 1, 1, 1), 2), c = norm(conv(b, "three", 1, 1, 1), 8), out[3];
    hone_output(hone_mish(a), "alone");
    hone_output(hone_silu(a), "with silu");
    hone_output(hone_mish(b), "only mish");
    hone_output(hone_mish(c), "and the norm");
    hone_output(c, "the norm");
    op_emit(&op_group_norm, 3,
            (hone_t[]){conv(c, "four", 1, 1, 1), drawn(g, "gamma", HONE_SHAPE(8)), drawn(g, "beta", HONE_SHAPE(8))},
            &(struct op_attr){.i = {4}, .f = {0.5}}, out);
    hone_output(hone_mish(out[0]), "mish beside statistics");
    hone_output(out[1], "mean");
    hone_output(out[2], "rstd");
}

/* Gradients through norms: the mish is all that reads one, and not; something else adds to its gradient. */
static void signal_gradients(hone_graph *g)
{
    static const char *const names[] = {"x", "w", "b", "gamma", "beta", "w2"};
    hone_t p[6] = {input(g, "x", HONE_SHAPE(6, 6, 8)), input(g, "w", HONE_SHAPE(8, 6, 3)),
                   input(g, "b", HONE_SHAPE(8)),       input(g, "gamma", HONE_SHAPE(8)),
                   input(g, "beta", HONE_SHAPE(8)),    input(g, "w2", HONE_SHAPE(8, 8, 3))};
    hone_t d[6], y = hone_conv1d(p[0], p[1], p[2], 1, 1, 1);
    hone_t n = hone_group_norm(y, p[3], p[4], 4, 0.5), m = hone_mish(n);
    hone_t z = hone_group_norm(hone_conv1d(m, p[5], HONE_NONE, 1, 1, 1), p[4], p[3], 2, 0.5), q = hone_mish(z);
    hone_t r = hone_group_norm(hone_conv1d(q, p[5], HONE_NONE, 2, 1, 1), p[3], p[3], 2, 0.5);
    hone_t loss =
        hone_add(hone_sum(hone_square(r), HONE_AXES_ALL, false), hone_sum(hone_mul(z, q), HONE_AXES_ALL, true));
    hone_gradients(hone_reshape(loss, HONE_SCALAR), p, 6, d);
    for (int i = 0; i < 6; i++)
        hone_output(d[i], names[i]);
}

/* The gradient of an activation goes out, so it cannot live inside of the norm's. */
static void signal_inner_gradient(hone_graph *g)
{
    hone_t n = norm(signal(g), 4), dy = input(g, "dy", HONE_SHAPE(6, 8, 8));
    hone_output(hone_mish(n), "y");
    hone_output(op_emit(&op_mish_grad, 2, (hone_t[]){n, dy}, &(struct op_attr){0}, NULL), "d");
}

/* Two norms that are one, of which each result is read. */
static void equal_norms(hone_graph *g)
{
    hone_t x = input(g, "x", HONE_SHAPE(2, 8, 8)), sum = hone_const_f32(g, 0), out[3];
    for (int i = 0; i < 2; i++) {
        hone_t in[3] = {hone_silu(x), drawn(g, "gamma", HONE_SHAPE(8)), drawn(g, "beta", HONE_SHAPE(8))};
        op_emit(&op_group_norm, 3, in, &(struct op_attr){.i = {4}, .f = {0.5}}, out);
        sum = hone_add(sum, hone_sum(hone_affine(out[1], 1 + i, 0), HONE_AXES_ALL, false));
        hone_output(out[i], i ? "mean" : "y");
    }
    hone_output(hone_mul(out[2], sum), "rstd");
}

/* What an elementwise operation may meet beside a signal. */
static void signal_operands(hone_graph *g)
{
    static const struct {
        const char *name;
        hone_shape s;
    } t[] = {{"a sample", {3, {6, 8, 1}}}, {"a time", {3, {6, 1, 8}}},      {"all samples", {3, {1, 8, 8}}},
             {"a channel", {2, {8, 1}}},   {"a row of time", {1, {8}}},     {"channels and time", {2, {8, 8}}},
             {"a number", {0, {0}}},       {"one of three", {3, {1, 1, 1}}}};
    hone_t x = signal(g), y = x;
    for (int i = 0; i < 8; i++) {
        hone_t v = drawn(g, t[i].name, t[i].s);
        y = i % 2 ? hone_mul(v, y) : hone_add(y, v);
        hone_output(hone_sub(x, v), t[i].name);
    }
    hone_output(hone_where(hone_greater(x, y), x, hone_affine(y, 0.5, 0)), "chosen");
    hone_output(hone_maximum(hone_tanh(y), hone_square(x)), "y");
}

static void signal_parts(hone_graph *g)
{
    static const char *const names[3][3] = {
        {"concat 0", "slice 0", "pad 0"}, {"concat 1", "slice 1", "pad 1"}, {"concat 2", "slice 2", "pad 2"}};
    hone_t x = signal(g), y = hone_silu(x);
    for (int axis = 0; axis < 3; axis++) {
        hone_output(hone_concat(3, (hone_t[]){x, y, x}, axis), names[axis][0]);
        hone_output(hone_slice(y, axis, 1, 3), names[axis][1]);
        hone_output(hone_pad(x, axis, 1, 2, 0.5), names[axis][2]);
    }
    hone_output(hone_permute(x, (const int[]){0, 2, 1}), "turned");
    hone_output(hone_permute(y, (const int[]){2, 1, 0}), "turned otherwise");
}

static void signal_sums(hone_graph *g)
{
    static const char *const names[2][8] = {{"-", "b", "c", "bc", "t", "bt", "ct", "bct"},
                                            {"-", "b+", "c+", "bc+", "t+", "bt+", "ct+", "bct+"}};
    hone_t x = signal(g);
    for (int keep = 0; keep < 2; keep++)
        for (unsigned axes = 1; axes < 8; axes++)
            hone_output(hone_sum(x, axes, keep), names[keep][axes]);
    hone_output(hone_mean(x, HONE_AXIS(2), false), "mean");
}

static void signal_convolutions(hone_graph *g)
{
    hone_t x = signal(g), one = conv(input(g, "z", HONE_SHAPE(6, 6, 1)), "single", 1, 1, 1);
    hone_output(hone_mish(one), "one time");
    hone_output(conv(x, "dilated", 1, 2, 2), "dilated");
    hone_output(conv(x, "strided", 2, 1, 1), "strided");
    hone_output(conv(x, "valid", 1, 0, 1), "valid");
    hone_output(conv(x, "wide", 3, 4, 1), "wide padding");
    hone_output(hone_conv_transpose1d(x, drawn(g, "t", HONE_SHAPE(8, 5, 4)), drawn(g, "tb", HONE_SHAPE(5)), 2, 1, 0),
                "twice");
    hone_output(hone_conv_transpose1d(x, drawn(g, "u", HONE_SHAPE(8, 5, 2)), HONE_NONE, 3, 0, 1), "gaps");
}

/* `user` holds a signal from before the chain, which is read in it and after it. */
static hone_t signal_step(void *user, hone_t x, const hone_t *rows)
{
    const hone_t before = *(hone_t *)user;
    hone_t y = conv(hone_add(x, hone_mul(before, rows[0])), "inner", 1, 1, 1);
    return hone_affine(hone_add(hone_mish(norm(y, 4)), before), 0.5, 0);
}

static void signal_chain(hone_graph *g)
{
    hone_t times = drawn(g, "times", HONE_SHAPE(5, 1)), before = hone_silu(input(g, "x", HONE_SHAPE(6, 8, 8)));
    const hone_chain_options o = {.steps = 5, .tables = &times, .n_tables = 1};
    hone_t y = hone_chain(input(g, "y", HONE_SHAPE(6, 8, 8)), &o, signal_step, &before);
    hone_output(y, "y");
    hone_output(conv(before, "after", 1, 1, 1), "after");
    hone_output(hone_chain(hone_mish(conv(y, "between", 1, 1, 1)), &o, signal_step, &y), "again");
}

/* --- all of them --- */

static const struct {
    const char *name;
    void (*build)(hone_graph *g);
    int fused; /* conv_blocks there must be at least; 0: there must be none; -1: never mind */
    int laid;  /* time_convs, where the device has kernels for them */
} graphs[] = {
    {"a whole block", whole_block, 3, 0},
    {"inner values of a block are read", inner_values_read, -1, 0},
    {"statistics of its norm are read", statistics_read, -1, 0},
    {"a dilated convolution", dilated, 0, 0},
    {"a strided convolution", strided, 1, 0},
    {"a large batch", large_batch, 0, 1},
    {"sums that stretch an operand", sums_that_stretch, 5, 0},
    {"one step of time", film_of_one_step, -1, 0},
    {"concats before a block", concat_before, 3, 0},
    {"transposed convolutions", transposed, 2, 0},
    {"gates of dense layers", gated, 5, 0},
    {"gates that stretch an operand", gates_that_stretch, 5, 0},
    {"scale and shift of rows", film_of_rows, 1, 0},
    {"activations of dense layers", activated, 4, 0},
    {"a concat along the last axis", split_last, -1, 0},
    {"a concat along another axis", split_other_axis, -1, 0},
    {"concats in a chain", split_in_chain, -1, 0},
    {"signals: norms", signal_norms, 0, 4},
    {"signals: gradients", signal_gradients, 0, 8},
    {"signals: a gradient inside of a norm", signal_inner_gradient, 0, 1},
    {"norms that are one", equal_norms, 0, 0},
    {"signals: operands", signal_operands, 0, 1},
    {"signals: parts", signal_parts, 0, 1},
    {"signals: sums", signal_sums, 0, 1},
    {"signals: convolutions", signal_convolutions, 0, 7},
    {"signals: chains", signal_chain, 0, 3},
};

struct counts {
    int blocks, laid; /* conv_block; time_conv, time_conv_data, time_conv_weight */
};

static struct counts count(const hone_program *p)
{
    struct counts n = {0, 0};
    for (int32_t i = 0; i < p->plan.n_steps; i++) {
        const struct plan_step *s = &p->plan.steps[i];
        const struct op_def *d = s->kind == PLAN_RUN ? p->g->nodes[s->node].def : NULL;
        n.blocks += d == &op_conv_block;
        n.laid += d == &op_time_conv || d == &op_time_conv_data || d == &op_time_conv_weight;
    }
    return n;
}

/* Compiles with `o`, runs on drawn inputs, keeps all outputs; returns how many numbers. */
static int outcome(struct check *c, struct kit *k, hone_graph *g, const hone_compile_options *o, float *out,
                   struct counts *counts)
{
    static float x[8][2048];
    const void *in[8];
    int n = 0;
    hone_program *p = hone_compile(k->cpu, g, o, &k->err);
    for (int i = 0; p && i < hone_program_inputs(p); i++) {
        hone_type t = hone_program_input_type(p, i);
        hone_fill_normal(x[i], (size_t)hone_numel(&t.shape), 12, hone_stream(hone_program_input_name(p, i)), 0, 0);
        in[i] = x[i];
    }
    const bool ran = kit_run(k, p, in, NULL, 0);
    CHECK_MSG(c, ran, "%s: %s", k->err.where, k->err.text);
    k->err = (hone_err){0};
    for (int i = 0; ran && i < hone_program_outputs(p); i++) {
        hone_type t = hone_program_output_type(p, i);
        const float *y = hone_result(p, i);
        for (int64_t j = 0; j < hone_numel(&t.shape); j++)
            out[n++] = y[j];
    }
    *counts = ran ? count(p) : (struct counts){0, 0};
    hone_program_destroy(p);
    return n;
}

static void plain_equals(struct check *c, struct kit *k, int i)
{
    static const hone_compile_options plain = {.plain = true}, modes[] = {{.name = "as it is"}, {.debug = true}};
    static float want[16384], got[16384];
    struct counts counts;
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    graphs[i].build(g);
    const int n = outcome(c, k, g, &plain, want, &counts);
    CHECK(c, n > 0 && n <= 16384 && counts.blocks == 0 && counts.laid == 0);
    for (int m = 0; m < 2; m++) {
        float largest = 1, worst = 0;
        int at = 0;
        CHECK(c, outcome(c, k, g, &modes[m], got, &counts) == n);
        CHECK_MSG(c, graphs[i].fused < 0 || (graphs[i].fused ? counts.blocks >= graphs[i].fused : counts.blocks == 0),
                  "%d blocks", counts.blocks);
#ifdef HONE_DNNL
        CHECK_MSG(c, graphs[i].laid ? counts.laid >= graphs[i].laid : counts.laid == 0, "%d laid out", counts.laid);
#endif
        for (int q = 0; q < n; q++) {
            largest = fmaxf(largest, fabsf(want[q]));
            if (!(fabsf(got[q] - want[q]) <= worst)) {
                worst = fabsf(got[q] - want[q]);
                at = q;
            }
        }
        CHECK_MSG(c, worst <= 1e-5f * largest, "number %d: %g, should be %g", at, (double)got[at], (double)want[at]);
    }
    hone_graph_destroy(g);
}

/* A value that depends on the step alone, of 256 KiB: a table for all of 64 steps would have 16 MiB. */
static hone_t large_step(void *user, hone_t x, const hone_t *rows)
{
    (void)user;
    hone_t large = hone_mul(hone_full(x.g, HONE_SHAPE(256, 256), 0.5f), rows[0]);
    return hone_add(x, hone_mean(hone_mul(large, x), HONE_AXES_ALL, false));
}

static void lifting_is_bounded(struct check *c)
{
    struct kit k;
    float rows[64] = {1, 2, 3}, x = 4;
    const float want = 4 * 1.5f * 2 * 2.5f; /* x (1 + r / 2) in each step, 0 in those after the third */
    kit_open(&k, NULL);
    hone_graph *g = hone_graph_create(k.ctx, &k.err);
    hone_t table = hone_const(g, HONE_F32, HONE_SHAPE(64), rows);
    const hone_chain_options o = {.steps = 64, .tables = &table, .n_tables = 1};
    hone_output(hone_chain(input(g, "x", HONE_SCALAR), &o, large_step, NULL), "y");
    hone_program *p = hone_compile(k.cpu, g, NULL, &k.err);
    if (CHECK_MSG(c, kit_run(&k, p, (const void *[]){&x}, NULL, 0), "%s: %s", k.err.where, k.err.text)) {
        const float y = *(const float *)hone_result(p, 0);
        CHECK_MSG(c, fabsf(y - want) <= 1e-5f * want, "%g, should be %g", (double)y, (double)want);
        CHECK_MSG(c, hone_program_plan(p).bytes < 4 << 20, "%zu bytes", hone_program_plan(p).bytes);
    }
    hone_program_destroy(p);
    hone_graph_destroy(g);
    kit_close(&k, c);
}

void suite_passes(struct check *c)
{
    if (check_case(c, "lifting is bounded"))
        lifting_is_bounded(c);
    for (int threads = 1; threads <= 3; threads++) {
        struct kit k;
        kit_open(&k, &(hone_ctx_options){.threads = threads});
        for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
            if (check_case(c, "%s, %d threads", graphs[i].name, threads))
                plain_equals(c, &k, (int)i);
        if (check_case(c, "nothing leaks, %d threads", threads))
            kit_close(&k, c);
        else
            kit_close(&k, &(struct check){.open = 1});
    }
}
