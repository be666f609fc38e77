/* What a decision spends beside its products: norms, activations, FiLM and residuals inside of blocks, and whatever
 * the normalisers and the sampler do between them. What stands inside of a block is told by taking it away: a block
 * with all that follows its products, less the same block without. */
#include <string.h>

#include "base/ctx.h"
#include "base/err.h"
#include "cli/bench.h"
#include "graph/program.h"
#include "op/conv_block.h"

enum { RUNS = 60 };

/* Least time of one call alone, in ns, its operands being zeros. */
static hone_status call_time(struct bench *b, const struct op_call *c, int n_in, const struct op_attr *a, double *ns,
                             hone_err *err)
{
    hone_t in[OP_MAX_IN];
    const void *data[OP_MAX_IN];
    char name[8];
    size_t most = 0;
    hone_graph *g = hone_graph_create(b->ctx, err);
    for (int i = 0; g && i < n_in; i++) {
        const size_t bytes = (size_t)op_numel(&c->in[i]) * hone_dtype_size(c->in[i].dtype);
        snprintf(name, sizeof name, "x%d", i);
        in[i] = hone_input(g, name, c->in[i].dtype, c->in[i].shape);
        most = bytes > most ? bytes : most;
    }
    void *zeros = g ? mem_alloc(&b->ctx->mem, most) : NULL;
    hone_program *p = NULL;
    if (zeros) {
        hone_output(op_emit(c->def, n_in, in, a, NULL), "y");
        p = hone_compile(b->device, g, &(hone_compile_options){.name = "block", .plain = true}, err);
    } else {
        err_set(err, HONE_E_NOMEM, "bench", "no memory for the operands of a block");
    }
    for (int i = 0; i < n_in; i++)
        data[i] = zeros;
    if (p)
        hone_program_profile(p, true, err);
    for (int i = 0; p && i < RUNS && !err_is(err); i++)
        if (hone_run(p, &(hone_run_args){.inputs = data}, err) == HONE_OK)
            hone_wait(p, err);
    if (p && !err_is(err))
        *ns = (double)hone_program_profile_row(p, 0).min_ns;
    hone_program_destroy(p);
    mem_free(&b->ctx->mem, zeros);
    hone_graph_destroy(g);
    return err->code;
}

/* ns of what follows the products of a block. */
static hone_status block_rest(struct bench *b, const struct op_call *c, double *ns, hone_err *err)
{
    struct op_attr bare = c->attr;
    double with = 0, without = 0;
    bare.i[CB_GROUPS] = bare.i[CB_FILM] = bare.i[CB_RESIDUAL] = 0;
    bare.i[CB_ACT] = CB_IDENTITY;
    call_time(b, c, c->n_in, &c->attr, &with, err);
    call_time(b, c, 3, &bare, &without, err);
    *ns = with > without ? with - without : 0;
    return err->code;
}

static bool makes_products(const char *op)
{
    static const char *const names[] = {"conv_block", "linear",           "matmul",    "conv1d",
                                        "time_conv",  "conv_transpose1d", "attention", "rotary_attention"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(op, names[i]))
            return true;
    return false;
}

hone_status bench_rest(struct bench *b, const struct bench_profile *profile, double *ms, hone_err *err)
{
    const struct plan *plan = &b->program->plan;
    hone_type tin[OP_MAX_IN], tout[OP_MAX_OUT];
    double ns = (double)profile->wall_ns / profile->runs; /* all that is in no row: noise, copies of inputs, the loop */
    int32_t times = 1;
    for (int i = 0; i < profile->n_rows; i++) {
        const hone_profile_row *r = &profile->rows[i];
        ns -= (double)r->ns / profile->runs;
        if (!r->prepare && r->calls && !makes_products(r->op))
            ns += (double)r->per_run * (double)r->ns / (double)r->calls;
    }
    double *known = mem_array(&b->ctx->mem, (size_t)plan->n_steps + 1, sizeof *known); /* of the first of its kind */
    if (!known)
        return err_set(err, HONE_E_NOMEM, "bench", "no memory for the times of blocks");
    for (int32_t i = 0; i < plan->n_steps && !err_is(err); i++) {
        const struct plan_step *s = &plan->steps[i];
        if (s->kind == PLAN_LOOP || s->kind == PLAN_END)
            times = s->kind == PLAN_LOOP ? s->steps : 1;
        if (s->kind != PLAN_RUN || i < plan->n_prepare || b->program->g->nodes[s->node].def != &op_conv_block)
            continue;
        const struct op_call c = ir_call(b->program->g, &b->program->g->nodes[s->node], tin, tout);
        if (known[s->like] == 0)
            block_rest(b, &c, &known[s->like], err);
        ns += times * known[s->like];
    }
    mem_free(&b->ctx->mem, known);
    *ms = 1e-6 * ns;
    return err->code;
}
