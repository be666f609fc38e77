/* Errors, memory, arenas, the context. */
#include <stdlib.h>
#include <string.h>

#include "base/ctx.h"
#include "base/err.h"
#include "check.h"

static void errors(struct check *c)
{
    if (!check_case(c, "the first error stays"))
        return;
    hone_err e = {0};
    err_set(&e, HONE_E_SHAPE, "matmul", "wanted %d", 3);
    err_set(&e, HONE_E_IO, "file", "later");
    CHECK(c, e.code == HONE_E_SHAPE);
    CHECK(c, !strcmp(e.where, "matmul") && !strcmp(e.text, "wanted 3"));
    CHECK(c, err_set(NULL, HONE_E_IO, "x", "y") == HONE_E_IO);
    for (int i = 0; i <= HONE_E_BUSY; i++)
        CHECK(c, strcmp(hone_status_name((hone_status)i), "unknown") != 0);
}

static void memory(struct check *c)
{
    hone_err e = {0};
    hone_ctx *ctx = hone_ctx_create(&(hone_ctx_options){.memory_budget = 1000}, &e);
    if (check_case(c, "counts and alignment")) {
        char *p = mem_alloc(&ctx->mem, 10);
        CHECK(c, p && ((uintptr_t)p & 63) == 0 && p[9] == 0);
        CHECK(c, hone_ctx_mem(ctx).allocations == 1 && hone_ctx_mem(ctx).live_bytes == 10);
        memcpy(p, "123456789", 10);
        char *q = mem_grow(&ctx->mem, p, 10, 20);
        CHECK(c, q && !strcmp(q, "123456789") && q[19] == 0);
        mem_free(&ctx->mem, q);
        CHECK(c, hone_ctx_mem(ctx).live_bytes == 0 && hone_ctx_mem(ctx).peak_bytes == 30);
        CHECK(c, mem_alloc(&ctx->mem, SIZE_MAX - 3) == NULL);
        CHECK(c, mem_array(&ctx->mem, SIZE_MAX / 4, 8) == NULL);
    }
    if (check_case(c, "budget")) {
        CHECK(c, mem_reserve(&ctx->mem, 600, "a", NULL, &e) == HONE_OK);
        CHECK(c, mem_reserve(&ctx->mem, 401, "b", "smaller batch", &e) == HONE_E_NOMEM);
        CHECK(c, strstr(e.text, "smaller batch") != NULL);
        mem_unreserve(&ctx->mem, 600);
        CHECK(c, mem_reserve(&ctx->mem, 1000, "c", NULL, NULL) == HONE_OK);
        mem_unreserve(&ctx->mem, 1000);
    }
    if (check_case(c, "arena")) {
        struct arena a;
        arena_init(&a, &ctx->mem);
        for (int i = 0; i < 1000; i++) {
            char *p = arena_alloc(&a, 100);
            CHECK(c, p && ((uintptr_t)p & 15) == 0 && p[99] == 0);
            memset(p, 1, 100);
        }
        CHECK(c, arena_alloc(&a, 1 << 20) != NULL);
        CHECK(c, a.high >= 100000);
        arena_finish(&a);
        CHECK(c, hone_ctx_mem(ctx).live_bytes == 0);
    }
    hone_ctx_destroy(ctx);
}

void suite_base(struct check *c)
{
    errors(c);
    memory(c);
    if (check_case(c, "bad options are refused")) {
        hone_err e = {0};
        CHECK(c, hone_ctx_create(&(hone_ctx_options){.threads = -1}, &e) == NULL && e.code == HONE_E_ARG);
    }
}
