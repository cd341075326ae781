/*
 * A program of Slurm's, started without a shell, with pipes for stdin, stdout, stderr.
 */
#ifndef TRP_LAUNCHER_PIPED_H
#define TRP_LAUNCHER_PIPED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* argv[0] is looked for in PATH; `env` NULL: ours. Our ends of its descriptors 0, 1 and
 * 2 in `ret_ends`; a failure, told as an errno, leaves -1 there. */
int trp_piped_spawn(char *const *argv, char *const *env, int ret_ends[3],
                    pid_t *ret_pid);
/* All that one said, to be freed, and how it ended. */
struct trp_piped_said {
    char *out, *err;
    int status; /* 128 + N for signal N */
    bool late;  /* it was killed, since the time was up */
};
/* Hears one that was spawned to its end, for at most `limit_ms` (-1: as long as it takes),
 * with nothing more on stdin; closes the ends. ENOMEM leaves nothing to free. */
int trp_piped_hear(int ends[3], pid_t pid, int limit_ms, struct trp_piped_said *ret);
/* The same of one that it spawns. A failure, told as an errno, leaves nothing to free. */
int trp_piped_run(char *const *argv, int limit_ms, struct trp_piped_said *ret);
void trp_piped_said_free(struct trp_piped_said *s);
/* Waits for it: its exit status, 128 + N for signal N. */
int trp_piped_wait(pid_t pid);
/* What it said on stderr, cut up, in one line: without "PROGRAM: error: " in front of
 * each, "; " between them. */
void trp_piped_words(const char *program, char *said, char *ret_text, size_t size);
/* Closes an end once. */
void trp_piped_close(int *end);

#endif
