/*
 * Barrier sets: all tasks start in one round or none does. Semantics, section 13 and
 * difference 6.
 *
 * A visit of such a set is made only when what is free has room for all its tasks (the
 * gate). Its attempts then hold cores and addresses, but are not on their executors
 * yet. When the visit is over and all tasks have a place,
 * they are launched in the order of their numbers; otherwise everything is given back
 * and the tasks stand on their lists again.
 */
#include <stdio.h>
#include <string.h>

#include "core/engine_state.h"

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How many tasks the addresses of one resource are enough for; `whole`: if all were
 * free. */
static int64_t address_room(const trp_ledger *b, const struct trp_custom *c, bool whole)
{
    uint32_t r = 0, n = trp_ledger_resources(b);
    int64_t units = 0, parts = 0;
    while (r < n && strcmp(trp_ledger_resource_name(b, r), c->name) != 0)
        r++;
    for (uint32_t i = 0; r < n && i < trp_ledger_addresses(b, r); i++) {
        trp_amount left = whole ? TRP_ONE : trp_ledger_left(b, r, i);
        units += left == TRP_ONE;
        parts += left / c->task;
    }
    return c->task < TRP_ONE ? parts : units / trp_amount_units(c->task);
}

int64_t trp_barrier_addresses(const trp_ledger *b, const struct trp_custom *c)
{
    return address_room(b, c, false);
}

static uint32_t room(const struct trp_resource_profile *p, const struct trp_executor *x,
                     bool whole)
{
    int64_t n = (whole ? x->cores : x->cores_free) / p->task_cpus;
    for (uint32_t i = 0; i < p->ncustom && n > 0; i++)
        if (p->custom[i].task > 0)
            n = smaller(n, address_room(x->ledger, &p->custom[i], whole));
    return (uint32_t)smaller(n, UINT32_MAX);
}

uint32_t trp_barrier_fits(const struct trp_engine *e, const struct trp_task_set *s,
                          const struct trp_executor *x)
{
    (void)e;
    return room(s->profile, x, false);
}

uint32_t trp_barrier_most(const struct trp_task_set *s, const struct trp_executor *x)
{
    return (uint32_t)smaller(room(s->profile, x, true), s->ntasks);
}

uint64_t trp_barrier_slots(const struct trp_engine *e, trp_profile_id profile)
{
    const struct trp_resource_profile *p = trp_profiles_get(e->profiles, profile);
    uint64_t slots = 0;
    for (uint32_t i = 0; i < e->nexecutors; i++) {
        const struct trp_executor *x = trp_executor_at(e, i);
        if (x && x->state == TRP_EXECUTOR_LIVE &&
            trp_profiles_may_run(e->profiles, profile, (trp_profile_id){x->class}))
            slots += room(p, x, true);
    }
    return slots;
}

/* ---- all or nothing ---- */

/* The attempt never was: what it holds is free, its task pending. */
static void undo(struct trp_engine *e, uint32_t slot)
{
    struct trp_attempt *a = &e->attempts.v[slot];
    struct trp_task_set *s = a->set;
    struct trp_executor *x = e->executors[a->executor];
    x->cores_free += s->profile->task_cpus;
    if (a->ngrants)
        trp_ledger_give(x->ledger, a->grants, a->ngrants);
    trp_executor_set_free(e, x);
    struct trp_task *t = &s->tasks[a->task];
    uint32_t task = a->task;
    trp_attempt_unlink(e, t, slot);
    t->attempts--;
    trp_task_set_main(s)->attempts--;
    trp_dag_attempt_gone(e, s->stage);
    e->launches--;
    trp_attempt_free(e, slot);
    trp_task_set_push(e, s, task);
}

/* The old way of delay scheduling cannot hold tasks back for each other. */
static void abort_too_few(struct trp_engine *e, struct trp_task_set *s, uint32_t had)
{
    char text[256];
    snprintf(text, sizeof(text),
             "only %u of %u tasks of a barrier stage could be launched together; set "
             "locality.wait to 0",
             had, s->ntasks);
    trp_set_abort(e, s, TRP_EFAILED, TRP_NONE, text);
}

/* Taken in this visit: on no executor yet. */
static bool is_held(const struct trp_engine *e, uint32_t slot)
{
    return slot != TRP_NONE && e->attempts.v[slot].state == TRP_ATTEMPT_FREE;
}

void trp_barrier_finish(struct trp_engine *e, struct trp_task_set *s, uint32_t held)
{
    bool all = held == s->ntasks;
    for (uint32_t i = 0; all && i < s->ntasks; i++) {
        uint32_t slot = s->tasks[i].attempt;
        trp_attempt_launch(e, e->executors[e->attempts.v[slot].executor], slot);
    }
    if (all || !held)
        return;
    for (uint32_t i = s->ntasks; i-- > 0;) /* the lowest ends on top */
        if (is_held(e, s->tasks[i].attempt))
            undo(e, s->tasks[i].attempt);
    if (e->config.locality_legacy_reset)
        abort_too_few(e, s, held);
}
