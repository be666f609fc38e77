/* adamw_average: a step of adamw, the moving average of what it gives, and zeros of the gradient's shape, so that a
 * device may walk its slabs once:
 *
 *     p', m', v' = adamw(p, g, m, v)
 *     average'   = average + (1 - decay) (p' - average)
 *     g'         = 0
 *
 * Where `skip` is not 0, p, m, v and the average come out bit by bit as they were; g' is 0 all the same. */
#include "op/adamw_average.h"

#include <string.h>

void op_emit_adamw_average(const hone_t *operand, const double *attr, hone_t *out)
{
    struct op_attr a = {{0}, {0}};
    memcpy(a.f, attr, (ADAMW_DECAY + 1) * sizeof *attr);
    op_emit(&op_adamw_average, ADAMW_AVERAGE_OPERANDS, operand, &a, out);
}

/* The place of operand i of adamw. */
static int place(int i)
{
    return i < ADAMW_LR ? i : i + ADAMW_AVERAGE_SHIFT;
}

/* The step alone, as a use of adamw. */
static struct op_call step_of(const struct op_call *c, hone_type *in)
{
    struct op_call k = *c;
    k.n_in = c->n_in - ADAMW_AVERAGE_SHIFT;
    for (int i = 0; i < k.n_in; i++)
        in[i] = c->in[place(i)];
    k.in = in;
    return k;
}

static hone_status shape(const struct op_call *c, hone_type *out, hone_err *err)
{
    hone_type in[ADAMW_OPERANDS];
    const struct op_call k = step_of(c, in);
    if (!op_all_f32(c))
        return op_refuse(c, err, "all operands must be f32");
    if (!hone_shape_equal(&c->in[ADAMW_AVERAGE].shape, &c->in[ADAMW_P].shape))
        return op_refuse(c, err, "average and parameters must have one shape");
    if (op_numel(&c->in[ADAMW_AVERAGE_DECAY]) != 1)
        return op_refuse(c, err, "the decay of the average has one element");
    out[3] = out[4] = c->in[ADAMW_P];
    return op_adamw.shape(&k, out, err);
}

static void ref(const struct op_call *c, const double *const *in, double *const *out)
{
    hone_type types[ADAMW_OPERANDS];
    const double *operand[ADAMW_OPERANDS];
    const struct op_call k = step_of(c, types);
    for (int i = 0; i < k.n_in; i++)
        operand[i] = in[place(i)];
    op_adamw.ref(&k, operand, out);
    const bool skip = k.n_in > ADAMW_SKIP && operand[ADAMW_SKIP][0] != 0;
    for (int64_t i = 0, n = op_numel(&c->in[ADAMW_P]); i < n; i++) {
        const double a = in[ADAMW_AVERAGE][i];
        out[3][i] = skip ? a : a + (1 - in[ADAMW_AVERAGE_DECAY][0]) * (out[0][i] - a);
        out[4][i] = 0;
    }
}

static void expand(const struct op_use *u, hone_t *out)
{
    const double *f = u->call->attr.f;
    const hone_t *in = u->in;
    const int n = u->call->n_in - ADAMW_AVERAGE_SHIFT;
    hone_t scale = n > ADAMW_SCALE ? in[place(ADAMW_SCALE)] : HONE_NONE;
    hone_t skip = n > ADAMW_SKIP ? in[place(ADAMW_SKIP)] : HONE_NONE;
    hone_t decay = hone_reshape(in[ADAMW_AVERAGE_DECAY], HONE_SCALAR), lr = in[place(ADAMW_LR)];
    hone_adamw(in[ADAMW_P], in[ADAMW_G], in[ADAMW_M], in[ADAMW_V], lr, in[place(ADAMW_STEP)], scale, skip,
               f[ADAMW_BETA1], f[ADAMW_BETA2], f[ADAMW_EPS], f[ADAMW_DECAY], &out[0], &out[1], &out[2]);
    if (op_has(skip)) {
        hone_t bad = hone_cast(hone_reshape(skip, HONE_SCALAR), HONE_BOOL);
        decay = hone_where(bad, hone_const_f32(u->g, 1), decay);
    }
    out[3] = hone_average(in[ADAMW_AVERAGE], out[0], decay);
    /* Made of an operand, as constants would be expanded to a slab that is kept between runs. */
    hone_t zero = hone_affine(hone_reshape(lr, HONE_SCALAR), 0, 0);
    out[4] = hone_broadcast(zero, u->call->in[ADAMW_G].shape);
}

static struct op_cost cost(const struct op_call *c)
{
    const double n = (double)op_numel(&c->in[ADAMW_P]);
    return (struct op_cost){18 * n, 4 * 10 * n};
}

/* Drawn in [0.5, 2], a skip is never 0: cases with one keep everything, the others move. */
#define CASE(name, n, ...)                                                                                             \
    {                                                                                                                  \
        name, n, {__VA_ARGS__}, {.f = {0.9, 0.999, 1e-8, 0.01}}, .lo = 0.5, .hi = 2                                    \
    }
#define SLABS(...)                                                                                                     \
    OP_F32(__VA_ARGS__), OP_F32(__VA_ARGS__), OP_F32(__VA_ARGS__), OP_F32(__VA_ARGS__), OP_F32(__VA_ARGS__)
static const struct op_case cases[] = {
    CASE("vector", 8, SLABS(7), OP_F32(1), OP_F32(1), OP_F32(1)),
    CASE("one", 8, SLABS(1), OP_F32_SCALAR, OP_F32_SCALAR, OP_F32(1)),
    CASE("empty", 8, SLABS(0), OP_F32(1), OP_F32(1), OP_F32(1)),
    CASE("matrix", 8, SLABS(3, 5), OP_F32_SCALAR, OP_F32(1, 1), OP_F32_SCALAR),
    CASE("scaled", 9, SLABS(33), OP_F32(1, 1), OP_F32(1), OP_F32(1), OP_F32_SCALAR),
    CASE("long", 9, SLABS(1037), OP_F32(1), OP_F32(1), OP_F32(1), OP_F32(1)),
    CASE("skipped", 10, SLABS(33), OP_F32(1), OP_F32(1), OP_F32(1), OP_F32(1), OP_F32(1)),
    CASE("skipped, long", 10, SLABS(1037), OP_F32(1), OP_F32(1), OP_F32(1), OP_F32(1), OP_F32_SCALAR),
};
static const struct op_case bad[] = {
    CASE("shapes", 8, OP_F32(3), OP_F32(3), OP_F32(4), OP_F32(3), OP_F32(3), OP_F32(1), OP_F32(1), OP_F32(1)),
    CASE("averages", 8, OP_F32(3), OP_F32(3), OP_F32(3), OP_F32(3), OP_F32(4), OP_F32(1), OP_F32(1), OP_F32(1)),
    CASE("decays", 8, SLABS(3), OP_F32(3), OP_F32(1), OP_F32(1)),
    CASE("rates", 8, SLABS(3), OP_F32(1), OP_F32(3), OP_F32(1)),
    CASE("integers", 8, SLABS(3), OP_I32(1), OP_F32(1), OP_F32(1)),
    {"beta", 8, {SLABS(3), OP_F32(1), OP_F32(1), OP_F32(1)}, {.f = {0.9, 1, 1e-8, 0}}},
};

const struct op_def op_adamw_average = {
    .name = "adamw_average",
    .math = "adamw, average of its p, and a gradient of zeros, in one pass",
    .attr_f = "beta1 beta2 eps weight_decay",
    .min_in = ADAMW_SCALE + ADAMW_AVERAGE_SHIFT,
    .max_in = ADAMW_AVERAGE_OPERANDS,
    .n_out = 5,
    .flags = OP_ANY_NUMBER, /* a step whose gradients overflowed is skipped here */
    .shape = shape,
    .ref = ref,
    .no_grad = "that of its expansion",
    .expand = expand,
    .cost = cost,
    .no_onnx = "training only",
    OP_CASES(cases),
    OP_BAD(bad),
};
