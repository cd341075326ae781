/*
 * What an event log consists of; shared by event_log.c (its life, the writer thread)
 * and event_calls.c (what it is told). Everything but `ring`, `broken` and `error`
 * belongs to the thread that calls; the writer has `fd` and `lines`.
 */
#ifndef TRP_EVENTS_EVENT_LOG_STATE_H
#define TRP_EVENTS_EVENT_LOG_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <uthash.h>

#include "events/event_log.h"
#include "events/event_ring.h"
#include "events/log_past.h"
#include "events/statistics.h"

/* A host's name as a quoted JSON string: lives as long as the log, so that records may
 * point to it. */
struct trp_log_host {
    UT_hash_handle hh;
    char *json;
    char name[];
};

struct trp_event_log {
    char *file, *app_name, *user, *history_dir;
    struct trp_log_past past;  /* with what this start has used */
    struct trp_log_next first; /* what its ids count from in the log */
    enum trp_events_tasks tasks;
    struct trp_statistics *statistics;
    struct trp_log_host *hosts;
    trp_event_ring *ring;
    int64_t budget,
        budget_at; /* attempts that may still be written in full, and since when */

    pthread_t writer;
    bool running;         /* the writer has to be joined */
    int fd;               /* -1 once closed */
    struct trp_buf lines; /* formatted, not yet written */

    int64_t wait_ns;      /* for room */
    trp_error full;       /* why it waits … */
    atomic_bool waits;    /* … when this says so */
    bool waited;          /* the writer's: it has said so */
    atomic_flag breaking; /* the first failure takes it … */
    trp_error error;      /* … fills this … */
    atomic_bool broken;   /* … and says that it may be read */
};

void trp_event_log_out_of_memory(struct trp_event_log *l);

/* Writes the summaries of stages that have not ended. */
void trp_event_log_flush_summaries(struct trp_event_log *l, int64_t at);
/* Hands whole lines to the writer; takes the buffer. */
void trp_event_log_put_lines(struct trp_event_log *l, struct trp_buf *take_b);

#endif
