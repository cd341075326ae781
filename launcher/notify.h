/*
 * `notify` of a pipeline: a command at a run's end that tells somebody.
 */
#ifndef TRP_LAUNCHER_NOTIFY_H
#define TRP_LAUNCHER_NOTIFY_H

#include "events/run_folder.h"

/* Runs `/bin/sh -c COMMAND` in the working folder: the run's summary on its stdin, what it
 * prints on stderr, the run's exit status in TROUPE_STATUS, its folder in TROUPE_RUN_DIR.
 * Returns when it and all that it has started have ended, in the background, too. They have
 * a minute, then they are killed. A command that fails is told on stderr and changes
 * nothing else. */
void trp_notify(const char *command, const trp_run_folder *folder, int status);

#endif
