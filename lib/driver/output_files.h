/*
 * What matched the `outputs` of a stage (os/output_pattern.h) when a task succeeded, or the
 * stage ended, is recorded with size and modification time; `--resume` asks whether that is
 * still so.
 */
#ifndef TRP_DRIVER_OUTPUT_FILES_H
#define TRP_DRIVER_OUTPUT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/pipeline.h"
#include "core/base/error.h"
#include "os/output_pattern.h"

struct trp_output {
    char *path;       /* as its pattern spells it */
    int64_t size;     /* -1: a folder, which has to be there, no more */
    int64_t mtime_ns; /* 0 for a folder */
};

/* Zero-initialise. */
struct trp_outputs {
    struct trp_output *v;
    uint32_t n, capacity;
};

/* Appends an entry and owns its path from then on; TRP_ENOMEM. */
int trp_outputs_append(struct trp_outputs *o, const struct trp_output *take_one);
/* Appends what lstat says of all that matches `pattern` below `base`. What vanishes
 * meanwhile is left out. The codes of trp_glob. */
int trp_outputs_match(struct trp_outputs *o, const char *base, const char *pattern,
                      trp_error *err);
void trp_outputs_free(struct trp_outputs *o);
/* The first that is not there any more as it was; NULL: all are. */
const char *trp_outputs_changed(const struct trp_outputs *o, const char *base);

#endif
