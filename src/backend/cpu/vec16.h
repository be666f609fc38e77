/* Vectors of 16 floats with the portable vector types of GCC and clang: the same code is compiled for AVX-512, AVX2 and
 * plainly. Everything is inlined, so that it takes the instruction set of the function that it stands in. */
#ifndef BACKEND_CPU_VEC16_H
#define BACKEND_CPU_VEC16_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Vectors are passed to nothing but inlined functions, so how the machine passes them does not matter. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

#define VEC_LANES  16
#define VEC_INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(64)));
typedef int32_t ivec __attribute__((vector_size(64)));
/* The same in memory, where it may stand at any float. */
typedef float mem_vec __attribute__((vector_size(64), aligned(4), may_alias));

/* x everywhere. */
VEC_INLINE vec vec_all(float x)
{
    return x - (vec){0};
}

VEC_INLINE vec vec_load(const float *p)
{
    return *(const mem_vec *)p;
}

/* Of 16 pairs of bfloat16, each pair in the place of a float, the first and the second ones. */
VEC_INLINE vec vec_low_half(vec pairs)
{
    return (vec)((ivec)pairs << 16);
}

VEC_INLINE vec vec_high_half(vec pairs)
{
    return (vec)((ivec)pairs & (int32_t)0xFFFF0000);
}

/* a where the mask is set (all bits of an element), b elsewhere. */
VEC_INLINE vec vec_pick(ivec mask, vec a, vec b)
{
    return (vec)(((ivec)a & mask) | ((ivec)b & ~mask));
}

/* The first n floats at p, zeros behind them. */
VEC_INLINE vec vec_load_part(const float *p, int64_t n)
{
    vec v = {0};
    if (n >= VEC_LANES)
        return *(const mem_vec *)p;
    memcpy(&v, p, (size_t)n * sizeof(float));
    return v;
}

VEC_INLINE void vec_store_part(float *p, vec v, int64_t n)
{
    if (n >= VEC_LANES)
        *(mem_vec *)p = v;
    else
        memcpy(p, &v, (size_t)n * sizeof(float));
}

/* e^x: 2^n e^r with a polynomial of degree 6; the argument is held in [-87, 88]. */
VEC_INLINE vec vec_exp(vec x)
{
    const vec hi = vec_all(88.0f), lo = vec_all(-87.0f);
    x = vec_pick(x > hi, hi, x);
    x = vec_pick(x < lo, lo, x);
    vec n = x * 1.44269504f + 12582912.0f; /* rounds to an integer in the low bits */
    ivec e = (ivec)n - 0x4B400000;
    n -= 12582912.0f;
    vec r = x - n * 0.693359375f + n * 2.12194440e-4f;
    vec p = vec_all(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return (vec)((ivec)p + (e << 23));
}

/* x tanh(log(1 + e^x)) = x n / (n + 2) with n = e^x (e^x + 2); beyond 20 that is x. */
VEC_INLINE vec vec_mish(vec x)
{
    vec e = vec_exp(vec_pick(x > 20.0f, vec_all(20.0f), x)), n = e * (e + 2.0f), y = x * n / (n + 2.0f);
    return vec_pick(x > 20.0f, x, y);
}

VEC_INLINE vec vec_silu(vec x)
{
    return x / (1.0f + vec_exp(-x));
}

/* x/2 (1 + tanh(u)) = x / (1 + e^(-2u)), u = sqrt(2/pi) (x + 0.044715 x^3). */
VEC_INLINE vec vec_gelu_tanh(vec x)
{
    return x / (1.0f + vec_exp(-1.5957691216f * (x + 0.044715f * x * x * x)));
}

VEC_INLINE vec vec_relu(vec x)
{
    return vec_pick(x > 0.0f, x, (vec){0});
}

/* Slopes of these. With e = e^x and n = e (e + 2) that of mish is n / (n + 2) + 4 x e (1 + e) / (n + 2)^2. */
VEC_INLINE vec vec_mish_slope(vec x)
{
    vec e = vec_exp(vec_pick(x > 20.0f, vec_all(20.0f), x)), n = e * (e + 2.0f), d = n + 2.0f;
    vec y = (n * d + 4.0f * x * (e * (e + 1.0f))) / (d * d);
    return vec_pick(x > 20.0f, vec_all(1.0f), y);
}

/* s + x s (1 - s), s = 1 / (1 + e^-x). */
VEC_INLINE vec vec_silu_slope(vec x)
{
    vec s = 1.0f / (1.0f + vec_exp(-x));
    return s + x * (s * (1.0f - s));
}

/* The same with s = 1 / (1 + e^-a), and x times the slope of a, for the second x: a = 2u of vec_gelu_tanh. */
VEC_INLINE vec vec_gelu_tanh_slope(vec x)
{
    vec q = x * x, s = 1.0f / (1.0f + vec_exp(-1.5957691216f * x * (1.0f + 0.044715f * q)));
    return s + 1.5957691216f * x * (1.0f + 0.134145f * q) * (s * (1.0f - s));
}

VEC_INLINE vec vec_relu_slope(vec x)
{
    return vec_pick(x > 0.0f, vec_all(1.0f), (vec){0});
}

#endif
