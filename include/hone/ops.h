/* hone/ops.h: the operations. Each is declared, with its shapes and its formula, by one line of ops.def. */
#ifndef HONE_OPS_H
#define HONE_OPS_H

#include "hone/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HONE_OP(name, args)      HONE_API hone_t hone_##name args;
#define HONE_OP_MANY(name, args) HONE_API void hone_##name args;
#define HONE_OP_INNER(name)
#include "hone/ops.def"
#undef HONE_OP
#undef HONE_OP_MANY
#undef HONE_OP_INNER

/* Axes of a reduction as bits: HONE_AXIS(0) | HONE_AXIS(2). */
#define HONE_AXIS(i)  (1u << (i))
#define HONE_AXES_ALL 0xffu

#ifdef __cplusplus
}
#endif
#endif
