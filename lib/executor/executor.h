/*
 * An executor: runs attempts, as many at once as its profile has slots.
 *
 * Processes: the executor itself (MPI, task threads) and its *spawner*, forked before
 * MPI_Init, which starts commands and kills what they leave behind (spawner.h).
 * Threads: task threads, one a slot. The one that holds the *baton* talks to the
 * driver; a function that is known to be short runs on that very thread, a long one
 * hands the baton on (baton.h). Commands need no task thread.
 *
 * Queue ahead (semantics, difference 16): launches marked `queued` wait in order of
 * arrival; the head takes over the resources of the attempt of its stage that ends
 * next, so that the engine, seeing ends in the order in which they were recorded here,
 * knows who has which resources.
 *
 * What a command finds in its environment besides the stage's: TROUPE_TASK
 * TROUPE_ATTEMPT TROUPE_STAGE_ATTEMPT TROUPE_TASKS TROUPE_STAGE TROUPE_PROFILE
 * TROUPE_CPUS TROUPE_EXECUTOR TROUPE_RUN TROUPE_RUN_DIR TROUPE_SCRATCH, TROUPE_ITEM
 * when there is one, TROUPE_RESOURCE_<name> and the site's variable for each resource
 * it was given.
 */
#ifndef TRP_EXECUTOR_EXECUTOR_H
#define TRP_EXECUTOR_EXECUTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/channel.h"
#include "core/base/error.h"
#include "data/block_store.h"
#include "wire/map_output.h"
#include "wire/message.h"

/* The shape an executor is started with; travels in the environment variable
 * TROUPE_EXECUTOR as text (trp_shape_put / _parse), which tasks never see. */
struct trp_executor_shape {
    uint32_t id;
    uint32_t cores;     /* tasks never see more */
    uint32_t slots;     /* task threads */
    int64_t memory_mib; /* enforced limit; 0: none */
    char cpuset[512];   /* logical processors to bind to, "0-3,8"; "": do not bind */
    char cgroup[512];   /* memory cgroup folder made for it, which it
                         * joins; "", or not allowed to: sample instead */
    uint32_t in_cgroup; /* 1: it was started in it */
    char driver[300];   /* HOST:PORT */
    char secret_file[4096];
    uint32_t munge;        /* 1: both sides prove their user by MUNGE as well */
    uint32_t sockets, mac; /* 1: messages travel over sockets; with comm.mac */
    char run_name[128];
    char run_dir[4096]; /* "": a rank of a static run, which needs none */
    char run_id[40];    /* its identity (os/held.h) */
    char scratch[4096]; /* parent of this executor's scratch folders */
    int64_t network_timeout_ns, heartbeat_ns;
};
/* "id=3;cores=2;…" with %-escapes; malloc'ed, NULL when out of memory. */
char *trp_shape_put(const struct trp_executor_shape *s);
int trp_shape_parse(const char *text, struct trp_executor_shape *ret, trp_error *err);

/* Runs a function stage's task; provided by lib/api so that executor/ need not know it.
 */
struct trp_function_result {
    int32_t status; /* 0, or the error code a function returned */
    bool mistake;   /* with a status: it is wrong and would be again */
    bool denied;    /* with a status: another attempt commits the output */
    struct {
        bool failed; /* with a status: this map output could not be read */
        uint32_t dataset, map;
        uint64_t attempt;
        uint32_t location; /* where it was looked for; TRP_NONE: that is not known */
        struct trp_map_output *more; /* others that are not there; malloc'ed, taken */
        uint32_t nmore;
    } fetch;
    uint8_t *result; /* malloc'ed, taken by the executor; NULL: none */
    uint32_t result_size;
    uint8_t *added; /* malloc'ed, taken: as in struct trp_end */
    uint32_t nadded;
    bool in_file; /* the result lies in `file` */
    struct trp_result_file file;
    bool has_data; /* it read map outputs, or wrote one */
    struct trp_end_data data;
    uint64_t records_in, records_out, bytes_in, bytes_out;
    char error[512];
};
/* All but `file` and the rest of the error text, which are long. */
static inline void trp_function_result_clear(struct trp_function_result *r)
{
    r->status = 0;
    r->mistake = r->denied = false;
    r->fetch.failed = false;
    r->fetch.more = NULL;
    r->fetch.nmore = 0;
    r->result = NULL;
    r->result_size = 0;
    r->added = NULL;
    r->nadded = 0;
    r->in_file = false;
    r->has_data = false;
    r->data = (struct trp_end_data){0};
    r->records_in = r->records_out = r->bytes_in = r->bytes_out = 0;
    r->error[0] = '\0';
}
struct trp_task_info;
/* Asks the driver, and waits for its answer: of barrier and allGather it comes when all
 * tasks of the stage have called as often as this one. *ret_reply is the whole SYNCED
 * message, malloc'ed. TRP_ECANCELLED: the attempt is to end. TRP_ENOMEM. */
typedef int (*trp_task_sync)(const struct trp_task_info *info, enum trp_sync_kind kind,
                             const void *message, uint32_t size, uint8_t **ret_reply,
                             size_t *ret_size);
struct trp_task_info {
    trp_attempt_id attempt;
    uint32_t stage, stage_attempt, task, ntasks, number, cpus, executor;
    const char *host;
    const char *resources;      /* "gpu=0,1\n…" text lines, NUL-terminated */
    const volatile int *killed; /* becomes 1 when the attempt is to end */
    uint64_t *records;          /* read so far; set by the task, looked at by others */
    uint64_t memory;            /* bytes it may use for map outputs */
    struct trp_block_store *blocks; /* partitions that are kept here; NULL: none are */
    const char *map_outputs; /* absolute folder: those of this host; NULL: none */
    bool apart;       /* that folder is this host's alone, and other hosts are asked */
    bool opens;       /* it may open those of others here */
    uint8_t compress; /* level of zstd in those that it writes; 0: none */
    struct trp_block_client
        *client; /* asks for those elsewhere; NULL: there are none */
    const struct trp_stage_inputs *inputs; /* the map outputs it reads; NULL: none */
    trp_task_sync sync;
    void *sync_context; /* the executor's own */
};
struct trp_function_runner {
    /* A stage's body is decoded once. NULL *ret_stage with a text on failure. */
    void *(*stage_open)(const uint8_t *body, size_t size, trp_error *err);
    void (*stage_close)(void *stage);
    /* What identifies the function(s) of a stage over stages, for the estimate of how
     * long a task takes. */
    uint64_t (*stage_key)(const void *stage);
    /* Runs on the calling thread. `ret` is cleared. */
    void (*run)(void *stage, const struct trp_task_info *info, const uint8_t *input,
                uint32_t input_size, struct trp_function_result *ret);
};

/* The whole life of an elastic executor process: reads TROUPE_EXECUTOR, calls the
 * driver, forks the spawner, MPI_Init, joins, works, ends. Returns the exit status of
 * the process (it may also _exit). `argc`/`argv` are for naming the process. */
int trp_executor_main(int *argc, char ***argv,
                      const struct trp_function_runner *runner);

/* The same for a rank > 0 of a static run, after MPI_Init; `shape` has id, cores,
 * slots. Called on a channel that trp_channel_world returned, which must have been
 * given the handler of trp_executor_handler. */
void trp_executor_handler(struct trp_channel_handler *ret);
int trp_executor_work(trp_channel *channel, const struct trp_executor_shape *shape,
                      const struct trp_function_runner *runner);

#endif
