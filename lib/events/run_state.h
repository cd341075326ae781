/* A run's state/run.json: between run_folder.c and run_list.c. */
#ifndef TRP_EVENTS_RUN_STATE_H
#define TRP_EVENTS_RUN_STATE_H

#include "events/run_folder.h"

/* Reads DIR/state/run.json. TRP_ENOENT: there is none, or it is not one of ours.
 * Strings are new. */
int trp_run_state_read(const char *run_dir, struct trp_run_view *ret);

/* An flock that failed with this errno: the file system has no locks. */
bool trp_run_state_no_locks(int code);

#endif
