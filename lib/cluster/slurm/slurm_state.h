/*
 * What the files of the Slurm cluster share: the cluster, one executor, one gang.
 */
#ifndef TRP_CLUSTER_SLURM_STATE_H
#define TRP_CLUSTER_SLURM_STATE_H

#include <uthash.h>
#include <uv.h>

#include "cluster/cluster.h"
#include "cluster/gangs.h"
#include "cluster/slurm/additional.h"
#include "cluster/slurm/budget.h"
#include "cluster/slurm/ghosts.h"
#include "cluster/slurm/helper.h"
#include "cluster/slurm/node_watch.h"
#include "cluster/slurm/shrink.h"
#include "cluster/slurm/tidy.h"

enum trp_slurm_state {
    TRP_SLURM_WAITS,     /* in the queue */
    TRP_SLURM_WITHDRAWN, /* left it; to be told */
    TRP_SLURM_RUNS,      /* its srun lives */
};

enum {
    TRP_SLURM_TEXT = 2048,
    TRP_SLURM_START_MS = 120000, /* an srun may take to its step */
    TRP_SLURM_TRIAL_MS = 10000,  /* … on a node that is doubtful */
    TRP_SLURM_STEP_NAME = 256,
    TRP_SLURM_BLOWS = 4, /* of an end by force */
    /* What one srun causes in slurmctld, by sdiag: it looks the job up and makes the
     * step, and slurmstepd tells its end. */
    TRP_SLURM_SRUN_RPCS = 3,
};

/* What a process has said on a pipe: the last of it. */
struct trp_slurm_words {
    char text[TRP_SLURM_TEXT];
    size_t size;
};

struct trp_slurm_executor {
    struct trp_slurm_request request; /* first member of all who stand in the queue */
    struct trp_slurm *slurm;
    uint32_t id;
    uint32_t slots;
    int64_t memory_mib;
    char profile[TRP_PROFILE_NAME_MAX + 1];
    enum trp_slurm_state state;
    uv_process_t process;
    uv_pipe_t in, out, errors; /* of srun: the step's words, and its own */
    uv_timer_t timer;
    unsigned handles; /* open ones of these */
    struct trp_slurm_words said, complained;
    char refusal[512]; /* why the step will not start anything, "" */
    bool granted;      /* was told */
    bool came;         /* was admitted */
    bool leaving;      /* `in` is closed */
    bool dismissed;
    bool released;  /* nobody wants it any more */
    bool warned;    /* Slurm has begun to end it before we did */
    bool doubted;   /* its job is asked why it ended */
    bool forgotten; /* freed when its handles are closed */
    bool exited;    /* srun has */
    bool silent;    /* `out` is at its end */
    unsigned blows; /* how far the kill has come */
    bool tried;     /* it starts on a node that is doubtful */
    bool given_up;  /* it has not started in time */
    bool lacks;     /* others have the addresses that its discovery script says */
    bool unheard;   /* the driver hears nothing of it */
    int64_t step;   /* its number in the job; -1: not known */
    bool ending;    /* the step has said that it is about to */
    bool ended;     /* the step has told its end: */
    bool limited;   /* Slurm holds it to its memory */
    int status, signal;
    int64_t kills, peak_mib;
    int64_t exit_status; /* of srun */
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
    bool doubted;                   /* it has ended, and its job was asked about */
    enum trp_linked_mpi mpi;        /* what its program is linked with */
};

struct trp_slurm {
    trp_cluster base;
    uv_loop_t *loop;
    struct trp_cluster_handler handler;
    const trp_site *site;
    trp_site *own_site; /* when there is no site file */
    trp_slurm_helper *helper;
    struct trp_slurm_inventory inventory;
    trp_slurm_books *books;
    struct trp_host_view *hosts;
    struct trp_resource_addresses *devices; /* of all hosts, TRP_SLURM_POOLS each */
    struct trp_topology topology;

    bool runs_things;
    struct trp_executor_command command;
    char **argv;
    char *words[5];
    char *rank_program, *helper_program;
    char *found;                          /* what Slurm has told before the run */
    char *uri;                            /* ompi-server's */
    char *driver_address;                 /* once it is known */
    struct trp_slurm_executor *executors; /* hash by id */
    uint64_t sruns;                       /* started so far */
    uint64_t found_rpcs;                  /* made before this process */
    uint64_t rpcs_taken;                  /* of the helper's, from the budget */
    struct trp_slurm_budget budget;
    bool told_limit;
    uint32_t nodes_told;
    bool held_changed; /* to be told */

    trp_gangs *gangs;
    struct trp_slurm_gang *gang_list;
    struct trp_slurm_additional additional;
    uint32_t leaving; /* executors that were told to go, and are there yet */
    struct trp_slurm_watch watch;
    struct trp_slurm_ghosts ghosts;
    struct trp_slurm_shrink shrink;
    struct trp_slurm_tidy tidy;

    uv_poll_t helper_poll;
    uv_timer_t wake; /* due when there is something to look at again */
    uv_timer_t pump; /* due at once: serve the queue, tell what is to be told */
    unsigned handles;
    bool closed;
};

/* slurm.c: serves the queue and tells withdrawn ones from the loop, soon. */
void trp_slurm_pump_soon(struct trp_slurm *s);
/* slurm.c: what is held has changed; told from the loop, soon. */
void trp_slurm_held_changed(struct trp_slurm *s);
/* slurm.c: an srun is being started. */
void trp_slurm_srun_started(struct trp_slurm *s);
/* slurm.c: Slurm has refused one because there were too many calls. */
void trp_slurm_srun_refused(struct trp_slurm *s);
/* slurm.c: one handle less; frees the cluster when it was closed and this the last. */
void trp_slurm_handle_closed(struct trp_slurm *s);

/* slurm.c: fills in the racks of nodes. */
int trp_slurm_set_racks(const struct trp_slurm *s,
                        struct trp_slurm_inventory *inventory, trp_error *err);

/* view.c: what `topology` shows; freed with the cluster. */
int trp_slurm_view_make(struct trp_slurm *s, trp_error *err);
void trp_slurm_view_free(struct trp_slurm *s);

/* srun_words.c: what sacct and squeue call an executor's step, RUN:PROFILE.ID. */
void trp_slurm_step_name(const struct trp_slurm_executor *e,
                         char buf[TRP_SLURM_STEP_NAME]);
/* Words for execvp, malloc'ed, NULL when out of memory. */
char **trp_slurm_step_words(const struct trp_slurm_executor *e);
/* The guard of the additional job that the node is of. */
char **trp_slurm_guard_words(const struct trp_slurm *s, uint32_t node);
/* What tidies the node up after these executors. */
char **trp_slurm_tidy_words(const struct trp_slurm *s, uint32_t node,
                            const uint32_t *executors, uint32_t n);
/* Without the program; `hosts`: file with a line a rank. */
char **trp_slurm_gang_words(const struct trp_slurm *s, const struct trp_slurm_gang *g,
                            const char *hosts);

/* executor_step.c */
int trp_slurm_executor_ask(struct trp_slurm *s, trp_executor_id id,
                           const struct trp_resource_profile *p, bool ahead,
                           const char *not_on, trp_error *err);
void trp_slurm_executor_need(struct trp_slurm_executor *e);
void trp_slurm_executor_serve(struct trp_slurm_executor *e);
void trp_slurm_executor_tell(struct trp_slurm_executor *e);
/* Closes srun's stdin. */
void trp_slurm_executor_hang_up(struct trp_slurm_executor *e);
/* Says a line to the step; false when srun is gone. */
bool trp_slurm_executor_say(struct trp_slurm_executor *e, const char *line);
/* One that waits can never be had. */
void trp_slurm_executor_refuse(struct trp_slurm_executor *e, const char *text);
/* It is known why its job ended, or that it did not: tells its end, if it has. */
void trp_slurm_executor_judged(struct trp_slurm_executor *e);
/* At close: ends it by one blow more than before; true when it is gone. */
bool trp_slurm_executor_close(struct trp_slurm_executor *e, unsigned blow);

/* step_kill.c: its end by force, and the limits of its start. */
void trp_slurm_executor_release(struct trp_slurm_executor *e, bool told);
void trp_slurm_executor_kill(struct trp_slurm_executor *e);
/* The driver hears nothing of it, or again. */
void trp_slurm_executor_silent(struct trp_slurm_executor *e, bool silent);
/* One blow more, of TRP_SLURM_BLOWS. */
void trp_slurm_executor_strike(struct trp_slurm_executor *e);
/* Its srun was started: that has a limit. */
void trp_slurm_executor_limit(struct trp_slurm_executor *e);
/* Its node is doubtful: from now on its start has a limit. */
void trp_slurm_executor_try(struct trp_slurm_executor *e);
/* It has started: it has no limit any more. */
void trp_slurm_executor_started(struct trp_slurm_executor *e);
/* Whether it counts as one that is tried on a doubtful node. */
void trp_slurm_executor_tried(struct trp_slurm_executor *e, bool tried);

/* step_words.c: what the step says. */
void trp_slurm_executor_hear(struct trp_slurm_executor *e,
                             const struct trp_slurm_line *line);
/* How it ended, or why it was not started, without its number. */
void trp_slurm_executor_describe(const struct trp_slurm_executor *e, char *cause,
                                 size_t size);
/* The step's own words, or srun's first error without its name. */
void trp_slurm_executor_complaint(const struct trp_slurm_executor *e, char *text,
                                  size_t size);
void trp_slurm_executor_free_devices(struct trp_slurm_executor *e);

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
/* It was admitted. */
void trp_slurm_executor_came(struct trp_slurm_executor *e);
/* A start of it failed: whether there is another host, or an additional job, to try. */
bool trp_slurm_executor_failed(struct trp_slurm_executor *e);

/* slurm.c and slurm_make.c: what the cluster can do, and its end. */
extern const struct trp_cluster_ops trp_slurm_ops;
void trp_slurm_free(struct trp_slurm *s);

/* slurm_gang.c */
int trp_slurm_gangs_open(struct trp_slurm *s, trp_error *err);
/* A node is gone: gangs that have ranks there, or that have no room any more, are
 * killed, since srun would wait for them. */
void trp_slurm_gangs_lost(struct trp_slurm *s, uint32_t node);
/* It is known what became of a job: tells the ends that waited for that. */
void trp_slurm_gangs_judge(struct trp_slurm *s, uint32_t part);
/* Those that wait for what can never be had, as *w->never says. */
void trp_slurm_gangs_refuse(struct trp_slurm *s, const struct trp_slurm_shape_jobs *w);
/* Asks Slurm to send SIGTERM to the ranks of one that runs. */
void trp_slurm_gang_terminate(struct trp_slurm *s, trp_attempt_id attempt);
int trp_slurm_gang_ask(struct trp_slurm *s, const struct trp_gang *g, trp_error *err);

#endif
