/*
 * What has hwloc leave devices alone, in the environment of who only wants to know cores
 * and memory. Else each process of Open MPI 4.1 looks at PCI, disks and, with hwloc's
 * plugins, X11 and OpenCL: 30 of the 40 ms that it takes to look at a machine.
 *
 * What a user has set is left as it is. One thread at a time: the environment is the
 * process's.
 */
#ifndef TRP_OS_QUICK_HWLOC_H
#define TRP_OS_QUICK_HWLOC_H

#include <stdbool.h>

enum { TRP_QUICK_HWLOC = 2 };

/* Names and values. */
extern const char *const trp_quick_hwloc[TRP_QUICK_HWLOC][2];

/* Stands beside them in an environment that they were put into, for a process that is to
 * forget them when it has started. */
#define TRP_QUICK_HWLOC_MARK "TROUPE_QUICK_HWLOC"

/* Takes them out of this process's environment, where they stand with the mark, so that
 * what it starts looks at devices again. */
void trp_quick_hwloc_forget(void);

/* Puts them into this process's environment, until trp_quick_hwloc_end with the same
 * `ours`, which says of each whether it was put there. */
void trp_quick_hwloc_begin(bool ours[TRP_QUICK_HWLOC]);
void trp_quick_hwloc_end(const bool ours[TRP_QUICK_HWLOC]);

#endif
