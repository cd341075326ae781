/*
 * Tasks that are given up, and what that means for those that come after them.
 *
 * A task is *lost* to its stage when it has failed for good, or is *skipped*: a task of
 * a parent that it comes after (after … each, after … by) was lost. A skipped task never runs. To
 * its stage, and to what comes after that, it counts like one that failed; it is
 * *excused*, and uses up nothing of what its stage tolerates, when the stage of the task
 * that failed at the root of its chain has not failed itself. A stage may
 * lose as many tasks as it tolerates. One too many ends it: at once, when what runs of it
 * is over (in a job that drains), or when its other tasks are (in a job that keeps going); a map stage, a barrier stage and what
 * waits for all of its tasks cannot do with less.
 *
 * Which tasks were lost is a bit each, kept from the first one on: a child that begins
 * later asks for them. A loss goes down the chain of children by a list, not by
 * recursion: a chain may be 10,000 stages long. A stage of the list has the tasks that were
 * lost, of one link, in one array of all: it is judged once for them.
 */
#include <stdio.h>
#include <string.h>

#include "core/engine_state.h"

/* Whether a parent's task was lost that task *task comes after: whose, and which. */
static const struct trp_stage *loser(const struct trp_stage *s, uint32_t *task)
{
    for (uint32_t i = 0; i < s->nparents; i++) {
        const struct trp_stage_link *l = &s->parents[i];
        uint32_t lost = l->edge == TRP_EDGE_EACH ? trp_link_lost(l, *task) : TRP_NONE;
        if (lost == TRP_NONE)
            continue;
        *task = lost;
        return l->parent;
    }
    return NULL;
}

/* Stages are judged before those that come after them, so the root's outcome is known
 * when it counts. A stage that has not ended has not lost too many so far. */
static bool is_excused(const struct trp_stage *s, uint32_t task)
{
    const struct trp_stage *root = s, *above;
    while ((above = loser(root, &task)))
        root = above;
    return root != s && root->outcome != TRP_OUTCOME_FAILED && !root->gave_up.text;
}

/* Skipped tasks that are. Barrier stages need all their tasks. Cost: O(tasks), and the
 * length of the chain for each one skipped; only where `tolerate` is exceeded with them. */
static uint32_t excused(const struct trp_stage *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; s->skipped && !s->barrier && s->lost && i < s->ntasks; i++)
        n += trp_bit(s->lost, i) && is_excused(s, i);
    return n;
}

static bool tolerates(const struct trp_stage *s, uint32_t n)
{
    uint64_t part = (uint64_t)s->ntasks * s->tolerate_ppm / 1000000;
    return n <= s->tolerate || n <= part;
}

bool trp_stage_may_lose(const struct trp_engine *e, const struct trp_stage *s,
                        uint32_t n)
{
    bool goes_on = !e->sched_alone && !s->is_map && !s->barrier && s->uses &&
                   (s->uses->job->keep_going || s->uses->job->drains);
    return goes_on || tolerates(s, n) || tolerates(s, n - excused(s));
}

bool trp_stage_lost_too_many(const struct trp_stage *s)
{
    return !tolerates(s, s->given_up) && !tolerates(s, s->given_up - excused(s));
}

/* Notes that a task which was not over is lost. */
static bool note_task(struct trp_engine *e, struct trp_stage *s, uint32_t task)
{
    if (trp_bit_put(s->bits, task))
        return false;
    s->given_up++;
    if (!s->lost)
        s->lost = calloc((size_t)s->ntasks / 64 + 1, sizeof(*s->lost));
    if (s->lost)
        trp_bit_set(s->lost, task);
    else
        e->out_of_memory = true;
    return true;
}

/* `parent` NULL: it has failed for good. */
static void tell_given_up(struct trp_engine *e, const struct trp_stage *s,
                          uint32_t task, const struct trp_stage *parent,
                          uint32_t parent_task)
{
    struct trp_action *act = trp_action_add(e, TRP_ACTION_TASK_GIVEN_UP);
    act->given_up.stage = s->id;
    act->given_up.stage_attempt = s->attempts - 1;
    act->given_up.task = task;
    act->given_up.parent.n = parent ? parent->id.n : TRP_NONE;
    act->given_up.parent_task = parent ? parent_task : TRP_NONE;
}

/* The task that failed for good, when it is the only one. */
static uint32_t only_failed(const struct trp_stage *s)
{
    if (s->given_up != 1 || s->skipped || !s->lost || !s->set)
        return TRP_NONE;
    uint32_t word = 0;
    while (!s->lost[word])
        word++;
    return word * 64 + (uint32_t)__builtin_ctzll(s->lost[word]);
}

static void losses_text(const struct trp_stage *s, char *buf, size_t size)
{
    uint32_t failed = s->given_up - s->skipped, only = only_failed(s);
    if (s->is_map)
        snprintf(buf, size, "what one of its tasks comes after was given up");
    else if (only != TRP_NONE)
        trp_task_failed_text(only, s->set->tasks[only].failures, buf, size);
    else if (failed && s->skipped)
        snprintf(buf, size, "%u of its %u tasks were given up, %u skipped", failed,
                 s->ntasks, s->skipped);
    else if (failed)
        snprintf(buf, size, "%u of its %u tasks %s given up", failed, s->ntasks,
                 failed == 1 ? "was" : "were");
    else
        snprintf(buf, size, "%u of its %u tasks %s skipped: what %s after was given up",
                 s->skipped, s->ntasks, s->skipped == 1 ? "was" : "were",
                 s->skipped == 1 ? "it comes" : "they come");
}

uint32_t trp_stage_losses_text(const struct trp_stage *s, char *buf, size_t size)
{
    losses_text(s, buf, size);
    return only_failed(s);
}

void trp_stage_fail_for_losses(struct trp_engine *e, struct trp_stage *s)
{
    char text[160];
    losses_text(s, text, sizeof(text));
    trp_stage_abort(e, s, TRP_EFAILED, only_failed(s), text);
}

/* One task more was lost: does the stage end by that? */
static void look_after(struct trp_engine *e, struct trp_stage *s)
{
    if (s->state != TRP_STAGE_RUNNING)
        return;
    if (s->is_map || !trp_stage_may_lose(e, s, s->given_up))
        trp_stage_fail_for_losses(e, s);
    else if (s->set)
        trp_set_check_finished(e, s->set);
    else
        trp_stage_check_complete(e, s);
}

/* The child's tasks that come after this one and were not over are skipped. */
static void skip_tasks(struct trp_engine *e, struct trp_stage_link *l, uint32_t task)
{
    struct trp_stage *c = l->child;
    struct trp_stack *lost = &e->dag.lost;
    uint32_t kept = lost->n;
    if (!trp_link_lose(l, task, lost))
        e->out_of_memory = true;
    if (c->is_map && lost->n > kept)
        trp_stage_fail_for_losses(e, c);
    for (uint32_t i = kept; i < lost->n; i++) {
        uint32_t skipped = lost->v[i];
        if (c->is_map || !note_task(e, c, skipped))
            continue;
        c->skipped++;
        if (c->set)
            trp_set_skip(c->set, skipped);
        tell_given_up(e, c, skipped, l->parent, task);
        lost->v[kept++] = skipped;
    }
    lost->n = kept;
}

/* What the child loses by what `at` lost. Put in front of the list, which is returned. */
static struct trp_stage *skip(struct trp_engine *e, struct trp_stage_link *l,
                              const struct trp_stage *at, struct trp_stage *list)
{
    struct trp_stage *c = l->child;
    uint32_t begin = e->dag.lost.n;
    if (l->edge != TRP_EDGE_EACH || !c->bits || c->state == TRP_STAGE_ENDED)
        return list;
    for (uint32_t i = at->lost_from; i < at->lost_to; i++)
        skip_tasks(e, l, e->dag.lost.v[i]);
    if (e->dag.lost.n == begin)
        return list;
    c->lost_from = begin;
    c->lost_to = e->dag.lost.n;
    c->lost_next = list;
    return c;
}

/* No stage stands in two lists: one that is ended by this with tasks that were not over
 * is a barrier stage, or its whole job ends; neither has children to be told. None stands
 * twice in one: those that are left in it have lower ids than any child of the one that is
 * looked at. */
void trp_stage_lose(struct trp_engine *e, struct trp_stage *s, uint32_t task)
{
    struct trp_stage *list = s;
    uint32_t begin = e->dag.lost.n;
    if (!s->each_children)
        return;
    if (!trp_stack_push(&e->dag.lost, task)) {
        e->out_of_memory = true;
        return;
    }
    s->lost_next = NULL;
    s->lost_from = begin;
    s->lost_to = begin + 1;
    while (list) {
        struct trp_stage *at = list;
        list = at->lost_next;
        at->lost_next = NULL;
        for (struct trp_stage_link *l = at->children; l && at->each_children;
             l = l->next)
            list = skip(e, l, at, list);
        if (at != s)
            look_after(e, at);
    }
    e->dag.lost.n = begin;
}

bool trp_stage_given_up(struct trp_engine *e, struct trp_stage *s, uint32_t task)
{
    if (s->state == TRP_STAGE_ENDED)
        return false;
    tell_given_up(e, s, task, NULL, TRP_NONE);
    if (s->is_map || !trp_stage_may_lose(e, s, s->given_up + 1) ||
        !note_task(e, s, task))
        return false;
    if (s->uses->job->drains && trp_stage_lost_too_many(s))
        trp_stage_fail_for_losses(e, s);
    return true;
}

void trp_stage_lose_rest(struct trp_engine *e, struct trp_stage *s)
{
    for (uint32_t i = 0; s->bits && !s->is_map && i < s->ntasks; i++)
        if (note_task(e, s, i))
            trp_stage_lose(e, s, i);
}

void trp_stage_inherit_losses(struct trp_engine *e, struct trp_stage *s)
{
    bool any = false;
    for (uint32_t i = 0; i < s->nparents; i++)
        any =
            any || (s->parents[i].edge == TRP_EDGE_EACH && s->parents[i].parent->lost);
    for (uint32_t i = 0; any && i < s->ntasks; i++) {
        uint32_t lost = i;
        if (loser(s, &lost) && (s->is_map || note_task(e, s, i))) {
            s->skipped += !s->is_map;
            s->untold = true;
        }
    }
}

void trp_stage_tell_inherited(struct trp_engine *e, struct trp_stage *s)
{
    if (!s->untold)
        return;
    s->untold = false;
    for (uint32_t i = 0; s->lost && i < s->ntasks; i++)
        if (trp_bit(s->lost, i)) {
            uint32_t lost = i;
            const struct trp_stage *of = loser(s, &lost);
            tell_given_up(e, s, i, of, lost);
        }
    look_after(e, s);
}
