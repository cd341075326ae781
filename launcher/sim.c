/*
 * `troupe sim`: the engine that schedules real runs, in virtual time: scenarios, whole
 * runs, and the trace of a real run once more.
 */
#include <stdio.h>

#include "args.h"
#include "commands.h"
#include "sim/run/replay.h"
#include "sim/scenario/scenario.h"
#include "sim_whole.h"

enum option { CLUSTER = 1, DURATIONS, SEED, COMPARE, POLICY, RECORD, JSON };

static struct {
    struct trp_sim_call whole;
    bool trace;
    const char *replay;
    const char *of_whole; /* an option that only whole runs take, or NULL */
    char **files;         /* at the front of argv */
    int nfiles;
} call;

static const struct trp_arg table[] = {
    TRP_ARGS_FLAG("trace", &call.trace,
                  "print each decision as a line of JSON instead"),
    TRP_ARGS_LINES("\nPlays a whole run on a cluster that files describe: makespan, "
                   "waits, node-,\n"
                   "core- and device-hours held and used. The same seed gives the same "
                   "output.\n\n"),
    {"cluster",   TRP_ARG_VALUE, CLUSTER,   "FILE",
       "nodes, queue waits, start-up times, failures",                                                 NULL},
    {"durations", TRP_ARG_VALUE, DURATIONS, "FILE",
       "how long the tasks of each stage take",                                                        NULL},
    {"seed",      TRP_ARG_VALUE, SEED,      "N",    "of all that is drawn; default: scheduler.seed",
       NULL                                                                                                },
    {"compare",   TRP_ARG_FLAG,  COMPARE,   NULL,   "policies side by side",                         NULL},
    {"policy",    TRP_ARG_VALUE, POLICY,    "NAME",
       "monolithic, job-per-stage, inside-first, look-ahead or\n"
     "idle-timeout; default: as the options say",                                                      NULL},
    {"record",    TRP_ARG_VALUE, RECORD,    "FILE", "write the engine's trace",                      NULL},
    {"json",      TRP_ARG_FLAG,  JSON,      NULL,   "one JSON document",                             NULL},
    TRP_SETTINGS_SITE,
    TRP_SETTINGS_SET,
    TRP_SETTINGS_PARAM,
    TRP_ARGS_LINES(
        "\nReplays the trace of an engine (state/engine.trace of a run with\n"
        "events.engine=true): does it decide the same again?\n\n"),
    TRP_ARGS_TEXT("replay", &call.replay, "FILE", ""),
    TRP_ARGS_END,
};

/* ---- scenarios ---- */

/* Runs one file; its exit status. */
static int run_file(const char *file, bool trace, struct trp_sim_totals *t)
{
    trp_error err;
    if (trp_sim_scenario(file, NULL, 0, trace, stdout, t, &err) == 0)
        return 0;
    fflush(stdout);
    return trp_launcher_fail(&err);
}

static int run_files(char *const *files, int n, bool trace)
{
    struct trp_sim_totals t = {0};
    int status = 0;
    if (!trace)
        puts("TAP version 13");
    for (int i = 0; i < n; i++) {
        int one = run_file(files[i], trace, &t);
        status = one > status ? one : status;
    }
    if (!trace)
        printf("1..%u\n", t.points);
    if (status == 0 && t.failed > 0)
        status = 1;
    return trp_launcher_printed(status);
}

/* ---- which of the three ---- */

static const char *name_of(int what)
{
    const struct trp_arg *o = table;
    while (o->what != what)
        o++;
    return o->name;
}

static int on_argument(struct trp_args *a, int what, const char *value, trp_error *err)
{
    call.files = a->argv;
    switch (what) {
    case TRP_ARG_WORD: /* gathered at the front of argv, read already */
        a->argv[call.nfiles++] = a->argv[a->at - 1];
        return 0;
    case TRP_ARG_REST:
        while (a->at < a->argc)
            a->argv[call.nfiles++] = a->argv[a->at++];
        return 0;
    case CLUSTER:
        call.whole.cluster = value;
        break;
    case DURATIONS:
        call.whole.durations = value;
        break;
    case SEED:
        call.whole.seed = value;
        break;
    case COMPARE:
        call.whole.compare = true;
        break;
    case POLICY:
        call.whole.policy = value;
        break;
    case RECORD:
        call.whole.record = value;
        break;
    case JSON:
        call.whole.json = true;
        break;
    default:
        if (trp_settings_take(&call.whole.q, what, value, err) < 0)
            return err->code;
    }
    call.of_whole = name_of(what);
    return 0;
}

static int replay(void)
{
    trp_error err;
    if (call.of_whole || call.trace || call.nfiles)
        return trp_launcher_misuse("sim: --replay FILE stands alone");
    int code = trp_sim_replay(call.replay, stdout, &err);
    int status = trp_launcher_printed(0);
    return code < 0 ? trp_launcher_fail(&err) : status;
}

static int whole(void)
{
    if (!call.whole.cluster || !call.whole.durations)
        return trp_launcher_misuse("sim: --%s without --%s (see troupe sim --help)",
                                   call.of_whole,
                                   call.whole.cluster ? "durations" : "cluster");
    if (call.trace)
        return trp_launcher_misuse("sim: --trace is of scenarios; --record FILE keeps "
                                   "the decisions of a whole run");
    if (call.whole.compare && (call.whole.policy || call.whole.record))
        return trp_launcher_misuse("sim: --compare plays all policies; it goes without "
                                   "--policy and --record");
    if (call.nfiles != 1)
        return trp_launcher_misuse("sim: %s pipeline file (see troupe sim --help)",
                                   call.nfiles ? "more than one" : "no");
    call.whole.q.pipeline = call.files[0];
    return trp_launcher_sim_whole(&call.whole);
}

const struct trp_line trp_line_sim = {
    "sim",
    "usage: troupe sim [--trace] FILE...\n"
    "       troupe sim --cluster FILE --durations FILE [options] PIPELINE.yaml\n"
    "       troupe sim --replay FILE\n\n"
    "Runs scenario files and prints TAP: a test point for each `expect` and one for\n"
    "each file.\n\n",
    "\nExit status: 0; 1 a point does not hold, the run fails, a decision differs; 2\n"
    "wrong call or file; 3 a stage never fits the cluster.\n",
    table, .take = on_argument};

int trp_launcher_sim(void)
{
    if (call.replay)
        return replay();
    if (call.of_whole)
        return whole();
    if (call.nfiles == 0)
        return trp_launcher_misuse("sim: no scenario file (see troupe sim --help)");
    return run_files(call.files, call.nfiles, call.trace);
}
