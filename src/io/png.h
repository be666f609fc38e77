/* Pictures as PNG files. */
#ifndef IO_PNG_H
#define IO_PNG_H

#include "hone/base.h"

/* Is libpng in this build? Without it the functions below give HONE_E_UNSUPPORTED. */
bool io_png_here(void);

/* width * height pixels of 3 bytes (red, green, blue), rows from the top down, to a PNG file in memory: *bytes, *n
 * long. Owns: *bytes, freed by mem_free of the context. HONE_E_ARG for a size that is not 1 to 32768 on both sides. */
hone_status io_png_encode(hone_ctx *ctx, int width, int height, const uint8_t *rgb, uint8_t **bytes, size_t *n,
                          hone_err *err);

/* The same into a file, which appears whole or not at all. */
hone_status io_png_write(hone_ctx *ctx, const char *path, int width, int height, const uint8_t *rgb, hone_err *err);

#endif
