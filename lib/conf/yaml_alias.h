/*
 * Anchors, aliases and `<<` in a tree (yaml.h): an alias becomes a copy of what its
 * anchor names, `<<` brings the keys of mappings that its own mapping does not have.
 */
#ifndef TRP_CONF_YAML_ALIAS_H
#define TRP_CONF_YAML_ALIAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/arena.h"
#include "conf/yaml.h"

enum { TRP_YAML_COPIED = 64 << 20 }; /* bytes of texts that aliases repeat, at most */

struct trp_yaml_copying {
    struct trp_conf_arena *arena;
    uint32_t *values; /* counted on, up to TRP_YAML_VALUES */
    size_t bytes;
    const char *wrong; /* why a copy was not made; NULL: out of memory */
};

/* A copy of a node and all below it, `depth` levels below the root; texts are shared.
 * NULL: too deep, too large, or out of memory. */
struct trp_yaml_node *trp_yaml_copy(struct trp_yaml_copying *c,
                                    const struct trp_yaml_node *from, uint32_t depth);

/* Is it the key `<<`, without quotes? */
bool trp_yaml_is_merge(const struct trp_yaml_node *key);
/* Puts the pairs of what `<<` names in its place; those that the mapping has itself, or
 * that came with an earlier one of a list, are left out. 0; TRP_ENOMEM; TRP_EINVAL with
 * the node that is no mapping. */
int trp_yaml_merge(struct trp_yaml_node *mapping,
                   const struct trp_yaml_node **ret_wrong);

#endif
