/* Chains: the loop of a sampler, as one repeated body or unrolled. */
#include "graph/ir.h"

static hone_t refuse(hone_graph *g, const char *why)
{
    err_set(&g->err, HONE_E_ARG, g->scopes[g->scope].path, "chain: %s", why);
    return (hone_t){g, -1};
}

/* Row `step` of a table, as [...] . */
static hone_t row_at(hone_t table, int step)
{
    hone_shape s = hone_type_of(table).shape, one = {s.rank - 1, {0}};
    for (int i = 1; i < s.rank; i++)
        one.dim[i - 1] = s.dim[i];
    return hone_reshape(hone_slice(table, 0, step, 1), one);
}

static bool rows_fit(hone_graph *g, const hone_chain_options *o)
{
    char got[64];
    for (int i = 0; i < o->n_tables; i++) {
        hone_type t = hone_type_of(o->tables[i]);
        if (o->tables[i].id < 0)
            return false;
        if (t.shape.rank < 1 || t.shape.dim[0] != o->steps) {
            err_set(&g->err, HONE_E_SHAPE, g->scopes[g->scope].path,
                    "chain: table %d must be [%d, ...], one row a step; got %s", i, o->steps,
                    hone_shape_text(&t.shape, got, sizeof got));
            return false;
        }
    }
    return true;
}

static hone_t unrolled(hone_t x, const hone_chain_options *o, hone_chain_fn body, void *user)
{
    hone_t rows[HONE_CHAIN_TABLES];
    hone_type start = hone_type_of(x);
    hone_graph *g = x.g;
    for (int s = 0; s < o->steps; s++) {
        bool cut =
            (o->grad_last > 0 && s == o->steps - o->grad_last) || (o->segment > 0 && s > 0 && s % o->segment == 0);
        if (cut)
            x = hone_stop_gradient(x);
        for (int i = 0; i < o->n_tables; i++)
            rows[i] = row_at(o->tables[i], s);
        x = body(user, x, rows);
        hone_type t = hone_type_of(x);
        if (x.g != g)
            return refuse(g, "the body must return a value of its graph");
        if (x.id >= 0 && (t.dtype != start.dtype || !hone_shape_equal(&t.shape, &start.shape)))
            return refuse(g, "the body must return what it is given: one type, one shape");
    }
    return x;
}

static hone_t repeated(hone_t x0, const hone_chain_options *o, hone_chain_fn body, void *user)
{
    hone_graph *g = x0.g;
    hone_t rows[HONE_CHAIN_TABLES];
    if (g->loop)
        return refuse(g, "a repeated chain cannot stand in the body of another: unroll one of them");
    g->loop = ++g->n_loops;
    struct op_attr a = {.i = {[LOOP_ID] = g->loop, [LOOP_STEPS] = o->steps}};
    hone_t x = op_emit(&op_loop_state, 1, &x0, &a, NULL);
    for (int i = 0; i < o->n_tables; i++)
        rows[i] = op_emit(&op_loop_row, 1, &o->tables[i], &a, NULL);
    hone_t next = body(user, x, rows);
    hone_t out = op_emit(&op_loop_out, 2, (hone_t[]){x, next}, &a, NULL);
    g->loop = 0;
    return out;
}

hone_t hone_chain(hone_t x0, const hone_chain_options *o, hone_chain_fn body, void *user)
{
    if (!x0.g || x0.id < 0)
        return x0;
    hone_graph *g = x0.g;
    if (o->steps < 1 || o->n_tables < 0 || o->n_tables > HONE_CHAIN_TABLES || o->grad_last < 0 || o->segment < 0)
        return refuse(g, "wants one step or more, at most 8 tables, and no negative count");
    if (!o->unroll && (o->grad_last || o->segment))
        return refuse(g, "only an unrolled chain has a gradient to cut");
    if (!rows_fit(g, o))
        return (hone_t){g, -1};
    return o->unroll ? unrolled(x0, o, body, user) : repeated(x0, o, body, user);
}
