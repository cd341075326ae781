/*
 * What /proc tells of a process.
 */
#ifndef TRP_OS_PROCESS_H
#define TRP_OS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct trp_process {
    pid_t pid, parent, group, session;
    char state; /* as in stat: 'T' stopped, 'Z' and 'X' dead */
    uint64_t minor_faults;
    int64_t rss_pages;
};

/* False: there is none, or /proc says nothing of it. */
bool trp_process_read(pid_t pid, struct trp_process *ret);

/* Of one of its threads. */
bool trp_process_read_thread(pid_t pid, pid_t thread, struct trp_process *ret);

/* All, in ascending order; how many, or -1. Free the array. */
int trp_process_list(struct trp_process **ret);

static inline bool trp_process_is_dead(const struct trp_process *p)
{
    return p->state == 'Z' || p->state == 'X';
}

#endif
