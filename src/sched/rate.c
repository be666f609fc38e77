/* Learning rate, averaging decay, clip range: pure functions of a step. */
#include <math.h>

#include "base/err.h"
#include "sched/sched.h"

#define PI 3.14159265358979323846

/* u in [0, 1] runs from the end of the warm-up to the end. */
static double constant(const hone_lr_options *o, double u)
{
    (void)u;
    return o->lr;
}

static double cosine(const hone_lr_options *o, double u)
{
    return o->floor + (o->lr - o->floor) * (1 + cos(PI * u)) / 2;
}

static const struct row {
    const char *name;
    double (*rate)(const hone_lr_options *o, double u);
    bool falls; /* takes floor and total */
} rows[] = {{"constant", constant, false}, {"cosine", cosine, true}};
static const struct sched_table table = SCHED_TABLE("learning rate", rows);

const char *hone_lr_name(int i)
{
    return sched_name(&table, i);
}

hone_status hone_lr_check(const hone_lr_options *o, hone_err *err)
{
    if (err_is(err))
        return err->code;
    int i = sched_find(&table, o->name, "constant", err);
    if (i < 0)
        return HONE_E_ARG;
    if (!(isfinite(o->lr) && o->lr > 0))
        return err_set(err, HONE_E_ARG, "learning rate", "lr must be above 0; got %g", o->lr);
    if (o->warmup < 0)
        return err_set(err, HONE_E_ARG, "learning rate", "warmup must be >= 0 steps; got %lld", (long long)o->warmup);
    if (!rows[i].falls) {
        if (o->floor != 0 || o->total != 0)
            return err_set(err, HONE_E_ARG, "learning rate", "%s has no floor and no total; got %g and %lld",
                           rows[i].name, o->floor, (long long)o->total);
        return HONE_OK;
    }
    hone_status st = sched_range("learning rate", "floor", o->floor, 0, o->lr, "in [0, lr]", err);
    if (!st && o->total <= o->warmup)
        st = err_set(err, HONE_E_ARG, "learning rate", "total must be above warmup, %lld steps; got %lld",
                     (long long)o->warmup, (long long)o->total);
    return st;
}

double hone_lr_at(const hone_lr_options *o, int64_t step)
{
    if (hone_lr_check(o, NULL))
        return 0;
    int i = sched_find(&table, o->name, "constant", NULL);
    if (step < 0)
        step = 0;
    if (step < o->warmup)
        return o->lr * ((double)step + 1) / ((double)o->warmup + 1);
    if (rows[i].falls && step >= o->total)
        return o->floor;
    double u = rows[i].falls ? (double)(step - o->warmup) / (double)(o->total - o->warmup) : 0;
    return rows[i].rate(o, u);
}

double hone_average_decay(double decay, int64_t n)
{
    double k = n > 0 ? (double)n : 0;
    return fmin(decay, (1 + k) / (10 + k));
}

double hone_clip_range(double base, double full, double rate, int i, int n)
{
    double tau = n > 1 ? (double)i / (n - 1) : 1; /* with one step, that one is the cleanest */
    tau = tau < 0 ? 0 : tau > 1 ? 1 : tau;
    /* e^rate may overflow: then the range is nearly all at the clean end, which e^{rate (τ-1)} tells */
    double share = rate == 0 ? tau : rate > 700 ? exp(rate * (tau - 1)) : expm1(rate * tau) / expm1(rate);
    return base * (1 - share) + full * share; /* exact at both ends */
}
