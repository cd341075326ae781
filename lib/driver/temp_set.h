/*
 * The paths of files that are temp, as the log of what is done has them. Such a file is no
 * input whose change counts: it goes, and may be made again, while what was made of it stays.
 *
 *     trp_temp_set_new(cwd, log, &set, &err);
 *     trp_temp_set_drop(set, &inputs);
 *     trp_temp_set_free(set);
 */
#ifndef TRP_DRIVER_TEMP_SET_H
#define TRP_DRIVER_TEMP_SET_H

#include "driver/done_log.h"

typedef struct trp_temp_set trp_temp_set;

/* What the log (NULL: none) has. `base`, which is copied, is where relative paths begin.
 * TRP_ENOMEM. */
int trp_temp_set_new(const char *base, const trp_done_log *log, trp_temp_set **ret,
                     trp_error *err);
void trp_temp_set_free(trp_temp_set *s);
/* Adds those of the files that are temp; as trp_done_log_each calls it. */
void trp_temp_set_add(void *s, const char *stage, uint32_t task,
                      const struct trp_outputs *files);
/* Takes the files out that are in the set; NULL: it is empty. */
void trp_temp_set_drop(const trp_temp_set *s, struct trp_outputs *files);
/* Whether the file is in the set and not there; `s` a trp_temp_set. */
bool trp_temp_set_gone(const void *s, const char *path);

#endif
