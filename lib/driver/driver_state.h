/*
 * What the driver's parts share. Internal to lib/driver; driver.h is the contract.
 *
 *     driver.c      making, ending
 *     driver_jobs.c what a program does with a driver: profiles, jobs, accumulators
 *     loop.c        the loop: take what came, step the engine, send, sleep
 *     perform.c     the actions of the engine: perform_stages.c, perform_attempts.c
 *     executor_records.c  executors: what the engine wants of them
 *     record_life.c       … and what becomes of them
 *     executor_messages.c what they tell of attempts
 *     allocation_ends.c  the end of the driver's allocation
 *     map_outputs.c map outputs: for who reads them, and what ends say of them
 *     locations.c   where they lie, and who serves them
 *     moving.c      … and how they leave hosts that go
 *     kept_datasets.c  partitions that executors keep
 *     freed_datasets.c  datasets that nobody needs any more
 *     secrets.c     what executors have to prove
 *     monitoring.c  what the run tells a monitoring system
 *     open.c        from a run specification, or from MPI ranks, to a driver
 */
#ifndef TRP_DRIVER_DRIVER_STATE_H
#define TRP_DRIVER_DRIVER_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "cluster/cluster.h"
#include "comm/channel.h"
#include "conf/pool_section.h"
#include "core/base/array.h"
#include "core/base/time.h"
#include "driver/accumulators.h"
#include "driver/asked.h"
#include "driver/control.h"
#include "driver/driver.h"
#include "events/engine_trace.h"
#include "events/event_log.h"
#include "events/progress.h"
#include "executor/baton.h"
#include "os/spin.h"
#include "wire/map_output.h"

/* An executor keeps at most so many stages that ended, until it is told to forget them.
 */
enum { TRP_OVER_MAX = 8 };

/* How far an executor has come. Bits, so that a set of them can say what may happen. */
enum trp_record_state {
    TRP_RECORD_COMING = 1, /* asked for, or a rank that is expected */
    TRP_RECORD_UP = 2,     /* joined: can be sent to */
    TRP_RECORD_DOWN = 4,  /* its connection has closed, nobody knows why: `gone` will */
    TRP_RECORD_GONE = 8,  /* its process is gone, its last words are awaited */
    TRP_RECORD_LOST = 16, /* the engine knows that it is gone */
    /* It was added, and not removed since. */
    TRP_RECORD_JOINED = TRP_RECORD_UP | TRP_RECORD_DOWN | TRP_RECORD_GONE,
};

/* An executor as the driver knows it. Numbered as in the engine. */
struct trp_executor_record {
    trp_executor_id id;
    trp_profile_id profile;
    enum trp_record_state state;
    bool here;              /* its process may exist: the cluster has not said `gone` */
    bool released;          /* told to go by the engine */
    bool leaving;           /* its node is drained, and the engine was told */
    bool going;             /* its node, or its job, goes: so do its map outputs */
    bool held_back;         /* released, but for outputs that are to be moved first */
    int64_t goes_at;        /* its job ends soon after, mono; INT64_MAX: it does not */
    enum trp_loss ended;    /* what the cluster says of its end; EXITED: nothing */
    int64_t last_words_due; /* in GONE: how long its last words are waited for, mono */
    struct trp_last_words last_words;
    int64_t requested; /* when, mono */
    char *host, *rack;
    char *cause; /* how it ended, for the log; NULL: nothing is known */
    struct trp_resource_addresses *resources;
    uint32_t nresources;
    struct trp_buf launches;         /* a LAUNCH message being filled */
    trp_stage_id over[TRP_OVER_MAX]; /* ended stages that it still has */
    uint8_t nover;
    bool launching;         /* it is in the driver's to_flush */
    uint32_t ends;          /* ends of attempts that it has told */
    uint32_t location;      /* of its map outputs; TRP_NONE: it has not said */
    char *endpoint;         /* of its block server; NULL: none that can be asked */
    bool reads;             /* it was told where inputs are … */
    uint64_t servers_known; /* … and of so many changes of who serves them */
    struct trp_event_block *blocks; /* changed by attempts that have not ended yet */
    uint32_t nblocks, blocks_cap;
};

/* Where map outputs lie. */
struct trp_driver_location {
    struct trp_location is;
    uint32_t *servers; /* executors */
    uint32_t nservers, servers_cap;
    uint64_t changed;         /* the last change of these, in the order of all */
    uint32_t last;            /* who has served it and left last, TRP_NONE: nobody */
    struct trp_stack dropped; /* datasets whose outputs there are still to be removed */
    bool unserved;            /* it was read when nobody served it */
    bool moving;      /* outputs are being moved from there to the run's folder … */
    uint32_t mover;   /* … by this executor; TRP_NONE: by a step */
    bool moved;       /* some were; or it is the run's folder, and some are there */
    bool unmovable;   /* no more are: it failed, or did not help */
    uint32_t nmoved;  /* by this mover … */
    uint64_t bytes;   /* … so many bytes … */
    int64_t took_ns;  /* … in so long */
    int64_t move_due; /* it has failed then; of one that nobody serves and that is read:
                       * a step is sent; INT64_MAX: neither */
};

/* The location of each map task's output, and the attempt that made it. */
struct trp_driver_outputs {
    struct trp_driver_output {
        uint64_t attempt, bytes;
        int64_t made_ns;   /* what its task has taken */
        uint32_t location; /* 1 + its number; 0: none is known */
    } * v;
    uint32_t n;
    struct trp_stack places; /* locations of all that there ever were */
};

/* A stage of a job that is not over yet. */
struct trp_driver_stage {
    trp_stage_id id;
    struct trp_driver_job *job;
    uint32_t index;   /* in the job's spec; of a job of datasets the dataset */
    uint32_t dataset; /* that it computes; TRP_NONE: told as a stage */
    bool map;         /* it leaves map outputs */
    char *name;
    char *pool; /* NULL: it names none */
    trp_profile_id profile;
    trp_stage_id *parents;
    uint32_t nparents;
    uint32_t ranks; /* of a gang, else 0 */
    bool gang, submitted, ended, function;
    bool counted; /* its tasks are in the driver's `tasks` */
    uint32_t ntasks;
    int64_t timeout_ns;
    uint32_t attempt;       /* the last that was submitted, of this run */
    bool whole;             /* a barrier stage: runs again as a whole */
    struct trp_buf message; /* the STAGE message, once it was made */
    struct trp_buf inputs;  /* the INPUTS message of attempt `inputs_of` */
    uint32_t inputs_of;
    /* By executor number: 0, or 1 + the attempt whose inputs it has. */
    uint32_t *sent;
    uint32_t nsent;
    uint32_t live;              /* attempts launched and not ended */
    struct trp_action launch;   /* of a gang: its last one */
    bool has_room;              /* the gang, and runs */
    int64_t room_since;         /* mono: when it first had; 0: it never had */
    uint32_t done;              /* tasks, in the last attempt or before it */
    uint32_t failures;          /* counted so far */
    uint32_t given_up, skipped; /* tasks */
    int64_t started;            /* wall */
    int64_t idle_since;         /* mono: when it was submitted, or `live` became 0 */
    enum trp_wait waits_for;    /* as the event log has it */
    int64_t waits_due;          /* mono: when it may be told again */
    int64_t check_since;        /* mono: its outputs are looked for; 0: they are not */
    struct {
        uint32_t task, times; /* it failed, so far */
        char reason[768];
    } failed; /* the last counted failure */
};

/* A dataset, as far as it is kept or made of one that is. */
struct trp_driver_kept {
    uint32_t *below;     /* the kept ones that it is made of … */
    uint32_t nbelow;     /* … so many */
    uint32_t partitions; /* of a kept one … */
    uint8_t level;       /* … where: memory is 1, disk 2 */
    bool gone;           /* unpersisted */
    char *name;          /* NULL: it is not kept */
};

struct trp_driver_job {
    trp_job_id id;
    struct trp_driver_job *next; /* of those that there are */
    char *name, *pool;           /* NULL: none */
    struct trp_work work;
    uint32_t first, nstages;
    bool logged;     /* that it began */
    bool over, told; /* ended; nobody waits for it any more */
    enum trp_outcome outcome;
    trp_error err;       /* what failed first */
    trp_stage_id failed; /* its error is still to come, from this stage */
};

struct trp_driver {
    struct trp_driver_config config;
    char *run_name, *run_dir, *shared; /* `shared`: trp_driver_shared */
    uv_loop_t loop;
    uv_poll_t channel_poll, control_poll;
    uv_async_t wake;
    uv_timer_t timer;
    bool has_channel_poll, has_control_poll, loop_made;
    trp_engine *engine;
    trp_engine_trace *trace; /* events.engine; NULL: none */
    trp_channel *channel;
    trp_cluster *cluster;
    trp_event_log *log;
    trp_asked *asked;                   /* NULL: there is no socket for it */
    struct trp_driver_metrics *metrics; /* monitoring.h; NULL: none are wanted */
    trp_progress *progress;
    trp_profiles *profiles;
    const trp_options *options;
    int64_t network_timeout_ns, heartbeat_ns;
    double memory_fraction;
    int64_t records_ns;  /* how often running functions tell what they have read */
    int64_t wall_offset; /* wall - mono, ns */
    int64_t now;         /* mono; read once a turn and a message: calls are not free */

    struct trp_executor_record **records; /* by executor number */
    uint32_t nrecords, records_cap;
    uint32_t here, up;
    struct trp_driver_stage **stages; /* by stage id; NULL: over */
    uint32_t nstages, stages_cap;
    struct trp_driver_job **jobs; /* by job id; NULL: over and told */
    uint32_t njobs, jobs_cap;
    struct trp_driver_job *there; /* all of them */
    bool unsettled;               /* some may be of no use any more */
    struct {
        trp_stage_id stage;
        trp_error err;
    } failure; /* of the last stage of datasets that failed */
    const struct trp_job_spec
        *submitting; /* the spec and work of the job in this step */
    const struct trp_work *submitting_work;
    uint32_t attempts; /* live */
    uint64_t steps;    /* of the engine */
    bool performing;   /* actions are being taken, further out */
    trp_accumulators *accumulators;
    const struct trp_end *ended;           /* the end that the present step is about */
    uint32_t *to_flush, nflush, flush_cap; /* executors with launches to send */

    /* For the progress line and who asks: `tasks` are all that are known, but for those
     * of stages that need not run, of which nothing was missing. */
    uint32_t stages_known, stages_done, tasks, tasks_done, failures;
    int64_t progress_due;
    int64_t waiting_due, waiting_step; /* waiting.c */
    struct {
        int64_t due;               /* no look before it, mono … */
        int64_t late;              /* … and one then, or when there were steps */
        uint64_t steps;            /* of the engine, when this round of looks began */
        uint32_t at;               /* the stage looked at last in it; 0: it is over */
    } waits;                       /* waiting.c: for the event log */
    uint32_t checking;             /* stages whose outputs are looked for … */
    int64_t check_due, check_step; /* … then again: late_outputs.c */
    int64_t last_words_due;        /* record_life.c: the first of them, or INT64_MAX */

    int64_t active; /* when something last happened, mono */
    int64_t looked; /* when libuv was last asked, mono */
    struct trp_spin spin;
    uint32_t functions; /* function attempts in flight: worth spinning for a little */
    bool orphaned;      /* `troupe` is gone: nobody else notes how the run ended */
    int stop;      /* 0, or TRP_ECANCELLED, TRP_ETIME, TRP_ESYSTEM: why the run ends */
    bool last_job; /* no other one will be submitted */
    bool drains;   /* its job has failed, and what runs may finish */
    bool killed;   /* … and running tasks are killed */
    int64_t kill_at;              /* end of the grace, mono */
    uint32_t ndatasets;           /* told to the engine */
    bool files;                   /* there are map outputs, or will be */
    struct trp_copy_tree *copies; /* of files that all hosts read; NULL: none yet */
    bool files_unserved;          /* some were left where nobody serves them */
    struct trp_driver_location *locations;
    uint32_t nlocations, locations_cap;
    uint64_t location_changes;          /* of who serves them */
    int64_t servers_due;                /* readers are told then, or INT64_MAX */
    int64_t moving_due;                 /* moving.c: something is due, or INT64_MAX */
    uint64_t moving_rate;               /* of outputs, bytes a second; 0: not known */
    struct trp_driver_outputs *outputs; /* by dataset */
    uint32_t noutputs;
    struct trp_stack freeing;      /* datasets to be freed that were in use */
    bool over;                     /* executors are told that the run is */
    struct trp_driver_kept **kept; /* by dataset; NULL: it was freed */
    bool disk_full_told;           /* of an executor that keeps partitions: the first */
    uint32_t kept_cap;
    char fetch_text[512];         /* of the end that is taken */
    struct trp_event_fetch fetch; /* the same: what could not be fetched */
    char out_of_time[384];        /* nothing can be begun any more: why; "" */
    int64_t ends_wall, time_up;   /* the end of its allocation, s; of the run, mono */
    bool soft;                    /* kills begin with SIGTERM: the grace is over */
    bool hurry;                   /* the second signal: kill at once */
    int64_t program_due; /* a stopped run's program, which is elsewhere, is ended then,
                          * mono; INT64_MAX: it is not … */
    bool program_asked;  /* … and was sent SIGTERM before */
    trp_error stop_error;

    trp_baton *baton;
    uint32_t entered; /* trp_driver_enter less _leave */
    pthread_t standby;
    bool has_standby;
    atomic_bool wanted, ending;
    atomic_bool naps;   /* the standby thread sleeps, without the baton … */
    uint64_t nap_steps; /* … since that step of the engine */

    uint8_t secret[TRP_SECRET_SIZE];
    bool munge; /* executors prove their user by it as well */
    char *secret_file;
    struct trp_pool_list pools;    /* of a program; n 0: FIFO */
    struct trp_run_spec *own_spec; /* what trp_driver_open made: freed at the end */
    trp_options *own_options;
    struct trp_site *own_site;
    struct trp_run_folder *own_folder; /* of a static run */
};

static inline int64_t trp_driver_wall(const trp_driver *d, int64_t mono)
{
    return mono + d->wall_offset;
}

/* driver.c: PROFILE_FIT as the cluster says it now; its text is that of `why`. */
struct trp_event trp_driver_fit(const trp_driver *d,
                                const struct trp_resource_profile *p, trp_error *why);
/* driver.c: other stages may run than before. */
void trp_driver_stages_changed(trp_driver *d);
/* For the progress: the stage's tasks are among all, or not any more; so many of them
 * are done. */
void trp_driver_count_stage(trp_driver *d, struct trp_driver_stage *s, bool counts);
void trp_driver_count_done(trp_driver *d, struct trp_driver_stage *s, uint32_t done);

/* driver.c: tells the engine how many executors of a profile there can be. TRP_ENEVER:
 * none. */
int trp_driver_tell_fit(trp_driver *d, const struct trp_resource_profile *p,
                        trp_error *err);

/* allocation_ends.c: the driver's allocation ends then (seconds since 1970; 0: not
 * known). */
void trp_driver_ends(void *context, int64_t when);
/* The allocation of an executor that was asked for ends then. */
void trp_driver_executor_ends(void *context, trp_executor_id executor, int64_t when);
/* Tasks would outlive an executor's allocation: it is to be replaced. */
void trp_driver_outlived(trp_driver *d, const struct trp_action *a);
/* The engine can begin nothing more before it. */
void trp_driver_out_of_time(trp_driver *d, const struct trp_action *a);
/* Stops the run when its time is up. */
void trp_driver_check_time(trp_driver *d, int64_t now);

/* Something of it runs: more than a gang that waits for its room. */
bool trp_driver_runs(const struct trp_driver_stage *s);

/* waiting.c: tells of stages that wait for long; its timer is d->waiting_due. */
void trp_driver_tell_waiting(trp_driver *d, int64_t now);
/* Notes in the event log what stages wait for, when it has changed … */
void trp_driver_log_waits(trp_driver *d, int64_t now);
/* … and when that is looked at next, INT64_MAX: after the engine's next step. */
int64_t trp_driver_log_waits_due(const trp_driver *d);
/* The engine's reason, and what the cluster knows of executors that are not there. */
void trp_driver_why_waiting(const trp_driver *d, trp_stage_id id, int64_t now,
                            char *why, size_t size);

/* late_outputs.c: the tasks of a stage are over; its outputs are looked for, now and, while
 * they may only be late, at d->check_due. */
void trp_driver_check_stage(trp_driver *d, trp_stage_id id);
void trp_driver_check_late(trp_driver *d, int64_t now);

/* secrets.c: the run's secret, and whether MUNGE is asked as well; *ret_no_munge: why
 * not. */
int trp_driver_secrets(trp_driver *d, trp_error *ret_no_munge, trp_error *err);
/* In a Slurm job, where nodes have MUNGE, as a rule. */
void trp_driver_tell_no_munge(trp_driver *d, const trp_error *why);

/* driver.c: tells all executors to go. */
void trp_driver_release_all(trp_driver *d);
/* Ends the run in the place of its program, by the standby thread, which has the baton
 * and keeps it: what the program asks of the driver afterwards is never answered. */
void trp_driver_end_elsewhere(trp_driver *d);

/* loop.c */
int trp_driver_loop_init(trp_driver *d, trp_error *err);
int trp_driver_loop_channel(trp_driver *d, trp_error *err); /* once it is there */
/* One turn: takes what came, fires timers, sends. Sleeps when nothing is to be done,
 * until something comes, or at most until `until` (mono ns). */
void trp_driver_turn(trp_driver *d, int64_t until);
int trp_driver_standby_start(trp_driver *d, trp_error *err);
void trp_driver_standby_stop(trp_driver *d);
void trp_driver_loop_close(trp_driver *d);
/* The run is to end: `why` TRP_ECANCELLED, TRP_ETIME or TRP_ESYSTEM. */
void trp_driver_cancel_jobs(trp_driver *d);
void trp_driver_stop(trp_driver *d, int why, bool kill, const char *text);
/* Nothing is carried over MPI any more: the run ends, and says what to set. */
void trp_driver_mpi_failed(trp_driver *d, const char *why);

/* perform.c */
void trp_driver_step(trp_driver *d, const struct trp_event *ev); /* and perform */
/* Steps without performing: for use while an action is being performed, when the
 * actions that follow are taken by the loop of the step further out. */
int trp_driver_try_step(trp_driver *d, const struct trp_event *ev, trp_error *err);
void trp_driver_perform(trp_driver *d);

/* perform_stages.c */
struct trp_driver_stage *trp_driver_stage_of(const trp_driver *d, trp_stage_id id);
/* What messages call a task of it (events/task_names.h). Returns `buf`. */
const char *trp_driver_task_word(const struct trp_driver_stage *s, uint32_t task,
                                 char *buf);
/* The encoded STAGE message; made when first needed. NULL: could not be made. */
const struct trp_buf *trp_driver_message(trp_driver *d, struct trp_driver_stage *s,
                                         trp_error *err);
/* Frees jobs that are over and told, of which nothing runs any more, and none of whose
 * stages another job needs. */
void trp_driver_settle(trp_driver *d);
void trp_driver_job_free(trp_driver *d, struct trp_driver_job *j);

/* perform_attempts.c: sends the launches gathered in this turn. */
void trp_driver_flush(trp_driver *d);
/* Sends a message and frees it: the codes of trp_channel_send. */
int trp_driver_send(const trp_driver *d, trp_executor_id executor,
                    struct trp_buf *take_message);

/* executor_records.c */
struct trp_executor_record *trp_record_of(const trp_driver *d, uint32_t executor);
/* A rank of a static run: where it is and what it has. */
int trp_record_expect(trp_driver *d, trp_executor_id id,
                      const struct trp_granted *granted, trp_error *err);
void trp_record_start(trp_driver *d, trp_executor_id id, trp_profile_id profile,
                      bool ahead, const char *not_on);
/* Tells the cluster of one that is still to come, or there: `tell` is its operation,
 * NULL: it has none. */
void trp_record_tell(trp_driver *d, trp_executor_id id,
                     void (*tell)(trp_cluster *c, trp_executor_id executor));
void trp_record_release(trp_driver *d, trp_executor_id id);
void trp_record_relabel(trp_driver *d, trp_executor_id id, trp_profile_id profile);
bool trp_record_expected(void *context, uint32_t executor);
/* Takes over what it was granted. False: out of memory. */
bool trp_record_grant(struct trp_executor_record *x, const struct trp_granted *g);
/* Tells the engine that an executor which it wants will not come. */
void trp_record_refuse(trp_driver *d, trp_executor_id id, enum trp_refusal how,
                       const char *text);
void trp_record_drop(trp_driver *d, struct trp_executor_record *x);
void trp_record_free(trp_driver *d);

/* record_life.c */
/* What it has sent `about` something cannot be: it is not asked for more, and ended. The
 * user is told. It may be freed by that. */
void trp_record_give_up(trp_driver *d, struct trp_executor_record *x,
                        const char *about);
/* Gives those up whose last words have not come in time: at d->last_words_due. */
void trp_record_give_up_late(trp_driver *d, int64_t now);
extern const struct trp_channel_handler trp_driver_channel_handler;
extern const struct trp_cluster_handler trp_driver_cluster_handler;

/* executor_messages.c */
void trp_driver_on_gang_room(void *context, trp_stage_id stage, bool has);
void trp_driver_on_gang_ended(void *context, trp_attempt_id attempt,
                              const struct trp_end *end);
void trp_driver_on_message(void *context, uint32_t peer, const uint8_t *data,
                           size_t size);

/* lines.c: a line in the event log, at d->now; `level` "info", "warning" or
 * "error" … */
void trp_driver_log(const trp_driver *d, const char *level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* … a warning, which the user sees at once as well. */
void trp_driver_warn(trp_driver *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* cluster_news.c: of trp_driver_cluster_handler, what is about no executor. */
void trp_driver_on_notice(void *context, const char *text);
void trp_driver_on_held(void *context);
void trp_driver_on_contended(void *context, bool is);
void trp_driver_on_shrunk(void *context, bool planned, const char *text);
bool trp_driver_on_outlook(void *context, struct trp_outlook *ret);
void trp_driver_on_queue_wait(void *context, trp_profile_id profile, int64_t wait_ns);
void trp_driver_on_nodes(void *context, uint32_t nodes);
void trp_driver_on_job(void *context, const struct trp_cluster_job_news *news);
void trp_driver_on_step(void *context, const struct trp_cluster_step *step);

#endif
