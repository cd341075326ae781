/*
 * What tasks printed, in RUN/logs/STAGE/ in either form:
 *
 *     TASK[.sN].ATTEMPT[.RANK].{out,err}   a file an attempt and stream
 *     stream.EXECUTOR.zst                  `task_logs: stage`: a zstd frame each, behind
 *                                          one another in the order of their ends
 *     names.tsv                            of tasks that have names: TASK<TAB>NAME
 *     stream.EXECUTOR.index                a line a frame, "NAME OFFSET BYTES SIZE": the
 *                                          name as of the file, where the frame begins,
 *                                          its bytes and those that were printed
 *
 * A line is written behind its frame, so what the index names is whole, also after a
 * crash; what ran then has its files still.
 */
#ifndef TRP_EVENTS_TASK_LOGS_H
#define TRP_EVENTS_TASK_LOGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/error.h"

#define TRP_TASK_LOG_NAMES "names.tsv"

struct trp_task_log {
    uint32_t task, stage_attempt, number;
    uint32_t rank; /* TRP_NONE: not of a gang */
    bool err;      /* of stderr */
    bool framed;   /* … in a stream: */
    char *path;
    uint64_t offset, bytes;
    uint64_t size; /* printed; of a file when it was found */
};

/* TASK[.sN][.ATTEMPT[.RANK]], and of a file its ending: what `text` does not say is
 * TRP_NONE in *ret. False: it is none. */
bool trp_task_log_address(const char *text, bool file, struct trp_task_log *ret);
/* The name of its file. */
void trp_task_log_name(const struct trp_task_log *l, char *buf, size_t size);

/* All in a stage's folder, by task, stage attempt, attempt, rank, stdout first. None when
 * there is no such folder. TRP_ESYSTEM, TRP_ENOMEM. Free with trp_task_logs_free. */
int trp_task_logs_find(const char *dir, struct trp_task_log **ret, uint32_t *ret_n,
                       trp_error *err);
void trp_task_logs_free(struct trp_task_log *v, uint32_t n);

/* Whether anything was printed to a file in `dir`, a run's folder "logs" or a stage's
 * below it, by tasks or by executors. */
bool trp_logs_any(const char *dir);

/* Copies it to `out` from byte `from` on; *ret_end, when not NULL, is where it ended. */
int trp_task_log_copy(const struct trp_task_log *l, uint64_t from, FILE *out,
                      uint64_t *ret_end, trp_error *err);

#endif
