/*
 * Events about tasks, as records of a run. Of tasks that were summarised there are the
 * sums, quantiles of their times, and how long each executor worked at them: CPU time
 * is shared out by that, and each quantile stands for the tasks up to it.
 */
#include <stdlib.h>
#include <string.h>

#include "events/run_record_state.h"

int trp_record_task_start(struct trp_record_reader *r, const json_t *event)
{
    const json_t *info = json_object_get(event, "Task Info");
    trp_stage_id stage;
    trp_executor_id e;
    if (!trp_record_stage_id(json_object_get(event, "Stage ID"), &stage) ||
        !trp_record_executor(json_object_get(info, "Executor ID"), &e.n))
        return TRP_EINVAL;
    trp_statistics_task_started(&r->now->statistics, stage, e,
                                trp_record_at(r, info, "Launch Time"));
    return 0;
}

static enum trp_end_status status_of(const json_t *reason)
{
    const char *word = json_string_value(json_object_get(reason, "Reason"));
    const char *own = json_string_value(json_object_get(reason, "Troupe Status"));
    if (word && strcmp(word, "Success") == 0)
        return TRP_END_SUCCESS;
    for (int i = TRP_END_SUCCESS + 1; own && i <= TRP_END_OUTPUT; i++)
        if (strcmp(own, trp_end_status_name(i)) == 0)
            return i;
    if (word && strcmp(word, "TaskKilled") == 0)
        return TRP_END_KILLED;
    return word && strcmp(word, "ExecutorLostFailure") == 0 ? TRP_END_LOST
                                                            : TRP_END_EXIT;
}

/* Where the log has none of our own time: launch to end. */
static int64_t ran_ns(const json_t *event, int64_t launched, int64_t ended)
{
    const json_t *exact = json_object_get(event, "Troupe Run Time ns");
    int64_t ns = json_is_integer(exact) ? json_integer_value(exact) : ended - launched;
    return ns > 0 ? ns : 0;
}

static void add_use(struct trp_run_step *s, double cpu, int64_t peak_kib)
{
    s->cpu += cpu;
    if (peak_kib > s->peak_kib)
        s->peak_kib = peak_kib;
}

/* A gang that never ran has no step. */
static int end_gang(struct trp_record_reader *r, const struct trp_event_task *t,
                    const json_t *reason)
{
    struct trp_run_step *s =
        trp_record_step(r, true, trp_attempt_number(t->verdict->task_end.attempt));
    enum trp_end_status status = t->verdict->task_end.status;
    const char *why = json_string_value(json_object_get(reason, "Troupe Reason"));
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

static uint64_t bytes_of(const json_t *of, const char *field)
{
    json_int_t n = json_integer_value(json_object_get(of, field));
    return n > 0 ? (uint64_t)n : 0;
}

/* What the summary has of it. */
static struct trp_end_data data_of(const json_t *use)
{
    const json_t *cache = json_object_get(use, "Troupe Cache");
    const json_t *read = json_object_get(use, "Shuffle Read Metrics"),
                 *write = json_object_get(use, "Shuffle Write Metrics");
    return (struct trp_end_data){
        .local_bytes = bytes_of(read, "Local Bytes Read"),
        .remote_bytes = bytes_of(read, "Remote Bytes Read"),
        .written_bytes = bytes_of(write, "Shuffle Bytes Written"),
        .spilled_bytes = bytes_of(use, "Disk Bytes Spilled"),
        .read_records = bytes_of(read, "Total Records Read"),
        .written_records = bytes_of(write, "Shuffle Records Written"),
        .cache_hits = bytes_of(cache, "Hits"),
        .cache_misses = bytes_of(cache, "Misses"),
        .cache_bytes = bytes_of(cache, "Bytes Read"),
        .kept_memory = bytes_of(cache, "Memory Bytes Kept"),
        .kept_disk = bytes_of(cache, "Disk Bytes Kept"),
    };
}

int trp_record_task_end(struct trp_record_reader *r, const json_t *event)
{
    const json_t *info = json_object_get(event, "Task Info");
    const json_t *reason = json_object_get(event, "Task End Reason");
    const json_t *use = json_object_get(event, "Task Metrics");
    uint32_t number = 0, ranks = 0;
    trp_stage_id stage;
    trp_executor_id e;
    if (!trp_record_stage_id(json_object_get(event, "Stage ID"), &stage) ||
        !trp_record_executor(json_object_get(info, "Executor ID"), &e.n) ||
        !trp_record_id(json_object_get(info, "Task ID"), TRP_NONE, &number) ||
        !json_is_object(reason))
        return TRP_EINVAL;
    struct trp_stage_statistics *s = trp_statistics_stage(&r->now->statistics, stage);
    if (!s)
        return TRP_ENOMEM;
    trp_record_id(json_object_get(event, "Troupe Ranks"), TRP_NONE, &ranks);
    enum trp_end_status status = status_of(reason);
    const json_t *counted = json_object_get(reason, "Troupe Counted");
    const struct trp_action verdict = {
        .kind = TRP_ACTION_TASK_END,
        .task_end = {.stage = stage,
                     .executor = e,
                     .attempt = {(uint64_t)number << 32},
                     .status = status,
                     .counted =
                         counted ? json_is_true(counted) : status != TRP_END_SUCCESS}
    };
    int64_t launched = trp_event_ms(json_object_get(info, "Launch Time"));
    int64_t ended = trp_record_at(r, info, "Finish Time");
    const struct trp_end end = {
        .duration_ns = ran_ns(event, launched, ended),
        .cpu_ns = json_integer_value(json_object_get(use, "Executor CPU Time")),
        .peak_kib =
            json_integer_value(json_object_get(use, "Peak Execution Memory")) / 1024,
        .has_data = true,
        .data = data_of(use)};
    const struct trp_event_task t = {.verdict = &verdict,
                                     .end = &end,
                                     .launched = launched,
                                     .ended = ended,
                                     .profile = trp_record_profile(r, s->profile),
                                     .ranks = ranks};
    int rc = trp_statistics_task_ended(&r->now->statistics, s, &t);
    if (rc == 0 && e.n == TRP_NONE)
        rc = end_gang(r, &t, reason);
    struct trp_run_step *step =
        trp_record_step(r, e.n == TRP_NONE, e.n == TRP_NONE ? number : e.n);
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

static double number(const json_t *event, const char *field)
{
    return json_number_value(json_object_get(event, field));
}

/* Of tasks; more than there can be are none. */
static uint64_t tasks(const json_t *event, const char *field)
{
    json_int_t n = json_integer_value(json_object_get(event, field));
    return n > 0 && n < UINT32_MAX ? (uint64_t)n : 0;
}

/* What they used of their executors. */
static int share_out(struct trp_record_reader *r, const json_t *event,
                     const struct trp_stage_statistics *stage)
{
    json_t *shares = json_object_get(event, "Executors"), *share;
    double all = number(event, "Executor Run Time");
    const char *id;
    json_object_foreach(shares, id, share) {
        json_t *text = json_string(id);
        uint32_t e;
        bool ok = trp_record_executor(text, &e);
        json_decref(text);
        if (!ok)
            return TRP_EINVAL;
        struct trp_run_step *s = e == TRP_NONE ? NULL : trp_record_step(r, false, e);
        if (trp_statistics_ran_on(&r->now->statistics, stage->stage,
                                  (trp_executor_id){e},
                                  trp_record_profile(r, stage->profile),
                                  number(share, "Run Time") * 1e-3) < 0)
            return TRP_ENOMEM;
        double part = all > 0 ? number(share, "Run Time") / all : 0;
        if (s)
            add_use(
                s, part * number(event, "Executor CPU Time") * 1e-9,
                json_integer_value(json_object_get(event, "Peak Execution Memory")) /
                    1024);
    }
    return 0;
}

int trp_record_summary(struct trp_record_reader *r, const json_t *event)
{
    struct trp_statistics *all = &r->now->statistics;
    trp_stage_id stage;
    if (!trp_record_stage_id(json_object_get(event, "Stage ID"), &stage))
        return TRP_EINVAL;
    struct trp_stage_statistics *s = trp_statistics_stage(all, stage);
    if (!s)
        return TRP_ENOMEM;
    uint64_t succeeded = tasks(event, "Succeeded");
    trp_record_at(r, event, "Timestamp");
    s->attempts += succeeded + tasks(event, "Killed");
    s->cpu += number(event, "Executor CPU Time") * 1e-9;
    s->data.read += bytes_of(event, "Shuffle Bytes Read");
    s->data.remote += bytes_of(event, "Shuffle Remote Bytes Read");
    s->data.written += bytes_of(event, "Shuffle Bytes Written");
    s->data.spilled += bytes_of(event, "Disk Bytes Spilled");
    s->data.records_read += bytes_of(event, "Shuffle Records Read");
    s->data.records_written += bytes_of(event, "Shuffle Records Written");
    s->data.hits += bytes_of(event, "Cache Hits");
    s->data.misses += bytes_of(event, "Cache Misses");
    s->data.cached += bytes_of(event, "Cache Bytes Read");
    s->data.kept_memory += bytes_of(event, "Memory Bytes Kept");
    s->data.kept_disk += bytes_of(event, "Disk Bytes Kept");
    int rc = trp_statistics_used(all, s, trp_record_profile(r, s->profile),
                                 number(event, "Executor Run Time") * 1e-3);
    if (rc == 0)
        rc = add_times(&s->durations, json_object_get(event, "Run Time Quantiles ns"),
                       succeeded);
    return rc == 0 ? share_out(r, event, s) : rc;
}
