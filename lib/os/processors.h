/*
 * What this process may use of the machine: logical processors, neighbours together, and
 * memory. `root` is put in front of /proc and /sys; it is "" but in tests.
 */
#ifndef TRP_OS_PROCESSORS_H
#define TRP_OS_PROCESSORS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Logical processors are told by the kernel's numbers. What several of them share (a
 * core, the largest cache, a socket) has the lowest number of these; a NUMA node has its
 * own. What the kernel does not tell is 0. */
struct trp_processor {
    uint32_t number, core, cache, socket, node;
};

/* Those of `allowed`, which has `size` bytes, in the order of socket, node, cache, core,
 * number. *ret_list is malloc'ed. False: out of memory. */
bool trp_processors_list(const char *root, const cpu_set_t *allowed, size_t size,
                         struct trp_processor **ret_list, uint32_t *ret_n);

/* Those that this process may run on, the same way. False: errno. */
bool trp_processors_own(struct trp_processor **ret_list, uint32_t *ret_n);

/* The first one's name in /proc/cpuinfo; "" when there is none. */
void trp_processors_model(const char *root, char *buf, size_t size);

/* The memory of the NUMA nodes that this process may use, when there are others; 0:
 * there are none, or it is not known. */
int64_t trp_processors_memory_mib(const char *root);

#endif
