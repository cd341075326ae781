/*
 * How many executors each profile should have, by Spark's series (semantics,
 * section 16, differences 6, 10 and 11): alloc.grow=ramp.
 *
 * Words. The *target* of a profile is the number of executors requested, in all. What
 * its tasks would use is its *demand*. While tasks wait there is a *backlog*, and the
 * target grows towards the demand by 1, 2, 4, … (`to_add`): first after the backlog
 * timeout, then after each sustained one. A target above the demand falls to it at
 * once; executors go by another road (alloc/idle.h). Nothing falls while
 * *initializing*: until the first stage, or until an executor timed out.
 *
 *     demand = ceil(((pending + copies that wait + running) * ratio + of gangs)
 *                   / slots)
 *
 * A gang's tasks all run at once, whatever the ratio. The limits over all profiles are
 * not known here: they bound what is requested (shares.h), not what is aimed at.
 * Counts are kept by calls, a few instructions each; nothing is ever scanned. Profiles
 * are numbers of the caller; a target is one number for each, within min and max. Time
 * is `now`, ns, never decreasing.
 *
 *     trp_targets_new(&config, &t);
 *     trp_targets_profile(t, 0, slots, true);
 *     trp_targets_stage(t, 0, 1000, false, now, &stage);
 *     trp_targets_started(t, stage, 7, false);
 *     if (trp_targets_tick(t, now))             // at trp_targets_due
 *         trp_targets_answer(t, request(), now);
 *
 * Errors: TRP_ENOMEM alone; all else cannot fail. Threads: one at a time.
 */
#ifndef TRP_CORE_ALLOC_TARGETS_H
#define TRP_CORE_ALLOC_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/amount.h"

typedef struct trp_targets trp_targets;

struct trp_targets_config {
    uint32_t min, max, initial; /* of each profile */
    trp_amount ratio;           /* executors for each that would be used, (0, 1] */
    int64_t backlog_ns, sustained_ns;
};

enum { TRP_TARGETS_TICK_NS = 100000000 }; /* 100 ms between two ticks */

int trp_targets_new(const struct trp_targets_config *config, trp_targets **ret_targets);
void trp_targets_free(trp_targets *t);

/* There is a profile: `slots` tasks run at once on an executor of it. Its target is the
 * initial number, from now on or (not `now`) from its first stage on. A known profile
 * stays as it is. Below, a profile that was never named so is a programmer's error. */
int trp_targets_profile(trp_targets *t, uint32_t profile, uint32_t slots, bool now);

/* ---- what happens ---- */

/* A stage attempt of `ntasks` missing tasks is submitted: a backlog. `at_once`: a gang,
 * whose executors are one request and wait for no deadline. *ret_stage names it, until
 * it is done and nothing of it runs any more. */
int trp_targets_stage(trp_targets *t, uint32_t profile, uint32_t ntasks, bool at_once,
                      int64_t now_ns, uint32_t *ret_stage);
/* So many more of its tasks are to run (they waited for other stages, or came from
 * another profile), or fewer, below 0 (they are done elsewhere, not started here). */
void trp_targets_tasks(trp_targets *t, uint32_t stage, int by, int64_t now_ns);
/* The stage attempt is over, in whatever way; attempts of it may still run. True: none
 * does, and the stage is forgotten; its number is another's then. */
bool trp_targets_stage_done(trp_targets *t, uint32_t stage);

/* An attempt of a task, or a copy of it, starts; ends. The last end of a stage that is
 * done: true, as above. */
int trp_targets_started(trp_targets *t, uint32_t stage, uint32_t task, bool copy);
enum trp_targets_end { TRP_TARGETS_SUCCESS, TRP_TARGETS_FAILED, TRP_TARGETS_KILLED };
bool trp_targets_ended(trp_targets *t, uint32_t stage, uint32_t task, bool copy,
                       enum trp_targets_end how, int64_t now_ns);
/* A task that had started is to run again: it was killed, or its output is lost. */
void trp_targets_again(trp_targets *t, uint32_t stage, uint32_t task, int64_t now_ns);
/* A copy of a slow task is requested; no longer. */
int trp_targets_copy(trp_targets *t, uint32_t stage, uint32_t task, int64_t now_ns);
void trp_targets_uncopy(trp_targets *t, uint32_t stage, uint32_t task);
/* A task of the stage may run on none of the executors there are, or may again. */
void trp_targets_unschedulable(trp_targets *t, uint32_t stage, bool is, int64_t now_ns);

/* `by` executors registered (or, below 0, are gone); are on their way out (or arrived
 * there, and are gone). */
void trp_targets_registered(trp_targets *t, uint32_t profile, int by);
void trp_targets_leaving(trp_targets *t, uint32_t profile, int by);
/* All live executors of the profile share one host (semantics, difference 10): a copy
 * that waits needs one more than there are. */
void trp_targets_one_host(trp_targets *t, uint32_t profile, bool is);
/* An executor timed out: targets may fall. */
void trp_targets_initialized(trp_targets *t);

/* ---- evaluation ---- */

/* Evaluates every profile: its target falls to the demand, or grows when
 * its deadline passed. Returns whether any target changed: the caller then makes one
 * request of all targets and answers. */
bool trp_targets_tick(trp_targets *t, int64_t now_ns);
/* One growth of one profile, as if its deadline had passed. */
bool trp_targets_step(trp_targets *t, uint32_t profile);
/* The request was accepted: the next growth doubles, where all of it was used; or it
 * was not: what changed is as before. */
void trp_targets_answer(trp_targets *t, bool acknowledged, int64_t now_ns);
/* When a tick may change something, INT64_MAX: not before something happens. */
int64_t trp_targets_due(const trp_targets *t);

/* ---- views ---- */

/* 0 before its first stage. */
uint32_t trp_targets_of(const trp_targets *t, uint32_t profile);
uint32_t trp_targets_to_add(const trp_targets *t, uint32_t profile);
uint32_t trp_targets_demand(const trp_targets *t, uint32_t profile);
/* The same as if no copy waited. */
uint32_t trp_targets_demand_of_tasks(const trp_targets *t, uint32_t profile);
/* Tasks and copies that wait or run. */
uint64_t trp_targets_tasks_of(const trp_targets *t, uint32_t profile);
/* Has the stage tasks that wait for an executor? */
bool trp_targets_waits(const trp_targets *t, uint32_t stage);
/* How many of its executors may go: no less than min and than the target stay. */
uint32_t trp_targets_spare(const trp_targets *t, uint32_t profile);

#endif
