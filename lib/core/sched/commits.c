/*
 * Commits (semantics, section 9 and difference 28). An attempt asks before it gives its
 * output its name. The first of a task may; others are denied for as long as that one
 * lives or has succeeded. When it ends otherwise, or is lost, the next that asks may.
 * What it wrote may then still appear, if its process lives on: so the next is told
 * that it is not the first, and makes sure of that before it writes (api/commit.c).
 *
 * Attempts whose success would not count may not either: those of an earlier attempt of
 * a stage that runs again as a whole, and those that are being killed.
 *
 * A word a task, from the first question of its stage on.
 */
#include "core/sched/commits.h"

#include <stdlib.h>

/* In a stage's `commits`: nobody was allowed yet, somebody was and has failed, or
 * HELD + the attempt. */
enum { NOBODY, WITHDRAWN, HELD };

static bool would_count(const struct trp_attempt *a)
{
    const struct trp_task_set *own = trp_task_set_main(a->set);
    const struct trp_stage *s = own->stage;
    return !(a->flags & TRP_ATTEMPT_BEATEN) &&
           !(own->zombie && (a->kill_sent || s->barrier || s->indeterminate));
}

static int decide(struct trp_engine *e, uint32_t slot)
{
    const struct trp_attempt *a = &e->attempts.v[slot];
    struct trp_stage *s = a->set->stage;
    const uint64_t mine = HELD + trp_attempt_id_of(e, slot).n;
    if (!s->commits && !(s->commits = calloc(s->ntasks, sizeof(*s->commits))))
        return TRP_ENOMEM;
    uint64_t *of_task = &s->commits[a->task], was = *of_task;
    if (!would_count(a) || (was >= HELD && was != mine))
        return TRP_EEXIST;
    *of_task = mine;
    return was == WITHDRAWN ? TRP_COMMIT_AGAIN : TRP_COMMIT_FIRST;
}

void trp_commit_asked(struct trp_engine *e, uint32_t slot, uint32_t epoch)
{
    int code = decide(e, slot);
    struct trp_action *act = trp_action_add(e, TRP_ACTION_SYNCED);
    act->synced.attempt = trp_attempt_id_of(e, slot);
    act->synced.executor.n = e->attempts.v[slot].executor;
    act->synced.epoch = epoch;
    act->synced.code = code;
    act->synced.text = code < 0 ? "another attempt commits the output" : "";
    act->synced.messages = NULL;
    act->synced.nmessages = 0;
}

void trp_commit_ended(struct trp_stage *s, uint32_t task, trp_attempt_id attempt,
                      enum trp_end_status status)
{
    if (status != TRP_END_SUCCESS && s->commits[task] == HELD + attempt.n)
        s->commits[task] = WITHDRAWN;
}

void trp_commits_undo(struct trp_stage *s)
{
    for (uint32_t i = 0; s->commits && i < s->ntasks; i++)
        if (s->commits[i] != NOBODY)
            s->commits[i] = WITHDRAWN;
}
