/*
 * `profiles:` and `default:` of pipeline and site files.
 */
#ifndef TRP_CONF_PROFILE_SECTION_H
#define TRP_CONF_PROFILE_SECTION_H

#include "conf/yaml.h"

/* A mapping of names to profiles. Whether they are possible is asked later. */
struct trp_profile_section *trp_profile_sections_read(trp_yaml *y,
                                                      const struct trp_yaml_node *node,
                                                      uint32_t *ret_count);

/* One profile, {executor: {…}, task: {…}}; `mark` is the place of its name. */
void trp_profile_section_read(trp_yaml *y, const char *name, struct trp_mark mark,
                              const struct trp_yaml_node *node,
                              struct trp_profile_section *ret);

/* The section of that name, or NULL. */
const struct trp_profile_section *
trp_profile_section_find(const struct trp_profile_section *v, uint32_t n,
                         const char *name);

#endif
