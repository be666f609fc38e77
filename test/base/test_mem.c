/* Memory at its limits. */
#include <stdint.h>

#include "base/ctx.h"
#include "check.h"

void suite_mem(struct check *c)
{
    hone_ctx *ctx = hone_ctx_create(NULL, NULL);
    if (check_case(c, "an array whose size wraps to a small one is refused")) {
        static const struct {
            size_t count, size;
        } t[] = {{SIZE_MAX / 4 + 2, 4}, {4, SIZE_MAX / 4 + 2}, {SIZE_MAX / 8 + 1, 8}, {SIZE_MAX, SIZE_MAX}};
        for (int i = 0; i < 4; i++)
            CHECK_MSG(c, mem_array(&ctx->mem, t[i].count, t[i].size) == NULL, "%d", i);
        CHECK(c, hone_ctx_mem(ctx).live_bytes == 0);
    }
    hone_ctx_destroy(ctx);
}
