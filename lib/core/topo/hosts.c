/*
 * Two name tables (uthash) in front of two plain arrays. Names are never removed: a run
 * sees at most the hosts of its cluster.
 */
#include "core/topo/hosts.h"

#include <stdlib.h>
#include <string.h>

/* uthash's own function takes three times as long for names of this length, and every
 * preference of every task is looked up. */
#include <xxhash.h>
#define HASH_FUNCTION(key, size, ret_hash)                                             \
    ((ret_hash) = (unsigned)XXH3_64bits(key, size))
#include <uthash.h>

#include "core/base/array.h"

struct trp_name_entry {
    uint32_t number;
    UT_hash_handle hh;
    char name[];
};

static uint32_t name_find(const struct trp_name_entry *table, const char *name)
{
    struct trp_name_entry *e;
    HASH_FIND_STR(table, name, e);
    return e ? e->number : TRP_NONE;
}

/* Adds a name; returns the entry's own copy of it, NULL when out of memory. */
static char *name_add(struct trp_name_entry **table, const char *name, uint32_t number)
{
    size_t size = strlen(name) + 1;
    struct trp_name_entry *e = malloc(sizeof(*e) + size);
    if (!e)
        return NULL;
    memcpy(e->name, name, size);
    e->number = number;
    e->hh.tbl = NULL;
    HASH_ADD_STR(*table, name, e);
    if (!e->hh.tbl) {
        free(e);
        return NULL;
    }
    return e->name;
}

static void names_free(struct trp_name_entry **table)
{
    struct trp_name_entry *e, *next;
    HASH_ITER(hh, *table, e, next) {
        HASH_DEL(*table, e);
        free(e);
    }
}

void trp_hosts_free(struct trp_hosts *h)
{
    names_free(&h->host_names);
    names_free(&h->rack_names);
    names_free(&h->known);
    free(h->hosts);
    free(h->racks);
    memset(h, 0, sizeof(*h));
}

static uint32_t rack_intern(struct trp_hosts *h, const char *name)
{
    uint32_t number = name_find(h->rack_names, name);
    if (number != TRP_NONE)
        return number;
    if (!TRP_ARRAY_GROW(h->racks, h->nracks, h->racks_cap))
        return TRP_NONE;
    char *own = name_add(&h->rack_names, name, h->nracks);
    if (!own)
        return TRP_NONE;
    h->racks[h->nracks] = (struct trp_rack){.name = own};
    return h->nracks++;
}

int trp_hosts_know(struct trp_hosts *h, const struct trp_host_rack *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!v[i].host || !v[i].rack || name_find(h->known, v[i].host) != TRP_NONE)
            continue;
        uint32_t r = rack_intern(h, v[i].rack);
        if (r == TRP_NONE || !name_add(&h->known, v[i].host, r))
            return TRP_ENOMEM;
    }
    return 0;
}

uint32_t trp_hosts_intern(struct trp_hosts *h, const char *name, const char *rack)
{
    uint32_t r = rack ? rack_intern(h, rack) : TRP_NONE;
    if (rack && r == TRP_NONE)
        return TRP_NONE;
    uint32_t number = name_find(h->host_names, name);
    if (number != TRP_NONE) {
        if (h->hosts[number].rack.n == TRP_NONE && !h->hosts[number].executors)
            h->hosts[number].rack.n = r;
        return number;
    }
    if (!rack)
        r = name_find(h->known, name);
    if (!TRP_ARRAY_GROW(h->hosts, h->nhosts, h->hosts_cap))
        return TRP_NONE;
    char *own = name_add(&h->host_names, name, h->nhosts);
    if (!own)
        return TRP_NONE;
    h->hosts[h->nhosts] = (struct trp_host){.name = own, .rack = {r}};
    return h->nhosts++;
}
