/* The devices of this build. */
#include "graph/backend.h"

extern const struct bk_def bk_cpu;

const struct bk_def *const bk_table[] = {
    &bk_cpu,
    NULL,
};
