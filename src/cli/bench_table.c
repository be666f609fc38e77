/* Rows of a profile put together by operation, layer or call. */
#include <stdlib.h>
#include <string.h>

#include "base/ctx.h"
#include "base/err.h"
#include "cli/bench.h"

enum { TOP = 20 };

/* Rows with the same key. */
struct group {
    const char *key, *more; /* more: "" unless a group is a call */
    uint64_t calls, ns;
    int64_t per_run;
    double flops, bytes; /* of all calls */
};

static int by_time(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns) : strcmp(x->key, y->key);
}

enum key { BY_OP, BY_LAYER, BY_CALL };

/* Groups, the longest first; NULL: no memory. */
static struct group *group(struct bench *b, const struct bench_profile *p, enum key key, int *n)
{
    struct group *g = mem_array(&b->ctx->mem, (size_t)p->n_rows, sizeof *g);
    *n = 0;
    for (int i = 0; g && i < p->n_rows; i++) {
        const hone_profile_row *r = &p->rows[i];
        const char *name = key == BY_LAYER ? r->layer : r->op, *more = key == BY_CALL ? r->call : "";
        int k = 0;
        if (!r->calls)
            continue;
        while (k < *n && (strcmp(g[k].key, name) != 0 || strcmp(g[k].more, more) != 0))
            k++;
        if (k == *n)
            g[(*n)++] = (struct group){.key = name, .more = more};
        g[k].calls += r->calls;
        g[k].ns += r->ns;
        g[k].per_run += r->per_run;
        g[k].flops += r->flops * (double)r->calls;
        g[k].bytes += r->bytes * (double)r->calls;
    }
    if (g)
        qsort(g, (size_t)*n, sizeof *g, by_time);
    return g;
}

static void table(struct bench *b, const struct bench_profile *p, enum key key, FILE *f)
{
    int n;
    struct group *g = group(b, p, key, &n);
    fprintf(f, "\n  %-34s %8s %10s %7s %9s %8s\n", key == BY_OP ? "operation" : "layer", "calls", "us a run", "share",
            "GFLOP/s", "GB/s");
    for (int i = 0; g && i < n && i < TOP; i++) {
        const double ns = g[i].ns ? (double)g[i].ns : 1;
        fprintf(f, "  %-34s %8lld %10.1f %6.1f%% %9.2f %8.2f\n", *g[i].key ? g[i].key : "(none)",
                (long long)g[i].per_run, 1e-3 * ns / p->runs, 100 * ns / (double)p->wall_ns, g[i].flops / ns,
                g[i].bytes / ns);
    }
    if (n > TOP)
        fprintf(f, "  and %d more\n", n - TOP);
    mem_free(&b->ctx->mem, g);
}

void bench_profile_print(struct bench *b, const struct bench_profile *p, FILE *f)
{
    uint64_t sum = 0;
    for (int i = 0; i < p->n_rows; i++)
        sum += p->rows[i].ns;
    table(b, p, BY_OP, f);
    table(b, p, BY_LAYER, f);
    fprintf(f, "\n  %.1f us a run while timed, %.1f %% of it in operations\n", 1e-3 * (double)p->wall_ns / p->runs,
            100 * (double)sum / (double)p->wall_ns);
}

void bench_ops_print(struct bench *b, const struct bench_profile *p, double peak, double gbs, FILE *f)
{
    int n;
    struct group *g = group(b, p, BY_CALL, &n);
    fprintf(f, "calls of a training step of %s, batch %ld; peak %.1f GFLOP/s, %.1f GB/s\n", b->o.net->name, b->o.batch,
            peak, gbs);
    fprintf(f, "  %10s %6s %7s %9s %6s %8s %6s  call\n", "us each", "calls", "share", "GFLOP/s", "of", "GB/s", "of");
    for (int i = 0; g && i < n; i++) {
        const double ns = g[i].ns ? (double)g[i].ns : 1;
        fprintf(f, "  %10.1f %6lld %6.1f%% %9.2f %5.1f%% %8.2f %5.1f%%  %s %s\n", 1e-3 * ns / (double)g[i].calls,
                (long long)g[i].per_run, 100 * ns / (double)p->wall_ns, g[i].flops / ns, 100 * g[i].flops / ns / peak,
                g[i].bytes / ns, 100 * g[i].bytes / ns / gbs, g[i].key, g[i].more);
    }
    mem_free(&b->ctx->mem, g);
}

void bench_ops_json(struct bench *b, const struct bench_profile *p, double peak, double gbs, FILE *f)
{
    int n;
    struct group *g = group(b, p, BY_CALL, &n);
    fprintf(f,
            "{\"bench\": \"ops\", \"net\": \"%s\", \"batch\": %ld, \"threads\": %ld, \"peak_gflops\": %.4g, "
            "\"read_gbs\": %.4g, \"calls\": [",
            b->o.net->name, b->o.batch, b->o.threads, peak, gbs);
    for (int i = 0; g && i < n; i++) {
        const double ns = g[i].ns ? (double)g[i].ns : 1;
        fprintf(f, "%s\n {\"op\": ", i ? "," : "");
        bench_text(f, g[i].key);
        fprintf(f, ", \"call\": ");
        bench_text(f, g[i].more);
        fprintf(f, ", \"per_run\": %lld, \"us\": %.4g, \"gflops\": %.4g, \"gbs\": %.4g, \"share\": %.4g}",
                (long long)g[i].per_run, 1e-3 * ns / (double)g[i].calls, g[i].flops / ns, g[i].bytes / ns,
                ns / (double)p->wall_ns);
    }
    fprintf(f, "]}\n");
    mem_free(&b->ctx->mem, g);
}
