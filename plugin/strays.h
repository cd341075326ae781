/*
 * What a job has left on a node beside files in its folder: processes and shared
 * memory.
 *
 * Taken for a job's is only what says so in a way that its user cannot forge to the
 * harm of others, and it is ended and removed with that user's rights
 * (plugin/as_user.h).
 */
#ifndef TRP_PLUGIN_STRAYS_H
#define TRP_PLUGIN_STRAYS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A job as a node knows it. */
struct trp_node_job {
    uint32_t id;
    uid_t uid;
    gid_t gid;
    char sluid[24]; /* its unique name, from 26.05 on; "": not known */
};

/* Is a process in one of the job's control groups? */
bool trp_strays_any(const struct trp_node_job *job);

/* Kills all processes of the user in the job's control groups, also those that appear
 * meanwhile, for five seconds at most. To be called when the job is over: Slurm ends
 * what it knows of, but what a slurmstepd leaves that was killed itself lives on. Does
 * nothing where Slurm makes no control groups. */
void trp_strays_kill(const struct trp_node_job *job);

/* Real, effective, saved and file-system user of a process; `process` is open on its
 * folder in /proc. False: it has gone. */
bool trp_process_users(int process, uid_t ret[4]);

/* Removes from `folder`, /dev/shm, the segments of Open MPI of this user that no
 * process of the user has open or mapped. The number of them. */
unsigned trp_shared_memory_remove(const char *folder, uid_t uid, gid_t gid);

#endif
