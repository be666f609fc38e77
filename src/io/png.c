/* Pictures, through the simplified interface of libpng 1.6, which needs no setjmp. */
#include "io/png.h"

#include "base/ctx.h"
#include "base/err.h"
#include "io/file.h"

#ifdef HONE_PNG
#include <png.h>

bool io_png_here(void)
{
    return true;
}

/* Bytes that the file cannot exceed: rows with their filter byte, stored without compression in blocks of 16 KiB and
 * less, and chunks around them. libpng fills the file in memory and fails if there is no room. */
static size_t most_bytes(int width, int height)
{
    size_t raw = (size_t)height * (3 * (size_t)width + 1);
    return raw + raw / 512 + 4096;
}

hone_status io_png_encode(hone_ctx *ctx, int width, int height, const uint8_t *rgb, uint8_t **bytes, size_t *n,
                          hone_err *err)
{
    if (err_is(err))
        return err->code;
    if (width < 1 || height < 1 || width > 32768 || height > 32768)
        return err_set(err, HONE_E_ARG, "png", "a picture is 1 to 32768 pixels wide and high; got %d x %d", width,
                       height);
    png_alloc_size_t size = most_bytes(width, height);
    uint8_t *out = mem_alloc(&ctx->mem, size);
    if (!out)
        return err_set(err, HONE_E_NOMEM, "png", "no memory for a picture of %d x %d", width, height);
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = PNG_FORMAT_RGB};
    if (!png_image_write_to_memory(&image, out, &size, 0, rgb, 3 * width, NULL)) {
        mem_free(&ctx->mem, out);
        return err_set(err, HONE_E_DEVICE, "png", "libpng: %s", image.message);
    }
    *bytes = out;
    *n = size;
    return HONE_OK;
}

#else

bool io_png_here(void)
{
    return false;
}

hone_status io_png_encode(hone_ctx *ctx, int width, int height, const uint8_t *rgb, uint8_t **bytes, size_t *n,
                          hone_err *err)
{
    (void)ctx;
    (void)width;
    (void)height;
    (void)rgb;
    (void)bytes;
    (void)n;
    return err_set(err, HONE_E_UNSUPPORTED, "png", "this build has no libpng");
}

#endif

hone_status io_png_write(hone_ctx *ctx, const char *path, int width, int height, const uint8_t *rgb, hone_err *err)
{
    uint8_t *bytes;
    size_t n;
    struct file_out f;
    hone_status st = io_png_encode(ctx, width, height, rgb, &bytes, &n, err);
    if (st)
        return st;
    st = file_out_open(&f, &ctx->mem, path, err);
    if (st == HONE_OK) {
        file_out_write(&f, bytes, n);
        st = file_out_commit(&f);
    }
    mem_free(&ctx->mem, bytes);
    return st;
}
