/* Element types and shapes. */
#include <string.h>

#include "check.h"
#include "hone/tensor.h"

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
}
