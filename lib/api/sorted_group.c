/*
 * The values of one group in order (trp_group_sorted).
 *
 * They stand one behind the other, each behind its size, in memory or in a mapped file.
 * Pointers to them are sorted, of equal values the one that came first in front, and the
 * values are written once more, in that order. So of a group that memory does not hold
 * 8 bytes a value are in memory.
 *
 * Rejected: keys of two parts in the shuffle, the second one being the value. Sorting costs
 * nothing then, but map outputs could not be shared with joins and cogroups of the same
 * dataset, nor could values be ordered by a function that knows its task.
 */
#include <stdlib.h>
#include <string.h>

#include "api/flow.h"
#include "core/base/array.h"

struct sorting {
    struct trp_combining *c;
    struct trp_shuffle_order order; /* by numbers or bytes */
    const uint8_t **v;
    size_t n, capacity;
    bool odd; /* a number of another width */
};

static uint32_t size_of(const uint8_t *entry)
{
    uint32_t n;
    memcpy(&n, entry, sizeof(n));
    return n;
}

static int compare(const void *a, const void *b, void *context)
{
    const struct sorting *s = context;
    const uint8_t *x = *(const uint8_t *const *)a, *y = *(const uint8_t *const *)b;
    const uint32_t nx = size_of(x), ny = size_of(y);
    int rc = s->c->plan->values
                 ? trp_shuffle_compare_keys(&s->order, x + 4, nx, y + 4, ny)
                 : trp_wide_compare(s->c, x + 4, nx, y + 4, ny);
    return rc ? rc : (x > y) - (x < y);
}

static int find_values(struct sorting *s, const uint8_t *at, const uint8_t *end)
{
    const bool numbers = s->order.keys != TRP_KEYS_BYTES;
    while (end - at >= 4) {
        if (s->n == s->capacity) {
            size_t more = s->capacity ? 2 * s->capacity : 64;
            const uint8_t **v = realloc(s->v, more * sizeof(*v));
            if (!v)
                return TRP_ENOMEM;
            s->v = v;
            s->capacity = more;
        }
        s->v[s->n++] = at;
        s->odd |= numbers && size_of(at) != 8;
        at += 4 + (size_t)size_of(at);
    }
    return 0;
}

static int write_memory(const struct sorting *s, struct trp_buf *pack)
{
    struct trp_buf b = {0};
    if (!trp_buf_grow(&b, pack->size))
        return TRP_ENOMEM;
    for (size_t i = 0; i < s->n; i++)
        trp_put_raw(&b, s->v[i], 4 + (size_t)size_of(s->v[i]));
    trp_buf_free(pack);
    *pack = b;
    return b.failed ? TRP_ENOMEM : 0;
}

static int write_file(struct trp_flow *f, const struct sorting *s, trp_overflow **file,
                      trp_error *err)
{
    trp_overflow *o = NULL;
    int rc = trp_overflow_open(f->task.info->map_outputs, &o, err);
    for (size_t i = 0; rc == 0 && i < s->n; i++)
        rc = trp_overflow_put(o, s->v[i], 4 + (size_t)size_of(s->v[i]), err);
    if (rc < 0) {
        trp_overflow_free(o);
        return rc;
    }
    trp_overflow_free(*file);
    *file = o;
    return 0;
}

static int sort(struct trp_flow *f, struct sorting *s, struct trp_buf *pack,
                trp_overflow **file)
{
    const uint8_t *all = pack->data;
    trp_error err = {0};
    if (*file && trp_overflow_map(*file, &all, &err) < 0)
        return trp_flow_fail(f, err.code, "%s", err.text);
    const size_t size = *file ? (size_t)trp_overflow_size(*file) : pack->size;
    if (find_values(s, all, all + size) < 0)
        return trp_flow_fail(f, TRP_ENOMEM, "out of memory for a group");
    if (s->odd)
        return trp_flow_mistake(f,
                                "trp_group_sorted: a value that is no number: it has "
                                "other than 8 bytes");
    qsort_r(s->v, s->n, sizeof(*s->v), compare, s);
    if (s->c->raised)
        return trp_flow_fail(f, TRP_EFAILED, "%s failed", s->c->plan->function);
    if (*file)
        return write_file(f, s, file, &err) < 0
                   ? trp_flow_fail(f, err.code, "%s", err.text)
                   : 0;
    return write_memory(s, pack) < 0
               ? trp_flow_fail(f, TRP_ENOMEM, "out of memory for a group")
               : 0;
}

int trp_flow_sort_group(struct trp_flow *f, struct trp_combining *c,
                        struct trp_buf *pack, trp_overflow **file)
{
    static const enum trp_shuffle_keys keys[] = {[0] = TRP_KEYS_BYTES,
                                                 [TRP_BYTES] = TRP_KEYS_BYTES,
                                                 [TRP_I64] = TRP_KEYS_I64,
                                                 [TRP_F64] = TRP_KEYS_F64};
    const unsigned order = c->plan->values;
    struct sorting s = {
        .c = c,
        .order = {.keys = keys[order & ~(unsigned)TRP_DESCENDING],
                  .descending = (order & TRP_DESCENDING) != 0}
    };
    int rc = sort(f, &s, pack, file);
    free(s.v);
    return rc;
}
