/* Files of tensors: writing them, whole or not at all. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"
#include "io/blob.h"

/* A folder of the test's own, and a path in it. */
struct folder {
    char name[64], path[128];
};

static struct folder folder_make(void)
{
    struct folder f = {"/tmp/hone-write-XXXXXX", ""};
    if (mkdtemp(f.name))
        snprintf(f.path, sizeof f.path, "%s/t.safetensors", f.name);
    return f;
}

static int folder_count(const struct folder *f)
{
    int n = -2; /* . and .. */
    DIR *d = opendir(f->name);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static void folder_drop(const struct folder *f)
{
    DIR *d = opendir(f->name);
    char path[512];
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", f->name, e->d_name);
        unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(f->name);
}

/* The whole of a small file. */
static struct blob slurp(const char *path)
{
    struct blob b = {calloc(1, 65536), 0};
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, b.p, 65536);
    b.n = n > 0 ? (size_t)n : 0;
    if (fd >= 0)
        close(fd);
    return b;
}

static bool same(const char *path, struct blob want)
{
    struct blob b = slurp(path);
    const bool equal = b.n == want.n && !memcmp(b.p, want.p, b.n);
    free(b.p);
    return equal;
}

/* --- what is written --- */

static const float w[] = {0, 1, -2, 3.5f, 1e-3f, 6e7f};
static const double d[] = {1.0 / 3, -2.5};
static const int64_t i64 = -5;
static const int32_t i32[] = {-1, INT32_MAX};
static const uint16_t bf[] = {0x3F80, 0xC040, 0x7F80}, half[] = {0x3E00, 0xFBFF, 0x0001};
static const uint8_t u8[] = {1, 2, 3, 255}, mask[] = {1, 0, 1};
static const int8_t i8 = -128;

#define TYPE(t, ...)                                                                                                   \
    {                                                                                                                  \
        t, HONE_SHAPE(__VA_ARGS__)                                                                                     \
    }
/* In no order at all. */
#define SOURCES                                                                                                        \
    {                                                                                                                  \
        {"h", TYPE(HONE_F16, 3), half}, {"empty", TYPE(HONE_F32, 0, 4), NULL},                                         \
            {"\xC3\xA9m\"\\\n", TYPE(HONE_BOOL, 3), mask}, {"b.d", TYPE(HONE_F64, 2), d},                              \
            {"a.w", TYPE(HONE_F32, 2, 3), w}, {"A\1s", TYPE(HONE_I8, 1), &i8}, {"b", TYPE(HONE_BF16, 3), bf},          \
            {"n", TYPE(HONE_I32, 2), i32}, {"Gr\xC3\xBCn \xE6\x8B\xBF \xF0\x9F\x98\x80", TYPE(HONE_U8, 2, 1, 2), u8},  \
        {                                                                                                              \
            "a.i", {HONE_I64, HONE_SCALAR}, &i64                                                                       \
        }                                                                                                              \
    }
#define N_SOURCES 10

static void contents(struct check *c, hone_ctx *ctx)
{
    const hone_tensor_source s[] = SOURCES;
    const hone_metadata m[] = {{"format", "pt \xC3\xA9\t\"q\""}};
    struct folder f = folder_make();
    hone_err e = {0};
    if (check_case(c, "byte for byte what another program writes")) {
        struct blob golden = slurp("test/golden/python.safetensors");
        CHECK(c, golden.n == 724);
        CHECK_MSG(c, hone_tensors_write(ctx, f.path, s, N_SOURCES, m, 1, &e) == HONE_OK, "%s: %s", e.where, e.text);
        CHECK(c, same(f.path, golden) && folder_count(&f) == 1);
        free(golden.p);
    }
    if (check_case(c, "nothing at all")) {
        struct blob empty = make("{}      ", 0);
        CHECK(c, hone_tensors_write(ctx, f.path, NULL, 0, NULL, 0, &e) == HONE_OK && same(f.path, empty));
        free(empty.p);
    }
    if (check_case(c, "metadata alone, sorted and escaped")) {
        const hone_metadata three[] = {{"b", ""}, {"", "\x7F/"}, {"a\x1F", "\b\f\r\xC2\x80"}};
        struct blob want =
            make("{\"__metadata__\":{\"\":\"\x7F/\",\"a\\u001f\":\"\\b\\f\\r\xC2\x80\",\"b\":\"\"}}  ", 0);
        CHECK(c, hone_tensors_write(ctx, f.path, NULL, 0, three, 3, &e) == HONE_OK && same(f.path, want));
        CHECK(c, want.n % 8 == 0);
        hone_tensors *t = hone_tensors_open(ctx, f.path, &e);
        CHECK(c, t && hone_tensors_metadata_count(t) == 3 && !strcmp(hone_tensors_metadata(t, "b"), ""));
        CHECK(c, t && !strcmp(hone_tensors_metadata(t, "a\x1F"), "\b\f\r\xC2\x80"));
        hone_tensors_close(t);
        free(want.p);
    }
    CHECK(c, hone_ctx_mem(ctx).live_bytes == 0);
    folder_drop(&f);
}

static void round_trip(struct check *c, hone_ctx *ctx)
{
    if (!check_case(c, "round trip, with data larger than the buffers"))
        return;
    const hone_tensor_source s[] = SOURCES;
    enum { BIG = 100003 };
    float *big = malloc(BIG * sizeof *big), *back = malloc(BIG * sizeof *back);
    hone_tensor_source all[N_SOURCES + 1];
    struct folder f = folder_make();
    hone_err e = {0};
    char room[64];
    for (int i = 0; i < BIG; i++)
        big[i] = (float)i * 0.37f;
    memcpy(all, s, sizeof s);
    all[N_SOURCES] = (hone_tensor_source){"big", TYPE(HONE_F32, BIG), big};
    CHECK(c, hone_tensors_write(ctx, f.path, all, N_SOURCES + 1, NULL, 0, &e) == HONE_OK);
    hone_tensors *t = hone_tensors_open(ctx, f.path, &e);
    if (CHECK_MSG(c, t && hone_tensors_count(t) == N_SOURCES + 1, "%s", e.text)) {
        for (int k = 0; k < N_SOURCES; k++) {
            const int64_t at = hone_tensors_find(t, all[k].name, &e);
            hone_tensor_info info = hone_tensors_at(t, (size_t)at);
            CHECK(c, info.type.dtype == all[k].type.dtype && hone_shape_equal(&info.type.shape, &all[k].type.shape));
            CHECK(c, info.offset % hone_dtype_size(info.type.dtype) == 0);
            CHECK(c, hone_tensors_read(t, (size_t)at, room, (size_t)info.bytes, &e) == HONE_OK);
            CHECK(c, info.bytes == 0 || !memcmp(room, all[k].data, (size_t)info.bytes));
        }
        CHECK(c, hone_tensors_read_f32(t, (size_t)hone_tensors_find(t, "big", &e), back, BIG, &e) == HONE_OK);
        CHECK(c, !memcmp(big, back, BIG * sizeof *big));
    }
    hone_tensors_close(t);
    folder_drop(&f);
    free(big);
    free(back);
}

/* --- what is refused --- */

static void refused(struct check *c, hone_ctx *ctx)
{
    static char long_name[HONE_TENSOR_NAME_MAX + 2];
    memset(long_name, 'x', HONE_TENSOR_NAME_MAX + 1);
    const float one[1] = {0};
    const uint8_t two = 2;
    const struct {
        const char *name;
        hone_tensor_source s;
        hone_status code;
        const char *text;
    } bad[] = {
        {"no name", {NULL, TYPE(HONE_F32, 1), one}, HONE_E_ARG, "without a name"},
        {"not UTF-8", {"a\xFF", TYPE(HONE_F32, 1), one}, HONE_E_ARG, "not UTF-8 from byte 1 on"},
        {"long name", {long_name, TYPE(HONE_F32, 1), one}, HONE_E_ARG, "a name of 4097 bytes; at most 4096"},
        {"reserved name", {"__metadata__", TYPE(HONE_F32, 1), one}, HONE_E_ARG, "cannot be called"},
        {"no data", {"a", TYPE(HONE_F32, 1), NULL}, HONE_E_ARG, "tensor \"a\": no data"},
        {"no type", {"a", TYPE(HONE_DTYPES, 1), one}, HONE_E_SHAPE, "is no element type"},
        {"negative type", {"a", TYPE((hone_dtype)-1, 1), one}, HONE_E_SHAPE, "is no element type"},
        {"negative dimension", {"a", TYPE(HONE_F32, -1), one}, HONE_E_SHAPE, "bad shape"},
        {"no rank", {"a", {HONE_F32, {.rank = -1}}, one}, HONE_E_SHAPE, "rank -1; wanted 0 to 8"},
        {"rank 9", {"a", {HONE_F32, {.rank = 9}}, one}, HONE_E_SHAPE, "rank 9"},
        {"vast", {"a", TYPE(HONE_F64, INT64_MAX, 1), one}, HONE_E_SHAPE, "bad shape"},
        {"bad bool", {"a", TYPE(HONE_BOOL, 1), &two}, HONE_E_FORMAT, "element 0: a bool of 2"},
        {"same name", {"a.w", TYPE(HONE_F32, 1), one}, HONE_E_ARG, "two tensors are called \"a.w\""},
    };
    struct folder f = folder_make();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (check_case(c, "refused: %s", bad[i].name)) {
            const hone_tensor_source s[] = {{"a.w", TYPE(HONE_F32, 1), one}, bad[i].s};
            hone_err e = {0};
            CHECK(c, hone_tensors_write(ctx, f.path, s, 2, NULL, 0, &e) == bad[i].code);
            CHECK_MSG(c, e.code == bad[i].code && strstr(e.text, bad[i].text), "%s", e.text);
            CHECK(c, folder_count(&f) == 0 && hone_ctx_mem(ctx).live_bytes == 0);
        }
    if (check_case(c, "refused: metadata")) {
        const hone_metadata m[][2] = {
            {{"a", "1"}, {"a", "2"}}, {{"a", "1"}, {"b", NULL}}, {{"a", "\xFF"}, {"b", ""}}, {{NULL, ""}, {"b", ""}}};
        static const char *const text[] = {"two metadata have the key \"a\"", "\"b\": the value is missing",
                                           "\"a\": the value is not UTF-8", "metadata without a name"};
        for (int i = 0; i < 4; i++) {
            hone_err e = {0};
            CHECK(c, hone_tensors_write(ctx, f.path, NULL, 0, m[i], 2, &e) == HONE_E_ARG);
            CHECK_MSG(c, strstr(e.text, text[i]), "%s", e.text);
        }
        CHECK(c, folder_count(&f) == 0);
    }
    if (check_case(c, "refused: paths")) {
        /* relative to the folder; nothing here may name a thing that the test does not own */
        static const struct {
            const char *leaf, *text;
            hone_status code;
        } p[] = {{"", "wanted the path of a file", HONE_E_ARG},
                 {"..", "wanted the path of a file", HONE_E_ARG},
                 {"folder", "not a regular file", HONE_E_ARG},
                 {"pipe", "not a regular file", HONE_E_ARG},
                 {"no/such", "cannot open its folder: No such file", HONE_E_IO}};
        char path[160];
        snprintf(path, sizeof path, "%s/pipe", f.name);
        CHECK(c, mkfifo(path, 0600) == 0);
        snprintf(path, sizeof path, "%s/folder", f.name);
        CHECK(c, mkdir(path, 0700) == 0);
        for (size_t i = 0; i < sizeof p / sizeof p[0]; i++) {
            hone_err e = {0};
            snprintf(path, sizeof path, "%s/%s", f.name, p[i].leaf);
            CHECK(c, hone_tensors_write(ctx, path, NULL, 0, NULL, 0, &e) == p[i].code);
            CHECK_MSG(c, strstr(e.text, p[i].text), "%s", e.text);
        }
        CHECK(c, folder_count(&f) == 2);
        CHECK(c, hone_tensors_write(ctx, "", NULL, 0, NULL, 0, NULL) == HONE_E_ARG);
        snprintf(path, sizeof path, "%s/folder", f.name);
        rmdir(path);
    }
    folder_drop(&f);
}

/* --- failures --- */

static void replace(struct check *c, hone_ctx *ctx)
{
    struct folder f = folder_make();
    char link[160];
    struct stat st;
    hone_err e = {0};
    if (check_case(c, "an old file keeps its permissions, a link is replaced")) {
        CHECK(c, hone_tensors_write(ctx, f.path, NULL, 0, NULL, 0, &e) == HONE_OK);
        CHECK(c, chmod(f.path, 0640) == 0);
        CHECK(c, hone_tensors_write(ctx, f.path, NULL, 0, &(hone_metadata){"k", "v"}, 1, &e) == HONE_OK);
        CHECK(c, stat(f.path, &st) == 0 && (st.st_mode & 0777) == 0640 && folder_count(&f) == 1);
        snprintf(link, sizeof link, "%s/link", f.name);
        CHECK(c, symlink("t.safetensors", link) == 0);
        CHECK(c, hone_tensors_write(ctx, link, NULL, 0, NULL, 0, &e) == HONE_OK);
        CHECK(c, lstat(link, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 16);
        CHECK(c, stat(f.path, &st) == 0 && st.st_size > 16);
    }
    if (check_case(c, "an open file outlives its replacement")) {
        CHECK(c, hone_tensors_write(ctx, f.path, &(hone_tensor_source){"a", TYPE(HONE_F32, 6), w}, 1, NULL, 0, &e) ==
                     HONE_OK);
        hone_tensors *t = hone_tensors_open(ctx, f.path, &e);
        CHECK(c, hone_tensors_write(ctx, f.path, NULL, 0, NULL, 0, &e) == HONE_OK);
        float back[6] = {0};
        CHECK(c, t && hone_tensors_read_f32(t, 0, back, 6, &e) == HONE_OK && !memcmp(w, back, sizeof w));
        hone_tensors_close(t);
    }
    folder_drop(&f);
}

#define DISK 200000 /* bytes of data that do not fit under the limits below */

/* With files limited to `limit` bytes (as on a full disk); the file's path is f->path. */
static hone_status write_limited(hone_ctx *ctx, const struct folder *f, rlim_t limit, hone_err *err)
{
    static uint8_t data[DISK];
    struct rlimit old, new;
    getrlimit(RLIMIT_FSIZE, &old);
    new = old;
    new.rlim_cur = limit;
    setrlimit(RLIMIT_FSIZE, &new);
    hone_status s =
        hone_tensors_write(ctx, f->path, &(hone_tensor_source){"a", TYPE(HONE_U8, DISK), data}, 1, NULL, 0, err);
    setrlimit(RLIMIT_FSIZE, &old);
    return s;
}

static void failures(struct check *c, hone_ctx *ctx)
{
    struct blob before = make("{}      ", 0);
    if (check_case(c, "a full disk leaves the old file")) {
        struct folder f = folder_make();
        struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
        sigaction(SIGXFSZ, &ignore, &old);
        CHECK(c, hone_tensors_write(ctx, f.path, NULL, 0, NULL, 0, NULL) == HONE_OK);
        for (rlim_t limit = 0; limit < DISK; limit += 50000) {
            hone_err e = {0};
            CHECK(c, write_limited(ctx, &f, limit, &e) == HONE_E_IO);
            CHECK_MSG(c, strstr(e.text, "cannot write after byte") && strstr(e.text, "too large"), "%s", e.text);
            CHECK(c, same(f.path, before) && folder_count(&f) == 1 && hone_ctx_mem(ctx).live_bytes == 0);
            CHECK(c, write_limited(ctx, &f, limit, NULL) == HONE_E_IO);
        }
        sigaction(SIGXFSZ, &old, NULL);
        folder_drop(&f);
    }
    if (check_case(c, "a killed writer leaves the old file")) {
        struct folder f = folder_make();
        CHECK(c, hone_tensors_write(ctx, f.path, NULL, 0, NULL, 0, NULL) == HONE_OK);
        pid_t child = fork();
        if (child == 0) { /* dies of SIGXFSZ in the middle of its data */
            struct rlimit none = {0, 0};
            setrlimit(RLIMIT_CORE, &none);
            write_limited(ctx, &f, 100000, NULL);
            _exit(0);
        }
        int status = 0;
        CHECK(c, waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        CHECK(c, same(f.path, before) && folder_count(&f) == 2); /* the temporary file stays behind */
        CHECK(c, hone_tensors_write(ctx, f.path, NULL, 0, NULL, 0, NULL) == HONE_OK);
        folder_drop(&f);
    }
    if (check_case(c, "every allocation fails once")) {
        const hone_tensor_source s[] = SOURCES;
        struct folder f = folder_make();
        struct failing fail = {0};
        const hone_allocator a = {fail_alloc, fail_release, &fail};
        hone_ctx *weak = hone_ctx_create(&(hone_ctx_options){.allocator = &a}, NULL);
        CHECK(c, hone_tensors_write(ctx, f.path, NULL, 0, NULL, 0, NULL) == HONE_OK);
        hone_status st = HONE_E_NOMEM;
        long n = 0;
        while (st == HONE_E_NOMEM && n < 100) {
            hone_err e = {0};
            CHECK(c, same(f.path, before) && folder_count(&f) == 1 && fail.live == 1);
            fail.calls = 0;
            fail.fail_at = ++n;
            st = hone_tensors_write(weak, f.path, s, N_SOURCES, &(hone_metadata){"k", "v"}, 1, &e);
            CHECK(c, e.code == st);
        }
        CHECK_MSG(c, st == HONE_OK && n > 5 && n < 20 && fail.live == 1, "%ld", n);
        hone_ctx_destroy(weak);
        folder_drop(&f);
    }
    free(before.p);
}

void suite_safetensors_write(struct check *c)
{
    hone_ctx *ctx = hone_ctx_create(NULL, NULL);
    contents(c, ctx);
    round_trip(c, ctx);
    refused(c, ctx);
    replace(c, ctx);
    failures(c, ctx);
    hone_ctx_destroy(ctx);
}
