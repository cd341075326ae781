/*
 * What the executor's parts share. Not for others.
 *
 * Parts: executor.c life of the process, executor_loop.c messages, sleep and ends,
 * executor_stage.c stages and queues, executor_function.c functions and their threads,
 * executor_sync.c what functions ask, files.c where map outputs lie, move_files.c how
 * they leave the host, crash.c last words of a crash.
 *
 * Words. A task here is *formally running* from its launch, or from the end whose place
 * it took (semantics, difference 16), until its end is recorded; whether a thread has
 * it already is another matter. Formally running functions that no thread has are
 * *ready*.
 *
 * Who may touch what: everything belongs to the holder of the baton, but what stands
 * behind `lock` in the struct.
 */
#ifndef TRP_EXECUTOR_EXECUTOR_INTERNAL_H
#define TRP_EXECUTOR_EXECUTOR_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <uthash.h>

#include "executor/baton.h"
#include "executor/executor.h"
#include "executor/places.h"
#include "executor/spawner.h"
#include "os/spin.h"

/* How long tasks of one function take: over stages, so a new stage knows at once. */
struct trp_estimate {
    uint64_t key;
    int64_t mean_ns; /* 0: not known yet */
    UT_hash_handle hh;
};

struct trp_executor_stage {
    uint32_t id;
    UT_hash_handle hh;
    struct trp_stage_message message;
    void *function;
    char *failure; /* why its function cannot be had; NULL: it can */
    struct trp_estimate *estimate;
    struct trp_stage_inputs *inputs; /* of its newest attempt; NULL: it reads none */
    struct trp_places places; /* of functions; the spawner has those of commands */
    uint32_t running;         /* formally */
    bool forgotten;
};

/* A thread that runs functions: a task thread, or one of the two that take turns at the
 * loop. */
struct trp_function_thread {
    struct trp_executor *executor;
    pthread_t thread;
    pid_t tid;
    bool started;
    /* ---- `lock`; of the loop's threads also the baton, until they are robbed */
    bool busy;
    struct trp_task_entry task;
    int64_t started_ns, deadline_ns; /* INT64_MAX: none */
    uint8_t cause;                   /* why it was told to end: enum trp_end_status */
    volatile int killed;
    uint64_t records;    /* that the task has read so far … */
    int64_t records_due; /* … and when the driver is told; INT64_MAX: never */
    uint32_t sync_epoch; /* how often the task has asked the driver */
};

/* A function that asked the driver and waits; lies on its thread's stack. */
struct trp_sync_wait {
    struct trp_sync_wait *next;
    struct trp_sync sync;
    bool sent, answered;
    uint8_t *reply; /* the SYNCED message; NULL when out of memory */
    size_t reply_size;
};

/* What a thread hands back. */
struct trp_finished {
    struct trp_finished *next;
    struct trp_task_entry task;
    struct trp_function_result result;
    int64_t duration_ns, cpu_ns;
    uint8_t cause;
};

typedef struct trp_executor {
    struct trp_executor_shape shape;
    const struct trp_function_runner *runner;
    trp_channel *channel;
    _Atomic(trp_spawner *) spawner; /* NULL: none yet */
    trp_baton *baton;
    char host[256];
    _Atomic(struct trp_executor_files *) files; /* of map outputs; NULL: none yet */
    struct trp_mover *mover; /* outputs are being moved; NULL: none are */
    _Atomic bool moved;      /* there is news of that */
    trp_block_store *blocks;
    bool blocks_told; /* that they cannot go to the disk */
    struct trp_executor_stage *stages, *last_stage;
    struct trp_estimate *estimates;
    struct trp_task_ring ready;
    uint32_t commands; /* at the spawner, running or queued */
    uint32_t relayed;  /* ends of commands so far */
    uint32_t
        *unheard; /* of those that the driver may not have heard of yet, the numbers */
    uint32_t nunheard; /* among all ends */
    uint32_t unheard_capacity;
    struct trp_buf ends;
    uint32_t ends_made;               /* so far; the driver counts them too */
    uint32_t handed;                  /* functions on other threads */
    struct trp_function_thread *away; /* who left the baton to run a function */
    struct trp_function_thread loop[2];
    struct trp_function_thread *threads; /* shape.slots of them */
    int64_t active_ns;                   /* when something was last done */
    struct trp_spin spin;
    bool prepared, standby_started, driver_gone;
    bool run_over;         /* as the driver said */
    bool last_words_said;  /* last words that the spawner is to pass on */
    bool spawner_lost;     /* it died or hangs */
    bool adopts;           /* what its commands leave without it comes to us */
    bool finishing, clean; /* clean: no peer was lost, MPI can be finalized */
    int wake;              /* eventfd */
    int status;
    _Atomic bool ending;
    _Atomic uint32_t standby;  /* threads that wait for the baton */
    _Atomic uint32_t sleeping; /* the loop is in poll: ring `wake` */
    _Atomic(struct trp_finished *) finished;
    _Atomic uint32_t syncs_unsent;
    pthread_mutex_t lock;
    pthread_cond_t work;
    /* ---- `lock` */
    struct trp_task_ring handover;
    uint32_t idle;
    struct trp_sync_wait *syncs;
    pthread_cond_t synced; /* one was answered, or a function was told to end */
} trp_executor;

/* executor_stage.c */
int trp_executor_stage_add(trp_executor *e, const uint8_t *message, size_t size);
struct trp_executor_stage *trp_executor_stage_find(trp_executor *e, uint32_t id);
void trp_executor_stage_forget(trp_executor *e, uint32_t id);
/* Where the map outputs lie that a stage reads: an INPUTS message. */
int trp_executor_inputs(trp_executor *e, const uint8_t *message, size_t size);
/* Frees a forgotten stage of which nothing is left. */
void trp_executor_stage_settle(trp_executor *e, struct trp_executor_stage *s);
void trp_executor_stages_free(trp_executor *e);

/* files.c: FILES and SERVERS messages. */
int trp_executor_files_order(trp_executor *e, const uint8_t *message, size_t size);
int trp_executor_servers(trp_executor *e, const uint8_t *message, size_t size);
/* MOVE, and what comes of it. */
int trp_executor_move(trp_executor *e, const uint8_t *message, size_t size);
int trp_executor_drop(const trp_executor *e, const uint8_t *message, size_t size);
void trp_executor_tell_moved(trp_executor *e);
/* What a task is told of them. */
void trp_executor_files_info(trp_executor *e, struct trp_task_info *ret);
/* Lets go of the folder, and removes it when nobody needs it any more; while tasks may
 * still run. Then, when none does, server and client end. */
void trp_executor_files_leave(trp_executor *e);
void trp_executor_files_end(trp_executor *e);

/* executor.c: ends what runs and the channel, once. */
void trp_executor_finish(trp_executor *e);

extern trp_executor *trp_the_executor; /* a process has one at most */
/* Holds the baton and works until the end (true) or until it was robbed (false). */
bool trp_executor_loop(trp_executor *e, struct trp_function_thread *self);
/* Records an end and lets the head of its stage's queue take its place. Takes what the
 * task owns. */
void trp_executor_record(trp_executor *e, struct trp_task_entry *take_task,
                         const struct trp_end *end);
/* The spawner has died or hangs: so ends the executor. */
void trp_executor_lose_spawner(trp_executor *e);
/* Gives up: nothing more can be done here. */
void trp_executor_fail(trp_executor *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
int trp_executor_need_spawner(trp_executor *e, trp_error *err);

/* executor_function.c */
void trp_functions_prepare(trp_executor *e); /* there will be functions */
/* Runs ready functions here or hands them on; how many were dealt with, or -1: the
 * baton is lost. */
int trp_functions_run(trp_executor *e, struct trp_function_thread *self);
uint32_t trp_functions_collect(trp_executor *e);
void trp_functions_adopt(trp_executor *e);
void trp_functions_kill(trp_executor *e, trp_attempt_id attempt);
int64_t trp_functions_next_timer(trp_executor *e);
void trp_functions_timers(trp_executor *e, int64_t now);
/* Takes turns at the loop with the other such thread until the work is over. */
void trp_functions_loop(struct trp_function_thread *self);
/* Tells all functions to end, and waits; false: one has not returned. */
bool trp_functions_stop(trp_executor *e, int grace_ms);
/* Waits for all threads but the caller's; after a stop that succeeded. */
void trp_functions_join(trp_executor *e);

/* Wakes the loop when it sleeps. */
void trp_functions_wake(trp_executor *e);

/* executor_sync.c: what a function calls (trp_task_sync); its requests are sent by the
 * loop, which also takes the answers. */
int trp_sync_call(const struct trp_task_info *info, enum trp_sync_kind kind,
                  const void *message, uint32_t size, uint8_t **ret_reply,
                  size_t *ret_size);
void trp_syncs_send(trp_executor *e);
bool trp_syncs_answer(trp_executor *e, const uint8_t *message, size_t size);

/* crash.c */
void trp_crash_install(trp_spawner *spawner);
void trp_crash_thread(void); /* an alternate stack for this thread */
void trp_crash_running(trp_attempt_id attempt);
void trp_crash_idle(void);

/* executor.c: calls the driver of a shape and proves the secret, before MPI. */
int trp_executor_call(const struct trp_executor_shape *shape, trp_channel **ret,
                      trp_error *err);
/* The run's secret, TRP_SECRET_SIZE bytes; to be wiped. TRP_ESYSTEM. */
int trp_executor_secret(const struct trp_executor_shape *shape, uint8_t *ret,
                        trp_error *err);

#endif
