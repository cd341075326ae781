/*
 * Files of a run that are temp: held until all that needs them (temp_users.h) is done, then
 * removed by a thread of their own.
 *
 *     trp_temp_files_new(p, &users, cwd, run_dir, files, &t, &err);
 *     trp_temp_files_hold(t, stage, 3, &outputs);       // as they were recorded
 *     trp_temp_files_done(t, below, 3);                 // its task is done
 *     trp_temp_files_done(t, below, TRP_NONE);          // all of it is
 *     while (trp_temp_files_left(t)) …
 *     trp_temp_files_stop(t);                           // what is left then stays
 *     trp_temp_files_text(t, buf, sizeof buf);
 *     trp_temp_files_free(t);
 *
 * What goes is recorded as made by that task, or that stage, alone; is as it was recorded; and
 * lies, by its real path, below the working folder. A link goes, not what it leads to.
 *
 * That a file has gone is written nowhere: --resume does not miss one that is temp, whoever
 * removed it, as long as what needs it is done.
 *
 * Threads: all calls from one.
 */
#ifndef TRP_DRIVER_TEMP_FILES_H
#define TRP_DRIVER_TEMP_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/pipeline.h"
#include "driver/task_files.h"
#include "driver/temp_users.h"

typedef struct trp_temp_files trp_temp_files;

/* `files` says who has made what. All borrowed. NULL in *ret: no stage has such files, and
 * all calls let NULL be. TRP_ENOMEM, TRP_ESYSTEM. */
int trp_temp_files_new(const trp_pipeline *p, const struct trp_temp_users *users,
                       const char *base, const char *run_dir,
                       const trp_task_files *files, trp_temp_files **ret,
                       trp_error *err);
void trp_temp_files_free(trp_temp_files *t);

/* Holds those of the files that are temp; `task` TRP_NONE: of the stage as a whole. */
void trp_temp_files_hold(trp_temp_files *t, uint32_t stage, uint32_t task,
                         const struct trp_outputs *files);
void trp_temp_files_done(trp_temp_files *t, uint32_t stage, uint32_t task);
/* Files that are to go and are there still. */
uint32_t trp_temp_files_left(trp_temp_files *t);
void trp_temp_files_stop(trp_temp_files *t);
/* After the stop: how many files of a stage were removed. */
uint32_t trp_temp_files_removed(const trp_temp_files *t, uint32_t stage);
/* After the stop: "3 temp files were removed; t/x stays: it has changed since"; false: nothing
 * was, and nothing stays that was to go. */
bool trp_temp_files_text(const trp_temp_files *t, char *buf, size_t size);

#endif
