/* Files of tensors: opening and reading. Each rule of the format is broken by one file. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "io/blob.h"

/* --- every rule --- */

#define I4             "{\"dtype\":\"I32\",\"shape\":[2,2],\"data_offsets\":[0,16]}"
#define ENTRY(d, s, o) "{\"a\":{\"dtype\":\"" d "\",\"shape\":[" s "],\"data_offsets\":[" o "]}}"
#define U64_MAX        "18446744073709551615"

static const struct rule {
    const char *name, *header;
    size_t n_data;
    hone_status code; /* HONE_OK: it must open */
    const char *text; /* in the message */
} rules[] = {
    {"good", "{\"a\":" I4 "}", 16, HONE_OK, ""},
    {"no tensors", "{}", 0, HONE_OK, ""},
    {"empty metadata", "{\"__metadata__\":{}}", 0, HONE_OK, ""},
    {"null metadata", "{\"__metadata__\":null}", 0, HONE_OK, ""},
    {"white space", "{ \"a\"\n:\t{\"dtype\" : \"U8\",\r\"shape\" : [ 2 , 1 ] , \"data_offsets\":[ 0 , 2 ] } } \n ", 2,
     HONE_OK, ""},
    {"fields in any order", "{\"a\":{\"data_offsets\":[0,4],\"shape\":[],\"dtype\":\"F32\"}}", 4, HONE_OK, ""},
    {"scalar", ENTRY("F64", "", "0,8"), 8, HONE_OK, ""},
    {"no elements", ENTRY("F64", "3,0,5", "0,0"), 0, HONE_OK, ""},
    {"no elements of a vast shape", ENTRY("F64", "0," U64_MAX, "0,0"), 0, HONE_OK, ""},
    {"empty name", "{\"\":" I4 "}", 16, HONE_OK, ""},
    {"equal offsets",
     "{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
     "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]},"
     "\"c\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
     1, HONE_OK, ""},
    {"sub-byte whole", ENTRY("F4", "2", "0,1"), 1, HONE_OK, ""},
    /* the JSON */
    {"empty header", "", 0, HONE_E_FORMAT, "begin with '{'"},
    {"leading space", " {}", 0, HONE_E_FORMAT, "begin with '{'"},
    {"not an object", "[]", 0, HONE_E_FORMAT, "wanted '{'; got '['"},
    {"bytes after", "{}x", 0, HONE_E_FORMAT, "not white space"},
    {"open object", "{\"a\":" I4, 16, HONE_E_FORMAT, "the header ends; wanted ',' or '}'"},
    {"open text", "{\"a", 0, HONE_E_FORMAT, "the header ends in the middle"},
    {"trailing comma", "{\"a\":" I4 ",}", 16, HONE_E_FORMAT, "wanted a text; got '}'"},
    {"no colon", "{\"a\"" I4 "}", 16, HONE_E_FORMAT, "wanted ':'; got '{'"},
    {"entry is a list", "{\"a\":[\"I32\",[2,2],[0,16]]}", 16, HONE_E_FORMAT, "tensor \"a\": wanted '{'; got '['"},
    {"name without quotes", "{a:" I4 "}", 16, HONE_E_FORMAT, "wanted a text; got 'a'"},
    {"not UTF-8", "{\"a\xFF\":" I4 "}", 16, HONE_E_FORMAT, "0xFF on are not UTF-8"},
    {"long form of UTF-8", "{\"\xC0\xAF\":" I4 "}", 16, HONE_E_FORMAT, "not UTF-8"},
    {"surrogate in UTF-8", "{\"\xED\xA0\x80\":" I4 "}", 16, HONE_E_FORMAT, "not UTF-8"},
    {"byte 0x80", "{\"\x80\":" I4 "}", 16, HONE_E_FORMAT, "not UTF-8"},
    {"UTF-8 outside of texts", "{}\xC3\xA9", 0, HONE_E_FORMAT, "not white space"},
    {"control character", "{\"a\x01\":" I4 "}", 16, HONE_E_FORMAT, "control character 0x01"},
    {"half a pair", "{\"\\ud83d\":" I4 "}", 16, HONE_E_FORMAT, "\\ud83d is half a character"},
    {"half a pair, another escape", "{\"\\ud83d\\u0041\":" I4 "}", 16, HONE_E_FORMAT, "\\ud83d is half"},
    {"second half first", "{\"\\ude00\":" I4 "}", 16, HONE_E_FORMAT, "\\ude00 is the second half"},
    {"bad escape", "{\"\\x41\":" I4 "}", 16, HONE_E_FORMAT, "an escape of JSON after '\\'; got 'x'"},
    {"bad digits", "{\"\\u00g0\":" I4 "}", 16, HONE_E_FORMAT, "four hexadecimal digits; got 'g'"},
    {"NUL in a name", "{\"a\\u0000b\":" I4 "}", 16, HONE_E_UNSUPPORTED, "NUL"},
    {"name twice", "{\"a\":" I4 ",\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[16,16]},\"\\u0061\":" I4 "}",
     16, HONE_E_FORMAT, "tensor \"a\" stands twice"},
    /* the entry */
    {"no dtype", "{\"a\":{\"shape\":[],\"data_offsets\":[0,4]}}", 4, HONE_E_FORMAT, "tensor \"a\": no dtype"},
    {"no shape", "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, HONE_E_FORMAT, "tensor \"a\": no shape"},
    {"no offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", 4, HONE_E_FORMAT, "tensor \"a\": no data_offsets"},
    {"no fields", "{\"a\":{}}", 0, HONE_E_FORMAT, "tensor \"a\": no dtype"},
    {"field twice", "{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"d\\u0074ype\":\"F32\",\"data_offsets\":[0,4]}}", 4,
     HONE_E_FORMAT, "tensor \"a\": field \"dtype\" twice"},
    {"unknown field", "{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"strides\":[],\"data_offsets\":[0,4]}}", 4,
     HONE_E_FORMAT, "tensor \"a\": unknown field \"strides\""},
    {"unknown dtype", ENTRY("C128", "0", "0,0"), 0, HONE_E_FORMAT, "tensor \"a\": the format has no dtype \"C128\""},
    {"dtype in small letters", ENTRY("f32", "0", "0,0"), 0, HONE_E_FORMAT, "no dtype \"f32\""},
    {"dtype of great length", ENTRY("F32_______________________________________________________", "0", "0,0"), 0,
     HONE_E_FORMAT, "no dtype \"F32_"},
    {"dtype is a number", "{\"a\":{\"dtype\":1}}", 0, HONE_E_FORMAT, "wanted a text; got '1'"},
    {"negative", ENTRY("U8", "-1", "0,1"), 1, HONE_E_FORMAT, "a whole number of at least 0; got '-'"},
    {"minus zero", ENTRY("U8", "1", "-0,1"), 1, HONE_E_FORMAT, "at least 0; got '-'"},
    {"fraction", ENTRY("U8", "1.0", "0,1"), 1, HONE_E_FORMAT, "fraction or an exponent"},
    {"exponent", ENTRY("U8", "1", "0,1e0"), 1, HONE_E_FORMAT, "fraction or an exponent"},
    {"leading zero", ENTRY("U8", "01", "0,1"), 1, HONE_E_FORMAT, "leading zero"},
    {"two zeros", ENTRY("U8", "1", "00,1"), 1, HONE_E_FORMAT, "leading zero"},
    {"2^64", ENTRY("U8", "0,18446744073709551616", "0,0"), 0, HONE_E_FORMAT, "2^64 or more"},
    {"20 digits and more", ENTRY("U8", "0,99999999999999999999999", "0,0"), 0, HONE_E_FORMAT, "2^64 or more"},
    {"dimension in quotes", ENTRY("U8", "\"1\"", "0,1"), 1, HONE_E_FORMAT, "at least 0; got '\"'"},
    {"dimension null", ENTRY("U8", "null", "0,1"), 1, HONE_E_FORMAT, "at least 0; got 'n'"},
    {"shape of shapes", ENTRY("U8", "[1]", "0,1"), 1, HONE_E_FORMAT, "at least 0; got '['"},
    {"comma in shape", ENTRY("U8", "1,", "0,1"), 1, HONE_E_FORMAT, "at least 0; got ']'"},
    {"one offset", ENTRY("U8", "1", "0"), 1, HONE_E_FORMAT, "wanted ','; got ']'"},
    {"three offsets", ENTRY("U8", "1", "0,1,1"), 1, HONE_E_FORMAT, "wanted ']'; got ','"},
    /* the sizes */
    {"offsets backwards", ENTRY("U8", "1", "4,3"), 1, HONE_E_FORMAT,
     "tensor \"a\": data_offsets run backwards, from 4 to 3"},
    {"elements overflow", ENTRY("U8", "4294967296,4294967296", "0,0"), 0, HONE_E_FORMAT, "overflows 64 bits"},
    {"elements overflow before a zero", ENTRY("U8", U64_MAX ",2,0", "0,0"), 0, HONE_E_FORMAT, "overflows 64 bits"},
    {"bits overflow", ENTRY("F64", "288230376151711744", "0,0"), 0, HONE_E_FORMAT, "tensor \"a\": its size in bits"},
    {"half a byte", ENTRY("F4", "3", "0,1"), 1, HONE_E_FORMAT, "3 elements of F4 are 12 bits"},
    {"six-bit type", ENTRY("F6_E2M3", "2", "0,1"), 1, HONE_E_FORMAT, "2 elements of F6_E2M3 are 12 bits"},
    {"size too small", ENTRY("I32", "2,2", "0,15"), 15, HONE_E_FORMAT,
     "tensor \"a\": 4 elements of I32 are 16 bytes, but data_offsets from 0 to 15 hold 15"},
    {"size too large", ENTRY("I32", "2,2", "0,17"), 17, HONE_E_FORMAT, "hold 17"},
    {"first not at 0", ENTRY("U8", "1", "1,2"), 2, HONE_E_FORMAT,
     "tensor \"a\": data_offsets begin at 1, but the first must be at 0: a hole"},
    {"hole",
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_"
     "offsets\":[2,3]}}",
     3, HONE_E_FORMAT, "tensor \"b\": data_offsets begin at 2, but the tensor before it ends at 1: a hole"},
    {"overlap",
     "{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]},\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_"
     "offsets\":[0,2]}}",
     3, HONE_E_FORMAT, "tensor \"b\": data_offsets begin at 1, but the tensor before it ends at 2: an overlap"},
    {"same place twice",
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_"
     "offsets\":[0,1]}}",
     1, HONE_E_FORMAT, "tensor \"b\": data_offsets begin at 0, but the tensor before it ends at 1: an overlap"},
    {"data missing", "{\"a\":" I4 "}", 15, HONE_E_FORMAT, "need 16 bytes of data; after the header there are 15"},
    {"data left", "{\"a\":" I4 "}", 18, HONE_E_FORMAT, "2 bytes after the last tensor"},
    {"data without tensors", "{}", 1, HONE_E_FORMAT, "1 bytes after the last tensor"},
    {"end near 2^64", ENTRY("U8", "18446744073709551608", "0,18446744073709551608"), 0, HONE_E_FORMAT, "overflows"},
    {"end at 2^61 - 1", ENTRY("U8", "2305843009213693951", "0,2305843009213693951"), 0, HONE_E_FORMAT,
     "need 2305843009213693951 bytes of data; after the header there are 0"},
    /* the metadata */
    {"metadata number", "{\"__metadata__\":{\"k\":1}}", 0, HONE_E_FORMAT,
     "key \"k\" of __metadata__: wanted a text; got '1'"},
    {"metadata object", "{\"__metadata__\":{\"k\":{}}}", 0, HONE_E_FORMAT, "key \"k\" of __metadata__: wanted a text"},
    {"metadata null value", "{\"__metadata__\":{\"k\":null}}", 0, HONE_E_FORMAT, "wanted a text; got 'n'"},
    {"metadata list", "{\"__metadata__\":[]}", 0, HONE_E_FORMAT, "__metadata__: wanted '{'; got '['"},
    {"metadata nul", "{\"__metadata__\":nul}", 0, HONE_E_FORMAT, "wanted null; got '}'"},
    {"metadata key twice", "{\"__metadata__\":{\"k\":\"1\",\"j\":\"\",\"k\":\"2\"}}", 0, HONE_E_FORMAT,
     "key \"k\" stands twice"},
    {"metadata twice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, HONE_E_FORMAT, "__metadata__: twice"},
    {"NUL in metadata", "{\"__metadata__\":{\"k\":\"\\u0000\"}}", 0, HONE_E_UNSUPPORTED, "NUL"},
};

static void check_rule(struct check *c, hone_ctx *ctx, struct blob b, hone_status code, const char *text)
{
    for (int in_file = 0; in_file < 2; in_file++) {
        hone_err e = {0};
        hone_tensors *t = in_file ? open_in_file(ctx, b, &e) : hone_tensors_from_memory(ctx, b.p, b.n, &e);
        CHECK_MSG(c, (t != NULL) == (code == HONE_OK), "(in file: %d) %s", in_file, e.text);
        CHECK_MSG(c, e.code == code && strstr(e.text, text), "(in file: %d) %s: %s; wanted %s", in_file,
                  hone_status_name(e.code), e.text, text);
        CHECK(c, t || strstr(e.where, in_file ? "/tmp/hone-tensors-" : "memory"));
        hone_tensors_close(t);
    }
    CHECK(c, hone_ctx_mem(ctx).live_bytes == 0);
    free(b.p);
}

static void every_rule(struct check *c, hone_ctx *ctx)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (check_case(c, "rule: %s", rules[i].name))
            check_rule(c, ctx, make(rules[i].header, rules[i].n_data), rules[i].code, rules[i].text);
    if (check_case(c, "rule: fewer than 8 bytes")) {
        check_rule(c, ctx, (struct blob){calloc(1, 8), 7}, HONE_E_FORMAT, "has 7 bytes");
        check_rule(c, ctx, (struct blob){calloc(1, 8), 0}, HONE_E_FORMAT, "has 0 bytes");
    }
    if (check_case(c, "rule: length of the header")) {
        check_rule(c, ctx, make_n(100000001, "{}", 2, 0), HONE_E_FORMAT,
                   "header of 100000001 bytes; the format allows");
        check_rule(c, ctx, make_n(UINT64_MAX, "{}", 2, 0), HONE_E_FORMAT, "header of 18446744073709551615 bytes");
        check_rule(c, ctx, make_n(100000000, "{}", 2, 0), HONE_E_FORMAT,
                   "claims a header of 100000000 bytes, and has 2");
        check_rule(c, ctx, make_n(3, "{}", 2, 0), HONE_E_FORMAT, "claims a header of 3 bytes, and has 2");
    }
    if (check_case(c, "rule: NUL is no padding"))
        check_rule(c, ctx, make_n(3, "{}", 3, 0), HONE_E_FORMAT, "not white space");
}

/* --- reading --- */

static void golden(struct check *c, hone_ctx *ctx)
{
    if (check_case(c, "the smallest file")) {
        struct blob b = make("{\"test\":" I4 "}", 16);
        hone_err e = {0};
        memset(b.p + 68, 0, 16);
        CHECK(c, b.n == 84 && b.p[0] == 0x3C);
        hone_tensors *t = hone_tensors_from_memory(ctx, b.p, b.n, &e);
        int32_t v[4] = {1, 1, 1, 1};
        if (CHECK(c, t && hone_tensors_count(t) == 1)) {
            hone_tensor_info i = hone_tensors_at(t, 0);
            CHECK(c, !strcmp(i.name, "test") && !strcmp(i.file_dtype, "I32") && i.type.dtype == HONE_I32);
            CHECK(c, hone_shape_equal(&i.type.shape, &HONE_SHAPE(2, 2)) && i.rank == 2);
            CHECK(c, i.bytes == 16 && i.offset == 68);
            CHECK(c, hone_tensors_read(t, 0, v, sizeof v, &e) == HONE_OK && !v[0] && !v[1] && !v[2] && !v[3]);
            CHECK(c, hone_tensors_at(t, 1).name == NULL);
        }
        hone_tensors_close(t);
        free(b.p);
    }
    if (check_case(c, "a file that another program wrote")) {
        hone_err e = {0};
        hone_tensors *t = hone_tensors_open(ctx, "test/golden/python.safetensors", &e);
        float w[6], d[2], b[3], h[3];
        int64_t i = 0;
        if (CHECK_MSG(c, t && hone_tensors_count(t) == 10, "%s: %s", e.where, e.text)) {
            const char *m = hone_tensors_metadata(t, "format");
            CHECK(c, m && !strcmp(m, "pt \xC3\xA9\t\"q\"") && hone_tensors_metadata_count(t) == 1);
            CHECK(c, !strcmp(hone_tensors_metadata_key(t, 0), "format") && hone_tensors_metadata_value(t, 0) == m);
            CHECK(c, !hone_tensors_metadata_key(t, 1) && !hone_tensors_metadata(t, "forma"));
            CHECK(c, hone_tensors_find(t, "Gr\xC3\xBCn \xE6\x8B\xBF \xF0\x9F\x98\x80", &e) == 8);
            CHECK(c, hone_tensors_find(t, "\xC3\xA9m\"\\\n", &e) == 9 && hone_tensors_find(t, "A\1s", &e) == 7);
            CHECK(c, hone_tensors_read_f32(t, 2, w, 6, &e) == HONE_OK);
            CHECK(c, w[0] == 0 && w[1] == 1 && w[2] == -2 && w[3] == 3.5f && w[4] == 1e-3f && w[5] == 6e7f);
            CHECK(c, hone_tensors_read_f32(t, 1, d, 2, &e) == HONE_OK && d[0] == 1.0f / 3 && d[1] == -2.5f);
            CHECK(c, hone_tensors_read_f32(t, 5, b, 3, &e) == HONE_OK && b[0] == 1 && b[1] == -3 && isinf(b[2]));
            CHECK(c, hone_tensors_read_f32(t, 6, h, 3, &e) == HONE_OK && h[0] == 1.5f && h[1] == -65504);
            CHECK(c, h[2] == 0x1p-24f);
            CHECK(c, hone_tensors_read(t, 0, &i, 8, &e) == HONE_OK && i == -5);
            CHECK(c, hone_tensors_read_f32(t, 3, NULL, 0, &e) == HONE_OK);
        }
        hone_tensors_close(t);
    }
}

static void lookup(struct check *c, hone_ctx *ctx)
{
    if (!check_case(c, "find by name, and the hint"))
        return;
    struct blob b = make("{\"unet.bias\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
                         "\"unet.weight\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
                         2);
    hone_err e = {0};
    hone_tensors *t = hone_tensors_from_memory(ctx, b.p, b.n, &e);
    if (!CHECK(c, t != NULL))
        return;
    CHECK(c, hone_tensors_find(t, "unet.weight", &e) == 0 && hone_tensors_find(t, "unet.bias", &e) == 1);
    CHECK(c, hone_tensors_find(t, "nothing", NULL) == -1);
    CHECK(c, e.code == HONE_OK && hone_tensors_find(t, "unet.wieght", &e) == -1 && e.code == HONE_E_ARG);
    CHECK_MSG(c, !strcmp(e.text, "no tensor \"unet.wieght\" among its 2; did you mean \"unet.weight\"?"), "%s", e.text);
    CHECK(c, hone_tensors_find(t, "unet.bias", &e) == -1); /* the error stays */
    hone_tensors_close(t);
    free(b.p);
}

static void check_refused(struct check *c, hone_ctx *ctx, const char *header, size_t n_data, bool f32, size_t n,
                          hone_status code, const char *text)
{
    struct blob b = make(header, n_data);
    hone_err e = {0};
    unsigned char out[64];
    float f[16];
    hone_tensors *t = hone_tensors_from_memory(ctx, b.p, b.n, &e);
    if (CHECK_MSG(c, t != NULL, "%s", e.text)) {
        hone_status s = f32 ? hone_tensors_read_f32(t, 0, f, n, &e) : hone_tensors_read(t, 0, out, n, &e);
        CHECK_MSG(c, s == code && e.code == code && strstr(e.text, text), "%s; wanted %s", e.text, text);
        CHECK(c, hone_tensors_read(t, 0, out, n, &e) == code); /* the error stays */
    }
    hone_tensors_close(t);
    free(b.p);
}

/* What the format allows and hone cannot hold is listed, and refused when read. */
static void unsupported(struct check *c, hone_ctx *ctx)
{
    static const struct {
        const char *name;
        int bits;
        hone_dtype held;
    } types[] = {{"BOOL", 8, HONE_BOOL},          {"U8", 8, HONE_U8},          {"I8", 8, HONE_I8},
                 {"F8_E5M2", 8, HONE_DTYPES},     {"F8_E4M3", 8, HONE_DTYPES}, {"F8_E8M0", 8, HONE_DTYPES},
                 {"F8_E4M3FNUZ", 8, HONE_DTYPES}, {"F4", 4, HONE_DTYPES},      {"F6_E2M3", 6, HONE_DTYPES},
                 {"F8_E5M2FNUZ", 8, HONE_DTYPES}, {"F16", 16, HONE_F16},       {"F6_E3M2", 6, HONE_DTYPES},
                 {"I16", 16, HONE_DTYPES},        {"U16", 16, HONE_DTYPES},    {"BF16", 16, HONE_BF16},
                 {"I32", 32, HONE_I32},           {"U32", 32, HONE_DTYPES},    {"F32", 32, HONE_F32},
                 {"C64", 64, HONE_DTYPES},        {"F64", 64, HONE_F64},       {"I64", 64, HONE_I64},
                 {"U64", 64, HONE_DTYPES}};
    char header[160], text[64];
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (!check_case(c, "dtype %s", types[i].name))
            continue;
        const int bytes = 4 * types[i].bits / 8;
        snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"%s\",\"shape\":[4],\"data_offsets\":[0,%d]}}",
                 types[i].name, bytes);
        struct blob b = make(header, (size_t)bytes);
        hone_tensors *t = hone_tensors_from_memory(ctx, b.p, b.n, NULL);
        if (CHECK(c, t != NULL)) {
            hone_tensor_info info = hone_tensors_at(t, 0);
            CHECK(c, !strcmp(info.file_dtype, types[i].name) && info.type.dtype == types[i].held);
            CHECK(c, info.bytes == (uint64_t)bytes && info.type.shape.rank == 1 && info.type.shape.dim[0] == 4);
        }
        hone_tensors_close(t);
        free(b.p);
        const bool held = types[i].held != HONE_DTYPES;
        snprintf(text, sizeof text, "of dtype %s, which hone cannot hold", types[i].name);
        check_refused(c, ctx, header, (size_t)bytes, false, (size_t)bytes, held ? HONE_OK : HONE_E_UNSUPPORTED,
                      held ? "" : text);
    }
    if (check_case(c, "rank and dimensions beyond hone's")) {
        check_refused(c, ctx, ENTRY("U8", "1,1,1,1,1,1,1,1", "0,1"), 1, false, 1, HONE_OK, "");
        check_refused(c, ctx, ENTRY("U8", "1,1,1,1,1,1,1,1,1", "0,1"), 1, false, 1, HONE_E_UNSUPPORTED,
                      "tensor \"a\" has 9 dimensions; hone holds 8");
        check_refused(c, ctx, ENTRY("U8", "0,9223372036854775807", "0,0"), 0, false, 0, HONE_OK, "");
        check_refused(c, ctx, ENTRY("U8", "0,9223372036854775808", "0,0"), 0, false, 0, HONE_E_UNSUPPORTED,
                      "dimension above 2^63 - 1");
    }
    if (check_case(c, "every dimension is kept")) {
        struct blob b = make(ENTRY("U8", "1,2,1,3,1,1,4,5", "0,120"), 120);
        hone_tensors *t = hone_tensors_from_memory(ctx, b.p, b.n, NULL);
        hone_tensor_info info = {0};
        if (CHECK(c, t != NULL))
            info = hone_tensors_at(t, 0);
        CHECK(c, hone_shape_equal(&info.type.shape, &HONE_SHAPE(1, 2, 1, 3, 1, 1, 4, 5)));
        hone_tensors_close(t);
        free(b.p);
    }
    if (check_case(c, "refused reads")) {
        check_refused(c, ctx, ENTRY("F32", "2", "0,8"), 8, false, 9, HONE_E_SHAPE, "has 8 bytes; there is room for 9");
        check_refused(c, ctx, ENTRY("F32", "2", "0,8"), 8, true, 3, HONE_E_SHAPE, "2 elements; there is room for 3");
        check_refused(c, ctx, ENTRY("I32", "2", "0,8"), 8, true, 2, HONE_E_SHAPE, "dtype I32; wanted F32, F16, BF16");
        check_refused(c, ctx, "{}", 0, false, 0, HONE_E_ARG, "wanted tensor 0; it has 0");
        struct blob b = make(ENTRY("BOOL", "3", "0,3"), 3);
        unsigned char out[3];
        hone_err e = {0};
        b.p[b.n - 1] = 2;
        hone_tensors *t = hone_tensors_from_memory(ctx, b.p, b.n, &e);
        CHECK(c, hone_tensors_read(t, 0, out, 3, &e) == HONE_E_FORMAT && strstr(e.text, "element 2: a bool of 2"));
        hone_tensors_close(t);
        free(b.p);
    }
}

/* Opens `n` elements of `dtype` at an odd address inside an odd-sized file and reads them as floats. */
static hone_status as_f32(hone_ctx *ctx, const char *dtype, const void *data, size_t n, size_t size, float *out,
                          hone_err *err)
{
    char header[160];
    snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"%s\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", dtype, n,
             n * size);
    if (strlen(header) % 2 == 0)
        strcat(header, " ");
    struct blob b = make(header, n * size);
    memcpy(b.p + b.n - n * size, data, n * size);
    hone_tensors *t = hone_tensors_from_memory(ctx, b.p, b.n, err);
    hone_status s = t ? hone_tensors_read_f32(t, 0, out, n, err) : HONE_E_STATE;
    hone_tensors_close(t);
    free(b.p);
    return s;
}

static void conversion(struct check *c, hone_ctx *ctx)
{
    static uint16_t half[65536];
    static float out[65536];
    hone_err e = {0};
    for (unsigned i = 0; i < 65536; i++)
        half[i] = (uint16_t)i;
    if (check_case(c, "every F16")) {
        CHECK(c, as_f32(ctx, "F16", half, 65536, 2, out, &e) == HONE_OK);
        for (unsigned i = 0; i < 65536; i++) {
            const int exponent = i >> 10 & 31, fraction = i & 1023;
            double want = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
            want = exponent == 31 ? (fraction ? NAN : INFINITY) : want;
            CHECK_MSG(c, isnan(want) ? isnan(out[i]) : out[i] == (i & 0x8000 ? -want : want), "%04x: %g", i, out[i]);
            CHECK(c, !signbit(out[i]) == !(i & 0x8000));
        }
    }
    if (check_case(c, "every BF16")) {
        CHECK(c, as_f32(ctx, "BF16", half, 65536, 2, out, &e) == HONE_OK);
        for (unsigned i = 0; i < 65536; i++) {
            uint32_t bits;
            memcpy(&bits, &out[i], 4);
            CHECK(c, bits == i << 16);
        }
    }
    if (check_case(c, "F64")) {
        const double d[] = {1.0 / 3, 1e-60, -INFINITY, FLT_MAX, 0x1.fffffefffffffp127, -0.0};
        CHECK(c, as_f32(ctx, "F64", d, 6, 8, out, &e) == HONE_OK);
        CHECK(c, out[0] == 1.0f / 3 && out[1] == 0 && isinf(out[2]) && out[3] == FLT_MAX && out[4] == FLT_MAX);
        CHECK(c, out[5] == 0 && signbit(out[5]));
        CHECK(c, as_f32(ctx, "F64", (double[]){NAN}, 1, 8, out, &e) == HONE_OK && isnan(out[0]));
        CHECK(c, as_f32(ctx, "F64", (double[]){0, -0x1.ffffffp127}, 2, 8, out, &e) == HONE_E_NONFINITE);
        CHECK_MSG(c, strstr(e.text, "tensor \"a\", element 1: an F64 beyond"), "%s", e.text);
    }
}

/* --- files of the world --- */

static void files(struct check *c, hone_ctx *ctx)
{
    if (check_case(c, "no such file, a folder, a pipe")) {
        hone_err e = {0};
        CHECK(c, !hone_tensors_open(ctx, "/nowhere/x.safetensors", &e) && e.code == HONE_E_IO);
        CHECK(c, strstr(e.where, "x.safetensors") && strstr(e.text, "cannot open: No such file"));
        CHECK(c, !hone_tensors_open(ctx, "/tmp", &e)); /* the error stays */
        CHECK(c, strstr(e.text, "No such file"));
        e = (hone_err){0};
        CHECK(c, !hone_tensors_open(ctx, "/tmp", &e) && e.code == HONE_E_IO && strstr(e.text, "is a folder"));
        e = (hone_err){0};
        char path[] = "/tmp/hone-tensors-XXXXXX";
        close(mkstemp(path));
        unlink(path);
        CHECK(c, mkfifo(path, 0600) == 0); /* nobody writes to it: a plain open would wait for ever */
        CHECK(c, !hone_tensors_open(ctx, path, &e) && strstr(e.text, "is a pipe, socket or device; wanted a regular"));
        unlink(path);
    }
    if (check_case(c, "a long path keeps its end")) {
        hone_err e = {0};
        CHECK(c, !hone_tensors_open(ctx,
                                    "/nowhere/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx/"
                                    "yyyyyyyyyyyyyyyyyyyyyyyy/model.safetensors",
                                    &e));
        CHECK_MSG(c, !strncmp(e.where, "...x", 4) && strstr(e.where, "/model.safetensors"), "%s", e.where);
    }
    if (check_case(c, "a file cut short while it is open")) {
        char path[] = "/tmp/hone-tensors-XXXXXX";
        struct blob b = make(ENTRY("F16", "5000", "0,10000"), 10000);
        static float out[5000];
        hone_err e = {0};
        int fd = mkstemp(path);
        CHECK(c, write(fd, b.p, b.n) == (ssize_t)b.n);
        hone_tensors *t = hone_tensors_open(ctx, path, &e);
        CHECK(c, hone_tensors_read_f32(t, 0, out, 5000, &e) == HONE_OK && out[4999] == 0x1p-16f);
        CHECK(c, ftruncate(fd, 5000) == 0);
        CHECK(c, hone_tensors_read_f32(t, 0, out, 5000, &e) == HONE_E_IO);
        CHECK_MSG(c, strstr(e.text, "something cut it short") && strstr(e.where, path), "%s", e.text);
        e = (hone_err){0};
        CHECK(c, hone_tensors_read(t, 0, out, 10000, &e) == HONE_E_IO); /* the first call gives a part of it */
        CHECK_MSG(c, strstr(e.text, "byte 5000 but had 100"), "%s", e.text);
        hone_tensors_close(t);
        close(fd);
        unlink(path);
        free(b.p);
    }
}

void suite_safetensors(struct check *c)
{
    hone_ctx *ctx = hone_ctx_create(NULL, NULL);
    every_rule(c, ctx);
    golden(c, ctx);
    lookup(c, ctx);
    unsupported(c, ctx);
    conversion(c, ctx);
    files(c, ctx);
    hone_ctx_destroy(ctx);
}
