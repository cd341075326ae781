/*
 * Scenario files: cases of the scheduling engine in virtual time (docs/scenarios.md).
 *
 * A file is read, run on the engine's own code, and gives one test point for each
 * `expect` and one for "no unexpected error", as TAP; or, for --trace, each decision as
 * a line of JSON. Nothing of a file is printed unless all of it could be read.
 *
 *     struct trp_sim_totals t = {0};
 *     trp_sim_scenario("a.yaml", NULL, 0, false, stdout, &t, &err);
 *     printf("1..%u\n", t.points);
 */
#ifndef TRP_SIM_SCENARIO_SCENARIO_H
#define TRP_SIM_SCENARIO_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/error.h"

struct trp_sim_totals {
    uint32_t points, failed; /* over all files; points are numbered through */
};

/* `text` NULL: that of the file. TRP_EINVAL: not a scenario, with FILE:LINE:COL;
 * TRP_ESYSTEM: it cannot be read. Both print nothing and leave the totals as they were. */
int trp_sim_scenario(const char *file, const char *text, size_t size, bool trace,
                     FILE *out, struct trp_sim_totals *t, trp_error *err);

#endif
