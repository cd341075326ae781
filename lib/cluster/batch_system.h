/*
 * Of a backend whose room is handed out by a batch system: jobs that begin, end and are
 * given back, nodes that come and go, waits in its queue. This machine has none of it.
 */
#ifndef TRP_CLUSTER_BATCH_SYSTEM_H
#define TRP_CLUSTER_BATCH_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/ids.h"
#include "core/profile/profile.h"

typedef struct trp_cluster trp_cluster;
struct trp_outlook; /* core/alloc/outlook.h */

/* Guards of additional jobs call the admission socket with these ids. */
enum { TRP_CLUSTER_GUARD_IDS = 4096, TRP_CLUSTER_GUARDS = (1 << 20) - 4096 };

/* A step of a job that runs an executor or an attempt of a gang. */
struct trp_cluster_step {
    uint32_t job;
    const char *name;
    bool gang;
    trp_executor_id executor;
    trp_attempt_id attempt;
};

/* A job that the run is in, or has asked for. Borrowed. */
struct trp_cluster_job {
    uint32_t job;        /* 0: its number is not known yet */
    bool additional;     /* not the one that the driver is in */
    const char *state;   /* "asked", "pending", "starting", "running", "ending" */
    const char *profile; /* for which it was asked; NULL: none */
    const char *reason;  /* why it is pending; "" */
    uint32_t nodes;      /* that it has now */
    int64_t start, ends; /* seconds since 1970: expected while it is pending; 0: not
                          * known */
};

/* What has become of a job. */
struct trp_cluster_job_news {
    uint32_t job;
    bool additional;
    enum { TRP_JOB_QUEUED, TRP_JOB_BEGAN, TRP_JOB_ENDED } what;
    trp_profile_id profile; /* QUEUED: for which it was asked */
    int64_t asked_ns;       /* of an additional one, but for its end; mono */
    int64_t at; /* BEGAN, ENDED: seconds since 1970, as the batch system says; 0: now */
};

/* What a backend of a batch system tells the driver, from the loop. */
struct trp_batch_handler {
    /* Its job is being ended: nothing new goes there. May be NULL. */
    void (*ending)(void *context, trp_executor_id executor);
    /* So many nodes are held from now on. May be NULL. */
    void (*nodes)(void *context, uint32_t nodes);
    /* A job is this run's: its own, which only begins, or an additional one, which may
     * be queued before, and ends. May be NULL. */
    void (*job)(void *context, const struct trp_cluster_job_news *news);
    /* A step begins; told again when it has to begin anew. May be NULL. */
    void (*step)(void *context, const struct trp_cluster_step *step);
    /* Where it runs nothing new is to begin, and it is to go. May be told again. */
    void (*leaving)(void *context, trp_executor_id executor);
    /* It was killed, and its node does not answer: it is lost now, though its room is
     * free only when `gone` is told. */
    void (*unanswered)(void *context, trp_executor_id executor);
    /* There is less room than before, `planned` or not: `fit` has other answers. `text`
     * says why, for the log. */
    void (*shrunk)(void *context, bool planned, const char *text);
    /* What may still run, to be freed; false: that is not known. May be NULL. */
    bool (*outlook)(void *context, struct trp_outlook *ret);
    /* How long executors of the profile wait in the cluster's queue: the answer to
     * `ask_wait`, or what some have waited. */
    void (*queue_wait)(void *context, trp_profile_id profile, int64_t wait_ns);
    /* The driver's own allocation ends then (seconds since 1970; 0: not known). */
    void (*ends)(void *context, int64_t when);
    /* The same of an executor's, which is another one; told before `granted` or later.
     */
    void (*executor_ends)(void *context, trp_executor_id executor, int64_t when);
    /* The folder of the run's on that node is about to be removed, and no executor is
     * there, or comes: what has to be moved before, as words for `troupe-rank move`,
     * to be freed with trp_argv_free, and in *ret_ns how long that may take. NULL:
     * nothing. */
    char **(*needed)(void *context, const char *node, int64_t *ret_ns);
    /* A line that it has printed; NULL: it has ended. */
    void (*moved)(void *context, const char *node, const char *line);
};

/* What it can do besides; each may be NULL: there is no such thing here. */
struct trp_batch_ops {
    /* How many of the executors that `fit` tells the room that is held now has, when it
     * is empty. NULL: all. */
    uint32_t (*held)(trp_cluster *c, const struct trp_resource_profile *p);
    /* It was admitted. NULL: that says nothing new. */
    void (*came)(trp_cluster *c, trp_executor_id executor);
    /* More room may be had for it. NULL: all there is is held. */
    void (*may_add)(trp_cluster *c, trp_executor_id executor);
    /* One that was asked for ahead is needed now. NULL: there are none. */
    void (*needed_now)(trp_cluster *c, trp_executor_id executor);
    /* How long would so many wait for room that is not held? Answered by `queue_wait`,
     * or not at all. NULL: nobody knows. */
    void (*ask_wait)(trp_cluster *c, const struct trp_resource_profile *p,
                     uint32_t executors);
    /* Nothing is heard of one that was admitted, or it is again. NULL: that says
     * nothing new. */
    void (*silent)(trp_cluster *c, trp_executor_id executor, bool silent);
    /* A guard calls, or something that says so: is it one of ours? NULL: there are
     * none. */
    bool (*guard)(trp_cluster *c, uint32_t id);
    /* Why executors of a profile are not there, "" when nothing is known. May be NULL.
     */
    void (*why)(trp_cluster *c, const struct trp_resource_profile *p, char *text,
                size_t size);
    /* Tells of each job, the driver's own first. NULL: there are none. */
    void (*jobs)(trp_cluster *c,
                 void (*tell)(void *context, const struct trp_cluster_job *job),
                 void *context);
    /* An executor is about to be released because tasks, which take so long, would
     * outlive its allocation: another one is not to come from there. May be NULL. */
    void (*outlived)(trp_cluster *c, trp_executor_id executor, int64_t takes_ns);
    /* On that node there is a folder of the run's (os/private_folder.h), or not any
     * more. It is removed before the node is given back. NULL: there are no nodes. */
    void (*files)(trp_cluster *c, const char *node, bool there);
    /* What the handler says is needed of that node is to be moved, since nobody comes
     * there any more. NULL: there are no nodes. */
    void (*move)(trp_cluster *c, const char *node);
    /* The handler's `outlook` has another answer. NULL: nobody asks for it. */
    void (*stages_changed)(trp_cluster *c);
};

#endif
