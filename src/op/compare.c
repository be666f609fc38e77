/* Shape rules of comparisons and logic. */
#include "op/compare.h"

static hone_status to_bool(const struct op_call *c, hone_type *out, hone_err *err)
{
    out[0].dtype = HONE_BOOL;
    if (!op_broadcast_shape(&c->in[0].shape, &c->in[1].shape, &out[0].shape))
        return op_refuse(c, err, "shapes must broadcast (dimensions aligned at the right, equal or 1)");
    return HONE_OK;
}

hone_status op_shape_compare(const struct op_call *c, hone_type *out, hone_err *err)
{
    hone_dtype t = c->in[0].dtype;
    if (t != c->in[1].dtype || (t != HONE_F32 && t != HONE_I32))
        return op_refuse(c, err, "both operands must be f32, or both i32");
    return to_bool(c, out, err);
}

hone_status op_shape_logic(const struct op_call *c, hone_type *out, hone_err *err)
{
    if (c->in[0].dtype != HONE_BOOL || c->in[1].dtype != HONE_BOOL)
        return op_refuse(c, err, "both operands must be bool");
    return to_bool(c, out, err);
}
