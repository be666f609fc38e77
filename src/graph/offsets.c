/* Places for buffers of known lifetimes: greedy, largest first, each at the lowest gap that fits among those placed
 * that are alive with it (as in Pisarchyk and Lee 2020, "Efficient memory management for deep neural net inference",
 * greedy by size); two more orders are tried where that leaves much unused, and the best one is kept. */
#include <stdlib.h>
#include <string.h>

#include "graph/plan.h"

struct item {
    int32_t buffer;
    double key; /* large first */
};

static int by_key(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? 1 : -1;
    return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

static bool together(const struct plan_buffer *a, const struct plan_buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Lowest place for b among `placed` (sorted by place). */
static size_t lowest(const struct plan_buffer *b, const struct plan_buffer *all, const int32_t *placed, int n)
{
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        const struct plan_buffer *q = &all[placed[i]];
        if (!together(b, q))
            continue;
        if (q->at >= at + b->size)
            break;
        if (q->at + q->size > at)
            at = q->at + q->size;
    }
    return at;
}

static size_t place_all(struct plan_buffer *b, const struct item *order, int n, int32_t *placed)
{
    size_t size = 0;
    for (int i = 0; i < n; i++) {
        struct plan_buffer *x = &b[order[i].buffer];
        x->at = lowest(x, b, placed, i);
        int at = i;
        while (at > 0 && b[placed[at - 1]].at > x->at) {
            placed[at] = placed[at - 1];
            at--;
        }
        placed[at] = order[i].buffer;
        if (x->at + x->size > size)
            size = x->at + x->size;
    }
    return size;
}

static size_t most_alive(const struct plan_buffer *b, int n)
{
    size_t best = 0;
    for (int i = 0; i < n; i++) { /* the most is reached where some buffer begins */
        size_t now = 0;
        for (int k = 0; k < n; k++)
            if (b[k].first <= b[i].first && b[k].last >= b[i].first)
                now += b[k].size;
        if (now > best)
            best = now;
    }
    return best;
}

hone_status plan_offsets(struct mem *m, struct plan_buffer *b, int n, size_t *size, size_t *live, hone_err *err)
{
    struct item *order = mem_array(m, (size_t)n + 1, sizeof *order);
    int32_t *placed = mem_array(m, (size_t)n + 1, sizeof *placed);
    size_t *best_at = mem_array(m, (size_t)n + 1, sizeof *best_at), best = SIZE_MAX;
    hone_status s = HONE_OK;
    if (!order || !placed || !best_at) {
        s = err_set(err, HONE_E_NOMEM, "plan", "no memory for a plan of %d buffers", n);
        goto done;
    }
    *live = most_alive(b, n);
    for (int rule = 0; rule < 3 && best > *live + *live / 20; rule++) {
        for (int i = 0; i < n; i++) {
            double life = (double)b[i].last - (double)b[i].first + 1, bytes = (double)b[i].size;
            order[i] = (struct item){i, rule == 0 ? bytes : rule == 1 ? bytes * life : life};
        }
        qsort(order, (size_t)n, sizeof *order, by_key);
        size_t got = place_all(b, order, n, placed);
        if (got < best) {
            best = got;
            for (int i = 0; i < n; i++)
                best_at[i] = b[i].at;
        }
    }
    for (int i = 0; i < n; i++)
        b[i].at = best_at[i];
    *size = n ? best : 0;
done:
    mem_free(m, order);
    mem_free(m, placed);
    mem_free(m, best_at);
    return s;
}
