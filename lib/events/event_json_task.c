/*
 * Lines about tasks. These are the ones that there may be millions of: a TaskEnd is
 * 1.6 KiB, nearly all of it constant (metrics that have no meaning here), so that it is
 * a handful of copies and a dozen numbers.
 */
#include "events/event_json.h"

/* An attempt that belongs to no executor (a gang) is run by the driver itself. */
static void executor_id(struct trp_buf *b, uint32_t e)
{
    TRP_JSON(b, "\"");
    if (e == TRP_NONE)
        TRP_JSON(b, "driver");
    else
        trp_json_int(b, e);
    TRP_JSON(b, "\"");
}

static void task_info(struct trp_buf *b, const struct trp_task_record *r, bool ended)
{
    bool failed = ended && trp_end_is_failure(r->status);
    TRP_JSON(b, ",\"Task Info\":{\"Task ID\":");
    trp_json_int(b, r->task_id);
    TRP_JSON_INT(b, "Index", r->task);
    TRP_JSON_INT(b, "Attempt", r->number);
    TRP_JSON_INT(b, "Partition ID", r->task);
    TRP_JSON_INT(b, "Launch Time", r->launched_ms);
    TRP_JSON(b, ",\"Executor ID\":");
    executor_id(b, r->executor);
    TRP_JSON(b, ",\"Host\":");
    trp_put_raw(b, r->host, strlen(r->host));
    TRP_JSON_TEXT(b, "Locality", trp_level_name(r->level));
    TRP_JSON_BOOL(b, "Speculative", r->speculative);
    TRP_JSON(b, ",\"Getting Result Time\":0,\"Finish Time\":");
    trp_json_int(b, ended ? r->ended_ms : 0);
    TRP_JSON_BOOL(b, "Failed", failed);
    TRP_JSON_BOOL(b, "Killed", ended && !failed && r->status != TRP_END_SUCCESS);
    TRP_JSON(b, ",\"Accumulables\":[");
    if (ended && r->accumulables)
        trp_put_raw(b, r->accumulables, strlen(r->accumulables));
    TRP_JSON(b, "]}");
}

static void stage_ids(struct trp_buf *b, uint32_t stage, uint32_t attempt)
{
    TRP_JSON(b, "\"Stage ID\":");
    trp_json_int(b, stage);
    TRP_JSON_INT(b, "Stage Attempt ID", attempt);
}

void trp_line_task_start(struct trp_buf *b, const struct trp_task_record *r)
{
    TRP_JSON(b, "{\"Event\":\"SparkListenerTaskStart\",");
    stage_ids(b, r->stage, r->stage_attempt);
    task_info(b, r, false);
    TRP_JSON(b, "}\n");
}

/* The name under which Spark's readers show how it failed. */
static const char *failure_class(uint8_t status)
{
    switch (status) {
    case TRP_END_EXIT:
        return "troupe.ExitStatus";
    case TRP_END_SIGNAL:
        return "troupe.Signal";
    case TRP_END_TIMEOUT:
        return "troupe.Timeout";
    case TRP_END_MEMORY:
        return "troupe.OutOfMemory";
    case TRP_END_START:
        return "troupe.NotStarted";
    case TRP_END_MISTAKE:
        return "troupe.Mistake";
    case TRP_END_OUTPUT:
        return "troupe.OutputNotMade";
    default:
        return "troupe.Platform";
    }
}

/* Spark's address has an executor and a port; files belong to their host here. */
static void fetch_failed(struct trp_buf *b, const struct trp_task_record *r,
                         const char *reason)
{
    const struct trp_task_fetch *f = r->fetch;
    TRP_JSON(b, "\"FetchFailed\",\"Block Manager Address\":");
    if (f->executor == TRP_NONE)
        TRP_JSON(b, "null");
    else
        trp_json_block_manager(b, f->executor, f->host);
    TRP_JSON_INT(b, "Shuffle ID", f->shuffle);
    TRP_JSON_INT(b, "Map ID", f->map_id);
    TRP_JSON_INT(b, "Map Index", f->map_index);
    TRP_JSON_INT(b, "Reduce ID", r->task);
    TRP_JSON_TEXT(b, "Message", reason);
}

/* Spark's reasons, with the words of contract.md as what they describe. */
static void end_reason(struct trp_buf *b, const struct trp_task_record *r)
{
    const char *reason = r->reason ? r->reason : "";
    TRP_JSON(b, ",\"Task End Reason\":{\"Reason\":");
    switch (r->status) {
    case TRP_END_SUCCESS:
        TRP_JSON(b, "\"Success\"}");
        return;
    case TRP_END_KILLED:
    case TRP_END_RECALLED:
        TRP_JSON(b, "\"TaskKilled\",\"Kill Reason\":");
        trp_json_text(b, reason);
        TRP_JSON(b, ",\"Accumulator Updates\":[]");
        break;
    case TRP_END_LOST:
        TRP_JSON(b, "\"ExecutorLostFailure\",\"Executor ID\":");
        executor_id(b, r->executor);
        TRP_JSON_BOOL(b, "Exit Caused By App", r->counted);
        TRP_JSON_TEXT(b, "Loss Reason", reason);
        break;
    case TRP_END_DENIED: /* Spark calls a stage a job here */
        TRP_JSON(b, "\"TaskCommitDenied\",\"Job ID\":");
        trp_json_int(b, r->stage);
        TRP_JSON(b, ",\"Partition ID\":");
        trp_json_int(b, r->task);
        TRP_JSON(b, ",\"Attempt Number\":");
        trp_json_int(b, r->number);
        break;
    case TRP_END_FETCH:
        if (r->fetch) {
            fetch_failed(b, r, reason);
            break;
        }
        /* fall through */
    default:
        TRP_JSON(b, "\"ExceptionFailure\",\"Class Name\":");
        trp_json_text(b, failure_class(r->status));
        TRP_JSON_TEXT(b, "Description", reason);
        TRP_JSON(b, ",\"Stack Trace\":[],\"Full Stack Trace\":");
        trp_json_text(b, reason);
        TRP_JSON(b, ",\"Accumulator Updates\":[]");
        break;
    }
    TRP_JSON_TEXT(b, "Troupe Reason", reason);
    TRP_JSON_TEXT(b, "Troupe Status", trp_end_status_name(r->status));
    TRP_JSON_INT(b, "Troupe Code", r->code);
    TRP_JSON_BOOL(b, "Troupe Counted", r->counted);
    TRP_JSON(b, "}");
}

/* What Spark has no metrics of. */
static void cache(struct trp_buf *b, const struct trp_end_data *d)
{
    TRP_JSON(b, ",\"Troupe Cache\":{\"Hits\":");
    trp_json_int(b, (int64_t)d->cache_hits);
    TRP_JSON_INT(b, "Misses", d->cache_misses);
    TRP_JSON_INT(b, "Bytes Read", d->cache_bytes);
    TRP_JSON_INT(b, "Memory Bytes Kept", d->kept_memory);
    TRP_JSON_INT(b, "Disk Bytes Kept", d->kept_disk);
    TRP_JSON(b, "}");
}

static void metrics(struct trp_buf *b, const struct trp_task_record *r)
{
    TRP_JSON(b, ",\"Task Executor Metrics\":{},\"Task Metrics\":{"
                "\"Executor Deserialize Time\":0,\"Executor Deserialize CPU Time\":0,"
                "\"Executor Run Time\":");
    trp_json_int(b, r->run_ns / 1000000);
    TRP_JSON_INT(b, "Executor CPU Time", r->cpu_ns);
    TRP_JSON_INT(b, "Peak Execution Memory", r->peak_kib * 1024);
    TRP_JSON(b, ",\"Peak On Heap Execution Memory\":0,"
                "\"Peak Off Heap Execution Memory\":0,\"Result Size\":");
    trp_json_int(b, (int64_t)r->result_size);
    TRP_JSON(b, ",\"JVM GC Time\":0,\"Result Serialization Time\":0,"
                "\"Memory Bytes Spilled\":0");
    const struct trp_end_data none = {0}, *d = r->data ? r->data : &none;
    TRP_JSON_INT(b, "Disk Bytes Spilled", d->spilled_bytes);
    TRP_JSON(b, ",\"Shuffle Read Metrics\":{\"Remote Blocks Fetched\":");
    trp_json_int(b, (int64_t)d->remote_blocks);
    TRP_JSON_INT(b, "Local Blocks Fetched", d->local_blocks);
    TRP_JSON_INT(b, "Fetch Wait Time", d->wait_ns / 1000000);
    TRP_JSON_INT(b, "Remote Bytes Read", d->remote_bytes);
    TRP_JSON(b, ",\"Remote Bytes Read To Disk\":0");
    TRP_JSON_INT(b, "Local Bytes Read", d->local_bytes);
    TRP_JSON_INT(b, "Total Records Read", d->read_records);
    TRP_JSON(b, ",\"Remote Requests Duration\":0,\"Push Based Shuffle\":{"
                "\"Corrupt Merged Block Chunks\":0,\"Merged Fetch Fallback Count\":0,"
                "\"Merged Remote Blocks Fetched\":0,\"Merged Local Blocks Fetched\":0,"
                "\"Merged Remote Chunks Fetched\":0,\"Merged Local Chunks Fetched\":0,"
                "\"Merged Remote Bytes Read\":0,\"Merged Local Bytes Read\":0,"
                "\"Merged Remote Requests Duration\":0}},"
                "\"Shuffle Write Metrics\":{\"Shuffle Bytes Written\":");
    trp_json_int(b, (int64_t)d->written_bytes);
    TRP_JSON_INT(b, "Shuffle Write Time", d->write_ns);
    TRP_JSON_INT(b, "Shuffle Records Written", d->written_records);
    TRP_JSON(b, "},\"Input Metrics\":{\"Bytes Read\":");
    trp_json_int(b, (int64_t)r->bytes_in);
    TRP_JSON_INT(b, "Records Read", r->records_in);
    TRP_JSON(b, "},\"Output Metrics\":{\"Bytes Written\":");
    trp_json_int(b, (int64_t)r->bytes_out);
    TRP_JSON_INT(b, "Records Written", r->records_out);
    TRP_JSON(b, "}");
    if (d->cache_hits | d->cache_misses)
        cache(b, d);
    TRP_JSON(b, ",\"Updated Blocks\":[");
    if (r->blocks)
        trp_put_raw(b, r->blocks, strlen(r->blocks));
    TRP_JSON(b, "]}");
}

void trp_line_task_end(struct trp_buf *b, const struct trp_task_record *r)
{
    TRP_JSON(b, "{\"Event\":\"SparkListenerTaskEnd\",");
    stage_ids(b, r->stage, r->stage_attempt);
    TRP_JSON_TEXT(b, "Task Type", r->map ? "ShuffleMapTask" : "ResultTask");
    end_reason(b, r);
    task_info(b, r, true);
    metrics(b, r);
    if (r->ranks > 0)
        TRP_JSON_INT(b, "Troupe Ranks", r->ranks);
    /* Spark's times are ms; a task here may take microseconds. */
    TRP_JSON_INT(b, "Troupe Run Time ns", r->run_ns);
    TRP_JSON(b, "}\n");
}

void trp_line_summary_begin(struct trp_buf *b, const struct trp_stage_statistics *s,
                            uint32_t first, const char *why, int64_t at)
{
    TRP_JSON(b, "{\"Event\":\"TroupeTaskSummaryBegin\",");
    stage_ids(b, s->stage.n, s->attempt);
    TRP_JSON_TEXT(b, "Stage Name", s->name);
    TRP_JSON_INT(b, "First Task ID", first);
    TRP_JSON_TEXT(b, "Why", why);
    TRP_JSON_INT(b, "Timestamp", at / 1000000);
    TRP_JSON(b, "}\n");
}

static void quantiles(struct trp_buf *b, const struct trp_durations *d)
{
    static const struct {
        const char *name;
        uint32_t permille;
    } of[] = {
        {"\"min\":", 0   },
        {"\"p05\":", 50  },
        {"\"p25\":", 250 },
        {"\"p50\":", 500 },
        {"\"p75\":", 750 },
        {"\"p95\":", 950 },
        {"\"p99\":", 990 },
        {"\"max\":", 1000}
    };
    TRP_JSON(b, ",\"Run Time Quantiles ns\":{");
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        trp_json_comma(b);
        trp_put_raw(b, of[i].name, strlen(of[i].name));
        trp_json_int(b, trp_durations_quantile(d, of[i].permille));
    }
    TRP_JSON(b, "}");
}

static void share(struct trp_buf *b, uint32_t e, uint64_t tasks, int64_t run_ns)
{
    trp_json_comma(b);
    executor_id(b, e);
    TRP_JSON(b, ":{\"Tasks\":");
    trp_json_int(b, (int64_t)tasks);
    TRP_JSON_INT(b, "Run Time", run_ns / 1000000);
    TRP_JSON(b, "}");
}

static void shares(struct trp_buf *b, const struct trp_summarised *u,
                   uint32_t first_executor)
{
    TRP_JSON(b, ",\"Executors\":{");
    if (u->gangs > 0)
        share(b, TRP_NONE, u->gangs, u->run_ns);
    for (uint32_t e = 0; e < u->nexecutors; e++)
        if (u->by_executor[e].tasks > 0)
            share(b, first_executor + e, u->by_executor[e].tasks,
                  u->by_executor[e].run_ns);
    TRP_JSON(b, "}");
}

static void sums(struct trp_buf *b, const struct trp_summarised *u)
{
    static const char *const names[] = {
#define NAME(flow, in, name, sum) ",\"" sum "\":",
        TRP_LOG_FLOWS(NAME)
#undef NAME
    };
    for (int i = 0; i < TRP_FLOWS; i++) {
        trp_put_raw(b, names[i], strlen(names[i]));
        trp_json_int(b, i == TRP_FLOW_RUN ? u->run_ns / 1000000 : (int64_t)u->flow[i]);
    }
}

void trp_line_task_summary(struct trp_buf *b, const struct trp_stage_statistics *s,
                           uint32_t first_executor, int64_t at)
{
    const struct trp_summarised *u = s->summarised;
    TRP_JSON(b, "{\"Event\":\"TroupeTaskSummary\",");
    stage_ids(b, s->stage.n, s->attempt);
    TRP_JSON_TEXT(b, "Stage Name", s->name);
    TRP_JSON_INT(b, "Timestamp", at / 1000000);
    TRP_JSON_INT(b, "Tasks", u->succeeded + u->killed + u->recalled);
    TRP_JSON_INT(b, "Succeeded", u->succeeded);
    TRP_JSON_INT(b, "Killed", u->killed);
    TRP_JSON_INT(b, "Recalled", u->recalled);
    TRP_JSON_INT(b, "Failed In Full", u->in_full);
    TRP_JSON(b, ",\"Localities\":{");
    for (int i = 0; i < TRP_LEVELS; i++) {
        if (u->levels[i] == 0)
            continue;
        trp_json_comma(b);
        trp_json_text(b, trp_level_name(i));
        TRP_JSON(b, ":");
        trp_json_int(b, (int64_t)u->levels[i]);
    }
    TRP_JSON(b, "}");
    quantiles(b, &u->durations);
    sums(b, u);
    shares(b, u, first_executor);
    TRP_JSON(b, "}\n");
}
