/* Functions of one float as branch-free code, which a compiler turns into vector code. Each gives the same bits
 * wherever an element stands in a tensor. NaN gives NaN. Results below the smallest normal number may come out as 0.
 *
 * Polynomials are minimax fits to the function named beside them. Largest errors found against double over dense
 * sweeps, in units of the last place of the result, with and without contraction:
 *
 *     log 0.9   exp 1.0   erf 1.1   tanh 1.5   sin, cos 1.5   log1p_unit 1.7   softplus 2.0   sigmoid 2.4   mish 3.8
 *
 * The slopes of mish and silu stay within 7, about their zeros at -1.19 and -1.28 in units of 0.125.
 *
 * The suite `vmath` holds them to a little more, and the kernels made of them.
 */
#ifndef BACKEND_CPU_VMATH_H
#define BACKEND_CPU_VMATH_H

#include <math.h>
#include <stdint.h>

static inline float v_of_bits(uint32_t b)
{
    union {
        uint32_t b;
        float f;
    } u = {b};
    return u.f;
}

static inline uint32_t v_bits(float f)
{
    union {
        float f;
        uint32_t b;
    } u = {f};
    return u.b;
}

/* Where e^x leaves the normal numbers: the logarithms of the smallest one, and of the largest. */
#define V_EXP_MIN -87.336544f
#define V_EXP_MAX 88.722832f

/* e^x for V_EXP_MIN <= x <= V_EXP_MAX: 2^n e^r with r in [-ln 2 / 2, ln 2 / 2]. Of NaN it makes any number. */
static inline float v_exp_inside(float x)
{
    float n = x * 1.44269504f + 12582912.0f; /* the sum rounds to an integer, which stands in its low bits */
    const uint32_t e = v_bits(n) << 23;
    n -= 12582912.0f;
    const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f; /* ln 2 in two parts: the first product is exact */
    float p = 1.3836713e-3f;                                      /* (e^r - 1 - r) / r^2 */
    p = p * r + 8.36914e-3f;
    p = p * r + 4.1668106e-2f;
    p = p * r + 0.16666517f;
    p = p * r + 0.49999994f;
    p = p * (r * r) + r + 1.0f;
    return v_of_bits(v_bits(p) + e); /* times 2^n */
}

/* 0 below V_EXP_MIN, infinity above V_EXP_MAX. */
static inline float v_exp(float x)
{
    float y = v_exp_inside(x < V_EXP_MIN ? V_EXP_MIN : x > V_EXP_MAX ? V_EXP_MAX : x);
    y = x < V_EXP_MIN ? 0 : y;
    y = x > V_EXP_MAX ? INFINITY : y;
    return x == x ? y : x;
}

/* x = 2^k m, m in [sqrt 1/2, sqrt 2): k ln 2 + log m. -infinity of 0, NaN of less. */
static inline float v_log(float x)
{
    const int tiny = x < 1.17549435e-38f; /* not normal */
    const uint32_t b = v_bits(tiny ? x * 8388608.0f : x), half = 0x3f3504f3u /* of sqrt 1/2 */;
    const int32_t k = (int32_t)(b - half) >> 23;
    const float f = v_of_bits(b - ((uint32_t)k << 23)) - 1.0f, n = (float)(k - (tiny ? 23 : 0)), s = f * f;
    float p = -7.637565e-2f; /* (log(1 + f) - f + f^2 / 2) / f^3 */
    p = p * f + 0.12778844f;
    p = p * f + -0.13165514f;
    p = p * f + 0.14199829f;
    p = p * f + -0.16622761f;
    p = p * f + 0.20001279f;
    p = p * f + -0.25000837f;
    p = p * f + 0.3333333f;
    p = p * f * s + n * -2.12194440e-4f - 0.5f * s;
    float y = n * 0.693359375f + (f + p);
    y = x > 0 ? y : x == 0 ? -INFINITY : NAN;
    return x < INFINITY ? y : x; /* infinity and NaN are their own */
}

/* log(1 + x) for 0 <= x <= 1. */
static inline float v_log1p_unit(float x)
{
    float p = -3.2904686e-3f; /* (log(1 + x) / x - 1) / x */
    p = p * x + 2.0086242e-2f;
    p = p * x + -5.745723e-2f;
    p = p * x + 0.10661128f;
    p = p * x + -0.1534488f;
    p = p * x + 0.19692102f;
    p = p * x + -0.24958019f;
    p = p * x + 0.33330464f;
    p = p * x + -0.4999993f;
    return p * x * x + x;
}

/* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), which never overflows. */
static inline float v_softplus(float x)
{
    return (x > 0 ? x : 0) + v_log1p_unit(v_exp(x < 0 ? x : -x));
}

static inline float v_tanh(float x)
{
    const float a = x < 0 ? -x : x, s = x * x;
    const float e = v_exp_inside(-2.0f * (a > 10.0f ? 10.0f : a)), big = (1.0f - e) / (1.0f + e);
    float p = -5.6636287e-3f; /* near 0 the quotient cancels: (tanh(x) / x - 1) / x^2 */
    p = p * s + 2.0603241e-2f;
    p = p * s + -5.372913e-2f;
    p = p * s + 0.13331321f;
    p = p * s + -0.33333278f;
    p = p * s * x + x;
    const float y = a < 0.625f ? p : x < 0 ? -big : big;
    return x == x ? y : x;
}

static inline float v_sigmoid(float x)
{
    return 1.0f / (1.0f + v_exp(-x));
}

/* x tanh(log(1 + e^x)) = x n / (n + 2), n = e^x (e^x + 2); above 20 that is x. */
static inline float v_mish(float x)
{
    const float e = v_exp(x > 20.0f ? 20.0f : x), n = e * (e + 2.0f), y = x * (n / (n + 2.0f));
    return x > 20.0f ? x : y;
}

/* The slopes of mish and silu; beyond their ends they are 0 and 1.
 * With n as above: e^x (4 (x + 1) + e^x (4 x + 6 + e^x (e^x + 4))) / (n + 2)^2. */
static inline float v_mish_slope(float x)
{
    const float t = x < -88.0f ? -88.0f : x > 20.0f ? 20.0f : x, e = v_exp(t), d = e * (e + 2.0f) + 2.0f;
    const float y = e * (4.0f * (t + 1.0f) + e * (4.0f * t + 6.0f + e * (e + 4.0f))) / (d * d);
    return x > 20.0f ? 1.0f : y;
}

/* s (1 + x (1 - s)), s = sigmoid(x), by e^-|x|, of which neither s nor 1 - s loses digits. */
static inline float v_silu_slope(float x)
{
    const float t = x < -88.0f ? -88.0f : x > 88.0f ? 88.0f : x, e = v_exp(t > 0 ? -t : t), d = 1.0f + e;
    return ((t > 0 ? 1.0f : e) * d + t * e) / (d * d);
}

static inline float v_erf(float x)
{
    const float a = x < 0 ? -x : x, t = a > 4.0f ? 4.0f : a, s = x * x; /* at 4 it is 1 to the last place */
    float p = 9.117459e-5f;                                             /* erf(x) / x - 1 */
    p = p * s + -8.3460595e-4f;
    p = p * s + 5.2217725e-3f;
    p = p * s + -2.686908e-2f;
    p = p * s + 0.11283894f;
    p = p * s + -0.37612647f;
    p = p * s + 0.12837917f;
    p = p * x + x;
    float q = -1.9409443e-4f; /* -log(1 - erf(t)) - t */
    q = q * t + 3.0252812e-3f;
    q = q * t + -2.2156037e-2f;
    q = q * t + 0.103785925f;
    q = q * t + 0.63734657f;
    q = q * t + 0.12757908f;
    q = q * t + 2.1878532e-4f;
    const float big = 1.0f - v_exp_inside(-(q + t));
    const float y = a < 0.9375f ? p : x < 0 ? -big : big;
    return x == x ? y : x;
}

/* sin and cos are right for |x| <= V_TURN_MAX; whoever has more asks libm. */
#define V_TURN_MAX 1048576.0f

/* sin(x + turn pi / 2): x = n pi / 2 + r in double, with pi / 2 in two parts of which the first makes exact products;
 * then sin or cos of r in [-pi / 4, pi / 4] by the quarter n. */
static inline float v_wave(float x, uint32_t turn)
{
    union {
        double d;
        uint64_t b;
    } n = {(double)x * 0.63661977236758134 + 6755399441055744.0};
    const uint32_t quarter = (uint32_t)n.b + turn;
    const double whole = n.d - 6755399441055744.0;
    const float r = (float)(((double)x - whole * 1.5707963267341256) - whole * 6.077100506506192e-11), s = r * r;
    float p = -1.9518605e-4f; /* (sin(r) / r - 1) / r^2 */
    p = p * s + 8.332191e-3f;
    p = p * s + -0.16666655f;
    p = p * s * r + r;
    float q = 2.443067e-5f; /* (cos(r) - 1 + r^2 / 2) / r^4 */
    q = q * s + -1.3887301e-3f;
    q = q * s + 4.1666646e-2f;
    q = q * s * s - 0.5f * s + 1.0f;
    return v_of_bits(v_bits(quarter & 1 ? q : p) ^ (quarter & 2) << 30);
}

static inline float v_sin(float x)
{
    return v_wave(x, 0);
}

static inline float v_cos(float x)
{
    return v_wave(x, 1);
}

#endif
