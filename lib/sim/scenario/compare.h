/*
 * Is what was got what a scenario wants?
 *
 * Lists are sets: each wanted entry is matched with one that was got, and none is left
 * over. Of a mapping only the keys are compared that are written. Numbers are equal in
 * any spelling (0.5, 1/2, 5e-1); amounts up to 10^-9. Nothing, 0, false, `none`, an
 * empty list and an empty mapping are all the same to what was not got.
 */
#ifndef TRP_SIM_SCENARIO_COMPARE_H
#define TRP_SIM_SCENARIO_COMPARE_H

#include <jansson.h>
#include <stdbool.h>

#include "conf/yaml.h"

struct trp_sim_compare {
    bool in_order;       /* lists are compared entry by entry */
    bool whole;          /* mappings: no other keys may be there */
    const char *ordered; /* keys below which `in_order` holds; may be NULL */
    const char *wholes;  /* keys below which `whole` holds; may be NULL */
};

/* `got` may be NULL: nothing. Lists of TRP_SIM_EXPECTED entries at most. */
bool trp_sim_matches(const struct trp_yaml_node *wanted, const json_t *got,
                     struct trp_sim_compare how);

/* Does `text` hold `part`, whatever the case of their (ASCII) letters? */
bool trp_sim_contains(const char *text, const char *part);

/* What the file wrote, for a diagnostic; NULL: no memory. */
json_t *trp_sim_json_of(const struct trp_yaml_node *node);

#endif
