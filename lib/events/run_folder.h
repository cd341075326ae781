/*
 * A run's folder: troupe-runs/RUN/ (0700) below the folder where `troupe run` was
 * called.
 *
 *     events.jsonl  logs/STAGE/TASK.ATTEMPT.{out,err}  state/
 *     state/lock    held (flock) by `troupe` while the run goes on
 *     state/run.json  {"run","name","started","ended","status","exit","pid","command"}
 *     state/pids    one line a process: "PID what"
 *     state/pipeline.yaml  the pipeline as it was given, for --resume
 *     state/secret  0600
 *
 * `troupe-runs/last` links to the newest; `troupe-runs/.history/` has the event logs
 * under names that Spark's History Server accepts.
 */
#ifndef TRP_EVENTS_RUN_FOLDER_H
#define TRP_EVENTS_RUN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct trp_run_folder {
    char *name;  /* RUN */
    char *path;  /* absolute */
    char *shown; /* "troupe-runs/RUN", for messages */
    int lock_fd;
} trp_run_folder;

/* Makes troupe-runs/RUN below `base` (absolute). RUN is `run_name` when not NULL
 * (checked: a stage name's characters, TRP_EINVAL; TRP_EEXIST when it is there already:
 * "use --resume or another name"), else APP-YYYYMMDDTHHMMSS-PID with APP cleaned to
 * such characters. TRP_ESYSTEM when it cannot be made (exit 4). Takes the lock, updates
 * `last`. */
int trp_run_folder_new(const char *base, const char *app, const char *run_name,
                       trp_run_folder **ret, trp_error *err);
/* Makes only the folder, for a run that `troupe run --run-name RUN` begins later, so
 * that its job's output has a place before: RUN, malloc'ed, in *ret_name. Codes as
 * above. */
int trp_run_folder_reserve(const char *base, const char *app, const char *run_name,
                           char **ret_name, trp_error *err);
/* Removes it again, unless the run began. */
void trp_run_folder_unreserve(const char *base, const char *name);
/* APP in a run's name, cleaned to a name's characters; `size` cuts it. */
void trp_run_name_clean(const char *app, char *buf, size_t size);
/* The folder of an earlier run, absolute and malloc'ed; without its lock. TRP_EINVAL as
 * below. */
int trp_run_folder_find(const char *base, const char *run, char **ret_path,
                        trp_error *err);
/* Opens an existing one for --resume: a name below base/troupe-runs or a path.
 * TRP_EINVAL when it is not a run folder; TRP_ESTATE when it is still running (its lock
 * is held). */
int trp_run_folder_open(const char *base, const char *run, trp_run_folder **ret,
                        trp_error *err);
void trp_run_folder_free(trp_run_folder *f);

/* Rewrites state/run.json at once (write, rename). status: "running", "succeeded",
 * "failed", "cancelled", "stopped". */
int trp_run_folder_state(trp_run_folder *f, const char *app_name, const char *status,
                         int exit_status, trp_error *err);
/* Adds "PID what" to state/pids (one write, O_APPEND; from any process of the run). */
void trp_run_folder_pid(const char *run_dir, int pid, const char *what);
/* Whether more can be written below it: tries 64 KiB. TRP_ESYSTEM: full, over a quota,
 * gone. */
int trp_run_folder_has_room(const char *run_dir, trp_error *err);

/* The runs below `base`, newest first, for `troupe ls`. A run whose state says
 * "running" but whose lock is free is told as "died". */
struct trp_run_view {
    char *name, *app, *status;
    int64_t started_ms, ended_ms; /* wall clock; 0: not ended */
    int exit_status, pid;
};
int trp_run_folder_list(const char *base, struct trp_run_view **ret, uint32_t *ret_n,
                        trp_error *err);
void trp_run_folder_list_free(struct trp_run_view *v, uint32_t n);

#endif
