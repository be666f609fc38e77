/* Sharing: equal uses of an operation on equal operands become one (common subexpressions). In an unrolled chain this
 * leaves what depends on the observation alone in its first step. */
#include <string.h>

#include "graph/pass.h"

struct share {
    int32_t *table; /* node of `to` by hash, -1: empty; open addressing */
    uint32_t size;  /* a power of two */
    struct mem *m;
};

static uint32_t mix(uint32_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 16777619u;
    return h;
}

static uint32_t hash(const struct ir_node *n)
{
    uint32_t h = mix(2166136261u, &n->def, sizeof n->def);
    h = mix(h, &n->attr, sizeof n->attr);
    h = mix(h, n->in, (size_t)n->n_in * sizeof *n->in);
    h = mix(h, &n->loop, sizeof n->loop);
    return n->data ? mix(h, n->data, n->bytes) : h;
}

static bool equal(const hone_graph *g, const struct ir_node *a, const struct ir_node *b)
{
    if (a->def != b->def || a->n_in != b->n_in || a->bytes != b->bytes || a->loop != b->loop || !a->data != !b->data)
        return false;
    for (int i = 0; i < a->n_out; i++)
        if (g->values[a->out0 + i].type.dtype != g->values[b->out0 + i].type.dtype)
            return false;
    return !memcmp(&a->attr, &b->attr, sizeof a->attr) && !memcmp(a->in, b->in, (size_t)a->n_in * sizeof *a->in) &&
           (!a->data || !memcmp(a->data, b->data, a->bytes));
}

static void share_begin(struct pass *p)
{
    struct share *s = p->user;
    s->size = 64;
    while (s->size < 2 * (uint32_t)p->from->n_nodes)
        s->size *= 2;
    s->m = &p->from->ctx->mem;
    s->table = mem_array(s->m, s->size, sizeof *s->table);
    if (s->table)
        memset(s->table, 0xff, s->size * sizeof *s->table);
    else
        err_set(&p->to->err, HONE_E_NOMEM, "share", "no memory to compare operations");
}

/* The copy is made first and, where an equal one stood already, left dead: the next pass drops it. */
static void share_node(struct pass *p, const struct ir_node *n)
{
    struct share *s = p->user;
    pass_copy(p, n);
    if (n->def->flags & OP_EFFECT || (n->def->flags & OP_SOURCE && n->def != &op_constant) ||
        p->to->err.code != HONE_OK)
        return;
    const struct ir_node *made = &p->to->nodes[p->to->n_nodes - 1];
    uint32_t at = hash(made) & (s->size - 1);
    for (; s->table[at] >= 0; at = (at + 1) & (s->size - 1)) {
        const struct ir_node *old = &p->to->nodes[s->table[at]];
        if (!equal(p->to, old, made))
            continue;
        for (int k = 0; k < n->n_out; k++)
            p->map[n->out0 + k] = old->out0 + k;
        p->changed++;
        return;
    }
    s->table[at] = p->to->n_nodes - 1;
}

hone_graph *pass_share(const hone_graph *from, hone_err *err)
{
    struct share s = {0};
    struct pass p = {.user = &s, .node = share_node, .begin = share_begin};
    hone_graph *g = pass_run(&p, from, err);
    mem_free(&from->ctx->mem, s.table);
    return g;
}
