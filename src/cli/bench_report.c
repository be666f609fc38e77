/* What hone bench prints. */
#include <string.h>

#include "base/ctx.h"
#include "base/err.h"
#include "cli/bench.h"

static double ratio(const struct bench_result *r)
{
    return r->floor_ms > 0 ? r->time.p50 / r->floor_ms : 0;
}

void bench_json(const struct bench *b, const struct bench_result *r, FILE *f)
{
    fprintf(f, "{\"bench\": \"%s\", \"net\": \"%s\", \"batch\": %ld, \"threads\": %ld, \"steps\": %ld,\n", b->o.what,
            b->o.net->name, b->o.batch, b->o.threads, b->o.steps);
    fprintf(f, " \"weights\": \"%s\", \"plain\": %s, \"repeats\": %d,\n", b->o.bf16 ? "bf16" : "f32",
            b->o.plain ? "true" : "false", r->time.repeats);
    fprintf(f, " \"ms_p50\": %.6g, \"ms_p99\": %.6g, \"ms_min\": %.6g, \"ms_mean\": %.6g,\n", r->time.p50, r->time.p99,
            r->time.min, r->time.mean);
    fprintf(f, " \"floor_ms\": %.6g, \"ratio\": %.4g,\n", r->floor_ms, ratio(r));
    if (!strcmp(b->o.what, "decision"))
        fprintf(f, " \"rest_ms\": %.4g, \"rest_share\": %.4g,\n", r->rest_ms, r->rest_ms / r->time.p50);
    fprintf(f, " \"gflops\": %.4g, \"peak_gflops\": %.4g, \"read_gbs\": %.4g,\n", r->gflops, r->peak_gflops,
            r->read_gbs);
    fprintf(f,
            " \"planned_bytes\": %zu, \"live_peak_bytes\": %zu, \"transient_bytes\": %zu, \"prepared_bytes\": %zu,\n",
            r->plan.bytes, r->plan.live_peak, r->plan.transient, r->plan.prepared);
    fprintf(f, " \"arena_bytes\": %zu, \"memory_peak_bytes\": %zu,\n", r->arena_bytes, r->peak_bytes);
    fprintf(f, " \"allocations\": %llu, \"process_allocations\": ", (unsigned long long)r->time.allocations);
    if (r->time.process_allocations < 0)
        fprintf(f, "null,\n");
    else
        fprintf(f, "%lld,\n", (long long)r->time.process_allocations);
    fprintf(f, " \"operations\": %d, \"params\": %lld, \"cpu\": ", r->plan.operations, (long long)r->params);
    bench_text(f, r->cpu);
    if (r->load < 0)
        fprintf(f, ", \"load\": null}\n");
    else
        fprintf(f, ", \"load\": %.3f}\n", r->load);
}

void bench_table(const struct bench *b, const struct bench_result *r, FILE *f)
{
    const double mib = 1024 * 1024;
    fprintf(f, "%s of %s: batch %ld, %ld step%s, %s weights, %ld thread%s\n", b->o.what, b->o.net->name, b->o.batch,
            b->o.steps, b->o.steps == 1 ? "" : "s", b->o.bf16 ? "bf16" : "f32", b->o.threads,
            b->o.threads == 1 ? "" : "s");
    fprintf(f, "  %-12s %s, %.1f %% in use by others\n", "machine", r->cpu, r->load < 0 ? 0.0 : 100 * r->load);
    fprintf(f, "  %-12s %lld\n", "parameters", (long long)r->params);
    fprintf(f, "  %-12s median %.3f ms, 99 %% below %.3f, least %.3f, mean %.3f (%d runs)\n", "time", r->time.p50,
            r->time.p99, r->time.min, r->time.mean, r->time.repeats);
    fprintf(f, "  %-12s %.3f ms; the median is %.2f times as long\n", "floor", r->floor_ms, ratio(r));
    if (!strcmp(b->o.what, "decision"))
        fprintf(f, "  %-12s %.3f ms, %.1f %%: norms, activations, normalisers, sampler\n", "no products", r->rest_ms,
                100 * r->rest_ms / r->time.p50);
    fprintf(f, "  %-12s %.1f GFLOP/s of %.1f; reading %.1f GB/s\n", "speed", r->gflops, r->peak_gflops, r->read_gbs);
    fprintf(f, "  %-12s %.2f MiB planned, %.2f used; values of a run %.2f, at once alive %.2f; in all at most %.2f\n",
            "memory", (double)r->plan.bytes / mib, (double)r->arena_bytes / mib, (double)r->plan.transient / mib,
            (double)r->plan.live_peak / mib, (double)r->peak_bytes / mib);
    fprintf(f, "  %-12s %llu by hone", "allocations", (unsigned long long)r->time.allocations);
    if (r->time.process_allocations >= 0)
        fprintf(f, ", %lld by the process", (long long)r->time.process_allocations);
    fprintf(f, ", in all runs\n");
}
