/* The device "record": its memory and its kernels; see record.h. */
#include "backend/record/record.h"

#include <stdio.h>
#include <string.h>

/* Who computes: the device that every build has. */
static const struct bk_def *cpu(void)
{
    return bk_table[0];
}

/* --- the transcript --- */

static void write_locked(struct bk_dev *d, const char *lines)
{
    const size_t n = strlen(lines);
    if (!d->dropped && n < d->cap - d->len) {
        memcpy(d->text + d->len, lines, n + 1);
        d->len += n;
        return;
    }
    for (size_t i = 0; i < n; i++)
        d->dropped += lines[i] == '\n';
}

void record_write(struct bk_dev *d, const char *lines)
{
    pthread_mutex_lock(&d->lock);
    write_locked(d, lines);
    pthread_mutex_unlock(&d->lock);
}

enum { TAIL = 80 }; /* bytes behind the bounded text, for the count of what was dropped */

static const char *record_transcript(struct bk_dev *d)
{
    pthread_mutex_lock(&d->lock);
    if (d->dropped)
        snprintf(d->text + d->len, TAIL, "(full: %llu more lines were dropped)\n", (unsigned long long)d->dropped);
    pthread_mutex_unlock(&d->lock);
    return d->text;
}

/* One more kernel is prepared: room for what it will say. Without memory the text stays as large as it is. */
static void make_room(struct bk_dev *d)
{
    pthread_mutex_lock(&d->lock);
    size_t want = RECORD_ROOM + ++d->kernels * RECORD_ROOM_KERNEL;
    if (want > d->cap && d->cap < RECORD_ROOM_MOST) {
        want = 2 * d->cap < RECORD_ROOM_MOST ? 2 * d->cap : RECORD_ROOM_MOST;
        char *more = mem_grow(&d->ctx->mem, d->text, d->cap + TAIL, want + TAIL);
        if (more) {
            d->text = more;
            d->cap = want;
        }
    }
    pthread_mutex_unlock(&d->lock);
}

/* --- the device --- */

static void record_shut(struct bk_dev *d)
{
    if (!d)
        return;
    struct mem *m = &d->ctx->mem;
    if (d->cpu_dev)
        d->cpu->close(d->cpu_dev);
    pthread_mutex_destroy(&d->lock);
    mem_free(m, d->text);
    mem_free(m, d->slabs);
    mem_free(m, d);
}

static struct bk_dev *record_start(hone_ctx *ctx, hone_err *err)
{
    struct bk_dev *d = mem_alloc(&ctx->mem, sizeof *d);
    if (!d) {
        err_set(err, HONE_E_NOMEM, "record", "no memory for the device");
        return NULL;
    }
    d->ctx = ctx;
    d->cpu = cpu();
    d->cap = RECORD_ROOM;
    pthread_mutex_init(&d->lock, NULL);
    d->text = mem_alloc(&ctx->mem, d->cap + TAIL);
    if (!d->text)
        err_set(err, HONE_E_NOMEM, "record", "no memory for the transcript");
    else
        d->cpu_dev = d->cpu->open(ctx, err);
    if (d->cpu_dev)
        return d;
    record_shut(d);
    return NULL;
}

/* The slab that p lies in; NULL: none of this device. */
static const struct record_slab *slab_of(const struct bk_dev *d, const void *p)
{
    for (int i = 0; i < d->n_slabs; i++)
        if ((uintptr_t)p >= (uintptr_t)d->slabs[i].at && (uintptr_t)p - (uintptr_t)d->slabs[i].at < d->slabs[i].bytes)
            return &d->slabs[i];
    return NULL;
}

static void place_locked(const struct bk_dev *d, const void *p, char *buf, size_t n)
{
    const struct record_slab *s = slab_of(d, p);
    if (s)
        snprintf(buf, n, "slab%d+%zu", s->number, (size_t)((uintptr_t)p - (uintptr_t)s->at));
    else
        snprintf(buf, n, "host");
}

char *record_place(struct bk_dev *d, const void *p, char *buf, size_t n)
{
    pthread_mutex_lock(&d->lock);
    place_locked(d, p, buf, n);
    pthread_mutex_unlock(&d->lock);
    return buf;
}

static bool room_for_slab(struct bk_dev *d)
{
    if (d->n_slabs < d->cap_slabs)
        return true;
    const size_t cap = (size_t)d->cap_slabs * 2 + 8, size = sizeof *d->slabs;
    struct record_slab *more = mem_grow(&d->ctx->mem, d->slabs, (size_t)d->cap_slabs * size, cap * size);
    if (!more)
        return false;
    d->slabs = more;
    d->cap_slabs = (int)cap;
    return true;
}

static void *record_alloc(struct bk_dev *d, size_t bytes)
{
    char line[96];
    void *p = NULL;
    pthread_mutex_lock(&d->lock);
    if (room_for_slab(d))
        p = d->cpu->alloc(d->cpu_dev, bytes);
    if (p) {
        d->slabs[d->n_slabs] = (struct record_slab){p, bytes, d->made_slabs++};
        snprintf(line, sizeof line, "aclrtMalloc(&slab%d, %zu, ACL_MEM_MALLOC_HUGE_FIRST)\n",
                 d->slabs[d->n_slabs++].number, bytes);
        write_locked(d, line);
    }
    pthread_mutex_unlock(&d->lock);
    return p;
}

static void record_free(struct bk_dev *d, void *p)
{
    char line[64];
    if (!p)
        return;
    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < d->n_slabs; i++)
        if (d->slabs[i].at == p) {
            snprintf(line, sizeof line, "aclrtFree(slab%d)\n", d->slabs[i].number);
            write_locked(d, line);
            d->slabs[i] = d->slabs[--d->n_slabs];
        }
    pthread_mutex_unlock(&d->lock);
    d->cpu->release(d->cpu_dev, p);
}

/* aclrtMemcpyAsync; the kind follows from where both ends are. */
static void write_copy(struct bk_dev *d, const void *dst, const void *src, size_t bytes)
{
    char line[240], to[48], from[48];
    pthread_mutex_lock(&d->lock);
    place_locked(d, dst, to, sizeof to);
    place_locked(d, src, from, sizeof from);
    snprintf(line, sizeof line, "aclrtMemcpyAsync(%s, %zu, %s, %zu, ACL_MEMCPY_%s_TO_%s, stream)\n", to, bytes, from,
             bytes, slab_of(d, src) ? "DEVICE" : "HOST", slab_of(d, dst) ? "DEVICE" : "HOST");
    write_locked(d, line);
    pthread_mutex_unlock(&d->lock);
}

static hone_status record_upload(struct bk_dev *d, void *dst, const void *src, size_t bytes, hone_err *err)
{
    write_copy(d, dst, src, bytes);
    return d->cpu->upload(d->cpu_dev, dst, src, bytes, err);
}

static hone_status record_move(struct bk_dev *d, void *dst, const void *src, size_t bytes, hone_err *err)
{
    write_copy(d, dst, src, bytes);
    return d->cpu->copy(d->cpu_dev, dst, src, bytes, err);
}

static hone_status record_sync(struct bk_dev *d, hone_err *err)
{
    record_write(d, "aclrtSynchronizeStream(stream)\n");
    return d->cpu->sync(d->cpu_dev, err);
}

/* --- kernels --- */

struct state {
    const struct record_map *map; /* NULL: the host computes */
    const struct bk_kernel *cpu;  /* NULL: the reference computes */
    void *cpu_state, *memory;     /* of the kernel or the reference */
};

/* What the CPU's kernel needs stays out of the program's slab, which so is what a device's would be. */
size_t record_scratch(const struct op_call *c, int threads)
{
    const struct record_map *map = record_map_of(c);
    (void)threads;
    return map && map->temp ? map->temp(c) : 0;
}

void record_release(struct bk_dev *d, void *state)
{
    struct state *s = state;
    if (s->cpu_state && s->cpu->release)
        s->cpu->release(d->cpu_dev, s->cpu_state);
    mem_free(&d->ctx->mem, s->memory);
    mem_free(&d->ctx->mem, s);
}

hone_status record_prepare(struct bk_dev *d, const struct op_call *c, int threads, void **state, hone_err *err)
{
    struct state *s = mem_alloc(&d->ctx->mem, sizeof *s);
    if (!s)
        return err_set(err, HONE_E_NOMEM, c->def->name, "no memory to prepare it");
    s->map = record_map_of(c);
    s->cpu = d->cpu->find(c);
    const size_t bytes = !s->cpu ? record_reference_bytes(c) : s->cpu->scratch ? s->cpu->scratch(c, threads) : 0;
    hone_status st = HONE_OK;
    make_room(d);
    if (bytes && !(s->memory = mem_alloc(&d->ctx->mem, bytes)))
        st = err_set(err, HONE_E_NOMEM, c->def->name, "no memory for %zu bytes of scratch", bytes);
    if (st == HONE_OK && s->cpu && s->cpu->prepare)
        st = s->cpu->prepare(d->cpu_dev, c, threads, &s->cpu_state, err);
    if (st == HONE_OK)
        *state = s;
    else
        record_release(d, s);
    return st;
}

static void write_types(struct record_use *u)
{
    char one[96];
    for (int i = 0; i < u->call->n_in; i++)
        text_addf(&u->t, " %s%s", hone_dtype_name(u->call->in[i].dtype),
                  hone_shape_text(&u->call->in[i].shape, one, sizeof one));
    text_add(&u->t, " ->");
    for (int i = 0; i < u->call->n_out; i++)
        text_addf(&u->t, " %s%s", hone_dtype_name(u->call->out[i].dtype),
                  hone_shape_text(&u->call->out[i].shape, one, sizeof one));
    text_add(&u->t, "\n");
}

static void use_start(struct record_use *u, const struct bk_io *io, const void *temp)
{
    *u = (struct record_use){.io = io, .call = io->call, .temp = temp};
    text_init(&u->t, u->buf, sizeof u->buf);
}

hone_status record_run(const struct bk_io *io, hone_err *err)
{
    const struct state *s = io->state;
    struct record_use u;
    use_start(&u, io, io->scratch);
    if (s->map) {
        s->map->write(&u);
        HONE_BUG(io->scratch && u.temp > (const char *)io->scratch + record_scratch(io->call, io->threads),
                 "a mapping took more memory between its operators than it asked for");
    } else {
        text_addf(&u.t, "host %s: %s", io->call->def->name, io->layer);
        write_types(&u);
    }
    record_write(io->dev, u.buf);
    if (!s->cpu) {
        record_reference_run(io, s->memory);
        return HONE_OK;
    }
    struct bk_io cpu = *io;
    cpu.dev = io->dev->cpu_dev;
    cpu.state = s->cpu_state;
    cpu.scratch = s->memory;
    return s->cpu->run(&cpu, err);
}

void record_nothing(struct record_use *u)
{
    text_addf(&u->t, "nothing to launch for %s: %s", u->call->def->name, u->io->layer);
    write_types(u);
}

static hone_status nothing_run(const struct bk_io *io, hone_err *err)
{
    struct record_use u;
    (void)err;
    use_start(&u, io, NULL);
    record_nothing(&u);
    record_write(io->dev, u.buf);
    return HONE_OK;
}

const struct record_map *record_map_of(const struct op_call *c)
{
    static const struct record_map *const maps[] = {
#define MAP(name) &record_##name,
#include "backend/record/maps.def"
#undef MAP
    };
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
        if (!strcmp(maps[i]->kernel.op, c->def->name))
            return !maps[i]->kernel.accepts || maps[i]->kernel.accepts(c) ? maps[i] : NULL;
    return NULL;
}

static const struct bk_kernel *record_find(const struct op_call *c)
{
    static const struct bk_kernel nothing = {.op = "nothing", .run = nothing_run};
    static const struct bk_kernel host = {.op = "host",
                                          .scratch = record_scratch,
                                          .prepare = record_prepare,
                                          .release = record_release,
                                          .run = record_run};
    bool empty = c->n_out > 0;
    for (int i = 0; i < c->n_out; i++)
        empty = empty && op_numel(&c->out[i]) == 0;
    if (empty)
        return &nothing;
    const struct record_map *map = record_map_of(c);
    if (map)
        return &map->kernel;
    return c->def->expand || !cpu()->find(c) ? NULL : &host;
}

const struct bk_def bk_record = {
    .name = "record",
    .doc = "runs on the CPU and writes what an Ascend device would be asked through CANN",
    .open = record_start,
    .close = record_shut,
    .alloc = record_alloc,
    .release = record_free,
    .upload = record_upload,
    .copy = record_move,
    .sync = record_sync,
    .find = record_find,
    .transcript = record_transcript,
};
