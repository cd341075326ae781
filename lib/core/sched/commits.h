/*
 * Who may write the output of a task: one attempt.
 */
#ifndef TRP_CORE_SCHED_COMMITS_H
#define TRP_CORE_SCHED_COMMITS_H

#include "core/engine_state.h"

/* An attempt asks, in `slot`. Its answer is a TRP_ACTION_SYNCED. */
void trp_commit_asked(struct trp_engine *e, uint32_t slot, uint32_t epoch);
/* An attempt of a stage that commits ended so. */
void trp_commit_ended(struct trp_stage *s, uint32_t task, trp_attempt_id attempt,
                      enum trp_end_status status);
/* All tasks run again: what was written counts no more. */
void trp_commits_undo(struct trp_stage *s);

#endif
