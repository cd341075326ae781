/*
 * The engine: everything a run decides, and nothing it does.
 *
 *     actions = trp_engine_step(engine, now, event)
 *
 * Words. A *job* is a graph of *stages*; a stage is `ntasks` *tasks* of one resource
 * profile; an *attempt* is one try of a task on an executor. A stage waits for its
 * parents, is *ready* (its tasks are asked for), *runs* as a task set, and ends as
 * succeeded, failed, cancelled or skipped. An attempt that is *queued* sits on an
 * executor behind running ones of its stage and takes over the resources of the one
 * that ends first (decision 16).
 *
 * Invariants. Time (`now`, ns, any origin) never decreases. Ids are the engine's. Ties
 * break by id. No clock, no randomness, no I/O: the same events give the same actions.
 * The driver performs the actions in their order; it never decides.
 *
 * Cost: O(1) a launch and an end, but for the choice among custom-resource addresses of
 * one executor; never a scan of all tasks or all executors.
 *
 *     trp_engine *e;
 *     trp_engine_new(&config, profiles, &e, &err);
 *     struct trp_event ev = {.kind = TRP_EVENT_JOB, .job = {.spec = &spec}};
 *     trp_engine_step(e, now, &ev, &err);
 *     for (const struct trp_action *a; (a = trp_engine_next(e)); ) perform(a);
 *
 * Threads: one at a time.
 */
#ifndef TRP_CORE_ENGINE_H
#define TRP_CORE_ENGINE_H

#include "core/base/error.h"
#include "core/base/ids.h"
#include "core/profile/books.h"
#include "core/profile/manager.h"

typedef struct trp_engine trp_engine;

/* Most local first: semantics, section 7. */
enum trp_level {
    TRP_PROCESS_LOCAL,
    TRP_NODE_LOCAL,
    TRP_NO_PREF,
    TRP_RACK_LOCAL,
    TRP_ANY,
    TRP_LEVELS,
};
const char *trp_level_name(enum trp_level level); /* "PROCESS_LOCAL", … */

enum trp_reuse { TRP_REUSE_EXACT, TRP_REUSE_FIT, TRP_REUSE_NEVER };

/* Options the engine knows; names in comments are the option table's. Times in ns. */
struct trp_engine_config {
    int64_t
        locality_wait_ns[TRP_LEVELS]; /* locality.wait.{process,node,rack}; others 0 */
    uint32_t max_failures;            /* task.maxFailures (4) */
    bool pack;                        /* task.resource.placement=pack */
    enum trp_reuse reuse;             /* alloc.reuse */
    bool release_idle;            /* alloc.release=idle: keep until the idle timeout */
    int64_t idle_timeout_ns;      /* dynamicAllocation.executorIdleTimeout (60 s) */
    uint32_t min_executors;       /* dynamicAllocation.minExecutors, per profile (0) */
    uint32_t max_executors;       /* dynamicAllocation.maxExecutors, per profile */
    uint32_t alloc_max_executors; /* alloc.max_executors, over all profiles */
    int64_t queue_ahead_ns;       /* work kept queued per executor, 0: none (10 ms) */
    uint32_t queue_ahead_max;     /* attempts queued per executor at most (2048) */
    int64_t retry_first_ns;       /* spacing of a refused request: 1 s … */
    int64_t retry_max_ns;         /* … doubling to 60 s */
    bool keep_going;              /* run what does not depend on a failed stage */
    bool fixed; /* the executors are those that are there: none is asked for or released
                 */
    uint32_t max_start_failures; /* starts in a row that may fail before a profile's
                                  * stages are given up (5) */
};
void trp_engine_config_init(struct trp_engine_config *c);

/* ---- what the engine is told --------------------------------------------------------
 */

/* A dependency of a stage. `stage` is an index into the job's stages. With `each`, task
 * i waits for task i of the parent only (both have as many tasks). */
struct trp_parent_spec {
    uint32_t stage;
    bool each;
};

enum trp_stage_kind {
    TRP_STAGE_TASKS, /* commands or functions on executors */
    TRP_STAGE_GANG,  /* one task whose `ranks` run at once outside any executor */
};

struct trp_stage_spec {
    const char *name; /* copied */
    trp_profile_id profile;
    enum trp_stage_kind kind;
    uint32_t ranks; /* gang: ranks, each with the task side of the profile */
    const struct trp_parent_spec *parents;
    uint32_t nparents;
    bool tasks_known;      /* false: asked for by TRP_ACTION_STAGE_READY */
    uint32_t ntasks;       /* when known; 0 is an empty stage, which succeeds */
    uint32_t max_failures; /* 0: the engine's */
    uint32_t max_running;  /* 0: no limit */
    uint32_t tolerate;     /* tasks that may fail for good … */
    uint32_t tolerate_ppm; /* … or so many millionths of the stage's tasks */
    const int32_t *not_on; /* exit statuses that are not retried */
    uint32_t nnot_on;
    uint32_t memory_factor_ppm; /* a task killed for memory runs again with so many
                                 * millionths of memory and overhead; 0: as it was */
    uint32_t min_executors;     /* executors: {min, max}; 0: the profile's */
    uint32_t max_executors;
};

struct trp_job_spec {
    const struct trp_stage_spec *stages; /* parents before children */
    uint32_t nstages;
};

/* Preferred places of the tasks of a stage: task i prefers places[first[i] ..
 * first[i+1]). NULL `first`: no task has a preference. */
struct trp_place {
    const char *host;  /* never NULL */
    uint32_t executor; /* executor number there that has the data, or TRP_NONE */
};
struct trp_preferences {
    const uint32_t *first; /* ntasks + 1 offsets */
    const struct trp_place *places;
};

/* How an attempt ended, as the executor (or the driver for a gang) saw it. */
enum trp_end_status {
    TRP_END_SUCCESS,
    TRP_END_EXIT,     /* exit status other than 0; a function's error code */
    TRP_END_SIGNAL,   /* killed by a signal that we did not send */
    TRP_END_TIMEOUT,  /* over the stage's timeout, killed by us */
    TRP_END_MEMORY,   /* killed for memory */
    TRP_END_START,    /* could not be started: no such cwd, no such program, disk */
    TRP_END_KILLED,   /* killed because the driver said so */
    TRP_END_RECALLED, /* was queued and handed back unstarted */
    TRP_END_LOST,     /* its executor was lost (the engine's own; never sent) */
    TRP_END_PLATFORM, /* a gang whose platform could not be used: ends the run */
};
const char *trp_end_status_name(enum trp_end_status status);

enum trp_loss {
    TRP_LOSS_EXITED,     /* died by itself or by a stranger's hand: counts */
    TRP_LOSS_CRASHED,    /* a function crashed it: counts against `culprit` only */
    TRP_LOSS_MEMORY,     /* killed for memory in a function: against `culprit` only */
    TRP_LOSS_TIMEOUT,    /* a function over its timeout: against `culprit` only */
    TRP_LOSS_HEARTBEAT,  /* silent for network.timeout: counts */
    TRP_LOSS_RELEASED,   /* we released it: counts nothing */
    TRP_LOSS_NEVER_CAME, /* did not come up; counts nothing, asked for again later */
};

enum trp_event_kind {
    TRP_EVENT_JOB,         /* a job is submitted; its id is in TRP_ACTION_JOB_STARTED */
    TRP_EVENT_STAGE_TASKS, /* answer to TRP_ACTION_STAGE_READY */
    TRP_EVENT_STAGE_REFUSED, /* the same, when the tasks cannot be told (no match) */
    TRP_EVENT_PROFILE_FIT,   /* how many executors of a profile this cluster can hold */
    TRP_EVENT_EXECUTOR_ADDED, /* a requested executor came up, or one is simply there */
    TRP_EVENT_EXECUTOR_REFUSED, /* a requested one was refused */
    TRP_EVENT_EXECUTOR_LOST,
    TRP_EVENT_TASK_ENDED,
    TRP_EVENT_CANCEL_JOB, /* kill what runs, end the job as cancelled */
    TRP_EVENT_DRAIN,      /* launch nothing more; jobs end when running tasks have */
    TRP_EVENT_TIME,       /* nothing happened; timers that are due fire */
};

struct trp_event {
    enum trp_event_kind kind;
    union {
        struct {
            const struct trp_job_spec *spec;
        } job;
        struct {
            trp_stage_id stage;
            uint32_t ntasks;
            struct trp_preferences prefer;
            const uint8_t *done; /* ntasks bytes, 1: done in an earlier run; or NULL */
        } tasks;
        struct {
            trp_stage_id stage;
            const char *text; /* why; copied */
        } refused_stage;
        struct {
            trp_profile_id profile;
            uint32_t executors; /* at once, on an empty cluster; 0: never */
            const char *text;   /* with 0: resource, wanted, available; copied */
        } fit;
        struct {
            trp_executor_id executor; /* as in TRP_ACTION_START_EXECUTOR */
            const char *host;
            const char *rack; /* NULL: none known */
            const struct trp_resource_addresses *resources;
            uint32_t nresources;
        } added;
        struct {
            trp_executor_id executor;
            bool never; /* TRP_ENEVER: fails the stages that need it */
            const char *text;
        } refused;
        struct {
            trp_executor_id executor;
            enum trp_loss reason;
            bool has_culprit;
            trp_attempt_id culprit; /* the attempt to blame, with has_culprit */
            int32_t code;           /* CRASHED: the signal */
        } lost;
        struct {
            trp_attempt_id attempt;
            enum trp_end_status status;
            int32_t code;        /* exit status or signal number */
            int64_t duration_ns; /* as measured where it ran */
        } ended;
        struct {
            trp_job_id job;
        } cancel;
    };
};

/* ---- what the engine wants done ---- */

enum trp_outcome {
    TRP_OUTCOME_RUNNING,
    TRP_OUTCOME_SUCCEEDED,
    TRP_OUTCOME_FAILED,
    TRP_OUTCOME_CANCELLED, /* by cancel or drain */
    TRP_OUTCOME_SKIPPED,   /* stage: not run, because another one failed */
};
const char *trp_outcome_name(enum trp_outcome outcome);

enum trp_action_kind {
    TRP_ACTION_JOB_STARTED,      /* job */
    TRP_ACTION_PROFILE_ADDED,    /* profile: the engine derived one; answer with
                                    PROFILE_FIT */
    TRP_ACTION_STAGE_READY,      /* stage: answer with STAGE_TASKS or STAGE_REFUSED */
    TRP_ACTION_STAGE_SUBMITTED,  /* stage: its task set exists */
    TRP_ACTION_LAUNCH,           /* launch: send the attempt to its executor */
    TRP_ACTION_GANG,             /* gang: run all ranks when the cluster has the room */
    TRP_ACTION_KILL,             /* kill: end an attempt, or recall it while queued */
    TRP_ACTION_TASK_END,         /* task_end: the verdict on an attempt */
    TRP_ACTION_STAGE_ENDED,      /* stage_ended */
    TRP_ACTION_JOB_ENDED,        /* job_ended */
    TRP_ACTION_START_EXECUTOR,   /* executor: bring one up when the cluster has the room
                                  */
    TRP_ACTION_RELEASE_EXECUTOR, /* executor: end it, or withdraw the request */
    TRP_ACTION_RELABEL_EXECUTOR, /* executor now serves `profile`; nothing to send */
};

/* Actions are valid until the next step. Strings belong to the engine. */
struct trp_action {
    enum trp_action_kind kind;
    union {
        trp_job_id job;
        trp_stage_id stage;
        trp_profile_id profile;
        struct {
            trp_attempt_id attempt;
            trp_stage_id stage;
            uint32_t task;
            uint32_t number; /* earlier attempts of this task */
            trp_executor_id executor;
            enum trp_level level;
            bool queued;                    /* starts when a running one ends there */
            const struct trp_grant *grants; /* indices into the executor's books; a
                                             * queued attempt has none of its own */
            uint32_t ngrants;
        } launch;
        struct {
            trp_attempt_id attempt;
            trp_stage_id stage;
            uint32_t number;
            uint32_t ranks;
            trp_profile_id profile;
        } gang;
        struct {
            trp_attempt_id attempt;
            trp_executor_id executor; /* n == TRP_NONE: a gang */
            bool recall;              /* only if it has not started */
        } kill;
        struct {
            trp_attempt_id attempt;
            trp_stage_id stage;
            uint32_t task;
            uint32_t number;
            trp_executor_id executor; /* n == TRP_NONE: a gang */
            enum trp_level level;
            enum trp_end_status status;
            int32_t code;
            bool counted;      /* as a failure */
            bool retried;      /* it will run again */
            uint32_t failures; /* counted failures of the task so far */
            int64_t launched_ns;
        } task_end;
        struct {
            trp_stage_id stage;
            enum trp_outcome outcome;
            int code;         /* TRP_EFAILED, TRP_ENEVER, TRP_ESYSTEM, 0 */
            uint32_t task;    /* the task that gave up, or TRP_NONE */
            const char *text; /* why, for a person; "" when succeeded */
        } stage_ended;
        struct {
            trp_job_id job;
            enum trp_outcome outcome;
            int code;
            trp_stage_id stage; /* the first that failed, or n == TRP_NONE */
        } job_ended;
        struct {
            trp_executor_id executor;
            trp_profile_id profile;
        } executor;
    };
};

/* `profiles` must outlive the engine; it may grow meanwhile, also by the engine
 * (decision 15). `config` is copied. */
int trp_engine_new(const struct trp_engine_config *config, trp_profiles *profiles,
                   trp_engine **ret_engine, trp_error *err);
void trp_engine_free(trp_engine *e);

/* Takes one event in. Late, duplicate or unknown ids in events from outside are ignored
 * and counted (trp_engine_counts), never an error. TRP_EINVAL: an impossible job
 * (cycle, unknown profile, each-parents of other size). Actions of earlier steps that
 * were not taken yet stay in front, so several events may be stepped before actions are
 * taken. */
int trp_engine_step(trp_engine *e, int64_t now_ns, const struct trp_event *event,
                    trp_error *err);

/* The next action in order, or NULL when there is none. Valid until the next call. */
const struct trp_action *trp_engine_next(trp_engine *e);

/* When TRP_EVENT_TIME is due next (ns), INT64_MAX for never. */
int64_t trp_engine_next_timer(const trp_engine *e);

/* An executor that is there without having been asked for (static runs, benches): an id
 * to be used with TRP_EVENT_EXECUTOR_ADDED, its slots those of `profile`. */
trp_executor_id trp_engine_expect_executor(trp_engine *e, trp_profile_id profile);

/* What is known of a stage and a run; for progress lines and tests. */
struct trp_stage_view {
    const char *name;
    trp_job_id job;
    trp_profile_id profile;
    enum trp_stage_kind kind;
    bool submitted;
    enum trp_outcome outcome;
    uint32_t ntasks, pending, running, queued, succeeded, failed; /* failed: for good */
};
int trp_engine_stage(const trp_engine *e, trp_stage_id stage,
                     struct trp_stage_view *ret);
uint32_t trp_engine_stages(const trp_engine *e); /* ids run from 0 to this, exclusive */

struct trp_engine_counts {
    uint64_t launches, ends, ignored_events;
    uint32_t executors_live, executors_requested;
    size_t bytes_per_task; /* memory of all live task sets / their tasks */
};
void trp_engine_counts(const trp_engine *e, struct trp_engine_counts *ret);

/* The books of a live executor, for names of granted addresses; NULL when unknown. */
const trp_books *trp_engine_books(const trp_engine *e, trp_executor_id executor);

/* Why nothing of this stage runs: the first reason that blocks it, for a person. */
char *trp_engine_why_waiting(const trp_engine *e, trp_stage_id stage, char *buf,
                             size_t size);

/* Checks every invariant the hard way (slow; tests): 0, or TRP_ESTATE with what broke.
 */
int trp_engine_sanity_check(const trp_engine *e, trp_error *err);

#endif
