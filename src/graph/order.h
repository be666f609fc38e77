/* The order of a program's steps; see order.c. */
#ifndef GRAPH_ORDER_H
#define GRAPH_ORDER_H

#include "graph/plan.h"

enum order_kind { ORDER_BUFFER, ORDER_STORE, ORDER_CONSTANT };

/* Fills steps, root, early, dep, and the view parts of place. Values n_values + i stand for the copy of output i,
 * n_values + n_outputs + k for the copy of what store node k writes. */
hone_status order_make(struct plan *p, hone_err *err);
/* What kind of memory a value's root lies in. */
enum order_kind order_kind(const struct plan *p, int32_t value);

#endif
