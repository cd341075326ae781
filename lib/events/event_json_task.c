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
    TRP_JSON(b, ",\"Index\":");
    trp_json_int(b, r->task);
    TRP_JSON(b, ",\"Attempt\":");
    trp_json_int(b, r->number);
    TRP_JSON(b, ",\"Partition ID\":");
    trp_json_int(b, r->task);
    TRP_JSON(b, ",\"Launch Time\":");
    trp_json_int(b, r->launched_ms);
    TRP_JSON(b, ",\"Executor ID\":");
    executor_id(b, r->executor);
    TRP_JSON(b, ",\"Host\":");
    trp_put_raw(b, r->host, strlen(r->host));
    TRP_JSON(b, ",\"Locality\":");
    trp_json_text(b, trp_level_name(r->level));
    TRP_JSON(b, ",\"Speculative\":");
    trp_json_bool(b, r->speculative);
    TRP_JSON(b, ",\"Getting Result Time\":0,\"Finish Time\":");
    trp_json_int(b, ended ? r->ended_ms : 0);
    TRP_JSON(b, ",\"Failed\":");
    trp_json_bool(b, failed);
    TRP_JSON(b, ",\"Killed\":");
    trp_json_bool(b, ended && !failed && r->status != TRP_END_SUCCESS);
    TRP_JSON(b, ",\"Accumulables\":[");
    if (ended && r->accumulables)
        trp_put_raw(b, r->accumulables, strlen(r->accumulables));
    TRP_JSON(b, "]}");
}

static void stage_ids(struct trp_buf *b, uint32_t stage, uint32_t attempt)
{
    TRP_JSON(b, "\"Stage ID\":");
    trp_json_int(b, stage);
    TRP_JSON(b, ",\"Stage Attempt ID\":");
    trp_json_int(b, attempt);
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
    if (f->executor == TRP_NONE) {
        TRP_JSON(b, "null");
    } else {
        TRP_JSON(b, "{\"Executor ID\":");
        executor_id(b, f->executor);
        TRP_JSON(b, ",\"Host\":");
        trp_json_text(b, f->host);
        TRP_JSON(b, ",\"Port\":0}");
    }
    TRP_JSON(b, ",\"Shuffle ID\":");
    trp_json_int(b, f->shuffle);
    TRP_JSON(b, ",\"Map ID\":");
    trp_json_int(b, f->map_id);
    TRP_JSON(b, ",\"Map Index\":");
    trp_json_int(b, f->map_index);
    TRP_JSON(b, ",\"Reduce ID\":");
    trp_json_int(b, r->task);
    TRP_JSON(b, ",\"Message\":");
    trp_json_text(b, reason);
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
        TRP_JSON(b, ",\"Exit Caused By App\":");
        trp_json_bool(b, r->counted);
        TRP_JSON(b, ",\"Loss Reason\":");
        trp_json_text(b, reason);
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
        TRP_JSON(b, ",\"Description\":");
        trp_json_text(b, reason);
        TRP_JSON(b, ",\"Stack Trace\":[],\"Full Stack Trace\":");
        trp_json_text(b, reason);
        TRP_JSON(b, ",\"Accumulator Updates\":[]");
        break;
    }
    TRP_JSON(b, ",\"Troupe Reason\":");
    trp_json_text(b, reason);
    TRP_JSON(b, ",\"Troupe Status\":");
    trp_json_text(b, trp_end_status_name(r->status));
    TRP_JSON(b, ",\"Troupe Code\":");
    trp_json_int(b, r->code);
    TRP_JSON(b, ",\"Troupe Counted\":");
    trp_json_bool(b, r->counted);
    TRP_JSON(b, "}");
}

static void field(struct trp_buf *b, const char *name, uint64_t v)
{
    TRP_JSON(b, ",\"");
    trp_put_raw(b, name, strlen(name));
    TRP_JSON(b, "\":");
    trp_json_int(b, (int64_t)v);
}

/* What Spark has no metrics of. */
static void cache(struct trp_buf *b, const struct trp_end_data *d)
{
    TRP_JSON(b, ",\"Troupe Cache\":{\"Hits\":");
    trp_json_int(b, (int64_t)d->cache_hits);
    field(b, "Misses", d->cache_misses);
    field(b, "Bytes Read", d->cache_bytes);
    field(b, "Memory Bytes Kept", d->kept_memory);
    field(b, "Disk Bytes Kept", d->kept_disk);
    TRP_JSON(b, "}");
}

static void metrics(struct trp_buf *b, const struct trp_task_record *r)
{
    TRP_JSON(b, ",\"Task Executor Metrics\":{},\"Task Metrics\":{"
                "\"Executor Deserialize Time\":0,\"Executor Deserialize CPU Time\":0,"
                "\"Executor Run Time\":");
    trp_json_int(b, r->run_ns / 1000000);
    TRP_JSON(b, ",\"Executor CPU Time\":");
    trp_json_int(b, r->cpu_ns);
    TRP_JSON(b, ",\"Peak Execution Memory\":");
    trp_json_int(b, r->peak_kib * 1024);
    TRP_JSON(b, ",\"Peak On Heap Execution Memory\":0,"
                "\"Peak Off Heap Execution Memory\":0,\"Result Size\":");
    trp_json_int(b, (int64_t)r->result_size);
    TRP_JSON(b, ",\"JVM GC Time\":0,\"Result Serialization Time\":0,"
                "\"Memory Bytes Spilled\":0");
    const struct trp_end_data none = {0}, *d = r->data ? r->data : &none;
    field(b, "Disk Bytes Spilled", d->spilled_bytes);
    TRP_JSON(b, ",\"Shuffle Read Metrics\":{\"Remote Blocks Fetched\":");
    trp_json_int(b, (int64_t)d->remote_blocks);
    field(b, "Local Blocks Fetched", d->local_blocks);
    field(b, "Fetch Wait Time", d->wait_ns / 1000000);
    field(b, "Remote Bytes Read", d->remote_bytes);
    TRP_JSON(b, ",\"Remote Bytes Read To Disk\":0");
    field(b, "Local Bytes Read", d->local_bytes);
    field(b, "Total Records Read", d->read_records);
    TRP_JSON(b, ",\"Remote Requests Duration\":0,\"Push Based Shuffle\":{"
                "\"Corrupt Merged Block Chunks\":0,\"Merged Fetch Fallback Count\":0,"
                "\"Merged Remote Blocks Fetched\":0,\"Merged Local Blocks Fetched\":0,"
                "\"Merged Remote Chunks Fetched\":0,\"Merged Local Chunks Fetched\":0,"
                "\"Merged Remote Bytes Read\":0,\"Merged Local Bytes Read\":0,"
                "\"Merged Remote Requests Duration\":0}},"
                "\"Shuffle Write Metrics\":{\"Shuffle Bytes Written\":");
    trp_json_int(b, (int64_t)d->written_bytes);
    field(b, "Shuffle Write Time", d->write_ns);
    field(b, "Shuffle Records Written", d->written_records);
    TRP_JSON(b, "},\"Input Metrics\":{\"Bytes Read\":");
    trp_json_int(b, (int64_t)r->bytes_in);
    TRP_JSON(b, ",\"Records Read\":");
    trp_json_int(b, (int64_t)r->records_in);
    TRP_JSON(b, "},\"Output Metrics\":{\"Bytes Written\":");
    trp_json_int(b, (int64_t)r->bytes_out);
    TRP_JSON(b, ",\"Records Written\":");
    trp_json_int(b, (int64_t)r->records_out);
    TRP_JSON(b, "}");
    if (d->cache_hits | d->cache_misses)
        cache(b, d);
    TRP_JSON(b, ",\"Updated Blocks\":[]}");
}

void trp_line_task_end(struct trp_buf *b, const struct trp_task_record *r)
{
    TRP_JSON(b, "{\"Event\":\"SparkListenerTaskEnd\",");
    stage_ids(b, r->stage, r->stage_attempt);
    TRP_JSON(b, ",\"Task Type\":");
    trp_json_text(b, r->map ? "ShuffleMapTask" : "ResultTask");
    end_reason(b, r);
    task_info(b, r, true);
    metrics(b, r);
    if (r->ranks > 0) {
        TRP_JSON(b, ",\"Troupe Ranks\":");
        trp_json_int(b, r->ranks);
    }
    /* Spark's times are ms; a task here may take microseconds. */
    TRP_JSON(b, ",\"Troupe Run Time ns\":");
    trp_json_int(b, r->run_ns);
    TRP_JSON(b, "}\n");
}

void trp_line_summary_begin(struct trp_buf *b, const struct trp_stage_statistics *s,
                            uint32_t first, const char *why, int64_t at)
{
    TRP_JSON(b, "{\"Event\":\"TroupeTaskSummaryBegin\",");
    stage_ids(b, s->stage.n, s->attempt);
    TRP_JSON(b, ",\"Stage Name\":");
    trp_json_text(b, s->name);
    TRP_JSON(b, ",\"First Task ID\":");
    trp_json_int(b, first);
    TRP_JSON(b, ",\"Why\":");
    trp_json_text(b, why);
    TRP_JSON(b, ",\"Timestamp\":");
    trp_json_int(b, at / 1000000);
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
        if (i > 0)
            TRP_JSON(b, ",");
        trp_put_raw(b, of[i].name, strlen(of[i].name));
        trp_json_int(b, trp_durations_quantile(d, of[i].permille));
    }
    TRP_JSON(b, "}");
}

static void share(struct trp_buf *b, bool *first, uint32_t e, uint64_t tasks,
                  int64_t run_ns)
{
    if (!*first)
        TRP_JSON(b, ",");
    *first = false;
    executor_id(b, e);
    TRP_JSON(b, ":{\"Tasks\":");
    trp_json_int(b, (int64_t)tasks);
    TRP_JSON(b, ",\"Run Time\":");
    trp_json_int(b, run_ns / 1000000);
    TRP_JSON(b, "}");
}

static void shares(struct trp_buf *b, const struct trp_summarised *u,
                   uint32_t first_executor)
{
    bool first = true;
    TRP_JSON(b, ",\"Executors\":{");
    if (u->gangs > 0)
        share(b, &first, TRP_NONE, u->gangs, u->run_ns);
    for (uint32_t e = 0; e < u->nexecutors; e++)
        if (u->by_executor[e].tasks > 0)
            share(b, &first, first_executor + e, u->by_executor[e].tasks,
                  u->by_executor[e].run_ns);
    TRP_JSON(b, "}");
}

void trp_line_task_summary(struct trp_buf *b, const struct trp_stage_statistics *s,
                           uint32_t first_executor, int64_t at)
{
    const struct trp_summarised *u = s->summarised;
    TRP_JSON(b, "{\"Event\":\"TroupeTaskSummary\",");
    stage_ids(b, s->stage.n, s->attempt);
    TRP_JSON(b, ",\"Stage Name\":");
    trp_json_text(b, s->name);
    field(b, "Timestamp", (uint64_t)at / 1000000);
    field(b, "Tasks", u->succeeded + u->killed + u->recalled);
    field(b, "Succeeded", u->succeeded);
    field(b, "Killed", u->killed);
    field(b, "Recalled", u->recalled);
    field(b, "Failed In Full", u->in_full);
    TRP_JSON(b, ",\"Localities\":{");
    for (int i = 0, n = 0; i < TRP_LEVELS; i++) {
        if (u->levels[i] == 0)
            continue;
        if (n++ > 0)
            TRP_JSON(b, ",");
        trp_json_text(b, trp_level_name(i));
        TRP_JSON(b, ":");
        trp_json_int(b, (int64_t)u->levels[i]);
    }
    TRP_JSON(b, "}");
    quantiles(b, &u->durations);
    field(b, "Executor Run Time", (uint64_t)u->run_ns / 1000000);
    field(b, "Executor CPU Time", (uint64_t)u->cpu_ns);
    field(b, "Peak Execution Memory", (uint64_t)u->peak_kib * 1024);
    field(b, "Bytes Read", u->bytes_in);
    field(b, "Records Read", u->records_in);
    field(b, "Bytes Written", u->bytes_out);
    field(b, "Records Written", u->records_out);
    field(b, "Shuffle Bytes Read", u->data.read);
    field(b, "Shuffle Remote Bytes Read", u->data.remote);
    field(b, "Shuffle Bytes Written", u->data.written);
    field(b, "Disk Bytes Spilled", u->data.spilled);
    field(b, "Cache Hits", u->data.hits);
    field(b, "Cache Misses", u->data.misses);
    field(b, "Cache Bytes Read", u->data.cached);
    field(b, "Memory Bytes Kept", u->data.kept_memory);
    field(b, "Disk Bytes Kept", u->data.kept_disk);
    shares(b, u, first_executor);
    TRP_JSON(b, "}\n");
}
