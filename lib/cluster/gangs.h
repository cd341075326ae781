/*
 * Gangs: all ranks of an MPI program at once, as one attempt. What the backends share;
 * the room they need is the backend's.
 *
 * A gang has a *ticket*, which is the backend's: its place in the queue, then its
 * share. A gang waits until the backend serves its ticket and ends with its launcher
 * (mpirun, srun).
 */
#ifndef TRP_CLUSTER_GANGS_H
#define TRP_CLUSTER_GANGS_H

#include <stdio.h>

#include "cluster/cluster.h"

typedef struct trp_gangs trp_gangs;

struct trp_gangs_backend {
    void *context;
    /* Takes a ticket out of the queue or gives its share back, and serves the queue
     * soon. */
    void (*leave)(void *context, void *ticket);
    /* … and frees it. */
    void (*forget)(void *context, void *ticket);
    /* Prints the share's devices, "gpu=0,1\n…". */
    void (*devices)(void *context, void *ticket, FILE *to);
    /* Words that start the ranks, put before the rank wrapper; malloc'ed, NULL:
     * they cannot be made. */
    char **(*launcher)(void *context, void *ticket);
    bool by_srun; /* those are srun's */
    /* How long the launcher may take to the first rank, ns; 0: as long as it likes. May
     * be NULL. */
    int64_t (*start_limit)(void *context, void *ticket);
    /* The launcher was refused for now (TRP_END_RECALLED), in these words, or "" when
     * it took too long: the ticket gives its share back and goes into the queue again.
     * False: it cannot. May be NULL.
     */
    bool (*again)(void *context, void *ticket, const char *refusal);
    /* It has not ended well: was its room taken away? Fills `text` and returns an enum
     * trp_loss; TRP_ENOENT: it was not; TRP_EWAIT: not known yet, trp_gangs_judge is
     * called then. May be NULL. */
    int (*lost)(void *context, void *ticket, char *text, size_t size);
    /* A libuv handle was opened, or closed. */
    void (*handle)(void *context, bool opened);
};

/* Forks the spawner that starts them: call it while the process is small. `scratch`:
 * folder of their scratch folders. Copies `room` and `handler`; `command` stays the
 * caller's. */
int trp_gangs_open(uv_loop_t *loop, const struct trp_executor_command *command,
                   const char *scratch, const struct trp_gangs_backend *backend,
                   const struct trp_cluster_handler *handler, trp_gangs **ret,
                   trp_error *err);

/* A gang whose ticket stands in the queue. Copies it. After a failure the ticket is
 * still the caller's. */
int trp_gangs_add(trp_gangs *s, const struct trp_gang *g, void *ticket, trp_error *err);
/* Its ticket has its share: starts it. */
void trp_gangs_serve(trp_gangs *s, trp_attempt_id attempt);
void trp_gangs_kill(trp_gangs *s, trp_attempt_id attempt, bool soft);
/* From the loop: one that waits can never be had. */
void trp_gangs_refuse(trp_gangs *s, trp_attempt_id attempt, const char *text);
/* From the loop: `lost` has another answer than TRP_EWAIT, if it gave that. */
void trp_gangs_judge(trp_gangs *s, trp_attempt_id attempt);
/* From the loop: tells the end of those that left the queue. */
void trp_gangs_tell(trp_gangs *s);
/* Ends all. NULL is fine. */
void trp_gangs_close(trp_gangs *s);

#endif
