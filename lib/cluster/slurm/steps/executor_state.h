/*
 * Those who use the nodes: one executor, one gang, each a step of a job.
 */
#ifndef TRP_CLUSTER_SLURM_STEPS_EXECUTOR_STATE_H
#define TRP_CLUSTER_SLURM_STEPS_EXECUTOR_STATE_H

#include <uthash.h>

#include "cluster/slurm/shared/slurm_state.h"

/* How far an executor has come. Bits, so that a set of them can say what may happen. */
enum trp_slurm_executor_state {
    TRP_SLURM_EXECUTOR_QUEUED = 1,
    TRP_SLURM_EXECUTOR_WITHDRAWN = 2, /* from the queue; to be told */
    TRP_SLURM_EXECUTOR_STARTING = 4,  /* its srun runs */
    TRP_SLURM_EXECUTOR_GRANTED = 8,   /* its step has got "go", and was told */
    TRP_SLURM_EXECUTOR_ADMITTED = 16,
    TRP_SLURM_EXECUTOR_FORGOTTEN = 32, /* freed when its handles are closed */
};

/* Who ends it: bits, too. */
enum trp_slurm_ender {
    TRP_SLURM_BY_NOBODY = 1,
    TRP_SLURM_BY_LIMIT = 2, /* we: it has not started in time, and is queued again */
    TRP_SLURM_BY_SLURM = 4, /* Slurm, before we did */
    TRP_SLURM_BY_SLURM_KILLED = 8, /* … and then the driver */
    TRP_SLURM_BY_LACK = 16,    /* we: others have the addresses that its script says */
    TRP_SLURM_BY_KILL = 32,    /* the driver, which may want to know how it ends */
    TRP_SLURM_BY_RELEASE = 64, /* the driver, which does not */
    TRP_SLURM_TO_GO = TRP_SLURM_BY_SLURM_KILLED | TRP_SLURM_BY_LACK |
                      TRP_SLURM_BY_KILL | TRP_SLURM_BY_RELEASE,
};

/* What may happen to it. */
enum trp_slurm_event {
    TRP_SLURM_ON_ROOM,      /* there is room for it */
    TRP_SLURM_ON_DOUBT,     /* the node where it starts is doubtful */
    TRP_SLURM_ON_START_DUE, /* its time to start is over */
    TRP_SLURM_ON_STARTED,   /* the step's words, with their line: it has started, … */
    TRP_SLURM_ON_FAILED,    /* … it will not start anything, … */
    TRP_SLURM_ON_LEAVING,   /* … Slurm ends it, … */
    TRP_SLURM_ON_ENDING,    /* … it is about to end, … */
    TRP_SLURM_ON_ENDED,     /* … it has ended */
    TRP_SLURM_ON_GO,        /* the step has what it needs */
    TRP_SLURM_ON_LACK,      /* … or has not */
    TRP_SLURM_ON_CAME,      /* the driver: it was admitted, … */
    TRP_SLURM_ON_DISMISS,   /* … nobody wants it, and it was told SHUTDOWN, … */
    TRP_SLURM_ON_RELEASE,   /* … nobody wants it, and it was not told, … */
    TRP_SLURM_ON_KILL,      /* … it is to end at once */
    TRP_SLURM_ON_EXIT,      /* srun has exited, or has closed its pipe */
    TRP_SLURM_ON_JUDGED,    /* its job was asked about, and has answered */
};

enum {
    TRP_SLURM_TEXT = 2048,
    TRP_SLURM_START_MS = 120000, /* an srun may take to its step */
    TRP_SLURM_TRIAL_MS = 10000,  /* … on a node that is doubtful */
    TRP_SLURM_BLOWS = 4,         /* of an end by force */
};

/* What a process has said on a pipe: the last of it. */
struct trp_slurm_output {
    char text[TRP_SLURM_TEXT];
    size_t size;
};

/* What was heard of one start of an executor: nothing, all zeros. */
struct trp_slurm_heard {
    struct trp_slurm_output said, complained; /* by the step, and by srun itself */
    char refusal[512]; /* why the step will not start anything, "" */
    bool has_step;
    uint32_t step; /* its number in the job */
    bool ending;   /* the step is about to end */
    bool ended;    /* it has, so: */
    int status, signal;
    int64_t kills, peak_mib;
    bool asked; /* srun is gone, and Slurm is asked what became of its job */
};

struct trp_slurm_executor {
    struct trp_slurm_request request; /* first member of all who stand in the queue */
    struct trp_slurm *slurm;
    uint32_t id;
    uint32_t slots;
    int64_t memory_mib;
    char profile[TRP_PROFILE_NAME_MAX + 1];
    enum trp_slurm_executor_state state;
    enum trp_slurm_ender ender;
    struct trp_slurm_heard heard;
    unsigned blows; /* how far its end by force has come */
    bool tried;     /* counted among those that start on doubtful nodes */
    bool unheard;   /* the driver hears nothing of it */
    uv_process_t process;
    uv_pipe_t in, out, errors; /* of srun: the step's words, and its own */
    uv_timer_t timer;
    unsigned handles; /* open ones of these */
    struct trp_resource_addresses devices[TRP_PROFILE_RESOURCES];
    char **addresses[TRP_PROFILE_RESOURCES];
    uint32_t ndevices;
    UT_hash_handle hh;
};

struct trp_slurm_gang {
    struct trp_slurm_request request; /* first member of all who stand in the queue */
    trp_attempt_id attempt;
    struct trp_slurm_gang *next, *prev;
    char name[TRP_SLURM_STEP_NAME]; /* of the step: RUN:PROFILE:STAGE.NUMBER */
    bool asked; /* srun is gone, and Slurm is asked what became of its job */
    char mpi[TRP_SITE_WORD_MAX + 1]; /* srun --mpi=… */
};

/* step_kill.c: what sacct and squeue call its step, RUN:PROFILE.ID. */
void trp_slurm_step_name(const struct trp_slurm_executor *e,
                         char buf[TRP_SLURM_STEP_NAME]);

static inline bool trp_slurm_executor_has_srun(const struct trp_slurm_executor *e)
{
    return e->state & (TRP_SLURM_EXECUTOR_STARTING | TRP_SLURM_EXECUTOR_GRANTED |
                       TRP_SLURM_EXECUTOR_ADMITTED);
}

/* The driver knows it as granted. */
static inline bool trp_slurm_executor_is_there(const struct trp_slurm_executor *e)
{
    return e->state & (TRP_SLURM_EXECUTOR_GRANTED | TRP_SLURM_EXECUTOR_ADMITTED);
}

static inline bool trp_slurm_executor_is_to_go(const struct trp_slurm_executor *e)
{
    return e->ender & TRP_SLURM_TO_GO;
}

/* executor_life.c: something happens to it. `line`: the step's, or NULL. It may be
 * freed. */
void trp_slurm_executor_happen(struct trp_slurm_executor *e, enum trp_slurm_event event,
                               const struct trp_slurm_line *line);
/* Without an event: where it is queued again, and where it is forgotten. */
void trp_slurm_executor_set(struct trp_slurm_executor *e,
                            enum trp_slurm_executor_state state,
                            enum trp_slurm_ender ender);

/* executor_step.c */
int trp_slurm_executor_ask(struct trp_slurm *s, trp_executor_id id,
                           const struct trp_resource_profile *p, bool ahead,
                           const char *not_on, trp_error *err);
void trp_slurm_executor_needed_now(struct trp_slurm_executor *e);
void trp_slurm_executor_tell(struct trp_slurm_executor *e);
/* Closes srun's stdin. */
void trp_slurm_executor_hang_up(struct trp_slurm_executor *e);
bool trp_slurm_executor_has_exited(const struct trp_slurm_executor *e);
/* Says a line to the step; false when srun is gone. */
bool trp_slurm_executor_say(struct trp_slurm_executor *e, const char *line);
/* One that waits can never be had. */
void trp_slurm_executor_refuse(struct trp_slurm_executor *e, const char *text);
/* At close: ends it by one blow more than before; true when it is gone. */
bool trp_slurm_executor_close(struct trp_slurm_executor *e, unsigned blow);

/* step_kill.c: its end by force, and the limits of its start. */
/* The driver hears nothing of it, or again. */
void trp_slurm_executor_silent(struct trp_slurm_executor *e, bool silent);
/* One blow more, of TRP_SLURM_BLOWS. */
void trp_slurm_executor_strike(struct trp_slurm_executor *e);
/* Its srun was started: that has a limit. */
void trp_slurm_executor_limit(struct trp_slurm_executor *e);
/* It has started: it has no limit any more. */
void trp_slurm_executor_started(struct trp_slurm_executor *e);
/* Whether it counts as one that is tried on a doubtful node. */
void trp_slurm_executor_tried(struct trp_slurm_executor *e, bool tried);

/* step_messages.c: what the step says. */
void trp_slurm_executor_hear(struct trp_slurm_executor *e,
                             const struct trp_slurm_line *line);
/* How it ended, or why it was not started, without its number. */
void trp_slurm_executor_describe(const struct trp_slurm_executor *e, char *cause,
                                 size_t size);
/* The step's own words, or srun's first error without its name. */
void trp_slurm_executor_complaint(const struct trp_slurm_executor *e, char *text,
                                  size_t size);
void trp_slurm_executor_free_devices(struct trp_slurm_executor *e);

/* What the table of executor_life.c does, by file. */
typedef void trp_slurm_executor_act(struct trp_slurm_executor *e,
                                    const struct trp_slurm_line *line);
trp_slurm_executor_act trp_slurm_executor_unqueue, trp_slurm_executor_start,
    trp_slurm_executor_finish_when_over,
    trp_slurm_executor_finish; /* executor_step.c */
trp_slurm_executor_act trp_slurm_executor_try, trp_slurm_executor_give_up,
    trp_slurm_executor_begin_end, trp_slurm_executor_doubt_and_end,
    trp_slurm_executor_await_end; /* step_kill.c */
trp_slurm_executor_act trp_slurm_executor_note_step, trp_slurm_executor_take_start,
    trp_slurm_executor_tell_granted, trp_slurm_executor_tell_ending,
    trp_slurm_executor_note_refusal, trp_slurm_executor_note_ending,
    trp_slurm_executor_note_ended;                   /* step_messages.c */
trp_slurm_executor_act trp_slurm_executor_note_came; /* step_end.c */

/* step_end.c: what is made of the end of its srun. */
enum trp_slurm_verdict {
    /* Before its executor was started: */
    TRP_SLURM_END_GIVEN_UP,  /* not in time: again */
    TRP_SLURM_END_TOO_OFTEN, /* Slurm was called too often: again, more slowly */
    TRP_SLURM_END_NOT_NOW,   /* Slurm says that there is no room, or does not answer:
                                again */
    TRP_SLURM_END_NEVER,     /* nor the next time */
    /* Before it was admitted: */
    TRP_SLURM_END_FAILED, /* its own process ended, or could not be started */
    TRP_SLURM_END_ENDED,  /* somebody has ended its step, or its srun */
    /* At any time: */
    TRP_SLURM_END_AS_TOLD,
    TRP_SLURM_END_JOB_OVER, /* with its additional job */
    TRP_SLURM_END_DIED,
};
enum trp_slurm_verdict trp_slurm_executor_verdict(const struct trp_slurm_executor *e,
                                                  const struct trp_slurm_job *j);
/* As it was told to: not when Slurm had begun to end its job before. */
bool trp_slurm_executor_in_order(const struct trp_slurm_executor *e);
bool trp_slurm_executor_out_of_memory(const struct trp_slurm_executor *e);
/* A start of it failed: whether there is another host, or an additional job, to try. */
bool trp_slurm_executor_failed(struct trp_slurm_executor *e);

/* gang_step.c */
int trp_slurm_gangs_open(struct trp_slurm *s, trp_error *err);
/* A node is gone: gangs that have ranks there, or that have no room any more, are
 * killed, since srun would wait for them. */
void trp_slurm_gangs_lost(struct trp_slurm *s, uint32_t node);
/* It is known what became of a job: tells the ends that waited for that. */
void trp_slurm_gangs_judge(struct trp_slurm *s, uint32_t part);
/* Those that wait for what can never be had, as *w->never says. */
void trp_slurm_gangs_refuse(struct trp_slurm *s, const struct trp_slurm_kind_jobs *w);
/* Asks Slurm to send SIGTERM to the ranks of one that runs. */
void trp_slurm_gang_terminate(struct trp_slurm *s, trp_attempt_id attempt);
int trp_slurm_gang_ask(struct trp_slurm *s, const struct trp_gang *g, trp_error *err);

/* users.c */
extern const struct trp_slurm_users trp_slurm_step_users;

#endif
