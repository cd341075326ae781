/*
 * The event log of a run: JSON lines with Spark's event and field names, so that
 * Spark's History Server and the tools around it open a run; what Spark has no event
 * for is added under names of our own (`Troupe…`).
 *
 * Written by a thread of its own: a call puts a small record into a ring and returns.
 * The file is flushed at least once a second and readable after a crash (whole lines).
 * When tasks end faster than they can be written (`events.tasks=auto`), a stage's
 * further task events are summarised as one `TroupeTaskSummary` (counts, quantiles,
 * executors; failures in full) and the log says so; `all` makes the caller wait
 * instead, `summary` summarises from the start. Nothing is lost in silence.
 *
 * Also keeps what the closing summary needs, exactly, whatever is written.
 *
 * Times passed in are wall-clock ns (CLOCK_REALTIME); the log writes ms as Spark does.
 * Threads: calls from one thread at a time.
 */
#ifndef TRP_EVENTS_EVENT_LOG_H
#define TRP_EVENTS_EVENT_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/bytes.h"
#include "core/base/ends.h"
#include "core/base/error.h"
#include "core/engine.h"
#include "core/profile/profile.h"

typedef struct trp_event_log trp_event_log;
struct trp_statistics;

enum trp_events_tasks { TRP_EVENTS_AUTO, TRP_EVENTS_ALL, TRP_EVENTS_SUMMARY };

struct trp_event_log_config {
    const char *file;   /* RUN/events.jsonl; appended to (a resumed run goes on) */
    const char *app_id; /* "app-YYYYMMDDHHMMSS-PID" */
    const char *app_name;
    const char *user;
    enum trp_events_tasks tasks;
    const char *history_dir; /* troupe-runs/.history: the link APPID.inprogress is made
                              * here, renamed APPID at the end; NULL: none */
    int64_t wait_ns;         /* for room on a disk that is full; 0: it fails at once */
};
/* Starts the writer thread; writes LogStart. TRP_ESYSTEM with the path when it cannot.
 */
int trp_event_log_new(const struct trp_event_log_config *config, trp_event_log **ret,
                      trp_error *err);

void trp_event_application_start(trp_event_log *l, int64_t at);
/* SparkListenerEnvironmentUpdate with our options under "Spark Properties"; pairs. */
void trp_event_environment(trp_event_log *l, const char *const *keys,
                           const char *const *values, uint32_t n);
void trp_event_profile(trp_event_log *l, const struct trp_resource_profile *p);

/* A dataset that is kept; `cached` of its partitions are somewhere. */
struct trp_event_kept {
    uint32_t dataset, partitions, cached;
    unsigned level;
    const char *name;
};
struct trp_event_stage {
    trp_stage_id stage;
    uint32_t attempt;
    uint32_t retry; /* of the attempts before it: how many this run made */
    const char *name;
    uint32_t ntasks; /* 0 with `tasks_known` false: written as 0 */
    trp_profile_id profile;
    const trp_stage_id *parents;
    uint32_t nparents;
    bool map; /* its tasks leave map outputs */
    bool gang;
    const char *pool;                  /* NULL: it names none */
    const struct trp_event_kept *kept; /* datasets of its chain that are kept */
    uint32_t nkept;
};
/* What has become of a kept partition on an executor. `level`: memory is 1, disk 2. */
struct trp_event_block {
    trp_executor_id executor;
    const char *host;
    uint32_t dataset, partition;
    trp_attempt_id attempt; /* that caused it; UINT64_MAX: none did */
    unsigned level;
    bool there;
    uint64_t memory, disk; /* bytes */
};
void trp_event_block(trp_event_log *l, const struct trp_event_block *b, int64_t at);
struct trp_event_job {
    trp_job_id job;
    const char *name, *pool; /* NULL: none */
};
void trp_event_job_start(trp_event_log *l, const struct trp_event_job *job, int64_t at,
                         const struct trp_event_stage *stages, uint32_t nstages);
void trp_event_stage_submitted(trp_event_log *l, const struct trp_event_stage *s,
                               int64_t at);
/* `p`: for the seconds held, and how many devices it has; `resources`: their addresses. */
/* An executor is asked for: TroupeExecutorAsked, {"Executor ID":…,"Resource Profile
 * Id":…,"Timestamp":…}; and it never came: TroupeExecutorDropped, {"Executor ID":…,
 * "Timestamp":…}. */
void trp_event_executor_asked(trp_event_log *l, trp_executor_id e, trp_profile_id p,
                              int64_t at);
void trp_event_executor_dropped(trp_event_log *l, trp_executor_id e, int64_t at);
void trp_event_executor_added(trp_event_log *l, trp_executor_id e, const char *host,
                              const struct trp_resource_profile *p,
                              const struct trp_resource_addresses *resources,
                              uint32_t nresources, int64_t requested, int64_t at);
void trp_event_executor_removed(trp_event_log *l, trp_executor_id e, const char *reason,
                                int64_t at);
/* The executor now serves another profile (alloc.reuse): TroupeExecutorRelabelled. */
void trp_event_executor_relabelled(trp_event_log *l, trp_executor_id e,
                                   const struct trp_resource_profile *p, int64_t at);
/* What a task that succeeded added to an accumulator, and what that has come to. */
struct trp_event_update {
    uint32_t id; /* from 1 */
    const char *name;
    int64_t update, value;
};
/* Launch and end of one attempt, told when it has ended. */
/* The map output that a task could not fetch. */
struct trp_event_fetch {
    uint32_t shuffle, map_index;
    trp_attempt_id map;       /* that made it */
    trp_executor_id executor; /* that should have it; n == TRP_NONE: nobody, by then */
    const char *host;         /* "" unknown */
};

struct trp_event_task {
    const struct trp_action *verdict; /* kind TRP_ACTION_TASK_END */
    const struct trp_end *end; /* metrics; NULL for one whose executor was lost */
    int64_t launched, ended;   /* wall clock */
    const char *host;          /* "" unknown */
    const struct trp_resource_profile *profile;
    uint32_t ranks;     /* gang, else 0 */
    const char *reason; /* contract's words: "exit status 3"; "" success */
    const struct trp_event_fetch *fetch; /* of a fetch failure, else NULL */
    const struct trp_event_update *updates;
    uint32_t nupdates;
    const struct trp_event_block *blocks; /* that it caused */
    uint32_t nblocks;
};
void trp_event_task_started(trp_event_log *l, trp_stage_id stage,
                            const struct trp_action *launch, const char *host,
                            int64_t at);
void trp_event_task_ended(trp_event_log *l, const struct trp_event_task *t);
/* What its tasks that are still to begin wait for now: TroupeStageWaits, {"Stage ID":…,
 * "Stage Attempt ID":…,"Reason":trp_wait_name,"Timestamp":…}; "nothing" from the
 * attempt's beginning on. */
void trp_event_stage_waits(trp_event_log *l, trp_stage_id stage, enum trp_wait what,
                           int64_t at);
/* A task that the run gives up: it failed for good, or is skipped, since what it comes
 * after was given up. */
struct trp_event_given_up {
    trp_stage_id stage;
    uint32_t task;
    trp_stage_id parent;  /* skipped: whose … n == TRP_NONE: it failed */
    uint32_t parent_task; /* … task was given up */
    const char *item;     /* any bytes; NULL: it has none */
    size_t item_size;
    /* Failed: */
    uint32_t failures;
    const char *reason; /* the contract's words */
    const char *log;    /* of the last attempt, from the run's folder; NULL: it printed
                         * nothing */
};
/* TroupeTaskGivenUp, or TroupeTaskSkipped. */
void trp_event_task_given_up(trp_event_log *l, const struct trp_event_given_up *t,
                             int64_t at);
/* The stage's attempt came to nothing: another one follows, or the stage's end. */
void trp_event_stage_retried(trp_event_log *l, trp_stage_id stage, const char *failure,
                             int64_t at);
void trp_event_stage_ended(trp_event_log *l, trp_stage_id stage,
                           enum trp_outcome outcome, const char *failure, int64_t at);
/* The names of its tasks, once (task_names.h): `name` appends that of a task, or says that
 * it has none; then nothing more is told. */
void trp_event_task_names(trp_event_log *l, trp_stage_id stage, uint32_t ntasks,
                          bool (*name)(void *context, uint32_t task, struct trp_buf *b),
                          void *context, int64_t at);
/* Nothing more is told of it. */
void trp_event_stage_forgotten(trp_event_log *l, trp_stage_id stage);
void trp_event_job_end(trp_event_log *l, trp_job_id job, enum trp_outcome outcome,
                       const char *failure, int64_t at);
/* So many nodes of Slurm's are held from now on: TroupeNodes. */
void trp_event_nodes(trp_event_log *l, uint32_t nodes, int64_t at);
/* So many map outputs were moved from a host to the run's folder: TroupeOutputsMoved,
 * {"Host":…,"Outputs":…,"Bytes":…,"Move Time":…,"Timestamp":…}; the time in ms. */
void trp_event_outputs_moved(trp_event_log *l, const char *host, uint32_t outputs,
                             uint64_t bytes, int64_t took_ns, int64_t at);
/* An additional Slurm job is in the queue: TroupeSlurmJobQueued, {"Job ID":…,"Resource
 * Profile Id":…,"Submission Time":…,"Timestamp":…}. */
void trp_event_slurm_queued(trp_event_log *l, uint32_t job, trp_profile_id p,
                            int64_t asked, int64_t at);
/* A Slurm job is the run's: TroupeSlurmJob, {"Job ID":…,"Further":…,"Timestamp":…}; of an
 * additional one also when it was asked for and has begun: "Submission Time", "Start
 * Time". */
void trp_event_slurm_job(trp_event_log *l, uint32_t job, bool additional, int64_t asked,
                         int64_t started, int64_t at);
/* An additional one has ended: TroupeSlurmJobEnded, {"Job ID":…,"End Time":…,
 * "Timestamp":…}. */
void trp_event_slurm_ended(trp_event_log *l, uint32_t job, int64_t ended, int64_t at);
/* A step of it begins, for executor `id` or a gang's attempt of that number:
 * TroupeSlurmStep, {"Job ID":…,"Step Name":…,"Executor ID" or "Task ID":…,
 * "Timestamp":…}. */
void trp_event_slurm_step(trp_event_log *l, uint32_t job, const char *name, bool gang,
                          uint32_t id, int64_t at);
/* What was asked of Slurm: TroupeSlurmCosts, {"RPCs":…,"Sruns":…,"Srun RPCs":…}, and
 * told in the summary. `srun_rpcs` is an estimate. */
void trp_event_slurm_costs(trp_event_log *l, uint64_t rpcs, uint64_t sruns,
                           uint64_t srun_rpcs, int64_t at);
/* A line of our own: {"Event":"TroupeMessage","Level":…,"Text":…,"Timestamp":…}. */
void trp_event_message(trp_event_log *l, const char *level, const char *text,
                       int64_t at);

/* Ends the log: everything is on disk when it returns. TRP_ESYSTEM when something could
 * not be written (full disk): what is there is whole lines. Does not free. */
int trp_event_log_end(trp_event_log *l, int64_t at, int exit_code, trp_error *err);
/* Whether it waits for room on a full disk, as `err` says; once. */
bool trp_event_log_waits(trp_event_log *l, trp_error *err);
/* A write has failed (disk full): the run should end. Cheap, any time. */
bool trp_event_log_failed(const trp_event_log *l, trp_error *err);
void trp_event_log_free(trp_event_log *l);

/* The closing summary: per stage tasks, attempts, failures, wall time, task time median
 * and max, core-seconds held and used, device-seconds held and used; totals; where logs
 * and events lie. Seconds held: an executor counts for the stage whose tasks ran there
 * last, from when it came (or was taken over) until it went (or was taken over).
 * `logs`: there are logs. */
void trp_event_summary_print(const trp_event_log *l, FILE *out, const char *run_dir,
                             bool logs);
/* What that is made of, as it is now; the log's. */
const struct trp_statistics *trp_event_log_statistics(const trp_event_log *l);

/* How an attempt ended in the contract's words: "exit status 37", "killed by SIGSEGV
 * (11)", "timed out after 1s", "killed for memory (limit 512 MiB, peak 530 MiB)", "lost
 * its executor"; "" for success. `timeout_ns` of its stage. Returns buf. */
char *trp_end_reason(const struct trp_action *verdict, const struct trp_end *end,
                     int64_t timeout_ns, char *buf, size_t size);

/* "failed once, with" or "failed once:", "failed 4 times, last with" or "failed 4 times,
 * last:": what stands before `reason`, a text of trp_end_reason. Returns buf. */
char *trp_failed_text(uint32_t times, const char *reason, char *buf, size_t size);

#endif
