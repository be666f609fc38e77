/* The device "record", operation by operation: which uses it maps, and what operators are told where they differ from
 * operations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/record/record.h"
#include "backend/record_kit.h"

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
    {"mish_grad", "mapped", {"scalar", 2, {OP_F32_SCALAR, OP_F32_SCALAR}}},
    {"silu_grad", "mapped", {"scalar", 2, {OP_F32_SCALAR, OP_F32_SCALAR}}},
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
    {"mean", "mapped", {"plain", 1, {OP_F32(2, 3)}, {.i = {1, 0}}}},
    {"mean", "mapped", {"scalar", 1, {OP_F32_SCALAR}, {.i = {HONE_AXES_ALL, 0}}}},
    {"amax", "mapped", {"plain", 1, {OP_F32(2, 3)}, {.i = {2, 1}}}},
    {"nonfinite", "mapped", {"plain", 1, {OP_F32(2, 3)}}},
    {"nonfinite", "host", {"empty", 1, {OP_F32(0)}}},
    {"softmax", "mapped", {"plain", 1, {OP_F32(2, 3)}, {.i = {1}}}},
    {"log_softmax", "mapped", {"plain", 1, {OP_F32(2, 3)}, {.i = {0}}}},
    {"softmax_grad", "mapped", {"plain", 2, {OP_F32(2, 3), OP_F32(2, 3)}, {.i = {1}}}},
    {"permute", "mapped", {"bytes", 1, {OP_U8(2, 3)}, {.i = {2, 1, 0}}}},
    {"concat", "mapped", {"empty part", 2, {OP_F32(2, 3), OP_F32(2, 0)}, {.i = {1}}}},
    {"gather", "mapped", {"plain", 2, {OP_F32(5, 3), OP_I32(2, 2)}, .below = 5}},
    {"gather", "mapped", {"one", 2, {OP_F32(5), OP_I32(1)}, .below = 5}},
    {"gather", "host", {"rank 8", 2, {OP_F32(5), OP_I32(1, 1, 1, 1, 1, 1, 1, 2)}, .below = 5}},
    {"scatter_add", "mapped", {"plain", 3, {OP_F32(5, 3), OP_I32(2), OP_F32(2, 3)}, .below = 5}},
    {"scatter_add", "mapped", {"nothing", 3, {OP_F32(5, 3), OP_I32(0), OP_F32(0, 3)}, .below = 5}},
    {"group_norm", "mapped", {"signal", 3, {OP_F32(2, 4, 3), OP_F32(4), OP_F32(4)}, {.i = {2}, .f = {1e-5}}}},
    {"group_norm", "expanded", {"no signal", 3, {OP_F32(2, 4, 0), OP_F32(4), OP_F32(4)}, {.i = {2}, .f = {1e-5}}}},
    {"group_norm_grad",
     "mapped",
     {"most", 5, {OP_F32(1, 8000), OP_F32(1, 8000), OP_F32(8000), OP_F32(1, 1), OP_F32(1, 1)}}},
    {"group_norm_grad",
     "expanded",
     {"channels", 5, {OP_F32(1, 8001), OP_F32(1, 8001), OP_F32(8001), OP_F32(1, 1), OP_F32(1, 1)}}},
    {"layer_norm", "mapped", {"rows", 2, {OP_F32(2, 3), OP_F32(3)}, {.f = {1e-5}}}},
    {"layer_norm", "expanded", {"nothing", 1, {OP_F32(2, 0)}, {.f = {1e-5}}}},
    {"layer_norm_grad", "mapped", {"rows", 5, {OP_F32(2, 3), OP_F32(2, 3), OP_F32(2, 1), OP_F32(2, 1), OP_F32(3)}}},
    {"layer_norm_grad", "mapped", {"no gamma", 4, {OP_F32(2, 3), OP_F32(2, 3), OP_F32(2, 1), OP_F32(2, 1)}}},
    {"rms_norm", "mapped", {"rows", 2, {OP_F32(2, 3), OP_F32(3)}, {.f = {1e-5}}}},
    {"rms_norm", "expanded", {"no gamma", 1, {OP_F32(2, 3)}, {.f = {1e-5}}}},
    {"attention", "mapped", {"plain", 3, {OP_F32(2, 2, 3, 4), OP_F32(2, 2, 5, 4), OP_F32(2, 2, 5, 4)}, {.f = {0.5}}}},
    {"attention",
     "expanded",
     {"width", 3, {OP_F32(1, 1, 1, 769), OP_F32(1, 1, 1, 769), OP_F32(1, 1, 1, 769)}, {.f = {0.5}}}},
    {"attention",
     "expanded",
     {"heads", 3, {OP_F32(1, 257, 1, 1), OP_F32(1, 257, 1, 1), OP_F32(1, 257, 1, 1)}, {.f = {0.5}}}},
    {"attention_grad",
     "expanded",
     {"plain", 4, {OP_F32(1, 1, 3, 4), OP_F32(1, 1, 3, 4), OP_F32(1, 1, 5, 4), OP_F32(1, 1, 5, 4)}, {.f = {0.5}}}},
    {"adamw",
     "mapped",
     {"plain", 6, {OP_F32(3), OP_F32(3), OP_F32(3), OP_F32(3), OP_F32(1), OP_F32(1)}, {.f = {0.9, 0.99, 1e-8, 0}}}},
    {"average", "mapped", {"plain", 3, {OP_F32(3), OP_F32(3), OP_F32(1)}}},
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
        const struct bk_kernel *cpu = bk_table[0]->find(&call);
        for (int r = 0; k && cpu && r < OP_MAX_OUT; r++) /* the CPU's kernel must bear what the device's promises */
            CHECK_MSG(c, !(k->inplace[r] & ~cpu->inplace[r]), "%s", def->name);
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

/* --- where operators differ from operations --- */

/* One use with operands of ones; its transcript up to "aclrtSynchronizeStream" of the program's end, in `text`. */
static void one_use(struct check *c, const char *op, const struct op_case *k, char *text, size_t n)
{
    struct kit kit;
    record_kit_open(&kit, NULL, "record");
    hone_graph *g = hone_graph_create(kit.ctx, &kit.err);
    hone_t in[OP_CASE_IN], out[OP_MAX_OUT];
    void *data[OP_CASE_IN];
    const struct op_def *def = op_find(op);
    for (int i = 0; i < k->n_in; i++) {
        char name[] = {'x', (char)('0' + i), '\0'};
        in[i] = hone_input(g, name, k->in[i].dtype, k->in[i].shape);
        const int64_t count = hone_numel(&k->in[i].shape);
        data[i] = calloc((size_t)count + 1, 4);
        for (int64_t j = 0; j < count; j++)
            if (k->in[i].dtype == HONE_F32)
                ((float *)data[i])[j] = 0.5f;
            else
                ((uint8_t *)data[i])[j] = 1;
    }
    op_emit(def, k->n_in, in, &k->attr, out);
    for (int i = 0; i < def->n_out; i++)
        hone_output(out[i], (char[]){'y', (char)('0' + i), '\0'});
    hone_program *p = hone_compile(kit.cpu, g, NULL, &kit.err);
    CHECK_MSG(c, kit_run(&kit, p, (const void *const *)data, NULL, 0), "%s: %s", op, kit.err.text);
    snprintf(text, n, "%s", hone_device_transcript(kit.cpu));
    record_check(c, text);
    for (int i = 0; i < k->n_in; i++)
        free(data[i]);
    hone_program_destroy(p);
    hone_graph_destroy(g);
    kit_close(&kit, c);
}

/* `parts`, up to a NULL, stand in the text in this order. */
static void in_order(struct check *c, const char *text, const char *const *parts)
{
    const char *at = text;
    for (; *parts; parts++) {
        const char *next = strstr(at, *parts);
        if (!CHECK_MSG(c, next != NULL, "no \"%s\" (here or this late) in\n%s", *parts, text))
            return;
        at = next + strlen(*parts);
    }
}

/* The mask of keys [2,1,1,5] is no shape of the operator's, and says the opposite. */
static void mask(struct check *c)
{
    char text[8192];
    one_use(c, "attention",
            &(struct op_case){"keys",
                              4,
                              {OP_F32(2, 3, 4, 8), OP_F32(2, 3, 5, 8), OP_F32(2, 3, 5, 8), OP_BOOL(2, 1, 1, 5)},
                              {.f = {0.25}}},
            text, sizeof text);
    in_order(c, text,
             (const char *const[]){"aclnnInplaceCopy: ", "selfRef = ACL_BOOL [2,1,4,5]", "src = ACL_BOOL [2,1,1,5]",
                                   "aclnnLogicalNot: ", "self = ACL_BOOL [2,1,4,5]", "out = ACL_BOOL [2,1,4,5]",
                                   "aclnnFlashAttentionScore: ", "attenMaskOptional = ACL_BOOL [2,1,4,5]",
                                   "scaleValue = 0.25\n", "keepProb = 1\n", "preTokens = 2147483647\n", "headNum = 3\n",
                                   "inputLayout = \"BNSD\"\n", "innerPrecise = 2\n",
                                   "softmaxMaxOut = ACL_FLOAT [2,3,4,8]", "softmaxOutOut = NULL\n", NULL});
    /* a mask of a shape that the operator takes is not copied */
    one_use(
        c, "attention",
        &(struct op_case){
            "tokens", 4, {OP_F32(2, 3, 4, 8), OP_F32(2, 3, 5, 8), OP_F32(2, 3, 5, 8), OP_BOOL(4, 5)}, {.f = {0.25}}},
        text, sizeof text);
    CHECK(c, !strstr(text, "InplaceCopy") && strstr(text, "attenMaskOptional = ACL_BOOL [1,1,4,5]"));
    /* a mask by head needs all of them, for each sample */
    one_use(
        c, "attention",
        &(struct op_case){
            "heads", 4, {OP_F32(2, 3, 4, 8), OP_F32(2, 3, 5, 8), OP_F32(2, 3, 5, 8), OP_BOOL(3, 1, 5)}, {.f = {0.25}}},
        text, sizeof text);
    CHECK(c, strstr(text, "InplaceCopy") && strstr(text, "attenMaskOptional = ACL_BOOL [2,3,4,5]"));
}

/* The operator counts steps from 0, takes the rate as a number, and cannot skip. */
static void adam(struct check *c)
{
    char text[8192];
    struct op_case k = {"all",
                        8,
                        {OP_F32(3), OP_F32(3), OP_F32(3), OP_F32(3), OP_F32(1), OP_F32_SCALAR, OP_F32(1), OP_F32(1)},
                        {.f = {0.9, 0.999, 1e-8, 0.01}}};
    one_use(c, "adamw", &k, text, sizeof text);
    in_order(c, text,
             (const char *const[]){"aclrtMemcpyAsync(host, 4, slab0+", "ACL_MEMCPY_DEVICE_TO_HOST",
                                   "ACL_MEMCPY_DEVICE_TO_HOST", "aclrtSynchronizeStream(stream)\n",
                                   "nothing to launch for adamw", NULL});
    CHECK(c, !strstr(text, "ApplyAdamWV2"));
    k.n_in = 7;
    one_use(c, "adamw", &k, text, sizeof text);
    in_order(c, text,
             (const char *const[]){"aclnnAdds: ", "other = -1 ACL_FLOAT\n", "alpha = 1 ACL_FLOAT\n",
                                   "aclnnMul: ", "aclnnApplyAdamWV2: ", "maxGradNormOptionalRef = NULL\n", "lr = 0.5\n",
                                   "beta1 = 0.9\n", "beta2 = 0.999\n", "weightDecay = 0.01\n", "eps = 1e-08\n", NULL});
    /* the result of Adds is the step, the result of Mul the gradient */
    char step[96];
    const char *out = strstr(strstr(text, "aclnnAdds: "), "out = "), *at = out ? strstr(out, " at ") : NULL;
    if (CHECK(c, at != NULL)) {
        snprintf(step, sizeof step, "  step = ACL_FLOAT [1] strides [1] offset 0 ACL_FORMAT_ND storage [1]%.*s\n",
                 (int)strcspn(at, "\n"), at);
        CHECK_MSG(c, strstr(text, step) != NULL, "no %s in\n%s", step, text);
    }
}

static void others(struct check *c)
{
    char text[8192];
    one_use(c, "concat", &(struct op_case){"parts", 3, {OP_F32(2, 3), OP_F32(2, 0), OP_F32(2, 1)}, {.i = {1}}}, text,
            sizeof text);
    in_order(c, text,
             (const char *const[]){"tensors = 2 tensors\n    [0] ACL_FLOAT [2,3]", "\n    [1] ACL_FLOAT [2,1]",
                                   "dim = 1\n", "out = ACL_FLOAT [2,4]", NULL});
    one_use(c, "pad", &(struct op_case){"middle", 1, {OP_F32(2, 3, 4)}, {.i = {1, 5, 6}, .f = {0.5}}}, text,
            sizeof text);
    CHECK_MSG(c, strstr(text, "pad = [0,0,5,6]\n  value = 0.5 ACL_FLOAT\n"), "%s", text);
    one_use(c, "gelu", &(struct op_case){"exact", 1, {OP_F32(3)}}, text, sizeof text);
    CHECK_MSG(c, strstr(text, "aclnnGeluV2: ") && strstr(text, "approximate = 0\n"), "%s", text);
    one_use(c, "sum", &(struct op_case){"all", 1, {OP_F32(2, 3)}, {.i = {HONE_AXES_ALL, 0}}}, text, sizeof text);
    CHECK_MSG(c, strstr(text, "dims = [0,1]\n  keepDims = false\n"), "%s", text);
    one_use(c, "matmul", &(struct op_case){"left", 2, {OP_F32(3, 2), OP_F32(3, 5)}, {.i = {1, 0}}}, text, sizeof text);
    CHECK_MSG(c, strstr(text, "self = ACL_FLOAT [2,3] strides [1,2] "), "%s", text);
    one_use(c, "permute", &(struct op_case){"turn", 1, {OP_F32(2, 3, 4)}, {.i = {3, 2, 0, 1}}}, text, sizeof text);
    CHECK_MSG(c, strstr(text, "dims = [2,0,1]\n  out = ACL_FLOAT [4,2,3] "), "%s", text);
    one_use(c, "slice", &(struct op_case){"columns", 1, {OP_F32(2, 5)}, {.i = {1, 1, 3}}}, text, sizeof text);
    CHECK_MSG(c, strstr(text, "dim = 1\n  start = 1\n  end = 4\n  step = 1\n"), "%s", text);
    one_use(c, "affine", &(struct op_case){"line", 1, {OP_F32(2)}, {.f = {2, 3}}}, text, sizeof text);
    in_order(c, text,
             (const char *const[]){"aclnnMuls", "other = 2 ACL_FLOAT\n", "aclnnInplaceAdds", "other = 3 ", NULL});
    one_use(c, "clamp", &(struct op_case){"range", 1, {OP_F32(2)}, {.f = {-1, 2}}}, text, sizeof text);
    CHECK_MSG(c, strstr(text, "clipValueMin = -1 ACL_FLOAT\n  clipValueMax = 2 "), "%s", text);
    one_use(c, "group_norm",
            &(struct op_case){"signal", 3, {OP_F32(2, 6, 5), OP_F32(6), OP_F32(6)}, {.i = {3}, .f = {1e-5}}}, text,
            sizeof text);
    CHECK_MSG(c, strstr(text, "N = 2\n  C = 6\n  HxW = 5\n  group = 3\n  eps = 1e-05\n"), "%s", text);
}

void suite_record_calls(struct check *c)
{
    static const struct {
        const char *name;
        void (*fn)(struct check *c);
    } cases[] = {{"which uses are mapped", takes},
                 {"every mapping is tried", complete},
                 {"masks of attention", mask},
                 {"steps of AdamW", adam},
                 {"arguments of others", others}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (check_case(c, "%s", cases[i].name))
            cases[i].fn(c);
}
