/* Functions of one float as branch-free code that a compiler turns into vector code. Errors are measured by the suite
 * `vmath` against double: exp 1.5 ulp; tanh, mish, silu, gelu a few ulp of their largest neighbour. */
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

/* 2^n e^r, r in [-ln 2 / 2, ln 2 / 2], a polynomial of degree 6 (Cephes' expf). Below -87 it gives e^-87, above 88.7
 * infinity; NaN stays NaN. */
static inline float v_exp(float x)
{
    float c = x < -87.0f ? -87.0f : x > 88.7228f ? 88.7228f : x;
    float n = c * 1.44269504088896341f + 12582912.0f; /* the sum rounds to an integer, which stands in its low bits */
    uint32_t e = v_bits(n) << 23;
    n -= 12582912.0f;
    float r = (c - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    float y = v_of_bits(v_bits(p) + e); /* times 2^n: at most 2^128, whose bits are those of infinity or above */
    y = x > 88.7228f ? INFINITY : y;
    return x == x ? y : x;
}

static inline float v_tanh(float x)
{
    float a = x < 0 ? -x : x, e = v_exp(-2 * a), big = (1 - e) / (1 + e), s = x * x;
    /* near 0 the quotient cancels: odd polynomial (Cephes' tanhf) */
    float p = -5.70498872745e-3f;
    p = p * s + 2.06390887954e-2f;
    p = p * s + -5.37397155531e-2f;
    p = p * s + 1.33314422036e-1f;
    p = p * s + -3.33332819422e-1f;
    p = p * s * x + x;
    big = x < 0 ? -big : big;
    return a < 0.625f ? p : big;
}

static inline float v_sigmoid(float x)
{
    return 1.0f / (1.0f + v_exp(-x));
}

/* x tanh(log(1 + e^x)) = x n / (n + 2), n = e^x (e^x + 2); above 20 that is x. */
static inline float v_mish(float x)
{
    float e = v_exp(x > 20.0f ? 20.0f : x), n = e * (e + 2.0f), y = x * (n / (n + 2.0f));
    return x > 20.0f ? x : y;
}

#endif
