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

enum option { FORCE = 1 };

static struct trp_run_call call;

static const struct trp_arg table[] = {
    TRP_SETTINGS_SET,
    TRP_SETTINGS_SITE,
    TRP_SETTINGS_LOCAL,
    TRP_RUN_NAME(TRP_ARG_TAKEN, &call.run_name),
    TRP_RUN_RUNS(TRP_ARG_TAKEN, &call.runs),
    TRP_RUN_QUIET(TRP_ARG_TAKEN, &call.quiet),
    TRP_ARGS_LINES("programs only:\n"),
    TRP_ARGS_FLAG("inline", &call.in_line,
                  "driver and tasks in one process and thread, to debug them"),
    TRP_ARGS_LINES("pipelines only:\n"),
    TRP_ARGS_FLAG("dry-run", &call.dry_run, "print what would run; run nothing"),
    TRP_RUN_KEEP_GOING(TRP_ARG_TAKEN, &call.keep_going),
    TRP_RUN_FAIL_FAST(TRP_ARG_TAKEN, &call.fail_fast),
    TRP_SETTINGS_PARAM,
    TRP_RUN_FROM(TRP_ARG_TAKEN, &call.from),
    TRP_RUN_UNTIL(TRP_ARG_TAKEN, &call.until),
    TRP_RUN_FORCE(FORCE),
    TRP_RUN_RESUME(TRP_ARG_TAKEN, &call.resume),
    TRP_RUN_AS_IT_WAS(TRP_ARG_TAKEN, &call.as_it_was),
    TRP_RUN_HERE(TRP_ARG_TAKEN, &call.here),
    TRP_ARGS_END,
};

/* A program in a pipeline's place, by how it begins. */
static bool is_program(const char *word)
{
    char magic[4] = "";
    struct stat st;
    bool file =
        stat(word, &st) == 0 && S_ISREG(st.st_mode); /* a pipe can be read only once */
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

static int on_argument(struct trp_args *a, int what, const char *value, trp_error *err)
{
    switch (what) {
    case FORCE:
        return trp_settings_word(call.force, &call.nforce, "force", value, err);
    case TRP_ARG_WORD:
        return take_word(&call, value, err);
    case TRP_ARG_REST:
        call.app = a->argv + a->at;
        return 0;
    default:
        return trp_settings_take(&call.settings, what, value, err);
    }
}

static int check(const struct trp_run_call *c, trp_error *err)
{
    const char *only_pipelines = c->dry_run            ? "dry-run"
                                 : c->keep_going       ? "keep-going"
                                 : c->fail_fast        ? "fail-fast"
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
    if (c->keep_going && c->fail_fast)
        return trp_error_set(err, TRP_EINVAL,
                             "run: --keep-going or --fail-fast, not both");
    if (c->in_line && (!c->app || c->run_name || c->runs))
        return trp_error_set(err, TRP_EINVAL,
                             !c->app
                                 ? "run: --inline is for programs only"
                                 : "run: --inline leaves no run folder, whatever its "
                                   "name");
    if (!c->app && !c->settings.pipeline && !c->resume)
        return trp_error_set(err, TRP_EINVAL,
                             "run: no pipeline file and no application (see troupe run "
                             "--help)");
    if (c->as_it_was && (!c->resume || c->settings.pipeline))
        return trp_error_set(err, TRP_EINVAL,
                             c->resume ? "run: --as-it-was takes the pipeline that the "
                                         "run has; leave the file out"
                                       : "run: --as-it-was goes with --resume");
    if (c->here && !c->resume)
        return trp_error_set(err, TRP_EINVAL, "run: --here goes with --resume");
    if (c->resume && c->run_name)
        return trp_error_set(err, TRP_EINVAL,
                             "run: --resume goes on under the run's own name, without "
                             "--run-name");
    return 0;
}

const struct trp_line trp_line_run = {
    "run",
    "usage: troupe run [options] PIPELINE.yaml\n"
    "       troupe run [options] -- APP [ARG...]\n\n",
    "\nA run's folder is troupe-runs/RUN here. Ctrl-C stops a run in order, a second\n"
    "one kills it.\n",
    table, .take = on_argument};

int trp_run_call_take(struct trp_run_call *ret, trp_error *err)
{
    int code = check(&call, err);
    if (code == 0 && call.keep_going)
        code = trp_settings_word(call.settings.sets, &call.settings.nsets, "set",
                                 "run.keep_going=true", err);
    if (code == 0 && call.fail_fast)
        code = trp_settings_word(call.settings.sets, &call.settings.nsets, "set",
                                 "run.fail_fast=true", err);
    *ret = call;
    return code;
}
