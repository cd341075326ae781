#include "api/sample.h"

#include <stdlib.h>
#include <string.h>

#include "api/job.h"
#include "core/base/array.h"

/* Keys for each range, and bounds of what one partition brings. */
enum { PER_RANGE = 60, LEAST = 20, MOST = 100000 };
enum { PAIRS = 1024 }; /* of sampled keys that are compared once more */
/* Windows are this far apart, or nearer, so that a text in order has some in each range. */
enum { STRIDE = 4 << 20, KEYS_OF_WINDOW = 8 };

uint32_t trp_sample_want(const struct trp_wide_plan *p, uint32_t nparts)
{
    uint64_t n = (uint64_t)p->partitions * PER_RANGE / (nparts ? nparts : 1);
    return n < LEAST ? LEAST : n > MOST ? MOST : (uint32_t)n;
}

/* ---- on an executor ---- */

void trp_sample_begin(struct trp_sample *s, uint32_t task, uint32_t want)
{
    trp_sample_free(s);
    *s = (struct trp_sample){
        .random = task + UINT64_C(0x9e3779b97f4a7c15), .want = want, .weight = 1};
}

bool trp_sample_again(struct trp_sample *s, uint32_t task)
{
    if (!s->windows || s->nkeys == s->want)
        return false;
    trp_sample_begin(s, task, s->want);
    s->whole = true;
    return true;
}

uint64_t trp_sample_stride(const struct trp_sample *s, uint64_t bytes)
{
    uint64_t stride = bytes / (s->want / KEYS_OF_WINDOW + 1);
    if (s->whole || stride < (uint64_t)4 * TRP_SAMPLE_WINDOW)
        return TRP_SAMPLE_WINDOW;
    return stride < STRIDE ? stride : STRIDE;
}

/* splitmix64 */
uint64_t trp_sample_random(struct trp_sample *s, uint64_t n)
{
    uint64_t x = s->random += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (x ^ (x >> 31)) % n;
}

int trp_sample_add(struct trp_sample *s, const void *key, size_t nk)
{
    uint64_t at = s->nkeys;
    s->seen += s->weight;
    if (at == s->want) { /* a reservoir, by weights (Chao 1982) */
        at = trp_sample_random(s, s->seen) / s->weight;
        if (at >= s->want)
            return 0;
    }
    if (at == s->nkeys) {
        if (!TRP_ARRAY_GROW(s->keys, s->nkeys, s->capacity))
            return TRP_ENOMEM;
        s->keys[s->nkeys++] = (struct trp_wide_key){0};
    }
    uint8_t *copy = malloc(nk + 1);
    if (!copy)
        return TRP_ENOMEM;
    memcpy(copy, key, nk);
    free((void *)(uintptr_t)s->keys[at].data);
    s->keys[at] = (struct trp_wide_key){.data = copy, .size = nk};
    return 0;
}

void trp_sample_put(struct trp_buf *b, const struct trp_sample *s)
{
    trp_put_u64(b, s->seen);
    for (uint32_t i = 0; i < s->nkeys; i++)
        trp_put_bytes(b, s->keys[i].data, s->keys[i].size);
}

void trp_sample_free(struct trp_sample *s)
{
    for (uint32_t i = 0; i < s->nkeys; i++)
        free((void *)(uintptr_t)s->keys[i].data);
    free(s->keys);
    *s = (struct trp_sample){0};
}

/* ---- on the driver ---- */

struct weighed {
    struct trp_wide_key key;
    double weight;  /* records that it stands for */
    uint32_t place; /* a tie goes to the first */
};

static int compare(const struct trp_shuffle_order *order, const struct weighed *x,
                   const struct weighed *y)
{
    return trp_shuffle_compare_keys(order, x->key.data, x->key.size, y->key.data,
                                    y->key.size);
}

static int by_key(const void *a, const void *b, void *order)
{
    const struct weighed *x = a, *y = b;
    int rc = compare(order, x, y);
    return rc ? rc : (x->place > y->place) - (x->place < y->place);
}

static int gather(const struct trp_part *parts, uint32_t nparts, struct weighed **ret,
                  uint32_t *ret_n)
{
    uint32_t n = 0, capacity = 0;
    struct weighed *all = NULL;
    for (uint32_t i = 0; i < nparts; i++) {
        struct trp_view v = trp_view_of(parts[i].data, parts[i].size);
        uint64_t seen = parts[i].size ? trp_get_u64(&v) : 0;
        uint32_t first = n;
        while (!v.bad && v.at < v.end) {
            if (!TRP_ARRAY_GROW(all, n, capacity)) {
                free(all);
                return TRP_ENOMEM;
            }
            all[n].key.data = trp_get_bytes(&v, &all[n].key.size);
            all[n].place = n;
            n += !v.bad;
        }
        for (uint32_t k = first; k < n; k++)
            all[k].weight = (double)seen / (n - first);
    }
    *ret = all;
    *ret_n = n;
    return 0;
}

/* Whether sorted keys are in order also at a distance. A comparison that goes in a circle
 * would deal records out by it, so that no task sees what is wrong. */
static bool in_order(const struct trp_shuffle_order *order, const struct weighed *v,
                     uint32_t n)
{
    uint32_t step = n / PAIRS + 1;
    for (uint32_t i = 0, j = n; i < n; i += step) {
        j = (uint32_t)(((uint64_t)j * 7 + 1) % n);
        const struct weighed *low = &v[i < j ? i : j], *high = &v[i < j ? j : i];
        if (compare(order, low, high) > 0 || compare(order, high, low) < 0)
            return false;
    }
    return true;
}

int trp_sample_ranges(struct trp_wide_plan *p, const struct trp_part *parts,
                      uint32_t nparts, trp_error *err)
{
    struct trp_combining none = {0};
    struct trp_shuffle_order order = trp_wide_order(p, &none);
    struct weighed *v = NULL;
    uint32_t n = 0, range = 1;
    double all = 0, before = 0;
    if (gather(parts, nparts, &v, &n) < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a sort's ranges");
    for (uint32_t i = 0; i < n; i++)
        all += v[i].weight;
    if (n)
        qsort_r(v, n, sizeof(*v), by_key, &order);
    if (!in_order(&order, v, n)) {
        free(v);
        return trp_error_set(err, TRP_EFAILED, "%s: %s", p->function,
                             trp_shuffle_no_order);
    }
    const struct weighed *last = NULL;
    for (uint32_t i = 0; i < n && range < p->partitions; i++) {
        bool due = before >= all * range / p->partitions;
        before += v[i].weight;
        if (!due || (last && compare(&order, last, &v[i]) >= 0))
            continue;
        trp_put_bytes(&p->bounds, v[i].key.data, v[i].key.size);
        last = &v[i];
        do /* a key with many records takes the room of several ranges */
            range++;
        while (range < p->partitions && before >= all * range / p->partitions);
    }
    free(v);
    p->bounded = !p->bounds.failed;
    return p->bounded
               ? 0
               : trp_error_set(err, TRP_ENOMEM, "out of memory for a sort's ranges");
}
