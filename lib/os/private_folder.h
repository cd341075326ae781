/*
 * Private folders of processes on a host: made in the job's own folder there (the Slurm
 * plugin's), else in /tmp or the like; removed by who made them, and, where that was
 * killed, with the job's folder or by a later process of the same user there. Its entry
 * ".made-by-troupe" marks it, and has the owner in it: a word by which others know for
 * whom it was made, "" where nobody asks.
 *
 *     char mine[TRP_PRIVATE_FOLDER];
 *     trp_private_folder("", mine, &err);
 *     trp_private_folders_sweep(mine);
 */
#ifndef TRP_OS_PRIVATE_FOLDER_H
#define TRP_OS_PRIVATE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"

enum {
    TRP_PRIVATE_FOLDER = 56,
    TRP_PRIVATE_OWNER = 64, /* with the NUL */
};

/* $TROUPE_SCRATCH where it is a folder here, this user's and nobody else's to enter: a
 * job's, or an attempt's of a run that this one is a task of. Else NULL. */
const char *trp_job_folder(void);

/* Makes a folder of nobody else's, 0700, in trp_job_folder(), /tmp, $TMPDIR or
 * /var/tmp, whichever takes it first. Its path is short, since Open MPI's sockets lie
 * in it; on failure it is "". It counts as in use until this process and those forked
 * from it have ended (or called exec). */
int trp_private_folder(const char *owner, char ret_path[TRP_PRIVATE_FOLDER],
                       trp_error *err);

/* Removes the folders beside `path` that this user's processes made in the same way and
 * nobody uses any more. */
void trp_private_folders_sweep(const char *path);
/* The same in a process of its own, which is not waited for: it may be much. */
void trp_private_folders_sweep_aside(const char *path);
/* The same wherever this user's processes make them, until none of these owners uses
 * one any more, or for `wait_ms`. False: some still do. */
bool trp_private_folders_tidy(const char *const *owners, size_t n, unsigned wait_ms);

#endif
