/*
 * The files of the tasks that run: what was there before their attempts and what a failed
 * attempt has left, so that nothing else is removed before the next one.
 *
 *     trp_task_files_begin(f, &task, &patterns, left_before, again, &leftovers);
 *     …                                                   // the attempt runs
 *     left = trp_task_files_end(f, stage, task, TRP_ATTEMPT_FAILED);
 *     …                                                   // begin removes what `left` lists
 *     trp_task_files_close(f, stage, TRP_NONE);           // the stage is over
 *
 * A file goes only if it was not there before any attempt of the task in this start, was there
 * when the last one had failed, and is what it was then; is recorded for no other task or
 * stage; and cannot be the work of another one that runs now, whose patterns it matches. A
 * pattern without a wildcard that names a file and no folder is its task's alone. What a task that
 * was given up has left counts as its work, too.
 */
#ifndef TRP_DRIVER_TASK_FILES_H
#define TRP_DRIVER_TASK_FILES_H

#include <stdbool.h>

#include "conf/pipeline.h"
#include "driver/leftovers.h"
#include "os/strings.h"

typedef struct trp_task_files trp_task_files;

enum trp_attempt_fate {
    TRP_ATTEMPT_FAILED,
    TRP_ATTEMPT_UNSTARTED, /* nothing of it has run */
    TRP_ATTEMPT_SUCCEEDED,
};

/* Stages are those of the pipeline. All borrowed. NULL: out of memory. */
trp_task_files *trp_task_files_new(const trp_pipeline *p, const char *base,
                                   const char *run_dir);
void trp_task_files_free(trp_task_files *f);

/* What a task has made, or (task TRP_NONE) a stage; of a stage that there is not, the files
 * are somebody's all the same. As trp_done_log_each calls it. */
void trp_task_files_record(void *f, const char *stage, uint32_t task,
                           const struct trp_outputs *files);

/* Whether the file is recorded as made by that task alone, or by its stage, and no other task
 * or stage that runs may have made it. */
bool trp_task_files_is_of(const trp_task_files *f, uint32_t stage, uint32_t task,
                          const char *path);

/* An attempt of the task begins; of a stage as a whole (TRP_NONE) once, when it begins.
 * `take_patterns` are emptied. Unless another one of the task runs, what is to go goes: what
 * the last one left, or `left`, of an earlier start (NULL: nothing). With `again`, what is
 * there all the same is told in `ret`. Out of memory: nothing is removed any more. */
void trp_task_files_begin(trp_task_files *f, uint32_t stage, uint32_t task,
                          struct trp_strings *take_patterns,
                          const struct trp_outputs *left, bool again,
                          struct trp_leftovers *ret);
/* It has ended. What is to go before the next one, until the next call; NULL: nothing. */
const struct trp_outputs *trp_task_files_end(trp_task_files *f, uint32_t stage,
                                             uint32_t task, enum trp_attempt_fate fate);
void trp_task_files_close(trp_task_files *f, uint32_t stage, uint32_t task);

#endif
