/*
 * Argument lists and environments being made.
 *
 *     struct trp_argv a = {0};
 *     trp_argv_add(&a, "srun");
 *     trp_argv_add(&a, "--jobid=%u", job);
 *     char **argv = trp_argv_done(&a);
 *     … execvp(argv[0], argv) …
 *     trp_argv_free(argv);
 *
 * What cannot be added for want of memory is told once, at the end.
 */
#ifndef TRP_OS_ARGV_H
#define TRP_OS_ARGV_H

#include <stdbool.h>
#include <stdint.h>

struct trp_argv {
    char **v;
    uint32_t n, cap;
    bool failed;
};

void trp_argv_add(struct trp_argv *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* All that was added and a NULL, for trp_argv_free; NULL: out of memory. */
char **trp_argv_done(struct trp_argv *a);
void trp_argv_free(char **argv); /* NULL: nothing */

#endif
