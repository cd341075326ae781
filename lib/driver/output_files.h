/*
 * Files that a run has made, and read. What matched the `outputs` of a stage
 * (os/output_pattern.h) when a task succeeded, or the stage ended, is recorded with size and
 * modification time, and with a hash of the contents where that is wanted (file_sums.h);
 * `--resume` asks whether that is still so.
 */
#ifndef TRP_DRIVER_OUTPUT_FILES_H
#define TRP_DRIVER_OUTPUT_FILES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/pipeline.h"
#include "core/base/error.h"
#include "os/output_list.h"
#include "os/output_pattern.h"

struct trp_print trp_print_of(const void *data, size_t n);

/* The first that is not there any more as it was; NULL: all are. With `contents`, size and
 * contents count, and the time only of those whose sum is not known. One that is temp may
 * be gone. */
const char *trp_outputs_changed(const struct trp_outputs *o, const char *base,
                                bool contents);
/* How many are temp and not there as they were made, and the first of them. */
uint32_t trp_outputs_gone(const struct trp_outputs *o, const char *base,
                          const char **ret_first);
/* Whether there is a file of that name. A link that leads nowhere is none. */
bool trp_output_is_there(const char *path, const char *base);

/* Reads the file, or the one that a link leads to, and sets its sum; another kind of file
 * has none. False: it cannot be read, has not the size and time that it had when it was
 * recorded (`as_recorded`), or *stop, which may be NULL, became true: the sum is 0 then. */
bool trp_output_sum(struct trp_output *o, const char *base, bool as_recorded,
                    const atomic_bool *stop);

#endif
