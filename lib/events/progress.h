/*
 * Progress on stderr: a bar on a terminal, a line now and then (first after 5 s, then
 * doubling to one a minute) elsewhere; a line a stage that ended, above the bar. Never
 * more than ten updates a second, nothing at all after trp_progress_end.
 *
 * Lines begin with "troupe: "; where no terminal shows them as they come, with the
 * local time before it: "2026-11-22T22:15:30 troupe: stage split succeeded: …".
 *
 * A NULL trp_progress shows nothing, in every call.
 */
#ifndef TRP_EVENTS_PROGRESS_H
#define TRP_EVENTS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct trp_progress trp_progress;

struct trp_progress_view {
    uint32_t stages, stages_done;
    const char *stage; /* what runs, by the names of stages, or "" */
    uint32_t tasks, done, running, failures; /* of all submitted stages */
    uint32_t executors;
    const char *waiting; /* why nothing runs, or "" */
};

/* fd: stderr; `terminal`: draw a bar in place (width from TIOCGWINSZ). now_ns, here and
 * below, plus wall_offset_ns: the time since 1970. */
trp_progress *trp_progress_new(int fd, bool terminal, int64_t now_ns,
                               int64_t wall_offset_ns);
void trp_progress_update(trp_progress *p, int64_t now_ns,
                         const struct trp_progress_view *v);
/* A line of its own (a failed attempt, a message) that does not tear the bar. Of more
 * than ten a second the others are left out, and counted. */
void trp_progress_line(trp_progress *p, int64_t now_ns, const char *text);
/* The same of the run's end: never left out. Nor is the end of a stage. */
void trp_progress_end_line(trp_progress *p, int64_t now_ns, const char *text);
/* From now on the ends of all stages are told: they are those of one pipeline. */
void trp_progress_few_stages(trp_progress *p);
/* `outcome`: its trp_outcome_name. Of a program, after twenty stages, one that
 * succeeded within 100 ms without a failed attempt is not told. */
struct trp_progress_stage {
    const char *name, *outcome;
    uint32_t tasks, failures, given_up, skipped;
    int64_t wall_ns;
};
void trp_progress_stage_ended(trp_progress *p, int64_t now_ns,
                              const struct trp_progress_stage *s);
void trp_progress_end(trp_progress *p); /* frees; leaves the cursor on a fresh line */

#endif
