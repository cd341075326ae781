/*
 * What `troupe top` shows of a document (top_source.h), as rows for a terminal of any
 * size; and what the user has chosen to see of it.
 *
 * Below two or three rows about the run are four *parts*: stages, executors, jobs, and
 * what is waited for. All have room where there is enough; else stages get most of it and
 * scroll, and each part can have all of it for itself.
 */
#ifndef TRP_LAUNCHER_TOP_DRAW_H
#define TRP_LAUNCHER_TOP_DRAW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum trp_top_part {
    TRP_TOP_ALL,
    TRP_TOP_STAGES,
    TRP_TOP_EXECUTORS,
    TRP_TOP_JOBS,
    TRP_TOP_WAITS,
    TRP_TOP_PARTS,
};

enum trp_top_order {
    TRP_TOP_BY_STATE, /* those that run first */
    TRP_TOP_BY_NAME,
    TRP_TOP_BY_BEGIN,
    TRP_TOP_BY_LEFT,
    TRP_TOP_ORDERS,
};

enum trp_top_filter { TRP_TOP_ANY, TRP_TOP_OPEN, TRP_TOP_FAILED, TRP_TOP_FILTERS };

struct trp_top_view {
    int rows, columns;
    bool utf8;
    bool help; /* the keys are shown */
    bool each; /* stages are not put together */
    enum trp_top_part part;
    enum trp_top_order order;
    enum trp_top_filter filter;
    int scroll;       /* the first row of the part that scrolls … */
    int scroll_most;  /* … as far as that goes, and … */
    int scroll_page;  /* … how many rows are seen at once: found by drawing */
    const char *news; /* instead of the keys; NULL: none */
};

struct trp_top_frame {
    char **lines; /* `n` of them */
    int n;
};

/* `document` NULL: there is none yet. */
void trp_top_draw(const json_t *document, struct trp_top_view *v,
                  struct trp_top_frame *ret);
void trp_top_frame_free(struct trp_top_frame *f);

/* Takes a key. False: it is none of those that choose what is shown. */
bool trp_top_choose(struct trp_top_view *v, int key);

#endif
