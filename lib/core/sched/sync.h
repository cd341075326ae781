/*
 * Barriers: tasks that wait for each other.
 */
#ifndef TRP_CORE_SCHED_SYNC_H
#define TRP_CORE_SCHED_SYNC_H

#include "core/engine_state.h"

void trp_sync_called(struct trp_engine *e, const struct trp_event *ev);
/* A barrier set launches nothing more: nobody of it waits any longer. */
void trp_sync_set_over(struct trp_engine *e, const struct trp_task_set *s);
int64_t trp_sync_due(const struct trp_engine *e);
void trp_sync_time(struct trp_engine *e); /* timers that are due */

#endif
