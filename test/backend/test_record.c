/* The device "record": the same bits as the CPU, what it writes, and which uses it maps. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/record/record.h"
#include "backend/record_kit.h"
#include "graph/kit.h"

/* kit_open with another device. */
static void open_kit(struct kit *k, const hone_ctx_options *o, const char *device)
{
    memset(k, 0, sizeof *k);
    k->ctx = hone_ctx_create(o, &k->err);
    k->cpu = hone_device_open(k->ctx, device, &k->err);
}

static hone_t parameter(hone_graph *g, hone_layout *l, const char *name, hone_shape s)
{
    int i = hone_layout_add(l, name, s, HONE_GROUP_DECAY, (hone_init){HONE_INIT_NORMAL, 0.3f}, &g->err);
    return i < 0 ? (hone_t){g, -1} : hone_read(g, "param", l, i);
}

/* A signal x [2,3,8] through a convolution and a dense layer, sum of squares, and the gradients of all parameters. */
static hone_graph *net(struct kit *k, hone_layout *l, bool gradient)
{
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    if (!g)
        return NULL;
    hone_t x = hone_input(g, "x", HONE_F32, HONE_SHAPE(2, 3, 8));
    hone_scope_push(g, "net");
    hone_t p[4] = {parameter(g, l, "conv/weight", HONE_SHAPE(4, 3, 5)), parameter(g, l, "conv/bias", HONE_SHAPE(4)),
                   parameter(g, l, "out/weight", HONE_SHAPE(2, 8)), parameter(g, l, "out/bias", HONE_SHAPE(2))};
    hone_t h = hone_silu(hone_conv1d(x, p[0], p[1], 1, 2, 1));
    hone_t y = hone_linear(h, p[2], p[3]);
    hone_t loss = hone_sum(hone_mul(y, y), HONE_AXES_ALL, false);
    hone_scope_pop(g);
    hone_output(y, "y");
    hone_output(loss, "loss");
    if (gradient) {
        hone_t dp[4];
        hone_gradients(loss, p, 4, dp);
        for (int i = 0; i < 4; i++)
            hone_write(dp[i], "grad", l, i);
    }
    return g;
}

static void input(float x[48])
{
    for (int i = 0; i < 48; i++)
        x[i] = (float)(i * 37 % 48 - 24) / 16;
}

struct result {
    float y[2 * 4 * 2], loss, grad[512];
};

/* Two runs of the net on a device. */
static void run_net(struct check *c, const char *device, struct result *r)
{
    struct kit k;
    open_kit(&k, NULL, device);
    hone_layout *l = hone_layout_create(k.ctx, &k.err);
    hone_graph *g = net(&k, l, true);
    hone_store *param = hone_store_create(k.ctx, l, &k.err), *grad = hone_store_create(k.ctx, l, &k.err);
    hone_store_init(param, 3, &k.err);
    hone_program *p = hone_compile(k.cpu, g, NULL, &k.err);
    float x[48];
    input(x);
    for (int run = 0; run < 2; run++)
        CHECK_MSG(c, kit_run(&k, p, (const void *[]){x}, (hone_store *[]){param, grad}, 1), "%s: %s", k.err.where,
                  k.err.text);
    memset(r, 0, sizeof *r);
    if (p && k.err.code == HONE_OK) {
        memcpy(r->y, hone_result(p, 0), sizeof r->y);
        memcpy(&r->loss, hone_result(p, 1), sizeof r->loss);
        for (int i = 0, at = 0; i < hone_layout_count(l); i++) {
            const hone_shape s = hone_layout_shape(l, i);
            memcpy(r->grad + at, hone_store_get(grad, i), (size_t)hone_numel(&s) * sizeof(float));
            at += (int)hone_numel(&s);
        }
        const char *text = hone_device_transcript(k.cpu);
        CHECK(c, !text == !strcmp(device, "cpu"));
        if (text) {
            CHECK(c, record_check(c, text) >= 2 * 8);
            CHECK_MSG(c, !strstr(text, "\nhost "), "%s", text);
        }
    }
    hone_program_destroy(p);
    hone_graph_destroy(g);
    hone_store_destroy(param);
    hone_store_destroy(grad);
    hone_layout_destroy(l);
    kit_close(&k, c);
}

static void same_bits(struct check *c)
{
    struct result cpu, record;
    run_net(c, "cpu", &cpu);
    run_net(c, "record", &record);
    CHECK(c, cpu.loss != 0);
    CHECK(c, !memcmp(&cpu, &record, sizeof cpu));
}

/* --- the golden text --- */

/* `make test` stands in the root of the project. HONE_GOLDEN=write rewrites the file instead of comparing; read the
 * difference before committing it. */
#define GOLDEN "test/golden/record/net.txt"

/* Operations as they stand, gradients among them: it does not change with what differentiation builds. */
static hone_graph *listed(struct kit *k, hone_layout *l)
{
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t x = hone_input(g, "x", HONE_F32, HONE_SHAPE(2, 3, 8)),
           dy = hone_input(g, "dy", HONE_F32, HONE_SHAPE(2, 4, 8));
    hone_scope_push(g, "net");
    hone_t w = parameter(g, l, "conv/weight", HONE_SHAPE(4, 3, 5)), b = parameter(g, l, "conv/bias", HONE_SHAPE(4));
    hone_t v = parameter(g, l, "out/weight", HONE_SHAPE(2, 8)), c = parameter(g, l, "out/bias", HONE_SHAPE(2));
    hone_t y = hone_linear(hone_silu(hone_conv1d(x, w, b, 1, 2, 1)), v, c);
    hone_output(hone_sum(hone_affine(y, 0.5, 1), HONE_AXES_ALL, false), "y");
    hone_output(hone_matmul(dy, y, true, false), "z");
    const struct op_attr taps = {.i = {1, 2, 1, 5}}, length = {.i = {1, 2, 1, 8}};
    hone_output(op_emit(op_find("conv1d_data_grad"), 2, (hone_t[]){dy, w}, &length, NULL), "dx");
    hone_write(op_emit(op_find("conv1d_weight_grad"), 2, (hone_t[]){x, dy}, &taps, NULL), "grad", l, 0);
    hone_scope_pop(g);
    return g;
}

static void golden(struct check *c)
{
    struct kit k;
    open_kit(&k, &(hone_ctx_options){.threads = 1}, "record");
    hone_layout *l = hone_layout_create(k.ctx, &k.err);
    hone_graph *g = listed(&k, l);
    hone_store *param = hone_store_create(k.ctx, l, &k.err), *grad = hone_store_create(k.ctx, l, &k.err);
    hone_program *p = hone_compile(k.cpu, g, &(hone_compile_options){.plain = true}, &k.err);
    float x[48], dy[64] = {1};
    input(x);
    CHECK_MSG(c, kit_run(&k, p, (const void *[]){x, dy}, (hone_store *[]){param, grad}, 1), "%s", k.err.text);
    hone_program_destroy(p);
    const char *text = hone_device_transcript(k.cpu), *mode = getenv("HONE_GOLDEN");
    FILE *f = fopen(GOLDEN, mode && !strcmp(mode, "write") ? "w" : "r");
    if (CHECK_MSG(c, f != NULL, "%s", GOLDEN) && mode && !strcmp(mode, "write")) {
        fputs(text, f);
    } else if (f) {
        char line[4096];
        int n = 0;
        const char *at = text;
        for (n = 1; fgets(line, sizeof line, f); n++, at += strlen(line))
            if (!CHECK_MSG(c, !strncmp(at, line, strlen(line)),
                           "%s:%d: wants %s got  %.*s\nHONE_GOLDEN=write renews it", GOLDEN, n, line,
                           (int)strcspn(at, "\n"), at))
                break;
        CHECK_MSG(c, !feof(f) || *at == '\0', "%s ends at line %d; got more: %s", GOLDEN, n, at);
    }
    if (f)
        fclose(f);
    hone_graph_destroy(g);
    hone_store_destroy(param);
    hone_store_destroy(grad);
    hone_layout_destroy(l);
    kit_close(&k, c);
}

/* --- which uses are mapped --- */

static const struct {
    const char *op, *what; /* "mapped", "nothing", "host" or "expanded" */
    struct op_case k;
} uses[] = {
    {"add", "mapped", {"plain", 2, {OP_F32(2, 3), OP_F32(3)}}},
    {"add", "nothing", {"empty", 2, {OP_F32(0, 3), OP_F32(3)}}},
    {"sub", "mapped", {"plain", 2, {OP_F32(2, 3), OP_F32(2, 3)}}},
    {"mul", "mapped", {"scalar", 2, {OP_F32_SCALAR, OP_F32_SCALAR}}},
    {"affine", "mapped", {"plain", 1, {OP_F32(3)}, {.f = {2, 1}}}},
    {"silu", "mapped", {"rank 8", 1, {OP_F32(1, 2, 1, 2, 1, 2, 1, 2)}}},
    {"silu", "nothing", {"empty", 1, {OP_F32(2, 0)}}},
    {"sigmoid", "mapped", {"plain", 1, {OP_F32(3)}}},
    {"mish", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"relu", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"tanh", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"gelu", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"gelu_tanh", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"softplus", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"exp", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"log", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"sqrt", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"rsqrt", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"reciprocal", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"square", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"abs", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"sign", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"floor", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"erf", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"sin", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"cos", "mapped", {"scalar", 1, {OP_F32_SCALAR}}},
    {"div", "mapped", {"plain", 2, {OP_F32(2, 3), OP_F32(3)}}},
    {"maximum", "mapped", {"plain", 2, {OP_F32(2, 3), OP_F32(3)}}},
    {"minimum", "mapped", {"plain", 2, {OP_F32(2, 3), OP_F32(3)}}},
    {"equal", "mapped", {"plain", 2, {OP_F32(2, 3), OP_F32(3)}}},
    {"less", "mapped", {"plain", 2, {OP_F32(2, 3), OP_F32(3)}}},
    {"less_equal", "mapped", {"plain", 2, {OP_F32(2, 3), OP_F32(3)}}},
    {"greater", "mapped", {"plain", 2, {OP_F32(2, 3), OP_F32(3)}}},
    {"greater_equal", "mapped", {"plain", 2, {OP_F32(2, 3), OP_F32(3)}}},
    {"logical_and", "mapped", {"masks", 2, {OP_BOOL(3), OP_BOOL(3)}}},
    {"logical_or", "mapped", {"masks", 2, {OP_BOOL(3), OP_BOOL(3)}}},
    {"logical_not", "mapped", {"masks", 1, {OP_BOOL(3)}}},
    {"pow_scalar", "mapped", {"plain", 1, {OP_F32(3)}, {.f = {2}}}},
    {"clamp", "mapped", {"plain", 1, {OP_F32(3)}, {.f = {-1, 1}}}},
    {"where", "mapped", {"plain", 3, {OP_BOOL(3), OP_F32(2, 3), OP_F32_SCALAR}}},
    {"cast", "mapped", {"image", 1, {OP_U8(3)}, {.i = {HONE_F32}}}},
    {"sum", "mapped", {"plain", 1, {OP_F32(2, 3)}, {.i = {1, 0}}}},
    {"sum", "mapped", {"empty", 1, {OP_F32(0, 3)}, {.i = {1, 0}}}},
    {"sum", "nothing", {"empty rest", 1, {OP_F32(0, 3)}, {.i = {2, 0}}}},
    {"broadcast", "mapped", {"mask", 1, {OP_BOOL(1, 3)}, {.i = {2, 2, 3}}}},
    {"slice", "mapped", {"indices", 1, {OP_I32(2, 3)}, {.i = {1, 1, 1}}, .below = 3}},
    {"pad", "mapped", {"plain", 1, {OP_F32(2, 3)}, {.i = {0, 1, 1}}}},
    {"pad", "mapped", {"empty", 1, {OP_F32(2, 0)}, {.i = {1, 1, 1}}}},
    {"matmul", "mapped", {"matrices", 2, {OP_F32(2, 3), OP_F32(5, 3)}, {.i = {0, 1}}}},
    {"matmul", "mapped", {"rows", 2, {OP_F32(4, 7, 2, 3), OP_F32(3, 5)}}},
    {"matmul", "mapped", {"batch", 2, {OP_F32(4, 7, 3, 2), OP_F32(4, 7, 3, 5)}, {.i = {1, 0}}}},
    {"matmul", "mapped", {"one of many", 2, {OP_F32(2, 3), OP_F32(4, 7, 5, 3)}, {.i = {0, 1}}}},
    {"matmul", "mapped", {"broadcast", 2, {OP_F32(4, 1, 2, 3), OP_F32(7, 3, 5)}}},
    {"matmul", "host", {"broadcast, transposed", 2, {OP_F32(4, 1, 3, 2), OP_F32(7, 3, 5)}, {.i = {1, 0}}}},
    {"matmul", "host", {"broadcast, rank 7", 2, {OP_F32(2, 1, 1, 1, 1, 2, 3), OP_F32(7, 3, 5)}}},
    {"matmul", "host", {"nothing to sum", 2, {OP_F32(2, 0), OP_F32(0, 5)}}},
    {"linear", "mapped", {"bias", 3, {OP_F32(2, 7, 3), OP_F32(5, 3), OP_F32(5)}}},
    {"linear", "mapped", {"no bias", 2, {OP_F32(3), OP_F32(5, 3)}}},
    {"linear", "expanded", {"no inputs", 3, {OP_F32(2, 0), OP_F32(5, 0), OP_F32(5)}}},
    {"conv1d", "mapped", {"most", 2, {OP_F32(1, 1, 300), OP_F32(1, 1, 1)}, {.i = {63, 255, 255}}}},
    {"conv1d", "expanded", {"padding", 2, {OP_F32(1, 1, 300), OP_F32(1, 1, 1)}, {.i = {1, 256, 1}}}},
    {"conv1d", "expanded", {"dilation", 2, {OP_F32(1, 1, 300), OP_F32(1, 1, 1)}, {.i = {1, 0, 256}}}},
    {"conv1d", "expanded", {"stride", 2, {OP_F32(1, 1, 300), OP_F32(1, 1, 1)}, {.i = {64, 0, 1}}}},
    {"conv1d", "expanded", {"size", 2, {OP_F32(1, 1, 1000001), OP_F32(1, 1, 1)}, {.i = {1, 0, 1}}}},
    {"conv1d", "nothing", {"empty", 2, {OP_F32(0, 1, 8), OP_F32(1, 1, 1)}, {.i = {1, 0, 1}}}},
    {"conv1d_data_grad", "mapped", {"most", 2, {OP_F32(1, 1, 46), OP_F32(1, 1, 255)}, {.i = {1, 0, 1, 300}}}},
    {"conv1d_data_grad", "expanded", {"taps", 2, {OP_F32(1, 1, 45), OP_F32(1, 1, 256)}, {.i = {1, 0, 1, 300}}}},
    {"conv1d_weight_grad", "mapped", {"most", 2, {OP_F32(1, 1, 300), OP_F32(1, 1, 46)}, {.i = {1, 0, 1, 255}}}},
    {"conv1d_weight_grad", "expanded", {"taps", 2, {OP_F32(1, 1, 300), OP_F32(1, 1, 45)}, {.i = {1, 0, 1, 256}}}},
    {"conv1d_weight_grad", "expanded", {"no signals", 2, {OP_F32(0, 1, 8), OP_F32(0, 1, 8)}, {.i = {1, 0, 1, 1}}}},
};

static void takes(struct check *c)
{
    const struct bk_def *record = bk_table[1];
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
        const struct op_def *def = op_find(uses[i].op);
        hone_type out[OP_MAX_OUT] = {{0}};
        hone_err err = {0};
        struct op_call call = {def, uses[i].k.n_in, def->n_out, uses[i].k.in, NULL, uses[i].k.attr, NULL};
        CHECK_MSG(c, def->shape(&call, out, &err) == HONE_OK, "%s, %s: %s", def->name, uses[i].k.name, err.text);
        call.out = out;
        const struct bk_kernel *k = record->find(&call);
        const char *got = !k ? "expanded" : !strcmp(k->op, def->name) ? "mapped" : k->op;
        CHECK_MSG(c, !strcmp(got, uses[i].what), "%s, %s: %s, not %s", def->name, uses[i].k.name, got, uses[i].what);
    }
}

/* Every mapping is of an operation, and is tried above. */
static void complete(struct check *c)
{
    static const char *const maps[] = {
#define MAP(name) #name,
#include "backend/record/maps.def"
#undef MAP
    };
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        bool tried = false;
        CHECK_MSG(c, op_find(maps[i]) != NULL, "no operation \"%s\"", maps[i]);
        for (size_t k = 0; k < sizeof uses / sizeof uses[0]; k++)
            tried = tried || (!strcmp(uses[k].op, maps[i]) && !strcmp(uses[k].what, "mapped"));
        CHECK_MSG(c, tried, "no use of \"%s\" is tried", maps[i]);
    }
}

/* --- the bounded text --- */

static hone_program *small_program(struct kit *k)
{
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_output(hone_silu(hone_input(g, "x", HONE_F32, HONE_SHAPE(3))), "y");
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    hone_graph_destroy(g);
    return p;
}

static void bounded(struct check *c)
{
    struct kit k;
    const float x[3] = {1, 2, 3};
    open_kit(&k, NULL, "record");
    hone_program *p = small_program(&k);
    kit_run(&k, p, (const void *[]){x}, NULL, 0);
    const uint64_t before = hone_ctx_mem(k.ctx).allocations;
    int lines = 0;
    for (const char *s = hone_device_transcript(k.cpu); *s; s++)
        lines += *s == '\n';
    int runs = 1;
    for (; !strstr(hone_device_transcript(k.cpu), "dropped") && runs < 100000; runs += 100)
        for (int i = 0; i < 100; i++)
            kit_run(&k, p, (const void *[]){x}, NULL, 0);
    CHECK(c, k.err.code == HONE_OK && hone_ctx_mem(k.ctx).allocations == before);
    const char *text = hone_device_transcript(k.cpu), *last = strstr(text, "(full: ");
    CHECK(c, strlen(text) > RECORD_ROOM - 1024 && last && last[-1] == '\n');
    /* no line is lost: those that stand there and those that are counted are those of all runs */
    int kept = 0;
    for (const char *s = text; s < last; s++)
        kept += *s == '\n';
    const long counted = last ? strtol(last + 7, NULL, 10) : 0;
    CHECK_MSG(c, kept + counted == 1 + (long)(lines - 1) * runs, "%d kept, %ld counted, %d runs of %d", kept, counted,
              runs, lines - 1);
    record_check(c, text);
    hone_program_destroy(p);
    kit_close(&k, c);
}

/* Nothing is written behind a gap, though it would fit. */
static void no_gap(struct check *c)
{
    struct kit k;
    char line[1000];
    open_kit(&k, NULL, "record");
    memset(line, 'x', sizeof line);
    memcpy(line + sizeof line - 2, "\n", 2);
    while (!strstr(hone_device_transcript(k.cpu), "(full: 1 more "))
        record_write(k.cpu->dev, line);
    record_write(k.cpu->dev, "a\nb\n");
    const char *text = hone_device_transcript(k.cpu);
    CHECK(c, RECORD_ROOM - strlen(text) > 100 && !strstr(text, "\na\n") && strstr(text, "\n(full: 3 more lines "));
    kit_close(&k, c);
}

/* Room grows with the kernels that are prepared. */
static void grows(struct check *c)
{
    struct kit k;
    open_kit(&k, NULL, "record");
    hone_program *p[64];
    const size_t cap = k.cpu->dev->cap;
    for (int i = 0; i < 64; i++)
        p[i] = small_program(&k);
    CHECK(c, cap == RECORD_ROOM && k.cpu->dev->cap >= RECORD_ROOM + 64 * RECORD_ROOM_KERNEL);
    CHECK(c, strstr(hone_device_transcript(k.cpu), "aclrtMalloc(&slab63, ") != NULL);
    for (int i = 0; i < 64; i++)
        hone_program_destroy(p[i]);
    CHECK(c, strstr(hone_device_transcript(k.cpu), "aclrtFree(slab63)") != NULL);
    /* memory that is given out again has the number of its new slab */
    p[0] = small_program(&k);
    kit_run(&k, p[0], (const void *[]){(const float[3]){1}}, NULL, 0);
    CHECK(c, strstr(hone_device_transcript(k.cpu), "aclrtMemcpyAsync(slab64+") != NULL);
    CHECK(c, strstr(hone_device_transcript(k.cpu), "at slab64+") != NULL);
    hone_program_destroy(p[0]);
    kit_close(&k, c);
}

/* --- addresses and the host --- */

static void addresses(struct check *c)
{
    struct kit k;
    open_kit(&k, NULL, "record");
    hone_layout *l = hone_layout_create(k.ctx, &k.err);
    hone_graph *g = hone_graph_create(k.ctx, &k.err);
    hone_t x = hone_input(g, "x", HONE_F32, HONE_SHAPE(4, 3));
    hone_t w = parameter(g, l, "w", HONE_SHAPE(2, 3));
    hone_t rows = hone_slice(x, 0, 3, 1); /* a view, 36 bytes on: 4 beyond an aligned address */
    hone_output(hone_linear(rows, w, HONE_NONE), "y");
    hone_t a = hone_input(g, "a", HONE_F32, HONE_SHAPE(4, 1, 3, 2));
    hone_t b = hone_input(g, "b", HONE_F32, HONE_SHAPE(7, 3, 5));
    hone_scope_push(g, "far");
    hone_output(hone_matmul(a, b, true, false), "z");
    hone_scope_pop(g);
    hone_store *s = hone_store_create(k.ctx, l, &k.err);
    hone_program *p = hone_compile(k.cpu, g, NULL, &k.err);
    float fx[12] = {1}, fa[24] = {1}, fb[105] = {1};
    CHECK_MSG(c, kit_run(&k, p, (const void *[]){fx, fa, fb}, (hone_store *[]){s}, 0), "%s", k.err.text);
    const char *text = hone_device_transcript(k.cpu);
    CHECK_MSG(c, strstr(text, "self = ACL_FLOAT [1,3] strides [3,1] offset 1 ACL_FORMAT_ND storage [4] at slab0+"),
              "%s", text);
    CHECK_MSG(c, strstr(text, "mat2 = ACL_FLOAT [3,2] strides [1,3] offset 0 ACL_FORMAT_ND storage [6] at host\n"),
              "%s", text);
    CHECK_MSG(c, strstr(text, ", 48, host, 48, ACL_MEMCPY_HOST_TO_DEVICE, stream)\n"), "%s", text);
    CHECK_MSG(c, strstr(text, "\nhost matmul: far f32[4,1,3,2] f32[7,3,5] -> f32[4,7,2,5]\n"), "%s", text);
    CHECK(c, !strncmp(text, "aclrtMalloc(&slab0, ", 20) && strstr(text, "\naclrtSynchronizeStream(stream)\n"));
    hone_program_destroy(p);
    hone_graph_destroy(g);
    hone_store_destroy(s);
    hone_layout_destroy(l);
    kit_close(&k, c);
}

/* --- without memory, and in two threads --- */

static void no_memory(struct check *c)
{
    for (long n = 1; n < 400; n++) {
        struct failing f = {.countdown = n};
        const hone_allocator a = kit_failing(&f);
        struct kit k;
        open_kit(&k, &(hone_ctx_options){.allocator = &a}, "record");
        hone_layout *l = k.cpu ? hone_layout_create(k.ctx, &k.err) : NULL;
        hone_graph *g = l ? net(&k, l, true) : NULL;
        hone_program *p = g ? hone_compile(k.cpu, g, NULL, &k.err) : NULL;
        const bool done = p != NULL && f.countdown > 0;
        CHECK_MSG(c, p || k.err.code == HONE_E_NOMEM || (g && hone_graph_status(g, NULL) == HONE_E_NOMEM),
                  "call %ld: %s: %s", n, hone_status_name(k.err.code), k.err.text);
        hone_program_destroy(p);
        hone_graph_destroy(g);
        hone_layout_destroy(l);
        hone_device_close(k.cpu);
        hone_ctx_destroy(k.ctx);
        CHECK_MSG(c, f.live == 0, "call %ld: %ld blocks live", n, f.live);
        if (done)
            return;
    }
    CHECK_MSG(c, false, "%s", "never enough memory");
}

static void *runs(void *program)
{
    const float x[3] = {1, 2, 3};
    for (int i = 0; i < 50; i++) {
        hone_run(program, &(hone_run_args){.inputs = (const void *[]){x}}, NULL);
        hone_wait(program, NULL);
    }
    return NULL;
}

static void threads(struct check *c)
{
    struct kit k;
    open_kit(&k, NULL, "record");
    hone_program *p[2] = {small_program(&k), small_program(&k)};
    pthread_t other;
    CHECK(c, pthread_create(&other, NULL, runs, p[0]) == 0);
    runs(p[1]);
    pthread_join(other, NULL);
    CHECK(c, record_check(c, hone_device_transcript(k.cpu)) == 100);
    hone_program_destroy(p[0]);
    hone_program_destroy(p[1]);
    kit_close(&k, c);
}

void suite_record(struct check *c)
{
    static const struct {
        const char *name;
        void (*fn)(struct check *c);
    } cases[] = {{"a net and its gradient: the same bits as the cpu", same_bits},
                 {"golden text", golden},
                 {"which uses are mapped", takes},
                 {"every mapping is tried", complete},
                 {"the text is bounded, nothing is allocated", bounded},
                 {"nothing behind a gap", no_gap},
                 {"the text grows with the kernels", grows},
                 {"addresses, copies, the host", addresses},
                 {"without memory", no_memory},
                 {"two threads", threads}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (check_case(c, "%s", cases[i].name))
            cases[i].fn(c);
}
