/* hone/tensor.h: element types and shapes. Arithmetic only: nothing here owns memory. */
#ifndef HONE_TENSOR_H
#define HONE_TENSOR_H

#include "hone/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hone_dtype {
    HONE_F32 = 0,
    HONE_F16,
    HONE_BF16,
    HONE_F64, /* files and references only: no kernel takes it */
    HONE_I32, /* indices and counters */
    HONE_I64, /* files only */
    HONE_U8,  /* images, until they are cast */
    HONE_I8,
    HONE_BOOL, /* one byte, 0 or 1; in masks true means attend */
    HONE_DTYPES
} hone_dtype;

#define HONE_MAX_RANK 8

/* Row-major: the last dimension is the fastest. Rank 0 is one element; a dimension may be 0 (no elements). */
typedef struct hone_shape {
    int rank;
    int64_t dim[HONE_MAX_RANK];
} hone_shape;

/* What a value is: an element type and a shape. */
typedef struct hone_type {
    hone_dtype dtype;
    hone_shape shape;
} hone_type;

/* hone_shape_of(3, b, c, t). More than HONE_MAX_RANK dimensions or a negative one gives rank -1, which every
 * operation refuses. */
#define HONE_SHAPE(...) ((hone_shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#define HONE_SCALAR     ((hone_shape){0, {0}})

HONE_API size_t hone_dtype_size(hone_dtype t);      /* bytes of one element; 0 for no such type */
HONE_API const char *hone_dtype_name(hone_dtype t); /* "f32", "i32", "bool" ... */
HONE_API int64_t hone_numel(const hone_shape *s); /* elements; -1 if the product overflows or a dimension is negative */
HONE_API bool hone_shape_equal(const hone_shape *a, const hone_shape *b);

/* "[2,3,5]" into `buf`; returns buf. 96 bytes hold every shape of modest size; longer text is cut. */
HONE_API char *hone_shape_text(const hone_shape *s, char *buf, size_t n);

#ifdef __cplusplus
}
#endif
#endif
