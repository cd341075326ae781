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
#include "events/page/facts_state.h"
#include "events/run_record_state.h"

static uint32_t number(const json_t *of, const char *field)
{
    json_int_t n = json_integer_value(json_object_get(of, field));
    return n > 0 && n < TRP_NONE ? (uint32_t)n : 0;
}

static uint8_t level_of(const json_t *info)
{
    const char *word = json_string_value(json_object_get(info, "Locality"));
    for (int i = 0; word && i < TRP_LEVELS; i++)
        if (strcmp(word, trp_level_name(i)) == 0)
            return (uint8_t)i;
    return TRP_ANY;
}

static uint32_t executor_place(const struct trp_page_facts *f, const json_t *of)
{
    uint32_t id;
    return trp_record_executor(json_object_get(of, "Executor ID"), &id) &&
                   id != TRP_NONE
               ? trp_page_id_get(f->executor_of, id)
               : TRP_NONE;
}

/* The attempt that an event tells of, made if it is new; NULL: out of memory, or its
 * stage was not heard of. */
static struct trp_page_task *attempt(struct trp_page_facts *f, const json_t *event)
{
    const json_t *info = json_object_get(event, "Task Info");
    uint32_t stage = trp_page_stage_in(f, event), id = number(info, "Task ID");
    uint32_t place = trp_page_id_get(f->open, id);
    int64_t launched = trp_page_at(f, info, "Launch Time");
    if (stage == TRP_NONE)
        return NULL;
    if (place == TRP_NONE) {
        if (!TRP_ARRAY_GROW(f->tasks, f->ntasks, f->tasks_capacity) ||
            trp_page_id_set(&f->open, id, f->ntasks) < 0)
            return NULL;
        place = f->ntasks++;
    }
    uint32_t job = trp_page_id_get(f->job_of_gang, id);
    uint32_t e = executor_place(f, info);
    if (launched && e == TRP_NONE && f->stages[stage].roomless > launched)
        launched = f->stages[stage].roomless;
    f->tasks[place] = (struct trp_page_task){
        .begun = launched,
        .stage = stage,
        .executor = e,
        .number = number(info, "Index"),
        .attempt = number(info, "Attempt"),
        .stage_attempt = number(event, "Stage Attempt ID"),
        .ranks = number(event, "Troupe Ranks"),
        .job = job == TRP_NONE ? 0 : job,
        .level = level_of(info),
        .copy = json_is_true(json_object_get(info, "Speculative")),
    };
    return &f->tasks[place];
}

int trp_page_on_task_start(void *context, const json_t *event)
{
    struct trp_page_facts *f = context;
    struct trp_page_task *t = attempt(f, event);
    if (!t)
        return trp_page_stage_in(f, event) == TRP_NONE ? 0 : TRP_ENOMEM;
    struct trp_page_stage *s = &f->stages[t->stage];
    if (!s->first || (t->begun && t->begun < s->first))
        s->first = t->begun;
    return 0;
}

void trp_page_gang_has_room(struct trp_page_facts *f, uint32_t stage, int64_t at)
{
    struct trp_page_stage *s = &f->stages[stage];
    s->roomless = at;
    for (uint32_t i = f->ntasks; i-- > 0;) {
        struct trp_page_task *t = &f->tasks[i];
        if (t->stage != stage || t->executor != TRP_NONE)
            continue;
        if (t->end != TRP_PAGE_RUNNING || t->begun >= at)
            return;
        s->first = s->first == t->begun ? at : s->first;
        t->begun = at;
        return;
    }
}

/* ---- ends ---- */

static enum trp_page_end end_of(const json_t *reason)
{
    const char *word = json_string_value(json_object_get(reason, "Reason"));
    if (!word)
        return TRP_PAGE_FAILED;
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

static const char *text_of(const json_t *of, const char *key, const char *none)
{
    const char *text = json_string_value(json_object_get(of, key));
    return text ? text : none;
}

static int note_failure(struct trp_page_facts *f, const struct trp_page_task *t,
                        const json_t *reason)
{
    const char *words =
        text_of(reason, "Troupe Reason",
                text_of(reason, "Description", text_of(reason, "Loss Reason", "?")));
    const char *kind =
        text_of(reason, "Troupe Status", text_of(reason, "Reason", "failed"));
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

int trp_page_on_task_end(void *context, const json_t *event)
{
    struct trp_page_facts *f = context;
    const json_t *info = json_object_get(event, "Task Info"),
                 *reason = json_object_get(event, "Task End Reason");
    struct trp_page_task *t = attempt(f, event);
    if (!t)
        return trp_page_stage_in(f, event) == TRP_NONE ? 0 : TRP_ENOMEM;
    trp_page_id_drop(&f->open, number(info, "Task ID"));
    trp_page_id_drop(&f->job_of_gang, number(info, "Task ID"));
    int64_t ran = json_integer_value(json_object_get(event, "Troupe Run Time ns"));
    t->ended = trp_page_at(f, info, "Finish Time");
    t->end = end_of(reason);
    t->peak_mib = (uint32_t)(json_integer_value(
                                 json_object_get(json_object_get(event, "Task Metrics"),
                                                 "Peak Execution Memory")) >>
                             20);
    /* Before it ran it was on its way, or queued behind another one. */
    if (ran > 0 && t->ended - ran / 1000000 > t->begun)
        t->begun = t->ended - ran / 1000000;
    count_end(&f->stages[t->stage], t);
    return t->end == TRP_PAGE_FAILED || t->end == TRP_PAGE_LOST
               ? note_failure(f, t, reason)
               : 0;
}

/* ---- sums ---- */

int trp_page_on_summary_begin(void *context, const json_t *event)
{
    struct trp_page_facts *f = context;
    uint32_t stage = trp_page_stage_in(f, event);
    int64_t at = trp_page_at(f, event, "Timestamp");
    if (stage != TRP_NONE && !f->stages[stage].first)
        f->stages[stage].first = at;
    return 0;
}

int trp_page_on_summary(void *context, const json_t *event)
{
    struct trp_page_facts *f = context;
    json_t *shares = json_object_get(event, "Executors"), *share, *level;
    uint32_t stage = trp_page_stage_in(f, event);
    int64_t at = trp_page_at(f, event, "Timestamp");
    const char *id;
    if (stage == TRP_NONE)
        return 0;
    struct trp_page_stage *s = &f->stages[stage];
    s->summarised += number(event, "Tasks");
    s->killed += number(event, "Killed");
    json_object_foreach(json_object_get(event, "Localities"), id, level) {
        for (int i = 0; i < TRP_LEVELS; i++)
            if (strcmp(id, trp_level_name(i)) == 0)
                s->levels[i] += (uint64_t)json_integer_value(level);
    }
    json_object_foreach(shares, id, share) {
        uint32_t e = (uint32_t)strtoul(id, NULL, 10);
        if (!TRP_ARRAY_GROW(f->sums, f->nsums, f->sums_capacity))
            return TRP_ENOMEM;
        f->sums[f->nsums++] = (struct trp_page_sum){
            .stage = stage,
            .executor = strcmp(id, "driver") == 0 ? TRP_NONE
                                                  : trp_page_id_get(f->executor_of, e),
            .tasks = number(share, "Tasks"),
            .run_ms = json_integer_value(json_object_get(share, "Run Time")),
            .from = s->first ? s->first : s->submitted,
            .to = at};
    }
    return 0;
}
