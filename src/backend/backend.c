/* The devices of this build. */
#include "backend/devices.h"

const struct bk_def *const bk_table[] = {
#define DEVICE(name) &bk_##name,
#include "backend/devices.def"
#undef DEVICE
    NULL,
};
