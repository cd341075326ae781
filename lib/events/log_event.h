/*
 * Reading an event log: line by line, only the events that somebody wants, each decoded
 * once for all who do. A last line that a crash has left unfinished is skipped.
 *
 *     static trp_log_take *const take[TRP_LOG_EVENTS] = {
 *         [TRP_LOG_TASK_END] = take_end};
 *     const struct trp_log_reader mine = {.take = take, .context = &my};
 *     trp_log_events_read("troupe-runs/last/events.jsonl", &mine, 1, &err);
 *
 * What is not there, or is nothing of its type, is TRP_NONE (ID), 0, NULL or false.
 */
#ifndef TRP_EVENTS_LOG_EVENT_H
#define TRP_EVENTS_LOG_EVENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/ids.h"
#include "events/flow.h"

/* A line an event: its kind, its word in the log, the object there that has its fields
 * (NULL: the event itself), and which of these is its time. */
#define TRP_LOG_KINDS(X)                                                               \
    X(START, "SparkListenerLogStart", NULL, "Timestamp")                               \
    X(APPLICATION, "SparkListenerApplicationStart", NULL, "Timestamp")                 \
    X(APPLICATION_END, "SparkListenerApplicationEnd", NULL, "Timestamp")               \
    X(PROFILE, "SparkListenerResourceProfileAdded", NULL, "Timestamp")                 \
    X(JOB, "SparkListenerJobStart", NULL, "Submission Time")                           \
    X(JOB_END, "SparkListenerJobEnd", NULL, "Completion Time")                         \
    X(STAGE, "SparkListenerStageSubmitted", "Stage Info", "Submission Time")           \
    X(STAGE_END, "SparkListenerStageCompleted", "Stage Info", "Completion Time")       \
    X(STAGE_SKIPPED, "TroupeStageSkipped", NULL, "Timestamp")                          \
    X(STAGE_WAITS, "TroupeStageWaits", NULL, "Timestamp")                              \
    X(EXECUTOR, "SparkListenerExecutorAdded", "Executor Info", "Timestamp")            \
    X(EXECUTOR_END, "SparkListenerExecutorRemoved", NULL, "Timestamp")                 \
    X(EXECUTOR_ASKED, "TroupeExecutorAsked", NULL, "Timestamp")                        \
    X(EXECUTOR_DROPPED, "TroupeExecutorDropped", NULL, "Timestamp")                    \
    X(EXECUTOR_RELABELLED, "TroupeExecutorRelabelled", NULL, "Timestamp")              \
    X(TASK, "SparkListenerTaskStart", "Task Info", "Launch Time")                      \
    X(TASK_END, "SparkListenerTaskEnd", "Task Info", "Finish Time")                    \
    X(TASK_GIVEN_UP, "TroupeTaskGivenUp", NULL, "Timestamp")                           \
    X(TASK_SKIPPED, "TroupeTaskSkipped", NULL, "Timestamp")                            \
    X(TASK_NAMES, "TroupeTaskNames", NULL, "Timestamp")                                \
    X(SUMMARY_BEGIN, "TroupeTaskSummaryBegin", NULL, "Timestamp")                      \
    X(SUMMARY, "TroupeTaskSummary", NULL, "Timestamp")                                 \
    X(NODES, "TroupeNodes", NULL, "Timestamp")                                         \
    X(MOVED, "TroupeOutputsMoved", NULL, "Timestamp")                                  \
    X(COSTS, "TroupeSlurmCosts", NULL, "Timestamp")                                    \
    X(SLURM_JOB, "TroupeSlurmJob", NULL, "Timestamp")                                  \
    X(SLURM_QUEUED, "TroupeSlurmJobQueued", NULL, "Timestamp")                         \
    X(SLURM_ENDED, "TroupeSlurmJobEnded", NULL, "Timestamp")                           \
    X(SLURM_STEP, "TroupeSlurmStep", NULL, "Timestamp")                                \
    X(MESSAGE, "TroupeMessage", NULL, "Timestamp")

enum trp_log_kind {
#define TRP_LOG_KIND(kind, ...) TRP_LOG_##kind,
    TRP_LOG_KINDS(TRP_LOG_KIND)
#undef TRP_LOG_KIND
        TRP_LOG_EVENTS
};

/* A line a field: the events that have it, the object it is in there (log_event.c), its
 * type, its member below, and its name in the log. One of INFO that is not in that
 * object is looked for in the event itself. */
#define TRP_LOG_FIELDS(X)                                                              \
    X(RUN, SELF, TEXT, app_name, "App Name")                                           \
    X(RUN, SELF, TEXT, app_id, "App ID")                                               \
    X(RUN, SELF, TIME, first, "Timestamp")                                             \
    X(RUN, SELF, JSON, resumed, "Troupe Resumed")                                      \
    X(RUN, SELF, INT, exit_status, "ExitCode")                                         \
    X(RUN, PAST, TEXT, past_app_id, "App ID")                                          \
    X(RUN, PAST, TIME, past_started, "Started")                                        \
    X(RUN, PAST, ID, next_job, "Job")                                                  \
    X(RUN, PAST, ID, next_executor, "Executor")                                        \
    X(RUN, PAST, ID, next_task, "Task")                                                \
    X(RUN, PAST, ID, next_stage_attempt, "Stage Attempt")                              \
    X(PROFILE | STAGES | EXECUTORS | SLURM, INFO, ID, profile, "Resource Profile Id")  \
    X(PROFILE, SELF, TEXT, profile_name, "Troupe Profile Name")                        \
    X(PROFILE, SELF, COUNT, slots, "Troupe Slots")                                     \
    X(PROFILE, SELF, JSON, executor_requests, "Executor Resource Requests")            \
    X(PROFILE, SELF, JSON, task_requests, "Task Resource Requests")                    \
    X(JOBS | SLURM, SELF, ID, job, "Job ID")                                           \
    X(JOBS, SELF, JSON, stages, "Stage IDs")                                           \
    X(JOBS, SELF, JSON, stage_infos, "Stage Infos")                                    \
    X(JOBS, PROPERTIES, TEXT, description, "spark.job.description")                    \
    X(JOBS | STAGES, PROPERTIES, TEXT, pool, "spark.scheduler.pool")                   \
    X(JOBS, RESULT, TEXT, result, "Result")                                            \
    X(JOBS, SELF, TEXT, job_outcome, "Troupe Outcome")                                 \
    X(STAGES | TASKS | LOST | SUMS | NAMES, INFO, ID, stage, "Stage ID")               \
    X(STAGES | TASKS | SUMS, INFO, ID, stage_attempt, "Stage Attempt ID")              \
    X(STAGES, INFO, TEXT, stage_name, "Stage Name")                                    \
    X(STAGES, INFO, COUNT, ntasks, "Number of Tasks")                                  \
    X(STAGES, INFO, JSON, parents, "Parent IDs")                                       \
    X(STAGES, INFO, JSON, accumulables, "Accumulables")                                \
    X(STAGES, INFO, TEXT, failure, "Failure Reason")                                   \
    X(STAGES, SELF, TEXT, outcome, "Outcome")                                          \
    X(EXECUTORS | TASKS | SLURM, INFO, TEXT, executor_name, "Executor ID")             \
    X(EXECUTORS | TASKS, INFO, TEXT, host, "Host")                                     \
    X(EXECUTORS, INFO, TIME, requested, "Request Time")                                \
    X(EXECUTORS, INFO, INT, cores, "Total Cores")                                      \
    X(EXECUTORS, INFO, JSON, resources, "Resources")                                   \
    X(EXECUTORS, SELF, TEXT, removed, "Removed Reason")                                \
    X(TASKS | SLURM, INFO, ID, task_id, "Task ID")                                     \
    X(TASKS, INFO, COUNT, task, "Index")                                               \
    X(TASKS, INFO, COUNT, attempt, "Attempt")                                          \
    X(TASKS, INFO, TEXT, level_name, "Locality")                                       \
    X(TASKS, INFO, TRUE, copy, "Speculative")                                          \
    X(TASKS, INFO, TIME, launched, "Launch Time")                                      \
    X(TASKS, SELF, COUNT, ranks, "Troupe Ranks")                                       \
    X(END, SELF, JSON, exact, "Troupe Run Time ns")                                    \
    X(END, SELF, JSON, reason_json, "Task End Reason")                                 \
    X(END, REASON, TEXT, end, "Reason")                                                \
    X(END, REASON, TEXT, status, "Troupe Status")                                      \
    X(END, REASON, TEXT, end_reason, "Troupe Reason")                                  \
    X(END, REASON, TEXT, end_description, "Description")                               \
    X(END, REASON, TEXT, loss, "Loss Reason")                                          \
    X(END, REASON, JSON, counted, "Troupe Counted")                                    \
    X(LOST, SELF, ID, lost_task, "Task Index")                                         \
    X(LOST, SELF, ID, parent, "Parent Stage ID")                                       \
    X(LOST, SELF, ID, parent_task, "Parent Task Index")                                \
    X(LOST, SELF, COUNT, failures, "Failures")                                         \
    X(LOST, SELF, TEXT, item, "Item")                                                  \
    X(LOST, SELF, TEXT, log, "Log")                                                    \
    X(NAMES, SELF, ID, first_task, "First Task Index")                                 \
    X(NAMES, SELF, JSON, names, "Names")                                               \
    X(LOST | STAGES, SELF, TEXT, reason, "Reason")                                     \
    X(SUMS, SELF, COUNT, tasks, "Tasks")                                               \
    X(SUMS, SELF, COUNT, succeeded, "Succeeded")                                       \
    X(SUMS, SELF, COUNT, killed, "Killed")                                             \
    X(SUMS, SELF, COUNT, recalled, "Recalled")                                         \
    X(SUMS, SELF, JSON, localities, "Localities")                                      \
    X(SUMS, SELF, JSON, quantiles, "Run Time Quantiles ns")                            \
    X(SUMS, SELF, JSON, executors, "Executors")                                        \
    X(SLURM, SELF, TRUE, additional, "Further")                                        \
    X(SLURM, SELF, TIME, submitted, "Submission Time")                                 \
    X(SLURM, SELF, TIME, started, "Start Time")                                        \
    X(SLURM, SELF, TIME, ended, "End Time")                                            \
    X(SLURM, SELF, TEXT, step_name, "Step Name")                                       \
    X(OTHER, SELF, ID, nodes, "Nodes")                                                 \
    X(OTHER, SELF, INT, bytes, "Bytes")                                                \
    X(OTHER, SELF, INT, rpcs, "RPCs")                                                  \
    X(OTHER, SELF, INT, sruns, "Sruns")                                                \
    X(OTHER, SELF, INT, srun_rpcs, "Srun RPCs")                                        \
    X(OTHER, SELF, TEXT, message_level, "Level")                                       \
    X(OTHER, SELF, TEXT, text, "Text")

typedef uint32_t trp_log_ID, trp_log_COUNT;
typedef int64_t trp_log_INT, trp_log_TIME; /* ns since 1970 */
typedef const char *trp_log_TEXT;
typedef bool trp_log_TRUE;
typedef json_t *trp_log_JSON;

/* Executors that have no number. */
#define TRP_LOG_NOBODY (UINT32_MAX - 1)
#define TRP_LOG_DRIVER TRP_NONE

/* Texts and JSON are the event's own. */
struct trp_log_event {
    enum trp_log_kind kind;
    json_t *json, *info; /* the whole, and where its fields are */
    int64_t at;          /* when it was, ns since 1970; 0: it does not say */
#define TRP_LOG_FIELD(kinds, in, type, member, name) trp_log_##type member;
    TRP_LOG_FIELDS(TRP_LOG_FIELD)
#undef TRP_LOG_FIELD
    uint32_t executor;        /* or one of those above */
    uint8_t level;            /* enum trp_level */
    int64_t ran_ns;           /* as it is told, else from launch to end */
    uint64_t flow[TRP_FLOWS]; /* at most INT64_MAX */
};

/* 0, TRP_ENOMEM, or TRP_EINVAL: it is not what such an event looks like. */
typedef int trp_log_take(void *context, const struct trp_log_event *e);
trp_log_take trp_log_nothing; /* it is wanted for its time, or by another reader */

struct trp_log_reader {
    trp_log_take *const *take; /* by kind; NULL: not wanted */
    trp_log_take *before;      /* of each that is wanted, before that; may be NULL */
    void *context;
};

/* Hands each event to the readers in their order. TRP_EINVAL: the file cannot be read,
 * or a line (named) is no event. */
int trp_log_events_read(const char *file, const struct trp_log_reader *readers,
                        size_t n, trp_error *err);

/* TRP_EINVAL: that is no event; TRP_ENOENT: it is none of those above. */
int trp_log_event_decode(json_t *json, struct trp_log_event *ret);
/* One of a job's `stage_infos`, as TRP_LOG_STAGE. */
void trp_log_stage_of(json_t *info, struct trp_log_event *ret);

/* A whole number from 0; TRP_NONE: it is none. */
uint32_t trp_log_id(const json_t *number);
static inline uint32_t trp_log_or_0(uint32_t id)
{
    return id == TRP_NONE ? 0 : id;
}
/* The number of an executor by its name, which may be NULL. */
uint32_t trp_log_executor(const char *name);
/* Of a profile; its number where it has no name. */
void trp_log_profile_name(const struct trp_log_event *e, char *buf, size_t size);
/* How much of something an executor has, or a task takes. */
double trp_log_amount(const json_t *request);
/* Of something that is neither cores nor memory. */
bool trp_log_is_device(const char *request);

#endif
