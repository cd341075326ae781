/*
 * The cores of this machine, which the runs of one user share: which of them other runs
 * hold, and which of the waiting runs is next. Both are locks on bytes of one file, in
 * which nothing is written. The low bytes are cores, by number. Each higher byte is a
 * time: a run that waits locks the byte of when it began, its *place* in the queue.
 *
 *     if (trp_core_locks_open(&l) && !trp_core_locks_others_first(&l))
 *         took = trp_core_locks_take(&l, cpus, 2);
 *     …
 *     trp_core_locks_give(&l, cpus, 2);
 *
 * The kernel drops a lock with its descriptor: a process that was killed leaves none.
 * The locks are advisory: only runs that ask here heed them.
 */
#ifndef TRP_OS_CORE_LOCKS_H
#define TRP_OS_CORE_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trp_core_locks {
    int fd;        /* -1: takes no part */
    int64_t place; /* in the queue; 0: none */
    bool taken;    /* there is something of another user's in the file's place */
};

/* The file is "troupe-cores" in $XDG_RUNTIME_DIR, where that is set; else in
 * /run/user/UID, where there is one; else "/tmp/troupe-cores-UID". False, with an fd of
 * -1: the folder, or the file (`taken`), is not this user's alone. */
bool trp_core_locks_open(struct trp_core_locks *ret);
void trp_core_locks_close(struct trp_core_locks *l);

/* All of these cores, or none of them. */
bool trp_core_locks_take(struct trp_core_locks *l, const uint32_t *cpus, uint32_t n);
void trp_core_locks_give(struct trp_core_locks *l, const uint32_t *cpus, uint32_t n);
/* Marks the cores that other runs hold. Returns how many. */
uint32_t trp_core_locks_look(const struct trp_core_locks *l, const uint32_t *cpus,
                             uint32_t n, bool *ret_others);

/* The runs that take part here, but for this process: "A, B, …", by the titles of their
 * drivers (driver.c). The kernel does not say whose a lock is. Returns buf. */
char *trp_core_locks_runs(const struct trp_core_locks *l, char *buf, size_t size);

/* Joins the end of the queue, or leaves the queue. Neither call blocks. */
void trp_core_locks_queue(struct trp_core_locks *l);
void trp_core_locks_unqueue(struct trp_core_locks *l);
/* Others wait; and began before this run did, if it waits too. */
bool trp_core_locks_others_first(const struct trp_core_locks *l);

#endif
