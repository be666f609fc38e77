/* Four modes learned by each objective, in a quarter of the work of `hone demo density`, with its targets. */
#include <math.h>

#include "check.h"
/* The command line is no library, so its experiment is compiled here once more. */
#include "cli/density.c"

/* What is measured, of points that are known. */
static void measures(struct check *c)
{
    if (!check_case(c, "shares, nearness and verdict, of known points"))
        return;
    struct density_config d;
    struct density_result r = {0};
    static float xy[2 * 10000];
    hone_field_defaults(&density_fields, &d);
    d.points = 10000;
    density_data(&d, xy);
    density_measure(xy, d.points, &r);
    CHECK_MSG(c, r.passed && fabs(r.near - .989) < .004 && fabs(r.spread / DENSITY_SPREAD - 1) < .02, "%g %g", r.near,
              r.spread);
    for (int m = 0; m < DENSITY_MODES; m++)
        CHECK(c, r.share[m] == .25);
    for (int i = 0; i < 230; i++) /* from one mode to its neighbour */
        xy[2 * 4 * i] -= 2 * (float)DENSITY_AT;
    density_measure(xy, d.points, &r);
    CHECK(c, !r.passed && fabs(r.share[0] - .227) < 1e-9 && fabs(r.share[1] - .273) < 1e-9);
    density_data(&d, xy);
    for (int i = 0; i < 600; i++)
        xy[2 * 16 * i] += .4f;
    density_measure(xy, d.points, &r);
    CHECK_MSG(c, !r.passed && r.near < .95 && r.near > .92, "%g", r.near);
}

static void learns(struct check *c, int predict)
{
    if (!check_case(c, "%s: each mode 25 +- 2 %%, 95 %% within 3 std", hone_param_name(predict)))
        return;
    hone_err err = {0};
    struct density_config d;
    struct density_result r;
    /* one thread: a team that spins while it waits costs more than it brings here, beside other work */
    hone_ctx *ctx = hone_ctx_create(&(hone_ctx_options){.threads = 1}, &err);
    hone_device *cpu = hone_device_open(ctx, "cpu", &err);
    hone_field_defaults(&density_fields, &d);
    d.batch = 256;
    d.steps = 3000;
    if (CHECK_MSG(c, density_learn(ctx, cpu, &d, predict, NULL, NULL, &r, &err) == HONE_OK, "%s: %s", err.where,
                  err.text)) {
        CHECK_MSG(c, r.passed, "shares %.3f %.3f %.3f %.3f, near %.3f", r.share[0], r.share[1], r.share[2], r.share[3],
                  r.near);
        CHECK(c, r.curve_n == DENSITY_CURVE && r.curve[r.curve_n - 1] < .8 * r.curve[0]);
        density_free(ctx, &r);
    }
    hone_device_close(cpu);
    CHECK(c, hone_ctx_mem(ctx).live_bytes == 0);
    hone_ctx_destroy(ctx);
}

static void mistakes(struct check *c)
{
    if (!check_case(c, "settings out of range are refused, nothing is left"))
        return;
    hone_err err = {0};
    struct density_config d;
    struct density_result r;
    hone_ctx *ctx = hone_ctx_create(NULL, &err);
    hone_device *cpu = hone_device_open(ctx, "cpu", &err);
    hone_field_defaults(&density_fields, &d);
    CHECK_MSG(c, hone_field_table_check(&density_fields, &err) == HONE_OK, "%s", err.text);
    d.time_dim = 7;
    CHECK(c, density_learn(ctx, cpu, &d, 0, NULL, NULL, &r, &err) == HONE_E_CONFIG && !r.samples);
    err = (hone_err){0};
    d.time_dim = 16;
    d.batch = 0;
    CHECK(c, density_learn(ctx, cpu, &d, 0, NULL, NULL, &r, &err) == HONE_E_CONFIG && !r.samples);
    hone_device_close(cpu);
    CHECK(c, hone_ctx_mem(ctx).live_bytes == 0);
    hone_ctx_destroy(ctx);
}

void suite_density(struct check *c)
{
    measures(c);
    mistakes(c);
    for (int predict = 0; predict < 3; predict++)
        learns(c, predict);
}
