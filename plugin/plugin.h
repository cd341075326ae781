/*
 * The SPANK plugin (contract.md, "Slurm plugin"): what the files behind the dispatcher,
 * spank_troupe.c, have in common. The dispatcher alone knows when Slurm calls; each
 * other file knows one concern.
 *
 * Rules for all of it: nothing aborts, exits, prints to stdout, changes a signal or
 * keeps a descriptor open; without a profile nothing is read and nothing is told. A
 * user's words are only taken apart and compared; a user's file is opened by a process
 * of the user alone. In slurmd and slurmstepd what fails is logged, and the job goes
 * on.
 *
 * Threads: none; Slurm calls a plugin from one at a time.
 */
#ifndef TRP_PLUGIN_PLUGIN_H
#define TRP_PLUGIN_PLUGIN_H

#include <limits.h>
#include <slurm/spank.h>
#include <stdbool.h>

#include "core/base/error.h"

enum { TRP_PLUGIN_PROFILE_MAX = 64 };

/* Of one process that Slurm loaded the plugin into. */
struct trp_plugin {
    char site[PATH_MAX];    /* the site file */
    char shapes[PATH_MAX];  /* what `troupe site-shape --all` made of it */
    char command[PATH_MAX]; /* troupe */
    char profile[TRP_PLUGIN_PROFILE_MAX + 1]; /* --stage-profile; "": none */
};

/* The arguments in plugstack.conf: site=FILE, shapes=FILE, troupe=PROGRAM. Fills *ret
 * whatever happens, with the defaults where an argument is wrong or missing.
 * TRP_EINVAL: the first wrong one. */
int trp_plugin_settings(int argc, char **argv, struct trp_plugin *ret, trp_error *err);

/* TRP_ESTATE: this is another Slurm than the plugin was built for (major and minor). */
int trp_plugin_version(spank_t sp, trp_error *err);

#endif
