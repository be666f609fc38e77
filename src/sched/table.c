/* Tables of named rows. */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "sched/sched.h"

const char *sched_name(const struct sched_table *t, int i)
{
    if (i < 0 || i >= t->count)
        return NULL;
    const char *name;
    memcpy(&name, (const char *)t->rows + (size_t)i * t->stride, sizeof name);
    return name;
}

int sched_find(const struct sched_table *t, const char *name, const char *standard, hone_err *err)
{
    char buf[256];
    struct text list;
    struct text_near near;
    if (!name)
        name = standard;
    text_init(&list, buf, sizeof buf);
    text_near_start(&near, name);
    for (int i = 0; i < t->count; i++) {
        const char *row = sched_name(t, i);
        if (text_same_name(row, name))
            return i;
        text_addf(&list, "%s%s", i ? ", " : "", row);
        text_near_try(&near, row);
    }
    err_set(err, HONE_E_ARG, t->what, "%s must be one of %s; got \"%.60s\"%s%s%s", t->what, buf, name,
            near.best ? "; did you mean \"" : "", near.best ? near.best : "", near.best ? "\"?" : "");
    return -1;
}

hone_status sched_range(const char *where, const char *what, double v, double lo, double hi, const char *wanted,
                        hone_err *err)
{
    if (isfinite(v) && v >= lo && v <= hi)
        return HONE_OK;
    return err_set(err, HONE_E_ARG, where, "%s must be %s; got %g", what, wanted, v);
}
