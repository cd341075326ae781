/* What files of `troupe report` share. */
#ifndef TRP_LAUNCHER_REPORT_H
#define TRP_LAUNCHER_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "events/account.h"
#include "events/run_parts.h"

/* report_account.c: a table of the profiles, and what does not agree. TRP_ENOMEM. */
int trp_report_account_print(const struct trp_run_record *r,
                             const struct trp_account *a, FILE *out, trp_error *err);
/* What sacct does not have, as one error; 0: nothing. */
int trp_report_account_lacks(const struct trp_account *a, trp_error *err);

/* report_json.c: one start of a run; `a` NULL: sacct was not asked; `p` NULL: without
 * what it was made of. */
json_t *trp_report_json(struct trp_run_record *r, const struct trp_account *a,
                        const struct trp_run_part *p);
/* All starts, in the document that --json prints; sacct was not asked. */
json_t *trp_report_document(const char *events, const struct trp_run_records *runs);

/* report_parts.c: the attempts of a stage; all else that a start was made of. */
json_t *trp_report_tries(const struct trp_run_part *p, uint32_t stage);
void trp_report_put_parts(json_t *start, const struct trp_run_part *p);

#endif
