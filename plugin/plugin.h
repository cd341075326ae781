/*
 * The SPANK plugin (contract.md, "Slurm plugin"): what the files behind the dispatcher,
 * spank_troupe.c, have in common. The dispatcher alone knows when Slurm calls; each
 * other file knows one concern.
 *
 * Rules for all of it: nothing aborts, exits, prints to stdout, changes a signal or
 * keeps a descriptor open; without a profile, or `scratch:` in the site file, nothing
 * is done and nothing is told. A user's words are only taken apart and compared; a
 * user's file is opened by a process of the user alone. In slurmd and slurmstepd what
 * fails is logged, and the job goes on.
 *
 * Threads: none; Slurm calls a plugin from one at a time.
 */
#ifndef TRP_PLUGIN_PLUGIN_H
#define TRP_PLUGIN_PLUGIN_H

#include <limits.h>
#include <sched.h>
#include <slurm/spank.h>
#include <stdbool.h>

#include "core/base/error.h"
#include "core/profile/profile.h"

/* All are bound when the plugin is loaded (-z now), and no program that loads it has all
 * of them: what it lacks may not be an error then. */
#pragma weak slurm_error
#pragma weak spank_context
#pragma weak spank_get_item
#pragma weak spank_getenv
#pragma weak spank_option_register
#pragma weak spank_setenv
#pragma weak spank_strerror
#pragma weak spank_unsetenv

/* Where the shapes are, for the cli_filter of the same srun, sbatch or salloc. */
#define TRP_PLUGIN_SHAPES "TROUPE_SHAPES"

/* Of one process that Slurm loaded the plugin into. */
struct trp_plugin {
    char site[PATH_MAX];    /* the site file */
    char shapes[PATH_MAX];  /* what `troupe site-shape --all` made of it (shapes.h) */
    char command[PATH_MAX]; /* troupe; by itself the one that the plugin came with */
    char profile[TRP_PROFILE_NAME_MAX + 1]; /* --stage-profile; "": none */
};

/* The arguments in plugstack.conf: site=FILE, shapes=FILE, troupe=PROGRAM. Fills *ret
 * whatever happens, with the defaults where an argument is wrong or missing.
 * TRP_EINVAL: the first wrong one. */
int trp_plugin_settings(int argc, char **argv, struct trp_plugin *ret, trp_error *err);

/* TRP_ESTATE: this is another Slurm than the plugin was built for (major and minor). */
int trp_plugin_version(spank_t sp, trp_error *err);

/* ---- in srun, sbatch and salloc: a user's process ---- */

/* Takes --stage-profile=NAME. TRP_EINVAL: it is no name; TRP_ENOENT: none of the
 * site's, with those there are; TRP_ENEVER: the site does not allow it; TRP_ESTATE:
 * nobody would give the job that shape, since slurm.conf has no cli_filter/lua; or what
 * trp_shapes_find returns. */
int trp_plugin_profile(struct trp_plugin *p, const char *name, trp_error *err);

/* The same where it comes from the job that this process is in, or with a job to a
 * node: it is taken as it is when it is a name. */
int trp_plugin_profile_inherited(struct trp_plugin *p, const char *name,
                                 trp_error *err);

/* Whether the environment has a profile of the job that this process is in. */
bool trp_plugin_inherits(void);
/* From now on it has not, nor the pipeline, nor what tasks of that profile are told. */
void trp_plugin_disinherit(void);

/* Takes --stage-pipeline=FILE: `troupe submit --print` reads it, in a process of its
 * own, and says on stderr what is wrong. The code is that of its exit status;
 * TRP_ESYSTEM: it does not run at all. */
int trp_plugin_pipeline(const struct trp_plugin *p, const char *file, trp_error *err);

/* ---- in slurmd's prolog and epilog: root's process ---- */

/* The job that is about to start on this node gets a folder, when the site has
 * `scratch:`; what jobs have left here that are gone is removed (plugin/job_folder.h).
 */
int trp_plugin_prolog(spank_t sp, const struct trp_plugin *p, trp_error *err);

struct trp_plugin_asking {
    uint32_t own; /* the job whose prolog this is */
    bool silent;  /* slurmctld did not answer, and is not asked again */
};
/* Whether slurmctld knows a job that may be on this node, $SLURMD_NODENAME; when it
 * does not answer it may. One that waits to start again may not. `context` is a struct
 * trp_plugin_asking. */
bool trp_plugin_job_here(uint32_t id, void *context);

/* Removes what a job that has such a folder leaves on this node. */
int trp_plugin_epilog(spank_t sp, trp_error *err);

/* ---- in slurmstepd, as the user, once a step ---- */

/* Gives its tasks TROUPE_SCRATCH, the job's folder, when it has one. */
int trp_plugin_scratch(spank_t sp, trp_error *err);

/* ---- in slurmstepd, as the user, before the task's program ---- */

/* Gives the task TROUPE_PROFILE and TROUPE_RESOURCE_*, and binds this process near its
 * devices. What cannot be done is in `err` (the first of it); the rest is done. */
int trp_plugin_step(spank_t sp, const struct trp_plugin *p, trp_error *err);

/* The CPUs near devices: `ids` are those of Slurm ("0,2"), `root` is "" but in tests.
 * False: at least one device is not known to the system. */
bool trp_plugin_near(const char *root, const char *ids, cpu_set_t *ret);

/* "0-3,8": of the system's files; false: it is no such list. CPUs that a cpu_set_t
 * cannot hold are left out. */
bool trp_plugin_cpu_list(const char *text, cpu_set_t *ret);

#endif
