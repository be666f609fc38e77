/* The device "record": the same bits as the CPU, and what it writes of a program. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/record/record.h"
#include "backend/record_kit.h"
#include "graph/kit.h"

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

/* Two runs of the net on a device. Without the passes: what they fuse for one device need not be what another has. */
static void run_net(struct check *c, const char *device, struct result *r)
{
    struct kit k;
    record_kit_open(&k, NULL, device);
    hone_layout *l = hone_layout_create(k.ctx, &k.err);
    hone_graph *g = net(&k, l, true);
    hone_store *param = hone_store_create(k.ctx, l, &k.err), *grad = hone_store_create(k.ctx, l, &k.err);
    hone_store_init(param, 3, &k.err);
    hone_program *p = hone_compile(k.cpu, g, &(hone_compile_options){.plain = true}, &k.err);
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
    record_kit_open(&k, &(hone_ctx_options){.threads = 1}, "record");
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
    record_kit_open(&k, NULL, "record");
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
    record_kit_open(&k, NULL, "record");
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
    record_kit_open(&k, NULL, "record");
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
    record_kit_open(&k, NULL, "record");
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
        record_kit_open(&k, &(hone_ctx_options){.allocator = &a}, "record");
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
    record_kit_open(&k, NULL, "record");
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
