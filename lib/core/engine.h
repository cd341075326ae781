/*
 * The engine makes all scheduling decisions of a run, and carries out none of them.
 *
 * Words. A *job* is a graph of *stages*; a stage is `ntasks` *tasks* of one resource
 * profile; an *attempt* is one try of a task on an executor. A stage waits for its
 * parents, is *ready* (the driver is asked for its tasks), *runs* as a task set, and
 * ends as succeeded, failed, cancelled or skipped. An attempt that is *queued* sits on
 * an executor behind running ones of its stage and takes over the resources of the one
 * that ends first (semantics, difference 16).
 *
 * Invariants. Time (`now`, ns, any origin) never decreases. The engine assigns all ids.
 * The lowest id wins a tie. The engine uses no clock, randomness or I/O, so the same
 * events give the same actions. The driver performs the actions in their order; it
 * never decides.
 *
 * Cost: O(1) for each attempt that is launched and for each that ends, but for the
 * choice among custom-resource addresses of one executor. No launch and no end scans all
 * tasks or executors; losses and questions may.
 *
 *     trp_engine *e;
 *     trp_engine_new(&config, profiles, &e, &err);
 *     struct trp_event ev = {.kind = TRP_EVENT_JOB, .job = {.spec = &spec}};
 *     trp_engine_step(e, now, &ev, &err);
 *     for (const struct trp_action *a; (a = trp_engine_next(e)); ) perform(a);
 *
 * Threads: not thread-safe; one thread at a time may use an engine.
 */
#ifndef TRP_CORE_ENGINE_H
#define TRP_CORE_ENGINE_H

#include "core/base/ends.h"
#include "core/base/error.h"
#include "core/base/ids.h"
#include "core/profile/ledger.h"
#include "core/profile/manager.h"
#include "core/sched/barrier_sync.h"
#include "core/sched/health.h"
#include "core/sched/speculation.h"

typedef struct trp_engine trp_engine;

/* Most local first (semantics, section 7). */
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

/* When to request executors of a stage that are not available at once. */
enum trp_look_ahead {
    TRP_LOOK_AHEAD_UNSET, /* stages only: the engine's setting */
    TRP_LOOK_AHEAD_OFF,   /* when the stage is ready */
    TRP_LOOK_AHEAD_AUTO, /* before it is ready, by the time they are expected to take */
    TRP_LOOK_AHEAD_TIME, /* before it is ready, by look_ahead_ns */
};

struct trp_pool_spec; /* sched/pools.h */
struct trp_host_rack; /* topo/hosts.h */

/* Limits over all profiles (semantics, difference 4); 0: none. */
struct trp_alloc_caps {
    int64_t cores, memory_mib;
    struct {
        char name[TRP_RESOURCE_NAME_MAX];
        int64_t most;
    } custom[TRP_PROFILE_RESOURCES];
    uint32_t ncustom;
};

/* What the engine is set to. Which option has which member, with its default and its
 * bounds: conf/options_table.c. Times in ns. */
struct trp_engine_config {
    int64_t locality_wait_ns[TRP_LEVELS]; /* at a level, before the next is tried */
    bool locality_legacy_reset;           /* each launch begins the wait anew */
    uint32_t max_failures;                /* of one task, until its stage gives up */
    bool pack;     /* fractions from the fullest address, not the first that fits */
    uint64_t seed; /* of the order of executors; 0: they take turns */
    bool fair;     /* jobs share slots by pools; else they go in their order */
    const struct trp_pool_spec *pools; /* of FAIR; only read by trp_engine_new */
    uint32_t npools;
    const struct trp_host_rack *racks; /* of the cluster; only read by trp_engine_new */
    uint32_t nracks;
    double registered_ratio; /* no task starts before this part of the first executors
                              * has come, … */
    int64_t registered_wait_ns; /* … or this time is over */
    int64_t max_result_bytes;   /* 0: no limit */
    enum trp_reuse reuse;       /* of idle executors of other profiles */
    bool release_idle; /* when idle_timeout_ns is over; else at a stage's end */
    int64_t idle_timeout_ns;
    uint32_t min_executors;       /* of each profile */
    uint32_t max_executors;       /* of each profile; UINT32_MAX: no limit */
    uint32_t alloc_max_executors; /* over all profiles; UINT32_MAX: no limit */
    struct trp_alloc_caps caps;
    bool grow_ramp; /* requests grow as in Spark: 1, 2, 4, … */
    uint32_t initial_executors;
    trp_amount allocation_ratio; /* executorAllocationRatio of Spark, in (0, 1] */
    int64_t backlog_timeout_ns;
    int64_t sustained_timeout_ns;
    int64_t cached_timeout_ns; /* INT64_MAX: never */
    bool shuffle_tracking;
    int64_t shuffle_timeout_ns;     /* INT64_MAX: never */
    enum trp_look_ahead look_ahead; /* never UNSET */
    int64_t look_ahead_ns;          /* TIME: how long before */
    int64_t queue_ahead_ns;         /* work kept queued per executor; 0: none */
    uint32_t queue_ahead_max;       /* attempts queued per executor at most */
    int64_t retry_first_ns; /* until a refused request is repeated, doubling … */
    int64_t retry_max_ns;   /* … up to this */
    bool keep_going; /* run the other tasks of a stage with one that was given up,
                             * and what does not depend on a failed stage */
    bool fixed;      /* a fixed set of executors: none is requested or released */
    uint32_t max_start_failures; /* a profile's stages fail after so many failed starts
                                  * of executors in a row … */
    int64_t start_patience_ns; /* … but no sooner than this after the first of them */
    uint32_t max_stage_attempts; /* that fail in a row by fetch failures */
    bool host_files;             /* map outputs belong to hosts, not executors */
    bool shuffle_service;        /* map outputs of lost executors stay */
    bool reduce_locality;        /* tasks prefer where most of their input is */
    bool unregister_host;        /* a fetch failure loses all outputs of the host */
    bool ignore_decommission_failures; /* of fetches, after a planned end */
    struct {
        bool enabled;
        int64_t force_kill_ns; /* after the notice; 0: never */
        uint32_t retained;     /* executors that are gone and still known */
    } decommission;
    struct {
        int64_t reserve_ns; /* slots are kept for so long; 0: never */
        int64_t sync_timeout_ns;
        int64_t check_interval_ns; /* of a job whose barrier stage has too few slots */
        uint32_t check_max_failures;
    } barrier;
    struct trp_speculation_config speculation;
    struct trp_health_config exclusion;
};

/* ---- what the engine is told ---- */

/* A dependency of a stage. `stage` is an index into the job's stages. With `each`, task
 * i waits for task i of the parent only (both have as many tasks), and is skipped when
 * that was given up; and with `by`, for those that are told with the stage's tasks, which
 * are not known before, and is skipped when one of them was given up. With `shuffle` every task reads the map outputs of all tasks of
 * the parent, which is a `map` stage. */
struct trp_parent_spec {
    uint32_t stage;
    bool each;
    bool by; /* with each */
    bool shuffle;
};

/* Which tasks of a parent `by` those of a stage wait for: each has a value, and waits for
 * those that have it too. A task of the parent may have several values, or none. */
struct trp_by_task {
    uint32_t task, value;
};
struct trp_by {
    uint32_t nvalues;                /* they are below it */
    const uint32_t *values;          /* of each task of the stage … */
    uint32_t ntasks;                 /* … of which there are so many */
    const struct trp_by_task *above; /* of the parent's tasks, in their order */
    uint32_t nabove;
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
    bool barrier;   /* all tasks start at once; when one fails all run again */
    const struct trp_parent_spec *parents;
    uint32_t nparents;
    bool tasks_known;      /* false: asked for by TRP_ACTION_STAGE_READY */
    uint32_t ntasks;       /* when known; 0 is an empty stage, which succeeds */
    uint32_t max_failures; /* 0: the engine's */
    /* Commands count by themselves what is not their own failure; 0: as failures. */
    uint32_t max_losses;   /* of executors that count, until a task is given up */
    uint32_t max_repeats;  /* after a kill for memory, with memory_factor_ppm */
    uint32_t max_running;  /* 0: no limit */
    uint32_t tolerate;     /* tasks that may be given up, … */
    uint32_t tolerate_ppm; /* … or millionths of the stage's tasks, where more */
    const int32_t *not_on; /* exit statuses that are not retried */
    uint32_t nnot_on;
    uint32_t memory_factor_ppm; /* a task killed for memory runs again with so many
                                 * millionths of memory and overhead; 0: as it was */
    uint32_t min_executors;     /* executors: {min, max}; 0: the profile's */
    uint32_t max_executors;
    enum trp_look_ahead look_ahead; /* executors: {look_ahead} */
    int64_t look_ahead_ns;          /* TIME: how long before */
    const char *pool;               /* of its task sets, copied; NULL: the job's */
    bool map;           /* its tasks leave map outputs, which may be lost again */
    bool indeterminate; /* a task that runs again may give other output */
    bool checked;       /* when its tasks are over, TRP_ACTION_STAGE_CHECK asks the
                         * driver whether all is well */
};

/* Something to compute, for jobs that are given as datasets: the engine cuts them into
 * stages, and jobs share the stages behind a shuffle. Ids are dense, in the order of
 * TRP_EVENT_DATASET. */
struct trp_dataset_parent {
    uint32_t dataset; /* added before */
    bool shuffle;     /* else narrow: computed in the same task */
    /* Narrow: the first of the child's partitions that read it, and which of the
     * parent's: partition begin + i reads first[i] .. first[i + 1]. `first` NULL:
     * partition begin + i reads the parent's partition i, for each of the parent's. */
    uint32_t begin, nfirst;
    const uint32_t *first;
};
struct trp_dataset_place { /* a partition prefers a host */
    uint32_t partition;
    const char *host;
};
struct trp_dataset_spec {
    const char *name; /* copied */
    uint32_t partitions;
    const struct trp_dataset_parent *parents;
    uint32_t nparents;
    bool has_profile;
    trp_profile_id profile; /* with has_profile: attached to it */
    bool cached;            /* its partitions may be cached: TRP_EVENT_CACHED */
    bool barrier;           /* computed by all tasks at once */
    bool indeterminate;     /* computed again it may be another */
    const struct trp_dataset_place *prefer; /* by partition */
    uint32_t nprefer;
};

enum { TRP_DATASET_PARTITIONS_MAX = 1 << 24 };

/* A job is a graph of stages, or, with `is_dataset`, the partitions of a dataset
 * (all, or with `some` those in `partitions`), or with `map_only` just its map
 * outputs. */
struct trp_job_spec {
    const struct trp_stage_spec *stages; /* parents before children */
    uint32_t nstages;
    const char *pool; /* scheduler.pool of its task sets; NULL: "default" */
    const char *name; /* for messages; NULL: its number */
    bool drains; /* told as stages: the run ends with it, but what runs may finish. When
                  * one of its stages gives up, nothing is launched any more, and the job
                  * ends as failed when its attempts have; else they are killed */
    bool is_dataset, map_only, some;
    bool redo; /* of a dataset: the program takes results a second time, so a barrier
                * stage that failed runs again (else, as in Spark, the job fails) */
    uint32_t dataset;
    const uint32_t *partitions;
    uint32_t npartitions;
};

/* Preferred places of the tasks of a stage: task i prefers places[first[i] ..
 * first[i+1]). NULL `first`: no task has a preference. */
struct trp_place {
    const char *host;  /* never NULL */
    uint32_t executor; /* executor number there that has the data, or TRP_NONE */
};
struct trp_preferences {
    const uint32_t *first; /* ntasks + 1 offsets; may begin above 0 */
    const struct trp_place *places;
};

/* The map output that could not be read. */
struct trp_fetch_source {
    trp_stage_id stage;       /* that made it */
    uint32_t map;             /* its task, TRP_NONE: not known */
    trp_executor_id executor; /* that should have it, n == TRP_NONE: not known */
    const char *text;         /* why, for a person; NULL: nobody said */
    const uint32_t *more;     /* further maps whose outputs are gone from there */
    uint32_t nmore;
};

/* Why an executor that was requested does not come. */
enum trp_refusal {
    TRP_REFUSED_FAILED, /* its process ended by itself before it was admitted, on a host
                         * that answers: counts as a failed start */
    TRP_REFUSED_NEVER,  /* none can ever be obtained: fails the stages that need it */
    TRP_REFUSED_LATER,  /* there is no room now, or it was ended from outside: no failed
                         * start; it is requested again later */
};

enum trp_event_kind {
    TRP_EVENT_JOB,         /* a job is submitted; its id is in TRP_ACTION_JOB_STARTED */
    TRP_EVENT_STAGE_TASKS, /* answer to TRP_ACTION_STAGE_READY */
    TRP_EVENT_STAGE_REFUSED, /* the same, when the tasks cannot be told (no match) */
    TRP_EVENT_PROFILE_FIT,   /* how many executors of a profile this cluster can hold */
    TRP_EVENT_EXECUTOR_ADDED,   /* a requested executor came up, or an expected one */
    TRP_EVENT_EXECUTOR_REFUSED, /* a requested one was refused */
    TRP_EVENT_EXECUTOR_LOST,
    TRP_EVENT_TASK_ENDED,
    TRP_EVENT_SYNC, /* a task calls barrier or allGather, or asks whether it may commit
                     * its output */
    TRP_EVENT_CANCEL_JOB, /* kill what runs, end the job as cancelled */
    TRP_EVENT_DRAIN,      /* launch nothing more; jobs end when running tasks have */
    TRP_EVENT_TIME,       /* nothing happened; timers that are due fire */
    TRP_EVENT_EXECUTOR_DECOMMISSIONED, /* it will go: gets nothing new */
    TRP_EVENT_TASK_PROGRESS,           /* records a running attempt has read so far */
    TRP_EVENT_DATASET, /* a dataset is described; its id is how many were before */
    TRP_EVENT_DATASET_RELEASED, /* nobody needs its map outputs any more, nor its
                                 * partitions: none is cached from now on */
    TRP_EVENT_DATASET_FREED, /* the same, and nobody speaks of it again. TRP_EWAIT: something
                              * is made of it, or a job or a stage of it is not over */
    TRP_EVENT_CACHED, /* an executor caches a partition of a dataset, or no longer */
    TRP_EVENT_OUTPUT_MOVED, /* a map output was handed over to another place */
    TRP_EVENT_CANCEL_STAGE, /* cancels every job that uses it */
    TRP_EVENT_ENDS, /* until when an executor, or the run, can live: no task that would
                     * take longer is started there */
    TRP_EVENT_QUEUE_WAIT, /* how long executors of a profile wait in the cluster's queue:
                           * as the cluster expects it, or as some did */
    TRP_EVENT_EXECUTOR_GRANTED, /* a requested executor has its room and is starting: no
                                 * other one has to make room for it */
    TRP_EVENT_STAGE_CHECKED,    /* answer to TRP_ACTION_STAGE_CHECK */
    TRP_EVENT_CONTENDED, /* other runs wait for room that this run holds, or no longer */
};

struct trp_task_end {
    trp_attempt_id attempt;
    enum trp_end_status status;
    int32_t code; /* exit status or signal number; LOST: 0 or TRP_LOSS_TIME_LIMIT, of
                   * a gang enum trp_loss */
    int64_t duration_ns; /* as measured where it ran, 0 or more */
    uint64_t records;    /* read, in all; 0: not known */
    uint64_t result_bytes;
    const uint64_t *sizes; /* map task: bytes for each reducer; NULL: not known */
    uint32_t nsizes;
    struct trp_fetch_source from; /* FETCH */
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
            const struct trp_by *by; /* of each parent `by`, in their order */
            uint32_t nby;
        } tasks;
        struct {
            trp_stage_id stage;
            const char *text; /* why; copied */
        } refused_stage;
        struct {
            trp_profile_id profile;
            uint32_t executors;  /* at once, on an empty cluster; 0: never */
            uint32_t additional; /* of those: how many do not fit on the nodes that are
                                 * held now, and may wait in the cluster's queue */
            const char *text;    /* with 0: resource, wanted, available; copied */
            uint32_t hosts;      /* on so many hosts; 0: not known, there may be more */
            bool more; /* additional jobs may be requested for them, each when it is
                        * worth it (TRP_ACTION_MAY_ADD) */
        } fit;
        struct {
            trp_executor_id executor;
        } granted;
        struct {
            trp_executor_id executor; /* as in TRP_ACTION_START_EXECUTOR */
            const char *host;
            const char *rack; /* NULL: none known */
            const struct trp_resource_addresses *resources;
            uint32_t nresources;
            int64_t cores; /* 0: those of its profile */
        } added;
        struct {
            trp_executor_id executor;
            enum trp_refusal how;
            bool untried; /* with FAILED: there is another host, or an additional job,
                           * that was not tried since one of its profile came */
            const char *text;  /* why, for a person; copied */
            const char *cause; /* `text` without the executor's number, so that like
                                * failures count as one; NULL: `text`; copied */
        } refused;
        struct {
            trp_executor_id executor;
            enum trp_loss reason;
            bool has_culprit;
            trp_attempt_id culprit; /* the attempt to blame, with has_culprit */
            int32_t code;           /* CRASHED: the signal */
            bool not_by_app;        /* nothing that ran there is to blame */
        } lost;
        struct {
            trp_executor_id executor;
            bool whole_host; /* all that is on its host goes with it */
        } decommissioned;
        struct {
            trp_attempt_id attempt;
            uint64_t records;
        } progress;
        struct trp_task_end ended;
        struct {
            trp_attempt_id attempt;
            uint32_t epoch; /* calls it made before */
            enum trp_sync_kind kind;
            const uint8_t *data; /* of allGather */
            uint32_t size;
        } sync;
        struct {
            trp_job_id job;
        } cancel;
        struct {
            const struct trp_dataset_spec *spec;
        } dataset;
        struct {
            uint32_t dataset;
        } released;
        struct {
            uint32_t dataset;
        } freed;
        struct {
            uint32_t dataset, partition;
            trp_executor_id executor;
            bool gone; /* it was cached there, and is no longer */
        } cached;
        struct {
            trp_stage_id stage; /* the map stage */
            uint32_t map;
            trp_attempt_id attempt;   /* that made it */
            trp_executor_id executor; /* where it is now; n == TRP_NONE: where all hosts
                                       * see it */
        } moved;
        struct {
            trp_stage_id stage;
        } cancel_stage;
        struct {
            trp_executor_id executor; /* requested or live; n == TRP_NONE: the run */
            int64_t at_ns;            /* INT64_MAX: no end */
        } ends;
        struct {
            trp_profile_id profile;
            int64_t wait_ns;
        } queue_wait;
        struct {
            trp_stage_id stage;
            const char *text; /* why it fails; copied. NULL: it has succeeded */
        } checked;
        struct {
            bool is; /* other runs wait */
        } contended;
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
    TRP_ACTION_SYNCED,           /* synced: answer to an attempt's SYNC */
    TRP_ACTION_TASK_END,         /* task_end: the verdict on an attempt */
    TRP_ACTION_STAGE_ENDED,      /* stage_ended */
    TRP_ACTION_JOB_ENDED,        /* job_ended */
    TRP_ACTION_START_EXECUTOR,   /* executor: start one when the cluster has the room */
    TRP_ACTION_RELEASE_EXECUTOR, /* executor: end it, or withdraw the request */
    TRP_ACTION_RELABEL_EXECUTOR, /* executor now serves `profile`; nothing to send */
    TRP_ACTION_STAGE_RETRIED,    /* stage_retried: this attempt of the stage failed;
                                  * another one follows, or the stage's end */
    TRP_ACTION_SET_ENDED,        /* set: a stage attempt launches nothing more */
    TRP_ACTION_RESUBMITTED,      /* task: its output is gone, it will run again */
    TRP_ACTION_SPECULATABLE,     /* task: it is slow and will get a copy */
    TRP_ACTION_EXCLUDED,         /* excluded: for the application, or no longer */
    TRP_ACTION_OUT_OF_TIME,      /* out_of_time: nothing runs, and all that waits would
                                  * outlive the run */
    TRP_ACTION_OUTLIVED,         /* outlived: its tasks need longer than this executor
                                  * lives. It is about to be released, and one that
                                  * lives longer is needed */
    TRP_ACTION_NEED_EXECUTOR, /* executor: requested ahead, it is needed from now on */
    TRP_ACTION_MAY_ADD, /* executor: requested; from now on an additional job is worth
                         * it, if there is no room for it */
    TRP_ACTION_TASK_GIVEN_UP, /* given_up: the stage goes on without the task, or its end
                               * follows */
    TRP_ACTION_ASK_WAIT, /* wait: how long would so many executors of the profile wait in
                          * the queue? Answer with QUEUE_WAIT, or not at all */
    TRP_ACTION_STAGE_CHECK, /* stage: its tasks ended, within `tolerate`. Answer with
                               * STAGE_CHECKED, now or later: it waits for that */
    TRP_ACTION_JOB_DRAINS, /* stage: it gave up, and its job drains. Gangs that wait for
                             * their room are to be ended */
};

enum trp_set_end {
    TRP_SET_FINISHED, /* all its tasks succeeded or were given up */
    TRP_SET_ABORTED,  /* gave up */
    TRP_SET_ZOMBIE,   /* another attempt of the stage takes its place */
};

/* An action, and the strings in it, are valid until the next call of trp_engine_next or
 * trp_engine_step. They belong to the engine. */
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
            bool queued;      /* starts when a running one ends there */
            bool speculative; /* a copy of one that runs elsewhere */
            uint32_t stage_attempt;
            const struct trp_grant *grants; /* indices into the executor's ledger; a
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
            trp_stage_id stage;
            uint32_t stage_attempt, task, number;
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
            bool speculative;
            uint32_t stage_attempt;
            int64_t launched_ns;
        } task_end;
        struct {
            trp_attempt_id attempt;
            trp_executor_id executor;
            uint32_t epoch;
            int code; /* below 0: it failed; of a commit: it may not (TRP_EEXIST), or
                       * TRP_COMMIT_FIRST or _AGAIN */
            const char *text; /* why it failed, for a person */
            const struct trp_sync_message
                *messages; /* gather: of all tasks, in order */
            uint32_t nmessages;
        } synced;
        struct {
            trp_stage_id stage;
            uint32_t stage_attempt;
            enum trp_set_end how;
            uint32_t task;    /* that gave up, or TRP_NONE */
            const char *text; /* ABORTED: why, for a person; else "" */
        } set;
        struct {
            trp_stage_id stage;
            uint32_t stage_attempt;
            uint32_t task;
        } task;
        struct {
            trp_stage_id stage;
            uint32_t stage_attempt;
            uint32_t task;
            trp_stage_id
                parent; /* skipped, because of its … n == TRP_NONE: it has failed
                                   * for good */
            uint32_t parent_task; /* … task of this number, which was given up */
        } given_up;
        struct {
            trp_executor_id executor; /* n == TRP_NONE: a host */
            const char *host;
            bool excluded; /* false: no longer */
        } excluded;
        struct {
            trp_stage_id stage;        /* the first that waits */
            int64_t takes_ns, left_ns; /* its median; until the end */
        } out_of_time;
        struct {
            trp_executor_id executor;
            int64_t takes_ns; /* the shortest median of the sets that were refused */
        } outlived;
        struct {
            trp_stage_id stage;
            enum trp_outcome outcome;
            int code;         /* TRP_EFAILED, TRP_ENEVER, TRP_ESYSTEM, 0 */
            uint32_t task;    /* the task that gave up, or TRP_NONE */
            bool lost;        /* it lost more tasks than it tolerates */
            const char *text; /* why, for a person; "" when succeeded */
        } stage_ended;
        struct {
            trp_job_id job;
            enum trp_outcome outcome;
            int code;
            trp_stage_id stage; /* the first that failed, or n == TRP_NONE */
            const char *text;   /* why, for a person; "" when succeeded */
        } job_ended;
        struct {
            trp_stage_id stage;
            uint32_t attempt;
            const char *text;
        } stage_retried;
        struct {
            trp_executor_id executor;
            trp_profile_id profile;
            bool ahead; /* START: not needed yet. It may use only room that was obtained
                         * for executors requested ahead */
            const char *not_on; /* START: "h1,h2", hosts where it would be of no use;
                                 * "": anywhere. NULL in other actions */
        } executor;
        struct {
            trp_profile_id profile;
            uint32_t executors;
        } wait;
    };
};

/* `profiles` must outlive the engine; it may grow meanwhile, also by the engine
 * (semantics, difference 15). `config` is copied. */
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

/* The next action in order; NULL: there are no more. */
const struct trp_action *trp_engine_next(trp_engine *e);

/* When TRP_EVENT_TIME is due next (ns), INT64_MAX for never. */
int64_t trp_engine_next_timer(const trp_engine *e);

/* An executor that comes without a request (static runs, benchmarks): the id for its
 * TRP_EVENT_EXECUTOR_ADDED. Its slots are those of `profile`. */
trp_executor_id trp_engine_expect_executor(trp_engine *e, trp_profile_id profile);

/* What is known of a stage and a run; for progress lines and tests. */
struct trp_stage_view {
    const char *name;
    trp_job_id job;
    trp_profile_id profile;
    enum trp_stage_kind kind;
    bool submitted;
    enum trp_outcome outcome;
    uint32_t dataset;  /* that it computes; TRP_NONE: told as a stage */
    bool map;          /* it leaves map outputs */
    bool barrier;      /* its tasks run at once */
    bool used;         /* a job that is not over needs it */
    uint32_t attempts; /* stage attempts so far */
    uint32_t ntasks, pending, running, queued, succeeded, failed,
        skipped; /* failed: given up, the skipped ones too */
};
int trp_engine_stage(const trp_engine *e, trp_stage_id stage,
                     struct trp_stage_view *ret);
/* The profile of the executors that a task of a submitted stage may run on now: the
 * stage's, or one with more memory (memory_factor). Of an unknown task, the stage's. */
trp_profile_id trp_engine_task_profile(const trp_engine *e, trp_stage_id stage,
                                       uint32_t task);
uint32_t trp_engine_stages(const trp_engine *e); /* ids run from 0 to this, exclusive */

struct trp_engine_counts {
    uint64_t launches, ends, ignored_events;
    uint32_t executors_live, executors_requested;
    uint64_t visits; /* how often walks over many looked at an executor, a task set or a
                      * stage: what a step costs beyond its own event */
    size_t bytes_per_task; /* memory of all live task sets / their tasks */
};
void trp_engine_counts(const trp_engine *e, struct trp_engine_counts *ret);

/* The ledger of a live executor, for names of granted addresses; NULL when unknown. */
const trp_ledger *trp_engine_ledger(const trp_engine *e, trp_executor_id executor);

/* Where the output of a map task lies now, for readers: 0, or TRP_ENOENT when it is
 * missing. `ret_executor` n is TRP_NONE when any executor on the host serves it;
 * *ret_host is "" when all hosts see it. */
int trp_engine_output(const trp_engine *e, trp_stage_id stage, uint32_t map,
                      trp_executor_id *ret_executor, const char **ret_host);

/* A live attempt. */
struct trp_attempt_view {
    trp_stage_id stage;
    uint32_t task;
    trp_executor_id executor; /* n == TRP_NONE: it is a gang */
    bool queued;              /* not begun, as far as is known here */
};
/* False: there is no such attempt. */
bool trp_engine_attempt(const trp_engine *e, trp_attempt_id attempt,
                        struct trp_attempt_view *ret);

/* The stages whose map outputs or ends a stage waits for: returns how many, and writes
 * the first `cap` ids to `ret`. */
uint32_t trp_engine_parents(const trp_engine *e, trp_stage_id stage, trp_stage_id *ret,
                            uint32_t cap);

/* The map outputs of a dataset, for its readers. */
struct trp_input_view {
    trp_attempt_id attempt;   /* that made it */
    trp_executor_id executor; /* n == TRP_NONE: any on the host serves it */
    const char *host;         /* "": all hosts see it */
};
/* Map tasks of a dataset; 0: it is not shuffled. */
uint32_t trp_engine_inputs(const trp_engine *e, uint32_t dataset);
/* Where one output is; TRP_ENOENT: missing. */
int trp_engine_input(const trp_engine *e, uint32_t dataset, uint32_t map,
                     struct trp_input_view *ret);
/* Whether an unfinished stage of an unfinished job reads map outputs of the dataset. */
bool trp_engine_awaits(const trp_engine *e, uint32_t dataset);
/* How many partitions of a dataset are cached somewhere. */
uint32_t trp_engine_cached(const trp_engine *e, uint32_t dataset);
/* Whom to blame when the output that `attempt` made could not be read. If a newer output
 * counts instead, nobody: `map` and `executor` are TRP_NONE. */
struct trp_fetch_source trp_engine_blame(const trp_engine *e, uint32_t dataset,
                                         uint32_t map, trp_attempt_id attempt);

/* Why the tasks of a stage that have not begun wait: the first reason that blocks them,
 * for a person. Times count from `now_ns`, which may be later than the last step.
 * Returns buf. */
char *trp_engine_why_waiting(const trp_engine *e, int64_t now_ns, trp_stage_id stage,
                             char *buf, size_t size);

/* The same reason as a word. */
enum trp_wait {
    TRP_WAIT_NOTHING,  /* nothing: all have begun, or are about to */
    TRP_WAIT_PARENTS,  /* tasks or outputs of its parents */
    TRP_WAIT_START,    /* the executors that the run waits for at its start */
    TRP_WAIT_EXECUTOR, /* an executor of its profile */
    TRP_WAIT_ROOM,     /* room for all ranks of a gang at once */
    TRP_WAIT_EXCLUDED, /* free slots are on executors or hosts that are excluded */
    TRP_WAIT_END,      /* never: the run, or its allocation, ends before they could */
    TRP_WAIT_BARRIER,  /* slots for all tasks of a barrier stage at once */
    TRP_WAIT_MAX_RUNNING, /* max_running of its tasks are running */
    TRP_WAIT_LIMITS,      /* a limit on executors: their number, or alloc.max_* */
    TRP_WAIT_LOCALITY,    /* a slot nearer to their data */
    TRP_WAIT_TURN,        /* stages that come first */
    TRP_WAIT_SLOTS,       /* a free slot: all slots of its profile are taken */
    TRP_WAITS,
};
const char *trp_wait_name(enum trp_wait what); /* "nothing", "max_running", … */
/* Cost: O(executors). */
enum trp_wait trp_engine_waits_for(const trp_engine *e, trp_stage_id stage);

/* Checks every invariant the hard way (slow, for tests): 0, or TRP_ESTATE with what is
 * broken. */
int trp_engine_sanity_check(const trp_engine *e, trp_error *err);

#endif
