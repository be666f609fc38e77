/* bfloat16: the upper half of a float. */
#ifndef TENSOR_BF16_H
#define TENSOR_BF16_H

#include <stdint.h>
#include <string.h>

/* The nearest one, ties to even; NaN stays NaN. */
static inline uint16_t bf16_of(float x)
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    if (x != x)
        return (uint16_t)(b >> 16 | 0x40);
    return (uint16_t)((b + 0x7FFF + (b >> 16 & 1)) >> 16);
}

static inline float bf16_float(uint16_t h)
{
    const uint32_t b = (uint32_t)h << 16;
    float x;
    memcpy(&x, &b, sizeof x);
    return x;
}

#endif
