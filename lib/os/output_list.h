/*
 * Files as they are: what matches a pattern (os/glob.h) or has a name, and of a folder what
 * is in it, at any depth. Links are followed, or looked at themselves: then one that leads
 * nowhere counts, and one that leads to a folder is no folder.
 *
 *     struct trp_outputs o = {0};
 *     trp_outputs_match(&o, base, "res/x.*", true, &err);
 *     trp_outputs_free(&o);
 */
#ifndef TRP_OS_OUTPUT_LIST_H
#define TRP_OS_OUTPUT_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

/* What is in a folder with more entries is not looked at. */
enum { TRP_FOLDER_ENTRIES = 10000 };

/* A 128-bit hash. */
struct trp_print {
    uint64_t high, low;
};

struct trp_output {
    char *path;           /* as its pattern spells it */
    int64_t size;         /* -1: a folder, which has to be there, no more */
    int64_t mtime_ns;     /* 0 for a folder */
    uint64_t ino;         /* of file and link, and when they last changed: */
    int64_t ctime_ns;     /* what was not changed since has the same two */
    struct trp_print sum; /* of the contents; 0: not known */
    bool temp;            /* it goes when what comes after it has succeeded */
    bool stale;           /* and somebody has begun to make it again since */
};

/* Zero-initialise. */
struct trp_outputs {
    struct trp_output *v;
    uint32_t n, capacity;
    const char *large; /* the first folder that has too many entries; NULL: none */
};

/* Appends an entry and owns its path from then on; TRP_ENOMEM. */
int trp_outputs_append(struct trp_outputs *o, const struct trp_output *take_one);
/* Appends the file `path`, with what is in it. One that is not there, or is a link to
 * nothing that is followed, is left out. TRP_ENOMEM. */
int trp_outputs_add(struct trp_outputs *o, const char *base, const char *path,
                    bool follow);
/* Appends all that matches `pattern` below `base`, as trp_outputs_add. The codes of
 * trp_glob. */
int trp_outputs_match(struct trp_outputs *o, const char *base, const char *pattern,
                      bool follow, trp_error *err);
void trp_outputs_free(struct trp_outputs *o);

/* What is known of one file without its contents; false: it is not there. The path is
 * left alone. */
bool trp_output_measure(const char *base, const char *path, bool follow,
                        struct trp_output *ret);
/* The same of a name in an open folder; a link is looked at itself. */
bool trp_output_measure_at(int folder, const char *name, struct trp_output *ret);
/* Whether the file was not changed between two looks at it. */
bool trp_output_is_same(const struct trp_output *a, const struct trp_output *b);
/* In the order of their paths, for trp_outputs_find. */
void trp_outputs_sort(struct trp_outputs *o);
/* NULL: there is none of that path. */
const struct trp_output *trp_outputs_find(const struct trp_outputs *o,
                                          const char *path);

#endif
