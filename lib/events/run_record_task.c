/*
 * Events about tasks, as records of a run. Of tasks that were summarised there are the
 * sums, quantiles of their times, and how long each executor worked at them: CPU time
 * is shared out by that, and each quantile stands for the tasks up to it.
 */
#include <stdlib.h>
#include <string.h>

#include "events/run_record_state.h"

int trp_record_task_start(void *reader, const struct trp_log_event *e)
{
    struct trp_record_reader *r = reader;
    if (!trp_record_is_stage(e) || !trp_record_is_executor(e))
        return TRP_EINVAL;
    trp_statistics_task_started(&r->now->statistics, (trp_stage_id){e->stage},
                                (trp_executor_id){e->executor}, e->at);
    return 0;
}

static enum trp_end_status status_of(const struct trp_log_event *e)
{
    const char *word = e->end ? e->end : "";
    if (strcmp(word, "Success") == 0)
        return TRP_END_SUCCESS;
    for (int i = TRP_END_SUCCESS + 1; e->status && i <= TRP_END_OUTPUT; i++)
        if (strcmp(e->status, trp_end_status_name(i)) == 0)
            return i;
    if (strcmp(word, "TaskKilled") == 0)
        return TRP_END_KILLED;
    return strcmp(word, "ExecutorLostFailure") == 0 ? TRP_END_LOST : TRP_END_EXIT;
}

static void add_use(struct trp_run_step *s, double cpu, int64_t peak_kib)
{
    s->cpu += cpu;
    if (peak_kib > s->peak_kib)
        s->peak_kib = peak_kib;
}

/* A gang that never ran has no step. */
static int end_gang(struct trp_record_reader *r, const struct trp_event_task *t,
                    const char *why)
{
    struct trp_run_step *s =
        trp_record_step(r, true, trp_attempt_number(t->verdict->task_end.attempt));
    enum trp_end_status status = t->verdict->task_end.status;
    if (!s)
        return 0;
    if (t->profile) {
        s->profile = t->profile->id;
        s->cores = (double)t->profile->task_cpus * t->ranks;
    }
    s->ended = t->ended;
    s->began = t->end->duration_ns ? t->ended - t->end->duration_ns : 0;
    s->failed = status != TRP_END_SUCCESS;
    free(s->end);
    s->end = s->failed ? strdup(why ? why : trp_end_status_name(status)) : NULL;
    return s->failed && !s->end ? TRP_ENOMEM : 0;
}

int trp_record_task_end(void *reader, const struct trp_log_event *e)
{
    struct trp_record_reader *r = reader;
    bool gang = e->executor == TRP_LOG_DRIVER;
    if (!trp_record_is_stage(e) || !trp_record_is_executor(e) ||
        e->task_id == TRP_NONE || !json_is_object(e->reason_json))
        return TRP_EINVAL;
    struct trp_stage_statistics *s =
        trp_statistics_stage(&r->now->statistics, (trp_stage_id){e->stage});
    if (!s)
        return TRP_ENOMEM;
    enum trp_end_status status = status_of(e);
    const struct trp_action verdict = {
        .kind = TRP_ACTION_TASK_END,
        .task_end = {.stage = {e->stage},
                     .executor = {e->executor},
                     .attempt = {(uint64_t)e->task_id << 32},
                     .status = status,
                     .counted = e->counted ? json_is_true(e->counted)
                                           : status != TRP_END_SUCCESS}
    };
    const struct trp_end end = {.duration_ns = e->ran_ns > 0 ? e->ran_ns : 0,
                                .cpu_ns = (int64_t)e->flow[TRP_FLOW_CPU],
                                .peak_kib = (int64_t)e->flow[TRP_FLOW_PEAK] / 1024};
    const struct trp_event_task t = {.verdict = &verdict,
                                     .end = &end,
                                     .launched = e->launched,
                                     .ended = e->at,
                                     .profile = trp_record_profile(r, s->profile),
                                     .ranks = e->ranks};
    int rc = trp_statistics_task_ended(&r->now->statistics, s, &t);
    if (status != TRP_END_RECALLED)
        trp_flows_add(s->flow, e->flow);
    if (rc == 0 && gang)
        rc = end_gang(r, &t, e->end_reason);
    struct trp_run_step *step =
        trp_record_step(r, gang, gang ? e->task_id : e->executor);
    if (step)
        add_use(step, (double)end.cpu_ns * 1e-9, end.peak_kib);
    return rc;
}

/* ---- summarised ones ---- */

static int add_times(struct trp_durations *d, const json_t *of, uint64_t n)
{
    static const struct {
        const char *name;
        uint64_t permille;
    } upto[] = {
        {"min", 0  },
        {"p05", 50 },
        {"p25", 250},
        {"p50", 500},
        {"p75", 750},
        {"p95", 950},
        {"p99", 990},
    };
    int64_t greatest = json_integer_value(json_object_get(of, "max"));
    uint64_t done = 0;
    int rc = 0;
    if (n == 0)
        return 0;
    for (size_t i = 0; i < sizeof upto / sizeof *upto; i++) {
        int64_t ns = json_integer_value(json_object_get(of, upto[i].name));
        uint64_t to = n > 1 && i == 0 ? 1 : (n * upto[i].permille + 999) / 1000;
        if (to >= n)
            to = n - 1;
        if (rc == 0 && to > done)
            rc = trp_durations_add_many(d, ns, to - done);
        done = to > done ? to : done;
    }
    return rc == 0 ? trp_durations_add_many(d, greatest, n - done) : rc;
}

/* What they used of their executors. */
static int share_out(struct trp_record_reader *r, const struct trp_log_event *e,
                     const struct trp_stage_statistics *stage)
{
    json_t *share;
    double all = (double)e->flow[TRP_FLOW_RUN], cpu = (double)e->flow[TRP_FLOW_CPU];
    int64_t peak = (int64_t)e->flow[TRP_FLOW_PEAK];
    const char *name;
    json_object_foreach(e->executors, name, share) {
        const struct trp_log_event x = {.executor = trp_log_executor(name)};
        double ran = json_number_value(json_object_get(share, "Run Time"));
        if (!trp_record_is_executor(&x))
            return TRP_EINVAL;
        struct trp_run_step *s =
            x.executor == TRP_LOG_DRIVER ? NULL : trp_record_step(r, false, x.executor);
        if (trp_statistics_ran_on(
                &r->now->statistics, stage->stage, (trp_executor_id){x.executor},
                trp_record_profile(r, stage->profile), ran * 1e-3) < 0)
            return TRP_ENOMEM;
        if (s)
            add_use(s, (all > 0 ? ran / all : 0) * cpu * 1e-9, peak / 1024);
    }
    return 0;
}

int trp_record_summary(void *reader, const struct trp_log_event *e)
{
    struct trp_record_reader *r = reader;
    struct trp_statistics *all = &r->now->statistics;
    if (!trp_record_is_stage(e))
        return TRP_EINVAL;
    struct trp_stage_statistics *s =
        trp_statistics_stage(all, (trp_stage_id){e->stage});
    if (!s)
        return TRP_ENOMEM;
    s->attempts += (uint64_t)e->succeeded + e->killed;
    s->cpu += (double)e->flow[TRP_FLOW_CPU] * 1e-9;
    trp_flows_add(s->flow, e->flow);
    int rc = trp_statistics_used(all, s, trp_record_profile(r, s->profile),
                                 (double)e->flow[TRP_FLOW_RUN] * 1e-3);
    if (rc == 0)
        rc = add_times(&s->durations, e->quantiles, e->succeeded);
    return rc == 0 ? share_out(r, e, s) : rc;
}
