/* Debug runs find what they are for: a device with planted faults. */
#include <math.h>
#include <string.h>

#include "graph/kit.h"

static hone_status wrong(const struct bk_io *io, hone_err *err)
{
    const float *x = io->in[0];
    float *y = io->out[0];
    (void)err;
    for (int64_t i = 0; i < op_numel(&io->call->out[0]); i++)
        y[i] = x[i] / (1 + expf(-x[i])) + (i == 5 ? 0.01f : 0);
    return HONE_OK;
}

static hone_status not_a_number(const struct bk_io *io, hone_err *err)
{
    wrong(io, err);
    ((float *)io->out[0])[5] = NAN;
    return HONE_OK;
}

/* The whole result is right, and one element more is written. */
static hone_status overrun(const struct bk_io *io, hone_err *err)
{
    const float *x = io->in[0];
    int64_t n = op_numel(&io->call->out[0]);
    float *y = io->out[0];
    (void)err;
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] / (1 + expf(-x[i]));
    y[(n + 15) / 16 * 16] = 1;
    return HONE_OK;
}

/* Leaves the last element as it finds it. */
static hone_status unwritten(const struct bk_io *io, hone_err *err)
{
    const float *x = io->in[0];
    float *y = io->out[0];
    (void)err;
    for (int64_t i = 0; i + 1 < op_numel(&io->call->out[0]); i++)
        y[i] = x[i] / (1 + expf(-x[i]));
    return HONE_OK;
}

static const struct bk_kernel faulty[] = {{.op = "silu", .run = wrong},
                                          {.op = "silu", .run = not_a_number},
                                          {.op = "silu", .run = overrun},
                                          {.op = "silu", .run = unwritten}};

#define FINDER(n)                                                                                                      \
    static const struct bk_kernel *find##n(const struct op_call *c)                                                    \
    {                                                                                                                  \
        return !strcmp(c->def->name, "silu") ? &faulty[n] : bk_table[0]->find(c);                                      \
    }
FINDER(0)
FINDER(1)
FINDER(2)
FINDER(3)

void suite_debug(struct check *c)
{
    static const struct {
        const char *name, *says, *where;
        const struct bk_kernel *(*find)(const struct op_call *c);
        hone_status code;
    } t[] = {{"a wrong result", "[1,1]", "net", find0, HONE_E_DEVICE},
             {"a result that is no number", "non-finite at [1,1]", "net", find1, HONE_E_NONFINITE},
             {"a write behind the end", "behind the end", "net", find2, HONE_E_DEVICE},
             {"an element that is not written", "non-finite at [3,3]", "net", find3, HONE_E_NONFINITE}};
    static const float x[12] = {1, 2, 3, -1, 0.5f, 0.25f, 2, -2, 1, 0, 1, -3}, y[8] = {0};
    const void *in[2] = {x, y};
    for (int i = 0; i < 4; i++) {
        if (!check_case(c, "finds %s", t[i].name))
            continue;
        struct kit k;
        kit_open(&k, NULL);
        struct bk_def def = *k.cpu->def;
        hone_device bad = *k.cpu;
        def.find = t[i].find;
        bad.def = &def;
        hone_layout *l = hone_layout_create(k.ctx, &k.err);
        hone_graph *g = kit_net(&k, l, 4, 4, false);
        hone_store *s = hone_store_create(k.ctx, l, &k.err);
        hone_store_init(s, 1, &k.err);
        hone_program *p = hone_compile(&bad, g, &(hone_compile_options){.debug = true}, &k.err);
        CHECK(c, p && !kit_run(&k, p, in, &s, 0));
        CHECK_MSG(c, k.err.code == t[i].code, "%s: %s", k.err.where, k.err.text);
        CHECK_MSG(c, !strcmp(k.err.where, t[i].where) && strstr(k.err.text, "silu"), "%s: %s", k.err.where, k.err.text);
        CHECK_MSG(c, strstr(k.err.text, t[i].says) != NULL, "%s", k.err.text);
        hone_program_destroy(p);
        hone_store_destroy(s);
        hone_graph_destroy(g);
        hone_layout_destroy(l);
        kit_close(&k, c);
    }
}
