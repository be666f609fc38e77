/* hone/io.h: files of tensors, in the safetensors format.
 *
 * The file: a u64 N (little-endian), N bytes of JSON, then the elements of all tensors end to end, row-major and
 * little-endian. The JSON maps each name to {"dtype", "shape", "data_offsets": [begin, end]}, offsets counted from
 * byte 8+N; "__metadata__" may map texts to texts. The format carries no code.
 *
 * A reader here never trusts the file. Refused with HONE_E_FORMAT, naming the file, the tensor and the figures:
 *   - fewer than 8 bytes; N above 100,000,000; a header longer than the file;
 *   - a header that does not begin with '{', is not UTF-8 or not JSON, that has anything but white space after its
 *     object, or a name, field or metadata key twice;
 *   - a field other than the three of an entry (it could change the meaning of the data), or one of them missing;
 *   - a dimension or offset that is not a plain whole number below 2^64 (so not 1.0, 1e3, -0 or 01); a metadata value
 *     that is not a text; a dtype that the format does not have;
 *   - offsets that leave a hole, overlap or run backwards; a shape whose size overflows, does not end on a byte (types
 *     of 4 and 6 bits) or is not end - begin;
 *   - a last tensor that does not end exactly where the file ends.
 * Narrower than the format, refused on opening with HONE_E_UNSUPPORTED: a name or metadata key longer than
 * HONE_TENSOR_NAME_MAX bytes, and U+0000 in any text. Listed, and refused only when read: an element type that hone
 * cannot hold, more than HONE_MAX_RANK dimensions, a dimension above INT64_MAX.
 *
 * Memory: the header is parsed as a stream. Opening takes at most 4 bytes for each byte of header plus 256 KiB, and no
 * more than the tensors and metadata that are really listed need. Data stays in the file until it is read.
 *
 * The file is read with read calls and never mapped: one that is cut short or fails while it is open gives
 * HONE_E_IO, where a mapping would kill the process. */
#ifndef HONE_IO_H
#define HONE_IO_H

#include "hone/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HONE_TENSOR_NAME_MAX 4096 /* bytes of UTF-8, without the closing zero */

/* An open file of tensors. Thread: after opening, any number of threads may use it at once, but for closing. */
typedef struct hone_tensors hone_tensors;

/* One tensor of a file. The texts live as long as the hone_tensors. */
typedef struct hone_tensor_info {
    const char *name;       /* UTF-8, printable or not; NULL for an index out of range */
    const char *file_dtype; /* the format's name of the type: "F32", "F8_E4M3" ... */
    hone_type type;         /* dtype HONE_DTYPES: hone has no such type. rank -1: more dimensions than hone can hold,
                             * or a dimension above INT64_MAX */
    uint64_t rank;          /* dimensions in the file */
    uint64_t bytes;         /* of data in the file */
    uint64_t offset;        /* of the data, from the first byte of the file */
} hone_tensor_info;

/* Opens a regular file and checks all of its header; no data is read. NULL on failure: HONE_E_IO (no such file ...),
 * HONE_E_FORMAT, HONE_E_UNSUPPORTED, HONE_E_NOMEM. Owns: the result, given back by hone_tensors_close before the
 * context goes. */
HONE_API hone_tensors *hone_tensors_open(hone_ctx *ctx, const char *path, hone_err *err);

/* The same for a file that is in memory already. `bytes` is borrowed until hone_tensors_close; any alignment. */
HONE_API hone_tensors *hone_tensors_from_memory(hone_ctx *ctx, const void *bytes, size_t n, hone_err *err);

HONE_API void hone_tensors_close(hone_tensors *t); /* Nullable: t */

/* Tensors are numbered in the order of their data. */
HONE_API size_t hone_tensors_count(const hone_tensors *t);
HONE_API hone_tensor_info hone_tensors_at(const hone_tensors *t, size_t i);

/* The number of the tensor called `name`; -1 with HONE_E_ARG if there is none. Pass a NULL err for a mere question. */
HONE_API int64_t hone_tensors_find(const hone_tensors *t, const char *name, hone_err *err);

/* Metadata, sorted by the bytes of the key. */
HONE_API size_t hone_tensors_metadata_count(const hone_tensors *t);
HONE_API const char *hone_tensors_metadata_key(const hone_tensors *t, size_t i);    /* NULL: i is out of range */
HONE_API const char *hone_tensors_metadata_value(const hone_tensors *t, size_t i);  /* NULL: i is out of range */
HONE_API const char *hone_tensors_metadata(const hone_tensors *t, const char *key); /* NULL: no such key */

/* Copies the elements of tensor i to `out` as they are (row-major, of info.type.dtype; any alignment). `bytes` is the
 * room at `out` and must be info.bytes exactly. Errors: HONE_E_ARG (no such tensor), HONE_E_SHAPE (another size),
 * HONE_E_UNSUPPORTED (a type, rank or dimension that hone cannot hold), HONE_E_FORMAT (a bool that is not 0 or 1),
 * HONE_E_IO. After an error the contents of `out` are unspecified. */
HONE_API hone_status hone_tensors_read(const hone_tensors *t, size_t i, void *out, size_t bytes, hone_err *err);

/* Reads tensor i, of type F32, F16, BF16 or F64, as n floats, n the number of its elements. F64 is rounded to nearest;
 * a finite F64 beyond the range of float is refused with HONE_E_NONFINITE. Infinities and NaN pass. Other errors as
 * for hone_tensors_read; HONE_E_SHAPE also for a type of integers. */
HONE_API hone_status hone_tensors_read_f32(const hone_tensors *t, size_t i, float *out, size_t n, hone_err *err);

/* A tensor to write. All is borrowed for the call. Nullable: data, if there are no elements. */
typedef struct hone_tensor_source {
    const char *name; /* UTF-8, 0 to HONE_TENSOR_NAME_MAX bytes, not "__metadata__" */
    hone_type type;
    const void *data; /* row-major, any alignment */
} hone_tensor_source;

typedef struct hone_metadata {
    const char *key, *value; /* UTF-8; the key at most HONE_TENSOR_NAME_MAX bytes */
} hone_metadata;

/* Writes a file of n tensors and n_metadata pairs. Tensors are laid out by falling size of their element, then by
 * name, metadata by key, and data begins at a multiple of 8, so every tensor is aligned to its element and equal input
 * gives equal files whatever its order.
 *
 * The file appears whole or not at all: it is written to a temporary name in the same folder, synced, and renamed over
 * `path`; then the folder is synced. A failure before the rename leaves the old file as it was and no temporary one
 * (a killed process may leave one, named `.<file>.<number>-<number>.tmp`). Should the last sync alone fail, the new
 * file is in place and the HONE_E_IO says so. An old file's permissions are kept. A symbolic link at `path` is
 * replaced, not followed. Errors: HONE_E_ARG (a bad or repeated name, a bad path), HONE_E_SHAPE, HONE_E_FORMAT (a bool
 * that is not 0 or 1), HONE_E_UNSUPPORTED (a header above 100,000,000 bytes), HONE_E_IO, HONE_E_NOMEM. */
HONE_API hone_status hone_tensors_write(hone_ctx *ctx, const char *path, const hone_tensor_source *tensors, size_t n,
                                        const hone_metadata *metadata, size_t n_metadata, hone_err *err);

/* ------------------------------------------------------------------ stores as files */

/* Reads every tensor of the store's layout from `t`, there named prefix + name. All names, shapes and types are checked
 * before the first byte is read: a tensor that is missing, of another shape, or that stands in the file under the
 * prefix and not in the layout is refused with the nearest name or both shapes, and the store is as it was. A failure
 * to read afterwards leaves it unspecified. Nullable: prefix (""). */
HONE_API hone_status hone_store_load(hone_store *s, const hone_tensors *t, const char *prefix, hone_err *err);

/* Writes every tensor of the store as prefix + name, f32, as hone_tensors_write does. Nullable: prefix, metadata. */
HONE_API hone_status hone_store_save(const hone_store *s, const char *path, const char *prefix,
                                     const hone_metadata *metadata, size_t n_metadata, hone_err *err);

#ifdef __cplusplus
}
#endif
#endif
