/*
 * A growing list of strings that it owns, and the few other things that all who build
 * argument lists, environments and file lists need.
 *
 *     struct trp_strings v = {0};
 *     if (trp_strings_add(&v, "a") < 0) …
 *     trp_strings_free(&v);
 */
#ifndef TRP_OS_STRINGS_H
#define TRP_OS_STRINGS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/error.h"

struct trp_strings {
    char **v;
    uint32_t n, capacity;
};

/* Appends a copy; TRP_ENOMEM. */
int trp_strings_add(struct trp_strings *s, const char *text);
/* Appends a malloc'ed string and owns it from now on, also when it fails; `text` NULL
 * counts as out of memory, so that the result of strdup can be passed as it is. */
int trp_strings_take(struct trp_strings *s, char *take_text);
/* Appends what a format makes. */
int trp_strings_format(struct trp_strings *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void trp_strings_free(struct trp_strings *s);

/* base + "/" + path, or a copy of `path` when it is absolute or `base` is NULL or "".
 * malloc'ed; NULL: out of memory. */
char *trp_path_join(const char *base, const char *path);

/* The same without parts that say nothing: of "./a//b/../c" BASE/a/c. Links are not asked. */
char *trp_path_plain(const char *base, const char *path);

/* Prints a word as a shell has to be given it. */
void trp_shell_word_print(const char *word, FILE *out);

#endif
