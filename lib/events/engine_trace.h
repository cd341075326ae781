/*
 * The trace of an engine: everything it was told and everything it decided, so that a
 * run can be decided again (`troupe sim --replay`). state/engine.trace of a run with
 * events.engine=true.
 *
 * Form. zstd frames of records; a record is a kind, a length and its bytes, of numbers
 * in as few bytes as they need (engine_fields.h):
 *
 *     head      "troupe engine trace", version, profile defaults, engine options
 *     profile   one that was added to the manager, as it was written
 *     expect    trp_engine_expect_executor: profile
 *     event     time since the last event, the event
 *     action    one that was taken, in their order
 *     end       numbers of events and actions: a trace without it was cut off
 *
 * A frame is written when 256 KiB have come together, and, of a live run, 5 s after the
 * last: a crash loses no more. The first failure to write is told at the end.
 *
 *     trp_engine_trace_new(file, &config, profiles, true, &t, &err);
 *     rc = trp_engine_trace_step(t, engine, now, &event, &err);
 *     while ((a = trp_engine_next(engine))) { trp_engine_trace_action(t, a); … }
 *     trp_engine_trace_close(t, &err);
 */
#ifndef TRP_EVENTS_ENGINE_TRACE_H
#define TRP_EVENTS_ENGINE_TRACE_H

#include "core/engine.h"

typedef struct trp_engine_trace trp_engine_trace;

/* Makes the file (0600). `profiles` must outlive the trace. TRP_ESYSTEM. */
int trp_engine_trace_new(const char *file, const struct trp_engine_config *config,
                         const trp_profiles *profiles, bool live,
                         trp_engine_trace **ret, trp_error *err);
/* trp_engine_step, noted. */
int trp_engine_trace_step(trp_engine_trace *t, trp_engine *e, int64_t now_ns,
                          const struct trp_event *event, trp_error *err);
/* trp_engine_expect_executor, noted. */
trp_executor_id trp_engine_trace_expect(trp_engine_trace *t, trp_engine *e,
                                        trp_profile_id profile);
/* An action that trp_engine_next gave. */
void trp_engine_trace_action(trp_engine_trace *t, const struct trp_action *a);
/* Ends the file and frees. TRP_ESYSTEM: it is not whole. `t` may be NULL. */
int trp_engine_trace_close(trp_engine_trace *t, trp_error *err);

/* ---- reading ---- */

enum trp_trace_kind {
    TRP_TRACE_PROFILE = 1,
    TRP_TRACE_EXPECT,
    TRP_TRACE_EVENT,
    TRP_TRACE_ACTION,
    TRP_TRACE_END,
};

struct trp_trace_record {
    enum trp_trace_kind kind;
    int64_t now_ns;                     /* EVENT; ns since the first */
    struct trp_event event;             /* EVENT */
    trp_profile_id profile;             /* EXPECT */
    struct trp_profile_builder builder; /* PROFILE */
    const uint8_t *bytes; /* EVENT, ACTION: as trp_fields_show_… takes them */
    size_t size;
};

typedef struct trp_trace_reader trp_trace_reader;

/* TRP_EINVAL: no such file, no trace, another version, broken or cut off; with the
 * place. */
int trp_trace_reader_open(const char *file, trp_trace_reader **ret, trp_error *err);
void trp_trace_reader_close(trp_trace_reader *r);
const struct trp_engine_config *trp_trace_reader_config(const trp_trace_reader *r);
const struct trp_profile_defaults *trp_trace_reader_defaults(const trp_trace_reader *r);
/* 1: a record, valid until the next call; 0: the end; else an error with the place. */
int trp_trace_reader_next(trp_trace_reader *r, struct trp_trace_record *ret,
                          trp_error *err);
/* Events read so far. */
uint64_t trp_trace_reader_events(const trp_trace_reader *r);

#endif
