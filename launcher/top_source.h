/*
 * Where `troupe top` has its documents from: a process of its own that asks the run
 * (asking.h) when it is told to, so that a run which does not answer, or a step of its
 * job that does not come, holds up neither keys nor signals. It keeps what it asks by,
 * the step of a Slurm job, from one document to the next.
 *
 * A document is that of `troupe status --json`, and of each stage that has not ended, and
 * of the run:
 *
 *     "rate"  tasks a second; null: not known
 *     "left"  ms until it is done, if it goes on so; null: not known
 *     "left_least"  ms, of the run only: the longest "left" of a stage, or 0
 *     "note"  of the run only: why it is what the event log says; "": it is not
 *
 *     if (trp_top_source_start(&asking, &s, &err) == 0)
 *         trp_top_source_ask(&s);
 *     … when s.from can be read: trp_top_source_take(&s, &document, &err)
 *     trp_top_source_stop(&s);
 */
#ifndef TRP_LAUNCHER_TOP_SOURCE_H
#define TRP_LAUNCHER_TOP_SOURCE_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "asking.h"

struct trp_top_source {
    pid_t pid; /* of the process, which leads a group of its own */
    int to, from;
    bool asked;     /* and not answered */
    int64_t log_ns; /* the last document took so long to be read from a log, or 0 */
    struct trp_buf text; /* what has come of the answer */
};

/* To be called while there is one thread. TRP_ESYSTEM. */
int trp_top_source_start(struct trp_asking *a, struct trp_top_source *ret,
                         trp_error *err);
/* Asks for a document, unless it was asked for one already. */
void trp_top_source_ask(struct trp_top_source *s);
/* Takes what has come: TRP_EWAIT: not all of it; TRP_ENOENT: its process is gone; another
 * code, with its words: there is no document this time. */
int trp_top_source_take(struct trp_top_source *s, json_t **ret, trp_error *err);
/* Ends the process and what it has started. Safe in a signal handler. */
void trp_top_source_kill(const struct trp_top_source *s);
/* The same, and waits for it. */
void trp_top_source_stop(struct trp_top_source *s);

#endif
