/*
 * Speculation: copies of slow tasks.
 */
#ifndef TRP_CORE_SCHED_COPIES_H
#define TRP_CORE_SCHED_COPIES_H

#include "core/engine_state.h"

/* The check for slow tasks, over all sets. */
void trp_copies_check(struct trp_engine *e);
void trp_copies_time(struct trp_engine *e);
void trp_copies_start(struct trp_engine *e); /* a set was submitted: look again */
/* The task does not need its copy any more. */
void trp_copy_unmark(struct trp_engine *e, struct trp_task_set *s, uint32_t task);
/* Notes where an attempt ended. */
void trp_copies_past(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                     uint32_t host);
bool trp_copies_ran_on(const struct trp_engine *e, const struct trp_task_set *s,
                       uint32_t task, uint32_t host);
/* Hosts on which none of the copies that wait in the class could run, since their tasks
 * ran there; at most TRP_COPY_HOSTS of them. Returns how many. */
enum { TRP_COPY_HOSTS = 8 };
uint32_t trp_copies_useless_hosts(const struct trp_engine *e, const struct trp_class *c,
                                  uint32_t ret_hosts[TRP_COPY_HOSTS]);

#endif
