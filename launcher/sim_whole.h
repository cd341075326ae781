/*
 * `troupe sim --cluster …`: a whole run in virtual time (sim/run/whole.h).
 */
#ifndef TRP_LAUNCHER_SIM_WHOLE_H
#define TRP_LAUNCHER_SIM_WHOLE_H

#include <stdbool.h>

#include "settings.h"

struct trp_sim_call {
    struct trp_settings_request q; /* pipeline, site, options */
    const char *cluster, *durations, *policy, *record;
    const char *seed; /* NULL: scheduler.seed */
    bool compare, json;
};

/* Plays, prints; the exit status. */
int trp_launcher_sim_whole(const struct trp_sim_call *c);

#endif
