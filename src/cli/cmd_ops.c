/* hone ops [NAME]: the table of operations, with its holes. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"
#include "graph/backend.h"

/* How the operations are built, from their lines of ops.def. */
static const struct {
    const char *name, *how;
} builders[] = {
#define HONE_OP(name, args)      {#name, "hone_t hone_" #name #args},
#define HONE_OP_MANY(name, args) {#name, "void hone_" #name #args},
#define HONE_OP_INNER(name)
#include "hone/ops.def"
#undef HONE_OP
#undef HONE_OP_MANY
#undef HONE_OP_INNER
};

/* What a device does with the test cases of an operation. */
struct taken {
    int cases, kernel, host; /* the rest is expanded, or a view */
};

static struct taken taken(const struct bk_def *d, const struct op_def *op)
{
    struct taken t = {0};
    for (int i = 0; i < op->n_cases; i++) {
        hone_type out[OP_MAX_OUT] = {{HONE_F32, {0, {0}}}};
        struct op_call c = {op, op->cases[i].n_in, op->n_out, op->cases[i].in, NULL, op->cases[i].attr, NULL};
        if (op->shape(&c, out, NULL) != HONE_OK)
            continue;
        c.out = out;
        const struct bk_kernel *k = d->find(&c);
        if (k && !strcmp(k->op, "nothing")) /* results without elements say nothing of a device */
            continue;
        t.cases++;
        t.host += k && !strcmp(k->op, "host");
        t.kernel += k && strcmp(k->op, "host") != 0;
    }
    return t;
}

static const char *column(const struct bk_def *d, const struct op_def *op)
{
    if (op->flags & (OP_SOURCE | OP_EFFECT))
        return "executor";
    const struct taken t = taken(d, op);
    const bool rest = op->expand || op->flags & OP_VIEW;
    if (t.kernel == t.cases && t.cases)
        return "kernel";
    if (t.kernel + t.host < t.cases && !rest)
        return "HOLE";
    if (t.kernel > 0)
        return "partly";
    return t.host > 0 ? "host" : op->expand ? "expanded" : "view";
}

static const char *gradient(const struct op_def *op)
{
    return op->grad ? "yes" : op->expand ? "expanded" : "none";
}

static const char about[] = "Gradient: of its own (yes), or through the expansion into simpler operations.\n"
                            "Devices, by the test cases of the operation: kernel: takes them all; partly: some; "
                            "expanded: the simpler operations\n"
                            "run; view: no copy is made; executor: done by the program itself; host: the host must "
                            "help out; HOLE: cannot run.\n";

static void line(const struct op_def *op, bool markdown)
{
    printf(markdown ? "| `%s` | %s | %s |" : "%-20s %-60.60s %-9s", op->name, op->math, gradient(op));
    for (int i = 0; bk_table[i]; i++)
        printf(markdown ? " %s |" : " %-9s", column(bk_table[i], op));
    if (markdown)
        printf(" %s | %s |\n", op->onnx ? op->onnx : "-", op->expand ? "yes" : op->no_expand);
    else
        printf(" %s\n", op->onnx ? op->onnx : "-");
}

static void table(bool markdown)
{
    printf(markdown ? "# Operations\n\nMade by `hone ops --markdown`; `hone ops NAME` tells more of one.\n\n%s\n"
                    : "%s\n",
           about);
    printf(markdown ? "| operation | formula | gradient |" : "%-20s %-60s %-9s", "operation", "formula", "gradient");
    for (int i = 0; bk_table[i]; i++)
        printf(markdown ? " %s |" : " %-9s", bk_table[i]->name);
    printf(markdown ? " ONNX | expansion |\n| --- | --- | --- |" : " onnx\n");
    for (int i = 0; markdown && bk_table[i]; i++)
        printf(" --- |");
    printf(markdown ? " --- | --- |\n" : "");
    for (int i = 0; op_table[i]; i++)
        line(op_table[i], markdown);
}

static void one(const struct op_def *op)
{
    const char *how = "made by other operations";
    for (size_t i = 0; i < sizeof builders / sizeof *builders; i++)
        if (!strcmp(builders[i].name, op->name))
            how = builders[i].how;
    printf("%s: %s\n  built by    %s\n", op->name, op->math, how);
    printf("  operands    %d", op->min_in);
    if (op->max_in != op->min_in)
        printf(" to %d", op->max_in);
    printf(", results %d\n", op->n_out);
    printf("  attributes  %s%s%s\n", op->attr_i ? op->attr_i : "", op->attr_i && op->attr_f ? "; " : "",
           op->attr_f   ? op->attr_f
           : op->attr_i ? ""
                        : "none");
    printf("  gradient    %s\n", op->grad ? "of its own" : op->no_grad);
    printf("  expansion   %s\n", op->expand ? "into simpler operations" : op->no_expand);
    printf("  onnx        %s\n", op->onnx ? op->onnx : op->no_onnx);
    for (int i = 0; bk_table[i]; i++) {
        const struct taken t = taken(bk_table[i], op);
        printf("  %-11s %s", bk_table[i]->name, column(bk_table[i], op));
        if (t.cases)
            printf("; kernels take %d of %d cases", t.kernel, t.cases);
        if (t.host)
            printf(", the host %d", t.host);
        printf("\n");
    }
}

int cmd_ops(int argc, char **argv)
{
    bool markdown = false;
    const struct cli_flag flags[] = {{.name = "markdown", .doc = "as a page of the documentation", .on = &markdown}};
    const struct cli_verb verb = {"ops", "[NAME]", "The table of operations, or all about one of them.", flags, 1,
                                  0,     1};
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
