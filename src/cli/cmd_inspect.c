/* hone inspect FILE: names, types, shapes and sizes of a file of tensors, and its metadata. */
#include <stdio.h>

#include "cli/cli.h"
#include "hone/io.h"

static void print_file(const hone_tensors *t)
{
    char shape[96];
    uint64_t bytes = 0;
    double elements = 0;
    for (size_t i = 0; i < hone_tensors_metadata_count(t); i++)
        printf("# %s = %s\n", hone_tensors_metadata_key(t, i), hone_tensors_metadata_value(t, i));
    for (size_t i = 0; i < hone_tensors_count(t); i++) {
        hone_tensor_info info = hone_tensors_at(t, i);
        printf("%-48s %-8s %-20s %llu\n", info.name, info.file_dtype,
               hone_shape_text(&info.type.shape, shape, sizeof shape), (unsigned long long)info.bytes);
        bytes += info.bytes;
        elements += (double)(info.type.shape.rank >= 0 ? hone_numel(&info.type.shape) : 0);
    }
    printf("%zu tensors, %.0f elements, %llu bytes\n", hone_tensors_count(t), elements, (unsigned long long)bytes);
}

int cmd_inspect(int argc, char **argv)
{
    static const struct cli_verb verb = {"inspect", "FILE", "What a safetensors file holds.", NULL, 0, 1, 1};
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
