/* The profile of some runs: gathered, written as a trace. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/ctx.h"
#include "base/err.h"
#include "cli/bench.h"
#include "io/file.h"

/* Rows and events of p, behind those that are there; its calls come after those of the last program. */
static void append(struct bench_profile *p, const hone_program *q)
{
    const int first = p->n_rows;
    uint64_t begin = 0;
    if (p->n_events)
        begin = p->events[p->n_events - 1].begin_ns + p->events[p->n_events - 1].ns;
    for (int i = 0; i < hone_program_profile_rows(q); i++)
        p->rows[p->n_rows++] = hone_program_profile_row(q, i);
    for (int64_t i = 0; i < hone_program_profile_events(q); i++) {
        hone_profile_event e = hone_program_profile_event(q, i);
        e.row += first;
        e.begin_ns += begin;
        p->events[p->n_events++] = e;
    }
}

static hone_status gather(struct bench *b, struct bench_profile *p, hone_err *err)
{
    struct mem *m = &b->ctx->mem;
    int rows = hone_program_profile_rows(b->program);
    int64_t events = hone_program_profile_events(b->program);
    if (b->optim) {
        rows += hone_program_profile_rows(hone_optim_program(b->optim));
        events += hone_program_profile_events(hone_optim_program(b->optim));
    }
    p->rows = mem_array(m, (size_t)rows, sizeof *p->rows);
    p->events = mem_array(m, (size_t)events, sizeof *p->events);
    if (!p->rows || !p->events)
        return err_set(err, HONE_E_NOMEM, "bench", "no memory for a profile");
    append(p, b->program);
    p->n_program = p->n_rows;
    if (b->optim)
        append(p, hone_optim_program(b->optim));
    return HONE_OK;
}

hone_status bench_profile_make(struct bench *b, int runs, struct bench_profile *p, hone_err *err)
{
    *p = (struct bench_profile){.runs = runs};
    for (int i = 0; i < 2; i++) /* caches and what is prepared are then as in other runs */
        if (bench_once(b, (uint64_t)i, err) != HONE_OK)
            return err->code;
    if (hone_program_profile(b->program, true, err) != HONE_OK)
        return err->code;
    if (b->optim && hone_program_profile(hone_optim_program(b->optim), true, err) != HONE_OK)
        return err->code;
    const uint64_t begin = clock_ns();
    for (int i = 0; i < runs && bench_once(b, (uint64_t)i, err) == HONE_OK; i++) {}
    p->wall_ns = clock_ns() - begin;
    return err_is(err) ? err->code : gather(b, p, err);
}

void bench_profile_free(struct bench *b, struct bench_profile *p)
{
    if (!b->ctx)
        return;
    mem_free(&b->ctx->mem, p->rows);
    mem_free(&b->ctx->mem, p->events);
    *p = (struct bench_profile){0};
}

void bench_text(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++)
        if ((unsigned char)*s < 32)
            fprintf(f, "\\u%04x", (unsigned)*s);
        else
            fprintf(f, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
    fputc('"', f);
}

static void write_event(FILE *f, const hone_profile_row *r, const hone_profile_event *e)
{
    const double ns = e->ns ? (double)e->ns : 1;
    fprintf(f, "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%.3f,\"dur\":%.3f,\"name\":", 1e-3 * (double)e->begin_ns,
            1e-3 * (double)e->ns);
    bench_text(f, r->op);
    fprintf(f, ",\"cat\":\"%s\",\"args\":{\"layer\":", r->prepare ? "prepare" : "run");
    bench_text(f, r->layer);
    fprintf(f, ",\"call\":");
    bench_text(f, r->call);
    fprintf(f, ",\"GFLOP/s\":%.3f,\"GB/s\":%.3f}}", r->flops / ns, r->bytes / ns);
}

hone_status bench_profile_write(const struct bench_profile *p, const char *path, hone_err *err)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return file_fail(err, path, "cannot be written", errno);
    fprintf(f, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    for (int64_t i = 0; i < p->n_events; i++) {
        if (i)
            fprintf(f, ",\n");
        write_event(f, &p->rows[p->events[i].row], &p->events[i]);
    }
    fprintf(f, "\n]}\n");
    const bool bad = ferror(f);
    return fclose(f) != 0 || bad ? file_fail(err, path, "cannot be written", errno) : HONE_OK;
}
