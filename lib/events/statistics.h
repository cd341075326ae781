/*
 * What a run's closing summary and its TroupeTaskSummary events need: per stage counts,
 * times, core- and device-seconds. Exact whatever is written to the log, because the
 * caller of the log counts here itself; O(1) an attempt, memory O(stages + executors). Of a
 * program's stages that are over, those of one name are put together when there are many
 * (trp_statistics_fold), so that a thousand rounds take the place of some.
 *
 * Seconds *held*: an executor's whole time between coming and going belongs to stages,
 * so that the totals add up: to the stage whose tasks ran there, up to the first task
 * of another one; what was before its first task to the stage of that task; if none
 * ever ran there, to no stage. From when tasks of several stages ran there at a time
 * until none did, the time is divided among these stages by what they used of it, so
 * that none held less than it used. A gang holds the slots of its ranks from when it
 * has its room to its end. Seconds *used*: what the profile says a task takes, for as
 * long as the attempt ran.
 *
 * *Node-seconds* are held by stages, too, where nodes of Slurm's are: as long as stages
 * run, all nodes that are held belong to them in equal parts; what is between stages
 * belongs to none.
 *
 * Threads: one at a time.
 */
#ifndef TRP_EVENTS_STATISTICS_H
#define TRP_EVENTS_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

#include "events/durations.h"
#include "events/event_log.h"
#include "events/flow.h"

/* Seconds, held or used. */
struct trp_seconds {
    double cores;
    double devices[TRP_PROFILE_RESOURCES]; /* by index of trp_statistics.device */
};

/* Accumulators, in the order in which they were heard of. */
struct trp_accumulated {
    uint32_t id;
    char *name;
    int64_t value;
};

/* Attempts of a stage that have no lines of their own. */
struct trp_summarised {
    uint64_t succeeded, killed, recalled;
    uint64_t in_full; /* failures since then: they have lines of their own */
    uint64_t levels[TRP_LEVELS];
    struct trp_durations durations; /* of those that succeeded */
    int64_t run_ns;
    uint64_t flow[TRP_FLOWS]; /* without RUN */
    struct trp_executor_share {
        uint64_t tasks;
        int64_t run_ns;
    } * by_executor; /* by executor id */
    uint32_t nexecutors;
    uint64_t gangs; /* attempts without an executor */
};

struct trp_stage_statistics {
    trp_stage_id stage;
    uint32_t attempt;
    uint32_t retry;    /* of those before it: how many this run made */
    bool attempt_over; /* it came to nothing, and that is in the log */
    int64_t began;     /* the attempt; wall clock */
    char *name;
    bool map; /* its tasks leave map outputs */
    uint32_t ntasks;
    trp_profile_id profile;
    trp_stage_id *parents;
    uint32_t nparents;
    int64_t submitted, ended; /* wall clock; 0: not */
    enum trp_outcome outcome;

    uint64_t attempts;              /* ended, less those that never started */
    uint64_t open;                  /* begun, or queued, and not ended */
    uint64_t failures;              /* attempts that count as a failure of their task */
    uint32_t given_up, skipped;     /* tasks that failed for good; never ran for that */
    struct trp_durations durations; /* of attempts that succeeded */
    double cpu;                     /* seconds of CPU time, as measured */
    uint64_t flow[TRP_FLOWS];
    uint32_t *accumulated; /* places in that of the run: its tasks added to them */
    uint32_t naccumulated, accumulated_capacity;
    struct trp_seconds *held, *used;
    bool runs;           /* submitted, and not ended */
    double nodes_before; /* `node_share` of the run when that began */
    double node_seconds; /* of what is over */

    uint32_t folded;          /* others that are counted here as well … */
    int64_t folded_ns;        /* … the time in which one of them was under way … */
    int64_t folded_until;     /* … up to here, wall clock */
    uint32_t summarised_from; /* attempts from this number on have no lines */
    struct trp_summarised *summarised; /* NULL: none since the stage was submitted */
};

/* What executors and tasks of a profile have and take. */
struct trp_shape {
    bool known;
    char name[TRP_PROFILE_NAME_MAX + 1];
    struct trp_seconds executor, task; /* amounts: seconds in a second */
};

struct trp_executor_statistics {
    bool live;
    trp_profile_id shape; /* of which it was made */
    trp_stage_id stage;   /* whose task began there last; n == TRP_NONE: none yet */
    uint32_t open;        /* attempts that began and have not ended */
    int64_t since;        /* up to here its time is given to stages; since then … */
    struct trp_executor_use {
        trp_stage_id stage;
        struct trp_seconds used;
    } * uses; /* … attempts that have ended by now used this */
    uint32_t nuses, uses_capacity;
    const char *host; /* for the log; interned */
};

struct trp_stage_fold; /* statistics.c */

struct trp_statistics {
    struct trp_stage_statistics **stages; /* by id, NULL: not heard of; of one that was
                                           * folded the one that has it */
    uint32_t nstages, nkept;
    struct trp_stage_fold *folds;              /* by name */
    struct trp_executor_statistics *executors; /* by id */
    uint32_t nexecutors;
    struct trp_shape *shapes; /* by profile id */
    uint32_t nshapes;
    char device[TRP_PROFILE_RESOURCES][TRP_RESOURCE_NAME_MAX];
    uint32_t ndevices;
    struct trp_seconds idle; /* held by executors on which no task ever ran */
    uint32_t nodes;          /* held now, */
    int64_t nodes_at;        /* and noted up to here; 0: there are none to note */
    struct trp_accumulated *accumulated;
    uint32_t naccumulated, accumulated_capacity;
    uint32_t running;  /* stages that run now */
    double node_share; /* node-seconds of a stage that has run from the start */
    double idle_nodes; /* node-seconds while no stage ran */
    uint64_t moved;    /* bytes of map outputs, from their hosts to the run's folder */
    uint64_t rpcs, sruns, srun_rpcs; /* as struct trp_event_costs */
    int64_t first, last; /* wall clock of the first and the last thing told */
};

void trp_statistics_free(struct trp_statistics *s); /* what it points to */

/* The stage of that number, but for one that was folded; NULL: there is none. */
static inline struct trp_stage_statistics *
trp_statistics_own(const struct trp_statistics *s, uint32_t id)
{
    struct trp_stage_statistics *st = id < s->nstages ? s->stages[id] : NULL;
    return st && st->stage.n == id ? st : NULL;
}
/* Nothing more is told of the stage, but for time that its executors are held: where
 * there are more than TRP_STATISTICS_STAGES it is counted with others of its name, outcome
 * and profile from now on. */
enum { TRP_STATISTICS_STAGES = 256 };
void trp_statistics_fold(struct trp_statistics *s, trp_stage_id stage);

/* Notes what time it is. */
void trp_statistics_at(struct trp_statistics *s, int64_t at);
/* The stage, made when it is not there yet; NULL: out of memory or no such id. */
struct trp_stage_statistics *trp_statistics_stage(struct trp_statistics *s,
                                                  trp_stage_id stage);
/* The same with all that `info` says; 0 or TRP_ENOMEM. */
int trp_statistics_describe(struct trp_statistics *s,
                            const struct trp_event_stage *info);
/* NULL: not known. */
const char *trp_statistics_stage_name(const struct trp_statistics *s, trp_stage_id id);
const char *trp_statistics_profile_name(const struct trp_statistics *s,
                                        trp_profile_id id);
/* The profile's shape is known from here on; NULL: out of memory. */
const struct trp_shape *trp_statistics_shape(struct trp_statistics *s,
                                             const struct trp_resource_profile *p);
/* `host` is kept as a pointer. */
int trp_statistics_executor_added(struct trp_statistics *s, trp_executor_id e,
                                  const struct trp_resource_profile *p,
                                  const char *host, int64_t at);
void trp_statistics_executor_removed(struct trp_statistics *s, trp_executor_id e,
                                     int64_t at);
/* It was taken over: what follows belongs to the stage that runs there next. */
void trp_statistics_executor_relabelled(struct trp_statistics *s, trp_executor_id e,
                                        int64_t at);
void trp_statistics_task_started(struct trp_statistics *s, trp_stage_id stage,
                                 trp_executor_id e, int64_t at);
int trp_statistics_task_ended(struct trp_statistics *s,
                              struct trp_stage_statistics *stage,
                              const struct trp_event_task *t);
/* A task of the stage failed for good, or is skipped. */
void trp_statistics_given_up(struct trp_stage_statistics *stage, bool skipped);
/* A task of the stage has added to an accumulator, which has this value now. */
int trp_statistics_accumulated(struct trp_statistics *s,
                               struct trp_stage_statistics *stage, uint32_t id,
                               const char *name, int64_t value);
/* Tasks of the stage, of that profile (NULL: not known), ran on the executor for so
 * many seconds since its time was last given to stages. trp_statistics_task_ended says
 * it itself. */
int trp_statistics_ran_on(struct trp_statistics *s, trp_stage_id stage,
                          trp_executor_id e, const struct trp_resource_profile *p,
                          double seconds);
/* Tasks of the profile (NULL: not known) ran for so many seconds, all together. */
int trp_statistics_used(struct trp_statistics *s, struct trp_stage_statistics *stage,
                        const struct trp_resource_profile *p, double seconds);
/* So many nodes are held from now on. */
void trp_statistics_nodes(struct trp_statistics *s, uint32_t nodes, int64_t at);
/* The stage was submitted, perhaps once more; it has ended. */
void trp_statistics_stage_submitted(struct trp_statistics *s,
                                    struct trp_stage_statistics *stage, int64_t at);
void trp_statistics_stage_ended(struct trp_statistics *s,
                                struct trp_stage_statistics *stage,
                                enum trp_outcome outcome, int64_t at);
/* The stage runs from now on, or does not. Said twice is as once. */
void trp_statistics_stage_runs(struct trp_statistics *s,
                               struct trp_stage_statistics *stage, bool runs,
                               int64_t at);
/* What it has held up to the last thing told. */
double trp_statistics_node_seconds(const struct trp_statistics *s,
                                   const struct trp_stage_statistics *stage);
/* Adds an attempt to those without lines. */
int trp_statistics_summarise(struct trp_stage_statistics *stage,
                             const struct trp_event_task *t);
void trp_summarised_free(struct trp_summarised *s);
/* Gives the time of live executors and of nodes up to `last` to their stages. */
void trp_statistics_settle(struct trp_statistics *s);

/* How long an attempt ran, as measured there. 0 for one that was lost with its
 * executor: it may have been queued all the time, and a guess could make used more than
 * held. */
int64_t trp_task_ran_ns(const struct trp_event_task *t);
/* A failure, as opposed to a success and to an attempt that we ended ourselves. */
bool trp_end_is_failure(enum trp_end_status status);

#endif
