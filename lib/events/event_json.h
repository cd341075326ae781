/*
 * The lines of the event log that Spark has too, and those of summaries: one function an
 * event, each adding one line with its LF. Short ones of ours are made in event_calls.c.
 *
 * Fields are those of Spark's JsonProtocol in its order, "Event" first and no blanks,
 * because Spark's History Server finds a log by how its lines begin; what has no
 * meaning here is 0 or empty. What Spark has no field for is added as "Troupe …", which
 * its readers skip, as they skip events they do not know.
 */
#ifndef TRP_EVENTS_EVENT_JSON_H
#define TRP_EVENTS_EVENT_JSON_H

#include "events/json_text.h"
#include "events/log_past.h"
#include "events/statistics.h"

/* One attempt, as it travels through the ring: what its two lines need. */
struct trp_task_fetch {
    uint32_t shuffle, map_index, map_id; /* trp_attempt_number */
    uint32_t executor;                   /* TRP_NONE: nobody */
    char host[256];
};
struct trp_task_record {
    uint8_t level, status; /* enum trp_level, trp_end_status */
    bool counted, speculative;
    uint32_t stage, stage_attempt, task, number, executor;
    uint32_t task_id; /* trp_attempt_number */
    int32_t code;
    uint32_t ranks;
    uint64_t result_size;
    int64_t launched_ms, ended_ms;
    int64_t run_ns, cpu_ns, peak_kib;
    bool map; /* its stage leaves map outputs */
    uint64_t records_in, records_out, bytes_in, bytes_out;
    struct trp_end_data *data;    /* its own; NULL: neither read nor written */
    struct trp_task_fetch *fetch; /* its own; NULL: no fetch failure */
    char *accumulables;           /* its own: what it added, as JSON; NULL: nothing */
    char *blocks; /* its own: kept partitions that it changed, as JSON; NULL: none */
    const char *host; /* a quoted JSON string */
    char *reason;     /* NULL: success */
};

void trp_line_log_start(struct trp_buf *b);
/* `first`: when the first start of this application was; `at`: this one. */
void trp_line_application_start(struct trp_buf *b, const char *app_name,
                                const char *app_id, const char *user, int64_t first,
                                int64_t at);
void trp_line_environment(struct trp_buf *b, const char *app_name, const char *app_id,
                          const char *const *keys, const char *const *values,
                          uint32_t n);
void trp_line_profile(struct trp_buf *b, const struct trp_resource_profile *p);
void trp_line_job_start(struct trp_buf *b, const struct trp_event_job *job, int64_t at,
                        const struct trp_event_stage *stages, uint32_t n);
/* Spark's BlockManagerId. */
void trp_json_block_manager(struct trp_buf *b, uint32_t executor, const char *host);
void trp_line_block(struct trp_buf *b, const struct trp_event_block *block);
void trp_line_stage_submitted(struct trp_buf *b, const struct trp_event_stage *s,
                              int64_t at);
void trp_line_task_given_up(struct trp_buf *b, const struct trp_statistics *run,
                            const struct trp_event_given_up *t, int64_t at);
/* A stage that was never submitted and is not going to be; `why`: "" unknown. */
void trp_line_stage_skipped(struct trp_buf *b, const struct trp_stage_statistics *s,
                            const char *why);
void trp_line_stage_completed(struct trp_buf *b, const struct trp_statistics *run,
                              const struct trp_stage_statistics *s,
                              const char *failure);
/* Spark's AccumulableInfo; `update` NULL: of a stage. Adds a comma where one is needed.
 */
void trp_json_accumulable(struct trp_buf *b, uint32_t id, const char *name,
                          const int64_t *update, int64_t value);
/* One of a task's "Updated Blocks", behind a comma unless it is the first of `b`. */
void trp_json_updated_block(struct trp_buf *b, const struct trp_event_block *block);
void trp_line_executor_added(struct trp_buf *b, trp_executor_id e, const char *host,
                             const struct trp_resource_profile *p,
                             const struct trp_resource_addresses *resources,
                             uint32_t nresources, int64_t requested, int64_t at);
void trp_line_executor_removed(struct trp_buf *b, trp_executor_id e, const char *reason,
                               int64_t at);
void trp_line_task_start(struct trp_buf *b, const struct trp_task_record *r);
void trp_line_task_end(struct trp_buf *b, const struct trp_task_record *r);
/* From attempt `first` on, attempts of the stage that do not fail have no lines. */
void trp_line_summary_begin(struct trp_buf *b, const struct trp_stage_statistics *s,
                            uint32_t first, const char *why, int64_t at);
/* The log calls executor 0 of the statistics `first_executor`. */
void trp_line_task_summary(struct trp_buf *b, const struct trp_stage_statistics *s,
                           uint32_t first_executor, int64_t at);
void trp_line_job_end(struct trp_buf *b, trp_job_id job, enum trp_outcome outcome,
                      const char *failure, int64_t at);
void trp_line_application_end(struct trp_buf *b, int64_t at, int exit_code,
                              const struct trp_log_past *past);

#endif
