/*
 * What a virtual run, or several of them side by side, came to: tables and JSON.
 *
 * The JSON of a run (seconds, hours, amounts; null: never):
 *
 *     {"policy": "inside-first", "outcome": "succeeded", "seed": 0,
 *      "makespan": 3600.5, "start": 600.0, "jobs": 3, "tasks": 4000,
 *      "executors": {"started": 40, "most": 40, "lost": 0},
 *      "held": {"nodes": 12.5, "cores": 800, "devices": {"gpu": 4}},   hours
 *      "used": {…},
 *      "stages": [{"name": "split", "profile": "prep", "outcome": "succeeded",
 *                  "tasks": 10, "ranks": 0, "ready": 600.0, "first": 630.0,
 *                  "end": 700.0, "queue_wait": 30.0, "run": 70.0,
 *                  "task_wait_mean": 35.1, "attempts": 10, "failures": 0,
 *                  "given_up": 0, "skipped": 0,
 *                  "task": {"median": 20.0, "p95": 30.0, "max": 31.0},
 *                  "held": {…}, "used": {…}, "why": null}]}
 *
 * ready: all stages before it are done; first: its first task began; times from the
 * submission of the run. Several runs: {"runs": [run, …]}, without stages.
 */
#ifndef TRP_SIM_RUN_VIRTUAL_REPORT_H
#define TRP_SIM_RUN_VIRTUAL_REPORT_H

#include <stdio.h>

#include "sim/run/virtual_run.h"

struct trp_virtual_play {
    const char *policy;
    uint64_t seed;
    struct trp_virtual_result result;
};

/* TRP_ENOMEM. */
int trp_virtual_report(const struct trp_virtual_play *p, bool json, FILE *out,
                       trp_error *err);
int trp_virtual_compare(const struct trp_virtual_play *v, uint32_t n, bool json,
                        FILE *out, trp_error *err);

#endif
