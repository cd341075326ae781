/*
 * What a failed attempt left of its task's outputs is removed before the next one. Only
 * what this run has made may go: it lies, by its real path, below the working folder,
 * and its ctime is not before the run's first start. What stays is told; the retry runs
 * all the same.
 */
#ifndef TRP_DRIVER_LEFTOVERS_H
#define TRP_DRIVER_LEFTOVERS_H

#include <stdint.h>

struct trp_leftovers {
    const char *base;    /* the working folder, absolute; patterns begin there */
    const char *run_dir; /* the run's folder, absolute */
    int64_t since_ns;    /* the run's first start, by the clock of its file system */
    /* ---- filled in */
    uint32_t stay;    /* how many files and folders stay that matched, or lie below */
    char first[1024]; /* the first of them, as its pattern spells it … */
    char why[160];    /* … and why: "it is older than the run" */
};

/* Removes what matches `pattern`, folders with all that is in them; whatever stays is
 * added to `l`. Never removed, nor told of, is `keep` (the task's own item; NULL:
 * none). `base`, `run_dir` and what holds one of them stay. Nothing is followed: a link
 * that matches goes itself. */
void trp_leftovers_remove(struct trp_leftovers *l, const char *pattern,
                          const char *keep);

#endif
