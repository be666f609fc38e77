#include "backend/record_kit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void record_kit_open(struct kit *k, const hone_ctx_options *o, const char *device)
{
    memset(k, 0, sizeof *k);
    k->ctx = hone_ctx_create(o, &k->err);
    k->cpu = hone_device_open(k->ctx, device, &k->err);
}

/* Arguments of the operators in use, as CANN's headers (8.1) name and order them. */
static const char *const prototypes[] = {
    "Add(self, other, alpha, out)",
    "Sub(self, other, alpha, out)",
    "Mul(self, other, out)",
    "Muls(self, other, out)",
    "InplaceAdds(selfRef, other, alpha)",
    "Silu(self, out)",
    "SiluBackward(gradOutput, self, gradInput)",
    "Sigmoid(self, out)",
    "Mish(self, out)",
    "MishBackward(gradOutput, self, gradInput)",
    "Relu(self, out)",
    "Tanh(self, out)",
    "Exp(self, out)",
    "Log(self, out)",
    "Sqrt(self, out)",
    "Rsqrt(self, out)",
    "Reciprocal(self, out)",
    "Abs(self, out)",
    "Floor(self, out)",
    "Erf(self, out)",
    "Sin(self, out)",
    "LogicalNot(self, out)",
    "Div(self, other, out)",
    "Maximum(self, other, out)",
    "Minimum(self, other, out)",
    "EqTensor(self, other, out)",
    "LtTensor(self, other, out)",
    "LeTensor(self, other, out)",
    "GtTensor(self, other, out)",
    "GeTensor(self, other, out)",
    "LogicalAnd(self, other, out)",
    "LogicalOr(self, other, out)",
    "Cos(input, out)",
    "Sign(self, result)",
    "Clamp(self, clipValueMin, clipValueMax, out)",
    "GeluV2(x, approximate, y)",
    "Softplus(self, beta, threshold, out)",
    "PowTensorScalar(self, exponent, out)",
    "SWhere(condition, self, other, out)",
    "Cast(self, dtype, out)",
    "Mean(self, dim, keepDim, dtype, out)",
    "Amax(self, dim, keepDim, out)",
    "IsFinite(self, out)",
    "Softmax(self, dim, out)",
    "LogSoftmax(self, dim, out)",
    "SoftmaxBackward(gradOutput, output, dim, out)",
    "Permute(self, dims, out)",
    "Cat(tensors, dim, out)",
    "Embedding(weight, indices, out)",
    "IndexAdd(self, dim, index, source, alpha, out)",
    "GroupNorm(self, gamma, beta, N, C, HxW, group, eps, out, meanOut, rstdOut)",
    "GroupNormBackward(gradOut, input, mean, rstd, gamma, N, C, HxW, group, outputMask, gradInput, gradGammaOut, "
    "gradBetaOut)",
    "LayerNorm(input, normalizedShape, weightOptional, biasOptional, eps, out, meanOutOptional, rstdOutOptional)",
    "LayerNormBackward(gradOut, input, normalizedShape, mean, rstd, weightOptional, biasOptional, outputMask, "
    "gradInputOut, gradWeightOut, gradBiasOut)",
    "RmsNorm(x, gamma, epsilon, yOut, rstdOut)",
    "FlashAttentionScore(query, key, value, realShiftOptional, dropMaskOptional, paddingMaskOptional, "
    "attenMaskOptional, prefixOptional, scaleValue, keepProb, preTokens, nextTokens, headNum, inputLayout, "
    "innerPrecise, sparseMode, softmaxMaxOut, softmaxSumOut, softmaxOutOut, attentionOutOut)",
    "Adds(self, other, alpha, out)",
    "Rsubs(self, other, alpha, out)",
    "Lerp(self, end, weight, out)",
    "ApplyAdamWV2(varRef, mRef, vRef, maxGradNormOptionalRef, grad, step, lr, beta1, beta2, weightDecay, eps, "
    "amsgrad, maximize)",
    "ReduceSum(self, dims, keepDims, dtype, out)",
    "InplaceCopy(selfRef, src)",
    "InplaceZero(selfRef)",
    "InplaceFillScalar(selfRef, value)",
    "Slice(self, dim, start, end, step, out)",
    "ConstantPadNd(self, pad, value, out)",
    "Matmul(self, mat2, out, cubeMathType)",
    "BatchMatMul(self, mat2, out, cubeMathType)",
    "Addmm(self, mat1, mat2, beta, alpha, out, cubeMathType)",
    "Convolution(input, weight, bias, stride, padding, dilation, transposed, outputPadding, groups, output, "
    "cubeMathType)",
    "ConvolutionBackward(gradOutput, input, weight, biasSizes, stride, padding, dilation, transposed, outputPadding, "
    "groups, outputMask, cubeMathType, gradInput, gradWeight, gradBias)",
};

enum { LINE = 2048 };

struct reader {
    struct check *c;
    const char *at;
    char line[LINE];
    char op[64];     /* of the paragraph, without "aclnn" */
    char args[1024]; /* its arguments so far */
    int operators;
};

static bool next(struct reader *r)
{
    const char *end = strchr(r->at, '\n');
    size_t n = end ? (size_t)(end - r->at) : 0;
    if (!end || !CHECK(r->c, n < LINE))
        return false;
    memcpy(r->line, r->at, n);
    r->line[n] = '\0';
    r->at = end + 1;
    return true;
}

/* "[2,3]" at s; returns what follows. */
static const char *numbers(struct check *c, const char *s, int64_t *v, int *n)
{
    *n = 0;
    if (!CHECK_MSG(c, *s == '[', "%s", s))
        return s;
    for (s++; *s && *s != ']'; s += *s == ',') {
        char *end;
        v[(*n)++] = strtoll(s, &end, 10);
        if (!CHECK_MSG(c, end != s && *n <= 8, "%s", s))
            return end;
        s = end;
    }
    return *s ? s + 1 : s;
}

static const char *word(struct check *c, const char *s, const char *want)
{
    CHECK_MSG(c, !strncmp(s, want, strlen(want)), "wants \"%s\": %s", want, s);
    return !strncmp(s, want, strlen(want)) ? s + strlen(want) : s;
}

static bool is_product(const char *op)
{
    return !strcmp(op, "Matmul") || !strcmp(op, "BatchMatMul") || !strcmp(op, "Addmm");
}

/* Strides of a dense tensor, once with the last two dimensions exchanged. Dimensions of 1 and empty tensors may have
 * any. */
static bool honest(const int64_t *dim, const int64_t *stride, int n, bool swap)
{
    int64_t want = 1;
    for (int i = 0; i < n; i++)
        if (dim[i] == 0)
            return true;
    for (int i = n - 1; i >= 0; i--) {
        const int k = swap && i >= n - 2 ? 2 * n - 3 - i : i;
        if (dim[k] != 1 && stride[k] != want)
            return false;
        want *= dim[k];
    }
    return true;
}

/* `ACL_FLOAT [2,3] strides [3,1] offset 0 ACL_FORMAT_ND storage [6] at slab0+64` */
static void tensor(struct reader *r, const char *s)
{
    struct check *c = r->c;
    int64_t dim[9], stride[9], storage[9], extent = 1;
    int n, n_stride, n_storage;
    const char *start = s;
    bool known = false;
    static const char *const types[] = {"ACL_FLOAT ", "ACL_INT32 ", "ACL_BOOL ", "ACL_UINT8 ", "ACL_BF16 "};
    for (size_t i = 0; i < sizeof types / sizeof types[0] && !known; i++)
        if (!strncmp(s, types[i], strlen(types[i]))) {
            known = true;
            s += strlen(types[i]);
        }
    if (!CHECK_MSG(c, known, "type: %s", start))
        return;
    s = numbers(c, s, dim, &n);
    s = numbers(c, word(c, s, " strides "), stride, &n_stride);
    s = word(c, s, " offset ");
    char *end;
    const int64_t offset = strtoll(s, &end, 10);
    const bool ncl = !strncmp(end, " ACL_FORMAT_NCL", 15);
    s = word(c, end, ncl ? " ACL_FORMAT_NCL" : " ACL_FORMAT_ND");
    s = numbers(c, word(c, s, " storage "), storage, &n_storage);
    s = word(c, s, " at ");
    if (strcmp(s, "host") != 0) {
        const char *plus = strchr(s, '+');
        s = word(c, s, "slab");
        CHECK_MSG(c, plus && strtoull(plus + 1, NULL, 10) % 32 == 0, "address: %s", start);
    }
    for (int i = 0; i < n; i++)
        extent = dim[i] == 0 || extent == 0 ? 0 : extent + (dim[i] - 1) * stride[i];
    CHECK_MSG(c, n_stride == n && n_storage == 1 && offset >= 0 && offset < 8 * 4, "%s", start);
    CHECK_MSG(c, storage[0] == offset + extent, "storage: %s", start);
    CHECK_MSG(c, honest(dim, stride, n, false) || (is_product(r->op) && n <= 3 && honest(dim, stride, n, true)),
              "strides for aclnn%s: %s", r->op, start);
    const bool conv = !strncmp(r->op, "Convolution", 11);
    CHECK_MSG(c, ncl ? conv && n == 3 : !conv || n == 1, "format for aclnn%s: %s", r->op, start);
}

static void argument(struct reader *r)
{
    const char *eq = strstr(r->line, " = ");
    if (!strncmp(r->line, "    [", 5)) {
        tensor(r, strstr(r->line, "] ") + 2);
        return;
    }
    if (!CHECK_MSG(r->c, eq != NULL, "%s", r->line))
        return;
    size_t used = strlen(r->args);
    snprintf(r->args + used, sizeof r->args - used, "%.*s, ", (int)(eq - r->line) - 2, r->line + 2);
    if (!strncmp(eq + 3, "ACL_", 4) && strchr(eq, '['))
        tensor(r, eq + 3);
}

/* The paragraph of the operator r->op, behind its first line. */
static void paragraph(struct reader *r)
{
    struct check *c = r->c;
    char want[LINE], query[128];
    bool known = false;
    r->args[0] = '\0';
    snprintf(query, sizeof query, "  aclnn%sGetWorkspaceSize(", r->op);
    while (next(r) && strncmp(r->line, query, strlen(query)) != 0) {
        if (!CHECK_MSG(c, r->line[0] == ' ', "aclnn%s without its query", r->op))
            return;
        argument(r);
    }
    snprintf(want, sizeof want, "%s%s&workspaceSize, &executor)", query, r->args);
    CHECK_MSG(c, !strcmp(r->line, want), "got  %s\nwant %s", r->line, want);
    size_t n = strlen(r->args);
    snprintf(want, sizeof want, "%s(%.*s)", r->op, (int)(n ? n - 2 : 0), r->args);
    for (size_t i = 0; i < sizeof prototypes / sizeof prototypes[0]; i++)
        known = known || !strcmp(prototypes[i], want);
    CHECK_MSG(c, known, "no such prototype: %s", want);
    snprintf(want, sizeof want, "  aclnn%s(workspace, workspaceSize, executor, stream)", r->op);
    CHECK_MSG(c, next(r) && !strcmp(r->line, want), "%s", r->line);
    r->operators++;
}

int record_check(struct check *c, const char *transcript)
{
    struct reader r = {.c = c, .at = transcript};
    while (next(&r)) {
        const char *colon = strchr(r.line, ':');
        if (strncmp(r.line, "aclnn", 5) != 0 || !colon)
            continue;
        snprintf(r.op, sizeof r.op, "%.*s", (int)(colon - r.line) - 5, r.line + 5);
        paragraph(&r);
    }
    return r.operators;
}
