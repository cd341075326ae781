/*
 * Options may stand before and behind the pipeline's name; everything behind `--` is
 * the application's. What belongs to pipelines only is refused with an application, so
 * that nothing that was asked for is silently not done.
 */
#include "run_call.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "args.h"
#include "conf/wording.h"

enum option {
    SET = 1,
    SITE,
    LOCAL,
    DRY_RUN,
    KEEP_GOING,
    RUN_NAME,
    PARAM,
    FROM,
    UNTIL,
    FORCE,
    RESUME,
    RUNS,
    QUIET,
};

static const struct trp_arg table[] = {
    {"set",        TRP_ARG_VALUE,    SET       },
    {"site",       TRP_ARG_VALUE,    SITE      },
    {"local",      TRP_ARG_OPTIONAL, LOCAL     },
    {"dry-run",    TRP_ARG_FLAG,     DRY_RUN   },
    {"keep-going", TRP_ARG_FLAG,     KEEP_GOING},
    {"run-name",   TRP_ARG_VALUE,    RUN_NAME  },
    {"param",      TRP_ARG_VALUE,    PARAM     },
    {"from",       TRP_ARG_VALUE,    FROM      },
    {"until",      TRP_ARG_VALUE,    UNTIL     },
    {"force",      TRP_ARG_VALUE,    FORCE     },
    {"resume",     TRP_ARG_VALUE,    RESUME    },
    {"runs-dir",   TRP_ARG_VALUE,    RUNS      },
    {"quiet",      TRP_ARG_FLAG,     QUIET     },
    {NULL,         TRP_ARG_FLAG,     0         },
};

static const char usage[] =
    "usage: troupe run [options] PIPELINE.yaml\n"
    "       troupe run [options] -- APP [ARG...]\n\n"
    "  --set KEY=VALUE    set an option (see troupe config)\n"
    "  --site FILE        site file\n"
    "  --local[=CORES]    on this machine, with so many cores\n"
    "  --run-name NAME    name of the run and its folder\n"
    "  --runs-dir DIR     where runs' folders are (TROUPE_RUNS; default: troupe-runs)\n"
    "  --quiet            no progress and no closing summary, only errors\n"
    "pipelines only:\n"
    "  --dry-run          print what would run; run nothing\n"
    "  --keep-going       after a failed stage, still run what does not depend on it\n"
    "  --param K=V        value of a param of the pipeline\n"
    "  --from STAGE       take the stages above STAGE as done\n"
    "  --until STAGE      run STAGE and the stages above it only\n"
    "  --force STAGE      run STAGE and the stages below it again\n"
    "  --resume RUN       go on with an earlier run, in its folder\n\n"
    "A run's folder is troupe-runs/RUN here. Ctrl-C stops a run in order, a second "
    "one\n"
    "kills it.\n";

/* A program in a pipeline's place, by how it begins. */
static bool is_program(const char *word)
{
    char magic[4] = "";
    struct stat st;
    bool file = stat(word, &st) == 0 && S_ISREG(st.st_mode); /* a pipe is read once */
    FILE *f = file ? fopen(word, "re") : NULL;
    size_t n = f ? fread(magic, 1, sizeof magic, f) : 0;
    if (f)
        fclose(f);
    return n == sizeof magic && memcmp(magic, "\177ELF", sizeof magic) == 0;
}

static int take_word(struct trp_run_call *c, const char *value, trp_error *err)
{
    if (!c->settings.pipeline && is_program(value))
        return trp_error_set(err, TRP_EINVAL,
                             "run: %s is a program; write troupe run -- %s",
                             trp_show(value).text, trp_show(value).text);
    if (c->settings.pipeline)
        return trp_error_set(err, TRP_EINVAL,
                             "run: one pipeline file, not also %s; an application "
                             "stands behind --",
                             value);
    c->settings.pipeline = value;
    return 0;
}

static int take(struct trp_run_call *c, int what, const char *value, trp_error *err)
{
    struct trp_settings_request *q = &c->settings;
    switch (what) {
    case SET:
        return trp_settings_word(q->sets, &q->nsets, "set", value, err);
    case PARAM:
        return trp_settings_word(q->params, &q->nparams, "param", value, err);
    case FORCE:
        return trp_settings_word(c->force, &c->nforce, "force", value, err);
    case LOCAL:
        return trp_settings_local(q, value, err);
    case TRP_ARG_WORD:
        return take_word(c, value, err);
    case SITE:
        q->site = value;
        break;
    case DRY_RUN:
        c->dry_run = true;
        break;
    case KEEP_GOING:
        c->keep_going = true;
        break;
    case RUN_NAME:
        c->run_name = value;
        break;
    case FROM:
        c->from = value;
        break;
    case UNTIL:
        c->until = value;
        break;
    case RESUME:
        c->resume = value;
        break;
    case RUNS:
        c->runs = value;
        break;
    case QUIET:
        c->quiet = true;
        break;
    default:
        return what;
    }
    return 0;
}

static int check(const struct trp_run_call *c, trp_error *err)
{
    const char *only_pipelines = c->dry_run            ? "dry-run"
                                 : c->keep_going       ? "keep-going"
                                 : c->from             ? "from"
                                 : c->until            ? "until"
                                 : c->nforce           ? "force"
                                 : c->resume           ? "resume"
                                 : c->settings.nparams ? "param"
                                                       : NULL;
    if (c->app && c->settings.pipeline)
        return trp_error_set(err, TRP_EINVAL,
                             "run: both a pipeline file and an application");
    if (c->app && !c->app[0])
        return trp_error_set(err, TRP_EINVAL, "run: no application behind --");
    if (c->app && only_pipelines)
        return trp_error_set(err, TRP_EINVAL, "run: --%s is for pipelines only",
                             only_pipelines);
    if (!c->app && !c->settings.pipeline && !c->resume)
        return trp_error_set(err, TRP_EINVAL,
                             "run: no pipeline file and no application (see troupe run "
                             "--help)");
    if (c->resume && c->run_name)
        return trp_error_set(err, TRP_EINVAL,
                             "run: --resume goes on under the run's own name, without "
                             "--run-name");
    return 0;
}

int trp_run_call_parse(int argc, char **argv, struct trp_run_call *ret, trp_error *err)
{
    struct trp_args a = trp_args_of("run", table, argc, argv);
    const char *value;
    int what;
    memset(ret, 0, sizeof *ret);
    while ((what = trp_args_next(&a, &value, err)) != TRP_ARG_END) {
        if (what == TRP_ARG_HELP) {
            fputs(usage, stdout);
            return 1;
        }
        if (what == TRP_ARG_REST) {
            ret->app = argv + a.at;
            break;
        }
        int code = what < 0 ? what : take(ret, what, value, err);
        if (code < 0)
            return code;
    }
    return check(ret, err);
}
