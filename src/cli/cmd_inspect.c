/* hone inspect FILE: names, types, shapes and sizes of a file of tensors, and its metadata. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "hone/io.h"

/* Text of a file, on one line and without what would command the terminal: control characters and backslashes as
 * \xNN. Returns its width. */
static int put(const char *s)
{
    int width = 0;
    for (const unsigned char *c = (const unsigned char *)s; *c; c++) {
        const bool c1 = *c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0; /* U+0080 to U+009F */
        if (*c < 0x20 || *c == 0x7f || *c == '\\' || c1) {
            width += printf("\\x%02x", c1 ? *++c : *c);
        } else {
            putchar(*c);
            width += (*c & 0xc0) != 0x80;
        }
    }
    return width;
}

static void print_tensor(const hone_tensor_info *t)
{
    char shape[128];
    if (t->type.shape.rank >= 0)
        hone_shape_text(&t->type.shape, shape, sizeof shape);
    else
        snprintf(shape, sizeof shape, "(%" PRIu64 " dimensions)", t->rank);
    const int width = put(t->name);
    printf("%*s %-8s %-20s %" PRIu64 "\n", width < 48 ? 48 - width : 0, "", t->file_dtype, shape, t->bytes);
}

static void print_file(const hone_tensors *t)
{
    const size_t n = hone_tensors_count(t);
    uint64_t bytes = 0;
    double elements = 0;
    for (size_t i = 0; i < hone_tensors_metadata_count(t); i++) {
        printf("# ");
        put(hone_tensors_metadata_key(t, i));
        printf(" = ");
        put(hone_tensors_metadata_value(t, i));
        printf("\n");
    }
    for (size_t i = 0; i < n; i++) {
        const hone_tensor_info info = hone_tensors_at(t, i);
        print_tensor(&info);
        bytes += info.bytes;
        elements += info.type.shape.rank >= 0 ? (double)hone_numel(&info.type.shape) : 0;
    }
    printf("%zu tensor%s, %.0f elements, %" PRIu64 " bytes\n", n, n == 1 ? "" : "s", elements, bytes);
}

int cmd_inspect(int argc, char **argv)
{
    static const struct cli_verb verb = {
        "inspect",
        "FILE",
        "What a safetensors file holds: metadata (#), then name, type, shape and bytes "
        "of each tensor in the order of\nits data.",
        NULL,
        0,
        1,
        1};
    const char *file;
    int n, code;
    hone_err err = {0};
    if (!cli_parse(&verb, argc, argv, &file, &n, &code))
        return code;
    hone_ctx *ctx = hone_ctx_create(NULL, &err);
    hone_tensors *t = ctx ? hone_tensors_open(ctx, file, &err) : NULL;
    if (t)
        print_file(t);
    hone_tensors_close(t);
    hone_ctx_destroy(ctx);
    return err.code == HONE_OK ? CLI_OK : cli_fail(&err);
}
