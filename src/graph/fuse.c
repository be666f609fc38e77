/* Fusion for decisions: a convolution with the norm, activation, FiLM and residual that follow it becomes one
 * conv_block, time first, with its weights packed in the prepare segment; so does a dense layer of a few rows with
 * activation, gate and residual, as a convolution of one tap whose time is the rows. Only where weights are fixed
 * (inference) and the batch is small: such a step is bound by reading weights, and every value between blocks is a few
 * kilobytes.
 *
 * Values exist in up to two forms: as the graph has them, [B, C, T], and time first, [T, B, C]. A form is made when it
 * is asked for; fused blocks ask for time first, so nothing is permuted between them. */
#include <string.h>

#include "graph/pass.h"
#include "op/conv.h"
#include "op/conv_block.h"

enum { SMALL_BATCH = 4, FEW_ROWS = 64 };

struct fuse {
    uint8_t *cls;
    bool (*takes)(void *user, const struct op_call *c);
    void *user;
    bool half;
    int32_t *tbc; /* value of `from` -> its time-first form in `to`, -1: none */
};

/* What a pattern found, as values of `from`; -1: not part of it. */
struct match {
    int32_t x, w, bias, gamma, beta, scale, shift, residual;
    int64_t stride, pad, groups, act;
    double eps;
    bool linear; /* x is rows, w [out, in]; bias may be missing */
};

/* Whether n is the permutation of the last two of three dimensions: [B, T, C] to [B, C, T] or back. */
static bool swaps_last(const struct ir_node *n)
{
    const int64_t *a = n->attr.i; /* rank, then the order */
    return n->def == &op_permute && a[0] == 3 && a[1] == 0 && a[2] == 2 && a[3] == 1;
}

static hone_t time_first(struct pass *p, int32_t v)
{
    struct fuse *f = p->user;
    const struct ir_node *n = pass_maker(p, v);
    if (f->tbc[v] >= 0)
        return (hone_t){p->to, f->tbc[v]};
    hone_t y;
    if (swaps_last(n) && n->loop == p->to->loop) {
        y = hone_permute(pass_in(p, n, 0), (const int[]){1, 0, 2});
    } else if (n->def == &op_concat && n->attr.i[0] == 1 && n->loop == p->to->loop) {
        hone_t part[OP_MAX_IN];
        for (int i = 0; i < n->n_in; i++)
            part[i] = time_first(p, n->in[i]);
        y = op_emit(&op_concat, n->n_in, part, &(struct op_attr){.i = {2}}, NULL);
    } else {
        y = hone_permute((hone_t){p->to, p->map[v]}, (const int[]){2, 0, 1});
    }
    f->tbc[v] = y.id;
    return y;
}

/* v is made by `def`, and nothing else reads it. */
static const struct ir_node *only(const struct pass *p, int32_t v, const struct op_def *def)
{
    const struct ir_node *n = pass_maker(p, v);
    return n->def == def && n->out0 == v && p->uses[v] == 1 ? n : NULL;
}

/* Product of all dimensions but the last. */
static int64_t rows_of(const hone_shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank - 1; i++)
        n *= s->dim[i];
    return n;
}

static bool match_linear(const struct pass *p, const struct ir_node *n, struct match *m)
{
    const struct fuse *f = p->user;
    const int64_t rows = rows_of(&p->from->values[n->in[0]].type.shape);
    if (f->cls[n->in[0]] == CLASS_FIXED || f->cls[n->in[1]] != CLASS_FIXED || rows < 1 || rows > FEW_ROWS)
        return false;
    if (n->n_in == 3 && f->cls[n->in[2]] != CLASS_FIXED)
        return false;
    m->x = n->in[0], m->w = n->in[1], m->bias = n->n_in == 3 ? n->in[2] : -1;
    m->stride = 1, m->linear = true;
    return true;
}

static bool match_conv(const struct pass *p, int32_t v, bool root, struct match *m)
{
    const struct fuse *f = p->user;
    const struct ir_node *n = pass_maker(p, v);
    if ((n->def != &op_conv1d && n->def != &op_linear) || (!root && p->uses[v] != 1))
        return false;
    if (n->def == &op_linear)
        return match_linear(p, n, m);
    const hone_shape *x = &p->from->values[n->in[0]].type.shape;
    if (n->n_in != 3 || n->attr.i[CONV_DILATION] != 1 || x->dim[0] > SMALL_BATCH || x->dim[0] < 1)
        return false;
    if (f->cls[n->in[1]] != CLASS_FIXED || f->cls[n->in[2]] != CLASS_FIXED)
        return false;
    m->x = n->in[0], m->w = n->in[1], m->bias = n->in[2];
    m->stride = n->attr.i[CONV_STRIDE], m->pad = n->attr.i[CONV_PADDING];
    return true;
}

static bool match_norm(const struct pass *p, int32_t v, bool root, struct match *m)
{
    const struct ir_node *n = pass_maker(p, v);
    if (n->def != &op_group_norm)
        return match_conv(p, v, root, m);
    if (n->out0 != v || (!root && p->uses[v] != 1) || p->uses[n->out0 + 1] || p->uses[n->out0 + 2])
        return false;
    m->gamma = n->in[1], m->beta = n->in[2];
    m->groups = n->attr.i[0];
    m->eps = n->attr.f[0];
    return match_conv(p, n->in[0], false, m);
}

static bool match_act(const struct pass *p, int32_t v, bool root, struct match *m)
{
    static const struct {
        const struct op_def *def;
        int act;
    } acts[] = {{&op_mish, CB_MISH}, {&op_silu, CB_SILU}, {&op_relu, CB_RELU}, {&op_gelu_tanh, CB_GELU_TANH}};
    const struct ir_node *n = pass_maker(p, v);
    for (int i = 0; i < 4; i++)
        if (n->def == acts[i].def) {
            m->act = acts[i].act;
            return (root || p->uses[v] == 1) && match_norm(p, n->in[0], false, m);
        }
    return match_norm(p, v, root, m);
}

/* Operand of a FiLM: [B, O, 1] beside the value v [B, O, T]. */
static bool per_channel(const struct pass *p, int32_t s, int32_t v)
{
    const hone_shape *a = &p->from->values[s].type.shape, *b = &p->from->values[v].type.shape;
    return a->rank == 3 && b->rank == 3 && a->dim[0] == b->dim[0] && a->dim[1] == b->dim[1] && a->dim[2] == 1 &&
           b->dim[2] != 1;
}

/* Operand of a gate: one row beside the rows of v. */
static bool one_row(const struct pass *p, int32_t s, int32_t v)
{
    const hone_shape *a = &p->from->values[s].type.shape, *b = &p->from->values[v].type.shape;
    return a->rank > 0 && b->rank > 0 && rows_of(a) == 1 && a->dim[a->rank - 1] == b->dim[b->rank - 1];
}

/* act(dense layer) * gate, operands in either order. */
static bool match_gate(const struct pass *p, int32_t v, bool root, struct match *m)
{
    const struct ir_node *n = pass_maker(p, v);
    const struct match before = *m;
    for (int k = 0; n->def == &op_mul && (root || p->uses[v] == 1) && k < 2; k++) {
        m->scale = n->in[1 - k];
        if (one_row(p, m->scale, n->in[k]) && match_act(p, n->in[k], false, m) && m->linear)
            return true;
        *m = before;
    }
    return match_act(p, v, root, m);
}

/* act(...) * scale + shift, operands in either order. */
static bool match_film(const struct pass *p, int32_t v, bool root, struct match *m)
{
    const struct ir_node *n = pass_maker(p, v);
    const struct match before = *m;
    for (int i = 0; n->def == &op_add && (root || p->uses[v] == 1) && i < 2; i++) {
        const struct ir_node *mul = only(p, n->in[i], &op_mul);
        if (!mul || !per_channel(p, n->in[1 - i], v))
            continue;
        for (int k = 0; k < 2; k++)
            if (per_channel(p, mul->in[1 - k], v)) {
                m->scale = mul->in[1 - k], m->shift = n->in[1 - i];
                if (match_act(p, mul->in[k], false, m) && !m->linear) /* of a dense layer these would be rows */
                    return true;
                *m = before;
            }
    }
    return match_gate(p, v, root, m);
}

static bool match_block(const struct pass *p, const struct ir_node *n, struct match *m)
{
    const struct match none = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, CB_IDENTITY, 0, false};
    *m = none;
    if (match_film(p, n->out0, true, m))
        return true;
    for (int i = 0; n->def == &op_add && i < 2; i++) {
        const hone_shape *a = &p->from->values[n->in[0]].type.shape, *b = &p->from->values[n->in[1]].type.shape;
        *m = none;
        m->residual = n->in[1 - i];
        if (hone_shape_equal(a, b) && match_film(p, n->in[i], false, m) && (m->groups > 0 || m->linear))
            return true;
    }
    return false;
}

/* conv_block of these operands; NONE, and dead operations left behind, where the device does not take it. */
static hone_t take_block(struct pass *p, int n, const hone_t *in, const struct op_attr *a)
{
    const struct fuse *f = p->user;
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT];
    hone_t y = op_emit(&op_conv_block, n, in, a, NULL);
    if (!y.g || y.id < 0)
        return HONE_NONE;
    struct op_call c = ir_call(p->to, &p->to->nodes[p->to->n_nodes - 1], tin, tout);
    return f->takes(f->user, &c) ? y : HONE_NONE;
}

static hone_t flat(struct pass *p, int32_t v)
{
    const int64_t *d = p->from->values[v].type.shape.dim;
    return hone_reshape((hone_t){p->to, p->map[v]}, HONE_SHAPE(d[0], d[1]));
}

static hone_t pack(struct pass *p, hone_t w)
{
    const struct fuse *f = p->user;
    const bool half = f->half && hone_type_of(w).shape.dim[1] % 2 == 0; /* by pairs of input channels */
    return op_emit(&op_conv_pack, 1, &w, &(struct op_attr){.i = {[CP_HALF] = half}}, NULL);
}

/* v as rows [M, 1, K]: time first, one sample. */
static hone_t rows(struct pass *p, int32_t v)
{
    const hone_shape *s = &p->from->values[v].type.shape;
    return hone_reshape((hone_t){p->to, p->map[v]}, HONE_SHAPE(rows_of(s), 1, s->dim[s->rank - 1]));
}

/* A dense layer; the result has the type of value `y`. */
static hone_t emit_linear(struct pass *p, const struct match *m, int32_t y)
{
    const int64_t *w = p->from->values[m->w].type.shape.dim;
    hone_t in[6] = {rows(p, m->x), pack(p, hone_reshape((hone_t){p->to, p->map[m->w]}, HONE_SHAPE(w[0], w[1], 1))),
                    m->bias >= 0 ? (hone_t){p->to, p->map[m->bias]} : hone_full(p->to, HONE_SHAPE(w[0]), 0)};
    int n = 3;
    if (m->scale >= 0) {
        in[n++] = hone_reshape((hone_t){p->to, p->map[m->scale]}, HONE_SHAPE(1, w[0]));
        in[n++] = hone_full(p->to, HONE_SHAPE(1, w[0]), 0);
    }
    if (m->residual >= 0)
        in[n++] = rows(p, m->residual);
    struct op_attr a = {.i = {[CB_STRIDE] = 1, [CB_OUT] = w[0], [CB_ACT] = m->act}};
    a.i[CB_FILM] = m->scale >= 0, a.i[CB_RESIDUAL] = m->residual >= 0;
    hone_t out = take_block(p, n, in, &a);
    return out.g ? hone_reshape(out, p->from->values[y].type.shape) : out;
}

static hone_t emit_block(struct pass *p, const struct match *m)
{
    hone_t in[8] = {time_first(p, m->x)};
    hone_t w = {p->to, p->map[m->w]}, bias = {p->to, p->map[m->bias]};
    int n = 3;
    in[1] = pack(p, w);
    in[2] = bias;
    if (m->groups > 0) {
        in[n++] = (hone_t){p->to, p->map[m->gamma]};
        in[n++] = (hone_t){p->to, p->map[m->beta]};
    }
    if (m->scale >= 0) {
        in[n++] = flat(p, m->scale);
        in[n++] = flat(p, m->shift);
    }
    if (m->residual >= 0)
        in[n++] = time_first(p, m->residual);
    struct op_attr a = {.f = {m->eps}};
    a.i[CB_STRIDE] = m->stride, a.i[CB_PAD] = m->pad, a.i[CB_GROUPS] = m->groups, a.i[CB_ACT] = m->act;
    a.i[CB_OUT] = p->from->values[m->w].type.shape.dim[0];
    a.i[CB_FILM] = m->scale >= 0, a.i[CB_RESIDUAL] = m->residual >= 0;
    return take_block(p, n, in, &a);
}

/* A transposed convolution of 4 taps, stride 2, padding 1 is a convolution of 3 taps with twice the outputs:
 * y[2m] = x[m] w1 + x[m-1] w3,  y[2m+1] = x[m] w2 + x[m+1] w0. */
static bool fuse_transposed(struct pass *p, const struct ir_node *n)
{
    const struct fuse *f = p->user;
    const hone_shape *x = &p->from->values[n->in[0]].type.shape, *w = &p->from->values[n->in[1]].type.shape;
    if (n->def != &op_conv_transpose1d || n->n_in != 3 || w->dim[2] != 4 || n->attr.i[CONV_STRIDE] != 2 ||
        n->attr.i[CONV_PADDING] != 1 || n->attr.i[CONV_EXTENT] != 0 || x->dim[0] > SMALL_BATCH || x->dim[0] < 1 ||
        f->cls[n->in[1]] != CLASS_FIXED || f->cls[n->in[2]] != CLASS_FIXED)
        return false;
    hone_t k[4], v = pass_in(p, n, 1), b = pass_in(p, n, 2);
    for (int i = 0; i < 4; i++)
        k[i] = hone_slice(v, 2, i, 1);
    hone_t zero = hone_affine(k[0], 0, 0);
    hone_t even = hone_concat(3, (hone_t[]){k[3], k[1], zero}, 2),
           odd = hone_concat(3, (hone_t[]){zero, k[2], k[0]}, 2);
    hone_t both = hone_permute(hone_concat(2, (hone_t[]){even, odd}, 1), (const int[]){1, 0, 2});
    struct op_attr a = {.i = {[CB_STRIDE] = 1, [CB_PAD] = 1, [CB_OUT] = 2 * w->dim[1], [CB_ACT] = CB_IDENTITY}};
    hone_t in[3] = {time_first(p, n->in[0]), pack(p, both), hone_concat(2, (hone_t[]){b, b}, 0)};
    hone_t y = take_block(p, 3, in, &a);
    if (!y.g)
        return false;
    int64_t t = x->dim[2], batch = x->dim[0], o = w->dim[1];
    y = hone_permute(hone_reshape(y, HONE_SHAPE(t, batch, 2, o)), (const int[]){0, 2, 1, 3});
    y = hone_reshape(y, HONE_SHAPE(2 * t, batch, o));
    ((struct fuse *)p->user)->tbc[n->out0] = y.id;
    pass_set(p, n, 0, hone_permute(y, (const int[]){1, 2, 0}));
    p->changed++;
    return true;
}

static void fuse_node(struct pass *p, const struct ir_node *n)
{
    struct fuse *f = p->user;
    struct match m;
    if (n->n_out == 0 || n->def->flags & OP_SOURCE) {
        pass_copy(p, n);
        return;
    }
    const bool matched = match_block(p, n, &m);
    hone_t y = !matched ? HONE_NONE : m.linear ? emit_linear(p, &m, n->out0) : emit_block(p, &m);
    if (y.g && m.linear) {
        pass_set(p, n, 0, y);
        p->changed++;
    } else if (y.g) {
        f->tbc[n->out0] = y.id;
        pass_set(p, n, 0, hone_permute(y, (const int[]){1, 2, 0}));
        for (int k = 1; k < n->n_out; k++) /* statistics of a norm: nothing reads them */
            p->map[n->out0 + k] = -1;
        p->changed++;
    } else if (!fuse_transposed(p, n)) {
        if (swaps_last(n) && f->tbc[n->in[0]] >= 0) /* [B, C, T] -> [B, T, C], straight from [T, B, C] */
            pass_set(p, n, 0, hone_permute((hone_t){p->to, f->tbc[n->in[0]]}, (const int[]){1, 0, 2}));
        else
            pass_copy(p, n);
    }
}

hone_graph *pass_fuse(const hone_graph *from, bool (*takes)(void *user, const struct op_call *c), void *user, bool half,
                      hone_err *err)
{
    struct mem *m = &from->ctx->mem;
    size_t n = (size_t)from->n_values + 1;
    struct fuse f = {mem_array(m, n, 1), takes, user, half, mem_array(m, n, sizeof *f.tbc)};
    struct pass p = {.user = &f, .node = fuse_node};
    hone_graph *g = NULL;
    if (f.cls && f.tbc) {
        pass_classes(from, f.cls);
        memset(f.tbc, 0xff, n * sizeof *f.tbc);
        g = pass_run(&p, from, err);
    } else {
        err_set(err, HONE_E_NOMEM, "fuse", "no memory for a pass");
    }
    mem_free(m, f.cls);
    mem_free(m, f.tbc);
    return g;
}
