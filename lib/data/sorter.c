/*
 * Records in memory.
 *
 * By partition they are counted and put into place in one go. Then each partition by
 * itself: by one byte of the prefix after the other, from the highest on, until few are
 * left, which are sorted by insertion. Keys that are equal so far are given their next
 * 8 bytes as prefix, behind all bytes that they have in common, and sorted by these;
 * keys that end there are in front, the shorter first. Should that go deep (keys made
 * to do so), or have keys a comparison of their own, they are merged by comparing.
 * Everything keeps the order of equals.
 */
#include "data/sorter.h"

#include <stdlib.h>

#include "data/key_order.h"

enum {
    FEW = 24,             /* are sorted by insertion */
    DEPTH_MAX = 16,       /* prefixes of one key; beyond, keys are compared */
    AT_A_DISTANCE = 1024, /* pairs, at most, that are looked at once more */
};

/* ---- memory ---------------------------------------------------------------------- */

void trp_sorter_init(struct trp_sorter *s, const struct trp_shuffle_order *order)
{
    *s = (struct trp_sorter){.order = order,
                             .bytes.kind = TRP_REGION_RECORDS,
                             .index.kind = TRP_REGION_ENTRIES,
                             .scratch.kind = TRP_REGION_ENTRIES};
}

void trp_sorter_free(struct trp_sorter *s)
{
    trp_region_free(&s->bytes);
    trp_region_free(&s->index);
    trp_region_free(&s->scratch);
    trp_sorter_init(s, s->order);
}

void trp_sorter_unmap(struct trp_sorter *s)
{
    trp_region_unmap(&s->bytes);
    trp_region_unmap(&s->index);
    trp_region_unmap(&s->scratch);
    trp_sorter_init(s, s->order);
}

void trp_sorter_clear(struct trp_sorter *s)
{
    s->used = s->garbage = s->n = 0;
    s->npartitions = 0;
}

/* The record behind all others; *ret_at: where, in units. */
static int append_record(struct trp_sorter *s, const void *key, uint32_t nk,
                         const void *value, uint32_t nv, uint32_t *ret_at)
{
    uint8_t head[TRP_RECORD_HEAD_MAX];
    size_t n = trp_record_head(head, nk, nv);
    size_t after = s->used + trp_sorter_units(n + nk + nv) * TRP_SORTER_UNIT;
    if (after > TRP_SORTER_BYTES_MAX)
        return TRP_ELIMIT;
    if (after > s->bytes.size && !trp_region_grow(&s->bytes, after))
        return TRP_ENOMEM;
    uint8_t *to = (uint8_t *)s->bytes.p + s->used;
    memcpy(to, head, n);
    if (nk > 0)
        memcpy(to + n, key, nk);
    if (nv > 0)
        memcpy(to + n + nk, value, nv);
    *ret_at = (uint32_t)(s->used / TRP_SORTER_UNIT);
    s->used = after;
    return 0;
}

int trp_sorter_add(struct trp_sorter *s, uint32_t partition, const void *key,
                   uint32_t nk, const void *value, uint32_t nv)
{
    uint32_t at;
    size_t index = (s->n + 1) * sizeof *s->entries;
    if (index > s->index.size && !trp_region_grow(&s->index, index))
        return TRP_ENOMEM;
    s->entries = (struct trp_entry *)s->index.p;
    int rc = append_record(s, key, nk, value, nv, &at);
    if (rc < 0)
        return rc;
    s->entries[s->n++] = (struct trp_entry){
        trp_key_prefix(s->order, (const uint8_t *)key, nk), partition, at};
    if (partition >= s->npartitions)
        s->npartitions = partition + 1;
    return 0;
}

int trp_sorter_replace(struct trp_sorter *s, struct trp_entry *e, uint32_t nv,
                       const void *value)
{
    struct trp_record r = trp_sorter_get(s, e);
    size_t old, n = TRP_RECORD_HEAD_MAX + (size_t)r.nk + nv;
    trp_sorter_record(s, e, &old);
    if (!trp_region_grow(&s->bytes, s->used + n + TRP_SORTER_UNIT))
        return TRP_ENOMEM;
    r = trp_sorter_get(s, e); /* it may have moved, and now it stays */
    int rc = append_record(s, r.key, r.nk, value, nv, &e->at);
    if (rc == 0)
        s->garbage += trp_sorter_units(old) * TRP_SORTER_UNIT;
    return rc;
}

int trp_sorter_compact(struct trp_sorter *s)
{
    struct trp_region to = {.kind = TRP_REGION_RECORDS};
    size_t used = 0, size;
    if (!trp_region_grow(&to, s->used - s->garbage + 1))
        return TRP_ENOMEM;
    for (size_t i = 0; i < s->n; i++) {
        const uint8_t *record = trp_sorter_record(s, &s->entries[i], &size);
        memcpy((uint8_t *)to.p + used, record, size);
        s->entries[i].at = (uint32_t)(used / TRP_SORTER_UNIT);
        used += trp_sorter_units(size) * TRP_SORTER_UNIT;
    }
    trp_region_free(&s->bytes);
    s->bytes = to;
    s->used = used;
    s->garbage = 0;
    return 0;
}

const uint8_t *trp_sorter_record(const struct trp_sorter *s, const struct trp_entry *e,
                                 size_t *ret_size)
{
    const uint8_t *at = (const uint8_t *)s->bytes.p + (size_t)e->at * TRP_SORTER_UNIT;
    struct trp_record r = trp_sorter_get(s, e);
    *ret_size = (size_t)(r.key - at) + r.nk + r.nv;
    return at;
}

/* ---- by comparing ---------------------------------------------------------------- */

static int compare_keys(const struct trp_sorter *s, const struct trp_entry *a,
                        const struct trp_entry *b, size_t skip)
{
    struct trp_record x = trp_sorter_get(s, a), y = trp_sorter_get(s, b);
    return trp_key_compare(s->order, x.key, x.nk, y.key, y.nk, skip);
}

/* Whether `b`, which is behind `a`, belongs before it. */
static bool out_of_order(const struct trp_sorter *s, const struct trp_entry *a,
                         const struct trp_entry *b, size_t skip)
{
    if (a->prefix != b->prefix)
        return b->prefix < a->prefix;
    return compare_keys(s, b, a, skip) < 0;
}

static void insertion_sort(const struct trp_sorter *s, struct trp_entry *v, size_t n,
                           size_t skip)
{
    for (size_t i = 1; i < n; i++) {
        struct trp_entry e = v[i];
        size_t j = i;
        for (; j > 0 && out_of_order(s, &v[j - 1], &e, skip); j--)
            v[j] = v[j - 1];
        v[j] = e;
    }
}

static void merge_two(const struct trp_sorter *s, const struct trp_entry *a, size_t na,
                      size_t nb, struct trp_entry *to, size_t skip)
{
    const struct trp_entry *b = a + na, *a_end = b, *b_end = b + nb;
    while (a < a_end && b < b_end)
        *to++ = out_of_order(s, a, b, skip) ? *b++ : *a++;
    memcpy(to, a, (size_t)(a_end - a) * sizeof *a);
    memcpy(to + (a_end - a), b, (size_t)(b_end - b) * sizeof *b);
}

/* Pieces of FEW by insertion, then merges of neighbours, back and forth. */
static void merge_sort(const struct trp_sorter *s, struct trp_entry *v,
                       struct trp_entry *scratch, size_t n, size_t skip)
{
    struct trp_entry *from = v, *to = scratch;
    for (size_t i = 0; i < n; i += FEW)
        insertion_sort(s, v + i, n - i < FEW ? n - i : FEW, skip);
    for (size_t width = FEW; width < n; width *= 2) {
        for (size_t i = 0; i < n; i += 2 * width) {
            size_t na = n - i < width ? n - i : width;
            size_t nb = n - i - na < width ? n - i - na : width;
            merge_two(s, from + i, na, nb, to + i, skip);
        }
        struct trp_entry *swap = from;
        from = to;
        to = swap;
    }
    if (from != v)
        memcpy(v, from, n * sizeof *v);
}

const char trp_shuffle_no_order[] =
    "the comparison of keys is no order: it says of two keys that each belongs before "
    "the other, or so by a third one";

/* Neighbours once more the other way round, and some pairs at a distance: a comparison
 * that is no order gives itself away. */
static int check_order(const struct trp_sorter *s, const struct trp_entry *v, size_t n,
                       trp_error *err)
{
    bool good = true;
    for (size_t i = 1; i < n && good; i++)
        good = compare_keys(s, &v[i - 1], &v[i], 0) <= 0;
    size_t step = n / AT_A_DISTANCE + 1;
    for (size_t i = 0, j = n; i < n && good; i += step) {
        j = (j * 7 + 1) % n;
        const struct trp_entry *low = &v[i < j ? i : j], *high = &v[i < j ? j : i];
        good = compare_keys(s, low, high, 0) <= 0 && compare_keys(s, high, low, 0) >= 0;
    }
    return good ? 0 : trp_error_set(err, TRP_EINVAL, "%s", trp_shuffle_no_order);
}

/* ---- by bytes -------------------------------------------------------------------- */

static void sort_bytes(const struct trp_sorter *s, struct trp_entry *v,
                       struct trp_entry *scratch, size_t n, size_t skip,
                       unsigned depth);

/* How many bytes, from `skip` on, all keys have in common. */
static size_t common(const struct trp_sorter *s, const struct trp_entry *v, size_t n,
                     size_t skip)
{
    struct trp_record first = trp_sorter_get(s, &v[0]);
    size_t same = first.nk - skip;
    for (size_t i = 1; i < n && same > 0; i++) {
        struct trp_record r = trp_sorter_get(s, &v[i]);
        size_t most = r.nk - skip < same ? r.nk - skip : same, k = 0;
        if (memcmp(first.key + skip, r.key + skip, most) == 0)
            k = most;
        else
            while (first.key[skip + k] == r.key[skip + k])
                k++;
        same = k;
    }
    return same;
}

/* How many bytes an entry's key has from `skip` on; MORE: more than a prefix. Where the
 * order goes down, less that, since longer ones come first. */
enum { MORE = TRP_PREFIX + 1 };
static unsigned left_of(const struct trp_sorter *s, const struct trp_entry *e,
                        size_t skip)
{
    size_t left = trp_sorter_get(s, e).nk - skip;
    unsigned n = left < MORE ? (unsigned)left : MORE;
    return s->order->descending ? MORE - n : n;
}

/* Entries of equal prefixes, which are the keys' bytes from `skip` on. */
static void sort_equals(const struct trp_sorter *s, struct trp_entry *v,
                        struct trp_entry *scratch, size_t n, size_t skip,
                        unsigned depth)
{
    size_t counts[MORE + 1] = {0}, at[MORE + 1], sum = 0;
    const unsigned more = s->order->descending ? 0 : MORE;
    if (s->order->keys != TRP_KEYS_BYTES)
        return; /* a prefix is all of the key */
    for (size_t i = 0; i < n; i++)
        counts[left_of(s, &v[i], skip)]++;
    for (size_t k = 0; k <= MORE; k++) {
        at[k] = sum;
        sum += counts[k];
    }
    size_t longer = at[more];
    if (counts[left_of(s, &v[0], skip)] < n) {
        for (size_t i = 0; i < n; i++)
            scratch[at[left_of(s, &v[i], skip)]++] = v[i];
        memcpy(v, scratch, n * sizeof *v);
    }
    v += longer;
    n = counts[more];
    if (n < 2)
        return;
    skip += TRP_PREFIX;
    if (depth >= DEPTH_MAX) {
        for (size_t i = 0; i < n; i++)
            v[i].prefix = 0;
        merge_sort(s, v, scratch, n, skip);
        return;
    }
    skip += common(s, v, n, skip);
    for (size_t i = 0; i < n; i++) {
        struct trp_record r = trp_sorter_get(s, &v[i]);
        v[i].prefix = trp_key_prefix(s->order, r.key + skip, r.nk - skip);
    }
    sort_bytes(s, v, scratch, n, skip, depth + 1);
}

/* More than FEW entries whose prefixes, the keys' bytes from `skip` on, are equal above
 * the 8 bits at `shift`. */
static void sort_below(const struct trp_sorter *s, struct trp_entry *v,
                       struct trp_entry *scratch, size_t n, unsigned shift, size_t skip,
                       unsigned depth)
{
    uint32_t ends[256];
    for (;; shift -= 8) {
        memset(ends, 0, sizeof ends);
        for (size_t i = 0; i < n; i++)
            ends[v[i].prefix >> shift & 0xff]++;
        if (ends[v[0].prefix >> shift & 0xff] < n)
            break;
        if (shift == 0) {
            sort_equals(s, v, scratch, n, skip, depth);
            return;
        }
    }
    for (uint32_t k = 0, sum = 0; k < 256; k++) {
        uint32_t count = ends[k];
        ends[k] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        scratch[ends[v[i].prefix >> shift & 0xff]++] = v[i];
    memcpy(v, scratch, n * sizeof *v);
    for (size_t k = 0, from = 0; k < 256; from = ends[k++]) {
        size_t count = ends[k] - from;
        if (count > FEW && shift > 0)
            sort_below(s, v + from, scratch + from, count, shift - 8, skip, depth);
        else if (count > FEW)
            sort_equals(s, v + from, scratch + from, count, skip, depth);
        else if (count > 1)
            insertion_sort(s, v + from, count, skip);
    }
}

static void sort_bytes(const struct trp_sorter *s, struct trp_entry *v,
                       struct trp_entry *scratch, size_t n, size_t skip, unsigned depth)
{
    if (n <= FEW)
        insertion_sort(s, v, n, skip);
    else
        sort_below(s, v, scratch, n, 56, skip, depth);
}

/* ---- all ------------------------------------------------------------------------- */

/* Into the order of partitions; `ends` says where each one ends. */
static void by_partition(struct trp_sorter *s, struct trp_entry *scratch,
                         uint32_t *ends)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < s->n; i++)
        ends[s->entries[i].partition]++;
    for (uint32_t p = 0; p < s->npartitions; p++) {
        uint32_t count = ends[p];
        ends[p] = sum;
        sum += count;
    }
    for (size_t i = 0; i < s->n; i++)
        scratch[ends[s->entries[i].partition]++] = s->entries[i];
}

static int sort_one(struct trp_sorter *s, struct trp_entry *v,
                    struct trp_entry *scratch, size_t n, trp_error *err)
{
    if (s->order->unordered || n < 2)
        return 0;
    if (!s->order->compare) {
        sort_bytes(s, v, scratch, n, 0, 0);
        return 0;
    }
    merge_sort(s, v, scratch, n, 0);
    return check_order(s, v, n, err);
}

int trp_sorter_sort(struct trp_sorter *s, trp_error *err)
{
    int rc = 0;
    if (s->n == 0)
        return 0;
    uint32_t *ends = (uint32_t *)calloc(s->npartitions, sizeof *ends);
    if (!ends || !trp_region_grow(&s->scratch, s->n * sizeof *s->entries)) {
        free(ends);
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    if (s->npartitions > 1) {
        by_partition(s, (struct trp_entry *)s->scratch.p, ends);
        struct trp_region swap = s->index;
        s->index = s->scratch;
        s->scratch = swap;
        s->entries = (struct trp_entry *)s->index.p;
    } else {
        ends[0] = (uint32_t)s->n;
    }
    struct trp_entry *scratch = (struct trp_entry *)s->scratch.p;
    for (uint32_t p = 0, from = 0; p < s->npartitions && rc == 0; from = ends[p++])
        rc = sort_one(s, s->entries + from, scratch + from, ends[p] - from, err);
    free(ends);
    return rc;
}
