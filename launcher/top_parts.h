/*
 * The parts of `troupe top` as lists of lines: a head, then rows. Internal to top_draw.c.
 */
#ifndef TRP_LAUNCHER_TOP_PARTS_H
#define TRP_LAUNCHER_TOP_PARTS_H

#include "top_draw.h"
#include "top_line.h"

struct trp_top_lines {
    char **v;
    uint32_t n, cap;
};

/* Ends the line and adds it. */
void trp_top_add(struct trp_top_lines *to, struct trp_top_line *l);
/* A head's line, begun. */
void trp_top_head(struct trp_top_line *l, const struct trp_top_view *v);
void trp_top_lines_free(struct trp_top_lines *l);
/* Text of any length in rows, `most` at most; those behind the first are indented. */
void trp_top_text(const char *text, const struct trp_top_view *v,
                  enum trp_colour colour, int most, struct trp_top_lines *to);

/* Nothing is added where there is nothing to show. `room`: rows that there are for
 * stages, for those that decide what is put together. */
void trp_top_stages(const json_t *document, const struct trp_top_view *v, int room,
                    struct trp_top_lines *to);
void trp_top_executors(const json_t *document, const struct trp_top_view *v,
                       struct trp_top_lines *to);
void trp_top_jobs(const json_t *document, const struct trp_top_view *v,
                  struct trp_top_lines *to);
void trp_top_waits(const json_t *document, const struct trp_top_view *v,
                   struct trp_top_lines *to);

/* "8s", "12m05s", "3h04m", "5d03h"; "?": ms < 0. Returns buf. */
char *trp_top_time(int64_t ms, char *buf, size_t size);
/* "12/s", "2.5/s", "3.2/m"; "?": it is not known. */
char *trp_top_rate(double rate, char *buf, size_t size);

#endif
