/* The update program: clip, step, average, and gradients back to zero, over whole groups of parameters. */
#include "graph/ir.h"
#include "graph/store.h"
#include "nn/nn.h"
#include "op/adamw_average.h"

#define C hone_adamw_config
static const hone_field rows[] = {
    HONE_FIELD_F64_X(C, beta1, 0.9, 0, 1, HONE_BELOW, "decay of the mean of gradients"),
    HONE_FIELD_F64_X(C, beta2, 0.999, 0, 1, HONE_BELOW, "decay of the mean of their squares"),
    HONE_FIELD_F64_X(C, eps, 1e-8, 0, 1, HONE_ABOVE, "what is added to the root of the squares"),
    HONE_FIELD_F64(C, weight_decay, 1e-2, 0, 1e3, "share of a weight that a step takes off, times the rate"),
    HONE_FIELD_BOOL(C, decay_plain, false, "biases, gains and embeddings decay too, as in PyTorch by default"),
    HONE_FIELD_F64(C, max_norm, 0, 0, 1e30, "norm that gradients are cut down to, over all parameters; 0: any"),
    HONE_FIELD_BOOL(C, average, false, "keep an exponential moving average of the parameters"),
};
static const hone_field_table fields = HONE_FIELD_TABLE("adamw", C, rows);
#undef C

const hone_field_table *hone_adamw_fields(void)
{
    return &fields;
}

/* What all groups share; one number each. */
struct step {
    hone_graph *g;
    hone_layout *layout;
    const hone_adamw_config *o;
    hone_t lr, step, decay, factor, bad, zero;
};

static const int groups[] = {HONE_GROUP_DECAY, HONE_GROUP_PLAIN};
enum { GROUPS = sizeof groups / sizeof *groups };

static hone_t number(hone_graph *g, const char *name)
{
    return hone_input(g, name, HONE_F32, HONE_SCALAR);
}

/* Norm, clip and the flag that skips, from the gradients of all groups. NaN and infinities are in the sum of squares,
 * so the groups are read once for both. */
static void measure(struct step *s)
{
    hone_t sum = HONE_NONE, scale = number(s->g, "scale");
    for (int i = 0; i < GROUPS; i++) {
        hone_t part = hone_sum_squares(hone_read_group(s->g, "grad", s->layout, groups[i]));
        sum = i ? hone_add(sum, part) : part;
    }
    s->bad = hone_nonfinite(sum);
    hone_t squares = hone_where(hone_cast(s->bad, HONE_BOOL), hone_const_f32(s->g, 0), sum);
    squares = hone_mul(squares, hone_mul(scale, scale));
    s->factor = s->o->max_norm > 0 ? hone_mul(scale, hone_clip_scale(squares, s->o->max_norm)) : scale;
    hone_output(hone_sqrt(squares), "grad_norm");
    hone_output(s->bad, "skipped");
}

static hone_t slab(const struct step *s, const char *role, int group)
{
    return hone_read_group(s->g, role, s->layout, group);
}

/* With an average everything is one operation. */
static void update_averaged(const struct step *s, int group, double decay)
{
    static const char *const roles[] = {"param", "m", "v", "average", "grad"};
    hone_t out[OP_MAX_OUT];
    op_emit_adamw_average((hone_t[]){slab(s, "param", group), slab(s, "grad", group), slab(s, "m", group),
                                     slab(s, "v", group), slab(s, "average", group), s->decay, s->lr, s->step,
                                     s->factor, s->bad},
                          (double[]){s->o->beta1, s->o->beta2, s->o->eps, decay}, out);
    for (int i = 0; i < 5; i++)
        hone_write_group(out[i], roles[i], s->layout, group);
}

static void update_group(const struct step *s, int group)
{
    hone_t p, m, v, grad = slab(s, "grad", group);
    const double decay = group == HONE_GROUP_DECAY || s->o->decay_plain ? s->o->weight_decay : 0;
    if (s->o->average) {
        update_averaged(s, group, decay);
        return;
    }
    hone_adamw(slab(s, "param", group), grad, slab(s, "m", group), slab(s, "v", group), s->lr, s->step, s->factor,
               s->bad, s->o->beta1, s->o->beta2, s->o->eps, decay, &p, &m, &v);
    hone_write_group(p, "param", s->layout, group);
    hone_write_group(m, "m", s->layout, group);
    hone_write_group(v, "v", s->layout, group);
    hone_write_group(hone_broadcast(s->zero, hone_type_of(grad).shape), "grad", s->layout, group);
}

void hone_adamw_update(hone_graph *g, hone_layout *l, const hone_adamw_config *o)
{
    struct step s = {.g = g, .layout = l, .o = o};
    if (hone_graph_status(g, NULL) != HONE_OK || hone_field_check(&fields, o, &g->err) != HONE_OK)
        return;
    hone_scope_push(g, "adamw");
    s.lr = number(g, "lr");
    s.step = number(g, "step");
    /* Made of an input, as constants would be expanded to a slab that is kept between runs. */
    s.zero = hone_affine(s.lr, 0, 0);
    measure(&s);
    if (o->average)
        s.decay = number(g, "decay");
    for (int i = 0; i < GROUPS; i++)
        if (layout_group(l, groups[i]).length > 0)
            update_group(&s, groups[i]);
    hone_scope_pop(g);
}
