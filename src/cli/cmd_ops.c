/* hone ops [NAME]: the table of operations, with its holes. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"
#include "graph/backend.h"

/* Of how many of its test cases a device takes the operation as it is. */
static int taken(const struct bk_def *d, const struct op_def *op)
{
    int n = 0;
    for (int i = 0; i < op->n_cases; i++) {
        hone_type out[OP_MAX_OUT] = {{HONE_F32, {0, {0}}}};
        struct op_call c = {op, op->cases[i].n_in, op->n_out, op->cases[i].in, NULL, op->cases[i].attr, NULL};
        if (op->shape(&c, out, NULL) != HONE_OK)
            continue;
        c.out = out;
        n += d->find(&c) != NULL;
    }
    return n;
}

static const char *column(const struct bk_def *d, const struct op_def *op)
{
    if (op->flags & (OP_SOURCE | OP_EFFECT))
        return "executor";
    int n = taken(d, op);
    return n == op->n_cases      ? "kernel"
           : n > 0               ? "some"
           : op->flags & OP_VIEW ? "view"
           : op->expand          ? "expanded"
                                 : "HOLE";
}

static const char *gradient(const struct op_def *op)
{
    return op->grad ? "yes" : op->expand ? "expanded" : "none";
}

static void line(const struct op_def *op, bool markdown)
{
    printf(markdown ? "| `%s` | %s | %s |" : "%-20s %-52.52s %-9s", op->name, op->math, gradient(op));
    for (int i = 0; bk_table[i]; i++)
        printf(markdown ? " %s |" : " %-9s", column(bk_table[i], op));
    printf(markdown ? " %s |\n" : " %s\n", op->onnx ? op->onnx : "-");
}

static void table(bool markdown)
{
    printf(
        markdown
            ? "# Operations\n\nMade by `hone ops --markdown`. A gradient or a device's column that is \"expanded\" "
              "goes "
              "through simpler\noperations; \"some\" means that a kernel takes some uses and the rest is expanded.\n\n"
              "| operation | formula | gradient |"
            : "%-20s %-52s %-9s",
        "operation", "formula", "gradient");
    for (int i = 0; bk_table[i]; i++)
        printf(markdown ? " %s |" : " %-9s", bk_table[i]->name);
    printf(markdown ? " ONNX |\n| --- | --- | --- |" : " onnx\n");
    for (int i = 0; markdown && bk_table[i]; i++)
        printf(" --- |");
    printf(markdown ? " --- |\n" : "");
    for (int i = 0; op_table[i]; i++)
        line(op_table[i], markdown);
}

static void one(const struct op_def *op)
{
    printf("%s: %s\n", op->name, op->math);
    printf("  operands    %d to %d, results %d\n", op->min_in, op->max_in, op->n_out);
    printf("  attributes  %s%s%s\n", op->attr_i ? op->attr_i : "", op->attr_i && op->attr_f ? ", " : "",
           op->attr_f   ? op->attr_f
           : op->attr_i ? ""
                        : "none");
    printf("  gradient    %s\n", op->grad ? "of its own" : op->no_grad);
    printf("  expansion   %s\n", op->expand ? "into simpler operations" : op->no_expand);
    printf("  onnx        %s\n", op->onnx ? op->onnx : op->no_onnx);
    for (int i = 0; bk_table[i]; i++)
        printf("  %-11s %s (%d of %d cases)\n", bk_table[i]->name, column(bk_table[i], op), taken(bk_table[i], op),
               op->n_cases);
}

int cmd_ops(int argc, char **argv)
{
    bool markdown = false;
    const struct cli_flag flags[] = {{.name = "markdown", .doc = "as a page of the documentation", .on = &markdown}};
    const struct cli_verb verb = {"ops", "[NAME]", "The table of operations, or one of them.", flags, 1, 0, 1};
    const char *name;
    int n, code;
    struct text_near near;
    if (!cli_parse(&verb, argc, argv, &name, &n, &code))
        return code;
    if (n == 0) {
        table(markdown);
        return CLI_OK;
    }
    text_near_start(&near, name);
    for (int i = 0; op_table[i]; i++) {
        if (text_same_name(op_table[i]->name, name)) {
            one(op_table[i]);
            return CLI_OK;
        }
        text_near_try(&near, op_table[i]->name);
    }
    fprintf(stderr, "hone: there is no operation \"%s\"%s%s%s\n", name, near.best ? "; did you mean \"" : "",
            near.best ? near.best : "", near.best ? "\"?" : "");
    return CLI_USAGE;
}
