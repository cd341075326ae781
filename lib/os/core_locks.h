/*
 * The cores of this machine that the runs of one user share: which of them other runs
 * have, and who of those that wait is the next. It is a file of locks, in which nothing
 * is written: a byte is a core (its number), and behind them a byte is a moment, the
 * *place* in the queue of who began to wait then.
 *
 *     if (trp_core_locks_open(&l) && !trp_core_locks_others_first(&l))
 *         took = trp_core_locks_take(&l, cpus, 2);
 *     …
 *     trp_core_locks_give(&l, cpus, 2);
 *
 * A lock goes with the descriptor: nothing is left of a process that was killed. They
 * are advice: only who asks here heeds them.
 */
#ifndef TRP_OS_CORE_LOCKS_H
#define TRP_OS_CORE_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trp_core_locks {
    int fd;        /* -1: takes no part */
    int64_t place; /* in the queue; 0: none */
};

/* The file is "troupe-cores" in $XDG_RUNTIME_DIR, where that is set; else in
 * /run/user/UID, where there is one; else "/tmp/troupe-cores-UID". False, with an fd of
 * -1: the folder, or the file, is not this user's alone. */
bool trp_core_locks_open(struct trp_core_locks *ret);
void trp_core_locks_close(struct trp_core_locks *l);

/* All of these cores, or none of them. */
bool trp_core_locks_take(struct trp_core_locks *l, const uint32_t *cpus, uint32_t n);
void trp_core_locks_give(struct trp_core_locks *l, const uint32_t *cpus, uint32_t n);
/* Marks those of the cores that others have. Returns how many. */
uint32_t trp_core_locks_look(const struct trp_core_locks *l, const uint32_t *cpus,
                             uint32_t n, bool *ret_others);

/* The runs that take part here, but for this process: "A, B, …", by the titles of their
 * drivers (driver.c). The kernel does not say whose a lock is. Returns buf. */
char *trp_core_locks_runs(const struct trp_core_locks *l, char *buf, size_t size);

/* Waits from now on, behind all who do; or no more. */
void trp_core_locks_wait(struct trp_core_locks *l);
void trp_core_locks_wait_no_more(struct trp_core_locks *l);
/* Others wait: before this one, if it waits too. */
bool trp_core_locks_others_first(const struct trp_core_locks *l);

#endif
