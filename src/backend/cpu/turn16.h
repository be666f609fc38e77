/* Transposition of tiles of 16 x 16 floats in registers: four rounds in which rows 8, 4, 2 and 1 apart exchange parts.
 */
#ifndef BACKEND_CPU_TURN16_H
#define BACKEND_CPU_TURN16_H

#include "backend/cpu/cpu.h"
#include "backend/cpu/vec16.h"

#if defined(__clang__)
#define TURN_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define TURN_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (ivec){__VA_ARGS__})
#endif

/* Rows `apart` from each other; the lanes of the first that stay, and those that come from the second, and so on. */
#define TURN_ROUND(v, apart, first, second)                                                                            \
    CPU_PRAGMA(GCC unroll 16)                                                                                          \
    for (int i = 0; i < VEC_LANES; i++)                                                                                \
        if (!(i & (apart))) {                                                                                          \
            const vec a = (v)[i], b = (v)[i + (apart)];                                                                \
            (v)[i] = TURN_SHUFFLE(a, b, first);                                                                        \
            (v)[i + (apart)] = TURN_SHUFFLE(a, b, second);                                                             \
        }
#define TURN_LIST(...) __VA_ARGS__

VEC_INLINE void turn_vectors(vec *v){
    TURN_ROUND(v, 8, TURN_LIST(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
               TURN_LIST(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
        TURN_ROUND(v, 4, TURN_LIST(0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
                   TURN_LIST(4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))
            TURN_ROUND(v, 2, TURN_LIST(0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),
                       TURN_LIST(2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
                TURN_ROUND(v, 1, TURN_LIST(0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30),
                           TURN_LIST(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))}

/* Whole tiles in registers; whatever is not, number by number. */
VEC_INLINE void turn_tile(float *to, const float *x, int64_t step, int64_t rows, int64_t columns, const bool wide)
{
    vec v[VEC_LANES];
    if (wide && rows >= VEC_LANES && columns >= VEC_LANES) {
        for (int r = 0; r < VEC_LANES; r++)
            v[r] = vec_load(x + r * step);
        turn_vectors(v);
        for (int c = 0; c < VEC_LANES; c++)
            *(mem_vec *)(to + c * VEC_LANES) = v[c];
        return;
    }
    for (int64_t c = 0; c < columns && c < VEC_LANES; c++)
        for (int r = 0; r < VEC_LANES; r++)
            to[c * VEC_LANES + r] = r < rows ? x[r * step + c] : 0;
}

/* x [rows, columns], at most 16 rows `step` floats apart -> to [columns, 16]; rows that are missing are zeros. */
VEC_INLINE void turn_rows16(float *to, const float *x, int64_t step, int64_t rows, int64_t columns, const bool wide)
{
    for (int64_t c = 0; c < columns; c += VEC_LANES)
        turn_tile(to + c * VEC_LANES, x + c, step, rows, columns - c, wide);
}

#endif
