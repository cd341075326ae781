/*
 * Lines about the run, its profiles, jobs, stages and executors (those about tasks are
 * in event_json_task.c). Written in order by hand: see json_text.h for why.
 *
 * "Spark Version" is the version of Spark's log format that we write: readers choose by
 * it how to read. 4.0.0 has every field that we write (resource profiles, push-based
 * shuffle, exit code) and none that we do not; our own version stands beside it.
 */
#include "events/event_json.h"

#include <stdio.h>

#include "core/base/time.h"

#define SPARK_FORMAT "4.0.0"

void trp_line_log_start(struct trp_buf *b)
{
    TRP_JSON(b, "{\"Event\":\"SparkListenerLogStart\",\"Spark Version\":\"" SPARK_FORMAT
                "\",\"Troupe Version\":\"" TROUPE_VERSION "\"}\n");
}

void trp_line_application_start(struct trp_buf *b, const char *app_name,
                                const char *app_id, const char *user, int64_t first,
                                int64_t at)
{
    TRP_JSON(b, "{\"Event\":\"SparkListenerApplicationStart\"");
    TRP_JSON_TEXT(b, "App Name", app_name);
    TRP_JSON_TEXT(b, "App ID", app_id);
    TRP_JSON_INT(b, "Timestamp", trp_ms(first));
    if (at != first)
        TRP_JSON_INT(b, "Troupe Resumed", trp_ms(at));
    TRP_JSON_TEXT(b, "User", user);
    TRP_JSON(b, "}\n");
}

/* Options are named as Spark's without "spark.", so readers find them with it; the
 * families that are ours alone are told as ours. */
static void property_name(struct trp_buf *b, const char *key)
{
    static const char *const ours[] = {"alloc.", "slurm.", "run.", "events.", "local."};
    const char *prefix = "spark.";
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strncmp(key, ours[i], strlen(ours[i])) == 0)
            prefix = "troupe.";
    char name[256];
    snprintf(name, sizeof name, "%s%s", prefix, key);
    TRP_JSON(b, ",");
    trp_json_text(b, name);
    TRP_JSON(b, ":");
}

void trp_line_environment(struct trp_buf *b, const char *app_name, const char *app_id,
                          const char *const *keys, const char *const *values,
                          uint32_t n)
{
    TRP_JSON(b, "{\"Event\":\"SparkListenerEnvironmentUpdate\",\"JVM Information\":{},"
                "\"Spark Properties\":{\"spark.app.name\":");
    trp_json_text(b, app_name);
    TRP_JSON_TEXT(b, "spark.app.id", app_id);
    for (uint32_t i = 0; i < n; i++) {
        property_name(b, keys[i]);
        trp_json_text(b, values[i]);
    }
    TRP_JSON(b, "},\"Hadoop Properties\":{},\"System Properties\":{},"
                "\"Metrics Properties\":{},\"Classpath Entries\":{}}\n");
}

static void request(struct trp_buf *b, const char *name, int64_t amount)
{
    trp_json_comma(b);
    trp_json_text(b, name);
    TRP_JSON(b, ":{\"Resource Name\":");
    trp_json_text(b, name);
    TRP_JSON_INT(b, "Amount", amount);
    TRP_JSON(b, ",\"Discovery Script\":\"\",\"Vendor\":\"\"}");
}

/* Spark's readers take no amount between 0.5 and 1, which a task-only profile may have.
 * They are told 1: one task has the address to itself all the same. */
static trp_amount readable(trp_amount v)
{
    return v > TRP_ONE / 2 && v < TRP_ONE ? TRP_ONE : v;
}

static void task_request(struct trp_buf *b, const char *name, trp_amount amount)
{
    trp_json_comma(b);
    trp_json_text(b, name);
    TRP_JSON(b, ":{\"Resource Name\":");
    trp_json_text(b, name);
    TRP_JSON_AMOUNT(b, "Amount", readable(amount));
    if (readable(amount) != amount)
        TRP_JSON_AMOUNT(b, "Troupe Amount", amount);
    TRP_JSON(b, "}");
}

/* Told with what it inherits, since that is what its executors get. A task-only profile
 * has no executor side, as in Spark. */
void trp_line_profile(struct trp_buf *b, const struct trp_resource_profile *p)
{
    TRP_JSON(b, "{\"Event\":\"SparkListenerResourceProfileAdded\","
                "\"Resource Profile Id\":");
    trp_json_int(b, p->id.n);
    TRP_JSON(b, ",\"Executor Resource Requests\":{");
    if (!p->task_only) {
        request(b, "cores", p->cores);
        request(b, "memory", p->memory_mib);
        request(b, "memoryOverhead", p->overhead_mib);
        request(b, "offHeap", p->offheap_mib);
        if (p->executor.pyspark_mib >= 0)
            request(b, "pyspark.memory", p->executor.pyspark_mib);
        for (uint32_t i = 0; i < p->ncustom; i++)
            if (p->custom[i].executor > 0)
                request(b, p->custom[i].name, p->custom[i].executor);
    }
    TRP_JSON(b, "},\"Task Resource Requests\":{");
    task_request(b, "cpus", p->task_cpus * TRP_ONE);
    for (uint32_t i = 0; i < p->ncustom; i++)
        if (p->custom[i].task > 0)
            task_request(b, p->custom[i].name, p->custom[i].task);
    TRP_JSON(b, "},\"Troupe Profile Name\":");
    trp_json_text(b, p->name);
    TRP_JSON_INT(b, "Troupe Slots", p->slots);
    TRP_JSON(b, "}\n");
}

/* Spark's StageInfo. `submitted`, `completed`: 0 not yet; `failure`: NULL or "" none.
 */
struct stage_info {
    uint32_t stage, attempt, ntasks, profile;
    const char *name, *failure;
    const trp_stage_id *parents;
    uint32_t nparents;
    int64_t submitted, completed;
    const struct trp_event_kept *kept;
    uint32_t nkept;
    const struct trp_accumulated *all; /* of the run; the stage has … */
    const uint32_t *accumulated;       /* … these */
    uint32_t naccumulated;
};

static void storage_level(struct trp_buf *b, unsigned level)
{
    TRP_JSON(b, "{\"Use Disk\":");
    trp_json_bool(b, (level & 2) != 0);
    TRP_JSON_BOOL(b, "Use Memory", (level & 1) != 0);
    TRP_JSON(b, ",\"Use Off Heap\":false,\"Deserialized\":false,\"Replication\":1}");
}

/* Spark's RDDInfo. */
static void rdd_info(struct trp_buf *b, const struct trp_event_kept *k)
{
    TRP_JSON(b, "{\"RDD ID\":");
    trp_json_int(b, k->dataset);
    TRP_JSON_TEXT(b, "Name", k->name);
    TRP_JSON(b, ",\"Callsite\":\"\",\"Parent IDs\":[],\"Storage Level\":");
    storage_level(b, k->level);
    TRP_JSON(b, ",\"Barrier\":false,\"DeterministicLevel\":\"DETERMINATE\","
                "\"Number of Partitions\":");
    trp_json_int(b, k->partitions);
    TRP_JSON_INT(b, "Number of Cached Partitions", k->cached);
    TRP_JSON(b, ",\"Memory Size\":0,\"Disk Size\":0}");
}

/* From "Storage Level" on: Spark's BlockStatus. */
static void block_status(struct trp_buf *b, const struct trp_event_block *k)
{
    TRP_JSON(b, "\"Storage Level\":");
    storage_level(b,
                  !k->there ? 0 : (k->memory || !k->disk ? 1 : 0) | (k->disk ? 2 : 0));
    TRP_JSON_INT(b, "Memory Size", k->memory);
    TRP_JSON_INT(b, "Disk Size", k->disk);
    TRP_JSON(b, "}");
}

static void block_id(struct trp_buf *b, const struct trp_event_block *k)
{
    char id[64];
    snprintf(id, sizeof id, "rdd_%u_%u", k->dataset, k->partition);
    TRP_JSON(b, "\"Block ID\":");
    trp_json_text(b, id);
}

void trp_json_updated_block(struct trp_buf *b, const struct trp_event_block *k)
{
    if (b->size > 0)
        TRP_JSON(b, ",");
    TRP_JSON(b, "{");
    block_id(b, k);
    TRP_JSON(b, ",\"Status\":{");
    block_status(b, k);
    TRP_JSON(b, "}");
}

/* There is no such port. A log with port 0, or with none, the History Server does not
 * open at all. */
void trp_json_block_manager(struct trp_buf *b, uint32_t executor, const char *host)
{
    TRP_JSON(b, "{\"Executor ID\":");
    trp_json_quoted(b, executor);
    TRP_JSON_TEXT(b, "Host", host);
    TRP_JSON(b, ",\"Port\":1}");
}

void trp_line_block(struct trp_buf *b, const struct trp_event_block *k)
{
    TRP_JSON(b, "{\"Event\":\"SparkListenerBlockUpdated\",\"Block Updated Info\":{"
                "\"Block Manager ID\":");
    trp_json_block_manager(b, k->executor.n, k->host);
    TRP_JSON(b, ",");
    block_id(b, k);
    TRP_JSON(b, ",");
    block_status(b, k);
    TRP_JSON(b, "}\n");
}

void trp_json_accumulable(struct trp_buf *b, uint32_t id, const char *name,
                          const int64_t *update, int64_t value)
{
    trp_json_comma(b);
    TRP_JSON(b, "{\"ID\":");
    trp_json_int(b, id);
    TRP_JSON_TEXT(b, "Name", name);
    if (update)
        TRP_JSON_QUOTED(b, "Update", *update);
    TRP_JSON_QUOTED(b, "Value", value);
    TRP_JSON(b, ",\"Internal\":false,\"Count Failed Values\":false}");
}

static void stage_info(struct trp_buf *b, const struct stage_info *s)
{
    TRP_JSON(b, "{\"Stage ID\":");
    trp_json_int(b, s->stage);
    TRP_JSON_INT(b, "Stage Attempt ID", s->attempt);
    TRP_JSON_TEXT(b, "Stage Name", s->name);
    TRP_JSON_INT(b, "Number of Tasks", s->ntasks);
    TRP_JSON(b, ",\"RDD Info\":[");
    for (uint32_t i = 0; i < s->nkept; i++) {
        trp_json_comma(b);
        rdd_info(b, &s->kept[i]);
    }
    TRP_JSON(b, "],\"Parent IDs\":[");
    for (uint32_t i = 0; i < s->nparents; i++) {
        trp_json_comma(b);
        trp_json_int(b, s->parents[i].n);
    }
    TRP_JSON(b, "],\"Details\":\"\"");
    if (s->submitted > 0)
        TRP_JSON_INT(b, "Submission Time", trp_ms(s->submitted));
    if (s->completed > 0) {
        TRP_JSON_INT(b, "Completion Time", trp_ms(s->completed));
    }
    if (s->failure && s->failure[0])
        TRP_JSON_TEXT(b, "Failure Reason", s->failure);
    TRP_JSON(b, ",\"Accumulables\":[");
    for (uint32_t i = 0; i < s->naccumulated; i++) {
        const struct trp_accumulated *a = &s->all[s->accumulated[i]];
        trp_json_accumulable(b, a->id, a->name, NULL, a->value);
    }
    TRP_JSON(b, "],\"Resource Profile Id\":");
    trp_json_int(b, s->profile);
    TRP_JSON(b, ",\"Shuffle Push Enabled\":false,\"Shuffle Push Mergers Count\":0}");
}

static struct stage_info info_of(const struct trp_event_stage *s, int64_t submitted)
{
    return (struct stage_info){.stage = s->stage.n,
                               .kept = s->kept,
                               .nkept = s->nkept,
                               .attempt = s->attempt,
                               .ntasks = s->ntasks,
                               .profile = s->profile.n,
                               .name = s->name,
                               .parents = s->parents,
                               .nparents = s->nparents,
                               .submitted = submitted};
}

static void property(struct trp_buf *b, const char *name, const char *value)
{
    if (!value)
        return;
    trp_json_comma(b);
    trp_json_text(b, name);
    TRP_JSON(b, ":");
    trp_json_text(b, value);
}

void trp_line_job_start(struct trp_buf *b, const struct trp_event_job *job, int64_t at,
                        const struct trp_event_stage *stages, uint32_t n)
{
    TRP_JSON(b, "{\"Event\":\"SparkListenerJobStart\"");
    TRP_JSON_INT(b, "Job ID", job->job.n);
    TRP_JSON_INT(b, "Submission Time", trp_ms(at));
    TRP_JSON(b, ",\"Stage Infos\":[");
    for (uint32_t i = 0; i < n; i++) {
        struct stage_info info = info_of(&stages[i], 0);
        trp_json_comma(b);
        stage_info(b, &info);
    }
    TRP_JSON(b, "],\"Stage IDs\":[");
    for (uint32_t i = 0; i < n; i++) {
        trp_json_comma(b);
        trp_json_int(b, stages[i].stage.n);
    }
    TRP_JSON(b, "],\"Properties\":{");
    property(b, "spark.job.description", job->name);
    property(b, "spark.scheduler.pool", job->pool);
    TRP_JSON(b, "}}\n");
}

void trp_line_stage_submitted(struct trp_buf *b, const struct trp_event_stage *s,
                              int64_t at)
{
    struct stage_info info = info_of(s, at);
    TRP_JSON(b, "{\"Event\":\"SparkListenerStageSubmitted\",\"Stage Info\":");
    stage_info(b, &info);
    TRP_JSON(b, ",\"Properties\":{");
    if (s->pool) {
        TRP_JSON(b, "\"spark.scheduler.pool\":");
        trp_json_text(b, s->pool);
    }
    TRP_JSON(b, "}}\n");
}

void trp_line_task_given_up(struct trp_buf *b, const struct trp_statistics *run,
                            const struct trp_event_given_up *t, int64_t at)
{
    bool skipped = t->parent.n != TRP_NONE;
    TRP_JSON(b, "{\"Event\":\"");
    trp_put_raw(b, skipped ? "TroupeTaskSkipped" : "TroupeTaskGivenUp", 17);
    TRP_JSON(b, "\"");
    TRP_JSON_INT(b, "Stage ID", t->stage.n);
    TRP_JSON_TEXT(b, "Stage Name", trp_statistics_stage_name(run, t->stage));
    TRP_JSON_INT(b, "Task Index", t->task);
    if (t->item) {
        TRP_JSON(b, ",\"Item\":");
        trp_json_string(b, t->item, t->item_size);
    }
    if (skipped) {
        TRP_JSON_INT(b, "Parent Stage ID", t->parent.n);
        TRP_JSON_TEXT(b, "Parent Stage Name",
                      trp_statistics_stage_name(run, t->parent));
        TRP_JSON_INT(b, "Parent Task Index", t->parent_task);
    } else {
        TRP_JSON_INT(b, "Failures", t->failures);
        TRP_JSON_TEXT(b, "Reason", t->reason);
    }
    if (t->log)
        TRP_JSON_TEXT(b, "Log", t->log);
    TRP_JSON_INT(b, "Timestamp", trp_ms(at));
    TRP_JSON(b, "}\n");
}

void trp_line_stage_skipped(struct trp_buf *b, const struct trp_stage_statistics *s,
                            const char *why)
{
    TRP_JSON(b, "{\"Event\":\"TroupeStageSkipped\"");
    TRP_JSON_INT(b, "Stage ID", s->stage.n);
    TRP_JSON_INT(b, "Stage Attempt ID", s->attempt);
    TRP_JSON_TEXT(b, "Stage Name", s->name);
    TRP_JSON_TEXT(b, "Outcome", trp_outcome_name(s->outcome));
    if (*why)
        TRP_JSON_TEXT(b, "Reason", why);
    TRP_JSON_INT(b, "Timestamp", trp_ms(s->ended));
    TRP_JSON(b, "}\n");
}

void trp_line_stage_completed(struct trp_buf *b, const struct trp_statistics *run,
                              const struct trp_stage_statistics *s, const char *failure)
{
    struct stage_info info = {.stage = s->stage.n,
                              .attempt = s->attempt,
                              .ntasks = s->ntasks,
                              .profile = s->profile.n,
                              .name = s->name,
                              .failure = failure,
                              .parents = s->parents,
                              .nparents = s->nparents,
                              .submitted = s->began,
                              .completed = s->ended,
                              .all = run->accumulated,
                              .accumulated = s->accumulated,
                              .naccumulated = s->naccumulated};
    TRP_JSON(b, "{\"Event\":\"SparkListenerStageCompleted\",\"Stage Info\":");
    stage_info(b, &info);
    TRP_JSON(b, "}\n");
}

static void resource(struct trp_buf *b, const struct trp_resource_addresses *r)
{
    trp_json_text(b, r->name);
    TRP_JSON(b, ":{\"name\":");
    trp_json_text(b, r->name);
    TRP_JSON(b, ",\"addresses\":[");
    for (uint32_t i = 0; i < r->naddresses; i++) {
        trp_json_comma(b);
        trp_json_text(b, r->addresses[i]);
    }
    TRP_JSON(b, "]}");
}

void trp_line_executor_added(struct trp_buf *b, trp_executor_id e, const char *host,
                             const struct trp_resource_profile *p,
                             const struct trp_resource_addresses *resources,
                             uint32_t nresources, int64_t requested, int64_t at)
{
    TRP_JSON(b, "{\"Event\":\"SparkListenerExecutorAdded\"");
    TRP_JSON_INT(b, "Timestamp", trp_ms(at));
    TRP_JSON_QUOTED(b, "Executor ID", e.n);
    TRP_JSON(b, ",\"Executor Info\":{\"Host\":");
    trp_json_text(b, host);
    TRP_JSON_INT(b, "Total Cores", p->cores);
    TRP_JSON(b, ",\"Log Urls\":{},\"Attributes\":{},\"Resources\":{");
    for (uint32_t i = 0; i < nresources; i++) {
        trp_json_comma(b);
        resource(b, &resources[i]);
    }
    TRP_JSON(b, "},\"Resource Profile Id\":");
    trp_json_int(b, p->id.n);
    TRP_JSON_INT(b, "Registration Time", trp_ms(at));
    TRP_JSON_INT(b, "Request Time", trp_ms(requested > 0 ? requested : at));
    TRP_JSON(b, "}}\n");
}

void trp_line_executor_removed(struct trp_buf *b, trp_executor_id e, const char *reason,
                               int64_t at)
{
    TRP_JSON(b, "{\"Event\":\"SparkListenerExecutorRemoved\"");
    TRP_JSON_INT(b, "Timestamp", trp_ms(at));
    TRP_JSON_QUOTED(b, "Executor ID", e.n);
    TRP_JSON_TEXT(b, "Removed Reason", reason);
    TRP_JSON(b, "}\n");
}

void trp_line_job_end(struct trp_buf *b, trp_job_id job, enum trp_outcome outcome,
                      const char *failure, int64_t at)
{
    TRP_JSON(b, "{\"Event\":\"SparkListenerJobEnd\"");
    TRP_JSON_INT(b, "Job ID", job.n);
    TRP_JSON_INT(b, "Completion Time", trp_ms(at));
    if (outcome == TRP_OUTCOME_SUCCEEDED) {
        TRP_JSON(b, ",\"Job Result\":{\"Result\":\"JobSucceeded\"}}\n");
        return;
    }
    TRP_JSON(b,
             ",\"Job Result\":{\"Result\":\"JobFailed\",\"Exception\":{\"Message\":");
    trp_json_text(b, failure && failure[0] ? failure : trp_outcome_name(outcome));
    TRP_JSON(b, ",\"Stack Trace\":[]}},\"Troupe Outcome\":");
    trp_json_text(b, trp_outcome_name(outcome));
    TRP_JSON(b, "}\n");
}

void trp_line_application_end(struct trp_buf *b, int64_t at, int exit_code,
                              const struct trp_log_past *past)
{
    TRP_JSON(b, "{\"Event\":\"SparkListenerApplicationEnd\"");
    TRP_JSON_INT(b, "Timestamp", trp_ms(at));
    TRP_JSON_INT(b, "ExitCode", exit_code);
    trp_log_past_put(b, past);
    TRP_JSON(b, "}\n");
}
