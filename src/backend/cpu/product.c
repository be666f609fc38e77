/* Panels of b are copied side by side, so that the inner loop reads them in order whatever the strides; tiles of c stay
 * in registers while they run over a part of k. Each part ends in one addition to c, which keeps long sums exact to
 * rounding. The order of additions depends on the sizes alone. */
#include "backend/cpu/product.h"

#include "backend/cpu/cpu.h"

enum { ROWS = 4, COLS = 8, PART = 256 }; /* of a tile, and of k: a panel is 8 KiB */

/* t = a b over k, of four rows of a and one panel. */
static void tile(const float *const a[ROWS], int64_t a_col, const float *panel, int64_t k, float t[ROWS][COLS])
{
    float t0[COLS] = {0}, t1[COLS] = {0}, t2[COLS] = {0}, t3[COLS] = {0};
    for (int64_t p = 0; p < k; p++, panel += COLS) {
        const float a0 = a[0][p * a_col], a1 = a[1][p * a_col], a2 = a[2][p * a_col], a3 = a[3][p * a_col];
        CPU_SIMD
        for (int j = 0; j < COLS; j++) {
            t0[j] += a0 * panel[j];
            t1[j] += a1 * panel[j];
            t2[j] += a2 * panel[j];
            t3[j] += a3 * panel[j];
        }
    }
    for (int j = 0; j < COLS; j++) {
        t[0][j] = t0[j];
        t[1][j] = t1[j];
        t[2][j] = t2[j];
        t[3][j] = t3[j];
    }
}

static void fill_panel(const struct cpu_product *q, int64_t p0, int64_t k, int64_t j0, int64_t n, float *panel)
{
    const float *b = q->b + p0 * q->b_row + j0 * q->b_col;
    for (int64_t p = 0; p < k; p++, b += q->b_row, panel += COLS)
        for (int64_t j = 0; j < COLS; j++)
            panel[j] = j < n ? b[j * q->b_col] : 0;
}

static void store(const struct cpu_product *q, int64_t i0, int64_t m, int64_t j0, int64_t n, float t[ROWS][COLS],
                  bool add)
{
    for (int64_t i = 0; i < m; i++) {
        float *c = q->c + (i0 + i) * q->c_row + j0 * q->c_col;
        for (int64_t j = 0; j < n; j++)
            c[j * q->c_col] = add ? c[j * q->c_col] + t[i][j] : t[i][j];
    }
}

/* Beyond the matrix the panel has zeros, a row is read twice, and neither is stored. */
void cpu_product(const struct cpu_product *q)
{
    float panel[PART * COLS], t[ROWS][COLS];
    int64_t p0 = 0;
    do { /* once at least: without inner elements c is zero */
        const int64_t k = q->k - p0 < PART ? q->k - p0 : PART;
        for (int64_t j0 = 0; j0 < q->n; j0 += COLS) {
            const int64_t n = q->n - j0 < COLS ? q->n - j0 : COLS;
            fill_panel(q, p0, k, j0, n, panel);
            for (int64_t i0 = 0; i0 < q->m; i0 += ROWS) {
                const int64_t m = q->m - i0 < ROWS ? q->m - i0 : ROWS;
                const float *a[ROWS];
                for (int i = 0; i < ROWS; i++)
                    a[i] = q->a + (i0 + (i < m ? i : m - 1)) * q->a_row + p0 * q->a_col;
                tile(a, q->a_col, panel, k, t);
                store(q, i0, m, j0, n, t, q->add || p0 > 0);
            }
        }
        p0 += PART;
    } while (p0 < q->k);
}

/* Joins neighbours that one step walks in both operands; drops dimensions of 1. */
static void merge_lead(struct cpu_matmul *q)
{
    const hone_shape s = q->lead;
    int r = 0;
    for (int i = 0; i < s.rank; i++) {
        const int64_t d = s.dim[i], a = q->a[i], b = q->b[i];
        if (d == 1)
            continue;
        if (r > 0 && q->a[r - 1] == a * d && q->b[r - 1] == b * d) {
            q->lead.dim[r - 1] *= d;
        } else {
            q->lead.dim[r++] = d;
        }
        q->a[r - 1] = a;
        q->b[r - 1] = b;
    }
    q->lead.rank = r;
    if (r == 1 && q->a[0] == 1 && q->b[0] == 0 && !q->ta) {
        q->m *= q->lead.dim[0];
        q->lead.rank = 0;
    }
}

struct cpu_matmul cpu_matmul_of(const struct op_call *c)
{
    hone_shape a = c->in[0].shape, b = c->in[1].shape, o = c->out[0].shape;
    struct cpu_matmul q = {.ta = c->attr.i[0], .tb = c->attr.i[1]};
    q.m = o.dim[o.rank - 2];
    q.n = o.dim[o.rank - 1];
    q.k = a.dim[a.rank - (q.ta ? 2 : 1)];
    a.rank -= 2;
    b.rank -= 2;
    o.rank -= 2;
    op_strides(&a, &o, q.a);
    op_strides(&b, &o, q.b);
    q.lead = o;
    merge_lead(&q);
    return q;
}

struct cpu_matmul cpu_linear_of(const struct op_call *c)
{
    const int64_t *w = c->in[1].shape.dim;
    return (struct cpu_matmul){.m = op_numel(&c->out[0]) / w[0], .k = w[1], .n = w[0], .tb = true};
}
