/*
 * What is done in a run, so that `--resume` need not do it again: RUN/state/done.jsonl,
 * one JSON line each time
 *
 *     {"done": ID, "is": PRINT, "stage": S, "task": N, "outputs": [[PATH, SIZE, NS], …]}
 *                                              with "drops": [ID, …] and "drop_stages":
 *                                              [S, …] of what comes after it
 *     {"stage_outputs": S, "outputs": […]}     at a stage's end
 *     {"sums": ID, "task": N, "inputs": PRINT, "outputs": [[PATH, SIZE, NS, PRINT], …]}
 *                                              contents of what the task read and made
 *     {"left": ID, "task": N, "outputs": [[PATH, SIZE, NS, INODE, NS], …]}
 *                                              what a failed attempt left, which is to go
 *                                              before the next one
 *     {"stage_is": S, "command": PRINT, …}     of what a stage's PRINT is made, part by
 *                                              part; when it begins
 *     {"drop": ID}                             that task's record counts no more
 *     {"again": ID, "stage": S}                 that task, which is done, begins to make its
 *                                              files again that are temp
 *     {"drop_stage": S}                        no record of that stage counts any more
 *     {"stage_attempt": N}                     an attempt of a stage, above 0, began
 *
 * A file that is temp has "temp" at the end of its entry.
 *
 * ID says which task it is (stage and item), PRINT what it ran (command, environment,
 * params that it names); "inputs": PRINT beside it what files it read, and their sizes and times. Later
 * lines win: when the contents of a stage's outputs are known, its line is there again with
 * them. The file is only ever appended to; a line that was torn by a crash is passed over.
 *
 * Threads: what appends may be called by several.
 *
 *     trp_done_log_open(run_dir, true, &log, &err);
 *     r = trp_done_log_find(log, id);              // what was read, when resuming
 *     trp_done_log_task(log, "split", 3, id, print, &outputs);
 *     trp_done_log_close(log, &err);
 */
#ifndef TRP_DRIVER_DONE_LOG_H
#define TRP_DRIVER_DONE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "driver/output_files.h"

/* What the print of a stage's tasks is made of. */
enum trp_print_part {
    TRP_PART_COMMAND,
    TRP_PART_ENVIRONMENT,
    TRP_PART_PARAMS,
    TRP_PARTS,
};
struct trp_print_parts {
    struct trp_print v[TRP_PARTS];
};

/* A task that succeeded. */
struct trp_done_record {
    struct trp_print id, print;
    struct trp_print inputs;      /* 0: not known */
    struct trp_print inputs_sums; /* of their contents; 0: not known */
    struct trp_outputs outputs;
    uint64_t line;
    uint32_t stage; /* index in the log's table of stages */
    uint32_t task;
    bool dropped, taken;
};

/* What counts no more since a task succeeded: what was made of what it made before. It
 * is written with the success, so that neither is known without the other. */
struct trp_done_drops {
    const struct trp_print *ids;
    uint32_t nids;
    const char *const *stages; /* all records of these */
    uint32_t nstages;
};

typedef struct trp_done_log trp_done_log;

/* Opens the log of a run for appending, made when it is not there. `read`: also reads
 * what it holds. TRP_ESYSTEM. */
int trp_done_log_open(const char *run_dir, bool read, trp_done_log **ret,
                      trp_error *err);

/* The next record of `id` that counts and was not given out before (tasks with the same
 * item share an id, each has a record), or NULL. Valid until trp_done_log_forget. */
struct trp_done_record *trp_done_log_find(trp_done_log *l, struct trp_print id);
/* Records of the stage's tasks of which none was given out: those tasks are not among the
 * stage's any more. They count no more from now on; true: there were some. */
bool trp_done_log_drop_rest(trp_done_log *l, const char *stage);
/* What the stage left when it last ended; NULL: nothing is known of that. */
const struct trp_outputs *trp_done_log_stage_outputs(const trp_done_log *l,
                                                     const char *stage);
/* Calls `each` for the files of every record, also of those that count no more; `task`
 * TRP_NONE: of the stage as a whole. */
typedef void trp_done_file(void *context, const char *stage, uint32_t task,
                           const struct trp_outputs *files);
void trp_done_log_each(const trp_done_log *l, trp_done_file *each, void *context);
/* What the last attempt of the task left that failed before this start; NULL: nothing is known
 * of that. Stays until the log is closed. */
const struct trp_outputs *trp_done_log_left_by(const trp_done_log *l,
                                               struct trp_print id);
/* What the stage was when it began last; NULL: nothing is known of that. */
const struct trp_print_parts *trp_done_log_parts(const trp_done_log *l,
                                                 const char *stage);
/* Whether any record of the stage counts. */
bool trp_done_log_has_stage(const trp_done_log *l, const char *stage);
/* Attempts of stages that were begun here before, by their highest number; 0 when all
 * stages ran once. Known after trp_done_log_forget, too. */
uint32_t trp_done_log_attempts(const trp_done_log *l);
/* Frees what was read. */
void trp_done_log_forget(trp_done_log *l);

/* How long lines are kept for a disk that is full; 0, as it begins: not at all. */
void trp_done_log_wait(trp_done_log *l, int64_t ns);
/* Append. A failed write is kept and told by trp_done_log_close (the task was done all
 * the same) and trp_done_log_sync. A stage's name goes into JSON as it is: the
 * characters of names (contract.md) need no escape. */
void trp_done_log_task(trp_done_log *l, const char *stage, uint32_t task,
                       struct trp_print id, struct trp_print print,
                       struct trp_print inputs, const struct trp_outputs *outputs,
                       const struct trp_done_drops *drops);
/* What the files of that task contain, which was recorded before. */
void trp_done_log_sums(trp_done_log *l, uint32_t task, struct trp_print id,
                       struct trp_print inputs_sums, const struct trp_outputs *outputs);
void trp_done_log_left(trp_done_log *l, uint32_t task, struct trp_print id,
                       const struct trp_outputs *files);
void trp_done_log_is(trp_done_log *l, const char *stage,
                     const struct trp_print_parts *parts);
void trp_done_log_stage(trp_done_log *l, const char *stage,
                        const struct trp_outputs *outputs);
void trp_done_log_attempt(trp_done_log *l, uint32_t attempt);
void trp_done_log_again(trp_done_log *l, const char *stage, struct trp_print id);
void trp_done_log_drop_task(trp_done_log *l, struct trp_print id);
void trp_done_log_drop_stage(trp_done_log *l, const char *stage);
/* Everything written so far is on disk when it returns; TRP_ESYSTEM when something
 * could not be written. */
int trp_done_log_sync(trp_done_log *l, trp_error *err);

/* Syncs and frees. TRP_ESYSTEM when something could not be written since the log was
 * opened. */
int trp_done_log_close(trp_done_log *l, trp_error *err);

#endif
