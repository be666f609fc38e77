/* What devices.def lists. */
#ifndef BACKEND_DEVICES_H
#define BACKEND_DEVICES_H

#include "graph/backend.h"

#define DEVICE(name) extern const struct bk_def bk_##name;
#include "backend/devices.def"
#undef DEVICE

#endif
