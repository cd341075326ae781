/*
 * Speculation, as the engine uses it: speculation.h judges, here running attempts are
 * looked at and tasks marked; a marked task stands on the set's lists for copies and is
 * offered when nothing else is pending. Semantics, section 11.
 *
 * A check is O(executors + running attempts), every `speculation.interval` while a set
 * with a record lives. Where attempts of a task ran before is kept with the set, so
 * that a copy goes to a host that none has seen.
 */
#include <string.h>

#include "core/engine_state.h"

enum { NEWLY = 16 }; /* flag of a task marked by the present check */

/* ---- where attempts ran ---- */

TRP_RARE void trp_copies_past(struct trp_engine *e, struct trp_task_set *s,
                              uint32_t task, uint32_t host)
{
    if (!TRP_ARRAY_GROW(s->past_hosts, s->npast_hosts, s->past_hosts_cap)) {
        e->out_of_memory = true;
        return;
    }
    s->past_hosts[s->npast_hosts] =
        (struct trp_past_host){.host = host, .next = s->past_hosts_first[task]};
    s->past_hosts_first[task] = s->npast_hosts++;
}

bool trp_copies_ran_on(const struct trp_engine *e, const struct trp_task_set *s,
                       uint32_t task, uint32_t host)
{
    for (uint32_t slot = s->tasks[task].attempt; slot != TRP_NONE;
         slot = e->attempts.v[slot].twin)
        if (e->executors[e->attempts.v[slot].executor]->host == host)
            return true;
    for (uint32_t i = s->past_hosts_first[task]; i != TRP_NONE;
         i = s->past_hosts[i].next)
        if (s->past_hosts[i].host == host)
            return true;
    return false;
}

/* Of each task that waits for a copy in the class, the host numbers in `hosts` where it
 * did not run are taken out; the first one's hosts begin. Looked at are `LOOK` tasks:
 * among more than that some can run. */
enum { LOOK = 64 };

struct narrowing {
    const struct trp_engine *e;
    uint32_t *hosts, n, seen;
};

static void put_host(struct narrowing *v, uint32_t host)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (v->hosts[i] == host)
            return;
    if (v->n < TRP_COPY_HOSTS)
        v->hosts[v->n++] = host;
}

static void narrow(struct narrowing *v, const struct trp_task_set *s, uint32_t task)
{
    const struct trp_engine *e = v->e;
    if (!v->seen++) {
        for (uint32_t slot = s->tasks[task].attempt; slot != TRP_NONE;
             slot = e->attempts.v[slot].twin)
            put_host(v, e->executors[e->attempts.v[slot].executor]->host);
        for (uint32_t i = s->past_hosts_first[task]; i != TRP_NONE;
             i = s->past_hosts[i].next)
            put_host(v, s->past_hosts[i].host);
        return;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < v->n; i++)
        if (trp_copies_ran_on(e, s, task, v->hosts[i]))
            v->hosts[kept++] = v->hosts[i];
    v->n = kept;
}

uint32_t trp_copies_useless_hosts(const struct trp_engine *e, const struct trp_class *c,
                                  uint32_t ret_hosts[TRP_COPY_HOSTS])
{
    struct narrowing v = {.e = e, .hosts = ret_hosts};
    if (c->copies > LOOK && c->hosts > 1)
        return 0;
    for (const struct trp_task_set *s = c->all; s; s = s->class_next) {
        const struct trp_stack *list = &s->copy_lists.all;
        ++*e->visited;
        for (uint32_t i = s->copies ? list->n : 0; i-- > 0;) {
            const struct trp_task *t = &s->tasks[list->v[i]];
            if ((t->flags & TRP_TASK_SPECULATABLE) && !(t->flags & TRP_TASK_OVER) &&
                t->grown == s->grown)
                narrow(&v, s, list->v[i]);
            if (v.seen && (!v.n || v.seen > LOOK))
                return v.n;
        }
    }
    return v.n;
}

/* ---- marks ---- */

TRP_RARE void trp_copy_unmark(struct trp_engine *e, struct trp_task_set *s,
                              uint32_t task)
{
    s->tasks[task].flags &= (uint8_t)~TRP_TASK_SPECULATABLE;
    s->copies--;
    trp_wanted_copy(e, s, task, -1);
    if (s->class && !s->is_bounded && !s->zombie)
        s->class->open--;
    if (!trp_set_has_work(s) && !e->sched_alone)
        trp_task_set_unlist(e, s);
}

/* The tasks this check marked, onto the lists: the lowest on top. */
static void push_marked(struct trp_engine *e, struct trp_task_set *s)
{
    struct trp_pending *lists = &s->copy_lists;
    s->newly = false;
    if (!lists->hosts && !trp_pending_make(s, lists)) {
        e->out_of_memory = true;
        return;
    }
    for (uint32_t i = s->ntasks; i-- > 0;) {
        if (!(s->tasks[i].flags & NEWLY))
            continue;
        s->tasks[i].flags &= (uint8_t)~NEWLY;
        if (!trp_pending_push(e, s, lists, i))
            e->out_of_memory = true;
        struct trp_action *act = trp_action_add(e, TRP_ACTION_SPECULATABLE);
        act->task.stage = s->stage->id;
        act->task.stage_attempt = s->stage_attempt;
        act->task.task = i;
    }
    trp_task_set_list(e, s);
    e->any_dirty = true;
}

static void judge(struct trp_engine *e, const struct trp_executor *x, uint32_t slot)
{
    const struct trp_attempt *a = &e->attempts.v[slot];
    struct trp_task_set *s = a->set;
    struct trp_task *t = &s->tasks[a->task];
    if (!s->looked_at || a->twin != TRP_NONE || t->attempt != slot ||
        (t->flags & (TRP_TASK_OVER | TRP_TASK_SPECULATABLE)))
        return;
    const struct trp_speculation_facts facts = {.launched_ns = a->launched_ns,
                                                .rate = a->rate,
                                                .decommissioned_ns =
                                                    x->decommissioned_ns};
    if (!trp_speculation_judge(&e->config.speculation, s->durations, &s->gate, &facts,
                               e->now))
        return;
    t->flags |= TRP_TASK_SPECULATABLE | NEWLY;
    s->copies++;
    trp_wanted_copy(e, s, a->task, 1);
    s->newly = true;
    if (s->class && !s->is_bounded)
        s->class->open++;
}

/* ---- the check ---- */

static bool look_at_sets(struct trp_engine *e)
{
    bool any = false;
    for (struct trp_task_set *s = e->sets; s; s = trp_set_after(e, s)) {
        const struct trp_speculation_set facts = {.ntasks = s->ntasks,
                                                  .slots = s->profile->slots,
                                                  .barrier = s->barrier,
                                                  .zombie = s->zombie};
        s->looked_at = s->durations && s->class &&
                       trp_speculation_gate(&e->config.speculation, s->durations,
                                            &facts, &s->gate);
        any |= s->looked_at;
    }
    return any;
}

void trp_copies_check(struct trp_engine *e)
{
    if (!e->config.speculation.enabled || !look_at_sets(e))
        return;
    for (uint32_t i = 0; i < e->nexecutors; i++) {
        const struct trp_executor *x = trp_executor_at(e, i);
        for (uint32_t slot = x ? x->running : TRP_NONE; slot != TRP_NONE;
             slot = e->attempts.v[slot].next)
            judge(e, x, slot);
    }
    for (struct trp_task_set *s = e->sets; s; s = trp_set_after(e, s))
        if (s->newly) {
            push_marked(e, s);
            trp_round_full(e, s->class);
        }
}

void trp_copies_start(struct trp_engine *e)
{
    if (e->slow_due == INT64_MAX && !e->sched_alone)
        e->slow_due = e->now + e->config.speculation.interval_ns;
}

void trp_copies_time(struct trp_engine *e)
{
    bool any = false;
    if (e->now < e->slow_due)
        return;
    trp_copies_check(e);
    for (const struct trp_task_set *s = e->sets; s && !any; s = trp_set_after(e, s))
        any = s->durations && !s->zombie;
    e->slow_due = any ? e->now + e->config.speculation.interval_ns : INT64_MAX;
}
