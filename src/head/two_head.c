/* Two heads: noise and clean actions from one network, and the one estimate that both make. */
#include <math.h>

#include "head/head.h"

#include "hone/ops.h"

double hone_two_head_share(double alpha, double sigma, double sharp)
{
    return 1 / (1 + pow(alpha / sigma, 2 * (sharp == 0 ? 1 : sharp)));
}

bool head_two_ready(hone_graph *g, const hone_two_head *h)
{
    if (!h || !h->schedule)
        head_refuse(g, HONE_E_ARG, "two heads take a noise schedule; flow has none");
    else if (h->sharp != 0 && !(h->sharp >= 0.5 && h->sharp <= 8))
        head_refuse(g, HONE_E_ARG, "sharp must be 0.5 to 8, or 0 for 1; got %g", h->sharp);
    else
        return true;
    return false;
}

void head_two_arrays(const hone_two_head *h, struct head_two_arrays *a)
{
    for (int i = 0; i < h->schedule->steps; i++) {
        const double alpha = sqrt(h->schedule->alpha_bar[i]), sigma = sqrt(1 - h->schedule->alpha_bar[i]);
        const double r = pow(sigma / alpha, 2 * (h->sharp == 0 ? 1 : h->sharp));
        a->alpha[i] = alpha;
        a->sigma[i] = sigma;
        a->clean[i] = hone_two_head_share(alpha, sigma, h->sharp);
        a->noise[i] = 1 / (1 + r); /* 1 - clean, to its last digit where that is small */
    }
}

bool head_two_split(hone_denoiser d, hone_t x, hone_t t, hone_t cond, struct head_two *out)
{
    hone_shape both = hone_type_of(x).shape;
    const int64_t actions = both.rank == 3 ? both.dim[2] : 0;
    if (both.rank == 3)
        both.dim[2] *= 2;
    out->both = head_ask(d, x, t, cond, both, "the output of a denoiser with two heads");
    if (!head_has(out->both))
        return false;
    out->noise = hone_slice(out->both, 2, 0, actions);
    out->clean = hone_slice(out->both, 2, actions, actions);
    return true;
}

/* The numbers of the timesteps `index`, [B] or one, as a column beside [B,T,A]. */
static hone_t column(const double *values, int n, hone_t index)
{
    const hone_shape s = hone_type_of(index).shape;
    return hone_reshape(hone_gather(head_table(index.g, values, n), index), HONE_SHAPE(s.rank ? s.dim[0] : 1, 1, 1));
}

hone_t head_two_combine(const hone_two_head *h, const struct head_two_arrays *a, hone_t x, hone_t index,
                        const struct head_two *two)
{
    const int n = h->schedule->steps;
    double by_x[HONE_SCHED_MAX_STEPS], by_noise[HONE_SCHED_MAX_STEPS];
    for (int i = 0; i < n; i++) {
        by_x[i] = a->noise[i] / a->alpha[i];
        by_noise[i] = -by_x[i] * a->sigma[i];
    }
    hone_t x0 = hone_add(hone_mul(x, column(by_x, n, index)), hone_mul(two->noise, column(by_noise, n, index)));
    return hone_add(x0, hone_mul(two->clean, column(a->clean, n, index)));
}

static hone_t combined(void *user, hone_t x, hone_t t, hone_t cond)
{
    const hone_two_head *h = user;
    struct head_two_arrays a;
    struct head_two two;
    if (!head_two_ready(x.g, h) || !head_two_split(h->inner, x, t, cond, &two))
        return (hone_t){x.g, -1};
    head_two_arrays(h, &a);
    return head_two_combine(h, &a, x, hone_cast(t, HONE_I32), &two);
}

hone_denoiser hone_denoiser_two_head(hone_two_head *h)
{
    return (hone_denoiser){combined, h};
}
