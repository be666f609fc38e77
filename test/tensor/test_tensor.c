/* Element types and shapes. */
#include <string.h>

#include "check.h"
#include "hone/tensor.h"
#include "tensor/bf16.h"

static uint16_t rounded(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return bf16_of(x);
}

static void bf16(struct check *c)
{
    CHECK(c, rounded(0x3F800000) == 0x3F80 && rounded(0x3F807FFF) == 0x3F80 && rounded(0x3F808001) == 0x3F81);
    CHECK(c, rounded(0x3F808000) == 0x3F80 && rounded(0x3F818000) == 0x3F82); /* ties to even */
    CHECK(c, rounded(0xBF808001) == 0xBF81 && rounded(0x80000000) == 0x8000);
    CHECK(c, rounded(0x3FFFFFFF) == 0x4000 && rounded(0x7F7FFFFF) == 0x7F80); /* to the next power; out of range */
    CHECK(c, rounded(0x7F800000) == 0x7F80 && rounded(0xFF800000) == 0xFF80);
    CHECK(c, rounded(0x00000001) == 0 && rounded(0x0000C000) == 0x0001);
    CHECK(c, bf16_float(rounded(0x7F800001)) != bf16_float(rounded(0x7F800001))); /* NaN */
    CHECK(c, bf16_float(rounded(0xFFFFFFFF)) != bf16_float(rounded(0xFFFFFFFF)));
    for (uint32_t h = 0; h < 0x10000; h++)
        if ((h & 0x7F80) != 0x7F80 || !(h & 0x7F))
            CHECK_MSG(c, bf16_of(bf16_float((uint16_t)h)) == h, "%x", (unsigned)h);
}

void suite_tensor(struct check *c)
{
    char buf[96];
    if (check_case(c, "numel")) {
        CHECK(c, hone_numel(&HONE_SCALAR) == 1);
        CHECK(c, hone_numel(&HONE_SHAPE(2, 3, 5)) == 30);
        CHECK(c, hone_numel(&HONE_SHAPE(2, 0, 7)) == 0);
        CHECK(c, hone_numel(&HONE_SHAPE(2, 0, INT64_MAX)) == -1);
        CHECK(c, hone_numel(&HONE_SHAPE(INT64_MAX, 2)) == -1);
        CHECK(c, hone_numel(&HONE_SHAPE(-1)) == -1);
    }
    if (check_case(c, "text")) {
        CHECK(c, !strcmp(hone_shape_text(&HONE_SHAPE(2, 3), buf, sizeof buf), "[2,3]"));
        CHECK(c, !strcmp(hone_shape_text(&HONE_SCALAR, buf, sizeof buf), "[]"));
        CHECK(c, strlen(hone_shape_text(&HONE_SHAPE(123456, 123456), buf, 6)) == 5);
    }
    if (check_case(c, "types")) {
        for (int t = 0; t < HONE_DTYPES; t++)
            CHECK(c, hone_dtype_size((hone_dtype)t) > 0 && strcmp(hone_dtype_name((hone_dtype)t), "none") != 0);
        CHECK(c, hone_dtype_size(HONE_DTYPES) == 0);
    }
    if (check_case(c, "bf16"))
        bf16(c);
}
