/*
 * What the spawner's parts share: the frames on its socket, the block of memory it
 * shares with its parent, and the state of the process. Not for others.
 *
 * Parts of the process: spawner_child.c its loop, spawner_start.c how a command is
 * started, spawner_end.c how an attempt ends, spawner_strays.c what commands leave,
 * spawner_outputs.c what they were to make,
 * spawner_memory.c limits and blame, gang.c ranks, task_log.c logs, scratch.c folders.
 * Parts of its parent: spawner.c frames there and back, spawner_watch.c is it still at
 * work, and what one that is not leaves.
 */
#ifndef TRP_EXECUTOR_SPAWNER_INTERNAL_H
#define TRP_EXECUTOR_SPAWNER_INTERNAL_H

#include <stdatomic.h>
#include <uthash.h>

#include "core/base/bytes.h"
#include "core/base/template.h"
#include "executor/places.h"
#include "executor/scratch.h"
#include "executor/spawner.h"
#include "os/output_list.h"

/* A frame is a little-endian u32 (how many bytes follow), one byte of kind, payload. */
enum trp_spawner_frame {
    TRP_FRAME_STAGE = 1,  /* a STAGE message */
    TRP_FRAME_FORGET = 2, /* u32 stage */
    TRP_FRAME_START = 3,  /* u32 ranks, u8 by srun, i64 start limit, text gang
                           * program, u32 words of the launcher, these, a LAUNCH
                           * message of one */
    TRP_FRAME_KILL = 4,   /* u64 attempt, u8 soft */
    TRP_FRAME_WATCH = 5,  /* functions run: sample them from now on */
    TRP_FRAME_CLOSE = 6,  /* end everything */
    TRP_FRAME_RECALL = 7, /* u64 attempt: give it back if it is still queued */
    TRP_FRAME_ENDS = 8,   /* spawner → parent: an ENDS message */
    TRP_FRAME_PING = 9,   /* answered by one more in `answered` below */
};
enum { TRP_FRAME_HEAD = 4 };

/* Written by the parent's threads, read by the spawner, also after the parent's death.
 * So a thread tells what it runs with a few stores, and a signal handler can leave last
 * words without touching a socket. */
struct trp_watched_thread {
    _Atomic int32_t thread; /* 0: free entry */
    _Atomic uint32_t busy;
    _Atomic uint64_t attempt;
    _Atomic uint64_t faults; /* minor faults when it began; UINT64_MAX: not known */
};
enum { TRP_WATCHED_THREADS = 4096, TRP_LAST_WORDS_NONE = 0, TRP_LAST_WORDS_SAID = 2 };
enum { TRP_TOKEN_SIZE = 40, TRP_SCRATCH_PATH = 4200 };

struct trp_spawner_shared {
    _Atomic uint32_t last_words; /* TRP_LAST_WORDS_*; 1 while they are written */
    struct trp_last_words last;
    _Atomic uint32_t sampling; /* the spawner looks every 200 ms */
    _Atomic uint32_t answered; /* pings */
    _Atomic uint32_t made_scratch_parent;
    _Atomic uint32_t nthreads;
    struct trp_watched_thread thread[TRP_WATCHED_THREADS];
    /* The spawner's scratch root, for whoever removes it after its death. Last: what
     * every executor touches is on one page. */
    char scratch[TRP_SCRATCH_PATH];
};

/* Removes the spawner's scratch root, `budget` entries of it at most, and the folder
 * `root` that it lies in when it was made for it. In spawner or parent. */
void trp_scratch_remove(struct trp_spawner_shared *shared, const char *root,
                        size_t budget);

/* The parent's handle. */
struct trp_spawner {
    int socket;
    pid_t pid;
    bool gone; /* end of file or a broken frame */
    bool enforces;
    struct trp_spawner_shared *shared;
    struct trp_buf in, out;
    size_t frame;         /* where the last one begins in `out` */
    bool holds;           /* frames stay there until they are released */
    size_t taken;         /* of `in` */
    struct trp_view ends; /* what is left of the frame being read */
    char token[TRP_TOKEN_SIZE];
    char scratch[4096]; /* as configured */
    /* ---- spawner_watch.c */
    struct trp_spawner_fate fate;
    uint32_t asked; /* pings sent */
    bool unsent;    /* there was no room for the last one */
    bool waits;     /* for an answer, or for room: since */
    int64_t waits_since_ns;
    int64_t looked_ns; /* 0: never */
    bool reaped;
};

/* A text of a stage that differs by task, and where it is used. */
struct trp_command_text {
    const char **at;
    const char *text;
};

/* A stage's command, made ready so that an attempt adds a few strings only. */
struct trp_command_stage {
    uint32_t id;
    UT_hash_handle hh;
    struct trp_stage_message message;
    struct trp_command command;
    const char **env;  /* per-attempt places first, then the stage's, then NULL */
    uint32_t nown;     /* places in front */
    const char **argv; /* ends with NULL */
    const char *cwd;
    struct trp_command_text *templates; /* what of these each task fills in */
    uint32_t ntemplates;
    bool has_rows;      /* words of argv become one a row of the task: */
    const char **words; /* argv, of the attempt that was started last */
    uint32_t words_cap;
    bool own_program;  /* each task has its own */
    char **program;    /* what to try to exec, in order; NULL-terminated */
    int logs;          /* the folder of its logs, … */
    int stream, index; /* … of what its tasks printed; -1: not open */
    uint64_t stream_size;
    struct trp_places places;
    uint32_t attempts;
    bool forgotten;
};

/* A memory group for one command at a time; those that come after each other in an entry use
 * the same. */
struct trp_command_group {
    bool tried, has;
    int tasks, events; /* with `has` */
    uint64_t seen;     /* kills in it before the present command */
};

enum trp_running_state {
    TRP_RUN_FREE,
    TRP_RUN_LIVE,     /* its main process lives */
    TRP_RUN_DRAINING, /* it ended; others of the attempt are being killed */
    TRP_RUN_CLEANING, /* a helper removes its scratch folder */
    TRP_RUN_LOOKING,  /* its outputs are not there yet: they may only be late */
};

struct trp_running {
    enum trp_running_state state;
    trp_attempt_id attempt;
    struct trp_command_stage *stage;
    bool gang;
    bool by_srun;    /* … in a Slurm step */
    bool asked;      /* by SIGTERM: it may end with 0 for that */
    bool polite;     /* its ranks were asked to end: until kill_at_ns */
    char *resources; /* of its place, its own; NULL: none */
    char *outputs; /* patterns that are to match a file, its own, a NUL behind each and
                       * one more; NULL: none */
    struct trp_outputs before; /* what matched these when it was started */
    uint32_t ranks;            /* of a gang */
    uint32_t task, number;
    pid_t pid;       /* main process; also its group */
    pid_t helper;    /* CLEANING */
    uint64_t births; /* processes of the spawner's own when this one was started */
    int64_t started_ns;
    int64_t timeout_at_ns; /* INT64_MAX: none */
    int64_t begin_at_ns;   /* when a rank of a gang must have begun, or INT64_MAX */
    int64_t kill_at_ns;    /* SIGKILL after a soft kill; INT64_MAX: none */
    int64_t look_at_ns;    /* DRAINING: next look at the strays; LOOKING: at outputs */
    int64_t look_ns;       /* … and its distance */
    int64_t drain_ns;      /* when DRAINING began: its main process had ended */
    uint8_t cause;   /* why we killed it: enum trp_end_status, SUCCESS: we did not */
    int64_t pss_kib; /* largest sampled */
    struct trp_command_group group;
    bool grouped;          /* it is in that */
    bool alone;            /* no other command without a group has run meanwhile */
    uint64_t kills_before; /* in the executor's group */
    struct trp_scratch scratch;
    uint32_t generation; /* of its scratch folder's name, when one could not go */
    struct trp_end end;
};

struct trp_function_sample {
    uint64_t attempt, first, last;
    bool seen;
};

/* The spawner process. */
enum { TRP_LAUNCHER_WORDS = 40 };

/* How a gang is started. */
struct trp_gang_call {
    uint32_t ranks;      /* 0: it is a task */
    const char *program; /* the rank wrapper */
    char *const *launcher;
    uint32_t nlauncher;
    bool by_srun;
    int64_t start_limit_ns;
};

struct trp_keeper {
    struct trp_spawner_config config; /* strings are the keeper's own */
    struct trp_spawner_shared *shared;
    pid_t self, parent;
    uint32_t held;      /* ends made and not sent yet … */
    int64_t held_since; /* … the first of them then */
    bool urgent;        /* one of them did not go well: they are sent at once */
    int socket, signals;
    struct trp_last_words_way last_words;
    bool prepared;         /* for commands: the next four are there */
    int loadavg, children; /* -1: this kernel has none */
    int oom_score;         /* our own oom_score_adj, -1: none */
    char own_oom_score[8]; /* … and what it holds while nothing is being started */
    int scratch;           /* the scratch root, a descriptor; -1: none */
    char *scratch_path;    /* in `shared` */
    char
        token[TRP_TOKEN_SIZE]; /* "TROUPE_TOKEN=<random>"; '.' and the attempt follow */
    struct trp_buf in, out, ends, strings, texts;
    size_t in_taken, out_sent;
    struct trp_command_stage *stages;
    uint32_t log_folders; /* of these that are open */
    struct trp_running *running;
    uint32_t nrunning, live; /* entries; those that are not FREE */
    uint64_t births;
    uint32_t ends_made;             /* so far; the parent counts them too */
    int64_t sample_at_ns;           /* INT64_MAX: nothing to sample */
    int cgroup_events, cgroup_peak; /* -1: none */
    bool makes_groups;              /* in the executor's own */
    uint64_t oom_seen;              /* kills by the kernel that are accounted for */
    struct trp_function_sample *samples;
    struct ZSTD_CCtx_s *zstd; /* NULL: nothing was compressed yet */
};

/* spawner_watch.c: after it did not answer for `waited_ns` of our own time: has it
 * died, or does it hang? Then its fate says so. */
bool trp_spawner_is_lost(trp_spawner *s, int64_t waited_ns);

/* spawner_child.c: the process; never returns. */
_Noreturn void trp_keeper_main(struct trp_keeper *k);

/* spawner_stage.c */
int trp_command_stage_add(struct trp_keeper *k, const void *message, size_t size);
struct trp_command_stage *trp_command_stage_find(struct trp_keeper *k, uint32_t id);
/* Fills in what differs by task, until the next one; the texts are in `b`. False: out of
 * memory. */
bool trp_command_stage_fill(struct trp_command_stage *s, struct trp_buf *b,
                            const struct trp_task_values *v);
void trp_command_stage_forget(struct trp_keeper *k, struct trp_command_stage *s);
void trp_command_stage_release(struct trp_keeper *k, struct trp_command_stage *s);

/* spawner_outputs.c: what each of its outputs is called, in *ret, malloc'ed; NULL: it has
 * none. False: one names no file, or there is no memory, as `why` says. */
bool trp_outputs_of_attempt(const struct trp_command *c,
                            const struct trp_task_values *v, char **ret, char *why,
                            size_t size);
/* Looks at what there is of them before the attempt. */
void trp_outputs_before(struct trp_running *r);
/* Why the first that was not made was not; "": all were. */
void trp_outputs_missing(const struct trp_running *r, char *ret, size_t size);
void trp_outputs_forget(struct trp_running *r);

/* spawner_start.c: starts an attempt, or reports why not. */
void trp_keeper_start(struct trp_keeper *k, const struct trp_launch *l,
                      const struct trp_gang_call *gang);
/* The end that was just reported left a place: who is queued for it starts. */
void trp_keeper_pass_place(struct trp_keeper *k, struct trp_command_stage *s,
                           char **resources);
/* Becomes the first of `program` that there is; returns errno. Async-signal-safe. */
int trp_exec_first(char *const *program, char *const *argv, char *const *env);

/* task_log.c. LOG_DIR/TASK[.sN].ATTEMPT, without ".out"; false: too long. */
bool trp_log_prefix(char *buf, size_t size, const struct trp_command *c,
                    uint32_t stage_attempt, uint32_t task, uint32_t number);
/* Opens a log anew, for its owner alone whatever the umask says; -1 with errno. */
int trp_log_open(const char *path);
/* The same of an attempt of the stage. */
int trp_stage_log_open(struct trp_keeper *k, struct trp_command_stage *s,
                       const char *path);
/* Closes the folder of its logs; trp_logs_rest: if no attempt of it runs, and more are
 * open than a few. */
void trp_logs_close(struct trp_keeper *k, struct trp_command_stage *s);
void trp_logs_rest(struct trp_keeper *k, struct trp_command_stage *s);
/* Removes those logs of an ended attempt, of a gang's ranks too, that are empty, and puts
 * what else it printed into the stage's stream where that is wanted. */
void trp_logs_settle(struct trp_keeper *k, const struct trp_running *r);
void trp_stage_stream_close(struct trp_command_stage *s);

/* spawner_end.c */
void trp_keeper_reap(struct trp_keeper *k);
/* Ends one whose process lives, with `soft` politely first, or whose output is waited for.
 * `cause`: an enum trp_end_status. */
void trp_running_kill(struct trp_running *r, uint8_t cause, bool soft);
void trp_keeper_timers(struct trp_keeper *k, int64_t now);
int64_t trp_keeper_next_timer(const struct trp_keeper *k);
/* The parent is gone, or said CLOSE: ends everything and the process. */
_Noreturn void trp_keeper_end(struct trp_keeper *k, bool parent_lost);
/* Puts an end among those that are sent after this turn of the loop. */
void trp_keeper_report(struct trp_keeper *k, const struct trp_end *end);
/* An attempt failed before anything ran. */
void trp_keeper_refuse(struct trp_keeper *k, trp_attempt_id attempt, const char *fmt,
                       ...) __attribute__((format(printf, 3, 4)));
/* Name of the scratch folder of an entry, in the scratch root. */
void trp_scratch_name(const struct trp_keeper *k, const struct trp_running *r,
                      char *buf, size_t size);

/* The entry whose main process or helper this is; NULL: none. */
struct trp_running *trp_running_of(const struct trp_keeper *k, pid_t pid);

/* spawner.c: says them, unless others were said before. */
void trp_shared_last_words(struct trp_spawner_shared *s,
                           const struct trp_last_words *last_words);

/* spawner_strays.c: kills what belongs to no live attempt; how many are left (also
 * those dying). */
uint32_t trp_strays_kill(struct trp_keeper *k);
/* The cheap look when the main process of `r` has ended: false: perhaps there are some.
 */
bool trp_strays_none(const struct trp_keeper *k, const struct trp_running *r);
/* The entry a process belongs to, by its environment's token or else its group; NULL:
 * none. */
struct trp_running *trp_strays_owner(struct trp_keeper *k, pid_t pid, pid_t group);

/* The attempt behind `token` in the environment of a process; false: it has none. */
bool trp_process_token(pid_t pid, const char *token, uint64_t *ret_attempt);

/* spawner_memory.c */
void trp_memory_open(struct trp_keeper *k);
/* A command is about to be started: the group that it is to join by writing "0" there; -1:
 * none. */
int trp_memory_group(struct trp_keeper *k, struct trp_running *r);
/* It was started: `r`; NULL: functions run in the parent. Sample if that is needed. */
void trp_memory_begin(struct trp_keeper *k, struct trp_running *r);
void trp_memory_tick(struct trp_keeper *k, int64_t now);
/* A process of the attempt was killed by the kernel for memory: accounts for it. `by_kill`:
 * SIGKILL ended it; `good`: it ended well all the same. */
bool trp_memory_killed(struct trp_keeper *k, const struct trp_running *r, bool by_kill,
                       bool good);
/* One was killed while it ran, and it cannot be told whose. */
bool trp_memory_unclear(const struct trp_keeper *k, const struct trp_running *r);
/* Removes the groups of commands; nobody is in them any more. */
void trp_memory_end(struct trp_keeper *k);
int64_t trp_memory_peak_kib(const struct trp_keeper *k);
/* What is known of the parent's end. */
void trp_memory_last_words(struct trp_keeper *k, struct trp_last_words *ret);

/* gang.c. How mpirun is called for a gang; all strings lie in `text`. */
struct trp_gang_start {
    const char *argv[TRP_LAUNCHER_WORDS + 20], *env[20];
    struct trp_buf text;
};
/* Makes the gang's folder "g<entry>" in the scratch root with the specification that
 * its ranks read. `env` is the whole environment of the task. The caller frees the
 * text. */
int trp_gang_prepare(struct trp_keeper *k, const struct trp_running *r,
                     const struct trp_gang_call *call, const char *log_prefix,
                     const char *const *env, struct trp_gang_start *ret,
                     trp_error *err);
/* Whether a rank has begun. */
bool trp_gang_has_begun(const struct trp_keeper *k, const struct trp_running *r);
/* Turns what mpirun returned into how the gang ended, with what its ranks left in the
 * folder, and removes that. `text` holds end->extra when there is one. */
void trp_gang_finish(struct trp_keeper *k, const struct trp_running *r,
                     struct trp_end *end, char *text, size_t size);
/* gang_used.c: fills in CPU time and peak memory of the ranks, as far as they told. */
void trp_gang_add_used(const struct trp_keeper *k, const char *folder,
                       struct trp_end *end);

#endif
