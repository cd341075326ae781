/*
 * The pairs of all mappings that a `<<` names are strung behind those of its own and
 * sorted by key and rank: of equal keys the first one stays. O(n log n).
 */
#include "conf/yaml_alias.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"

struct trp_yaml_node *trp_yaml_copy(struct trp_yaml_copying *c,
                                    const struct trp_yaml_node *from, uint32_t depth)
{
    bool deep = depth > TRP_YAML_DEPTH;
    bool many =
        ++*c->values > TRP_YAML_VALUES || (c->bytes += from->size) > TRP_YAML_COPIED;
    c->wrong = deep ? "nested too deeply; at most 32 levels are read"
                    : "aliases make more than 2000000 values or 64 MiB of the file; "
                      "repeat less";
    if (deep || many)
        return NULL;
    struct trp_yaml_node *node = trp_conf_arena_alloc(c->arena, 1, sizeof *node);
    c->wrong = NULL;
    if (!node)
        return NULL;
    *node = *from;
    node->next = node->first = NULL;
    struct trp_yaml_node **to = &node->first;
    for (const struct trp_yaml_node *at = from->first; at; at = at->next) {
        *to = trp_yaml_copy(c, at, depth + 1);
        if (!*to)
            return NULL;
        to = &(*to)->next;
    }
    return node;
}

/* ---- << ---- */

struct ranked {
    struct trp_yaml_node *key;
    uint32_t rank; /* 0: of the mapping itself */
};

struct merging {
    struct ranked *v;
    uint32_t n, capacity, ranks;
};

bool trp_yaml_is_merge(const struct trp_yaml_node *key)
{
    return key->kind == TRP_YAML_SCALAR && key->plain && strcmp(key->text, "<<") == 0;
}

static int by_key_and_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    const struct trp_yaml_node *k = x->key, *l = y->key;
    int order = memcmp(k->text, l->text, k->size < l->size ? k->size : l->size);
    if (order == 0)
        order = (k->size > l->size) - (k->size < l->size);
    return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static bool take_pairs(struct merging *m, struct trp_yaml_node *mapping, uint32_t rank)
{
    for (struct trp_yaml_node *key = mapping->first; key; key = key->next->next) {
        if (rank == 0 && trp_yaml_is_merge(key))
            continue;
        if (!TRP_ARRAY_GROW(m->v, m->n, m->capacity))
            return false;
        m->v[m->n++] = (struct ranked){key, rank};
    }
    return true;
}

static int take_merged(struct merging *m, struct trp_yaml_node *value,
                       const struct trp_yaml_node **ret_wrong)
{
    bool list = value->kind == TRP_YAML_LIST;
    for (struct trp_yaml_node *at = list ? value->first : value; at;
         at = list ? at->next : NULL) {
        if (at->kind != TRP_YAML_MAPPING) {
            *ret_wrong = at;
            return TRP_EINVAL;
        }
        if (!take_pairs(m, at, ++m->ranks))
            return TRP_ENOMEM;
    }
    return 0;
}

static int by_rank_and_place(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return trp_mark_before(x->key->mark, y->key->mark) ? -1 : 1;
}

/* Leaves out what an earlier rank has, and strings the rest together again. */
static void string_together(struct merging *m, struct trp_yaml_node *mapping)
{
    uint32_t kept = 0;
    if (m->n > 1)
        qsort(m->v, m->n, sizeof *m->v, by_key_and_rank);
    for (uint32_t i = 0; i < m->n; i++) {
        const struct trp_yaml_node *a = kept ? m->v[kept - 1].key : NULL;
        const struct trp_yaml_node *b = m->v[i].key;
        bool same = a && a->kind == TRP_YAML_SCALAR && b->kind == TRP_YAML_SCALAR &&
                    a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
        if (!same || m->v[i].rank == 0) /* one that stands twice is told as such */
            m->v[kept++] = m->v[i];
    }
    if (kept > 1)
        qsort(m->v, kept, sizeof *m->v, by_rank_and_place);
    struct trp_yaml_node **to = &mapping->first;
    for (uint32_t i = 0; i < kept; i++) {
        *to = m->v[i].key;
        to = &m->v[i].key->next->next;
    }
    *to = NULL;
    mapping->count = kept;
}

int trp_yaml_merge(struct trp_yaml_node *mapping,
                   const struct trp_yaml_node **ret_wrong)
{
    struct merging m = {0};
    int r = take_pairs(&m, mapping, 0) ? 0 : TRP_ENOMEM;
    for (struct trp_yaml_node *key = mapping->first; key && r == 0;
         key = key->next->next)
        if (trp_yaml_is_merge(key))
            r = take_merged(&m, key->next, ret_wrong);
    if (r == 0)
        string_together(&m, mapping);
    free(m.v);
    return r;
}
