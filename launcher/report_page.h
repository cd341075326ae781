/*
 * `troupe report -o FILE.html`, and report.html at a run's end.
 */
#ifndef TRP_LAUNCHER_REPORT_PAGE_H
#define TRP_LAUNCHER_REPORT_PAGE_H

#include <jansson.h>

#include "core/base/bytes.h"
#include "events/page/page_facts.h"

struct trp_report_page {
    const char *file;   /* "-": stdout */
    const char *folder; /* of the run, absolute; NULL: there is only the log */
    const char *state;  /* of its last start: "running", "died", "exit status 3" … */
    bool live;          /* it goes on */
    bool in_a_hurry;    /* leave out what takes time: what it would have held */
    const json_t *report; /* the document of `troupe report --json` */
    const struct trp_page_facts *facts;
    struct trp_run_records *records;
};

/* A file is made whole or not at all. TRP_ESYSTEM, TRP_ENOMEM. */
int trp_report_page_write(const struct trp_report_page *p, trp_error *err);
/* The file's name ends in .html, or it is "-". TRP_EINVAL. */
int trp_report_page_check(const char *file, trp_error *err);

/* report_alternatives.c: what the run would have held otherwise, as JSON that page/page.h
 * puts into the page: {"how": text, "runs": [{"policy","makespan","nodes","cores",
 * "used"}]}, seconds; or {"why": text}: it is not known. A failure is b->failed. */
void trp_report_alternatives(const struct trp_report_page *p, struct trp_buf *b);

/* Of a run that has ended, in its folder. What goes wrong is a warning on stderr. */
void trp_report_page_of_run(const char *folder, int status);

#endif
