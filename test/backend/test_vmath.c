/* The vector functions of the CPU's kernels, and the kernels made of them, against double over dense sweeps; an
 * element's result is the same bits wherever it stands. */
#include "backend/cpu/vmath.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "graph/backend.h"

enum { SWEEP = 100001 };

static float sweep_at(double lo, double hi, int i)
{
    return (float)(lo + (hi - lo) * i / (SWEEP - 1));
}

/* |got - want| in units of the last place of want, or of `floor` where that is larger. */
static double ulps(double got, double want, double floor)
{
    int e;
    frexp(fmax(fabs(want), fmax(floor, FLT_MIN)), &e);
    return got == want ? 0 : fabs(got - want) / ldexp(1, e - FLT_MANT_DIG);
}

/* --- functions --- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double mish(double x)
{
    return x * tanh(softplus(x));
}

static double mish_slope(double x)
{
    const double e = exp(x), d = e * (e + 2) + 2;
    return e * (4 * (x + 1) + e * (4 * x + 6 + e * (e + 4))) / (d * d);
}

static double silu_slope(double x)
{
    return sigmoid(x) * (1 + x * sigmoid(-x));
}

static const struct {
    const char *name;
    float (*f)(float);
    double (*g)(double);
    double lo, hi, ulp, floor; /* floor: errors are counted in units of at least that number */
} functions[] = {
    {"exp", v_exp, exp, V_EXP_MIN, V_EXP_MAX, 1.1},
    {"exp near 0", v_exp, exp, -1, 1, 1.1},
    {"log", v_log, log, 1e-3, 100, 1},
    {"log near 1", v_log, log, 0.7, 1.5, 1},
    {"log of large numbers", v_log, log, 1, FLT_MAX, 1},
    {"log of small numbers", v_log, log, 1e-40, 1e-37, 1},
    {"log1p_unit", v_log1p_unit, log1p, 0, 1, 1.8},
    {"softplus", v_softplus, softplus, -87, 90, 2.1},
    {"softplus near 0", v_softplus, softplus, -3, 3, 2.1},
    {"tanh", v_tanh, tanh, -12, 12, 1.6},
    {"tanh near 0", v_tanh, tanh, -0.7, 0.7, 1.6},
    {"sigmoid", v_sigmoid, sigmoid, -87, 87, 2.5},
    {"mish", v_mish, mish, -80, 40, 4},
    {"mish near 0", v_mish, mish, -3, 3, 4},
    {"slope of mish left of its zero", v_mish_slope, mish_slope, -80, -1.5, 5},
    {"slope of mish around its zero", v_mish_slope, mish_slope, -1.5, -0.5, 6, 0.125},
    {"slope of mish right of its zero", v_mish_slope, mish_slope, -0.5, 40, 6},
    {"slope of silu left of its zero", v_silu_slope, silu_slope, -80, -1.6, 7.5},
    {"slope of silu around its zero", v_silu_slope, silu_slope, -1.6, -0.5, 6, 0.125},
    {"slope of silu right of its zero", v_silu_slope, silu_slope, -0.5, 87, 2.5},
    {"erf", v_erf, erf, -5, 5, 1.2},
    {"erf near 0", v_erf, erf, -1, 1, 1.2},
    {"sin", v_sin, sin, -10, 10, 1.6},
    {"sin of large angles", v_sin, sin, -V_TURN_MAX, V_TURN_MAX, 1.6},
    {"cos", v_cos, cos, -10, 10, 1.6},
    {"cos of large angles", v_cos, cos, -V_TURN_MAX, V_TURN_MAX, 1.6},
};

static void sweeps(struct check *c)
{
    for (size_t k = 0; k < sizeof functions / sizeof functions[0]; k++) {
        if (!check_case(c, "%s", functions[k].name))
            continue;
        double worst = 0, where = 0;
        for (int i = 0; i < SWEEP; i++) {
            const float x = sweep_at(functions[k].lo, functions[k].hi, i);
            const double d = ulps(functions[k].f(x), functions[k].g(x), functions[k].floor);
            if (!(d <= worst)) {
                worst = d;
                where = x;
            }
        }
        CHECK_MSG(c, worst <= functions[k].ulp, "%.3f units of the last place at %.9g", worst, where);
    }
}

static void ends(struct check *c)
{
    const float inf = INFINITY;
    if (check_case(c, "NaN"))
        for (size_t k = 0; k < sizeof functions / sizeof functions[0]; k++)
            for (uint32_t b = 0x7f800001u; b >= 0x7f800001u && b < 0xff800002u; b += 0x3fffffu)
                if (isnan(v_of_bits(b)))
                    CHECK_MSG(c, isnan(functions[k].f(v_of_bits(b))), "%s of %#x", functions[k].name, (unsigned)b);
    if (check_case(c, "ends of exp")) {
        CHECK(c, v_exp(0) == 1 && v_exp(-inf) == 0 && v_exp(inf) == inf && v_exp(-1e30f) == 0 && v_exp(89) == inf);
        CHECK(c, v_exp(V_EXP_MIN) >= FLT_MIN * 0.999f && v_exp(V_EXP_MAX) <= FLT_MAX && v_exp(-87.34f) == 0);
    }
    if (check_case(c, "ends of log")) {
        CHECK(c, v_log(1) == 0 && v_log(0) == -inf && v_log(-0.0f) == -inf && v_log(inf) == inf);
        CHECK(c, isnan(v_log(-1)) && isnan(v_log(-FLT_TRUE_MIN)) && isnan(v_log(-inf)));
        CHECK(c, fabs((double)v_log(FLT_TRUE_MIN) + 103.27893) < 1e-5);
    }
    if (check_case(c, "ends of the others")) {
        CHECK(c, v_tanh(inf) == 1 && v_tanh(-inf) == -1 && v_tanh(1e30f) == 1 && v_tanh(-50) == -1);
        CHECK(c, v_erf(inf) == 1 && v_erf(-inf) == -1 && v_erf(1e30f) == 1 && v_erf(-4.5f) == -1);
        CHECK(c, v_sigmoid(inf) == 1 && v_sigmoid(-inf) == 0 && v_sigmoid(-1e30f) == 0);
        CHECK(c, v_softplus(inf) == inf && v_softplus(1e30f) == 1e30f && v_softplus(-inf) == 0);
        CHECK(c, v_mish(inf) == inf && v_mish(1e30f) == 1e30f && v_mish(-200) == 0);
        CHECK(c, v_mish_slope(inf) == 1 && v_mish_slope(1e30f) == 1 && v_mish_slope(-inf) == 0);
        CHECK(c, v_silu_slope(inf) == 1 && v_silu_slope(1e30f) == 1 && v_silu_slope(-inf) == 0);
        CHECK(c, v_mish_slope(-1e30f) == 0 && v_silu_slope(-1e30f) == 0 && v_silu_slope(0) == 0.5f);
        CHECK(c, v_sin(0) == 0 && v_cos(0) == 1);
    }
}

/* --- kernels --- */

/* Of two operands both are x. */
static void run_on(struct bk_dev *dev, const struct op_def *d, const struct op_attr *a, const float *x, float *y,
                   int64_t n, int threads)
{
    const hone_type t[2] = {{HONE_F32, HONE_SHAPE(n)}, {HONE_F32, HONE_SHAPE(n)}};
    const struct op_call call = {d, d->max_in, 1, t, t, *a, NULL};
    hone_err err = {0};
    const struct bk_kernel *k = bk_table[0]->find(&call);
    k->run(
        &(struct bk_io){
            .call = &call, .in = (const void *[]){x, x}, .out = (void *[]){y}, .threads = threads, .dev = dev},
        &err);
}

/* Kernels whose errors are not those of a function above. share: errors are counted in units of at least that part of
 * |x|, where a small result comes of a difference of larger numbers. */
static const struct {
    const char *name;
    double lo, hi, ulp, share;
} kernels[] = {{"exp", -80, 80, 1.1, 0},        {"log", 1e-3, 100, 1, 0},   {"sqrt", 0, 100, 0.51, 0},
               {"rsqrt", 1e-3, 100, 1.6, 0},    {"erf", -4, 4, 1.2, 0},     {"tanh", -12, 12, 1.6, 0},
               {"sin", -3e6, 3e6, 1.6, 0},      {"cos", -3e6, 3e6, 1.6, 0}, {"silu", -80, 80, 3, 0},
               {"softplus", -80, 80, 2.1, 0},   {"mish", -80, 80, 4, 0},    {"gelu", -90, 90, 2.6, 0.25},
               {"gelu_tanh", -90, 90, 4, 0.25}, {"floor", -9, 9, 0, 0},     {"sigmoid", -80, 80, 2.5, 0}};

static void kernel_sweeps(struct check *c, struct bk_dev *dev, float *x, float *y, double *wide, double *want)
{
    for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++) {
        if (!check_case(c, "kernel of %s", kernels[k].name))
            continue;
        const struct op_def *d = op_find(kernels[k].name);
        const hone_type t = {HONE_F32, HONE_SHAPE(SWEEP)};
        const struct op_call call = {d, 1, 1, &t, &t, {{0}, {0}}, NULL};
        for (int i = 0; i < SWEEP; i++)
            wide[i] = x[i] = sweep_at(kernels[k].lo, kernels[k].hi, i);
        run_on(dev, d, &call.attr, x, y, SWEEP, 2);
        d->ref(&call, (const double *[]){wide}, (double *[]){want});
        int at = 0;
        double worst = 0;
        for (int i = 0; i < SWEEP; i++) {
            const double u = ulps(y[i], want[i], kernels[k].share * fabs(wide[i]));
            if (!(u <= worst)) {
                worst = u;
                at = i;
            }
        }
        CHECK_MSG(c, worst <= kernels[k].ulp, "%.3f units of the last place at %.9g: %.9g, reference %.9g", worst,
                  wide[at], (double)y[at], want[at]);
    }
}

static bool same(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (v_bits(a[i]) != v_bits(b[i]) && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

/* Alone, in the middle of a vector, in a tail, in place, on several threads. */
static void kernels_everywhere(struct check *c, struct bk_dev *dev, float *x, float *y, float *z)
{
    for (int o = 0; op_table[o]; o++) {
        const struct op_def *d = op_table[o];
        const bool one = d->shape == op_shape_unary && d->max_in == 1;
        if ((!one && (d->shape != op_shape_alike || d->max_in != 2)) || d->n_cases == 0 ||
            !check_case(c, "%s: the same bits everywhere", d->name))
            continue;
        const struct op_attr *a = &d->cases[0].attr;
        for (int i = 0; i < SWEEP; i++)
            x[i] = sweep_at(-30, 70, i);
        x[77] = 3e7f; /* beyond the vector functions of waves */
        run_on(dev, d, a, x, y, SWEEP, 1);
        for (int n = 1, at = 0; n < 70 && at + n < SWEEP; at += n, n++) {
            run_on(dev, d, a, x + at, z, n, 1);
            CHECK_MSG(c, same(y + at, z, n), "%d elements from %d", n, at);
        }
        run_on(dev, d, a, x, z, SWEEP, 3);
        CHECK_MSG(c, same(y, z, SWEEP), "on three threads");
        memcpy(z, x, SWEEP * sizeof *x);
        run_on(dev, d, a, z, z, SWEEP, 1);
        CHECK_MSG(c, same(y, z, SWEEP), "in place");
    }
}

void suite_vmath(struct check *c)
{
    float *f = malloc(3 * SWEEP * sizeof *f);
    double *d = malloc(2 * SWEEP * sizeof *d);
    sweeps(c);
    ends(c);
    hone_ctx *ctx = hone_ctx_create(&(hone_ctx_options){.threads = 3}, NULL);
    struct bk_dev *dev = ctx ? bk_table[0]->open(ctx, NULL) : NULL;
    if (CHECK(c, dev)) {
        kernel_sweeps(c, dev, f, f + SWEEP, d, d + SWEEP);
        kernels_everywhere(c, dev, f, f + SWEEP, f + 2 * SWEEP);
    }
    bk_table[0]->close(dev);
    hone_ctx_destroy(ctx);
    free(d);
    free(f);
}
