/* hone demo density: four modes learned by each objective, with pictures and a page to open. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ctx.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/density.h"
#include "io/file.h"
#include "io/png.h"

enum { OBJECTIVES = 3 };        /* epsilon, x0, v: the first rows of hone_param_name */
enum { SIDE = 360, SETS = 16 }; /* pixels of a picture, which shows [-1.2, 1.2] in both directions */

struct demo {
    struct density_config c;
    const char *out;
    bool terminal;
    hone_ctx *ctx;
    struct density_result result[OBJECTIVES];
};

static void tick(void *user, int64_t step, int64_t steps, double loss)
{
    const struct demo *d = user;
    char bar[31];
    const int full = (int)(30 * step / steps);
    for (int i = 0; i < 30; i++)
        bar[i] = i < full ? '#' : '.';
    bar[30] = '\0';
    if (d->terminal)
        printf("\r  [%s] %lld of %lld steps, loss %.4f ", bar, (long long)step, (long long)steps, loss);
    else if (step % (steps / 5 > 0 ? steps / 5 : 1) == 0 || step == steps)
        printf("  %lld of %lld steps, loss %.4f\n", (long long)step, (long long)steps, loss);
    fflush(stdout);
}

/* --- pictures --- */

static void dot(uint8_t *rgb, double x, double y, const uint8_t color[3])
{
    const int u = (int)((x + 1.2) / 2.4 * SIDE), v = (int)((1.2 - y) / 2.4 * SIDE);
    if (u < 0 || v < 0 || u >= SIDE || v >= SIDE)
        return;
    for (int k = 0; k < 3; k++) {
        uint8_t *p = &rgb[3 * (v * SIDE + u) + k];
        *p = (uint8_t)((*p + color[k]) / 2);
    }
}

/* Samples over the target: circles of 3 standard deviations round the modes. */
static uint8_t *picture(const float *xy, int64_t n)
{
    static const uint8_t ink[3] = {20, 60, 160}, ring[3] = {200, 60, 40};
    uint8_t *rgb = malloc(3 * SIDE * SIDE);
    if (!rgb)
        return NULL;
    memset(rgb, 255, 3 * SIDE * SIDE);
    for (int64_t i = 0; i < n; i++)
        dot(rgb, (double)xy[2 * i], (double)xy[2 * i + 1], ink);
    for (int m = 0; m < 4; m++)
        for (int k = 0; k < 400; k++)
            for (int twice = 0; twice < 2; twice++)
                dot(rgb, DENSITY_AT * (m & 1 ? -1 : 1) + 3 * DENSITY_SPREAD * cos(k * 0.0157),
                    DENSITY_AT * (m & 2 ? -1 : 1) + 3 * DENSITY_SPREAD * sin(k * 0.0157), ring);
    return rgb;
}

static void base64(FILE *f, const uint8_t *p, size_t n)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t v =
            (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
        const char q[4] = {digit[v >> 18], digit[v >> 12 & 63], i + 1 < n ? digit[v >> 6 & 63] : '=',
                           i + 2 < n ? digit[v & 63] : '='};
        fwrite(q, 1, 4, f);
    }
}

/* The picture in the page, and as a file beside it; as a drawing of points where this build has no libpng. */
static bool show(const struct demo *d, FILE *f, const char *name, const float *xy, int64_t n, hone_err *err)
{
    char path[1100];
    uint8_t *rgb, *png = NULL;
    size_t bytes = 0;
    if (!io_png_here()) {
        fprintf(f, "<svg width=\"%d\" height=\"%d\" viewBox=\"-1.2 -1.2 2.4 2.4\" style=\"background:#fff\">", SIDE,
                SIDE);
        for (int64_t i = 0; i < n && i < 2000; i++)
            fprintf(f, "<circle cx=\"%.3f\" cy=\"%.3f\" r=\".006\" fill=\"#143ca0\"/>", (double)xy[2 * i],
                    (double)-xy[2 * i + 1]);
        fprintf(f, "</svg>");
        return true;
    }
    rgb = picture(xy, n);
    if (!rgb)
        return err_set(err, HONE_E_NOMEM, "demo", "no memory for a picture") == HONE_OK;
    snprintf(path, sizeof path, "%s/%s.png", d->out, name);
    bool ok = io_png_write(d->ctx, path, SIDE, SIDE, rgb, err) == HONE_OK &&
              io_png_encode(d->ctx, SIDE, SIDE, rgb, &png, &bytes, err) == HONE_OK;
    if (ok) {
        fprintf(f, "<img alt=\"%s\" src=\"data:image/png;base64,", name);
        base64(f, png, bytes);
        fprintf(f, "\">");
    }
    mem_free(&d->ctx->mem, png);
    free(rgb);
    return ok;
}

/* --- the page --- */

static void curve(FILE *f, const struct density_result *r)
{
    double top = 1e-12;
    for (int i = 0; i < r->curve_n; i++)
        top = fmax(top, r->curve[i]);
    fprintf(
        f,
        "<svg width=\"%d\" height=\"120\" viewBox=\"0 0 360 120\"><polyline fill=\"none\" stroke=\"#143ca0\" points=\"",
        SIDE);
    for (int i = 0; i < r->curve_n; i++)
        fprintf(f, "%.1f,%.1f ", 360.0 * i / (r->curve_n > 1 ? r->curve_n - 1 : 1), 115 - 110 * r->curve[i] / top);
    fprintf(f, "\"/><text x=\"4\" y=\"14\" font-size=\"12\">training loss, top %.3g</text></svg>", top);
}

static void put(void *user, const char *text)
{
    fputs(text, user);
}

static void table(FILE *f, const struct demo *d)
{
    fprintf(f,
            "<table><tr><th>objective<th>share of each mode (25 &plusmn; %.0f %%)<th>within 3&sigma; (&ge; %.0f %%)"
            "<th>spread (%.3f)<th>training<th>sampling<th>verdict</tr>\n",
            100 * DENSITY_SHARE, 100 * DENSITY_NEAR, DENSITY_SPREAD);
    for (int k = 0; k < OBJECTIVES; k++) {
        const struct density_result *r = &d->result[k];
        fprintf(f, "<tr><td>%s<td>%.1f, %.1f, %.1f, %.1f<td>%.1f<td>%.4f<td>%.1f s<td>%.1f s<td>%s</tr>\n",
                hone_param_name(k), 100 * r->share[0], 100 * r->share[1], 100 * r->share[2], 100 * r->share[3],
                100 * r->near, r->spread, r->train_seconds, r->sample_seconds, r->passed ? "met" : "<b>missed</b>");
    }
    fprintf(f, "</table>\n");
}

static bool page(const struct demo *d, const char *path, hone_err *err)
{
    float *data = malloc((size_t)d->c.points * 2 * sizeof *data);
    FILE *f = data ? fopen(path, "w") : NULL;
    if (!f) {
        data ? file_fail(err, path, "cannot be written", errno)
             : err_set(err, HONE_E_NOMEM, path, "no memory for the data");
        free(data);
        return false;
    }
    fprintf(
        f,
        "<!doctype html><meta charset=\"utf-8\"><title>hone: a density</title><style>body{font:16px "
        "sans-serif;max-width:"
        "1200px;margin:2em "
        "auto}figure{display:inline-block;margin:.5em}table{border-collapse:collapse}td,th{border:1px "
        "solid #aaa;padding:.3em .6em}</style>\n<h1>Four modes in the plane</h1>\n<p>A small network learns four "
        "Gaussians by denoising, once with each objective: to predict the noise (epsilon), the clean point (x0), or v. "
        "Circles are 3 standard deviations of the target.</p>\n");
    table(f, d);
    density_data(&d->c, data);
    fprintf(f, "<figure>");
    bool ok = show(d, f, "data", data, d->c.points, err);
    fprintf(f, "<figcaption>data</figcaption></figure>\n");
    for (int k = 0; k < OBJECTIVES && ok; k++) {
        fprintf(f, "<figure>");
        ok = show(d, f, hone_param_name(k), d->result[k].samples, d->c.samples, err);
        fprintf(f, "<figcaption>%s</figcaption>", hone_param_name(k));
        curve(f, &d->result[k]);
        fprintf(f, "</figure>\n");
    }
    fprintf(f, "<h2>Settings</h2><pre>hone %s, %d cores\n", HONE_VERSION, hone_ctx_threads(d->ctx));
    hone_field_print(&density_fields, &d->c, 0, put, f);
    fprintf(f, "</pre>\n");
    if (fclose(f) != 0 && ok)
        ok = file_fail(err, path, "cannot be written", errno) == HONE_OK;
    free(data);
    return ok;
}

static bool learn_all(struct demo *d, hone_err *err)
{
    hone_device *device = hone_device_open(d->ctx, "cpu", err);
    bool ok = device != NULL;
    for (int k = 0; k < OBJECTIVES && ok; k++) {
        struct density_result *r = &d->result[k];
        printf("objective %s (%d of %d)\n", hone_param_name(k), k + 1, OBJECTIVES);
        ok = density_learn(d->ctx, device, &d->c, k, tick, d, r, err) == HONE_OK;
        if (ok)
            printf("%s  modes %.1f %.1f %.1f %.1f %%, within 3 sigma %.1f %%: %s\n", d->terminal ? "\n" : "",
                   100 * r->share[0], 100 * r->share[1], 100 * r->share[2], 100 * r->share[3], 100 * r->near,
                   r->passed ? "met" : "missed");
    }
    hone_device_close(device);
    return ok;
}

static int density(struct demo *d)
{
    hone_err err = {0};
    char path[1100];
    bool met = true;
    if (mkdir(d->out, 0777) != 0 && errno != EEXIST) {
        file_fail(&err, d->out, "cannot be made", errno);
        return cli_fail(&err);
    }
    snprintf(path, sizeof path, "%s/report.html", d->out);
    d->terminal = isatty(STDOUT_FILENO);
    d->ctx = hone_ctx_create(NULL, &err);
    if (!d->ctx)
        return cli_fail(&err);
    bool ok = learn_all(d, &err) && page(d, path, &err);
    for (int k = 0; k < OBJECTIVES; k++) {
        met = met && d->result[k].passed;
        density_free(d->ctx, &d->result[k]);
    }
    hone_ctx_destroy(d->ctx);
    if (!ok)
        return cli_fail(&err);
    printf("report: %s\n", path);
    return met ? CLI_OK : CLI_FAILED;
}

static void help(void *user, const char *text)
{
    (void)user;
    fputs(text, stdout);
}

int cmd_demo(int argc, char **argv)
{
    struct demo d = {.out = "demo_out"};
    const char *word = "", *set[SETS], *seed = NULL, *steps = NULL;
    int n, code, n_set = 0;
    hone_err err = {0};
    const struct cli_flag flags[] = {
        {.name = "out", .value = "DIR", .doc = "where pictures and report.html go (demo_out)", .text = &d.out},
        {.name = "seed", .value = "N", .doc = "what all random numbers come from (0)", .text = &seed},
        {.name = "steps", .value = "N", .doc = "training steps of each objective", .text = &steps},
        {.name = "set", .value = "KEY=VALUE", .doc = "a setting", .text = set, .max = SETS, .n = &n_set},
    };
    const struct cli_verb verb = {"demo",
                                  "density [--out DIR]",
                                  "Learns four modes in the plane with each objective; exit 1 if a "
                                  "target is missed.",
                                  flags,
                                  4,
                                  1,
                                  1};
    hone_field_defaults(&density_fields, &d.c);
    if (!cli_parse(&verb, argc, argv, &word, &n, &code)) {
        if (code == CLI_OK)
            hone_field_help(&density_fields, help, NULL);
        return code;
    }
    if (strcmp(word, "density") != 0) {
        fprintf(stderr, "hone: there is no demo \"%s\"; there is \"density\"\n", word);
        return CLI_USAGE;
    }
    if (seed)
        hone_field_set(&density_fields, &d.c, "seed", seed, &err);
    if (steps)
        hone_field_set(&density_fields, &d.c, "steps", steps, &err);
    for (int i = 0; i < n_set; i++) {
        char key[64];
        const char *eq = strchr(set[i], '=');
        snprintf(key, sizeof key, "%.*s", eq ? (int)(eq - set[i] < 60 ? eq - set[i] : 60) : 0, set[i]);
        if (!eq)
            err_set(&err, HONE_E_CONFIG, "--set", "wants KEY=VALUE; got \"%.80s\"", set[i]);
        hone_field_set(&density_fields, &d.c, key, eq ? eq + 1 : "", &err);
    }
    return err.code == HONE_OK ? density(&d) : cli_fail(&err);
}
