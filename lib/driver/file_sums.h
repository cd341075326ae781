/*
 * Contents of the files that tasks read and made, for `resume.check=contents`: a thread
 * reads them while the run goes on and adds their sums to the log of what is done. Until
 * then, and where it cannot be told which bytes were there when the task ended, a record
 * has none, and size and time count.
 *
 *     trp_file_sums_open(cwd, log, &sums, &err);
 *     trp_file_sums_task(sums, 3, id, &outputs, &inputs);    // as they were recorded
 *     while (trp_file_sums_left(sums)) …
 *     trp_file_sums_close(sums);
 *
 * Threads: all calls from one.
 */
#ifndef TRP_DRIVER_FILE_SUMS_H
#define TRP_DRIVER_FILE_SUMS_H

#include <stdint.h>

#include "driver/done_log.h"

typedef struct trp_file_sums trp_file_sums;

/* `base` is where relative paths begin. Both are borrowed. TRP_ENOMEM, TRP_ESYSTEM. */
int trp_file_sums_open(const char *base, trp_done_log *log, trp_file_sums **ret,
                       trp_error *err);
/* Takes over the lists, which are empty afterwards. */
void trp_file_sums_task(trp_file_sums *s, uint32_t task, struct trp_print id,
                        struct trp_outputs *take_outputs,
                        struct trp_outputs *take_inputs);
void trp_file_sums_stage(trp_file_sums *s, const char *stage,
                         struct trp_outputs *take_outputs);
/* Tasks and stages whose files are not read yet. */
uint32_t trp_file_sums_left(trp_file_sums *s);
/* Ends it at once: what is left has no sums. NULL is let be. */
void trp_file_sums_close(trp_file_sums *s);

/* What the files contain, by their sums; 0 when that of one is not known. A folder counts
 * by its path. */
struct trp_print trp_file_sums_of(const struct trp_outputs *files);

#endif
