/* Attention as one operator. Its mask says the opposite of ours: 1 means that a key is left out. It comes in four
 * shapes only, so whatever else broadcasts is stretched by a copy. A row in which all is left out gives zeros with
 * innerPrecise 2 and garbage without. */
#include "backend/record/record.h"
#include "op/attention.h"

enum { MOST_HEADS = 256, MOST_D = 768, MOST_TOKENS = 1000000, MOST_BATCH = 2000000, WITH_EMPTY_ROWS = 2 };
enum { ANY_TOKEN = 2147483647 }; /* of preTokens and nextTokens: no window */

static bool takes(const struct op_call *c)
{
    const struct op_attention a = op_attention_dims(c, 0);
    return record_full(c) && a.heads <= MOST_HEADS && a.d <= MOST_D && a.sq <= MOST_TOKENS && a.sk <= MOST_TOKENS &&
           a.batch <= MOST_BATCH;
}

/* The shape of the mask for the operator: [B,N,Sq,Sk], [B,1,Sq,Sk] or [1,1,Sq,Sk], the least that holds ours. */
static hone_shape mask_shape(const struct op_call *c)
{
    const struct op_attention a = op_attention_dims(c, 0);
    const bool heads = a.mask[1] != 0, batch = heads || a.mask[0] != 0;
    return HONE_SHAPE(batch ? a.batch : 1, heads ? a.heads : 1, a.sq, a.sk);
}

static bool must_stretch(const struct op_call *c)
{
    const hone_shape want = mask_shape(c);
    return op_numel(&c->in[3]) != hone_numel(&want);
}

static struct record_view dropped(struct record_use *u)
{
    const hone_shape s = mask_shape(u->call);
    struct record_view kept = record_in(u, 3);
    if (must_stretch(u->call)) {
        kept = record_temp(u, HONE_BOOL, s);
        record_copy(u, kept, record_in(u, 3));
    }
    struct record_view out = record_temp(u, HONE_BOOL, s);
    record_open(u, "LogicalNot");
    record_tensor(u, "self", record_shaped(kept, s));
    record_tensor(u, "out", out);
    record_close(u);
    return out;
}

static hone_shape statistic(const struct op_call *c)
{
    const struct op_attention a = op_attention_dims(c, 0);
    return HONE_SHAPE(a.batch, a.heads, a.sq, 8);
}

static void attention(struct record_use *u)
{
    const struct op_call *c = u->call;
    const bool masked = c->n_in > 3;
    const hone_shape stat = statistic(c);
    struct record_view mask;
    if (masked)
        mask = dropped(u);
    record_open(u, "FlashAttentionScore");
    record_tensor(u, "query", record_in(u, 0));
    record_tensor(u, "key", record_in(u, 1));
    record_tensor(u, "value", record_in(u, 2));
    record_none(u, "realShiftOptional");
    record_none(u, "dropMaskOptional");
    record_none(u, "paddingMaskOptional");
    if (masked)
        record_tensor(u, "attenMaskOptional", mask);
    else
        record_none(u, "attenMaskOptional");
    record_none(u, "prefixOptional");
    record_f64(u, "scaleValue", c->attr.f[ATTENTION_SCALE]);
    record_f64(u, "keepProb", 1);
    record_int(u, "preTokens", ANY_TOKEN);
    record_int(u, "nextTokens", ANY_TOKEN);
    record_int(u, "headNum", c->in[0].shape.dim[1]);
    record_word(u, "inputLayout", "\"BNSD\"");
    record_int(u, "innerPrecise", masked ? WITH_EMPTY_ROWS : 0);
    record_int(u, "sparseMode", 0);
    record_tensor(u, "softmaxMaxOut", record_temp(u, HONE_F32, stat));
    record_tensor(u, "softmaxSumOut", record_temp(u, HONE_F32, stat));
    record_none(u, "softmaxOutOut");
    record_tensor(u, "attentionOutOut", record_out(u, 0));
    record_close(u);
}

static size_t temp(const struct op_call *c)
{
    size_t n = 2 * record_temp_bytes(HONE_F32, statistic(c));
    if (c->n_in > 3)
        n += record_temp_bytes(HONE_BOOL, mask_shape(c)) * (must_stretch(c) ? 2 : 1);
    return n;
}

RECORD_MAP_TEMP(attention, takes, attention, temp);
