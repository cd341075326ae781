/* A run's state/run.json: between run_folder.c and run_list.c. */
#ifndef TRP_EVENTS_RUN_STATE_H
#define TRP_EVENTS_RUN_STATE_H

#include "events/run_folder.h"

/* An flock that failed with this errno: the file system has no locks. */
bool trp_run_state_no_locks(int code);

#endif
