/* The vector functions of the CPU's kernels against double over dense sweeps. */
#include "backend/cpu/vmath.h"

#include <math.h>

#include "check.h"

/* Largest |f - g| over the sweep in units of the last place of g (of 1e-30 at the least). */
static double worst_ulp(float (*f)(float), double (*g)(double), double lo, double hi, double *at)
{
    double worst = 0;
    for (int i = 0; i <= 200000; i++) {
        float x = (float)(lo + (hi - lo) * i / 200000);
        double want = g(x), got = f(x);
        int e;
        frexp(fmax(fabs(want), 1e-30), &e);
        double d = fabs(got - want) / ldexp(1, e - 24);
        if (d > worst) {
            worst = d;
            *at = x;
        }
    }
    return worst;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double mish(double x)
{
    return x * tanh(x > 30 ? x : log1p(exp(x)));
}

void suite_vmath(struct check *c)
{
    static const struct {
        const char *name;
        float (*f)(float);
        double (*g)(double);
        double lo, hi, ulp;
    } t[] = {{"exp", v_exp, exp, -86, 88, 2},
             {"tanh", v_tanh, tanh, -12, 12, 3},
             {"tanh near 0", v_tanh, tanh, -0.7, 0.7, 3},
             {"sigmoid", v_sigmoid, sigmoid, -60, 60, 5},
             {"mish", v_mish, mish, -40, 40, 5}};
    for (int i = 0; i < 5; i++)
        if (check_case(c, "%s", t[i].name)) {
            double at = 0, ulp = worst_ulp(t[i].f, t[i].g, t[i].lo, t[i].hi, &at);
            CHECK_MSG(c, ulp <= t[i].ulp, "%.2f units of the last place at %g", ulp, at);
        }
    if (check_case(c, "ends")) {
        CHECK(c, isinf(v_exp(89)) && v_exp(-200) >= 0 && v_exp(-200) < 1e-37f && isinf(v_exp(INFINITY)));
        CHECK(c, isnan(v_exp(NAN)) && isnan(v_tanh(NAN)) && isnan(v_sigmoid(NAN)) && isnan(v_mish(NAN)));
        CHECK(c, v_tanh(50) == 1 && v_tanh(-50) == -1 && v_sigmoid(100) == 1 && v_sigmoid(-200) < 1e-37f);
        CHECK(c, v_mish(1e30f) == 1e30f && fabsf(v_mish(-200)) < 1e-30f);
    }
}
