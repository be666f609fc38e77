/* What an operation is. One file an operation, src/op/<name>.c, holds the shape rule, a plain reference in double, the
 * gradient, the expansion into simpler operations, the cost, the ONNX mapping and the test cases, and defines
 * `const struct op_def op_<name>`. What is missing says why it is missing.
 *
 * An operation file knows no memory, no backend and no program. It builds gradients and expansions with the public
 * builders of hone/ops.h. */
#ifndef OP_OP_H
#define OP_OP_H

#include "base/err.h"
#include "hone/ops.h"

#define OP_MAX_IN  32
#define OP_MAX_OUT 5

struct op_def;

/* Numbers that belong to one use of an operation. Their names stand in op_def, in order. */
struct op_attr {
    int64_t i[12];
    double f[6];
};

/* One use of an operation, as far as its own functions and kernels may see it. */
struct op_call {
    const struct op_def *def;
    int n_in, n_out;
    const hone_type *in;
    const hone_type *out; /* NULL while the shape rule runs */
    struct op_attr attr;
    const void *data; /* of a constant */
};

/* One use inside a graph, for gradients and expansions. */
struct op_use {
    const struct op_call *call;
    hone_graph *g;
    const hone_t *in;
    const hone_t *out; /* in a gradient: the results of the forward use (saved statistics included) */
};

struct op_cost {
    double flops, bytes; /* bytes that must move at the least: operands and results once */
};

/* A test case: operand types, attributes, and the range that random operands are drawn from (default [-2, 2];
 * i32 operands are drawn below `below`, bool operands fairly). */
enum { OP_CASE_IN = 10 };
struct op_case {
    const char *name;
    int n_in;
    hone_type in[OP_CASE_IN];
    struct op_attr attr;
    double lo, hi;
    int32_t below;
    double tol; /* of an f32 kernel against the reference, relative to the largest element; 0: 1e-5 */
};

/* Shorthands of case tables. */
#define OP_DIMS(...)                                                                                                   \
    {                                                                                                                  \
        (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                                                     \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define OP_F32(...)                                                                                                    \
    {                                                                                                                  \
        HONE_F32, OP_DIMS(__VA_ARGS__)                                                                                 \
    }
#define OP_I32(...)                                                                                                    \
    {                                                                                                                  \
        HONE_I32, OP_DIMS(__VA_ARGS__)                                                                                 \
    }
#define OP_U8(...)                                                                                                     \
    {                                                                                                                  \
        HONE_U8, OP_DIMS(__VA_ARGS__)                                                                                  \
    }
#define OP_BF16(...)                                                                                                   \
    {                                                                                                                  \
        HONE_BF16, OP_DIMS(__VA_ARGS__)                                                                                \
    }
#define OP_BOOL(...)                                                                                                   \
    {                                                                                                                  \
        HONE_BOOL, OP_DIMS(__VA_ARGS__)                                                                                \
    }
#define OP_F32_SCALAR                                                                                                  \
    {                                                                                                                  \
        HONE_F32,                                                                                                      \
        {                                                                                                              \
            0,                                                                                                         \
            {                                                                                                          \
                0                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
#define OP_CASES(list) .cases = list, .n_cases = (int)(sizeof(list) / sizeof(list[0]))
#define OP_BAD(list)   .bad = list, .n_bad = (int)(sizeof(list) / sizeof(list[0]))

enum {
    OP_SOURCE = 1,     /* no operand makes its value: the executor does */
    OP_EFFECT = 2,     /* writes a store; no result */
    OP_VIEW = 4,       /* its result may be bytes of operand 0: see `view` */
    OP_LOOP = 8,       /* belongs to a chain */
    OP_ANY_NUMBER = 16 /* its purpose is to meet NaN and infinities; debugging lets it */
};

struct op_def {
    const char *name;
    const char *math;            /* the formula, one line */
    const char *attr_i, *attr_f; /* names of the attributes in use, separated by spaces; NULL: none */
    int min_in, max_in, n_out;
    unsigned flags;

    /* Sets the types of the results, or refuses (op_refuse). Operand count has been checked. */
    hone_status (*shape)(const struct op_call *c, hone_type *out, hone_err *err);
    /* The same in double, as plain as it can be written; every kernel is measured against it. Values of other types
     * come as doubles too. Required unless OP_SOURCE or OP_EFFECT. */
    void (*ref)(const struct op_call *c, const double *const *in, double *const *out);
    /* din[i] = gradient by operand i (HONE_NONE at entry: leave it where there is none); dout[k] is HONE_NONE where no
     * gradient arrives. */
    void (*grad)(const struct op_use *u, const hone_t *dout, hone_t *din);
    const char *no_grad; /* why there is none; an operation without `grad` but with `expand` is differentiated there */
    void (*expand)(const struct op_use *u, hone_t *out);
    const char *no_expand;
    /* The same over a new leading dimension of n: operands with many[i] have it, the others are meant for all. What
     * depends on the step of a chain alone is so done for all steps at once. May decline by leaving out[0]
     * HONE_NONE. NULL: elementwise operations do without (op_batch knows them), others stay in the chain. */
    void (*batch)(const struct op_use *u, const bool *many, int64_t n, hone_t *out);
    struct op_cost (*cost)(const struct op_call *c); /* NULL: one flop an element of the results */
    const char *onnx, *no_onnx;                      /* ONNX operator, or how it is exported otherwise */
    /* OP_VIEW: true, and *offset in bytes, if the result is a contiguous part of operand 0. */
    bool (*view)(const struct op_call *c, size_t *offset);

    const struct op_case *cases; /* must work */
    int n_cases;
    const struct op_case *bad; /* must be refused */
    int n_bad;
};

/* The table, ending in NULL, and its lookup (NULL: no such operation). */
extern const struct op_def *const op_table[];
const struct op_def *op_find(const char *name);

#define HONE_OP(name, args)      extern const struct op_def op_##name;
#define HONE_OP_MANY(name, args) extern const struct op_def op_##name;
#define HONE_OP_INNER(name)      extern const struct op_def op_##name;
#include "hone/ops.def"
#undef HONE_OP
#undef HONE_OP_MANY
#undef HONE_OP_INNER

/* Adds a use to the graph of the operands (all of one graph) and returns its first result; poison in, poison out. The
 * builder (room graph) implements it. Nullable: attr, out (n_out handles). */
hone_t op_emit(const struct op_def *def, int n_in, const hone_t *in, const struct op_attr *attr, hone_t *out);
/* The same where there is no operand to carry the graph. `data` (nullable, `bytes` long) is copied. */
hone_t op_emit_in(hone_graph *g, const struct op_def *def, int n_in, const hone_t *in, const struct op_attr *attr,
                  const void *data, size_t bytes, hone_t *out);

/* Refuse with `rule`, the shapes got are added: "inner dimensions must agree; got f32[3,4] f32[5,6]". */
hone_status op_refuse(const struct op_call *c, hone_err *err, const char *rule);
struct op_cost op_cost_of(const struct op_call *c);
int64_t op_numel(const hone_type *t);
static inline bool op_has(hone_t x)
{
    return x.g != NULL;
}

/* def->batch, or what elementwise operations do; false: it cannot be done. */
bool op_batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out);

/* --- shared by many shape rules and references --- */

/* All operands f32. */
bool op_all_f32(const struct op_call *c);
/* Result = broadcast of two shapes; false if they do not fit. */
bool op_broadcast_shape(const hone_shape *a, const hone_shape *b, hone_shape *out);
/* Row-major strides in elements; where `s` has 1 and `to` more (or `s` lacks the dimension) the stride is 0, so that
 * walking `to` reads `s` broadcast. stride[] has to->rank entries. */
void op_strides(const hone_shape *s, const hone_shape *to, int64_t *stride);
/* Steps a counter over `s` (row-major). idx starts as zeros; false when the walk is over. */
bool op_next(const hone_shape *s, int64_t *idx);
/* Sums x over what broadcasting stretched, so that it has the type of `like` again: the gradient of a broadcast. */
hone_t op_unbroadcast(hone_t x, hone_t like);
/* One-operand elementwise f32 -> f32. */
hone_status op_shape_unary(const struct op_call *c, hone_type *out, hone_err *err);
void op_ref_unary(const struct op_call *c, const double *const *in, double *const *out, double (*f)(double));
/* Operands of one type, f32, and the result of it: no broadcasting. */
hone_status op_shape_alike(const struct op_call *c, hone_type *out, hone_err *err);
/* Two-operand elementwise f32 with broadcasting. */
hone_status op_shape_binary(const struct op_call *c, hone_type *out, hone_err *err);
void op_ref_binary(const struct op_call *c, const double *const *in, double *const *out, double (*f)(double, double));

/* Cases that every unary operation is tried on: empty, one element, odd, not a multiple of a vector, several ranks. */
#define OP_UNARY_CASES                                                                                                 \
    {"vector", 1, {OP_F32(7)}}, {"scalar", 1, {OP_F32_SCALAR}}, {"one", 1, {OP_F32(1, 1)}},                            \
        {"empty", 1, {OP_F32(3, 0)}}, {"batch", 1, {OP_F32(2, 3, 5)}},                                                 \
    {                                                                                                                  \
        "long", 1,                                                                                                     \
        {                                                                                                              \
            OP_F32(1037)                                                                                               \
        }                                                                                                              \
    }
#define OP_BINARY_CASES                                                                                                \
    {"same", 2, {OP_F32(7), OP_F32(7)}}, {"row", 2, {OP_F32(3, 5), OP_F32(5)}},                                        \
        {"column", 2, {OP_F32(3, 5), OP_F32(3, 1)}}, {"scalar", 2, {OP_F32(2, 3), OP_F32_SCALAR}},                     \
        {"outer", 2, {OP_F32(4, 1), OP_F32(1, 3)}}, {"channel", 2, {OP_F32(2, 3, 5), OP_F32(2, 3, 1)}},                \
        {"left", 2, {OP_F32(3), OP_F32(2, 4, 3)}}, {"empty", 2, {OP_F32(0, 5), OP_F32(5)}},                            \
        {"long", 2, {OP_F32(1037), OP_F32(1037)}},                                                                     \
    {                                                                                                                  \
        "one", 2,                                                                                                      \
        {                                                                                                              \
            OP_F32(1), OP_F32(1)                                                                                       \
        }                                                                                                              \
    }

#endif
