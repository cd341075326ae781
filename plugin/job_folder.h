/*
 * A job's private folder on a node: made before its first step there, removed when it
 * has left the node.
 *
 * Words: PARENT is the site file's `scratch:`. PARENT/jobs/ID is the *folder* of job
 * ID, its owner's alone; PARENT/jobs/going has folders that are being removed. The
 * *record* of a job, RECORDS/ID, is a link to its folder: who has the record needs no
 * site file, and a change of the site file does not lose a folder. A job without a
 * record has nothing here, and that is found out with one call.
 *
 *     trp_scratch_make(TRP_SCRATCH_RECORDS, "/var/lib/troupe", &job, &err);   prolog
 *     trp_scratch_find(TRP_SCRATCH_RECORDS, &job, path);                      steps
 *     trp_scratch_end(TRP_SCRATCH_RECORDS, &job, &err);                       epilog
 *
 * Rights: PARENT, and what is above it, is root's and nobody else's to change but for
 * /tmp-like folders; no link is followed on the way. In jobs and going nobody but root
 * makes, renames or removes an entry. What is in a job's folder is removed with the
 * rights of the folder's owner (plugin/as_user.h).
 *
 * Threads: none. A call may be repeated, and two may run at a time.
 */
#ifndef TRP_PLUGIN_JOB_FOLDER_H
#define TRP_PLUGIN_JOB_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "plugin/strays.h"

#define TRP_SCRATCH_RECORDS "/run/troupe"

/* Makes folder and record. What is there of an earlier start of the job goes; a folder
 * with a record, or of a job of which processes live here, stays as it is. TRP_EINVAL:
 * `parent` is no place for it; TRP_ESYSTEM. */
int trp_scratch_make(const char *records, const char *parent,
                     const struct trp_node_job *job, trp_error *err);

/* Is there a record of the job? */
bool trp_scratch_has(const char *records, const struct trp_node_job *job);

/* TRP_ENOENT: the job has no folder here. */
int trp_scratch_find(const char *records, const struct trp_node_job *job,
                     char ret_path[PATH_MAX]);

/* Ends the job's strays (plugin/strays.h) and removes folder and record. TRP_ENOENT:
 * the job has no record, and nothing is done. TRP_ESYSTEM: not all of the folder could
 * be removed, or not within so many seconds; what is left is in going, out of
 * everybody's reach, and a sweep tries again. */
int trp_scratch_end(const char *records, const struct trp_node_job *job,
                    unsigned seconds, trp_error *err);

/* Whether a job may be on this node; when in doubt it is. */
typedef bool trp_job_here_fn(uint32_t job, void *context);

/* Does the same for jobs with a folder here that are gone: their node or its slurmd
 * died, and no epilog came. Not more often than every quarter of an hour since the node
 * started, and for a few seconds only. */
int trp_scratch_sweep(const char *records, const char *parent, trp_job_here_fn *here,
                      void *context, trp_error *err);

#endif
