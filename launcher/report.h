/* What files of `troupe report` share. */
#ifndef TRP_LAUNCHER_REPORT_H
#define TRP_LAUNCHER_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "events/account.h"
#include "events/comparison.h"
#include "events/page/page_facts.h"
#include "events/run_parts.h"

/* report_account.c: a table of the profiles, and what does not agree. TRP_ENOMEM. */
int trp_report_account_print(const struct trp_run_record *r,
                             const struct trp_account *a, FILE *out, trp_error *err);
/* What sacct does not have, as one error; 0: nothing. */
int trp_report_account_lacks(const struct trp_account *a, trp_error *err);

/* report_json.c: a start of a run, by its number; `a` NULL: sacct was not asked; `p` NULL:
 * without what it was made of. */
json_t *trp_report_json(struct trp_run_record *r, uint32_t start,
                        const struct trp_page_facts *f, const struct trp_account *a,
                        const struct trp_run_part *p);
/* To all starts what shows the logs of tasks that were given up (see_logs.h). */
void trp_report_put_logs(json_t *starts, const char *folder);
/* All starts, in the document that --json prints; sacct was not asked. */
json_t *trp_report_document(const char *events, const char *folder,
                            const struct trp_run_records *runs,
                            const struct trp_page_facts *f);

/* Two runs side by side. */
struct trp_report_side {
    const char *called; /* by the user, or its folder's name */
    const char *events;
    const char *state; /* "exit status 0", "running", "died" */
    bool live;         /* it goes on */
    struct trp_run_records *runs;
};

/* report_compare.c, report_compare_json.c. TRP_ENOMEM. */
int trp_report_compare(const struct trp_report_side side[2], bool all, trp_error *err);
int trp_report_compare_json(const struct trp_report_side side[2], trp_error *err);

/* report_changes.c: what got slower, what was held more, what does not compare. */
int trp_report_changes_print(const struct trp_report_side side[2],
                             const struct trp_comparison *c);
/* What does not compare: lines of text, which the caller frees. NULL: out of memory. */
char *trp_report_caveats(const struct trp_report_side side[2],
                         const struct trp_comparison *c);
/* How it ended: "succeeded", "not run", "-" where it is not in that run. */
const char *trp_report_end_word(const struct trp_compared *r);
/* "+35%", "×4.2"; "" where one of them is nothing. Returns buf. */
char *trp_report_part_text(double a, double b, char *buf, size_t size);

#endif
