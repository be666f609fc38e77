/* Where values lie: whatever is made in place, or straight in a store, must give what separate buffers give. */
#include <string.h>

#include "graph/kit.h"

/* --- graphs that invite a mistake; input "x" has 64 elements, the layout has the tensors of `layout` --- */

static hone_layout *layout(struct kit *k)
{
    hone_layout *l = hone_layout_create(k->ctx, &k->err);
    hone_layout_add(l, "a", HONE_SHAPE(4, 4), HONE_GROUP_PLAIN, (hone_init){HONE_INIT_NORMAL, 1}, &k->err);
    hone_layout_add(l, "b", HONE_SHAPE(16), HONE_GROUP_PLAIN, (hone_init){HONE_INIT_NORMAL, 1}, &k->err);
    hone_layout_add(l, "c", HONE_SHAPE(16), HONE_GROUP_PLAIN, (hone_init){HONE_INIT_NORMAL, 1}, &k->err);
    hone_layout_add(l, "d", HONE_SHAPE(12, 12), HONE_GROUP_DECAY, (hone_init){HONE_INIT_NORMAL, 0.25f}, &k->err);
    return l;
}

static void product_of_square(hone_t x, hone_layout *l)
{
    (void)l;
    hone_t m = hone_affine(hone_reshape(x, HONE_SHAPE(8, 8)), 0.5, 1), w = hone_affine(m, 2, 0);
    hone_output(hone_matmul(m, hone_matmul(m, w, false, true), true, false), "y");
}

static void sum_of_square(hone_t x, hone_layout *l)
{
    (void)l;
    hone_t m = hone_affine(hone_reshape(x, HONE_SHAPE(8, 8, 1)), 0.5, 1);
    hone_output(hone_sum(hone_broadcast(m, HONE_SHAPE(8, 8, 3)), HONE_AXIS(2), false), "y");
}

static void less_its_own_part(hone_t x, hone_layout *l)
{
    (void)l;
    hone_t m = hone_affine(x, 0.5, 1);
    hone_output(hone_sub(m, hone_slice(m, 0, 2, 1)), "y");
    hone_t n = hone_affine(hone_reshape(x, HONE_SHAPE(4, 16)), 0.5, 1);
    hone_output(hone_mul(hone_reshape(hone_slice(n, 0, 1, 1), HONE_SHAPE(16)), n), "z");
}

static void row_on_matrix(hone_t x, hone_layout *l)
{
    (void)l;
    hone_t row = hone_affine(hone_slice(x, 0, 0, 8), 0.5, 1);
    hone_output(hone_add(row, hone_affine(hone_reshape(x, HONE_SHAPE(8, 8)), 3, 1)), "y");
    hone_output(hone_sub(hone_affine(hone_slice(x, 0, 8, 1), 0.5, 1), x), "z");
}

static void read_again(hone_t x, hone_layout *l)
{
    (void)l;
    hone_t m = hone_affine(x, 0.5, 1), n = hone_silu(m), o = hone_affine(n, 3, 0);
    hone_output(hone_add(hone_mul(o, n), m), "y");
}

static void store_times_itself(hone_t x, hone_layout *l)
{
    hone_t d = hone_read(x.g, "s", l, 3);
    hone_write(hone_matmul(d, d, false, false), "s", l, 3);
}

/* The first row of the result lies over `b`, which the other rows read as well. */
static void group_over_its_tensor(hone_t x, hone_layout *l)
{
    hone_t rows = hone_reshape(hone_slice(x, 0, 0, 48), HONE_SHAPE(3, 16));
    hone_t b = hone_reshape(hone_read(x.g, "s", l, 0), HONE_SHAPE(16));
    hone_write_group(hone_reshape(hone_add(rows, b), HONE_SHAPE(48)), "s", l, HONE_GROUP_PLAIN);
}

static void tensor_out_of_group(hone_t x, hone_layout *l)
{
    hone_t all = hone_read_group(x.g, "s", l, HONE_GROUP_PLAIN);
    hone_write(hone_add(hone_slice(all, 0, 16, 16), hone_slice(all, 0, 32, 16)), "s", l, 1);
    hone_write(hone_sub(hone_slice(all, 0, 16, 16), hone_slice(all, 0, 32, 16)), "s", l, 2);
}

/* Behind "a" lie 32 elements that nobody writes. */
static void part_of_a_value(hone_t x, hone_layout *l)
{
    hone_t m = hone_affine(hone_slice(x, 0, 0, 48), 0.5, 1);
    hone_write(hone_reshape(hone_slice(m, 0, 0, 16), HONE_SHAPE(4, 4)), "s", l, 0);
}

static void last_part_of_a_value(hone_t x, hone_layout *l)
{
    hone_write(hone_slice(hone_affine(x, 0.25, 1), 0, 48, 16), "s", l, 2);
}

static void one_value_twice(hone_t x, hone_layout *l)
{
    hone_t m = hone_affine(hone_slice(x, 0, 0, 16), 0.5, 1);
    hone_write(m, "s", l, 1);
    hone_write(m, "s", l, 2);
    hone_output(m, "m");
}

static void all_turn(hone_t x, hone_layout *l)
{
    hone_t a = hone_reshape(hone_read(x.g, "s", l, 0), HONE_SHAPE(16)), b = hone_read(x.g, "s", l, 1),
           c = hone_read(x.g, "s", l, 2);
    hone_write(hone_reshape(hone_affine(b, 2, 0), HONE_SHAPE(4, 4)), "s", l, 0);
    hone_write(hone_affine(c, 3, 0), "s", l, 1);
    hone_write(hone_affine(a, 5, 0), "s", l, 2);
    hone_output(hone_add(hone_add(a, b), c), "before");
}

static const struct {
    const char *name;
    void (*build)(hone_t x, hone_layout *l);
    bool store;
} graphs[] = {
    {"a product of square matrices", product_of_square, false},
    {"a sum as large as its operand", sum_of_square, false},
    {"a value less a part of itself", less_its_own_part, false},
    {"a row on a matrix", row_on_matrix, false},
    {"a value that is read again later", read_again, false},
    {"a tensor times itself, into its place", store_times_itself, true},
    {"a group over a tensor that its rows read", group_over_its_tensor, true},
    {"two tensors out of their group", tensor_out_of_group, true},
    {"the first part of a value", part_of_a_value, true},
    {"the last part of a value", last_part_of_a_value, true},
    {"one value in two places", one_value_twice, true},
    {"three tensors change places", all_turn, true},
};

/* Runs twice and keeps, of each run, the outputs and the store: at most 1024 floats. */
static int outcome(struct check *c, struct kit *k, hone_graph *g, hone_layout *l, bool store, hone_compile_options o,
                   float *out)
{
    float x[64];
    int n = 0;
    hone_program *p = hone_compile(k->cpu, g, &o, &k->err);
    hone_store *s = store ? hone_store_create(k->ctx, l, &k->err) : NULL;
    const void *in[1] = {x};
    if (s)
        hone_store_init(s, 3, &k->err);
    for (int run = 0; run < 2; run++) {
        for (int i = 0; i < 64; i++)
            x[i] = (float)((i * 37 + run) % 19) / 8 - 1;
        const bool ran = kit_run(k, p, in, &s, 0);
        CHECK_MSG(c, ran, "%s: %s", k->err.where, k->err.text);
        k->err = (hone_err){0};
        for (int i = 0; ran && i < hone_program_outputs(p); i++) {
            hone_type t = hone_program_output_type(p, i);
            memcpy(out + n, hone_result(p, i), (size_t)hone_numel(&t.shape) * sizeof(float));
            n += (int)hone_numel(&t.shape);
        }
        for (int i = 0; s && i < hone_layout_count(l); i++) {
            hone_shape t = hone_layout_shape(l, i);
            memcpy(out + n, hone_store_get(s, i), (size_t)hone_numel(&t) * sizeof(float));
            n += (int)hone_numel(&t);
        }
    }
    hone_program_destroy(p);
    hone_store_destroy(s);
    return n;
}

void suite_place(struct check *c)
{
    static const hone_compile_options modes[] = {{.no_inplace = true, .plain = true, .no_prepare = true},
                                                 {.name = "as it is"},
                                                 {.debug = true},
                                                 {.plain = true},
                                                 {.no_prepare = true}};
    static float want[1024], got[1024];
    struct kit k;
    kit_open(&k, NULL);
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
        if (!check_case(c, "%s", graphs[i].name))
            continue;
        hone_layout *l = layout(&k);
        hone_graph *g = hone_graph_create(k.ctx, &k.err);
        graphs[i].build(hone_input(g, "x", HONE_F32, HONE_SHAPE(64)), l);
        const int n = outcome(c, &k, g, l, graphs[i].store, modes[0], want);
        for (int m = 1; m < 5; m++) {
            CHECK(c, outcome(c, &k, g, l, graphs[i].store, modes[m], got) == n);
            for (int q = 0; q < n; q++)
                CHECK_MSG(c, got[q] == want[q], "mode %d, %d: %g, should be %g", m, q, (double)got[q], (double)want[q]);
        }
        hone_graph_destroy(g);
        hone_layout_destroy(l);
    }
    if (check_case(c, "nothing leaks"))
        kit_close(&k, c);
    else
        kit_close(&k, &(struct check){.open = 1});
}
