/* The plan of a wide operation in a stage's body. */
#include <stdlib.h>
#include <string.h>

#include "api/wide.h"
#include "core/base/array.h"

static const char *const names[TRP_WIDE_KINDS] = {
    [TRP_WIDE_REDUCE] = "trp_reduce_by_key",
    [TRP_WIDE_COMBINE] = "trp_combine_by_key",
    [TRP_WIDE_GROUP] = "trp_group_by_key",
    [TRP_WIDE_DISTINCT] = "trp_distinct",
    [TRP_WIDE_REPARTITION] = "trp_repartition",
    [TRP_WIDE_SORT] = "trp_sort_by_key",
    [TRP_WIDE_JOIN] = "trp_join",
    [TRP_WIDE_COGROUP] = "trp_cogroup",
    [TRP_WIDE_PARTITION] = "trp_partition_by",
};

const char *trp_wide_name(const struct trp_wide_plan *p)
{
    return names[p->kind];
}

/* Those that want all values of a key, in the order in which they come. */
static bool groups(const struct trp_wide_plan *p)
{
    return p->kind == TRP_WIDE_GROUP || p->kind == TRP_WIDE_JOIN ||
           p->kind == TRP_WIDE_COGROUP;
}

/* The ranges of a sort are found by what is sorted and by how it is. */
bool trp_wide_deals_alike(const struct trp_wide_plan *a, const struct trp_wide_plan *b)
{
    if (a->partitions != b->partitions)
        return false;
    if (groups(a) && groups(b))
        return true;
    return a->kind == b->kind && a->tasked == b->tasked && a->sum == b->sum &&
           a->order == b->order && a->code == b->code && a->arg_size == b->arg_size &&
           (a->arg_size == 0 || memcmp(a->arg, b->arg, a->arg_size) == 0);
}

void trp_wide_plan_put(struct trp_buf *b, const struct trp_wide_plan *p)
{
    trp_put_u8(b, (uint8_t)p->kind);
    trp_put_u8(b, (uint8_t)p->sum);
    trp_put_u8(b, (uint8_t)p->order);
    trp_put_u8(b, (uint8_t)p->join);
    trp_put_u8(b, (uint8_t)p->values);
    trp_put_u8(b, p->tasked);
    trp_put_text(b, p->function);
    trp_put_bytes(b, p->arg, p->arg_size);
    trp_put_bytes(b, p->bounds.data, p->bounds.size);
    trp_put_u32(b, p->partitions);
    trp_put_u8(b, (uint8_t)p->nsides);
    for (uint32_t i = 0; i < p->nsides; i++)
        trp_put_u32(b, p->dataset[i]);
}

/* A copy that is aligned for whatever it is. */
static bool get_copy(struct trp_view *v, const void **ret, size_t *ret_size)
{
    const uint8_t *p = trp_get_bytes(v, ret_size);
    if (v->bad || *ret_size == 0)
        return !v->bad;
    void *copy = malloc(*ret_size);
    if (copy)
        memcpy(copy, p, *ret_size);
    *ret = copy;
    return copy != NULL;
}

static bool get_ranges(struct trp_wide_plan *p)
{
    struct trp_combining none = {0};
    const struct trp_shuffle_order order = trp_wide_order(p, &none);
    bool numbers = order.keys != TRP_KEYS_BYTES;
    struct trp_view v = trp_view_of(p->bounds.data, p->bounds.size);
    uint32_t capacity = 0;
    while (v.at < v.end) {
        if (!TRP_ARRAY_GROW(p->ranges, p->nranges, capacity))
            return false;
        struct trp_wide_key *key = &p->ranges[p->nranges++];
        key->data = trp_get_bytes(&v, &key->size);
        if (v.bad || (numbers && key->size != 8))
            return false;
        key->prefix = trp_shuffle_prefix(&order, key->data, key->size);
    }
    return p->nranges < p->partitions;
}

static bool has_function(const struct trp_wide_plan *p)
{
    return p->kind == TRP_WIDE_COMBINE || p->kind == TRP_WIDE_COGROUP ||
           p->kind == TRP_WIDE_PARTITION || (p->kind == TRP_WIDE_SORT && !p->order);
}

static bool is_possible(const struct trp_wide_plan *p)
{
    unsigned type = p->order & ~(unsigned)TRP_DESCENDING;
    unsigned values = p->values & ~(unsigned)TRP_DESCENDING;
    if (p->kind < TRP_WIDE_REDUCE || p->kind >= TRP_WIDE_KINDS || p->partitions < 1 ||
        (p->kind == TRP_WIDE_REDUCE) != trp_sum_known(p->sum) || type > TRP_F64 ||
        p->join > TRP_OUTER || values > TRP_F64)
        return false;
    bool two = p->kind == TRP_WIDE_JOIN || p->kind == TRP_WIDE_COGROUP;
    if (p->kind == TRP_WIDE_GROUP) /* one, or none */
        return p->nsides == 1;
    return p->nsides == (two ? 2 : 1) && has_function(p) == (*p->function != '\0');
}

bool trp_wide_plan_get(struct trp_view *v, struct trp_wide_plan *ret)
{
    *ret = (struct trp_wide_plan){.kind = (enum trp_wide_kind)trp_get_u8(v)};
    ret->sum = (enum trp_sum)trp_get_u8(v);
    ret->order = trp_get_u8(v);
    ret->join = (enum trp_join)trp_get_u8(v);
    ret->values = trp_get_u8(v);
    ret->tasked = trp_get_flag(v);
    ret->function = trp_get_text(v);
    const void *bounds = NULL;
    bool ok = ret->function && get_copy(v, &ret->arg, &ret->arg_size) &&
              get_copy(v, &bounds, &ret->bounds.size);
    ret->bounds.data = (uint8_t *)(uintptr_t)bounds;
    ret->partitions = trp_get_u32(v);
    ret->nsides = trp_get_u8(v);
    if (!ok || v->bad || !is_possible(ret) || !get_ranges(ret))
        return false;
    for (uint32_t i = 0; i < ret->nsides; i++)
        ret->dataset[i] = trp_get_u32(v);
    return !v->bad;
}

void trp_wide_plan_free(struct trp_wide_plan *p)
{
    free((void *)(uintptr_t)p->function);
    free((void *)(uintptr_t)p->arg);
    free(p->bounds.data);
    free(p->ranges);
    *p = (struct trp_wide_plan){0};
}
