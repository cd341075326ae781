/*
 * Which stages make a file, as far as their `outputs` say before anything has run.
 *
 *     if (trp_made_above(p, stage, "parts/a.txt") == TRP_MADE_NO) …
 */
#ifndef TRP_DRIVER_MAKERS_H
#define TRP_DRIVER_MAKERS_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/pipeline.h"

enum trp_made {
    TRP_MADE_NO,    /* each stage above says what it makes, and none makes this */
    TRP_MADE_MAYBE, /* one above does not say what it makes */
    TRP_MADE_YES,
};

/* What a template of `outputs` or `inputs` can be for any task, as a pattern; malloc'ed,
 * NULL: out of memory. */
char *trp_made_pattern(const struct trp_pipeline_stage *s, const char *template);
/* Whether a stage of the pipeline says that it makes what the pattern matches. */
bool trp_made_at_all(const trp_pipeline *p, const char *pattern);
/* Whether one does that stage `s` comes after, directly or not. */
enum trp_made trp_made_above(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                             const char *pattern);
/* The stage that makes it while `s` has begun already, since `each` alone is between them;
 * NULL: there is none. */
const struct trp_pipeline_stage *trp_made_meanwhile(const trp_pipeline *p,
                                                    const struct trp_pipeline_stage *s,
                                                    const char *pattern);

#endif
