/* Writing one use: views, and operators argument by argument. */
#include <string.h>

#include "backend/record/record.h"

enum { ALIGN = 32 }; /* bytes: what the storage of an aclTensor is aligned to */

/* --- views --- */

struct record_view record_dense(hone_dtype t, hone_shape s, const void *at)
{
    struct record_view v = {t, s, {0}, "ACL_FORMAT_ND", at};
    int64_t stride = 1;
    for (int i = s.rank - 1; i >= 0; i--) {
        v.stride[i] = stride;
        stride *= s.dim[i];
    }
    return v;
}

struct record_view record_in(const struct record_use *u, int k)
{
    return record_dense(u->call->in[k].dtype, u->call->in[k].shape, u->io->in[k]);
}

struct record_view record_out(const struct record_use *u, int k)
{
    return record_dense(u->call->out[k].dtype, u->call->out[k].shape, u->io->out[k]);
}

struct record_view record_shaped(struct record_view v, hone_shape s)
{
    return record_dense(v.dtype, s, v.at);
}

struct record_view record_ranked(struct record_view v)
{
    return v.shape.rank ? v : record_shaped(v, HONE_SHAPE(1));
}

struct record_view record_swapped(struct record_view v)
{
    const int i = v.shape.rank - 2, j = v.shape.rank - 1;
    const int64_t dim = v.shape.dim[i], stride = v.stride[i];
    v.shape.dim[i] = v.shape.dim[j];
    v.shape.dim[j] = dim;
    v.stride[i] = v.stride[j];
    v.stride[j] = stride;
    return v;
}

struct record_view record_ncl(struct record_view v)
{
    v.format = "ACL_FORMAT_NCL";
    return v;
}

size_t record_temp_bytes(hone_dtype t, hone_shape s)
{
    const size_t n = (size_t)hone_numel(&s) * hone_dtype_size(t);
    return (n + MEM_ALIGN - 1) / MEM_ALIGN * MEM_ALIGN;
}

struct record_view record_temp(struct record_use *u, hone_dtype t, hone_shape s)
{
    struct record_view v = record_dense(t, s, u->temp);
    u->temp += record_temp_bytes(t, s);
    return v;
}

/* --- operators --- */

void record_open(struct record_use *u, const char *name)
{
    text_init(&u->list, u->args, sizeof u->args);
    struct text t;
    text_init(&t, u->name, sizeof u->name);
    text_addf(&t, "aclnn%s", name);
    text_addf(&u->t, "%s: %s %s\n", u->name, u->io->layer, u->call->def->name);
}

static void argument(struct record_use *u, const char *arg)
{
    text_addf(&u->list, "%s, ", arg);
    text_addf(&u->t, "  %s = ", arg);
}

static void numbers(struct text *t, int n, const int64_t *v)
{
    text_add(t, "[");
    for (int i = 0; i < n; i++)
        text_addf(t, "%s%lld", i ? "," : "", (long long)v[i]);
    text_add(t, "]");
}

const char *record_type(hone_dtype t)
{
    static const char *const names[HONE_DTYPES] = {
        [HONE_F32] = "ACL_FLOAT",  [HONE_F16] = "ACL_FLOAT16", [HONE_BF16] = "ACL_BF16",
        [HONE_F64] = "ACL_DOUBLE", [HONE_I32] = "ACL_INT32",   [HONE_I64] = "ACL_INT64",
        [HONE_U8] = "ACL_UINT8",   [HONE_I8] = "ACL_INT8",     [HONE_BOOL] = "ACL_BOOL",
    };
    return names[t];
}

/* The storage begins at the last aligned address before the view and ends with the view. */
static void descriptor(struct record_use *u, const struct record_view *v)
{
    char place[48];
    const int64_t size = (int64_t)hone_dtype_size(v->dtype), before = (int64_t)((uintptr_t)v->at % ALIGN);
    int64_t extent = hone_numel(&v->shape) ? 1 : 0;
    for (int i = 0; extent && i < v->shape.rank; i++)
        extent += (v->shape.dim[i] - 1) * v->stride[i];
    const int64_t storage = before / size + extent;
    text_addf(&u->t, "%s ", record_type(v->dtype));
    numbers(&u->t, v->shape.rank, v->shape.dim);
    text_add(&u->t, " strides ");
    numbers(&u->t, v->shape.rank, v->stride);
    text_addf(&u->t, " offset %lld %s storage ", (long long)(before / size), v->format);
    numbers(&u->t, 1, &storage);
    text_addf(&u->t, " at %s", record_place(u->io->dev, (const char *)v->at - before, place, sizeof place));
}

void record_tensor(struct record_use *u, const char *arg, struct record_view v)
{
    argument(u, arg);
    descriptor(u, &v);
    text_add(&u->t, "\n");
}

void record_tensors(struct record_use *u, const char *arg, int n, const struct record_view *v)
{
    argument(u, arg);
    text_addf(&u->t, "%d tensors\n", n);
    for (int i = 0; i < n; i++) {
        text_addf(&u->t, "    [%d] ", i);
        descriptor(u, &v[i]);
        text_add(&u->t, "\n");
    }
}

void record_none(struct record_use *u, const char *arg)
{
    record_word(u, arg, "NULL");
}

void record_scalar(struct record_use *u, const char *arg, double v)
{
    argument(u, arg);
    text_add_f64(&u->t, v);
    text_add(&u->t, " ACL_FLOAT\n");
}

void record_int(struct record_use *u, const char *arg, int64_t v)
{
    argument(u, arg);
    text_addf(&u->t, "%lld\n", (long long)v);
}

void record_f64(struct record_use *u, const char *arg, double v)
{
    argument(u, arg);
    text_add_f64(&u->t, v);
    text_add(&u->t, "\n");
}

void record_bool(struct record_use *u, const char *arg, bool v)
{
    record_word(u, arg, v ? "true" : "false");
}

void record_word(struct record_use *u, const char *arg, const char *v)
{
    argument(u, arg);
    text_addf(&u->t, "%s\n", v);
}

void record_ints(struct record_use *u, const char *arg, int n, const int64_t *v)
{
    argument(u, arg);
    numbers(&u->t, n, v);
    text_add(&u->t, "\n");
}

void record_bools(struct record_use *u, const char *arg, int n, const bool *v)
{
    argument(u, arg);
    for (int i = 0; i < n; i++)
        text_addf(&u->t, "%s%s", i ? "," : "[", v[i] ? "true" : "false");
    text_add(&u->t, "]\n");
}

void record_close(struct record_use *u)
{
    text_addf(&u->t, "  %sGetWorkspaceSize(%s&workspaceSize, &executor)\n", u->name, u->args);
    text_addf(&u->t, "  %s(workspace, workspaceSize, executor, stream)\n", u->name);
}

bool record_full(const struct op_call *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (op_numel(&c->in[i]) == 0)
            return false;
    for (int i = 0; i < c->n_out; i++)
        if (op_numel(&c->out[i]) == 0)
            return false;
    return true;
}

int record_axes(int64_t axes, int rank, int64_t dims[HONE_MAX_RANK])
{
    int n = 0;
    for (int i = 0; i < rank; i++)
        if (axes >> i & 1)
            dims[n++] = i;
    return n;
}

void record_copy(struct record_use *u, struct record_view to, struct record_view from)
{
    record_open(u, "InplaceCopy");
    record_tensor(u, "selfRef", record_ranked(to));
    record_tensor(u, "src", record_ranked(from));
    record_close(u);
}

float record_fetch(struct record_use *u, int k)
{
    const float *x = u->io->in[k];
    char place[48];
    text_addf(&u->t, "aclrtMemcpyAsync(host, 4, %s, 4, ACL_MEMCPY_DEVICE_TO_HOST, stream)\n",
              record_place(u->io->dev, x, place, sizeof place));
    return *x;
}

void record_wait(struct record_use *u)
{
    text_add(&u->t, "aclrtSynchronizeStream(stream)\n");
}
