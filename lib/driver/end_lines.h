/*
 * What a pipeline's run says of tasks and stages when it is over, in this order: stages
 * of which tasks were given up, those tasks, the tasks and the stages that were skipped
 * for them, where the rest stands, and what ended the run. Of each kind the first
 * TRP_END_LINES_SHOWN.
 *
 *     struct trp_end_lines l = {.shown = "troupe-runs/r"};
 *     trp_end_line_add(&l, TRP_END_TASK_FAILED, "stage %s: …", …);
 *     for (i = 0; (line = trp_end_line(&l, i)); i++) …
 *     trp_end_lines_free(&l);
 */
#ifndef TRP_DRIVER_END_LINES_H
#define TRP_DRIVER_END_LINES_H

#include <stdbool.h>

#include "os/strings.h"

enum { TRP_END_LINES_SHOWN = 20 };

enum trp_end_line_kind {
    TRP_END_STAGE_LOST, /* some of its tasks were given up or skipped */
    TRP_END_TASK_FAILED,
    TRP_END_TASK_SKIPPED,
    TRP_END_STAGE_SKIPPED,
    TRP_END_REST, /* made here */
    TRP_END_LAST, /* what ended the run, or a stage otherwise */
    TRP_END_KINDS,
};

struct trp_end_lines {
    const char *shown; /* the run's folder, in messages; borrowed */
    struct trp_strings lines[TRP_END_KINDS];
    uint32_t n[TRP_END_KINDS]; /* heard of, shown or not */
};

/* Is there room for one more of its kind? Else it need not be made, but for its count. */
bool trp_end_lines_room(const struct trp_end_lines *l, enum trp_end_line_kind kind);
/* Counts one more, and keeps its line if there is room. Without memory it is only
 * counted. */
void trp_end_line_add(struct trp_end_lines *l, enum trp_end_line_kind kind,
                      const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Line i; NULL behind the last. */
const char *trp_end_line(const struct trp_end_lines *l, uint32_t i);
void trp_end_lines_free(struct trp_end_lines *l);

#endif
