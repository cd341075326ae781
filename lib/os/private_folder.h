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
#include <stdint.h>

#include "core/base/error.h"

enum {
    TRP_PRIVATE_FOLDER = 56,
    TRP_PRIVATE_OWNER = 128, /* with the NUL */
    TRP_RUN_FILES = 4300,
    TRP_RUN_FILES_KEY = 6,
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

/* Removes it with all that is in it. False: something could not be removed; it is
 * removed with the folders that are not used any more, when that can be. The same holds
 * when this process is killed meanwhile. */
bool trp_private_folder_remove(const char *path);
/* The same for one in the folder `at`, looking at no more than *budget entries. */
bool trp_private_folder_remove_at(int at, const char *name, size_t *budget);

/* Removes the memory groups of executors (os/cgroup.h) that are named by the folder, with
 * who is in them. */
void trp_private_folder_end_groups(const char *path);

/* Makes one for a process of a run in the folder `parent`, which may lie on a file
 * system that other hosts see: nobody there removes it while the run goes on. Returns
 * its descriptor: the folder is in use for as long as that is open. ret_path has `size`
 * bytes, and is set once the folder is there. -1 with errno. */
int trp_private_folder_in(const char *parent, const char *run_dir, char *ret_path,
                          size_t size);
/* Removes those in `parent` that nobody uses: of runs that are over, and those that the
 * run `run_dir` (NULL: none) has made on this host. */
void trp_private_folders_sweep_in(const char *parent, const char *run_dir);

/* What all processes of a run share on this host: a folder that stays when the last of
 * them has ended, since others of the run may come. It goes with the run: by who leaves
 * it last then, by trp_private_folders_tidy, or, where nobody was left for that, as
 * private folders do. */
struct trp_run_files {
    char path[TRP_RUN_FILES]; /* "": none */
    int lock;                 /* shared, for as long as it is used */
};

/* Makes or enters it, in `parent` or, where that is "", where private folders are. All
 * who say the same find the same: its name is made of `key`, TRP_RUN_FILES_KEY bytes
 * that others do not know. `owner` is who it is tidied up for; `run_dir` the run's
 * folder: nobody else removes it while the lock of that is held. TRP_ESYSTEM; then
 * ret->path is "". */
int trp_run_files_enter(const char *parent, const uint8_t *key, const char *owner,
                        const char *run_dir, struct trp_run_files *ret, trp_error *err);
/* Enters the one that is there, made for that owner, for who does not know the key.
 * TRP_ENOENT: there is none. */
int trp_run_files_find(const char *parent, const char *owner, struct trp_run_files *ret,
                       trp_error *err);
/* Does not use it any more. `over`: nor does anybody else of the run, soon. Then the
 * last one removes it: true, it is gone. */
bool trp_run_files_leave(struct trp_run_files *f, bool over);

/* Removes the folders beside `path` that this user's processes made in the same way and
 * nobody uses any more, each with the memory groups that are named by it
 * (os/cgroup.h), once these are empty. */
void trp_private_folders_sweep(const char *path);
/* The same in a process of its own, which is not waited for: it may be much. */
void trp_private_folders_sweep_aside(const char *path);
/* The same wherever this user's processes make them, until none of these owners uses
 * one any more, or for `wait_ms`. An owner that begins with "/" is a further folder to
 * look in. False: some still do. */
bool trp_private_folders_tidy(const char *const *owners, size_t n, unsigned wait_ms);

#endif
