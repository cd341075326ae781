/*
 * A second, slow and obvious implementation of what docs/semantics.md says about task sets
 * on executors: sections 4, 6 to 10, 12, 13 (launch) and 19, and section 11. It was
 * written from that text, knows nothing of lib/core, and is compared with it on small
 * random cases (against_oracle.c).
 *
 * Small means: everything is an array of fixed size and every question is answered by
 * looking at everything. Times are ms. Amounts of a custom resource are counted in
 * sixtieths of an address (OR_UNIT), so that 1/2, 1/3, 1/4, 1/5 and 0.3 are exact.
 *
 * Pending lists: those by place are never stored. Each time a task becomes pending it
 * gets the next push number, the initial ones in reverse order of index; the top of a
 * stack is the task of that list with the highest number. Only the lists of all tasks
 * are kept as they are, with what is stale in them, since a set takes part in a round,
 * and rejects, as long as they are not empty.
 */
#ifndef TESTS_PROPERTY_ORACLE_H
#define TESTS_PROPERTY_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    OR_HOSTS = 4,
    OR_RACKS = 2,
    OR_EXECUTORS = 6,
    OR_SETS = 5,
    OR_TASKS = 12,
    OR_PREFERENCES = 2,
    OR_PROFILES = 3,
    OR_RESOURCES = 2,
    OR_ADDRESSES = 3,
    OR_POOLS = 4,
    OR_ATTEMPTS = 1024,
    OR_DECISIONS = 1024,
    OR_LIST = 4096,
    OR_UNIT = 60,
    OR_NONE = -1,
};

enum or_level { OR_PROCESS, OR_NODE, OR_NO_PREF, OR_RACK, OR_ANY, OR_LEVELS };

/* ---- what is given ---- */

struct or_profile {
    bool task_only;         /* runs on executors of profile 0 too, when static */
    int cores, cpus;        /* of an executor, of a task */
    int have[OR_RESOURCES]; /* addresses an executor has */
    int take[OR_RESOURCES]; /* what a task takes, in units; 0: nothing */
};

struct or_preference {
    int host, executor; /* executor: OR_NONE for the host only */
};

struct or_task_spec {
    int npreferences;
    struct or_preference preferences[OR_PREFERENCES];
};

struct or_set_spec {
    int stage, attempt, job, profile, pool;
    bool map, barrier;
    int ntasks;
    struct or_task_spec tasks[OR_TASKS];
};

struct or_pool_spec {
    bool fair;
    int parent, weight, min_share; /* parent: OR_NONE, the root */
};

struct or_exclusion {
    bool on;
    int task_per_executor, task_per_host, set_per_executor, set_executors_per_host;
    int app_per_executor, app_executors_per_host;
    int64_t timeout, unschedulable_timeout;
};

struct or_speculation {
    bool on, efficiency;
    double quantile, multiplier, rate_multiplier, long_factor;
    int64_t min_runtime, threshold; /* threshold: 0, none */
};

struct or_setup {
    bool fixed; /* static manager: dynamic allocation is off */
    bool fair, pack, legacy_reset, shuffle_service, manual_start;
    int max_failures;
    int64_t wait[OR_LEVELS];
    struct or_exclusion exclusion;
    struct or_speculation speculation;
    int nprofiles, npools, nsets;
    struct or_profile profiles[OR_PROFILES];
    struct or_pool_spec pools[OR_POOLS]; /* 0 is "default"; others "p<n>" */
    struct or_set_spec sets[OR_SETS];
    int rack[OR_HOSTS]; /* of a host; OR_NONE */
    struct {
        int host, profile;
    } executors[OR_EXECUTORS];
};

/* ---- what is decided ---- */

enum or_decision_kind {
    OR_LAUNCH,
    OR_KILL,
    OR_REQUEUED,
    OR_SPECULATABLE,
    OR_FINISHED,
    OR_ABORTED,
    OR_ZOMBIE,
};

struct or_decision {
    enum or_decision_kind kind;
    int set, task, attempt, executor; /* OR_NONE where it says nothing */
    enum or_level level;
    bool speculative;
    unsigned addresses[OR_RESOURCES]; /* bit i: address i */
};

/* ---- state ---- */

enum or_attempt_state { OR_RUNNING, OR_SUCCEEDED, OR_ENDED };

struct or_attempt {
    int set, task, number, executor;
    enum or_attempt_state state;
    bool launching, by_other; /* by_other: told to die, another one succeeded */
    bool speculative;
    int64_t launched;
    double rate; /* records a second, when it last told */
    int taken[OR_RESOURCES][OR_ADDRESSES];
};

struct or_task {
    int copies, attempts, failures;
    bool done;
    bool left;     /* not run again here: fetch failed, or too many failures */
    bool picked;   /* in the barrier round that is going on */
    int picked_on; /* … on this executor, at this level, … */
    enum or_level picked_level;
    int picked_taken[OR_RESOURCES][OR_ADDRESSES];
    int pushed; /* 0: never */
    bool speculatable;
    int speculative_pushed;
    int failed_on[OR_EXECUTORS]; /* counted failures there, for exclusion */
    int64_t failed_at[OR_EXECUTORS];
};

struct or_set {
    bool submitted, zombie, aborted, finished, removed;
    struct or_task tasks[OR_TASKS];
    int pushes;
    int all[OR_LIST], nall;       /* stacks: the top is the last */
    int copies[OR_LIST], ncopies; /* of tasks that may get a copy */
    enum or_level levels[OR_LEVELS];
    int nlevels, current;
    int dropped[OR_LEVELS]; /* the last push before its keys went */
    int64_t last;
    bool no_reject;
    int64_t durations[OR_ATTEMPTS];
    int ndurations;
    int64_t total_records, total_runtime;
    bool excluded_executor[OR_EXECUTORS], excluded_host[OR_HOSTS];
    int64_t abort_at; /* INT64_MAX: no timer */
};

enum or_executor_state { OR_ABSENT, OR_LIVE, OR_GONE };

struct or_executor {
    enum or_executor_state state;
    bool decommissioned;
    int order; /* of adding */
    int cores;
    int left[OR_RESOURCES][OR_ADDRESSES];
    int nfailures; /* application level */
    int64_t failure_expires[64];
    int64_t excluded_until; /* -1: not excluded */
};

struct oracle {
    const struct or_setup *setup;
    int64_t now;
    int added;
    struct or_executor executors[OR_EXECUTORS];
    struct or_set sets[OR_SETS];
    struct or_attempt attempts[OR_ATTEMPTS];
    int nattempts;
    int64_t host_excluded_until[OR_HOSTS];      /* -1: not excluded */
    struct or_decision decisions[OR_DECISIONS]; /* since or_begin */
    int ndecisions;
};

enum or_end {
    OR_END_SUCCESS,
    OR_END_FAILED,
    OR_END_LOST_RESULT,
    OR_END_KILLED,
    OR_END_COMMIT_DENIED,
    OR_END_FETCH_FAILED,
    OR_END_NOT_SERIALIZABLE,
    OR_END_OUTPUT_EXISTS,
    OR_END_EXECUTOR_LOST,      /* the oracle's own, by or_lose */
    OR_END_EXECUTOR_LOST_FREE, /* … not caused by the application */
};

enum or_loss {
    OR_EXITED,
    OR_EXITED_NOT_BY_APP,
    OR_KILLED_BY_DRIVER,
    OR_DECOMMISSIONED,
    OR_HEARTBEAT
};

void oracle_init(struct oracle *o, const struct or_setup *setup);

/* Forgets the decisions told so far and moves time; timers due until then fire. */
void oracle_begin(struct oracle *o, int64_t now);

/* Steps; the caller sees to it that they are possible (an absent executor is added, a
 * running attempt ends, …). */
void oracle_submit(struct oracle *o, int set);
void oracle_add(struct oracle *o, int executor);
void oracle_decommission(struct oracle *o, int executor);
void oracle_lose(struct oracle *o, int executor, enum or_loss loss);
void oracle_end(struct oracle *o, int attempt, enum or_end status, int64_t records);
void oracle_started(struct oracle *o, int attempt);
void oracle_progress(struct oracle *o, int attempt, int64_t records);
void oracle_speculate(struct oracle *o);
void oracle_tick(struct oracle *o); /* exclusions that have expired */
/* A round over the executors with true in `offered`; full: of all free resources. */
void oracle_round(struct oracle *o, const bool *offered, bool full);

/* Section 13: tasks of a profile that could run at once. */
int oracle_slots(const struct oracle *o, int profile);

/* ---- between the oracle's files ---- */

void or_decide(struct oracle *o, struct or_decision d);
bool or_alive(const struct oracle *o, int executor); /* for locality levels */
bool or_needs_to_run(const struct or_task *t);
bool or_all_done(const struct oracle *o, int set);
int or_running_of(const struct oracle *o, int set);
bool or_executor_idle(const struct oracle *o, int executor);
void or_push(struct oracle *o, int set, int task);
void or_recompute(struct oracle *o, int set);
void or_abort(struct oracle *o, int set);
void or_count_failure(struct oracle *o, int set, int task, int executor);
void or_set_succeeded(struct oracle *o, int set);
bool or_app_excluded(const struct oracle *o, int executor);
bool or_set_excluded(const struct oracle *o, int set, int executor);
bool or_task_excluded(const struct oracle *o, int set, int task, int executor);
bool or_completely_excluded(const struct oracle *o, int set, int task);
int or_order(const struct oracle *o, int *ret_sets);
bool or_may_run(const struct oracle *o, int profile, int executor);

#endif
