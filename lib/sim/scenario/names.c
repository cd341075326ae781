/*
 * Names as dense numbers: a hash table (uthash) from the name, an array to it.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "sim/scenario/layer.h"

#include <uthash.h>

struct trp_sim_name {
    const char *text;
    int number;
    UT_hash_handle hh;
};

int trp_sim_names_find(const struct trp_sim_names *names, const char *name)
{
    struct trp_sim_name *found;
    HASH_FIND(hh, names->table, name, strlen(name), found);
    return found ? found->number : TRP_ENOENT;
}

int trp_sim_names_add(struct trp_sim_names *names, const char *name)
{
    uint32_t before = HASH_COUNT(names->table);
    if (trp_sim_names_find(names, name) >= 0)
        return TRP_EEXIST;
    struct trp_sim_name *fresh = calloc(1, sizeof(*fresh));
    if (!fresh || !TRP_ARRAY_GROW(names->v, names->n, names->cap)) {
        free(fresh);
        return TRP_ENOMEM;
    }
    fresh->text = name;
    fresh->number = (int)names->n;
    HASH_ADD_KEYPTR(hh, names->table, name, strlen(name), fresh);
    if (HASH_COUNT(names->table) == before) {
        free(fresh);
        return TRP_ENOMEM;
    }
    names->v[names->n++] = name;
    return fresh->number;
}

void trp_sim_names_free(struct trp_sim_names *names)
{
    struct trp_sim_name *name, *next;
    HASH_ITER(hh, names->table, name, next) {
        HASH_DEL(names->table, name);
        free(name);
    }
    free(names->v);
    *names = (struct trp_sim_names){0};
}
