/* Attributes of the operations in sources.c: the type of the result first, then what each adds. */
#ifndef OP_SOURCE_H
#define OP_SOURCE_H

#include "op/op.h"

enum { SOURCE_EXTRA = 10 }; /* attr.i of the first attribute after the type */
enum { INPUT_INDEX = SOURCE_EXTRA, INPUT_BELOW };
enum { RANDOM_KIND = SOURCE_EXTRA, RANDOM_BELOW };
enum { RANDOM_NORMAL, RANDOM_UNIFORM, RANDOM_INDEX };
enum { SLOT_ROLE = SOURCE_EXTRA, SLOT_TENSOR }; /* tensor >= 0: its index; < 0: group -1 - tensor */
enum { STORE_ROLE, STORE_TENSOR };
enum { LOOP_ID, LOOP_STEPS };

struct op_attr op_source_attr(hone_type t);
hone_type op_source_type(const struct op_attr *a);

#endif
