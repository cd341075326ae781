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
#include "os/output_pattern.h"

/* A 128-bit hash. */
struct trp_print {
    uint64_t high, low;
};

struct trp_print trp_print_of(const void *data, size_t n);

struct trp_output {
    char *path;           /* as its pattern spells it */
    int64_t size;         /* -1: a folder, which has to be there, no more */
    int64_t mtime_ns;     /* 0 for a folder */
    struct trp_print sum; /* of the contents; 0: not known */
};

/* Zero-initialise. */
struct trp_outputs {
    struct trp_output *v;
    uint32_t n, capacity;
};

/* Appends an entry and owns its path from then on; TRP_ENOMEM. */
int trp_outputs_append(struct trp_outputs *o, const struct trp_output *take_one);
/* Appends a file, of which nothing is known but its path, as it is; one that is not there
 * is left out. TRP_ENOMEM. */
int trp_outputs_add(struct trp_outputs *o, const char *base, const char *path,
                    bool follow);
/* Appends what there is of all that matches `pattern` below `base`: of a link itself, or
 * with `follow` of what it leads to. What vanishes meanwhile is left out. The codes of
 * trp_glob. */
int trp_outputs_match(struct trp_outputs *o, const char *base, const char *pattern,
                      bool follow, trp_error *err);
void trp_outputs_free(struct trp_outputs *o);
/* The first that is not there any more as it was; NULL: all are. With `contents`, size and
 * contents count, and the time only of those whose sum is not known. */
const char *trp_outputs_changed(const struct trp_outputs *o, const char *base,
                                bool contents);
/* Whether there is anything of that name, be it a link that leads nowhere. */
bool trp_output_is_there(const char *path, const char *base);

/* Reads the file, or the one that a link leads to, and sets its sum; another kind of file
 * has none. False: it cannot be read, has not the size and time that it had when it was
 * recorded (`as_recorded`), or *stop, which may be NULL, became true: the sum is 0 then. */
bool trp_output_sum(struct trp_output *o, const char *base, bool follow,
                    bool as_recorded, const atomic_bool *stop);

#endif
