/* Kernels of products and convolutions beyond what the table of operations tests: the portable ones where oneDNN is
 * first, equal bits from run to run, two threads at once, the number of threads, refusals. */
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "check.h"
#include "graph/kit.h"
#include "op/harness.h"
#ifdef HONE_DNNL
#include "backend/cpu/dnnl.h"
#endif

static const struct bk_kernel *const portable[] = {&cpu_matmul, &cpu_linear, &cpu_conv1d, &cpu_conv1d_data_grad,
                                                   &cpu_conv1d_weight_grad};
enum { N_PORTABLE = sizeof portable / sizeof portable[0] };

/* One use of an operation with its memory. */
struct use {
    struct op_call call;
    hone_type out[OP_MAX_OUT];
    float *in[8], *result;
    int64_t n;
};

static void use_open(struct use *u, struct check *c, const struct op_def *def, const struct op_case *k)
{
    struct harness h = {.def = def, .k = k};
    hone_err err = {0};
    memset(u, 0, sizeof *u);
    u->call = (struct op_call){def, k->n_in, 1, k->in, NULL, k->attr, NULL};
    CHECK_MSG(c, def->shape(&u->call, u->out, &err) == HONE_OK, "%s", err.text);
    u->call.out = u->out;
    u->n = hone_numel(&u->out[0].shape);
    u->result = malloc((size_t)u->n * sizeof *u->result + 4);
    harness_draw(&h);
    for (int i = 0; i < k->n_in; i++) {
        u->in[i] = malloc((size_t)h.n[i] * sizeof *u->in[i] + 4);
        for (int64_t j = 0; j < h.n[i]; j++)
            u->in[i][j] = (float)h.in[i][j];
    }
    harness_drop(&h);
}

static void use_close(struct use *u)
{
    for (int i = 0; i < u->call.n_in; i++)
        free(u->in[i]);
    free(u->result);
}

/* Makes the kernel's state, runs it `times`, takes the state back. */
static hone_status use_run(struct use *u, struct bk_dev *dev, const struct bk_kernel *k, int threads, int times,
                           float *result, hone_err *err)
{
    const void *in[8];
    void *out[1] = {result}, *state = NULL;
    for (int i = 0; i < u->call.n_in; i++)
        in[i] = u->in[i];
    const size_t bytes = k->scratch ? k->scratch(&u->call, threads) : 0;
    void *scratch = aligned_alloc(64, bytes + 64 - bytes % 64);
    hone_status s = k->prepare ? k->prepare(dev, &u->call, threads, &state, err) : HONE_OK;
    struct bk_io io = {dev, &u->call, "test", in, out, scratch, state, threads};
    for (int i = 0; i < times && s == HONE_OK; i++)
        s = k->run(&io, err);
    if (k->release)
        k->release(dev, state);
    free(scratch);
    return s;
}

static void equals_reference(struct check *c, struct bk_dev *dev, const struct bk_kernel *k, const struct op_def *def,
                             const struct op_case *one, int threads)
{
    struct use u;
    hone_err err = {0};
    double *in[8], largest = 0, worst = 0;
    use_open(&u, c, def, one);
    double *want = malloc((size_t)u.n * sizeof *want + 8);
    for (int i = 0; i < one->n_in; i++) {
        int64_t n = op_numel(&one->in[i]);
        in[i] = malloc((size_t)n * sizeof(double) + 8);
        for (int64_t j = 0; j < n; j++)
            in[i][j] = u.in[i][j];
    }
    def->ref(&u.call, (const double *const *)in, &want);
    CHECK_MSG(c, use_run(&u, dev, k, threads, 1, u.result, &err) == HONE_OK, "%s", err.text);
    for (int64_t i = 0; i < u.n; i++) {
        largest = fmax(largest, fabs(want[i]));
        worst = fmax(worst, fabs(u.result[i] - want[i]));
    }
    CHECK_MSG(c, worst <= 2e-6 * largest, "%g of %g, %d threads", worst, largest, threads);
    for (int i = 0; i < one->n_in; i++)
        free(in[i]);
    free(want);
    use_close(&u);
}

static void portable_equal_reference(struct check *c, struct bk_dev *dev)
{
    for (int i = 0; i < N_PORTABLE; i++) {
        const struct op_def *def = op_find(portable[i]->op);
        for (int j = 0; j < def->n_cases; j++)
            if (check_case(c, "portable %s: %s", def->name, def->cases[j].name))
                equals_reference(c, dev, portable[i], def, &def->cases[j], 2);
    }
}

/* Larger than the table's cases: several blocks of rows, columns, channels and inner parts, and worth a thread. */
static const struct {
    const char *op;
    struct op_case k;
} large[] = {
    {"matmul", {"rows", 2, {OP_F32(133, 300), OP_F32(300, 71)}, {.i = {0, 0}}}},
    {"matmul", {"batch", 2, {OP_F32(5, 67, 70), OP_F32(5, 70, 66)}, {.i = {0, 0}}}},
    {"matmul", {"both transposed", 2, {OP_F32(513, 70), OP_F32(65, 513)}, {.i = {1, 1}}}},
    {"linear", {"dense", 3, {OP_F32(130, 270), OP_F32(70, 270), OP_F32(70)}}},
    {"conv1d", {"same length", 3, {OP_F32(3, 70, 16), OP_F32(65, 70, 5), OP_F32(65)}, {.i = {1, 2, 1}}}},
    {"conv1d", {"stride", 2, {OP_F32(6, 33, 17), OP_F32(35, 33, 3)}, {.i = {2, 1, 1}}}},
    {"conv1d_data_grad", {"same length", 2, {OP_F32(3, 65, 16), OP_F32(65, 70, 5)}, {.i = {1, 2, 1, 16}}}},
    {"conv1d_data_grad", {"stride", 2, {OP_F32(6, 35, 9), OP_F32(35, 33, 3)}, {.i = {2, 1, 1, 17}}}},
    {"conv1d_weight_grad", {"same length", 2, {OP_F32(12, 70, 16), OP_F32(12, 65, 16)}, {.i = {1, 2, 1, 5}}}},
    {"conv1d_weight_grad", {"short", 2, {OP_F32(24, 64, 4), OP_F32(24, 96, 4)}, {.i = {1, 2, 1, 5}}}},
    {"matmul", {"few rows", 2, {OP_F32(8, 600), OP_F32(200, 600)}, {.i = {0, 1}}}},
    {"matmul", {"first transposed", 2, {OP_F32(300, 90), OP_F32(300, 70)}, {.i = {1, 0}}}},
    {"matmul", {"two matrices", 2, {OP_F32(2, 67, 170), OP_F32(2, 170, 130)}, {.i = {0, 0}}}},
    {"matmul", {"one for all", 2, {OP_F32(70, 67), OP_F32(6, 70, 170)}, {.i = {1, 0}}}},
    {"linear", {"a few rows", 3, {OP_F32(3, 1000), OP_F32(333, 1000), OP_F32(333)}}},
    {"time_conv", {"same length", 3, {OP_F32(16, 33, 20), OP_F32(5, 20, 24), OP_F32(24)}, {.i = {1, 2}}}},
    {"time_conv", {"stride", 3, {OP_F32(17, 9, 33), OP_F32(3, 33, 35), OP_F32(35)}, {.i = {2, 1}}}},
    {"time_conv", {"more threads than rows", 3, {OP_F32(2, 31, 20), OP_F32(5, 20, 24), OP_F32(24)}, {.i = {1, 2}}}},
    {"time_conv", {"one row and sample", 3, {OP_F32(1, 1, 20), OP_F32(5, 20, 24), OP_F32(24)}, {.i = {1, 2}}}},
    {"time_conv", {"rows of bias alone", 3, {OP_F32(3, 5, 20), OP_F32(2, 20, 24), OP_F32(24)}, {.i = {1, 6}}}},
    {"time_conv", {"rows of zeros", 2, {OP_F32(3, 5, 20), OP_F32(2, 20, 24)}, {.i = {1, 6}}}},
    {"time_conv_data", {"same length", 2, {OP_F32(16, 33, 24), OP_F32(5, 20, 24)}, {.i = {1, 2, 16}}}},
    {"time_conv_data", {"twice", 3, {OP_F32(7, 9, 24), OP_F32(4, 20, 24), OP_F32(20)}, {.i = {2, 1, 14}}}},
    {"time_conv_data", {"gaps", 3, {OP_F32(3, 5, 24), OP_F32(2, 20, 24), OP_F32(20)}, {.i = {4, 0, 13}}}},
    {"time_conv_weight", {"same length", 2, {OP_F32(16, 33, 50), OP_F32(16, 33, 24)}, {.i = {1, 2, 5}}}},
    {"time_conv_weight", {"stride", 2, {OP_F32(17, 9, 90), OP_F32(9, 9, 35)}, {.i = {2, 1, 3}}}},
    {"time_conv_weight", {"one row", 2, {OP_F32(1, 31, 20), OP_F32(1, 31, 24)}, {.i = {1, 2, 5}}}},
};
enum { N_LARGE = sizeof large / sizeof large[0], MOST_THREADS = 5 };

/* The device's first kernel for case i; NULL: it has none, as for those with time first without oneDNN. */
static const struct bk_kernel *kernel_for(const hone_device *cpu, int i)
{
    const struct op_def *def = op_find(large[i].op);
    struct op_call call = {def, large[i].k.n_in, 1, large[i].k.in, NULL, large[i].k.attr, NULL};
    hone_type out[OP_MAX_OUT];
    hone_err err = {0};
    def->shape(&call, out, &err);
    call.out = out;
    return cpu->def->find(&call);
}

static const struct bk_kernel *portable_for(const char *op)
{
    for (int i = 0; i < N_PORTABLE; i++)
        if (!strcmp(portable[i]->op, op))
            return portable[i];
    return NULL;
}

/* Every state made anew, so that a choice at preparation would show too. */
static void same_bits(struct check *c, struct bk_dev *dev, const struct bk_kernel *k, const struct op_case *one,
                      bool any_threads)
{
    struct use u;
    hone_err err = {0};
    use_open(&u, c, op_find(k->op), one);
    const size_t bytes = (size_t)u.n * sizeof(float);
    float *again = malloc(bytes);
    for (int threads = 1; threads <= 3; threads++) {
        if (threads == 1 || !any_threads)
            use_run(&u, dev, k, threads, 1, u.result, &err);
        for (int i = 0; i < 2; i++) {
            memset(again, 0xff, bytes);
            use_run(&u, dev, k, threads, 1 + i, again, &err);
            CHECK_MSG(c, err.code == HONE_OK, "%s", err.text);
            CHECK_MSG(c, !memcmp(again, u.result, bytes), "run %d differs, %d threads", i, threads);
        }
    }
    free(again);
    use_close(&u);
}

static void large_cases(struct check *c, hone_device *cpu)
{
    for (int i = 0; i < N_LARGE; i++) {
        const struct bk_kernel *kernels[2] = {portable_for(large[i].op), kernel_for(cpu, i)};
        const struct op_def *def = op_find(large[i].op);
        for (int threads = 1; threads <= MOST_THREADS; threads++)
            if (check_case(c, "large %s: %s: %d threads", def->name, large[i].k.name, threads))
                for (int k = 0; k < 2; k++)
                    if (kernels[k])
                        equals_reference(c, cpu->dev, kernels[k], def, &large[i].k, threads);
        if (check_case(c, "large %s: %s: same bits", def->name, large[i].k.name))
            for (int k = 0; k < 2; k++)
                if (kernels[k])
                    same_bits(c, cpu->dev, kernels[k], &large[i].k, k == 0);
    }
}

/* --- two programs in two threads --- */

struct worker {
    struct use *use;
    struct bk_dev *dev;
    const struct bk_kernel *kernel;
    float *result;
    hone_err err;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    use_run(w->use, w->dev, w->kernel, 1, 20, w->result, &w->err);
    return NULL;
}

static void two_at_once(struct check *c, hone_device *cpu)
{
    for (int i = 0; i < N_LARGE; i++) {
        struct use u;
        struct worker w[2];
        pthread_t thread[2];
        const struct bk_kernel *kernel = kernel_for(cpu, i);
        if (!kernel || !check_case(c, "two at once: %s: %s", large[i].op, large[i].k.name))
            continue;
        use_open(&u, c, op_find(large[i].op), &large[i].k);
        for (int j = 0; j < 2; j++) {
            w[j] = (struct worker){&u, cpu->dev, kernel, malloc((size_t)u.n * sizeof(float)), {0}};
            pthread_create(&thread[j], NULL, work, &w[j]);
        }
        for (int j = 0; j < 2; j++)
            pthread_join(thread[j], NULL);
        work(&(struct worker){&u, cpu->dev, kernel, u.result, {0}});
        for (int j = 0; j < 2; j++) {
            CHECK_MSG(c, w[j].err.code == HONE_OK, "%s", w[j].err.text);
            CHECK(c, !memcmp(w[j].result, u.result, (size_t)u.n * sizeof(float)));
            free(w[j].result);
        }
        use_close(&u);
    }
}

/* --- threads of OpenMP --- */

#ifdef _OPENMP
static int count_tasks(void)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

struct team {
    struct check *c;
    hone_device *cpu;
    struct use *use;
};

/* In a thread of its own, which has no team yet: a kernel with one thread starts none, though the caller's own setting
 * would have it start three. */
static void *alone(void *arg)
{
    struct team *t = arg;
    hone_err err = {0};
    cpu_team(4);
    const int before = count_tasks();
    use_run(t->use, t->cpu->dev, t->cpu->def->find(&t->use->call), 1, 2, t->use->result, &err);
    CHECK_MSG(t->c, count_tasks() == before, "%d tasks before, %d after", before, count_tasks());
    const int team = cpu_team(4);
    CHECK_MSG(t->c, team == 4, "the caller's number of threads is now %d", team);
    CHECK_MSG(t->c, err.code == HONE_OK, "%s", err.text);
    return NULL;
}

static void threads_are_bounded(struct check *c, hone_device *cpu)
{
    for (int i = 0; i < N_LARGE; i++) {
        struct use u;
        pthread_t thread;
        if (!kernel_for(cpu, i) || !check_case(c, "threads: %s: %s", large[i].op, large[i].k.name))
            continue;
        use_open(&u, c, op_find(large[i].op), &large[i].k);
        pthread_create(&thread, NULL, alone, &(struct team){c, cpu, &u});
        pthread_join(thread, NULL);
        use_close(&u);
    }
}
#endif

/* --- failures --- */

static void no_memory(struct check *c)
{
    struct failing f = {0};
    hone_allocator a = kit_failing(&f);
    struct kit k;
    struct use u;
    if (!check_case(c, "no memory for a state"))
        return;
    kit_open(&k, &(hone_ctx_options){.allocator = &a});
    use_open(&u, c, op_find(large[0].op), &large[0].k);
    const struct bk_kernel *kernel = k.cpu->def->find(&u.call);
    f.countdown = 1;
    hone_status s = use_run(&u, k.cpu->dev, kernel, 1, 1, u.result, &k.err);
    CHECK_MSG(c, s == (kernel->prepare ? HONE_E_NOMEM : HONE_OK), "%s", k.err.text);
    f.countdown = 0;
    use_close(&u);
    kit_close(&k, c);
    CHECK(c, f.live == 0);
}

#ifdef HONE_DNNL
static void refusals(struct check *c, hone_device *cpu)
{
    struct cpu_dnnl_spec s = {.kind = CPU_DNNL_MATMUL};
    hone_err err = {0};
    void *state = c;
    if (!check_case(c, "what oneDNN refuses"))
        return;
    s.t[CPU_DNNL_X] = cpu_dnnl_plain(HONE_SHAPE(3, 4), false);
    s.t[CPU_DNNL_W] = cpu_dnnl_plain(HONE_SHAPE(5, 6), false); /* 4 is not 5 */
    s.t[CPU_DNNL_Y] = cpu_dnnl_plain(HONE_SHAPE(3, 6), false);
    CHECK(c, cpu_dnnl_create(cpu->dev, "layer", &s, 1, &state, &err) == HONE_E_DEVICE && !state);
    CHECK_MSG(c, strstr(err.text, "invalid_arguments") && !strcmp(err.where, "layer"), "%s: %s", err.where, err.text);
    CHECK(c, cpu_dnnl_scratch(&s, 1) > (size_t)1 << 40);
}
#endif

void suite_products(struct check *c)
{
    struct kit k;
    kit_open(&k, NULL);
    portable_equal_reference(c, k.cpu->dev);
    large_cases(c, k.cpu);
    two_at_once(c, k.cpu);
#ifdef _OPENMP
    threads_are_bounded(c, k.cpu);
#endif
    no_memory(c);
#ifdef HONE_DNNL
    refusals(c, k.cpu);
#endif
    check_case(c, "nothing leaks");
    kit_close(&k, c);
}
