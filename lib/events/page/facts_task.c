/*
 * Attempts of tasks. One is known from its TaskStart on, and completed by its TaskEnd,
 * which tells all once more: so what still ran when a log was cut off is there.
 *
 * Failures in the same words are one, with the first few attempts as examples. Digits
 * count as the same, so that ten thousand files that were not made are one failure.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "core/base/time.h"
#include "events/page/facts_state.h"

/* The attempt that an event tells of, made if it is new; NULL: out of memory, or its
 * stage was not heard of. */
static struct trp_page_task *attempt(struct trp_page_facts *f,
                                     const struct trp_log_event *e)
{
    uint32_t stage = trp_page_stage_of(f, e);
    uint32_t place = trp_page_id_get(f->open, e->task_id);
    int64_t launched = trp_page_note(f, e->launched);
    if (stage == TRP_NONE)
        return NULL;
    if (place == TRP_NONE) {
        if (!TRP_ARRAY_GROW(f->tasks, f->ntasks, f->tasks_capacity) ||
            trp_page_id_set(&f->open, e->task_id, f->ntasks) < 0)
            return NULL;
        place = f->ntasks++;
    }
    uint32_t x = trp_page_id_get(f->executor_of, e->executor);
    f->tasks[place] = (struct trp_page_task){
        .begun = launched,
        .stage = stage,
        .executor = x,
        .number = e->task,
        .attempt = e->attempt,
        .stage_attempt = trp_log_or_0(e->stage_attempt),
        .ranks = e->ranks,
        .job = trp_log_or_0(trp_page_id_get(f->job_of_gang, e->task_id)),
        .level = e->level,
        .copy = e->copy,
    };
    return &f->tasks[place];
}

int trp_page_on_task_start(void *facts, const struct trp_log_event *e)
{
    struct trp_page_facts *f = facts;
    struct trp_page_task *t = attempt(f, e);
    if (!t)
        return trp_page_stage_of(f, e) == TRP_NONE ? 0 : TRP_ENOMEM;
    struct trp_page_stage *s = &f->stages[t->stage];
    if (!s->first || (t->begun && t->begun < s->first))
        s->first = t->begun;
    return 0;
}

/* ---- ends ---- */

static enum trp_page_end end_of(const struct trp_log_event *e)
{
    const char *word = e->end ? e->end : "";
    if (strcmp(word, "Success") == 0)
        return TRP_PAGE_SUCCEEDED;
    if (strcmp(word, "TaskKilled") == 0 || strcmp(word, "TaskCommitDenied") == 0)
        return TRP_PAGE_KILLED;
    return strcmp(word, "ExecutorLostFailure") == 0 ? TRP_PAGE_LOST : TRP_PAGE_FAILED;
}

/* Equal but for digits. */
static bool same_words(const char *a, const char *b)
{
    while (*a && *b) {
        bool digits = isdigit((unsigned char)*a) && isdigit((unsigned char)*b);
        if (digits) {
            a += strspn(a, "0123456789");
            b += strspn(b, "0123456789");
        } else if (*a++ != *b++) {
            return false;
        }
    }
    return *a == *b;
}

static struct trp_page_failure *failure(struct trp_page_facts *f, uint32_t stage,
                                        const char *reason, const char *kind)
{
    for (uint32_t i = 0; i < f->nfailures; i++)
        if (f->failures[i].stage == stage && same_words(f->failures[i].reason, reason))
            return &f->failures[i];
    struct trp_page_failure new = {
        .stage = stage, .reason = strndup(reason, 1000), .kind = strndup(kind, 60)};
    if (new.reason &&new.kind &&
        TRP_ARRAY_GROW(f->failures, f->nfailures, f->failures_capacity)) {
        f->failures[f->nfailures] = new;
        return &f->failures[f->nfailures++];
    }
    free(new.reason);
    free(new.kind);
    return NULL;
}

static int note_failure(struct trp_page_facts *f, const struct trp_page_task *t,
                        const struct trp_log_event *e)
{
    const char *words = e->end_reason        ? e->end_reason
                        : e->end_description ? e->end_description
                        : e->loss            ? e->loss
                                             : "?";
    const char *kind = e->status ? e->status : e->end ? e->end : "failed";
    struct trp_page_failure *v = NULL;
    for (uint32_t i = 0; i < f->nfailures && f->nfailures == TRP_PAGE_REASONS; i++)
        if (f->failures[i].stage == t->stage &&
            same_words(f->failures[i].reason, words))
            v = &f->failures[i];
    if (!v && f->nfailures == TRP_PAGE_REASONS) {
        f->failures_left_out++;
        return 0;
    }
    if (!v && !(v = failure(f, t->stage, words, kind)))
        return TRP_ENOMEM;
    v->count++;
    v->first = v->first ? v->first : t->ended;
    v->last = t->ended;
    if (v->nexamples < TRP_PAGE_EXAMPLES)
        v->examples[v->nexamples++] = (uint32_t)(t - f->tasks);
    return 0;
}

static void count_end(struct trp_page_stage *s, const struct trp_page_task *t)
{
    s->copies += t->copy;
    switch (t->end) {
    case TRP_PAGE_SUCCEEDED:
        s->levels[t->level]++;
        break;
    case TRP_PAGE_FAILED:
        s->failed++;
        break;
    case TRP_PAGE_LOST:
        s->lost++;
        break;
    default:
        s->killed++;
    }
}

int trp_page_on_task_end(void *facts, const struct trp_log_event *e)
{
    struct trp_page_facts *f = facts;
    struct trp_page_task *t = attempt(f, e);
    if (!t)
        return trp_page_stage_of(f, e) == TRP_NONE ? 0 : TRP_ENOMEM;
    trp_page_id_drop(&f->open, e->task_id);
    trp_page_id_drop(&f->job_of_gang, e->task_id);
    t->ended = trp_ms(e->at);
    t->end = end_of(e);
    t->peak_mib = (uint32_t)(e->flow[TRP_FLOW_PEAK] >> 20);
    /* Before it ran it was on its way, or queued behind another one. */
    if (e->ran_ns > 0 && t->ended - trp_ms(e->ran_ns) > t->begun)
        t->begun = t->ended - trp_ms(e->ran_ns);
    count_end(&f->stages[t->stage], t);
    return t->end == TRP_PAGE_FAILED || t->end == TRP_PAGE_LOST ? note_failure(f, t, e)
                                                                : 0;
}

/* ---- sums ---- */

int trp_page_on_summary_begin(void *facts, const struct trp_log_event *e)
{
    struct trp_page_facts *f = facts;
    uint32_t stage = trp_page_stage_of(f, e);
    if (stage != TRP_NONE && !f->stages[stage].first)
        f->stages[stage].first = trp_ms(e->at);
    return 0;
}

int trp_page_on_summary(void *facts, const struct trp_log_event *e)
{
    struct trp_page_facts *f = facts;
    json_t *share, *level;
    uint32_t stage = trp_page_stage_of(f, e);
    const char *id;
    if (stage == TRP_NONE)
        return 0;
    struct trp_page_stage *s = &f->stages[stage];
    s->summarised += e->tasks;
    s->killed += e->killed;
    json_object_foreach(e->localities, id, level) {
        for (int i = 0; i < TRP_LEVELS; i++)
            if (strcmp(id, trp_level_name(i)) == 0)
                s->levels[i] += (uint64_t)json_integer_value(level);
    }
    json_object_foreach(e->executors, id, share) {
        if (!TRP_ARRAY_GROW(f->sums, f->nsums, f->sums_capacity))
            return TRP_ENOMEM;
        f->sums[f->nsums++] = (struct trp_page_sum){
            .stage = stage,
            .executor = trp_page_id_get(f->executor_of, trp_log_executor(id)),
            .tasks = trp_log_or_0(trp_log_id(json_object_get(share, "Tasks"))),
            .run_ms = json_integer_value(json_object_get(share, "Run Time")),
            .from = s->first ? s->first : s->submitted,
            .to = trp_ms(e->at)};
    }
    return 0;
}
