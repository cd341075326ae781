/*
 * What a failed attempt left of its task's outputs is removed before the next one: files that
 * are listed, as long as they are what they were when it ended and lie, by their real path,
 * below the working folder. What stays is told; the retry runs all the same.
 *
 * Files that are temp go by the same rules, as they were recorded, and those that are protected
 * are made read-only.
 */
#ifndef TRP_DRIVER_LEFTOVERS_H
#define TRP_DRIVER_LEFTOVERS_H

#include <stdbool.h>
#include <stdint.h>

#include "os/output_list.h"

struct trp_leftovers {
    const char *base;    /* the working folder, absolute; paths begin there */
    const char *run_dir; /* the run's folder, absolute: what is in it stays */
    bool recorded;       /* of the files size and time alone are known, of what links
                          * lead to; a link itself goes */
    /* ---- filled in */
    uint32_t removed; /* files, folders not */
    uint32_t stay;    /* how many files and folders stay */
    char first[1024]; /* the first of them, as its pattern spells it … */
    char why[160];    /* … and why: "it has changed since" */
};

/* Removes the files, which were looked at without following links, and the folders that are
 * empty then; what is in a folder comes behind it in the list. */
void trp_leftovers_remove(struct trp_leftovers *l, const struct trp_outputs *files);
/* One that stays: the words of its place if they say why, else `why`. */
void trp_leftovers_stays(struct trp_leftovers *l, const char *path, const char *why);

/* Takes the right to write from everybody, or gives the owner's back. What is no file, a link
 * among them, and what could not be removed for its place is let be. */
void trp_leftovers_set_writable(const struct trp_leftovers *l, const char *path,
                                bool writable);

#endif
