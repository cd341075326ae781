/*
 * Scratch folders: made private, handed out empty; removed as trees are
 * (os/tree.h).
 */
#ifndef TRP_EXECUTOR_SCRATCH_H
#define TRP_EXECUTOR_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "core/base/error.h"

/* Makes `path` and what is missing above it, 0700; 1 when the last part was made, 0
 * when it was there. */
int trp_folder_make(const char *path, trp_error *err);

/* A scratch folder that is handed out again and again; zero-initialise. */
struct trp_scratch {
    bool there;        /* it exists and is empty as far as we know */
    bool trusted;      /* it was old enough for its times to tell everything */
    struct stat state; /* as it was handed out */
};

/* Hands it out: an empty folder `name` in `at`, 0700. TRP_ESYSTEM with errno. */
int trp_scratch_take(struct trp_scratch *s, int at, const char *name);

/* Takes it back. False: it was touched, so it is no longer `there` and must be removed.
 */
bool trp_scratch_give(struct trp_scratch *s, int at, const char *name);

#endif
