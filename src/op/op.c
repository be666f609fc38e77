/* The table of operations and what their shape rules and references share. */
#include "op/op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const struct op_def *const op_table[] = {
#define HONE_OP(name, args)      &op_##name,
#define HONE_OP_MANY(name, args) &op_##name,
#define HONE_OP_INNER(name)      &op_##name,
#include "hone/ops.def"
#undef HONE_OP
#undef HONE_OP_MANY
#undef HONE_OP_INNER
    NULL,
};

const struct op_def *op_find(const char *name)
{
    for (int i = 0; op_table[i]; i++)
        if (!strcmp(op_table[i]->name, name))
            return op_table[i];
    return NULL;
}

hone_status op_refuse(const struct op_call *c, hone_err *err, const char *rule)
{
    char got[200] = "", one[64];
    size_t at = 0;
    for (int i = 0; i < c->n_in && at < sizeof got - 1; i++) {
        int w = snprintf(got + at, sizeof got - at, " %s%s", hone_dtype_name(c->in[i].dtype),
                         hone_shape_text(&c->in[i].shape, one, sizeof one));
        at += w > 0 ? (size_t)w : 0;
    }
    return err_set(err, HONE_E_SHAPE, c->def->name, "%s; got%s", rule, got);
}

int64_t op_numel(const hone_type *t)
{
    return hone_numel(&t->shape);
}

struct op_cost op_cost_of(const struct op_call *c)
{
    if (c->def->cost)
        return c->def->cost(c);
    struct op_cost k = {0};
    for (int i = 0; i < c->n_in; i++)
        k.bytes += (double)op_numel(&c->in[i]) * (double)hone_dtype_size(c->in[i].dtype);
    for (int i = 0; i < c->n_out; i++) {
        k.bytes += (double)op_numel(&c->out[i]) * (double)hone_dtype_size(c->out[i].dtype);
        k.flops += (double)op_numel(&c->out[i]);
    }
    return k;
}

/* x [n, ...] as [n, 1, ..., ...] with `rank` dimensions after the first, so that it broadcasts from the right. */
static hone_t with_rank(hone_t x, int rank)
{
    hone_shape s = hone_type_of(x).shape, t = {rank + 1, {s.dim[0]}};
    for (int i = 1; i <= rank; i++) {
        int from = i - (t.rank - s.rank);
        t.dim[i] = from > 0 ? s.dim[from] : 1;
    }
    return s.rank == t.rank ? x : hone_reshape(x, t);
}

bool op_batch(const struct op_use *u, const bool *many, int64_t n, hone_t *out)
{
    const struct op_def *d = u->call->def;
    hone_t in[OP_MAX_IN];
    for (int i = 0; i < u->call->n_in + u->call->n_out; i++) { /* one more dimension must fit */
        const hone_type *t = i < u->call->n_in ? &u->call->in[i] : &u->call->out[i - u->call->n_in];
        if (t->shape.rank == HONE_MAX_RANK)
            return false;
    }
    if (d->batch) {
        d->batch(u, many, n, out);
        return op_has(out[0]);
    }
    if (d->shape != op_shape_unary && d->shape != op_shape_binary)
        return false;
    for (int i = 0; i < u->call->n_in; i++)
        in[i] = many[i] ? with_rank(u->in[i], u->call->out[0].shape.rank) : u->in[i];
    op_emit(d, u->call->n_in, in, &u->call->attr, out);
    return true;
}

bool op_all_f32(const struct op_call *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].dtype != HONE_F32)
            return false;
    return true;
}

bool op_broadcast_shape(const hone_shape *a, const hone_shape *b, hone_shape *out)
{
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 0; i < out->rank; i++) { /* i counts from the right */
        int64_t x = i < a->rank ? a->dim[a->rank - 1 - i] : 1, y = i < b->rank ? b->dim[b->rank - 1 - i] : 1;
        if (x != y && x != 1 && y != 1)
            return false;
        out->dim[out->rank - 1 - i] = x == 1 ? y : x;
    }
    return true;
}

void op_strides(const hone_shape *s, const hone_shape *to, int64_t *stride)
{
    int64_t step = 1;
    for (int i = 0; i < to->rank; i++) { /* from the right */
        int at = to->rank - 1 - i;
        if (i < s->rank) {
            int64_t d = s->dim[s->rank - 1 - i];
            stride[at] = d == 1 ? 0 : step;
            step *= d;
        } else {
            stride[at] = 0;
        }
    }
}

bool op_next(const hone_shape *s, int64_t *idx)
{
    for (int i = s->rank - 1; i >= 0; i--) {
        if (++idx[i] < s->dim[i])
            return true;
        idx[i] = 0;
    }
    return false;
}

hone_t op_unbroadcast(hone_t x, hone_t like)
{
    const hone_shape from = hone_type_of(x).shape, to = hone_type_of(like).shape;
    unsigned axes = 0;
    if (hone_shape_equal(&from, &to))
        return x;
    for (int i = 0; i < from.rank; i++) {
        int j = i - (from.rank - to.rank);
        if (j < 0 || (to.dim[j] == 1 && from.dim[i] != 1))
            axes |= HONE_AXIS(i);
    }
    return hone_reshape(axes ? hone_sum(x, axes, true) : x, to);
}

hone_status op_shape_unary(const struct op_call *c, hone_type *out, hone_err *err)
{
    if (!op_all_f32(c))
        return op_refuse(c, err, "the operand must be f32");
    out[0] = c->in[0];
    return HONE_OK;
}

void op_ref_unary(const struct op_call *c, const double *const *in, double *const *out, double (*f)(double))
{
    for (int64_t i = 0, n = op_numel(&c->out[0]); i < n; i++)
        out[0][i] = f(in[0][i]);
}

hone_status op_shape_alike(const struct op_call *c, hone_type *out, hone_err *err)
{
    if (!op_all_f32(c))
        return op_refuse(c, err, "operands must be f32");
    for (int i = 1; i < c->n_in; i++)
        if (!hone_shape_equal(&c->in[i].shape, &c->in[0].shape))
            return op_refuse(c, err, "operands must have one shape");
    out[0] = c->in[0];
    return HONE_OK;
}

hone_status op_shape_binary(const struct op_call *c, hone_type *out, hone_err *err)
{
    if (!op_all_f32(c))
        return op_refuse(c, err, "both operands must be f32");
    out[0].dtype = HONE_F32;
    if (!op_broadcast_shape(&c->in[0].shape, &c->in[1].shape, &out[0].shape))
        return op_refuse(c, err, "shapes must broadcast (dimensions aligned at the right, equal or 1)");
    return HONE_OK;
}

void op_ref_binary(const struct op_call *c, const double *const *in, double *const *out, double (*f)(double, double))
{
    const hone_shape *s = &c->out[0].shape;
    int64_t a[HONE_MAX_RANK], b[HONE_MAX_RANK], idx[HONE_MAX_RANK] = {0}, at = 0;
    op_strides(&c->in[0].shape, s, a);
    op_strides(&c->in[1].shape, s, b);
    if (hone_numel(s) == 0)
        return;
    do {
        int64_t i = 0, j = 0;
        for (int k = 0; k < s->rank; k++) {
            i += idx[k] * a[k];
            j += idx[k] * b[k];
        }
        out[0][at++] = f(in[0][i], in[1][j]);
    } while (op_next(s, idx));
}
