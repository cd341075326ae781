/*
 * Control groups, as far as a machine's room needs them: the limits that hold for this
 * process, and a memory group for each executor where one can be made.
 *
 * Both hierarchies are known: v1 (a mount a controller) and v2 (one mount). `root` is
 * put in front of /proc and of the mount points; it is "" but in tests.
 */
#ifndef TRP_OS_CGROUP_H
#define TRP_OS_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

enum { TRP_CGROUP_PATH = 512 };

struct trp_cgroup_limits {
    double cpus;        /* CPU time a second; 0: no limit */
    int64_t memory_mib; /* 0: no limit */
};

/* The strongest limits on the way from the root of the hierarchy to this process. */
void trp_cgroup_limits(const char *root, struct trp_cgroup_limits *ret);

/* The memory group that this process is in, and the strongest memory limit on the way
 * to it (0: none). `ret_path` has TRP_CGROUP_PATH bytes. False: there is none. */
bool trp_cgroup_own_memory(const char *root, char *ret_path, bool *ret_v2,
                           int64_t *ret_limit_mib);

/* Where memory groups of executors can be made. */
struct trp_cgroup_memory {
    bool usable;
    bool v2;
    char parent[TRP_CGROUP_PATH]; /* folder they are made in */
};

/* In a run's private folder: a link to the folder that its groups are made in. */
#define TRP_CGROUP_LINK ".groups"

/* Looks for a place and tries it: makes a group PREFIX<digits>, of a number that no
 * executor has, lets a child join it, removes it. Before that it makes TRP_CGROUP_LINK
 * in `folder` (NULL: it does not). Not usable (no controller, no permission) is no
 * error. */
void trp_cgroup_memory_open(const char *root, const char *prefix, const char *folder,
                            struct trp_cgroup_memory *ret);

/* Makes PARENT/NAME with a limit. `ret_path` has TRP_CGROUP_PATH bytes. False: it cannot
 * be made, and nothing is left behind. */
bool trp_cgroup_memory_make(const struct trp_cgroup_memory *m, const char *name,
                            int64_t limit_mib, char *ret_path);

/* How many processes of the group the kernel has killed for memory. */
uint64_t trp_cgroup_oom_kills(const char *path, bool v2);

/* The most memory that the group has ever had in use, MiB; 0: not known. */
int64_t trp_cgroup_peak_mib(const char *path, bool v2);

/* The next three are about the group with those in it, one level down. */

/* Kills who is still in the group. Returns how many there were. */
int trp_cgroup_kill(const char *path);

/* Nobody is in it (or it is not there). */
bool trp_cgroup_is_empty(const char *path);

/* Removes the group; false while somebody is in it. One that is not there: true. */
bool trp_cgroup_remove(const char *path);

/* Removes every group PREFIX<digits> in any place where trp_cgroup_memory_open would
 * have made one: what a run leaves whose driver was killed. `kill`: with who is in it;
 * else only those that are empty. False: one is left. */
bool trp_cgroup_memory_sweep(const char *root, const char *prefix, bool kill);
/* The same in one folder: a link led there from another control group. */
bool trp_cgroup_memory_sweep_in(const char *parent, const char *prefix, bool kill);

#endif
