/* The products of conv_block: some rows of time by some blocks of 16 output channels, their sums in registers while the
 * weights of the blocks are read once, in order. Rows, taps and blocks are constants wherever this is inlined.
 *
 * Per input channel and tap a tile of R rows and N blocks loads N vectors of weights and R numbers for R N products;
 * with R N = 16 products of 16 that takes eight cycles on two units, in which N 64 bytes of weights arrive: with 4 rows
 * faster than any cache beyond the first gives them. With 8 rows or more it computes long enough for them to come from
 * a distant cache meanwhile, but only if they are asked for that far ahead: the 500 instructions that a core looks
 * ahead by itself are about 25 vectors. */
#ifndef BACKEND_CPU_CONV_TILE_H
#define BACKEND_CPU_CONV_TILE_H

#include "backend/cpu/cpu.h"
#include "backend/cpu/vec16.h"

enum { TILE_AHEAD = 32 }; /* vectors of weights that are asked for before they are needed */

struct conv_tile {
    int64_t channels, step; /* floats from a row to the next: step of the results, `tap` of the taps */
    int64_t tap, taps;
    int64_t next;     /* floats from an input channel to the next */
    const float *x;   /* first row that the first result reads */
    const char *w;    /* weights of the first block */
    int64_t block;    /* bytes from a block of weights to the next */
    float *y;         /* result of the first row and block */
    int64_t width;    /* floats from a row of results to the next */
    const char *then; /* of conv_turned: weights that are read next */
};

/* Adds the products of tap k with its weights v[blocks] to the sums a[rows][blocks]. `first`, `last`: the sequence
 * begins with the first row, ends with the last; then taps outside of it are left out, where `same` (stride 1, as many
 * results as rows, x being the row of the first result). */
VEC_INLINE void add_products(const struct conv_tile *j, vec *a, const vec *v, const float *x, const int k,
                             const int rows, const int blocks, const int taps, const bool same, const bool first,
                             const bool last)
{
    const int pad = same ? taps / 2 : 0;
    CPU_PRAGMA(GCC unroll 16)
    for (int r = 0; r < rows; r++) {
        if ((first && r + k < pad) || (last && r + k - pad >= rows))
            continue;
        const float q = same ? x[(r + k - pad) * j->step] : x[r * j->step + k * j->tap];
        CPU_PRAGMA(GCC unroll 4)
        for (int b = 0; b < blocks; b++)
            a[r * blocks + b] += v[b] * q;
    }
}

/* `half`: weights are pairs of bf16, those of two input channels. */
VEC_INLINE void conv_tile(const struct conv_tile *j, const int rows, const int blocks, const int taps, const bool half,
                          const bool same, const bool first, const bool last)
{
    vec a[16];
    const float *x = j->x;
    const char *w = j->w;
    const int n_taps = taps ? taps : (int)j->taps, together = half ? 2 : 1;
    for (int i = 0; i < rows * blocks; i++)
        a[i] = (vec){0};
    for (int64_t c = 0; c < j->channels; c += together, x += together * j->next) {
        CPU_PRAGMA(GCC unroll 5)
        for (int k = 0; k < n_taps; k++, w += sizeof(vec)) {
            vec v[4], low[4], high[4];
            CPU_PRAGMA(GCC unroll 4)
            for (int b = 0; b < blocks; b++) {
                v[b] = vec_load((const float *)(w + b * j->block));
                if (rows >= 4) /* one block lies behind the other */
                    __builtin_prefetch(w + b * j->block + TILE_AHEAD * sizeof(vec));
                low[b] = vec_low_half(v[b]);
                high[b] = vec_high_half(v[b]);
            }
            add_products(j, a, half ? low : v, x, k, rows, blocks, taps, same, first, last);
            if (half)
                add_products(j, a, high, x + j->next, k, rows, blocks, taps, same, first, last);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int b = 0; b < blocks; b++)
            *(mem_vec *)(j->y + r * j->width + b * VEC_LANES) = a[r * blocks + b];
}

/* One tap, one block, `rows` rows of 16 that stand side by side: x [channels, 16]. `add`: to what is in y. */
VEC_INLINE void conv_turned(const struct conv_tile *j, const int rows, const bool half, const bool add)
{
    vec a[VEC_LANES];
    const float *x = j->x;
    const char *w = j->w, *ahead = w + TILE_AHEAD * sizeof(vec);
    const int64_t vectors = j->channels / (half ? 2 : 1);
    const int64_t step = VEC_LANES * (half ? 2 : 1);
    int64_t n = vectors > TILE_AHEAD ? vectors - TILE_AHEAD : 0;
    for (int r = 0; r < rows; r++)
        a[r] = add ? vec_load(j->y + r * j->width) : (vec){0};
    for (int part = 0; part < 2; part++, n = vectors - n, ahead = j->then)
        for (int64_t i = 0; i < n; i++, w += sizeof(vec), ahead += sizeof(vec), x += step) {
            const vec v = vec_load((const float *)w), low = half ? vec_low_half(v) : v;
            __builtin_prefetch(ahead);
            CPU_PRAGMA(GCC unroll 16)
            for (int r = 0; r < rows; r++)
                a[r] += low * x[r];
            CPU_PRAGMA(GCC unroll 16)
            for (int r = 0; half && r < rows; r++)
                a[r] += vec_high_half(v) * x[VEC_LANES + r];
        }
    for (int r = 0; r < rows; r++)
        *(mem_vec *)(j->y + r * j->width) = a[r];
}

#endif
