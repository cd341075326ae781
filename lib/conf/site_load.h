/*
 * What the files of the site reader share; private to lib/conf.
 */
#ifndef TRP_CONF_SITE_LOAD_H
#define TRP_CONF_SITE_LOAD_H

#include "conf/site.h"
#include "conf/yaml.h"

enum { TRP_SITE_IMPLIED_OPTIONS = 3 };

struct trp_site_loading {
    trp_site site; /* first: trp_site_free casts back */
    struct trp_conf_arena arena;
    /* While reading: what `memory:` and `limits:` mean as options. */
    struct trp_pair implied[TRP_SITE_IMPLIED_OPTIONS];
    uint32_t nimplied;
    bool lacks_resources; /* some could not be read: who names one may be right */
};

/* Readers of the top level's keys; `context` is a struct trp_site_loading. */
TRP_YAML_READER(trp_site_read_resources); /* site_resources.c */
TRP_YAML_READER(trp_site_read_local);
TRP_YAML_READER(trp_site_read_routes); /* site_routes.c */
TRP_YAML_READER(trp_site_read_memory); /* site_sections.c */
TRP_YAML_READER(trp_site_read_limits);
TRP_YAML_READER(trp_site_read_racks);
TRP_YAML_READER(trp_site_read_mpi);
TRP_YAML_READER(trp_site_read_nodes);
TRP_YAML_READER(trp_site_read_driver);

/* What needs several keys: a condition or denial of an unknown resource. */
void trp_site_check_routes(trp_yaml *y, const trp_site *s);
void trp_site_check_denied(trp_yaml *y, const trp_site *s);
/* site_shadow.c: warns of the rules that no request reaches. */
void trp_site_warn_shadowed(trp_yaml *y, trp_site *s);

/* Is the key a resource's name? Tells when not. */
bool trp_site_is_resource(trp_yaml *y, const struct trp_yaml_node *key);
/* A word that is handed to Slurm: printable, without blanks, quotes and what a shell
 * takes for more than text. NULL after an error. */
char *trp_site_slurm_word(trp_yaml *y, const struct trp_yaml_node *node,
                          const char *what);
/* The same, for TRP_YAML_INTO: the member is a char *. */
void trp_yaml_into_slurm_word(trp_yaml *y, const struct trp_yaml_key *key,
                              const struct trp_yaml_node *value, void *member);

#endif
