/*
 * Global sync: barrier() and allGather(message) among the tasks of a barrier stage
 * attempt (semantics, section 13).
 *
 * Words. Each task of a stage attempt calls once a *sync*; syncs of an attempt are
 * numbered by *epochs* from 0, which each task counts for itself. A sync ends when all
 * tasks have called: then all are answered with the messages by partition. Or it fails:
 * somebody called the other kind, or the timeout (from the first call) passed.
 *
 *     struct trp_sync_answer a;
 *     rc = trp_barrier_sync_call(b, now, &call, &a, &err);
 *     for (i = 0; rc == 0 && i < a.n; i++)
 *         send(a.who[i], a.code, a.text, a.messages);
 *
 * Invariants. Each call taken in is answered exactly once, unless its stage attempt
 * ends first. After a mixed sync all further calls of the attempt fail: the stage is to
 * be tried again.
 */
#ifndef TRP_CORE_SCHED_BARRIER_SYNC_H
#define TRP_CORE_SCHED_BARRIER_SYNC_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct trp_barrier_sync trp_barrier_sync;

enum trp_sync_kind {
    TRP_SYNC_BARRIER,
    TRP_SYNC_ALL_GATHER,
    TRP_SYNC_COMMIT, /* not the coordinator's: sched/commits.h */
    TRP_SYNC_COPY,   /* not the engine's: who has a file that all hosts read */
};

/* Who asked may commit. */
enum trp_commit {
    TRP_COMMIT_FIRST, /* nobody was allowed to before */
    TRP_COMMIT_AGAIN, /* somebody was, and is not any more */
};

struct trp_sync_message {
    const void *data; /* any bytes; NULL with size 0 */
    size_t size;
};

struct trp_sync_call {
    uint32_t stage, attempt; /* of the stage */
    uint32_t epoch;          /* syncs the task has been through */
    uint32_t ntasks;         /* of the stage: 1 at least */
    uint32_t partition;      /* of the task: below ntasks */
    enum trp_sync_kind kind;
    uint64_t who;                    /* whom to answer; given back */
    struct trp_sync_message message; /* copied; of allGather */
};

/* Who is to be answered what. The coordinator's, until its next call. */
struct trp_sync_answer {
    uint32_t stage, attempt;
    uint32_t epoch; /* that the answered calls gave */
    const uint64_t *who;
    uint32_t n;                              /* 0: nobody yet */
    int code;                                /* TRP_OK; EINVAL mixed, ESTATE epoch over,
                                              * TRP_ETIME timeout */
    const char *text;                        /* why it failed, for a person; "" */
    const struct trp_sync_message *messages; /* TRP_OK: one a partition, in order */
    uint32_t nmessages;
};

/* NULL: out of memory. */
trp_barrier_sync *trp_barrier_sync_new(int64_t timeout_ns);
void trp_barrier_sync_free(trp_barrier_sync *b);

/* A task calls. The caller has checked that the stage attempt is a live one. A wrong
 * epoch is answered to this one only. TRP_EINVAL: an impossible call (another number of
 * tasks than before, partition beyond it); TRP_EEXIST: this partition waits already in
 * this sync; TRP_ENOMEM: these change nothing and `ret_answer` is empty. */
int trp_barrier_sync_call(trp_barrier_sync *b, int64_t now_ns,
                          const struct trp_sync_call *call,
                          struct trp_sync_answer *ret_answer, trp_error *err);

/* The next sync that is out of time, if any (ret_answer->n is 0 then); its attempt's
 * state is dropped. To be called until there is none. */
void trp_barrier_sync_expire(trp_barrier_sync *b, int64_t now_ns,
                             struct trp_sync_answer *ret_answer);
/* When the next one is; INT64_MAX: never. */
int64_t trp_barrier_sync_next_timer(const trp_barrier_sync *b);

/* The stage attempt has ended: forgets it. Its waiting tasks are not answered: they are
 * being killed. */
void trp_barrier_sync_end(trp_barrier_sync *b, uint32_t stage, uint32_t attempt);

#endif
