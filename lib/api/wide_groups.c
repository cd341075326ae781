/*
 * Groups of the values of one key: trp_group_by_key, trp_join, trp_cogroup.
 *
 * Records come sorted by key, so a group is what stands side by side, and two sides are
 * walked together as two sorted lists. What is held is one group: of a join that of its
 * right side, while the left one streams past it; what memory has no room for is read from
 * a file for each left value, so that the order of pairs depends on the records alone. Any
 * other group is handed on as one, so what memory has no room for is mapped from a file
 * (data/mapped_values.h): one key with most of the records needs room on the disk, not memory.
 */
#include <string.h>

#include "api/flow.h"
#include "api/key_values.h"
#include "data/value_list.h"

enum { GROUP_LEAST = 1 << 20 };

/* ---- one group ---- */

static bool same_key(const struct trp_shuffle_record *r, const trp_writer *key)
{
    return r->nk == key->values.size &&
           (r->nk == 0 || memcmp(r->key, key->values.data, r->nk) == 0);
}

static int keep_key(struct trp_flow *f, trp_writer *key,
                    const struct trp_shuffle_record *r)
{
    trp_writer_clear(key);
    return trp_emit(key, NULL, 0, r->key, r->nk) == 0
               ? 0
               : trp_flow_fail(f, TRP_ENOMEM, "out of memory for a key");
}

/* What values of one key may take in memory: the half of what readers have for theirs. */
static size_t bytes_allowed(struct trp_flow *f)
{
    const size_t half = trp_flow_memory(f) / 2;
    return half > GROUP_LEAST ? half : GROUP_LEAST;
}

static int failed(struct trp_flow *f, const trp_error *err)
{
    return trp_flow_fail(f, err->code, "%s", err->text);
}

static int emit_value(struct trp_flow *f, const trp_writer *key, const void *value,
                      size_t n)
{
    return trp_flow_source_emit(f,
                                key->values.data ? (const void *)key->values.data : "",
                                key->values.size, value, n);
}

static int emit_packed(struct trp_flow *f, const trp_writer *key)
{
    return emit_value(f, key, f->pack.data, f->pack.size);
}

/* ---- trp_group_by_key ---- */

/* From memory to a file. */
static int unpack_to(struct trp_flow *f, trp_overflow **ret, trp_error *err)
{
    int rc = trp_overflow_open(f->task.info->map_outputs, ret, err);
    if (rc == 0)
        rc = trp_overflow_put(*ret, f->pack.data, f->pack.size, err);
    trp_buf_free(&f->pack);
    return rc;
}

static int put_counted(trp_overflow *o, const void *value, size_t n, trp_error *err)
{
    const uint32_t size = (uint32_t)n; /* as trp_put_bytes */
    int rc = trp_overflow_put(o, &size, sizeof(size), err);
    return rc < 0 ? rc : trp_overflow_put(o, value, n, err);
}

/* Puts all values of the key of `r` into one, each with its size: in f->pack, or all in
 * *ret_file. Then `r` is the next record: 1, or 0 when there is none. */
static int pack_group(struct trp_flow *f, struct trp_wide_side *s,
                      const trp_writer *key, struct trp_shuffle_record *r,
                      trp_overflow **ret_file)
{
    const size_t most = bytes_allowed(f);
    trp_error err = {0};
    int rc = 1;
    trp_buf_clear(&f->pack);
    do {
        if (!*ret_file && f->pack.size + r->nv > most)
            rc = unpack_to(f, ret_file, &err);
        if (rc >= 0 && *ret_file)
            rc = put_counted(*ret_file, r->value, r->nv, &err);
        if (rc < 0)
            return failed(f, &err);
        if (!*ret_file)
            trp_put_bytes(&f->pack, r->value, r->nv);
        if (f->pack.failed)
            return trp_flow_fail(f, TRP_ENOMEM, "out of memory for a group");
        rc = trp_flow_side_next(f, s, r);
    } while (rc > 0 && same_key(r, key));
    return rc;
}

static int emit_file(struct trp_flow *f, const trp_writer *key, trp_overflow *file)
{
    trp_error err = {0};
    const uint8_t *all;
    f->ret->data.spilled_bytes += trp_overflow_size(file);
    if (trp_overflow_map(file, &all, &err) < 0)
        return failed(f, &err);
    f->mapped = all;
    int rc = emit_value(f, key, all, (size_t)trp_overflow_size(file));
    f->mapped = NULL;
    return rc;
}

int trp_flow_groups(struct trp_flow *f, const struct trp_wide_plan *p,
                    struct trp_wide_side *s, struct trp_combining *c)
{
    struct trp_shuffle_record r;
    trp_writer key;
    trp_writer_init(&key);
    int rc = trp_flow_side_next(f, s, &r);
    while (rc > 0) {
        trp_overflow *file = NULL;
        if (keep_key(f, &key, &r) < 0)
            rc = -1;
        if (rc > 0)
            rc = pack_group(f, s, &key, &r, &file);
        if (rc >= 0 && (p->values || (p->function && *p->function)) &&
            trp_flow_sort_group(f, c, &f->pack, &file) < 0)
            rc = -1;
        if (rc >= 0 && (file ? emit_file(f, &key, file) : emit_packed(f, &key)) < 0)
            rc = -1;
        trp_overflow_free(file);
    }
    trp_writer_free(&key);
    return rc < 0 ? rc : trp_flow_source_end(f);
}

/* ---- trp_join ---- */

/* "n m a b": sizes, UINT32_MAX for a value that is not there, and the two values. */
static int emit_pair(struct trp_flow *f, const trp_writer *key, const void *a,
                     size_t na, const void *b, size_t nb)
{
    trp_buf_clear(&f->pack);
    if (na >= UINT32_MAX || nb >= UINT32_MAX)
        return trp_flow_fail(f, TRP_ELIMIT, "a value of a join is above 4 GiB");
    trp_put_u32(&f->pack, a ? (uint32_t)na : UINT32_MAX);
    trp_put_u32(&f->pack, b ? (uint32_t)nb : UINT32_MAX);
    trp_put_raw(&f->pack, a, a ? na : 0);
    trp_put_raw(&f->pack, b, b ? nb : 0);
    if (f->pack.failed)
        return trp_flow_fail(f, TRP_ENOMEM, "out of memory for a pair");
    return emit_packed(f, key);
}

/* The values of one key of the right side: the first ones in f->group[1], all others in
 * `more` (NULL: there are none). */
static int hold_right(struct trp_flow *f, struct trp_wide_side *s,
                      const trp_writer *key, struct trp_shuffle_record *r,
                      trp_values **ret_more)
{
    const size_t most = bytes_allowed(f);
    trp_writer *held = &f->group[1];
    trp_error err = {0};
    int rc = 1;
    trp_writer_clear(held);
    do {
        if (!*ret_more && trp_key_values_size(held) + r->nv > most)
            rc = trp_values_open(f->task.info->map_outputs, ret_more, &err);
        if (rc > 0 && !*ret_more && trp_emit(held, NULL, 0, r->value, r->nv) < 0)
            rc = trp_error_set(&err, TRP_ENOMEM, "out of memory for a group");
        if (rc >= 0 && *ret_more)
            rc = trp_values_put(*ret_more, r->value, r->nv, &err);
        if (rc < 0)
            return failed(f, &err);
        rc = trp_flow_side_next(f, s, r);
    } while (rc > 0 && same_key(r, key));
    return rc;
}

static int pair_with_more(struct trp_flow *f, const trp_writer *key, const void *a,
                          size_t na, trp_values *more)
{
    trp_error err = {0};
    const void *value;
    size_t n;
    int rc = trp_values_begin(more, &err);
    while (rc >= 0 && (rc = trp_values_next(more, &value, &n, &err)) > 0)
        if (emit_pair(f, key, a, na, value, n) < 0)
            return -1;
    return rc < 0 ? failed(f, &err) : 0;
}

static int pair_with_all(struct trp_flow *f, const trp_writer *key, const void *a,
                         size_t na, trp_values *more)
{
    const trp_batch b = trp_writer_batch(&f->group[1]);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < b.count; i++) {
        size_t n;
        const void *value = trp_value(&b, i, &n);
        rc = emit_pair(f, key, a, na, value, n);
    }
    return rc == 0 && more ? pair_with_more(f, key, a, na, more) : rc;
}

/* Streams the left values of the key past the right ones, which are held. */
static int stream_left(struct trp_flow *f, struct trp_wide_side *s,
                       const trp_writer *key, trp_values *more,
                       struct trp_shuffle_record *r)
{
    int rc = 1;
    do {
        if (pair_with_all(f, key, r->value, r->nv, more) < 0)
            return -1;
        rc = trp_flow_side_next(f, s, r);
    } while (rc > 0 && same_key(r, key));
    return rc;
}

/* The values of a key that the other side has not; of the right side with `right`. */
static int stream_alone(struct trp_flow *f, struct trp_wide_side *s,
                        const trp_writer *key, bool right, struct trp_shuffle_record *r)
{
    int rc = 1;
    do {
        int told = right ? emit_pair(f, key, NULL, 0, r->value, r->nv)
                         : emit_pair(f, key, r->value, r->nv, NULL, 0);
        if (told < 0)
            return -1;
        rc = trp_flow_side_next(f, s, r);
    } while (rc > 0 && same_key(r, key));
    return rc;
}

/* Passes over the records of the key. */
static int skip_key(struct trp_flow *f, struct trp_wide_side *s, const trp_writer *key,
                    struct trp_shuffle_record *r)
{
    int rc;
    do
        rc = trp_flow_side_next(f, s, r);
    while (rc > 0 && same_key(r, key));
    return rc;
}

/* ---- two sides ---- */

/* A side's next record, if there is one. */
struct front {
    struct trp_wide_side *side;
    struct trp_shuffle_record r;
    int has;   /* 1, 0 at the end, -1 told */
    bool here; /* the key at hand is its */
};

/* Whose key is the next: both sides' when it is the same. */
static void choose(struct front *a, struct front *b)
{
    int order = 0;
    if (a->has && b->has) {
        size_t n = a->r.nk < b->r.nk ? a->r.nk : b->r.nk;
        order = n ? memcmp(a->r.key, b->r.key, n) : 0;
        if (order == 0)
            order = (a->r.nk > b->r.nk) - (a->r.nk < b->r.nk);
    }
    a->here = a->has && (!b->has || order <= 0);
    b->here = b->has && (!a->has || order >= 0);
}

static void join_key(struct trp_flow *f, const struct trp_wide_plan *p, trp_writer *key,
                     struct front *a, struct front *b)
{
    if (a->here && b->here) {
        trp_values *more = NULL;
        b->has = hold_right(f, b->side, key, &b->r, &more);
        if (b->has >= 0)
            a->has = stream_left(f, a->side, key, more, &a->r);
        if (more)
            f->ret->data.spilled_bytes += trp_values_bytes(more);
        trp_values_free(more);
    } else {
        struct front *one = a->here ? a : b;
        const bool paired = p->join == TRP_OUTER || (a->here && p->join == TRP_LEFT);
        one->has = paired ? stream_alone(f, one->side, key, b->here, &one->r)
                          : skip_key(f, one->side, key, &one->r);
    }
}

/* Takes all values of the key of `r` into `values`; then `r` is the next record: 1, or
 * 0 when there is none. */
static int take_group(struct trp_flow *f, struct trp_wide_side *s,
                      const trp_writer *key, struct trp_key_values *values,
                      struct trp_shuffle_record *r)
{
    const size_t most = bytes_allowed(f) / TRP_SIDES_MAX;
    trp_error err = {0};
    int rc;
    do {
        if (trp_key_values_add(values, f->task.info->map_outputs, most, r->value, r->nv,
                               &err) < 0)
            return failed(f, &err);
        rc = trp_flow_side_next(f, s, r);
    } while (rc > 0 && same_key(r, key));
    f->ret->data.spilled_bytes += trp_key_values_spilled(values);
    return rc;
}

static void call_cogroup(struct trp_flow *f, const struct trp_wide_plan *p,
                         const trp_writer *key, const trp_batch *left,
                         const trp_batch *right)
{
    int rc = ((trp_cogroup_function)p->code)(
        &f->task, key->values.data ? (const void *)key->values.data : "",
        key->values.size, left, right, &f->source, p->arg);
    if (!f->failed && f->source.mistake)
        trp_flow_mistake(f, "%s: %s", p->function, f->source.failed);
    else if (rc != 0)
        trp_flow_fail(f, rc, "function %s returned %d", p->function, rc);
    else if (f->source.failed)
        trp_flow_fail(f, trp_flow_killed(f) ? TRP_ECANCELLED : TRP_EINVAL, "%s: %s",
                      p->function, f->source.failed);
}

static void cogroup_key(struct trp_flow *f, const struct trp_wide_plan *p,
                        trp_writer *key, struct front *a, struct front *b)
{
    struct front *sides[TRP_SIDES_MAX] = {a, b};
    struct trp_key_values values[TRP_SIDES_MAX] = {{.held = &f->group[0]},
                                                   {.held = &f->group[1]}};
    trp_batch batches[TRP_SIDES_MAX];
    trp_error err = {0};
    for (uint32_t k = 0; k < TRP_SIDES_MAX && !f->failed; k++) {
        trp_writer_clear(values[k].held);
        if (sides[k]->here)
            sides[k]->has =
                take_group(f, sides[k]->side, key, &values[k], &sides[k]->r);
        if (!f->failed && trp_key_values_batch(&values[k], &batches[k], &err) < 0)
            failed(f, &err);
    }
    if (!f->failed)
        call_cogroup(f, p, key, &batches[0], &batches[1]);
    if (f->failed || f->enough)
        a->has = -1;
    for (uint32_t k = 0; k < TRP_SIDES_MAX; k++)
        trp_key_values_end(&values[k]);
}

int trp_flow_pairs(struct trp_flow *f, const struct trp_wide_plan *p,
                   struct trp_wide_side *left, struct trp_wide_side *right)
{
    struct front a = {.side = left}, b = {.side = right};
    trp_writer key;
    trp_writer_init(&key);
    a.has = trp_flow_side_next(f, left, &a.r);
    b.has = a.has < 0 ? 0 : trp_flow_side_next(f, right, &b.r);
    while (a.has >= 0 && b.has >= 0 && a.has + b.has > 0) {
        choose(&a, &b);
        if (keep_key(f, &key, a.here ? &a.r : &b.r) < 0)
            a.has = -1;
        else if (p->kind == TRP_WIDE_JOIN)
            join_key(f, p, &key, &a, &b);
        else
            cogroup_key(f, p, &key, &a, &b);
    }
    trp_writer_free(&key);
    return a.has < 0 || b.has < 0 ? -1 : trp_flow_source_end(f);
}
