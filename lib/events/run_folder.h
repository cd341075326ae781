/*
 * A run's folder: RUNS/RUN/ (0700). RUNS, the folder of runs, is troupe-runs below the
 * folder where `troupe run` was called, unless --runs-dir or TROUPE_RUNS names another.
 *
 *     events.jsonl  logs/STAGE/TASK.ATTEMPT.{out,err}  state/
 *     state/lock    held (flock) by `troupe` while the run goes on
 *     state/driver.lock  held (fcntl) by the driver until its process ends
 *     state/run.json  {"run","name","started","ended","status","exit","pid","host",
 *                     "command"}
 *     state/pids    one line a process: "PID what"
 *     state/pipeline.yaml  the pipeline as it was given, for --resume; what it includes in
 *                     state/include.N, in the order in which it was read
 *     state/secret  0600
 *     state/id      how a process that was told of the folder knows it (os/held.h)
 *
 * Both are held as long as a trp_run_folder is there, and used by nobody but their
 * owner: a folder that is a link, another user's or writable for others is refused
 * (TRP_ESYSTEM), with words that say what to do.
 *
 * `RUNS/last` links to the newest, which a run that a task of another in RUNS starts is
 * not; `RUNS/.history/` has the event logs
 * under names that Spark's History Server accepts.
 */
#ifndef TRP_EVENTS_RUN_FOLDER_H
#define TRP_EVENTS_RUN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

#define TRP_RUNS "troupe-runs"

typedef struct trp_run_folder {
    char *runs;  /* RUNS, absolute */
    char *name;  /* RUN */
    char *path;  /* absolute */
    char *shown; /* for messages: trp_run_shown */
    int lock_fd;
} trp_run_folder;

/* RUNS, absolute and malloc'ed: `given` (--runs-dir; NULL: not given), else
 * TROUPE_RUNS, else troupe-runs here. It need not be there. TRP_EINVAL, TRP_ELIMIT. */
int trp_runs_dir(const char *given, char **ret, trp_error *err);
/* A run's folder as messages name it, so that it can be pasted: "troupe-runs/RUN" where
 * that lies in the working folder (or trp_run_read_in's), else its path. Part of
 * `run_dir`, which is absolute. */
const char *trp_run_shown(const char *run_dir);
/* For a process that works elsewhere than its messages are read: of a run that was resumed
 * from `folder`, which is absolute, and borrowed for as long as messages name runs. */
void trp_run_read_in(const char *folder);
/* RUN of a call that a message proposes: its name, or its path where runs are elsewhere.
 * Part of `run_dir`. */
const char *trp_run_called(const char *run_dir);

/* Makes RUNS/RUN. RUN is `run_name` when not NULL (checked: a stage name's characters,
 * TRP_EINVAL; TRP_EEXIST when a run of that name has begun: "use --resume or another
 * name"), else APP-YYYYMMDDTHHMMSS-PID with APP cleaned to such characters. TRP_ESYSTEM
 * when it cannot be made (exit 4). Takes the lock, writes the first state ("running")
 * and updates `last`. */
int trp_run_folder_new(const char *runs, const char *app, const char *run_name,
                       trp_run_folder **ret, trp_error *err);
/* Makes only the folder, for a run that `troupe run --run-name RUN` begins later, so
 * that its job's output has a place before: RUN, malloc'ed, in *ret_name. Codes as
 * above. */
int trp_run_folder_reserve(const char *runs, const char *app, const char *run_name,
                           char **ret_name, trp_error *err);
/* Removes it again, unless the run began. */
void trp_run_folder_unreserve(const char *runs, const char *name);
/* APP in a run's name, cleaned to a name's characters; `size` cuts it. */
void trp_run_name_clean(const char *app, char *buf, size_t size);
/* The folder of an earlier run, absolute and malloc'ed; without its lock, but held
 * until the process ends. TRP_EINVAL as below. */
int trp_run_folder_find(const char *runs, const char *run, char **ret_path,
                        trp_error *err);
/* Opens an existing one for --resume: a name below RUNS or a path.
 * TRP_EINVAL when it is not a run folder or still running (its lock is held);
 * TRP_ESTATE when its driver outlives it and is not gone within 10 s. */
int trp_run_folder_open(const char *runs, const char *run, trp_run_folder **ret,
                        trp_error *err);
/* It is the newest again: `last` links to it, where it lies below RUNS. */
int trp_run_folder_newest(const trp_run_folder *f, trp_error *err);
void trp_run_folder_free(trp_run_folder *f);

/* This process is the run's driver until it ends; its children are not. Waits for the
 * driver of an earlier start: TRP_ESTATE when it is not gone within 10 s. */
int trp_run_folder_drives(const char *run_dir, trp_error *err);
/* Another process is the run's driver. False where the file system has no locks, too. */
bool trp_run_folder_is_driven(const char *run_dir);
/* Rewrites state/run.json at once (write, rename). status: "running", "succeeded",
 * "failed", "cancelled", "stopped". */
int trp_run_folder_state(trp_run_folder *f, const char *app_name, const char *status,
                         int exit_status, trp_error *err);
/* Adds "PID what" to state/pids (one write, O_APPEND; from any process of the run). */
void trp_run_folder_pid(const char *run_dir, int pid, const char *what);
/* Whether more can be written below it: tries 64 KiB. TRP_ESYSTEM: full, over a quota,
 * gone. */
int trp_run_folder_has_room(const char *run_dir, trp_error *err);

/* The runs in RUNS, newest first, for `troupe ls`. A run whose state says
 * "running" but whose lock is free, and whose driver is gone, is told as "died". */
struct trp_run_view {
    char *name, *app, *status;
    char *host;                   /* of its driver; "": not known */
    int64_t started_ms, ended_ms; /* wall clock; 0: not ended */
    int exit_status, pid;
};
/* One of them by its folder's path; `ret` for trp_run_view_clear. False: no run. */
bool trp_run_folder_view(const char *run_dir, struct trp_run_view *ret);
void trp_run_view_clear(struct trp_run_view *v);
/* Its driver's host is this one. */
bool trp_run_is_here(const struct trp_run_view *v);
int trp_run_folder_list(const char *runs, struct trp_run_view **ret, uint32_t *ret_n,
                        trp_error *err);
/* The name, malloc'ed, of another run of that application which goes on in the same RUNS, as
 * RUNS/.history has it; NULL: there is none. */
char *trp_run_folder_other(const trp_run_folder *f, const char *app);
void trp_run_folder_list_free(struct trp_run_view *v, uint32_t n);

#endif
