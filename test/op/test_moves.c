/* Kernels that move elements, beyond what the table of operations tests: many operands, all ranks, large
 * tensors on several threads. */
#include <stdlib.h>
#include <string.h>

#include "graph/kit.h"

static void many_operands(struct check *c, struct kit *k, int n)
{
    if (!check_case(c, "concat: %d operands", n))
        return;
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t x[40];
    for (int i = 0; i < n; i++)
        x[i] = hone_full(g, HONE_SHAPE(2, i % 3), (float)i);
    hone_output(hone_concat(n, x, 1), "y");
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    if (n > OP_MAX_IN) {
        CHECK_MSG(c, !p && k->err.code == HONE_E_ARG && strstr(k->err.text, "1 to 32"), "%s", k->err.text);
        k->err = (hone_err){0};
    } else if (CHECK_MSG(c, kit_run(k, p, NULL, NULL, 0), "%s: %s", k->err.where, k->err.text)) {
        const float *y = hone_result(p, 0);
        for (int r = 0; r < 2; r++)
            for (int i = 0; i < n; i++)
                for (int j = 0; j < i % 3; j++)
                    CHECK(c, *y++ == (float)i);
    }
    hone_program_destroy(p);
    hone_graph_destroy(g);
}

/* Element i of x is i, so each result tells where it came from. */
static void permuted(struct check *c, struct kit *k, hone_dtype type, hone_shape s, const int *perm)
{
    char text[96];
    if (!check_case(c, "permute: %s%s", hone_dtype_name(type), hone_shape_text(&s, text, sizeof text)))
        return;
    const int64_t n = hone_numel(&s);
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_output(hone_permute(hone_input(g, "x", type, s), perm), "y");
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    int32_t *x = malloc((size_t)n * sizeof *x);
    uint8_t *small = malloc((size_t)n);
    for (int64_t i = 0; i < n; i++) {
        x[i] = (int32_t)i;
        small[i] = (uint8_t)(i * 7 / 5);
    }
    const void *in[1] = {type == HONE_I32 ? (void *)x : (void *)small};
    if (CHECK_MSG(c, kit_run(k, p, in, NULL, 0), "%s: %s", k->err.where, k->err.text)) {
        int64_t idx[HONE_MAX_RANK] = {0}, wrong = 0;
        hone_shape t = s;
        for (int i = 0; i < s.rank; i++)
            t.dim[i] = s.dim[perm[i]];
        for (int64_t i = 0; i < n; i++) {
            int64_t back[HONE_MAX_RANK] = {0}, from = 0;
            for (int d = 0; d < s.rank; d++)
                back[perm[d]] = idx[d];
            for (int d = 0; d < s.rank; d++)
                from = from * s.dim[d] + back[d];
            wrong += type == HONE_I32 ? ((const int32_t *)hone_result(p, 0))[i] != x[from]
                                      : ((const uint8_t *)hone_result(p, 0))[i] != small[from];
            op_next(&t, idx);
        }
        CHECK_MSG(c, wrong == 0, "%lld elements are wrong", (long long)wrong);
    }
    free(x);
    free(small);
    hone_program_destroy(p);
    hone_graph_destroy(g);
}

/* One tensor, large enough for several threads, through the others: y = x put together again from its parts. */
static void large(struct check *c, struct kit *k)
{
    enum { ROWS = 300, COLUMNS = 257 };
    if (!check_case(c, "slice, concat, pad, broadcast, gather: large"))
        return;
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t x = hone_input(g, "x", HONE_F32, HONE_SHAPE(ROWS, COLUMNS));
    hone_t order = hone_input(g, "i", HONE_I32, HONE_SHAPE(ROWS));
    hone_t ends = hone_concat(2, (hone_t[]){hone_slice(x, 1, 0, 100), hone_slice(x, 1, 100, COLUMNS - 100)}, 1);
    hone_t wide = hone_slice(hone_pad(ends, 1, 5, 9, 1), 1, 5, COLUMNS);
    hone_t all = hone_broadcast(hone_reshape(wide, HONE_SHAPE(1, ROWS, COLUMNS, 1)), HONE_SHAPE(2, ROWS, COLUMNS, 3));
    hone_output(hone_gather(x, order), "turned");
    hone_output(all, "all");
    hone_output(hone_broadcast(hone_slice(wide, 0, 7, 1), HONE_SHAPE(ROWS, COLUMNS)), "row 7");
    hone_output(hone_full(g, HONE_SHAPE(ROWS * COLUMNS), 3), "threes");
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    static float in_x[ROWS * COLUMNS];
    int32_t turned[ROWS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        in_x[i] = (float)i;
    for (int i = 0; i < ROWS; i++)
        turned[i] = ROWS - 1 - i;
    const void *in[2] = {in_x, turned};
    int64_t wrong[4] = {0};
    if (CHECK_MSG(c, kit_run(k, p, in, NULL, 0), "%s: %s", k->err.where, k->err.text))
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            wrong[0] += ((const float *)hone_result(p, 0))[i] != in_x[(ROWS - 1 - i / COLUMNS) * COLUMNS + i % COLUMNS];
            for (int r = 0; r < 6; r++) {
                const float *half = (const float *)hone_result(p, 1) + (size_t)(r / 3) * ROWS * COLUMNS * 3;
                wrong[1] += half[3 * i + r % 3] != in_x[i];
            }
            wrong[2] += ((const float *)hone_result(p, 2))[i] != in_x[7 * COLUMNS + i % COLUMNS];
            wrong[3] += ((const float *)hone_result(p, 3))[i] != 3;
        }
    for (int i = 0; i < 4; i++)
        CHECK_MSG(c, wrong[i] == 0, "output %d: %lld elements are wrong", i, (long long)wrong[i]);
    hone_program_destroy(p);
    hone_graph_destroy(g);
}

static hone_t look_up(void *user, hone_t x, const hone_t *rows)
{
    return hone_add(x, hone_gather(rows[0], *(const hone_t *)user));
}

/* A table of its own for each step of a chain: lifted out of it, more parts than one concat takes. */
static void tables_of_steps(struct check *c, struct kit *k)
{
    enum { STEPS = 70, ROWS = 5 };
    if (!check_case(c, "gather: a table for each step of a long chain"))
        return;
    float table[STEPS * ROWS];
    const int32_t order[3] = {4, 0, 2};
    float want[3] = {0};
    for (int i = 0; i < STEPS * ROWS; i++)
        table[i] = (float)(i * i % 97);
    for (int s = 0; s < STEPS; s++)
        for (int i = 0; i < 3; i++)
            want[i] += table[s * ROWS + order[i]];
    hone_graph *g = hone_graph_create(k->ctx, &k->err);
    hone_t index = hone_const(g, HONE_I32, HONE_SHAPE(3), order);
    hone_t rows = hone_const(g, HONE_F32, HONE_SHAPE(STEPS, ROWS), table);
    hone_chain_options o = {.steps = STEPS, .tables = &rows, .n_tables = 1};
    hone_output(hone_chain(hone_full(g, HONE_SHAPE(3), 0), &o, look_up, &index), "y");
    hone_program *p = hone_compile(k->cpu, g, NULL, &k->err);
    if (CHECK_MSG(c, kit_run(k, p, NULL, NULL, 0), "%s: %s", k->err.where, k->err.text))
        for (int i = 0; i < 3; i++)
            CHECK_MSG(c, ((const float *)hone_result(p, 0))[i] == want[i], "%d: %g, should be %g", i,
                      (double)((const float *)hone_result(p, 0))[i], (double)want[i]);
    hone_program_destroy(p);
    hone_graph_destroy(g);
}

void suite_moves(struct check *c)
{
    static const struct {
        hone_shape s;
        int perm[8];
    } list[] = {
        {{8, {2, 3, 2, 1, 3, 2, 2, 3}}, {7, 2, 4, 0, 6, 1, 3, 5}},
        {{2, {300, 517}}, {1, 0}},
        {{3, {40, 33, 65}}, {0, 2, 1}},
        {{3, {40, 33, 65}}, {2, 1, 0}},
        {{4, {5, 48, 64, 3}}, {0, 3, 1, 2}},
        {{4, {6, 3, 40, 64}}, {0, 2, 3, 1}},
        {{4, {8, 50, 4, 16}}, {0, 2, 1, 3}},
        {{3, {70, 131, 5}}, {2, 1, 0}},
        {{3, {5, 131, 70}}, {2, 1, 0}},
        {{4, {7, 37, 3, 66}}, {3, 2, 1, 0}},
    };
    struct kit k;
    kit_open(&k, &(hone_ctx_options){.threads = 3});
    many_operands(c, &k, 32);
    many_operands(c, &k, 33);
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        permuted(c, &k, HONE_I32, list[i].s, list[i].perm);
        permuted(c, &k, HONE_U8, list[i].s, list[i].perm);
    }
    large(c, &k);
    tables_of_steps(c, &k);
    kit_close(&k, c);
}
