/* What comparisons and logic share. */
#ifndef OP_COMPARE_H
#define OP_COMPARE_H

#include "op/op.h"

/* Operands of one type, f32 or i32, broadcast, to bool. */
hone_status op_shape_compare(const struct op_call *c, hone_type *out, hone_err *err);
/* bool operands, broadcast, to bool. */
hone_status op_shape_logic(const struct op_call *c, hone_type *out, hone_err *err);

#define OP_COMPARE_CASES                                                                                               \
    OP_BINARY_CASES, {.name = "indices", .n_in = 2, .in = {OP_I32(3, 5), OP_I32(5)}, .below = 3},                      \
    {                                                                                                                  \
        .name = "one index", .n_in = 2, .in = {OP_I32(7), OP_I32(1)}, .below = 3                                       \
    }
#define OP_COMPARE_BAD                                                                                                 \
    {"no broadcast", 2, {OP_F32(3), OP_F32(4)}}, {"types", 2, {OP_F32(3), OP_I32(3)}},                                 \
    {                                                                                                                  \
        "truth values", 2,                                                                                             \
        {                                                                                                              \
            OP_BOOL(3), OP_BOOL(3)                                                                                     \
        }                                                                                                              \
    }
#define OP_LOGIC_CASES                                                                                                 \
    {"same", 2, {OP_BOOL(37), OP_BOOL(37)}}, {"row", 2, {OP_BOOL(3, 5), OP_BOOL(5)}},                                  \
        {"column", 2, {OP_BOOL(3, 5), OP_BOOL(3, 1)}},                                                                 \
    {                                                                                                                  \
        "empty", 2,                                                                                                    \
        {                                                                                                              \
            OP_BOOL(0, 5), OP_BOOL(5)                                                                                  \
        }                                                                                                              \
    }
#define OP_LOGIC_BAD                                                                                                   \
    {"no broadcast", 2, {OP_BOOL(3), OP_BOOL(4)}},                                                                     \
    {                                                                                                                  \
        "numbers", 2,                                                                                                  \
        {                                                                                                              \
            OP_BOOL(3), OP_F32(3)                                                                                      \
        }                                                                                                              \
    }

#endif
