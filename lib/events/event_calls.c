/*
 * What an event log is told. Rare events are formatted here, at once (a microsecond or
 * two), and travel as text; an attempt travels as a fixed record and is formatted by
 * the writer.
 *
 * When a stage is summarised (events.tasks=auto). A TaskStart is written only while the
 * ring is less than three quarters full; the first that finds it fuller makes its stage
 * summarised: from this attempt on, told by its number, attempts that do not fail are
 * only counted. Attempts whose start was written get their end written too, for which
 * there is the last quarter of the ring; so every attempt either has both its lines or
 * is in the summary, and the two add up. A failure is written in full (both lines) also
 * then, and a gang always. The caller waits only when the ring is full of ends and
 * failures, which takes 16,000 of them more than the writer could take in the meantime.
 *
 * Rejected: sampling (says nothing certain); dropping ends (leaves tasks that run for
 * ever in the History Server); a rate limit (the machine knows better what it can
 * write).
 */
#include <stdlib.h>
#include <string.h>

#include "events/event_json.h"
#include "events/event_log_state.h"

enum { REASON_MAX = 4096, NAMES_SIZE = 32 << 10 };
/* Attempts written in full: so many a second, and so many more in a burst. */
enum { BUDGET_RATE = 5000, BUDGET_BURST = 20000 };

static bool within_budget(trp_event_log *l, int64_t at)
{
    const int64_t second = INT64_C(1000000000), each = second / BUDGET_RATE;
    int64_t earned = (at - l->budget_at) / each;
    if (earned > 0) {
        l->budget =
            earned > BUDGET_BURST - l->budget ? BUDGET_BURST : l->budget + earned;
        l->budget_at = at;
    }
    return l->budget-- > 0 || (l->budget = 0);
}

void trp_event_log_put_lines(struct trp_event_log *l, struct trp_buf *take_b)
{
    if (take_b->failed) {
        trp_event_log_out_of_memory(l);
        trp_buf_free(take_b);
        return;
    }
    struct trp_event_record *r = trp_event_ring_claim(l->ring);
    r->kind = TRP_RECORD_TEXT;
    r->text.data = (char *)take_b->data;
    r->text.size = take_b->size;
    trp_event_ring_publish(l->ring);
}

/* A line that only Troupe has: its beginning, and its end. */
static struct trp_buf begin(struct trp_event_log *l, const char *event, int64_t at)
{
    struct trp_buf b = {0};
    trp_statistics_at(l->statistics, at);
    TRP_JSON(&b, "{\"Event\":");
    trp_json_text(&b, event);
    return b;
}

static void put_at(struct trp_event_log *l, struct trp_buf *take_b, int64_t at)
{
    TRP_JSON_INT(take_b, "Timestamp", at / 1000000);
    TRP_JSON(take_b, "}\n");
    trp_event_log_put_lines(l, take_b);
}

/* The host's name in JSON, for records; "\"\"" for want of memory. */
static const char *host_json(struct trp_event_log *l, const char *name)
{
    if (!name)
        name = "";
    struct trp_log_host *h;
    HASH_FIND_STR(l->hosts, name, h);
    if (h)
        return h->json;
    size_t n = strlen(name);
    struct trp_buf b = {0};
    trp_json_string(&b, name, n);
    trp_put_raw(&b, "", 1);
    h = calloc(1, sizeof *h + n + 1);
    if (h && !b.failed) {
        memcpy(h->name, name, n + 1);
        h->json = (char *)b.data;
        HASH_ADD_STR(l->hosts, name, h);
        if (h->hh.tbl)
            return h->json;
    }
    free(h);
    trp_buf_free(&b);
    trp_event_log_out_of_memory(l);
    return "\"\"";
}

/* An executor's host was looked up when it came. */
static const char *host_of(struct trp_event_log *l, trp_executor_id e, const char *name)
{
    const struct trp_statistics *s = l->statistics;
    if (e.n < s->nexecutors && s->executors[e.n].host)
        return s->executors[e.n].host;
    return host_json(l, name);
}

/* ---- ids ----------------------------------------------------------------------------
 *
 * A run's own begin at 0 in every start; in the log they are numbered on.
 */

static void used(uint32_t *next, uint32_t id)
{
    if (id >= *next)
        *next = id + 1;
}

static trp_job_id job_in_log(struct trp_event_log *l, trp_job_id job)
{
    job.n += l->first.job;
    used(&l->past.next.job, job.n);
    return job;
}

static trp_executor_id executor_in_log(struct trp_event_log *l, trp_executor_id e)
{
    if (e.n == TRP_NONE) /* a gang's */
        return e;
    e.n += l->first.executor;
    used(&l->past.next.executor, e.n);
    return e;
}

static uint32_t task_in_log(struct trp_event_log *l, uint32_t attempt)
{
    used(&l->past.next.task, l->first.task + attempt);
    return l->first.task + attempt;
}

/* ---- application, profiles, executors ---- */

void trp_event_application_start(trp_event_log *l, int64_t at)
{
    struct trp_buf b = {0};
    trp_statistics_at(l->statistics, at);
    if (!l->past.started)
        l->past.started = at;
    trp_line_application_start(&b, l->app_name, l->past.app_id, l->user,
                               l->past.started, at);
    trp_event_log_put_lines(l, &b);
}

void trp_event_environment(trp_event_log *l, const char *const *keys,
                           const char *const *values, uint32_t n)
{
    struct trp_buf b = {0};
    trp_line_environment(&b, l->app_name, l->past.app_id, keys, values, n);
    trp_event_log_put_lines(l, &b);
}

void trp_event_profile(trp_event_log *l, const struct trp_resource_profile *p)
{
    struct trp_buf b = {0};
    if (!trp_statistics_shape(l->statistics, p))
        trp_event_log_out_of_memory(l);
    trp_line_profile(&b, p);
    trp_event_log_put_lines(l, &b);
}

void trp_event_message(trp_event_log *l, const char *level, const char *text,
                       int64_t at)
{
    struct trp_buf b = begin(l, "TroupeMessage", at);
    TRP_JSON_TEXT(&b, "Level", level);
    TRP_JSON_TEXT(&b, "Text", text);
    put_at(l, &b, at);
}

/* Those above what may be written are left out: they are shown, and nothing more. */
void trp_event_block(trp_event_log *l, const struct trp_event_block *block, int64_t at)
{
    struct trp_event_block in_log = *block;
    struct trp_buf b = {0};
    trp_statistics_at(l->statistics, at);
    if (trp_event_ring_crowded(l->ring) || !within_budget(l, at))
        return;
    in_log.executor = executor_in_log(l, block->executor);
    trp_line_block(&b, &in_log);
    trp_event_log_put_lines(l, &b);
}

void trp_event_nodes(trp_event_log *l, uint32_t nodes, int64_t at)
{
    struct trp_buf b = begin(l, "TroupeNodes", at);
    trp_statistics_nodes(l->statistics, nodes, at);
    TRP_JSON_INT(&b, "Nodes", nodes);
    put_at(l, &b, at);
}

void trp_event_outputs_moved(trp_event_log *l, const char *host, uint32_t outputs,
                             uint64_t bytes, int64_t took_ns, int64_t at)
{
    struct trp_buf b = begin(l, "TroupeOutputsMoved", at);
    l->statistics->moved += bytes;
    TRP_JSON_TEXT(&b, "Host", host);
    TRP_JSON_INT(&b, "Outputs", outputs);
    TRP_JSON_INT(&b, "Bytes", bytes);
    TRP_JSON_INT(&b, "Move Time", took_ns / 1000000);
    put_at(l, &b, at);
}

void trp_event_slurm_queued(trp_event_log *l, uint32_t job, trp_profile_id p,
                            int64_t asked, int64_t at)
{
    struct trp_buf b = begin(l, "TroupeSlurmJobQueued", at);
    TRP_JSON_INT(&b, "Job ID", job);
    TRP_JSON_INT(&b, "Resource Profile Id", p.n);
    TRP_JSON_INT(&b, "Submission Time", asked / 1000000);
    put_at(l, &b, at);
}

void trp_event_slurm_ended(trp_event_log *l, uint32_t job, int64_t ended, int64_t at)
{
    struct trp_buf b = begin(l, "TroupeSlurmJobEnded", at);
    TRP_JSON_INT(&b, "Job ID", job);
    TRP_JSON_INT(&b, "End Time", ended / 1000000);
    put_at(l, &b, at);
}

void trp_event_slurm_job(trp_event_log *l, uint32_t job, bool additional, int64_t asked,
                         int64_t started, int64_t at)
{
    struct trp_buf b = begin(l, "TroupeSlurmJob", at);
    TRP_JSON_INT(&b, "Job ID", job);
    TRP_JSON_BOOL(&b, "Further", additional);
    if (additional) {
        TRP_JSON_INT(&b, "Submission Time", asked / 1000000);
        TRP_JSON_INT(&b, "Start Time", started / 1000000);
    }
    put_at(l, &b, at);
}

void trp_event_slurm_step(trp_event_log *l, uint32_t job, const char *name, bool gang,
                          uint32_t id, int64_t at)
{
    struct trp_buf b = begin(l, "TroupeSlurmStep", at);
    id = gang ? task_in_log(l, id) : executor_in_log(l, (trp_executor_id){id}).n;
    TRP_JSON_INT(&b, "Job ID", job);
    TRP_JSON_TEXT(&b, "Step Name", name);
    if (gang)
        TRP_JSON_INT(&b, "Task ID", id);
    else
        TRP_JSON_QUOTED(&b, "Executor ID", id);
    put_at(l, &b, at);
}

void trp_event_slurm_costs(trp_event_log *l, uint64_t rpcs, uint64_t sruns,
                           uint64_t srun_rpcs, int64_t at)
{
    struct trp_buf b = begin(l, "TroupeSlurmCosts", at);
    l->statistics->rpcs = rpcs;
    l->statistics->sruns = sruns;
    l->statistics->srun_rpcs = srun_rpcs;
    TRP_JSON_INT(&b, "RPCs", rpcs);
    TRP_JSON_INT(&b, "Sruns", sruns);
    TRP_JSON_INT(&b, "Srun RPCs", srun_rpcs);
    put_at(l, &b, at);
}

void trp_event_executor_asked(trp_event_log *l, trp_executor_id e, trp_profile_id p,
                              int64_t at)
{
    struct trp_buf b = begin(l, "TroupeExecutorAsked", at);
    TRP_JSON_QUOTED(&b, "Executor ID", executor_in_log(l, e).n);
    TRP_JSON_INT(&b, "Resource Profile Id", p.n);
    put_at(l, &b, at);
}

void trp_event_executor_dropped(trp_event_log *l, trp_executor_id e, int64_t at)
{
    struct trp_buf b = begin(l, "TroupeExecutorDropped", at);
    TRP_JSON_QUOTED(&b, "Executor ID", executor_in_log(l, e).n);
    put_at(l, &b, at);
}

void trp_event_executor_added(trp_event_log *l, trp_executor_id e, const char *host,
                              const struct trp_resource_profile *p,
                              const struct trp_resource_addresses *resources,
                              uint32_t nresources, int64_t requested, int64_t at)
{
    struct trp_buf b = {0};
    trp_statistics_at(l->statistics, at);
    if (trp_statistics_executor_added(l->statistics, e, p, host_json(l, host), at) < 0)
        trp_event_log_out_of_memory(l);
    trp_line_executor_added(&b, executor_in_log(l, e), host, p, resources, nresources,
                            requested, at);
    trp_event_log_put_lines(l, &b);
}

void trp_event_executor_removed(trp_event_log *l, trp_executor_id e, const char *reason,
                                int64_t at)
{
    struct trp_buf b = {0};
    trp_statistics_at(l->statistics, at);
    trp_statistics_executor_removed(l->statistics, e, at);
    trp_line_executor_removed(&b, executor_in_log(l, e), reason, at);
    trp_event_log_put_lines(l, &b);
}

void trp_event_executor_relabelled(trp_event_log *l, trp_executor_id e,
                                   const struct trp_resource_profile *p, int64_t at)
{
    struct trp_buf b = begin(l, "TroupeExecutorRelabelled", at);
    trp_statistics_executor_relabelled(l->statistics, e, at);
    TRP_JSON_QUOTED(&b, "Executor ID", executor_in_log(l, e).n);
    TRP_JSON_INT(&b, "Resource Profile Id", p->id.n);
    put_at(l, &b, at);
}

/* ---- jobs and stages ---- */

void trp_event_job_start(trp_event_log *l, const struct trp_event_job *job, int64_t at,
                         const struct trp_event_stage *stages, uint32_t nstages)
{
    struct trp_buf b = {0};
    trp_statistics_at(l->statistics, at);
    for (uint32_t i = 0; i < nstages; i++)
        if (trp_statistics_describe(l->statistics, &stages[i]) < 0)
            trp_event_log_out_of_memory(l);
    struct trp_event_job in_log = *job;
    in_log.job = job_in_log(l, job->job);
    trp_line_job_start(&b, &in_log, at, stages, nstages);
    trp_event_log_put_lines(l, &b);
}

/* Ends the summary of a stage's tasks, when there is one. */
static void put_summary(struct trp_event_log *l, struct trp_stage_statistics *s,
                        int64_t at)
{
    if (!s->summarised)
        return;
    struct trp_buf b = {0};
    trp_line_task_summary(&b, s, l->first.executor, at);
    trp_event_log_put_lines(l, &b);
    trp_summarised_free(s->summarised);
    s->summarised = NULL;
}

void trp_event_log_flush_summaries(struct trp_event_log *l, int64_t at)
{
    for (uint32_t i = 0; i < l->statistics->nstages; i++)
        if (trp_statistics_own(l->statistics, i))
            put_summary(l, l->statistics->stages[i], at);
}

void trp_event_stage_submitted(trp_event_log *l, const struct trp_event_stage *s,
                               int64_t at)
{
    struct trp_buf b = {0};
    trp_statistics_at(l->statistics, at);
    used(&l->past.next.stage_attempt, s->attempt);
    struct trp_stage_statistics *st = trp_statistics_stage(l->statistics, s->stage);
    if (!st || trp_statistics_describe(l->statistics, s) < 0) {
        trp_event_log_out_of_memory(l);
        return;
    }
    put_summary(l, st, at); /* of an earlier attempt of this stage */
    st->summarised_from = UINT32_MAX;
    trp_statistics_stage_submitted(l->statistics, st, at);
    trp_line_stage_submitted(&b, s, at);
    trp_event_log_put_lines(l, &b);
}

/* A stage that ended without having been submitted. The History Server counts stages
 * that run by their StageSubmitted, so one that failed or had nothing to do gets it
 * first; one that never was to run gets neither, as in Spark, but a line of ours. */
static void put_unsubmitted(struct trp_event_log *l, struct trp_stage_statistics *s,
                            const char *why, struct trp_buf *b, int64_t at)
{
    if (s->outcome != TRP_OUTCOME_SUCCEEDED && s->outcome != TRP_OUTCOME_FAILED) {
        trp_line_stage_skipped(b, s, why ? why : "");
        return;
    }
    struct trp_event_stage info = {.stage = s->stage,
                                   .attempt = s->attempt,
                                   .name = s->name,
                                   .ntasks = s->ntasks,
                                   .profile = s->profile,
                                   .parents = s->parents,
                                   .nparents = s->nparents};
    s->submitted = s->began = at;
    used(&l->past.next.stage_attempt, s->attempt);
    trp_line_stage_submitted(b, &info, at);
    trp_event_log_put_lines(l, b);
    *b = (struct trp_buf){0};
}

void trp_event_task_given_up(trp_event_log *l, const struct trp_event_given_up *t,
                             int64_t at)
{
    struct trp_buf b = {0};
    trp_statistics_at(l->statistics, at);
    struct trp_stage_statistics *s = trp_statistics_stage(l->statistics, t->stage);
    if (!s) {
        trp_event_log_out_of_memory(l);
        return;
    }
    trp_statistics_given_up(s, t->parent.n != TRP_NONE);
    trp_line_task_given_up(&b, l->statistics, t, at);
    trp_event_log_put_lines(l, &b);
}

void trp_event_task_names(trp_event_log *l, trp_stage_id stage, uint32_t ntasks,
                          bool (*name)(void *context, uint32_t task, struct trp_buf *b),
                          void *context, int64_t at)
{
    struct trp_buf one = {0};
    bool more = true;
    for (uint32_t first = 0, task = 0; more && task < ntasks; first = task) {
        struct trp_buf b = begin(l, "TroupeTaskNames", at);
        TRP_JSON_INT(&b, "Stage ID", stage.n);
        TRP_JSON_INT(&b, "First Task Index", first);
        TRP_JSON(&b, ",\"Names\":[");
        for (; more && task < ntasks && b.size < NAMES_SIZE; task += more) {
            trp_buf_clear(&one);
            more = name(context, task, &one) && !one.failed;
            if (!more)
                break;
            trp_json_comma(&b);
            trp_json_string(&b, (const char *)one.data, one.size);
        }
        TRP_JSON(&b, "]");
        if (task > first)
            put_at(l, &b, at);
        else
            trp_buf_free(&b);
    }
    if (one.failed)
        trp_event_log_out_of_memory(l);
    trp_buf_free(&one);
}

void trp_event_stage_waits(trp_event_log *l, trp_stage_id stage, enum trp_wait what,
                           int64_t at)
{
    const struct trp_stage_statistics *s = trp_statistics_stage(l->statistics, stage);
    if (!s) {
        trp_event_log_out_of_memory(l);
        return;
    }
    struct trp_buf b = begin(l, "TroupeStageWaits", at);
    TRP_JSON_INT(&b, "Stage ID", stage.n);
    TRP_JSON_INT(&b, "Stage Attempt ID", s->attempt);
    TRP_JSON_TEXT(&b, "Reason", trp_wait_name(what));
    put_at(l, &b, at);
}

void trp_event_stage_retried(trp_event_log *l, trp_stage_id stage, const char *failure,
                             int64_t at)
{
    struct trp_buf b = {0};
    trp_statistics_at(l->statistics, at);
    struct trp_stage_statistics *s = trp_statistics_stage(l->statistics, stage);
    if (!s || !s->submitted || s->attempt_over)
        return;
    put_summary(l, s, at);
    s->attempt_over = true;
    s->ended = at;
    trp_line_stage_completed(&b, l->statistics, s, failure);
    trp_event_log_put_lines(l, &b);
}

void trp_event_stage_ended(trp_event_log *l, trp_stage_id stage,
                           enum trp_outcome outcome, const char *failure, int64_t at)
{
    trp_statistics_at(l->statistics, at);
    struct trp_stage_statistics *s = trp_statistics_stage(l->statistics, stage);
    if (!s) {
        trp_event_log_out_of_memory(l);
        return;
    }
    put_summary(l, s, at);
    trp_statistics_stage_ended(l->statistics, s, outcome, at);
    struct trp_buf b = {0};
    if (s->submitted == 0)
        put_unsubmitted(l, s, failure, &b, at);
    const char *why = "";
    if (outcome == TRP_OUTCOME_FAILED || outcome == TRP_OUTCOME_CANCELLED)
        why = failure && failure[0] ? failure : trp_outcome_name(outcome);
    if (s->submitted > 0 && !s->attempt_over)
        trp_line_stage_completed(&b, l->statistics, s, why);
    trp_event_log_put_lines(l, &b);
}

void trp_event_stage_forgotten(trp_event_log *l, trp_stage_id stage)
{
    trp_statistics_fold(l->statistics, stage);
}

void trp_event_job_end(trp_event_log *l, trp_job_id job, enum trp_outcome outcome,
                       const char *failure, int64_t at)
{
    struct trp_buf b = {0};
    trp_statistics_at(l->statistics, at);
    trp_line_job_end(&b, job_in_log(l, job), outcome, failure, at);
    trp_event_log_put_lines(l, &b);
}

/* ---- tasks ---- */

/* From this attempt on the stage is summarised. */
static void begin_summary(struct trp_event_log *l, struct trp_stage_statistics *s,
                          uint32_t first, int64_t at)
{
    s->summarised = calloc(1, sizeof *s->summarised);
    if (!s->summarised) {
        trp_event_log_out_of_memory(l);
        return;
    }
    s->summarised_from = first;
    struct trp_buf b = {0};
    trp_line_summary_begin(&b, s, l->first.task + first,
                           l->tasks == TRP_EVENTS_SUMMARY
                               ? "events.tasks=summary"
                               : "tasks end faster than they can be written",
                           at);
    trp_event_log_put_lines(l, &b);
}

/* What the log calls an attempt of the stage that the engine numbers so. */
static uint32_t called(const struct trp_stage_statistics *s, uint32_t attempt)
{
    return s->attempt - s->retry + attempt;
}

static void put_task(struct trp_event_log *l, enum trp_event_record_kind kind,
                     const struct trp_task_record *task)
{
    struct trp_event_record *r = trp_event_ring_claim(l->ring);
    r->kind = kind;
    r->task = *task;
    trp_event_ring_publish(l->ring);
}

void trp_event_task_started(trp_event_log *l, trp_stage_id stage,
                            const struct trp_action *launch, const char *host,
                            int64_t at)
{
    bool gang = launch->kind == TRP_ACTION_GANG;
    trp_attempt_id attempt = gang ? launch->gang.attempt : launch->launch.attempt;
    trp_executor_id e = {gang ? TRP_NONE : launch->launch.executor.n};
    trp_statistics_at(l->statistics, at);
    struct trp_stage_statistics *s = trp_statistics_stage(l->statistics, stage);
    if (!s) {
        trp_event_log_out_of_memory(l);
        return;
    }
    trp_statistics_task_started(l->statistics, stage, e, at);
    if (trp_attempt_number(attempt) >= s->summarised_from)
        return;
    if (!gang && (l->tasks == TRP_EVENTS_SUMMARY ||
                  (l->tasks == TRP_EVENTS_AUTO &&
                   (trp_event_ring_crowded(l->ring) || !within_budget(l, at))))) {
        begin_summary(l, s, trp_attempt_number(attempt), at);
        return;
    }
    struct trp_task_record r = {
        .level = gang ? TRP_ANY : launch->launch.level,
        .speculative = !gang && launch->launch.speculative,
        .stage = stage.n,
        .stage_attempt = gang ? s->attempt : called(s, launch->launch.stage_attempt),
        .task = gang ? 0 : launch->launch.task,
        .number = gang ? launch->gang.number : launch->launch.number,
        .executor = executor_in_log(l, e).n,
        .task_id = task_in_log(l, trp_attempt_number(attempt)),
        .map = s->map,
        .launched_ms = at / 1000000,
        .host = host_of(l, e, host),
    };
    put_task(l, TRP_RECORD_TASK_START, &r);
}

static char *reason_of(const struct trp_event_task *t)
{
    char text[TRP_ERROR_TEXT];
    if (t->verdict->task_end.status == TRP_END_SUCCESS)
        return NULL;
    if (t->reason && t->reason[0])
        return strndup(t->reason, REASON_MAX);
    return strdup(trp_end_reason(t->verdict, t->end, 0, text, sizeof text));
}

/* NULL also when out of memory: its line is worth more than its figures. */
static struct trp_end_data *data_of(const struct trp_end *end)
{
    struct trp_end_data *d = end->has_data ? malloc(sizeof *d) : NULL;
    if (d)
        *d = end->data;
    return d;
}

/* As data_of. */
static struct trp_task_fetch *fetch_of(struct trp_event_log *l,
                                       const struct trp_event_fetch *from)
{
    struct trp_task_fetch *f = from ? malloc(sizeof *f) : NULL;
    if (!f)
        return NULL;
    *f = (struct trp_task_fetch){
        .shuffle = from->shuffle,
        .map_index = from->map_index,
        .map_id = task_in_log(l, trp_attempt_number(from->map)),
        .executor = from->executor.n == TRP_NONE ? TRP_NONE
                                                 : executor_in_log(l, from->executor).n,
    };
    snprintf(f->host, sizeof f->host, "%s", from->host);
    return f;
}

/* The same. */
static char *accumulables_of(const struct trp_event_task *t)
{
    struct trp_buf b = {0};
    for (uint32_t i = 0; i < t->nupdates; i++)
        trp_json_accumulable(&b, t->updates[i].id, t->updates[i].name,
                             &t->updates[i].update, t->updates[i].value);
    trp_put_raw(&b, "", t->nupdates > 0);
    if (b.failed)
        trp_buf_free(&b);
    return (char *)b.data;
}

/* The same. */
static char *blocks_of(const struct trp_event_task *t)
{
    struct trp_buf b = {0};
    for (uint32_t i = 0; i < t->nblocks; i++)
        trp_json_updated_block(&b, &t->blocks[i]);
    trp_put_raw(&b, "", 1);
    if (b.failed)
        trp_buf_free(&b);
    return (char *)b.data;
}

static struct trp_task_record record_of(struct trp_event_log *l,
                                        const struct trp_stage_statistics *s,
                                        const struct trp_event_task *t)
{
    static const struct trp_end none;
    const struct trp_end *end = t->end ? t->end : &none;
    const struct trp_action *v = t->verdict;
    return (struct trp_task_record){
        .level = v->task_end.level,
        .status = (uint8_t)v->task_end.status,
        .counted = v->task_end.counted,
        .speculative = v->task_end.speculative,
        .stage = s->stage.n,
        .stage_attempt = called(s, v->task_end.stage_attempt),
        .task = v->task_end.task,
        .number = v->task_end.number,
        .executor = executor_in_log(l, v->task_end.executor).n,
        .task_id = task_in_log(l, trp_attempt_number(v->task_end.attempt)),
        .code = v->task_end.code,
        .ranks = t->ranks,
        .result_size = trp_end_result_size(end),
        .launched_ms = t->launched / 1000000,
        .ended_ms = t->ended / 1000000,
        .run_ns = trp_task_ran_ns(t),
        .cpu_ns = end->cpu_ns,
        .peak_kib = end->peak_kib,
        .records_in = end->records_in,
        .records_out = end->records_out,
        .bytes_in = end->bytes_in,
        .bytes_out = end->bytes_out,
        .host = host_of(l, v->task_end.executor, t->host),
        .map = s->map,
        .data = data_of(end),
        .fetch = fetch_of(l, t->fetch),
        .accumulables = t->nupdates ? accumulables_of(t) : NULL,
        .blocks = t->nblocks ? blocks_of(t) : NULL,
        .reason = reason_of(t),
    };
}

void trp_event_task_ended(trp_event_log *l, const struct trp_event_task *t)
{
    const struct trp_action *v = t->verdict;
    trp_statistics_at(l->statistics, t->ended);
    struct trp_stage_statistics *s =
        trp_statistics_stage(l->statistics, v->task_end.stage);
    if (!s || trp_statistics_task_ended(l->statistics, s, t) < 0) {
        trp_event_log_out_of_memory(l);
        return;
    }
    bool unwritten = trp_attempt_number(v->task_end.attempt) >= s->summarised_from;
    if (unwritten && s->summarised && !trp_end_is_failure(v->task_end.status)) {
        if (trp_statistics_summarise(s, t) < 0)
            trp_event_log_out_of_memory(l);
        return;
    }
    struct trp_task_record r = record_of(l, s, t);
    if (unwritten) {
        if (s->summarised)
            s->summarised->in_full++;
        put_task(l, TRP_RECORD_TASK_START, &r);
    }
    put_task(l, TRP_RECORD_TASK_END, &r);
}
