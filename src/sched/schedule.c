/* Noise schedules: β and ᾱ over K timesteps. */
#include <math.h>
#include <string.h>

#include "base/ctx.h"
#include "base/err.h"
#include "sched/sched.h"

#define BETA_MAX      0.999
#define ALPHA_BAR_MIN 1e-30
#define TAKE_TOL      1e-5 /* of β, in arrays that were computed in float */
#define PI            3.14159265358979323846

static double cosine_level(double u)
{
    double c = cos((u + 0.008) / 1.008 * PI / 2);
    return c * c;
}

/* β_t of K timesteps, not yet capped; a, b: beta_start, beta_end. */
static double cosine(int t, int steps, double a, double b)
{
    (void)a, (void)b;
    return 1 - cosine_level((t + 1.0) / steps) / cosine_level((double)t / steps);
}

static double even(int t, int steps, double a, double b)
{
    return steps > 1 ? a + (b - a) * t / (steps - 1) : a;
}

static double scaled(int t, int steps, double a, double b)
{
    double root = even(t, steps, sqrt(a), sqrt(b));
    return root * root;
}

static double vp(int t, int steps, double a, double b)
{
    double k = steps;
    return -expm1(-a / k - (b - a) * (2 * t + 1) / (2 * k * k));
}

static const struct row {
    const char *name;
    double (*beta)(int t, int steps, double a, double b);
    double start, end;  /* defaults */
    double limit;       /* beta_end at most this; 0: the row takes neither */
    bool rescale;       /* may be rescaled */
    const char *wanted; /* what beta_start and beta_end must be */
} rows[] = {
    {"cosine", cosine, 0, 0, 0, false, "0 (cosine has none)"},
    {"linear", even, 1e-4, 0.02, BETA_MAX, true, "in (0, 0.999], beta_start <= beta_end"},
    {"scaled_linear", scaled, 1e-4, 0.02, BETA_MAX, true, "in (0, 0.999], beta_start <= beta_end"},
    {"vp", vp, 0.1, 10, 1e3, false, "in (0, 1000], beta_start <= beta_end"},
};
static const struct sched_table table = SCHED_TABLE("schedule", rows);

const char *hone_schedule_name(int i)
{
    return sched_name(&table, i);
}

static hone_status check_steps(int64_t steps, hone_err *err)
{
    if (steps < 1 || steps > HONE_SCHED_MAX_STEPS)
        return err_set(err, HONE_E_ARG, "schedule", "steps must be 1 to %d; got %lld", HONE_SCHED_MAX_STEPS,
                       (long long)steps);
    return HONE_OK;
}

/* One block of memory: the struct, then β[K], ᾱ[K]. */
static hone_schedule *make(hone_ctx *ctx, const char *name, int steps, double **beta, double **alpha_bar, hone_err *err)
{
    size_t head = (sizeof(hone_schedule) + MEM_ALIGN - 1) & ~(size_t)(MEM_ALIGN - 1), n = (size_t)steps;
    hone_schedule *s = mem_alloc(&ctx->mem, head + 2 * n * sizeof(double));
    if (!s) {
        err_set(err, HONE_E_NOMEM, "schedule", "no memory for %d timesteps", steps);
        return NULL;
    }
    *beta = (double *)((char *)s + head);
    *alpha_bar = *beta + n;
    *s = (hone_schedule){.steps = steps, .beta = *beta, .alpha_bar = *alpha_bar, .ctx = ctx};
    memcpy(s->name, name, strlen(name)); /* the caller knows that it fits */
    return s;
}

/* The index of the first timestep that makes the arrays no schedule, -1 if there is none. */
static int first_bad(const double *beta, const double *alpha_bar, int steps, double tol)
{
    for (int t = 0; t < steps; t++) {
        double before = t ? alpha_bar[t - 1] : 1;
        bool good = beta[t] > 0 && beta[t] < 1 && alpha_bar[t] >= ALPHA_BAR_MIN && alpha_bar[t] < before &&
                    fabs(beta[t] - (1 - alpha_bar[t] / before)) <= tol;
        if (!good) /* also if one of them is NaN */
            return t;
    }
    return -1;
}

/* The options with defaults filled in. */
static hone_status check_options(const hone_schedule_options *o, hone_schedule_options *full, int *index, hone_err *err)
{
    *full = *o;
    *index = sched_find(&table, o->name, "cosine", err);
    hone_status st = *index < 0 ? HONE_E_ARG : check_steps(o->steps, err);
    if (st)
        return st;
    const struct row *row = &rows[*index];
    if (row->limit > 0 && o->beta_start == 0 && o->beta_end == 0) {
        full->beta_start = row->start;
        full->beta_end = row->end;
    }
    bool none = row->limit == 0;
    if (none ? o->beta_start != 0 || o->beta_end != 0
             : !(full->beta_start > 0 && full->beta_start <= full->beta_end && full->beta_end <= row->limit))
        return err_set(err, HONE_E_ARG, "schedule", "%s: beta_start and beta_end must be %s; got %g and %g", row->name,
                       row->wanted, full->beta_start, full->beta_end);
    if (o->rescale && !row->rescale)
        return err_set(err, HONE_E_ARG, "schedule", "rescale is for linear and scaled_linear; got %s", row->name);
    return HONE_OK;
}

hone_schedule *hone_schedule_create(hone_ctx *ctx, const hone_schedule_options *options, hone_err *err)
{
    hone_schedule_options o;
    int index;
    double *beta, *alpha_bar, product = 1;
    if (err_is(err) || check_options(options, &o, &index, err))
        return NULL;
    hone_schedule *s = make(ctx, rows[index].name, o.steps, &beta, &alpha_bar, err);
    if (!s)
        return NULL;
    for (int t = 0; t < o.steps; t++) {
        double b = rows[index].beta(t, o.steps, o.beta_start, o.beta_end) * (o.rescale ? 1000.0 / o.steps : 1);
        beta[t] = b < BETA_MAX ? b : BETA_MAX;
        product *= 1 - beta[t];
        alpha_bar[t] = product;
    }
    int bad = first_bad(beta, alpha_bar, o.steps, TAKE_TOL);
    if (bad >= 0) {
        err_set(err, HONE_E_ARG, "schedule",
                "%s: the product of 1 - beta must fall strictly and stay above %g; got %g after beta %g at timestep %d",
                s->name, ALPHA_BAR_MIN, alpha_bar[bad], beta[bad], bad);
        hone_schedule_destroy(s);
        return NULL;
    }
    return s;
}

void hone_schedule_destroy(hone_schedule *s)
{
    if (s)
        mem_free(&s->ctx->mem, s);
}

hone_schedule_data hone_schedule_give(const hone_schedule *s)
{
    return (hone_schedule_data){s->name, s->steps, s->beta, s->alpha_bar, (size_t)s->steps, (size_t)s->steps};
}

hone_schedule *hone_schedule_take(hone_ctx *ctx, const hone_schedule_data *data, hone_err *err)
{
    double *beta, *alpha_bar;
    size_t length = data->name ? strlen(data->name) : 0;
    if (err_is(err))
        return NULL;
    if (length < 1 || length >= sizeof((hone_schedule *)0)->name) {
        err_set(err, HONE_E_FORMAT, "schedule", "the name must have 1 to %zu bytes; got %zu",
                sizeof((hone_schedule *)0)->name - 1, length);
        return NULL;
    }
    if (data->steps < 1 || data->steps > HONE_SCHED_MAX_STEPS || data->beta_count != (size_t)data->steps ||
        data->alpha_bar_count != (size_t)data->steps || !data->beta || !data->alpha_bar) {
        err_set(err, HONE_E_FORMAT, "schedule",
                "steps must be 1 to %d, and beta and alpha_bar that long; got %lld, with %zu and %zu",
                HONE_SCHED_MAX_STEPS, (long long)data->steps, data->beta_count, data->alpha_bar_count);
        return NULL;
    }
    int steps = (int)data->steps, bad = first_bad(data->beta, data->alpha_bar, steps, TAKE_TOL);
    if (bad >= 0) {
        err_set(err, HONE_E_FORMAT, "schedule",
                "alpha_bar must fall strictly inside of (0, 1), with beta = 1 - alpha_bar[t]/alpha_bar[t-1]; got "
                "alpha_bar %g after %g with beta %g at timestep %d",
                data->alpha_bar[bad], bad ? data->alpha_bar[bad - 1] : 1.0, data->beta[bad], bad);
        return NULL;
    }
    hone_schedule *s = make(ctx, data->name, steps, &beta, &alpha_bar, err);
    if (!s)
        return NULL;
    memcpy(beta, data->beta, (size_t)steps * sizeof *beta);
    memcpy(alpha_bar, data->alpha_bar, (size_t)steps * sizeof *alpha_bar);
    return s;
}
