#include "op/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hone/random.h"
#include "tensor/bf16.h"

void harness_draw(struct harness *h)
{
    double lo = h->k->lo, hi = h->k->hi;
    char name[256];
    if (lo == 0 && hi == 0) {
        lo = -2;
        hi = 2;
    }
    for (int i = 0; i < h->k->n_in; i++) {
        const hone_type *t = &h->k->in[i];
        int64_t n = h->n[i] = hone_numel(&t->shape);
        float *u = malloc(((size_t)n + 1) * sizeof *u);
        h->in[i] = malloc(((size_t)n + 1) * sizeof(double));
        snprintf(name, sizeof name, "%s/%s/%d", h->def->name, h->k->name, i);
        hone_fill_uniform(u, (size_t)n, HARNESS_SEED, hone_stream(name), 0, 0);
        for (int64_t j = 0; j < n; j++)
            switch (t->dtype) {
            case HONE_F32:
                h->in[i][j] = (float)(lo + (hi - lo) * (double)u[j]);
                break;
            case HONE_BF16:
                h->in[i][j] = bf16_float(bf16_of((float)(lo + (hi - lo) * (double)u[j])));
                break;
            case HONE_BOOL:
                h->in[i][j] = u[j] < 0.5f;
                break;
            case HONE_U8:
                h->in[i][j] = (int)(u[j] * 256);
                break;
            default:
                h->in[i][j] = (int)(u[j] * (float)(h->k->below ? h->k->below : 2));
            }
        free(u);
    }
}

void harness_fill(hone_dtype t, const double *x, void *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        switch (t) {
        case HONE_F32:
            ((float *)dst)[i] = (float)x[i];
            break;
        case HONE_BF16:
            ((uint16_t *)dst)[i] = bf16_of((float)x[i]);
            break;
        case HONE_I32:
            ((int32_t *)dst)[i] = (int32_t)x[i];
            break;
        default:
            ((uint8_t *)dst)[i] = (uint8_t)x[i];
        }
}

void harness_drop(struct harness *h)
{
    for (int i = 0; i < h->k->n_in; i++)
        free(h->in[i]);
}

struct harness_graph harness_build(struct harness *h, hone_err *err)
{
    struct harness_graph q = {.g = hone_graph_create(h->ctx, err)};
    char name[16];
    hone_scope_push(q.g, "test/%s", h->def->name);
    for (int i = 0; i < h->k->n_in; i++) {
        snprintf(name, sizeof name, "x%d", i);
        q.in[i] = h->k->in[i].dtype == HONE_I32 && h->k->below
                      ? hone_input_index(q.g, name, h->k->in[i].shape, h->k->below)
                      : hone_input(q.g, name, h->k->in[i].dtype, h->k->in[i].shape);
    }
    op_emit_in(q.g, h->def, h->k->n_in, q.in, &h->k->attr, NULL, 0, q.out);
    for (int i = 0; i < h->def->n_out; i++) {
        snprintf(name, sizeof name, "y%d", i);
        hone_output(q.out[i], name);
    }
    return q;
}

hone_t harness_project(hone_graph *g, const hone_t *x, int n, const char *salt)
{
    hone_t sum = HONE_NONE;
    char name[64];
    for (int k = 0; k < n; k++) {
        hone_type t = hone_type_of(x[k]);
        if (!x[k].g || t.dtype != HONE_F32)
            continue;
        int64_t count = hone_numel(&t.shape);
        float *w = malloc(((size_t)count + 1) * sizeof *w);
        snprintf(name, sizeof name, "%s/%d", salt, k);
        hone_fill_normal(w, (size_t)count, HARNESS_SEED, hone_stream(name), 0, 0);
        hone_t part = hone_sum(hone_mul(x[k], hone_const(g, HONE_F32, t.shape, w)), HONE_AXES_ALL, false);
        sum = sum.g ? hone_add(sum, part) : part;
        free(w);
    }
    return sum;
}

struct given {
    const struct harness *h;
    const hone_graph *g;
};

static const double *given(void *user, const struct ir_node *n)
{
    const struct given *q = user;
    for (int i = 0; i < q->g->n_inputs; i++)
        if (q->g->inputs[i].value == n->out0)
            return q->h->in[i];
    return NULL;
}

double **harness_eval(struct harness *h, const hone_graph *g, hone_err *err)
{
    return ir_reference(g, given, &(struct given){h, g}, err);
}
