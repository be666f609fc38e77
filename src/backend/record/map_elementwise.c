/* Elementwise operations. Operators broadcast by themselves, so no stretched view is made. A scalar is given as [1]
 * where an operator wants a dimension. Where an operation is two operators on one result, the second works in place. */
#include "backend/record/record.h"

/* `name` with operand 0 called `in`, and result 0 called `out`. */
static void one(struct record_use *u, const char *name, const char *in, const char *out)
{
    record_open(u, name);
    record_tensor(u, in, record_in(u, 0));
    record_tensor(u, out, record_out(u, 0));
    record_close(u);
}

static void two(struct record_use *u, const char *name, bool alpha)
{
    record_open(u, name);
    record_tensor(u, "self", record_in(u, 0));
    record_tensor(u, "other", record_in(u, 1));
    if (alpha)
        record_scalar(u, "alpha", 1);
    record_tensor(u, "out", record_out(u, 0));
    record_close(u);
}

#define UNARY(op, name, in, out)                                                                                       \
    static void op##_write(struct record_use *u)                                                                       \
    {                                                                                                                  \
        one(u, name, in, out);                                                                                         \
    }                                                                                                                  \
    RECORD_MAP(op, NULL, op##_write);
#define BINARY(op, name, alpha)                                                                                        \
    static void op##_write(struct record_use *u)                                                                       \
    {                                                                                                                  \
        two(u, name, alpha);                                                                                           \
    }                                                                                                                  \
    RECORD_MAP(op, NULL, op##_write);

UNARY(silu, "Silu", "self", "out")
UNARY(sigmoid, "Sigmoid", "self", "out")
UNARY(mish, "Mish", "self", "out")
UNARY(relu, "Relu", "self", "out")
UNARY(tanh, "Tanh", "self", "out")
UNARY(exp, "Exp", "self", "out")
UNARY(sqrt, "Sqrt", "self", "out")
UNARY(rsqrt, "Rsqrt", "self", "out")
UNARY(reciprocal, "Reciprocal", "self", "out")
UNARY(abs, "Abs", "self", "out")
UNARY(floor, "Floor", "self", "out")
UNARY(erf, "Erf", "self", "out")
UNARY(sin, "Sin", "self", "out")
UNARY(cos, "Cos", "input", "out")
UNARY(sign, "Sign", "self", "result")
UNARY(logical_not, "LogicalNot", "self", "out")

BINARY(add, "Add", true)
BINARY(sub, "Sub", true)
BINARY(mul, "Mul", false)
BINARY(div, "Div", false)
BINARY(maximum, "Maximum", false)
BINARY(minimum, "Minimum", false)
BINARY(equal, "EqTensor", false)
BINARY(less, "LtTensor", false)
BINARY(less_equal, "LeTensor", false)
BINARY(greater, "GtTensor", false)
BINARY(greater_equal, "GeTensor", false)
BINARY(logical_and, "LogicalAnd", false)
BINARY(logical_or, "LogicalOr", false)

static void mish_grad(struct record_use *u)
{
    record_open(u, "MishBackward");
    record_tensor(u, "gradOutput", record_in(u, 1));
    record_tensor(u, "self", record_in(u, 0));
    record_tensor(u, "gradInput", record_out(u, 0));
    record_close(u);
}

/* As the logarithm and the clamp, it takes no tensor without dimensions. */
static void silu_grad(struct record_use *u)
{
    record_open(u, "SiluBackward");
    record_tensor(u, "gradOutput", record_ranked(record_in(u, 1)));
    record_tensor(u, "self", record_ranked(record_in(u, 0)));
    record_tensor(u, "gradInput", record_ranked(record_out(u, 0)));
    record_close(u);
}

/* The logarithm and the clamp take no tensor without dimensions. */
static void log_write(struct record_use *u)
{
    record_open(u, "Log");
    record_tensor(u, "self", record_ranked(record_in(u, 0)));
    record_tensor(u, "out", record_ranked(record_out(u, 0)));
    record_close(u);
}

static void clamp(struct record_use *u)
{
    record_open(u, "Clamp");
    record_tensor(u, "self", record_ranked(record_in(u, 0)));
    record_scalar(u, "clipValueMin", u->call->attr.f[0]);
    record_scalar(u, "clipValueMax", u->call->attr.f[1]);
    record_tensor(u, "out", record_ranked(record_out(u, 0)));
    record_close(u);
}

/* The operator called Square is young and not to be relied on. */
static void square(struct record_use *u)
{
    record_open(u, "Mul");
    record_tensor(u, "self", record_in(u, 0));
    record_tensor(u, "other", record_in(u, 0));
    record_tensor(u, "out", record_out(u, 0));
    record_close(u);
}

/* The plain operator Gelu is the approximation by tanh, whatever its page says; V2 is told which is meant. */
static void gelu_of(struct record_use *u, bool by_tanh)
{
    record_open(u, "GeluV2");
    record_tensor(u, "x", record_in(u, 0));
    record_int(u, "approximate", by_tanh);
    record_tensor(u, "y", record_out(u, 0));
    record_close(u);
}

static void gelu(struct record_use *u)
{
    gelu_of(u, false);
}

static void gelu_tanh(struct record_use *u)
{
    gelu_of(u, true);
}

/* Above the threshold the operator gives x, which is log(1 + exp(x)) in f32. */
static void softplus(struct record_use *u)
{
    record_open(u, "Softplus");
    record_tensor(u, "self", record_in(u, 0));
    record_scalar(u, "beta", 1);
    record_scalar(u, "threshold", 20);
    record_tensor(u, "out", record_out(u, 0));
    record_close(u);
}

static void pow_scalar(struct record_use *u)
{
    record_open(u, "PowTensorScalar");
    record_tensor(u, "self", record_in(u, 0));
    record_scalar(u, "exponent", u->call->attr.f[0]);
    record_tensor(u, "out", record_out(u, 0));
    record_close(u);
}

/* a x + b */
static void affine(struct record_use *u)
{
    record_open(u, "Muls");
    record_tensor(u, "self", record_in(u, 0));
    record_scalar(u, "other", u->call->attr.f[0]);
    record_tensor(u, "out", record_out(u, 0));
    record_close(u);
    if (u->call->attr.f[1] == 0)
        return;
    record_open(u, "InplaceAdds");
    record_tensor(u, "selfRef", record_out(u, 0));
    record_scalar(u, "other", u->call->attr.f[1]);
    record_scalar(u, "alpha", 1);
    record_close(u);
}

static void where(struct record_use *u)
{
    record_open(u, "SWhere");
    record_tensor(u, "condition", record_in(u, 0));
    record_tensor(u, "self", record_in(u, 1));
    record_tensor(u, "other", record_in(u, 2));
    record_tensor(u, "out", record_out(u, 0));
    record_close(u);
}

static void cast(struct record_use *u)
{
    record_open(u, "Cast");
    record_tensor(u, "self", record_in(u, 0));
    record_word(u, "dtype", record_type(u->call->out[0].dtype));
    record_tensor(u, "out", record_out(u, 0));
    record_close(u);
}

RECORD_MAP(mish_grad, NULL, mish_grad);
RECORD_MAP(silu_grad, NULL, silu_grad);
RECORD_MAP(log, NULL, log_write);
RECORD_MAP(clamp, NULL, clamp);
RECORD_MAP(square, NULL, square);
RECORD_MAP(gelu, NULL, gelu);
RECORD_MAP(gelu_tanh, NULL, gelu_tanh);
RECORD_MAP(softplus, NULL, softplus);
RECORD_MAP(pow_scalar, NULL, pow_scalar);
RECORD_MAP(affine, NULL, affine);
RECORD_MAP(where, NULL, where);
RECORD_MAP(cast, NULL, cast);
