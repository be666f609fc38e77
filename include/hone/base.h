/* hone/base.h: status, errors and the context that everything hangs on.
 *
 * hone has no global state: memory, log and settings belong to a hone_ctx that the caller makes, so any number of
 * them live in one process. No function prints, exits or aborts for a mistake of the user's or of the world's: it
 * says what went wrong in a hone_err that the caller owns. */
#ifndef HONE_BASE_H
#define HONE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HONE_API          __attribute__((visibility("default")))
#define HONE_CHECKED      __attribute__((warn_unused_result))
#define HONE_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define HONE_API
#define HONE_CHECKED
#define HONE_PRINTF(f, a)
#endif

#define HONE_VERSION "0.1.0"

typedef enum hone_status {
    HONE_OK = 0,
    HONE_E_ARG,         /* an argument is out of its range, or a name is unknown */
    HONE_E_SHAPE,       /* shapes or types do not fit each other */
    HONE_E_CONFIG,      /* a setting is unknown, of the wrong type or out of range */
    HONE_E_NOMEM,       /* no memory, or more than the budget */
    HONE_E_IO,          /* the file system said no */
    HONE_E_FORMAT,      /* a file does not hold what it claims */
    HONE_E_DEVICE,      /* a device or a library below hone refused */
    HONE_E_UNSUPPORTED, /* right, but this build or device cannot */
    HONE_E_NONFINITE,   /* a NaN or an infinity where a number was wanted */
    HONE_E_STATE,       /* a call out of order */
    HONE_E_BUSY         /* another program is using the store */
} hone_status;

/* The first failure stays: a function that is handed an hone_err already set does nothing and returns its code (or
 * NULL), so set-up code is a straight line with one check at the end. Start from `hone_err err = {0};`.
 * Every `hone_err *` parameter of the library is nullable; then the text is lost and only the status is told. */
typedef struct hone_err {
    hone_status code;
    char where[96]; /* the layer, file or function concerned */
    char text[384]; /* what was wanted, what was got */
} hone_err;

/* "shape", "nomem" ...; never NULL. */
HONE_API const char *hone_status_name(hone_status code);

/* Where memory comes from. `alloc` returns storage for any object (as malloc), or NULL; `release` takes it back.
 * Both may be called from several threads at once. */
typedef struct hone_allocator {
    void *(*alloc)(void *user, size_t bytes);
    void (*release)(void *user, void *p);
    void *user;
} hone_allocator;

typedef enum hone_log_level { HONE_LOG_DEBUG, HONE_LOG_INFO, HONE_LOG_WARN } hone_log_level;

/* Receives one line without its newline. May be called from any thread that uses the context. */
typedef void (*hone_log_fn)(void *user, hone_log_level level, const char *line);

/* All zero is a good default. */
typedef struct hone_ctx_options {
    const hone_allocator *allocator; /* Nullable: malloc and free */
    hone_log_fn log;                 /* Nullable: nothing is logged */
    void *log_user;
    int threads;          /* cores that hone may use; 0: all that this process may run on */
    size_t memory_budget; /* bytes that programs and stores may plan for together; 0: the machine's memory */
} hone_ctx_options;

typedef struct hone_ctx hone_ctx;

/* Nullable: options. Owns: the result, freed by hone_ctx_destroy after all that was made with it.
 * Thread: a context may be shared by threads; the objects made with it say their own rules. */
HONE_API hone_ctx *hone_ctx_create(const hone_ctx_options *options, hone_err *err);
HONE_API void hone_ctx_destroy(hone_ctx *ctx);

/* Counters since the context was made; a caller proves with them that a loop allocates nothing. */
typedef struct hone_mem_stats {
    uint64_t allocations; /* calls that asked for memory */
    size_t live_bytes;    /* asked for and not yet given back */
    size_t peak_bytes;    /* the most that live_bytes has been */
    size_t planned_bytes; /* reserved by stores and programs out of memory_budget */
} hone_mem_stats;

HONE_API hone_mem_stats hone_ctx_mem(const hone_ctx *ctx);
HONE_API int hone_ctx_threads(const hone_ctx *ctx);

#ifdef __cplusplus
}
#endif
#endif
