/*
 * Which files match a pattern: glob(7) (`*`, `?`, `[…]`, `\` before a character that is
 * meant as itself) and `**`, a part of a path that stands for any number of folders,
 * none included. At the end of a pattern `**` stands for every file below, at any
 * depth.
 *
 * Hidden names match only a part that begins with a dot. `**` does not go through
 * symbolic links, the other parts do. A pattern without special characters matches the
 * file of that name if there is one.
 *
 *     char **files;
 *     size_t n;
 *     if (trp_glob("/data", "in/x*.txt", &files, &n, &err) < 0) …
 *     trp_glob_free(files, n);
 */
#ifndef TRP_OS_GLOB_H
#define TRP_OS_GLOB_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"

enum {
    TRP_GLOB_RESULTS = 10000000, /* files one pattern may match */
    TRP_GLOB_DEPTH = 256,        /* folders below the first special part */
    TRP_GLOB_PARTS = 64,         /* parts from the first special one on */
};

/* What matches `pattern`, a relative one below `base` (NULL or "": the working folder).
 * The files are spelled as the pattern spells them (relative stays relative), sorted
 * bytewise, none twice. No match is not an error: *ret_n is 0. TRP_ELIMIT beyond a
 * limit above; TRP_ESYSTEM when a folder cannot be read, so that no input goes missing
 * in silence. */
int trp_glob(const char *base, const char *pattern, char ***ret, size_t *ret_n,
             trp_error *err);
void trp_glob_free(char **v, size_t n);
/* Whether anything matches, a link that leads nowhere aside. What cannot be read counts as
 * nothing. */
bool trp_glob_any(const char *base, const char *pattern);

/* The one name that a pattern without special characters matches, malloc'ed; NULL: it has some
 * (or there is no memory). */
char *trp_glob_literal(const char *pattern);

/* Whether some path matches both. Sets of characters count as any character, `**` in the
 * midst of a part as a run over any number of folders. */
bool trp_glob_overlap(const char *a, const char *b);

/* `text` as a pattern that matches nothing but itself (a backslash before each special
 * character). malloc'ed; NULL: out of memory. */
char *trp_glob_escape(const char *text);

#endif
