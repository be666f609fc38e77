/* hone bench: how long a decision and a training step take, beside what the machine could do. */
#include <stdio.h>
#include <string.h>

#include "base/ctx.h"
#include "base/err.h"
#include "cli/bench.h"
#include "cli/cli.h"
#include "graph/program.h"

static const double BUSY = 0.1; /* share of the machine that others may use */
enum { PROFILE_RUNS = 20 };

/* --- the call --- */

struct words {
    const char *net, *batch, *threads, *steps, *repeats, *weights;
};

static bool number(const char *flag, const char *text, long lo, long hi, long otherwise, long *out)
{
    *out = otherwise;
    return !text || cli_number(flag, text, lo, hi, out);
}

static bool read_options(struct bench_options *o, const struct words *w, hone_err *err)
{
    const bool step = strcmp(o->what, "decision") != 0;
    if (step && strcmp(o->what, "step") && strcmp(o->what, "ops")) {
        err_set(err, HONE_E_CONFIG, "bench", "there is no \"%.40s\" to measure; there are decision, step, ops",
                o->what);
        return false;
    }
    if (w->weights && strcmp(w->weights, "f32") && strcmp(w->weights, "bf16")) {
        err_set(err, HONE_E_CONFIG, "--weights", "wants f32 or bf16; got \"%.40s\"", w->weights);
        return false;
    }
    o->bf16 = w->weights && !strcmp(w->weights, "bf16");
    if (o->bf16 && (step || o->plain)) {
        err_set(err, HONE_E_CONFIG, "--weights", "bf16 is for weights that a decision packs; %s",
                step ? "a training step has f32" : "--plain packs none");
        return false;
    }
    o->net = bench_net_find(w->net ? w->net : "unet", err);
    if (!o->net) {
        err->code = HONE_E_CONFIG;
        return false;
    }
    if (step && w->steps) {
        err_set(err, HONE_E_CONFIG, "--steps", "belongs to a decision; a training step has none");
        return false;
    }
    const bool ok = number("batch", w->batch, 1, 1 << 16, step ? 256 : 1, &o->batch) &&
                    number("threads", w->threads, 1, 1024, 0, &o->threads) &&
                    number("steps", w->steps, 1, 1000, step ? 1 : o->net->steps, &o->steps) &&
                    number("repeats", w->repeats, 1, 1000000, 0, &o->repeats);
    if (!ok)
        err->code = HONE_E_CONFIG; /* told already */
    return ok;
}

/* --- measuring --- */

/* Milliseconds under which no decision can be: each operation computes at the peak, or reads at the measured rate what
 * is the same in each run. What a run makes itself is in caches and counts nothing. */
static double decision_floor(const struct bench_profile *p, double peak, double gbs)
{
    double ns = 0;
    for (int i = 0; i < p->n_rows; i++) {
        const hone_profile_row *r = &p->rows[i];
        const double compute = r->flops / peak, read = r->fixed_bytes / gbs;
        if (!r->prepare)
            ns += (double)r->per_run * (compute > read ? compute : read);
    }
    return 1e-6 * ns;
}

/* The same of a training step: the products at the peak, and the update, which moves all that it reads and writes. */
static double step_floor(const struct bench_profile *p, double work, double peak, double gbs)
{
    double ns = work / peak;
    for (int i = p->n_program; i < p->n_rows; i++) {
        const hone_profile_row *r = &p->rows[i];
        const double compute = r->flops / peak, move = r->bytes / gbs;
        if (!r->prepare)
            ns += (double)r->per_run * (compute > move ? compute : move);
    }
    return 1e-6 * ns;
}

/* Of a training step both programs count: each has a slab of its own, and they run one after the other. */
static void plan_of(const struct bench *b, struct bench_result *r)
{
    r->plan = hone_program_plan(b->program);
    r->arena_bytes = profile_extent(b->program);
    if (!b->optim)
        return;
    const hone_plan_info u = hone_program_plan(hone_optim_program(b->optim));
    r->arena_bytes += profile_extent(hone_optim_program(b->optim));
    r->plan.bytes += u.bytes;
    r->plan.transient += u.transient;
    r->plan.live_peak = u.live_peak > r->plan.live_peak ? u.live_peak : r->plan.live_peak;
    r->plan.prepared += u.prepared;
    r->plan.constants += u.constants;
    r->plan.scratch = u.scratch > r->plan.scratch ? u.scratch : r->plan.scratch;
    r->plan.operations += u.operations;
    r->plan.prepare_operations += u.prepare_operations;
    r->plan.flops += u.flops;
    r->plan.moved_bytes += u.moved_bytes;
}

/* Called before and after the runs: the better figure counts. */
static hone_status machine(struct bench *b, struct bench_result *r, hone_err *err)
{
    const size_t weights = (size_t)hone_layout_parameters(b->layout) * (b->o.bf16 ? 2 : 4);
    bench_peak_flops(b, &r->peak_gflops, err);
    return err_is(err) ? err->code : bench_read_rate(b, weights, &r->read_gbs, err);
}

static hone_status measure(struct bench *b, struct bench_result *r, struct bench_profile *p, hone_err *err)
{
    const bool step = strcmp(b->o.what, "decision") != 0, ops = !strcmp(b->o.what, "ops");
    double forward = 0;
    if (bench_open(b, err) != HONE_OK || (step ? bench_step(b, err) : bench_decision(b, err)) != HONE_OK)
        return err->code;
    r->params = hone_layout_parameters(b->layout);
    plan_of(b, r);
    r->peak_bytes = hone_ctx_mem(b->ctx).peak_bytes;
    if (bench_forward_flops(b, &forward, err) != HONE_OK || machine(b, r, err) != HONE_OK)
        return err->code;
    if (!ops && bench_time(b, &r->time, err) != HONE_OK)
        return err->code;
    if (machine(b, r, err) != HONE_OK)
        return err->code;
    const int runs = b->o.repeats && b->o.repeats < PROFILE_RUNS ? (int)b->o.repeats : PROFILE_RUNS;
    if (bench_profile_make(b, r->time.p50 > 200 && runs > 5 ? 5 : runs, p, err) != HONE_OK)
        return err->code;
    const double work = forward * (step ? 3 : (double)b->o.steps);
    r->floor_ms =
        step ? step_floor(p, work, r->peak_gflops, r->read_gbs) : decision_floor(p, r->peak_gflops, r->read_gbs);
    r->gflops = r->time.p50 > 0 ? 1e-6 * work / r->time.p50 : 0;
    return step ? HONE_OK : bench_rest(b, p, &r->rest_ms, err);
}

static void report(struct bench *b, const struct bench_result *r, const struct bench_profile *p)
{
    if (!strcmp(b->o.what, "ops")) {
        (b->o.json ? bench_ops_json : bench_ops_print)(b, p, r->peak_gflops, r->read_gbs, stdout);
        return;
    }
    if (b->o.json) {
        bench_json(b, r, stdout);
        return;
    }
    bench_table(b, r, stdout);
    if (b->o.profile) {
        bench_profile_print(b, p, stdout);
        printf("  %s: one run; ui.perfetto.dev or chrome://tracing opens it\n", b->o.profile);
    }
}

static int run(struct bench *b)
{
    struct bench_result r = {.load = bench_load()};
    struct bench_profile p = {0};
    hone_err err = {0};
    if (r.load > BUSY && !b->o.force) {
        fprintf(stderr,
                "hone: bench: other processes use %.0f %% of this machine, so times would mean little; wait for "
                "them, or --force\n",
                100 * r.load);
        return CLI_FAILED;
    }
    bench_cpu(r.cpu, sizeof r.cpu);
    if (measure(b, &r, &p, &err) == HONE_OK && b->o.profile)
        bench_profile_write(&p, b->o.profile, &err);
    if (!err_is(&err))
        report(b, &r, &p);
    bench_profile_free(b, &p);
    bench_close(b);
    return err_is(&err) ? cli_fail(&err) : CLI_OK;
}

int cmd_bench(int argc, char **argv)
{
    struct bench b = {0};
    struct words w = {0};
    const char *words[1];
    int n, code;
    hone_err err = {0};
    const struct cli_flag flags[] = {
        {"net", "NAME", "unet (5.3 million parameters), mlp or dit", NULL, &w.net, 0, NULL},
        {"batch", "N", "decisions or samples at once; a decision: 1, a step: 256", NULL, &w.batch, 0, NULL},
        {"threads", "N", "all that this process may use", NULL, &w.threads, 0, NULL},
        {"steps", "N", "of the sampler; unet and dit: 10, mlp: 20", NULL, &w.steps, 0, NULL},
        {"weights", "f32|bf16", "as what a decision reads its weights", NULL, &w.weights, 0, NULL},
        {"repeats", "N", "timed runs; as many as take three seconds", NULL, &w.repeats, 0, NULL},
        {"json", NULL, "one JSON object and nothing else", &b.o.json, NULL, 0, NULL},
        {"profile", "FILE", "a trace of one run, for ui.perfetto.dev or chrome://tracing, and tables", NULL,
         &b.o.profile, 0, NULL},
        {"plain", NULL, "without the passes that make a program faster", &b.o.plain, NULL, 0, NULL},
        {"force", NULL, "also on a machine that others are using", &b.o.force, NULL, 0, NULL},
    };
    const struct cli_verb verb = {
        "bench",
        "decision|step|ops [flags]",
        "decision: from an observation to actions, by DDIM. step: loss, gradients and update "
        "of a batch. ops: each call\nof a training step by itself. The floor of a decision "
        "is what its operations take at the measured speed of products,\nor of reading their "
        "weights; that of a step is three forward passes' products at that speed, and the update\nreading and "
        "writing its slabs as fast as weights are read.",
        flags,
        sizeof flags / sizeof *flags,
        1,
        1};
    if (!cli_parse(&verb, argc, argv, words, &n, &code))
        return code;
    b.o.what = words[0];
    if (!read_options(&b.o, &w, &err))
        return *err.text ? cli_fail(&err) : CLI_USAGE;
    return run(&b);
}
