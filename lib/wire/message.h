/*
 * Messages between driver and executors on the control channel: their layouts and
 * codecs. No I/O. Everything little-endian; every message begins with one byte of kind.
 *
 * driver → executor
 *   STAGE    what a stage is, sent to an executor once, before its first launch there
 *   LAUNCH   a batch of attempts
 *   KILL     end an attempt, or give it back if it has not started
 *   FORGET   the stage is over: its description may go
 *   SHUTDOWN no more work: end everything, say goodbye
 *   SYNCED   the answer to a SYNC
 *   INPUTS   where the map outputs lie that a stage reads (wire/map_output.h)
 *   FILES    where to leave map outputs, and whether to serve them (the same)
 *   SERVERS  who serves them (the same)
 *   MOVE     map outputs to be copied to the run's folder (the same)
 *   UNPERSIST  a dataset is kept no longer (wire/blocks.h)
 *   DROP     map outputs that nobody needs any more (wire/map_output.h)
 * executor → driver
 *   ENDS     a batch of attempts that ended, with metrics and results
 *   SYNC     a task of a barrier stage waits for all others of its stage, or one asks
 *            whether it may commit its output
 *   RECORDS  how many records running functions have read so far
 *   LOCATION where its map outputs lie, and its block server (wire/map_output.h)
 *   MOVED    what has become of a MOVE (the same)
 *   BLOCKS   what has become of partitions that it keeps (wire/blocks.h)
 *
 * A decoder checks every length; TRP_EPROTO for anything else. Borrowed pointers point
 * into the decoded bytes.
 */
#ifndef TRP_WIRE_MESSAGE_H
#define TRP_WIRE_MESSAGE_H

#include "core/base/bytes.h"
#include "core/base/ends.h"
#include "core/base/error.h"
#include "core/base/ids.h"
#include "core/base/time.h"
#include "core/engine.h"

enum { TRP_WIRE_VERSION = 10 };

enum trp_message_kind {
    TRP_MSG_STAGE = 1,
    TRP_MSG_LAUNCH = 2,
    TRP_MSG_KILL = 3,
    TRP_MSG_FORGET = 4,
    TRP_MSG_SHUTDOWN = 5,
    TRP_MSG_ENDS = 6,
    TRP_MSG_SYNC = 7,
    TRP_MSG_SYNCED = 8,
    TRP_MSG_INPUTS = 9,
    TRP_MSG_RECORDS = 10,
    TRP_MSG_FILES = 11,
    TRP_MSG_SERVERS = 12,
    TRP_MSG_LOCATION = 13,
    TRP_MSG_BLOCKS = 14,
    TRP_MSG_UNPERSIST = 15,
    TRP_MSG_MOVE = 16,
    TRP_MSG_MOVED = 17,
    TRP_MSG_DROP = 18,
};

enum trp_work_kind {
    TRP_WORK_FUNCTION = 1, /* body: lib/api's chain of functions */
    TRP_WORK_COMMAND = 2,  /* body: struct trp_command */
};

/* A view behind the kind, bad when it is another kind. */
struct trp_view trp_message_view(const void *p, size_t n, enum trp_message_kind kind);

/* STAGE. `body` is opaque here: a command (below) or a function chain (lib/api). */
struct trp_stage_message {
    trp_stage_id stage;
    uint32_t stage_attempt; /* the first one's; with `whole` add the attempt's number */
    bool whole;             /* it runs again as a whole: each attempt of a task is one
                             * of the stage */
    enum trp_work_kind work;
    uint32_t ntasks;
    uint32_t task_cpus;
    int64_t timeout_ns;  /* 0: none */
    int64_t records_ns;  /* functions: how often a RECORDS is wanted; 0: never */
    uint64_t memory;     /* bytes that one of its tasks may use for map outputs */
    const char *name;    /* stage's name in the file, or a generated one */
    const char *profile; /* profile's name */
    const uint8_t *body;
    size_t body_size;
};
/* Which attempt of the stage an attempt of one of its tasks belongs to. */
static inline uint32_t trp_stage_attempt_of(const struct trp_stage_message *m,
                                            uint32_t number)
{
    return m->stage_attempt + (m->whole ? number : 0);
}
void trp_stage_message_put(struct trp_buf *b, const struct trp_stage_message *m);
/* Strings and body are copied: free with trp_stage_message_free. */
int trp_stage_message_get(const void *p, size_t n, struct trp_stage_message *ret);
void trp_stage_message_free(struct trp_stage_message *m);

/* The body of a command stage. argv, env and cwd are templates (core/base/template.h). */
struct trp_command {
    const char *const *argv;
    uint32_t nargv; /* ready to exec: {"/bin/sh","-c",TEXT} or argv
                     * with `wrap` and `prelude` applied */
    const char *const *env;
    uint32_t nenv;       /* "K=V": the whole environment of a task but
                          * what varies by attempt (executor.h) */
    const char *cwd;     /* absolute, but where a value of a task may be that */
    const char *base;    /* absolute: where relative paths begin */
    const char *log_dir; /* absolute; logs are LOG_DIR/TASK.ATTEMPT.{out,err} */
    const char *const *resource_env;
    uint32_t nresource_env;    /* strings in pairs name, variable:
                                * {"gpu", "CUDA_VISIBLE_DEVICES", …} is 2 or more,
                                * always even */
    const char *run, *run_dir; /* TRP_RUN name and folder */
    bool one_log; /* what its tasks print goes to one stream (events/task_logs.h) */
    const char *const
        *outputs; /* patterns of a task, each to match a file below `base` … */
    uint32_t noutputs;
    int64_t
        outputs_wait_ns; /* … so long after its end at the latest: a gang's ranks write
                              * on other nodes */
};
void trp_command_put(struct trp_buf *b, const struct trp_command *c);
/* Copies; the lists end with a NULL that is not counted, ready for execve. */
int trp_command_get(const void *p, size_t n, struct trp_command *ret);
void trp_command_free(struct trp_command *c);

/* One entry of a LAUNCH. `extra` is the item of a command (bytes, may be empty; with its
 * columns) or the partition's input of a function. */
struct trp_launch {
    trp_attempt_id attempt;
    trp_stage_id stage;
    uint32_t task;
    uint16_t number;
    uint8_t queued;
    uint32_t seen;    /* ends of this executor that were taken before this was decided:
                       * a queued attempt takes over the place of a later end at once */
    uint8_t has_item; /* command: TROUPE_ITEM is set (also when empty) */
    const uint8_t *resources; /* encoded "name=a,b\n" text lines, not NUL-terminated */
    uint32_t resources_size;
    const uint8_t *extra;
    uint32_t extra_size;
};
/* A LAUNCH message is begun (which clears the buffer), filled and finished; an empty
 * one is not sent. Fixed part 32 bytes a launch. */
void trp_launch_begin(struct trp_buf *b);
static inline void trp_launch_put(struct trp_buf *b, const struct trp_launch *l);
void trp_batch_finish(struct trp_buf *b); /* an ENDS as well */
/* Iterates: trp_launch_open on the whole message, which checks all of it, then _next
 * until 0 (end) or < 0. */
int trp_launch_open(const void *p, size_t n, struct trp_view *ret_v,
                    uint32_t *ret_count);
static inline int trp_launch_next(struct trp_view *v, struct trp_launch *ret);

/* KILL, FORGET, SHUTDOWN. */
enum trp_kill_mode {
    TRP_KILL_NOW = 0,    /* SIGKILL */
    TRP_KILL_RECALL = 1, /* only if it has not started: hand it back */
    TRP_KILL_SOFT = 2,   /* SIGTERM, 5 s later SIGKILL */
};
void trp_kill_put(struct trp_buf *b, trp_attempt_id attempt, enum trp_kill_mode mode);
int trp_kill_get(const void *p, size_t n, trp_attempt_id *ret_attempt,
                 enum trp_kill_mode *ret_mode);
/* A FORGET has a stage's number, an UNPERSIST a dataset's, and nothing else. */
void trp_number_put(struct trp_buf *b, enum trp_message_kind kind, uint32_t number);
int trp_number_get(const void *p, size_t n, enum trp_message_kind kind,
                   uint32_t *ret_number);
/* `over`: the run is. */
void trp_shutdown_put(struct trp_buf *b, bool over);
int trp_shutdown_get(const void *p, size_t n, bool *ret_over);

/* SYNC: an attempt asks, for the `epoch`-th time, and waits for the answer. */
struct trp_sync {
    trp_attempt_id attempt;
    uint32_t epoch;
    enum trp_sync_kind kind;
    const uint8_t *message; /* allGather: what it gives to the others */
    uint32_t size;
};
void trp_sync_put(struct trp_buf *b, const struct trp_sync *s);
int trp_sync_get(const void *p, size_t n, struct trp_sync *ret);

/* SYNCED: status 0 and, for an allGather, the messages of all tasks in their order; of a
 * commit enum trp_commit; else an error code and its text. */
struct trp_synced {
    trp_attempt_id attempt;
    uint32_t epoch;
    int32_t status;
    uint32_t count;          /* messages … */
    struct trp_view counted; /* … each to be taken with trp_get_bytes */
    const uint8_t *text;     /* with an error */
    uint32_t text_size;
};
/* Begun with what stands before the messages; then `count` times trp_put_bytes. */
void trp_synced_put(struct trp_buf *b, const struct trp_synced *s);
int trp_synced_get(const void *p, size_t n, struct trp_synced *ret);

/* The entries of an ENDS are struct trp_end. */
/* As with LAUNCH. An end of TRP_END_SUCCESS with nothing but a duration (and less than
 * 4 s of CPU) takes 24 bytes, others 80 + extra. */
void trp_ends_begin(struct trp_buf *b);
static inline void trp_ends_put(struct trp_buf *b, const struct trp_end *e);
int trp_ends_open(const void *p, size_t n, struct trp_view *ret_v, uint32_t *ret_count);
static inline int trp_ends_next(struct trp_view *v, struct trp_end *ret);

/* RECORDS: entries until its end. The first one put begins the message. */
void trp_records_put(struct trp_buf *b, trp_attempt_id attempt, uint64_t records);
/* Iterates as with LAUNCH; opening checks all of it. */
int trp_records_open(const void *p, size_t n, struct trp_view *ret_v);
bool trp_records_next(struct trp_view *v, trp_attempt_id *ret_attempt,
                      uint64_t *ret_records);

/* The kind of a message, 0 for an empty or unknown one. */
enum trp_message_kind trp_message_kind_of(const void *p, size_t n);

#include "wire/launches.h" /* the inline functions above */

#endif
