/*
 * The driver: feeds events to the engine and performs the actions it returns.
 *
 * It owns the run: run folder, event log, control channel, cluster backend and engine.
 * What a job's tasks *are* (commands of a pipeline, functions of a C program) is told
 * by a struct trp_work; the driver knows neither.
 *
 *     trp_driver_new(&config, &driver, &err);
 *     trp_driver_submit(driver, &spec, &work, &job, &err);
 *     trp_driver_wait(driver, job, &err);      // runs the loop until the job ended
 *     trp_driver_end(driver, status);          // gives everything back
 *
 * Threads: the loop runs on the thread that calls trp_driver_wait; while the program is
 * elsewhere a standby thread runs it (baton.h), so executors are kept alive and
 * admitted.
 */
#ifndef TRP_DRIVER_DRIVER_H
#define TRP_DRIVER_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/options.h"
#include "conf/site.h"
#include "core/engine.h"
#include "driver/backends.h"
#include "events/event_log.h"
#include "wire/message.h"

typedef struct trp_driver trp_driver;

/* The tasks of a stage that became ready. */
struct trp_stage_tasks {
    uint32_t ntasks;
    struct trp_preferences prefer;
    const uint8_t *done;     /* ntasks bytes or NULL */
    const struct trp_by *by; /* of each parent `by` in its spec */
    uint32_t nby;
};

/* What a job's tasks are. `stage` is the index of the stage in the job's spec; of a job
 * that is told as a dataset, the dataset that the stage computes. A stage that jobs of
 * datasets share is the first one's, also when that is over and the others are not: the
 * context is to be there until `gone`. All calls come from the loop; strings and bytes
 * given out stay valid until stage_ended.
 */
struct trp_work {
    void *context;
    /* The context is there until trp_driver_end: task_ended is told what ends after the
     * job (attempts that are killed then, or succeed before the kill comes). */
    bool lasts;
    /* What the first attempts of its stages are called: above 0 when a run goes on. */
    uint32_t first_attempt;
    /* The stage is ready: tell its tasks (foreach, what was done before). Fill `ret`;
     * on failure the stage fails with err->text. NULL when all specs know their tasks.
     */
    int (*stage_tasks)(void *context, uint32_t stage, struct trp_stage_tasks *ret,
                       trp_error *err);
    /* The STAGE message body (kind, timeout, cwd, …): sent to each executor once. */
    int (*stage_message)(void *context, uint32_t stage, struct trp_stage_message *ret,
                         trp_error *err);
    /* The stage (`checked` in its spec) has ended but for this: is all of it there? 0,
     * TRP_EWAIT: not yet, err->text is why it fails if that stays so. */
    int (*stage_check)(void *context, uint32_t stage, trp_error *err);
    /* An attempt has ended well: does that stand? If not, it has failed by an output, as `why`
     * says. May be NULL. */
    bool (*attempt_check)(void *context, uint32_t stage, uint32_t task, char *why,
                          size_t size);
    /* A later attempt of the stage begins: what it is called. May be NULL. */
    void (*stage_attempt)(void *context, uint32_t stage, uint32_t attempt);
    /* What goes with one launch. Called before each launch; may be NULL. Removes what a
     * failed attempt left (outputs of the task) when number > 0. */
    void (*launch)(void *context, uint32_t stage, uint32_t task, uint32_t number,
                   struct trp_launch *l);
    /* The verdict on an attempt with what it brought (`end->extra` borrowed). May be
     * NULL. */
    void (*task_ended)(void *context, uint32_t stage, const struct trp_action *verdict,
                       const struct trp_end *end);
    /* A task is given up, in stage `after` (TRP_NONE: it has failed for good, how is in
     * `t`) or, for that, here: fills in item and log, which stay valid until the next
     * call. May be NULL. */
    void (*task_given_up)(void *context, uint32_t stage, uint32_t after,
                          struct trp_event_given_up *t);
    /* Appends the name of a task; false: it has none but its number. Of a stage that has
     * told its tasks. May be NULL. */
    bool (*task_name)(void *context, uint32_t stage, uint32_t task, struct trp_buf *b);
    /* The stage is over. May be NULL. */
    void (*stage_ended)(void *context, uint32_t stage,
                        const struct trp_action *verdict);
    /* The driver has forgotten the job: no call follows. May be NULL. */
    void (*gone)(void *context);
};

enum trp_driver_mode { TRP_DRIVER_ELASTIC, TRP_DRIVER_STATIC };

struct trp_driver_config {
    enum trp_driver_mode mode;
    const char *run_name; /* the run folder's name */
    const char *run_dir;  /* absolute; exists, locked */
    const char *app_name; /* free text */
    const trp_options *options;
    const struct trp_site *site;       /* NULL: none */
    trp_profiles *profiles;            /* borrowed */
    struct trp_cluster_where where;    /* executors come from there */
    const struct trp_host_rack *racks; /* static: where its hosts stand; only read by */
    uint32_t nracks;                   /* trp_driver_new */
    const struct trp_pool_spec
        *pools; /* as the engine's; only read by trp_driver_new */
    uint32_t npools;
    const char *const *executor_argv; /* how an executor is started, NULL-terminated */
    const char *carried;     /* how messages travel, and why; NULL: that is plain */
    const char *ompi_server; /* file with the URI of ompi-server; NULL: over sockets */
    bool quiet;              /* no progress on stderr, no summary */
    int control_fd;          /* socket to `troupe` (see control.h), or -1 */
    bool prints;             /* executors themselves run what prints: a C program */
    bool resumes;            /* what ends early goes on with --resume: a pipeline */
};

int trp_driver_new(const struct trp_driver_config *config, trp_driver **ret_driver,
                   trp_error *err);

/* A profile was added to the manager: the cluster is asked whether it fits, the event
 * log gets its event. TRP_ENEVER with the cluster's words when no executor can ever
 * hold it. */
int trp_driver_profile_added(trp_driver *d, trp_profile_id id, trp_error *err);

/* Tells of a dataset, for jobs that compute it or read its map outputs; *ret_id is how
 * many were told before. `spec` is copied. TRP_EINVAL, TRP_ELIMIT, TRP_ENOMEM. */
int trp_driver_dataset(trp_driver *d, const struct trp_dataset_spec *spec,
                       uint32_t *ret_id, trp_error *err);

/* Where a dataset that was told as `cached` is kept, for displays: memory is 1, disk 2. */
void trp_driver_keeps(trp_driver *d, uint32_t dataset, unsigned level);
/* Nobody needs the kept partitions of a dataset any more: they go, on all executors, and
 * none is kept from now on. A second time changes nothing. */
void trp_driver_unpersist(trp_driver *d, uint32_t dataset);

/* Nobody speaks of a dataset any more, nor of what is made of it: what engine and driver
 * know of it goes, and on all hosts its map outputs and kept partitions. Later, if a job of
 * it is not over. */
void trp_driver_dataset_free(trp_driver *d, uint32_t dataset);

/* The loop, which goes on in another thread, stands still from _enter to _leave. Calls
 * may be nested; all others here do it by themselves. Not for what the loop calls. */
void trp_driver_enter(trp_driver *d);
void trp_driver_leave(trp_driver *d);

/* Submits a job; `work` is copied, its context must live until the job ended, or `gone`
 * is told. Jobs run beside each other, whoever waits for which. A job of datasets may
 * name a pool: TRP_EINVAL for one that there is not. */
int trp_driver_submit(trp_driver *d, const struct trp_job_spec *spec,
                      const struct trp_work *work, trp_job_id *ret_job, trp_error *err);

/* No job is submitted after those that there are: what they do not need may be given
 * back. */
void trp_driver_last_job(trp_driver *d);

/* Runs until the job ended: 0, or TRP_EFAILED, TRP_ENEVER, TRP_ECANCELLED, TRP_ETIME,
 * TRP_ESYSTEM with the text of what failed first. Once a job. */
int trp_driver_wait(trp_driver *d, trp_job_id job, trp_error *err);
/* Runs until one of these jobs is over: its place among them, the first; or TRP_ETIME,
 * behind so many nanoseconds (INT64_MAX: never). Numbers that no job has are passed over,
 * but for all of them. */
int trp_driver_wait_any(trp_driver *d, const trp_job_id *jobs, uint32_t n,
                        int64_t timeout_ns);
/* Whether trp_driver_wait would return at once. */
bool trp_driver_over(trp_driver *d, trp_job_id job);
/* Ends a job as cancelled; nothing happens to one that is over. Stages that other jobs
 * need go on. */
void trp_driver_cancel(trp_driver *d, trp_job_id job);
/* The same, and nobody will wait for it. */
void trp_driver_drop(trp_driver *d, trp_job_id job);
/* Cancels all jobs that need a stage of this name which has not ended. TRP_ENOENT: there
 * are none. */
int trp_driver_cancel_stage(trp_driver *d, const char *name);

/* A sum that tasks of functions add to (driver/accumulators.h): its id, from 1, which
 * they know it by; 0: out of memory. The name is copied. */
uint32_t trp_driver_accumulator(trp_driver *d, const char *name);
/* What was added by now. */
int64_t trp_driver_accumulated(trp_driver *d, uint32_t id);

/* The folder of the run that all hosts see and that goes with the run, for what does not
 * travel in messages. */
const char *trp_driver_shared(const trp_driver *d);
/* There are files in it that all hosts read: executors of batch jobs make copies of them on
 * their hosts, and give them to each other (driver/copy_tree.h). */
void trp_driver_shares_files(trp_driver *d);

/* Goes on for a while, at most `ns`. */
void trp_driver_pass(trp_driver *d, int64_t ns);

/* Ends what still runs of all jobs and waits until it has ended: for 2 s, or 7 s where
 * it is asked politely. */
void trp_driver_end_attempts(trp_driver *d);

/* What ends the whole run (TRP_ECANCELLED, TRP_ETIME, TRP_ESYSTEM), 0: nothing does. */
int trp_driver_stopped(const trp_driver *d);
/* Ends the run: releases executors, ends the event log, writes and prints the summary
 * (on fd 1 unless `quiet`), tells `troupe`. Frees. Returns the exit status of the run,
 * `status` unless something failed at the end. */
int trp_driver_end(trp_driver *d, int status, bool quiet);
/* After that: the process exits with `status`, which is the run's unless that failed.
 */
void trp_driver_exits(int status);

/* Holds the run's folder (os/held.h), which has to be the one that `troupe` made:
 * its identity is in TROUPE_RUN_ID, which is unset. This process is its only driver:
 * TRP_ESTATE as for trp_run_folder_drives. */
int trp_driver_hold(const char *run_dir, trp_error *err);

/* What helps a run over MPI that fails by that. */
#define TRP_TRANSPORT_ADVICE "set comm.transport=socket, or leave it at auto"

/* The words for comm.transport=mpi where messages cannot travel over MPI: TRP_EINVAL. */
int trp_driver_without_mpi(const trp_options *o, const char *why, trp_error *err);

/* For C programs (lib/api). Holds and opens the run that `troupe run -- APP` prepared:
 * loads RUN_DIR/state/run_spec.json, options, site and profiles, connects the control
 * socket and makes an elastic driver. The caller frees *ret_profiles after
 * trp_driver_end. */
int trp_driver_open(const char *run_dir, trp_driver **ret_driver,
                    trp_profiles **ret_profiles, trp_error *err);

/* The same for a static run (`mpirun -n N APP`): MPI_Init_thread, world channel, run
 * folder. `started`: N, as the launcher says it. Returns on rank 0 only; a rank above 0
 * works with `runner` until the driver ends it, and exits. */
struct trp_function_runner;
int trp_driver_open_static(const char *program, int started,
                           const struct trp_function_runner *runner,
                           trp_driver **ret_driver, trp_profiles **ret_profiles,
                           trp_error *err);

#endif
