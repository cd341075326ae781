/*
 * The spawner: a small process that starts commands and answers for all they leave.
 *
 * It is forked before its parent grows (MPI_Init), so that spawning stays cheap and
 * `ru_maxrss` is the command's own. It is the subreaper: a command's children that left
 * their process group or session come back to it, are told by the token in their
 * environment (TROUPE_TOKEN=<random of this spawner>.<attempt>) and killed when their
 * attempt ends. When its parent is gone (its socket closes) it kills everything, sends
 * the parent's last words on the admission socket if it knows them, removes the scratch
 * folders, and ends. It never outlives its commands.
 *
 * Its parent watches it in turn (trp_spawner_look): it may be killed, stopped, or hang
 * in a file system. Then the parent ends what it had started (trp_spawner_bury).
 *
 * A stage's command is told once (trp_spawner_stage), an attempt is then a small frame
 * on a stream socket, and so is its end.
 *
 * Used by executors for tasks, and by the local cluster in the driver for gangs.
 */
#ifndef TRP_EXECUTOR_SPAWNER_H
#define TRP_EXECUTOR_SPAWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "comm/channel.h"
#include "os/linked_mpi.h"
#include "wire/message.h"

typedef struct trp_spawner trp_spawner; /* the parent's handle */

struct trp_spawner_config {
    const char *name;  /* for ps: "troupe: spawner NAME" */
    uint32_t executor; /* TROUPE_EXECUTOR of its tasks, TRP_NONE: none (gangs) */
    const char *run_name, *run_dir;
    const char *scratch; /* parent folder for scratch folders; made 0700 */
    int64_t memory_mib;  /* limit of all commands together; 0: none */
    const char *cgroup;  /* memory cgroup they are in, "" : sample PSS every 200 ms */
    bool own_cgroup;     /* it was made for this executor: groups can be made in it */
    pid_t watched;       /* 0, or the parent's pid, whose own memory counts too */
    bool for_functions;  /* commands are rare: what they need is made for the first */
    struct trp_last_words_way last_words; /* how last words are said */
};

/* Forks. The child never returns. */
int trp_spawner_fork(const struct trp_spawner_config *config, trp_spawner **ret_spawner,
                     trp_error *err);
pid_t trp_spawner_pid(const trp_spawner *s);
/* Readable when an end is there. */
int trp_spawner_fd(const trp_spawner *s);

/* Tells a stage's command; needed before its first attempt. `message` is the whole
 * STAGE message. Forgets it again. */
int trp_spawner_stage(trp_spawner *s, const void *message, size_t size);
int trp_spawner_forget(trp_spawner *s, trp_stage_id stage);

/* Which MPI the program of a STAGE message is linked with; TRP_LINKED_NONE where that
 * cannot be seen here. */
enum trp_linked_mpi trp_command_linked_mpi(const void *message, size_t size);

/* Starts an attempt; one marked as queued waits for the place of a running one of its
 * stage (places.h; `launch->seen` counts ends that trp_spawner_next gave). `ranks` 0: a
 * task; > 0: a gang of so many ranks, started by the words of `launcher`,
 * which name their number, and behind them the rank wrapper `gang_program`
 * (troupe-rank). */
struct trp_spawn {
    const struct trp_launch *launch;
    uint32_t ranks;
    const char *gang_program;    /* NULL for a task */
    const char *const *launcher; /* NULL for a task */
    bool by_srun;                /* that is srun: in a Slurm step */
    /* A gang of which no rank has begun by then is killed and given back
     * (TRP_END_RECALLED, without words); 0: no limit. */
    int64_t start_limit_ns;
};
int trp_spawner_start(trp_spawner *s, const struct trp_spawn *spawn);

/* What it is told from here on may be sent with what follows, at trp_spawner_release at
 * the latest: it is woken once for all of it. */
void trp_spawner_hold(trp_spawner *s);
int trp_spawner_release(trp_spawner *s);

/* Kills an attempt: SIGKILL to its process group and all its descendants; with `soft`
 * SIGTERM first and SIGKILL after 5 s. Answered by its end. */
int trp_spawner_kill(trp_spawner *s, trp_attempt_id attempt, bool soft);
/* Gives a queued attempt back (TRP_END_RECALLED); does nothing when it has started. */
int trp_spawner_recall(trp_spawner *s, trp_attempt_id attempt);

/* Tells which function tasks run in the parent and since when, for blaming one of them
 * when the parent is killed for memory: the thread with the most pages touched since.
 */
int trp_spawner_function(trp_spawner *s, trp_attempt_id attempt, pid_t thread,
                         bool begins);

/* Leaves what the driver is to be told should this process end now: a crash, a function
 * over its timeout. The first words count. Async-signal-safe. */
void trp_spawner_last_words(trp_spawner *s, const struct trp_last_words *last_words);

/* The next end that is there: 1 and *ret_end (its `extra` borrowed until the next
 * call), 0 none, TRP_ESYSTEM: the spawner is gone. */
int trp_spawner_next(trp_spawner *s, struct trp_end *ret_end);

/* Looks whether it is at work, and asks it to answer until the next look, which is due
 * at trp_spawner_next_look (CLOCK_MONOTONIC, ns): call it then while attempts are with
 * it. Never blocks. TRP_ESYSTEM: it has died, or hangs: stopped and silent for 3 s, or
 * silent for 10 s. Time in which the caller did not look does not count. */
int trp_spawner_look(trp_spawner *s, int64_t now_ns);
int64_t trp_spawner_next_look(const trp_spawner *s);

/* What became of a spawner of which a call said TRP_ESYSTEM. */
struct trp_spawner_fate {
    bool hangs;     /* else it has died … */
    int32_t signal; /* … of this signal; 0: not known, or by itself */
    char text[80];  /* "was killed by SIGKILL (9)", for "its spawner …" */
};

/* Kills it, all that it had started and what that has started, wherever it went, and
 * waits up to 5 s for these to be gone; then removes the scratch folders. `adopted`:
 * every child of this process but the spawner was left by it (the caller is a
 * subreaper), so those that hid from token and session are found as well. Returns how
 * many could not be ended. *ret_fate may be NULL. trp_spawner_close comes after it. */
uint32_t trp_spawner_bury(trp_spawner *s, bool adopted,
                          struct trp_spawner_fate *ret_fate);

/* Ends it and all its commands; waits at most 2 s, then buries it. */
void trp_spawner_close(trp_spawner *s);

/* The wrapper each rank of a gang runs in, `troupe-rank gang SPECFILE RUN_DIR RUN_ID`:
 * opens its log TASK.ATTEMPT.RANK.{out,err}, sets TROUPE_RANK and TROUPE_RANKS, execs
 * the command. RUN_DIR may be "". */
int trp_gang_rank_main(int argc, char **argv);
/* With these arguments: holds the run's folder and the one of the specification. */
int trp_gang_rank_hold(char *const *argv, trp_error *err);

/* The same with a process in front of the rank (gang_keep.c), which calls `note` with
 * the specification's path when the rank begins (`status` NULL) and with what waitpid
 * told when it has ended, and ends as the rank did. */
int trp_gang_keep_rank(int argc, char **argv,
                       void (*note)(const char *spec, const int *status));
/* The same below mpirun: notes how the ranks ended. */
int trp_gang_keep_mpirun_rank(int argc, char **argv);
/* A file beside the specification, as fopen does; NULL with errno. */
FILE *trp_gang_note(const char *spec, const char *name, const char *mode);

#endif
