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
    SITE,
    SET,
    PARAM,
};
static const struct trp_arg table[] = {
    {"trace",     TRP_ARG_FLAG,  TRACE    },
    {"cluster",   TRP_ARG_VALUE, CLUSTER  },
    {"durations", TRP_ARG_VALUE, DURATIONS},
    {"seed",      TRP_ARG_VALUE, SEED     },
    {"compare",   TRP_ARG_FLAG,  COMPARE  },
    {"policy",    TRP_ARG_VALUE, POLICY   },
    {"record",    TRP_ARG_VALUE, RECORD   },
    {"replay",    TRP_ARG_VALUE, REPLAY   },
    {"json",      TRP_ARG_FLAG,  JSON     },
    {"site",      TRP_ARG_VALUE, SITE     },
    {"set",       TRP_ARG_VALUE, SET      },
    {"param",     TRP_ARG_VALUE, PARAM    },
    {NULL,        TRP_ARG_FLAG,  0        },
};

static const char usage[] =
    "usage: troupe sim [--trace] FILE...\n"
    "       troupe sim --cluster FILE --durations FILE [options] PIPELINE.yaml\n"
    "       troupe sim --replay FILE\n\n"
    "Runs scenario files and prints TAP: a test point for each `expect` and one for\n"
    "each file.\n\n"
    "  --trace           print each decision as a line of JSON instead\n\n"
    "Plays a whole run on a cluster that files describe: makespan, waits, node-, "
    "core-\n"
    "and device-hours held and used. The same seed gives the same output.\n\n"
    "  --cluster FILE    nodes, queue waits, start-up times, failures\n"
    "  --durations FILE  how long the tasks of each stage take\n"
    "  --seed N          of all that is drawn; default: scheduler.seed\n"
    "  --compare         policies side by side\n"
    "  --policy NAME     monolithic, job-per-stage, inside-first, look-ahead or\n"
    "                    idle-timeout; default: as the options say\n"
    "  --record FILE     write the engine's trace\n"
    "  --json            one JSON document\n"
    "  --site FILE       site file (profiles, options)\n"
    "  --set KEY=VALUE   set an option (see troupe config)\n"
    "  --param K=V       value of a param of the pipeline\n\n"
    "Replays the trace of an engine (state/engine.trace of a run with\n"
    "events.engine=true): does it decide the same again?\n\n"
    "  --replay FILE\n\n"
    "Exit status: 0; 1 a point does not hold, the run fails, a decision differs; 2\n"
    "wrong call or file; 3 a stage never fits the cluster.\n";

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

static int take_setting(struct call *c, int what, const char *value, trp_error *err)
{
    struct trp_settings_request *q = &c->whole.q;
    switch (what) {
    case SET:
        c->of_whole = "set";
        return trp_settings_word(q->sets, &q->nsets, "set", value, err);
    case PARAM:
        c->of_whole = "param";
        return trp_settings_word(q->params, &q->nparams, "param", value, err);
    case SITE:
        c->of_whole = "site";
        q->site = value;
        return 0;
    default:
        return TRP_EINVAL; /* trp_args_next has told why */
    }
}

static int take(struct call *c, int what, const char *value, trp_error *err)
{
    switch (what) {
    case TRACE:
        c->trace = true;
        return 0;
    case REPLAY:
        c->replay = value;
        return 0;
    case CLUSTER:
        c->of_whole = "cluster";
        c->whole.cluster = value;
        return 0;
    case DURATIONS:
        c->of_whole = "durations";
        c->whole.durations = value;
        return 0;
    case SEED:
        c->of_whole = "seed";
        c->whole.seed = value;
        return 0;
    case COMPARE:
        c->of_whole = "compare";
        c->whole.compare = true;
        return 0;
    case POLICY:
        c->of_whole = "policy";
        c->whole.policy = value;
        return 0;
    case RECORD:
        c->of_whole = "record";
        c->whole.record = value;
        return 0;
    case JSON:
        c->of_whole = "json";
        c->whole.json = true;
        return 0;
    default:
        return take_setting(c, what, value, err);
    }
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
    static struct call c;
    struct trp_args a = trp_args_of("sim", table, argc, argv);
    const char *value;
    trp_error err;
    for (int what; (what = trp_args_next(&a, &value, &err)) != TRP_ARG_END;) {
        if (what == TRP_ARG_HELP) {
            fputs(usage, stdout);
            return trp_launcher_printed(0);
        }
        if (what == TRP_ARG_WORD) { /* gathered at the front of argv, read already */
            argv[c.nfiles++] = argv[a.at - 1];
            continue;
        }
        if (what == TRP_ARG_REST) {
            while (a.at < argc)
                argv[c.nfiles++] = argv[a.at++];
            continue;
        }
        if (take(&c, what, value, &err) < 0)
            return trp_launcher_fail(&err);
    }
    if (c.replay)
        return replay(&c);
    if (c.of_whole)
        return whole(&c, argv);
    if (c.nfiles == 0)
        return trp_launcher_misuse("sim: no scenario file (see troupe sim --help)");
    return run_files(argv, c.nfiles, c.trace);
}
