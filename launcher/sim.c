/*
 * `troupe sim`: the engine that schedules real runs, in virtual time: scenarios, whole
 * runs, and the trace of a real run once more.
 */
#include <stdio.h>

#include "args.h"
#include "commands.h"
#include "sim/replay.h"
#include "sim/scenario.h"
#include "sim_whole.h"

enum option {
    TRACE = 1,
    CLUSTER,
    DURATIONS,
    SEED,
    COMPARE,
    POLICY,
    RECORD,
    REPLAY,
    JSON,
};

static const struct trp_arg table[] = {
    {"trace",     TRP_ARG_FLAG,  TRACE,     NULL,
     "print each decision as a line of JSON instead"                                               },
    TRP_ARGS_LINES("\nPlays a whole run on a cluster that files describe: makespan, "
                   "waits, node-,\n"
                   "core- and device-hours held and used. The same seed gives the same "
                   "output.\n\n"),
    {"cluster",   TRP_ARG_VALUE, CLUSTER,   "FILE",
     "nodes, queue waits, start-up times, failures"                                                },
    {"durations", TRP_ARG_VALUE, DURATIONS, "FILE",
     "how long the tasks of each stage take"                                                       },
    {"seed",      TRP_ARG_VALUE, SEED,      "N",    "of all that is drawn; default: scheduler.seed"},
    {"compare",   TRP_ARG_FLAG,  COMPARE,   NULL,   "policies side by side"                        },
    {"policy",    TRP_ARG_VALUE, POLICY,    "NAME",
     "monolithic, job-per-stage, inside-first, look-ahead or\n"
     "idle-timeout; default: as the options say"                                                   },
    {"record",    TRP_ARG_VALUE, RECORD,    "FILE", "write the engine's trace"                     },
    TRP_ARGS_JSON(JSON),
    TRP_SETTINGS_SITE,
    TRP_SETTINGS_SET,
    TRP_SETTINGS_PARAM,
    TRP_ARGS_LINES(
        "\nReplays the trace of an engine (state/engine.trace of a run with\n"
        "events.engine=true): does it decide the same again?\n\n"),
    {"replay",    TRP_ARG_VALUE, REPLAY,    "FILE", ""                                             },
    TRP_ARGS_END,
};

/* ---- scenarios ---- */

/* Runs one file; its exit status. */
static int run_file(const char *file, bool trace, struct trp_sim_totals *t)
{
    trp_error err;
    if (trp_sim_scenario(file, trace, stdout, t, &err) == 0)
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

struct call {
    struct trp_sim_call whole;
    bool trace;
    const char *replay;
    const char *of_whole; /* an option that only whole runs take, or NULL */
    int nfiles;           /* at the front of argv */
};

static const char *name_of(int what)
{
    const struct trp_arg *o = table;
    while (o->what != what)
        o++;
    return o->name;
}

static int take(void *context, struct trp_args *a, int what, const char *value,
                trp_error *err)
{
    struct call *c = context;
    switch (what) {
    case TRP_ARG_WORD: /* gathered at the front of argv, read already */
        a->argv[c->nfiles++] = a->argv[a->at - 1];
        return 0;
    case TRP_ARG_REST:
        while (a->at < a->argc)
            a->argv[c->nfiles++] = a->argv[a->at++];
        return 0;
    case TRACE:
        c->trace = true;
        return 0;
    case REPLAY:
        c->replay = value;
        return 0;
    case CLUSTER:
        c->whole.cluster = value;
        break;
    case DURATIONS:
        c->whole.durations = value;
        break;
    case SEED:
        c->whole.seed = value;
        break;
    case COMPARE:
        c->whole.compare = true;
        break;
    case POLICY:
        c->whole.policy = value;
        break;
    case RECORD:
        c->whole.record = value;
        break;
    case JSON:
        c->whole.json = true;
        break;
    default:
        if (trp_settings_take(&c->whole.q, what, value, err) < 0)
            return err->code;
    }
    c->of_whole = name_of(what);
    return 0;
}

static int replay(const struct call *c)
{
    trp_error err;
    if (c->of_whole || c->trace || c->nfiles)
        return trp_launcher_misuse("sim: --replay FILE stands alone");
    int code = trp_sim_replay(c->replay, stdout, &err);
    int status = trp_launcher_printed(0);
    return code < 0 ? trp_launcher_fail(&err) : status;
}

static int whole(struct call *c, char **argv)
{
    if (!c->whole.cluster || !c->whole.durations)
        return trp_launcher_misuse("sim: --%s without --%s (see troupe sim --help)",
                                   c->of_whole,
                                   c->whole.cluster ? "durations" : "cluster");
    if (c->trace)
        return trp_launcher_misuse("sim: --trace is of scenarios; --record FILE keeps "
                                   "the decisions of a whole run");
    if (c->whole.compare && (c->whole.policy || c->whole.record))
        return trp_launcher_misuse("sim: --compare plays all policies; it goes without "
                                   "--policy and --record");
    if (c->nfiles != 1)
        return trp_launcher_misuse("sim: %s pipeline file (see troupe sim --help)",
                                   c->nfiles ? "more than one" : "no");
    c->whole.q.pipeline = argv[0];
    return trp_launcher_sim_whole(&c->whole);
}

int trp_launcher_sim(int argc, char **argv)
{
    static const struct trp_line line = {
        "sim",
        "usage: troupe sim [--trace] FILE...\n"
        "       troupe sim --cluster FILE --durations FILE [options] PIPELINE.yaml\n"
        "       troupe sim --replay FILE\n\n"
        "Runs scenario files and prints TAP: a test point for each `expect` and one "
        "for\n"
        "each file.\n\n",
        "\nExit status: 0; 1 a point does not hold, the run fails, a decision differs; "
        "2\n"
        "wrong call or file; 3 a stage never fits the cluster.\n",
        table, take};
    static struct call c;
    trp_error err;
    int code = trp_args_read(&line, argc, argv, &c, &err);
    if (code != 0)
        return trp_launcher_read(code, &err);
    if (c.replay)
        return replay(&c);
    if (c.of_whole)
        return whole(&c, argv);
    if (c.nfiles == 0)
        return trp_launcher_misuse("sim: no scenario file (see troupe sim --help)");
    return run_files(argv, c.nfiles, c.trace);
}
