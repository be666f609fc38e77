/* Convolutions. Signals, kernels and results are tagged NCL, empty ones are refused, and so are the sizes beyond what
 * the operators document for this generation of devices. */
#include "backend/record/record.h"
#include "op/conv.h"

enum { KEEP_DTYPE = 0, MOST_PADDING = 255, MOST_STRIDE = 63, MOST_TAPS = 255, MOST_DIM = 1000000 };

static bool takes(const struct op_call *c)
{
    const int64_t *a = c->attr.i;
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < 3; d++)
            if (c->in[i].shape.dim[d] > MOST_DIM)
                return false;
    for (int d = 0; d < 3; d++)
        if (c->out[0].shape.dim[d] > MOST_DIM)
            return false;
    return record_full(c) && a[CONV_PADDING] <= MOST_PADDING && a[CONV_DILATION] <= MOST_PADDING &&
           a[CONV_STRIDE] <= MOST_STRIDE;
}

/* For the gradients the kernel, which is operand 1 or the result, is bounded too. */
static bool data_takes(const struct op_call *c)
{
    return takes(c) && c->in[1].shape.dim[2] <= MOST_TAPS;
}

static bool weight_takes(const struct op_call *c)
{
    return takes(c) && c->out[0].shape.dim[2] <= MOST_TAPS;
}

static void settings(struct record_use *u)
{
    const int64_t *a = u->call->attr.i;
    record_ints(u, "stride", 1, &a[CONV_STRIDE]);
    record_ints(u, "padding", 1, &a[CONV_PADDING]);
    record_ints(u, "dilation", 1, &a[CONV_DILATION]);
}

static void conv1d(struct record_use *u)
{
    const int64_t none = 0;
    record_open(u, "Convolution");
    record_tensor(u, "input", record_ncl(record_in(u, 0)));
    record_tensor(u, "weight", record_ncl(record_in(u, 1)));
    if (u->call->n_in == 3)
        record_tensor(u, "bias", record_in(u, 2));
    else
        record_none(u, "bias");
    settings(u);
    record_bool(u, "transposed", false);
    record_ints(u, "outputPadding", 1, &none);
    record_int(u, "groups", 1);
    record_tensor(u, "output", record_ncl(record_out(u, 0)));
    record_int(u, "cubeMathType", KEEP_DTYPE);
    record_close(u);
}

/* One operator has both gradients. Of the forward operand that a gradient does not depend on it looks at the shape
 * alone; the result has that shape, so it stands in. */
static void backward(struct record_use *u, struct record_view dy, struct record_view x, struct record_view w, bool data)
{
    const int64_t none = 0;
    record_open(u, "ConvolutionBackward");
    record_tensor(u, "gradOutput", record_ncl(dy));
    record_tensor(u, "input", record_ncl(x));
    record_tensor(u, "weight", record_ncl(w));
    record_ints(u, "biasSizes", 1, &w.shape.dim[0]);
    settings(u);
    record_bool(u, "transposed", false);
    record_ints(u, "outputPadding", 1, &none);
    record_int(u, "groups", 1);
    record_bools(u, "outputMask", 3, (bool[]){data, !data, false});
    record_int(u, "cubeMathType", KEEP_DTYPE);
    if (data)
        record_tensor(u, "gradInput", record_ncl(x));
    else
        record_none(u, "gradInput");
    if (data)
        record_none(u, "gradWeight");
    else
        record_tensor(u, "gradWeight", record_ncl(w));
    record_none(u, "gradBias");
    record_close(u);
}

static void data_grad(struct record_use *u)
{
    backward(u, record_in(u, 0), record_out(u, 0), record_in(u, 1), true);
}

static void weight_grad(struct record_use *u)
{
    backward(u, record_in(u, 1), record_in(u, 0), record_out(u, 0), false);
}

RECORD_MAP(conv1d, takes, conv1d);
RECORD_MAP(conv1d_data_grad, data_takes, data_grad);
RECORD_MAP(conv1d_weight_grad, weight_takes, weight_grad);
