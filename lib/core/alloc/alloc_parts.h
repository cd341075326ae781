/*
 * What each file of alloc/ offers the rest of the engine. Included by engine_state.h.
 */
#ifndef TRP_CORE_ALLOC_ALLOC_PARTS_H
#define TRP_CORE_ALLOC_ALLOC_PARTS_H

#include "core/engine_state.h"

/* alloc/supply.c: an executor is requested; is live; is no longer; is gone (or its
 * request withdrawn); serves another class. */
void trp_supply_asked(struct trp_engine *e, struct trp_executor *x);
void trp_supply_live(struct trp_engine *e, struct trp_executor *x);
void trp_supply_leaving(struct trp_engine *e, struct trp_executor *x);
void trp_supply_gone(struct trp_engine *e, struct trp_executor *x);
void trp_supply_moved(struct trp_engine *e, struct trp_executor *x,
                      struct trp_class *from);
/* A map output lies on it; an active job uses the shuffle, or none does any more; it is
 * cleaned up; what is cached there has changed. */
void trp_supply_output(struct trp_engine *e, uint32_t executor, uint32_t shuffle);
void trp_supply_shuffle(struct trp_engine *e, uint32_t shuffle, bool in_use);
void trp_supply_shuffle_gone(struct trp_engine *e, uint32_t shuffle);
void trp_supply_cached(struct trp_engine *e, uint32_t executor);
/* Its first attempt starts, its last has ended. */
static inline void trp_supply_busy(struct trp_engine *e, struct trp_executor *x)
{
    if (e->idle && trp_idle_started(e->idle, &x->idle, e->now) < 0)
        e->out_of_memory = true;
}
static inline void trp_supply_idle(struct trp_engine *e, struct trp_executor *x)
{
    if (e->idle && trp_idle_ended(e->idle, &x->idle, e->now) < 0)
        e->out_of_memory = true;
}

/* alloc/ramp.c: what targets are told, if there are any. */
bool trp_ramp_class(struct trp_engine *e, const struct trp_class *c);
void trp_ramp_set(struct trp_engine *e,
                  struct trp_task_set *s); /* it joined its class */
void trp_ramp_set_done(struct trp_engine *e, struct trp_task_set *s);
void trp_ramp_tasks(struct trp_engine *e, struct trp_task_set *s, int by);
void trp_ramp_tell_start(struct trp_engine *e, const struct trp_attempt *a);
void trp_ramp_tell_end(struct trp_engine *e, const struct trp_attempt *a);
static inline void trp_ramp_started(struct trp_engine *e, const struct trp_attempt *a)
{
    if (e->targets)
        trp_ramp_tell_start(e, a);
}
/* Whether it runs again is told by trp_ramp_again. */
static inline void trp_ramp_ended(struct trp_engine *e, const struct trp_attempt *a)
{
    if (e->targets)
        trp_ramp_tell_end(e, a);
}
void trp_ramp_again(struct trp_engine *e, struct trp_task_set *s, uint32_t task);
void trp_ramp_copy(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                   bool wanted);
void trp_ramp_stuck(struct trp_engine *e, struct trp_task_set *s, bool is);
int trp_ramp_check(const struct trp_engine *e, const struct trp_class *c,
                   trp_error *err); /* the counts, against lists */

/* alloc/wanted.c */
int trp_wanted_init(struct trp_engine *e, trp_error *err);
void trp_wanted_free(struct trp_engine *e);
int64_t trp_wanted_due(const struct trp_engine *e); /* its timers */
/* One copy more, or less, that waits for an executor. */
void trp_wanted_copy(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                     int by);
/* A set of the class has ended: idle executors that no other one, there or to come, may
 * use go, the youngest. */
void trp_wanted_narrow(struct trp_engine *e, struct trp_class *c);
void trp_wanted_reconcile(struct trp_engine *e);
/* Is an executor of the class that has become idle reason enough for that? Most are not,
 * at the end of a stage: nobody waits, and the stage has not ended. */
bool trp_wanted_heeds_idle(const struct trp_engine *e, const struct trp_class *c);
void trp_wanted_time(struct trp_engine *e); /* timers that are due */
/* May an executor of that shape serve the class? */
bool trp_wanted_may_serve(const struct trp_engine *e, trp_profile_id shape,
                          const struct trp_class *c);
/* How many it should have, live or requested. */
uint32_t trp_wanted_executors(const struct trp_engine *e, const struct trp_class *c);
/* How many it has beyond that. */
uint32_t trp_wanted_surplus(const struct trp_engine *e, const struct trp_class *c);
/* An idle executor, or a request, goes. */
void trp_wanted_release(struct trp_engine *e, struct trp_executor *x);

/* alloc/starts.c */
void trp_starts_free(struct trp_class *c);
/* An executor of the class was admitted. */
void trp_starts_came(const struct trp_engine *e, struct trp_class *c);
/* None can ever be obtained: its stages are given up. */
void trp_starts_never(struct trp_engine *e, struct trp_class *c, const char *text);
/* One that was requested at `asked_ns` was refused, or lost before it was admitted. */
void trp_starts_refused(struct trp_engine *e, struct trp_class *c, int64_t asked_ns,
                        const struct trp_event *ev);
void trp_starts_lost(struct trp_engine *e, struct trp_class *c, int64_t asked_ns,
                     enum trp_loss reason);

/* alloc/demand.c */
/* Executors that its tasks can use; and with those that are kept. */
uint32_t trp_demand_work(const struct trp_engine *e, const struct trp_class *c);
uint32_t trp_demand_all(const struct trp_engine *e, const struct trp_class *c);
/* The same without those of stages that are not ready yet. */
uint32_t trp_demand_now(const struct trp_engine *e, const struct trp_class *c);
/* With fewer its first set that waits cannot start: a barrier set's. */
uint32_t trp_demand_least(const struct trp_engine *e, const struct trp_class *c);
/* Looks at the copies that wait: which executors are of no use to them. */
void trp_demand_copies(const struct trp_engine *e, struct trp_class *c);
/* Is one executor more to be requested, for copies that can run on none there is? */
bool trp_demand_apart(const struct trp_class *c);
/* Finds the classes that are short of executors. */
void trp_demand_find_short(struct trp_engine *e);
/* Is any class other than this one, or another run? A gang may be. */
bool trp_demand_others_short(const struct trp_engine *e, const struct trp_class *c);

/* alloc/left.c: what is left of a set, with the slots that it has. */
struct trp_left {
    int64_t took_ns;   /* by a task */
    int64_t all_ns;    /* until its last one ends; TRP_LEFT_UNKNOWN */
    int64_t oldest_ns; /* how long the one that runs longest does; -1: none runs */
    double running_ns; /* what those that run still need together */
};
#define TRP_LEFT_UNKNOWN INT64_C(-1)
struct trp_left trp_left_of(const struct trp_engine *e, const struct trp_task_set *s);
/* How many of its running tasks end within `ns`, as far as is known. Those of which it
 * is not known, since none has ended or they run for longer than usual, count as such. */
uint32_t trp_left_end_within(const struct trp_engine *e, const struct trp_task_set *s,
                             int64_t ns);

/* alloc/patience.c */
/* Finds requests that may come from additional jobs now; at the end of a step in
 * which anything changed, or that is due. */
void trp_patience_look(struct trp_engine *e);
/* It is known better how long tasks of the class take. */
void trp_patience_news(struct trp_engine *e, struct trp_class *c);
/* A request may come from an additional job whatever else is wanted. */
void trp_patience_over(struct trp_engine *e, struct trp_executor *x);

/* alloc/ahead.c */
/* The stage runs: what was requested ahead is needed now, and children that wait for it
 * are looked ahead to. */
void trp_ahead_begun(struct trp_engine *e, struct trp_stage *s);
/* The stage will not run: what was requested ahead for it is withdrawn. */
void trp_ahead_over(struct trp_engine *e, struct trp_stage *s);
/* One of the class that stands apart was refused, or did not come up. */
void trp_ahead_refused(struct trp_engine *e, struct trp_class *c);
/* Looks ahead, now that it is due; at the end of this step. */
void trp_ahead_look(struct trp_engine *e);
void trp_ahead_look_soon(struct trp_engine *e);
/* It is known better how long tasks of the stage take: stages that wait for it are
 * looked at, at the end of this step. */
void trp_ahead_news(struct trp_engine *e, struct trp_stage *s);
void trp_ahead_look_at_news(struct trp_engine *e);
/* The executor is not, or is no longer, one for a stage that is not ready. */
static inline void trp_ahead_no_more(struct trp_engine *e, struct trp_executor *x)
{
    e->classes[x->class]->nahead -= x->ahead;
    x->ahead = false;
}

/* alloc/give_way.c: who holds idle executors in vain, while others wait for their room,
 * lets them go. */
void trp_give_way(struct trp_engine *e);

/* alloc/yield.c     */
/* Puts the classes in order and finds their shares. False: out of memory. */
bool trp_yield_shares(struct trp_engine *e);
/* When a limit blocks a class: others start nothing more above their share. */
void trp_yield_ask(struct trp_engine *e);

#endif
