/*
 * sbatch's options are passed on as they are; all that has to be known of one is
 * whether the next word is its value, or else nobody could tell where PIPELINE.yaml
 * stands. So there is a list of those that take one (of Slurm 22.05 and later, and of
 * our plugin). An option that is not in it, as of another plugin, takes its value
 * behind `=`.
 */
#include "submit_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "conf/wording.h"
#include "core/base/array.h"
#include "run_call.h"

enum option { PRINT = 1, RUN_NAME, RESUME, RUNS, OTHER };

/* `troupe run`'s, but --dry-run. */
static const struct trp_arg own[] = {
    {"print", TRP_ARG_FLAG,     PRINT,             NULL,    "print the script; submit nothing", NULL},
    TRP_SETTINGS_SET,
    TRP_SETTINGS_SITE,
    {"local", TRP_ARG_OPTIONAL, TRP_SETTING_LOCAL, "CORES",
     "run on the node of the job alone",                                                        NULL},
    TRP_RUN_NAME(RUN_NAME, NULL),
    TRP_RUN_RUNS(RUNS, NULL),
    TRP_RUN_QUIET(OTHER, NULL),
    TRP_ARGS_LINES("pipelines only:\n"),
    TRP_RUN_KEEP_GOING(OTHER, NULL),
    TRP_RUN_FAIL_FAST(OTHER, NULL),
    TRP_SETTINGS_PARAM,
    TRP_RUN_FROM(OTHER, NULL),
    TRP_RUN_UNTIL(OTHER, NULL),
    TRP_RUN_FORCE(OTHER),
    TRP_RUN_RESUME(RESUME, NULL),
    TRP_RUN_AS_IT_WAS(OTHER, NULL),
    TRP_RUN_HERE(OTHER, NULL),
    TRP_ARGS_END,
};

/* sbatch's that take a value in the next word; behind a slash the letter. */
/* clang-format off */
static const char *const valued[] = {
    "account/A", "acctg-freq", "array/a", "batch", "bb", "bbf", "begin/b", "chdir/D",
    "cluster-constraint", "clusters/M", "comment", "constraint/C", "container",
    "core-spec/S", "cores-per-socket", "cpu-freq", "cpus-per-gpu", "cpus-per-task/c",
    "deadline", "delay-boot", "dependency/d", "distribution/m", "error/e", "exclude/x",
    "export", "export-file", "extra-node-info/B", "gid", "gpu-bind", "gpu-freq",
    "gpus/G", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres", "gres-flags",
    "hint", "input/i", "job-name/J", "kill-on-invalid-dep", "licenses/L", "mail-type",
    "mail-user", "mcs-label", "mem", "mem-bind", "mem-per-cpu", "mem-per-gpu",
    "mincpus", "network", "nodefile/F", "nodelist/w", "nodes/N", "ntasks/n",
    "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node", "ntasks-per-socket",
    "open-mode", "output/o", "partition/p", "power", "prefer", "priority", "profile",
    "qos/q", "reservation", "signal", "sockets-per-node", "stage-pipeline",
    "stage-profile", "switches", "thread-spec", "threads-per-core", "time/t",
    "time-min", "tmp", "tres-per-task", "uid", "wait-all-nodes", "wckey", "wrap"
};
/* clang-format on */

/* Its flags that have a letter. */
static const char *const flags[] = {"hold/H",       "immediate/I",     "no-kill/k",
                                    "overcommit/O", "oversubscribe/s", "quiet/Q",
                                    "verbose/v",    "version/V",       "wait/W"};

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))

static struct trp_submit_call call;

/* ---- sbatch's ---- */

static int add_sbatch(struct trp_submit_call *c, const char *name, size_t length,
                      const char *value, trp_error *err)
{
    if (!TRP_ARRAY_GROW(c->sbatch, c->nsbatch, c->sbatch_capacity))
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    struct trp_sbatch_option *v = &c->sbatch[c->nsbatch++];
    snprintf(v->name, sizeof v->name, "%.*s", (int)length, name);
    v->value = value;
    return 0;
}

static bool takes_value(const char *name, size_t length)
{
    for (size_t i = 0; i < COUNT(valued); i++)
        if (strcspn(valued[i], "/") == length && !memcmp(valued[i], name, length))
            return true;
    return false;
}

/* The one of `options` that has this letter, or NULL. */
static const char *of_letter(const char *const *options, size_t n, char letter)
{
    for (size_t i = 0; i < n; i++) {
        const char *slash = strchr(options[i], '/');
        if (slash && slash[1] == letter)
            return options[i];
    }
    return NULL;
}

static const char *next_word(struct trp_args *a, const char *option, size_t length,
                             trp_error *err)
{
    if (a->at < a->argc)
        return a->argv[a->at++];
    trp_error_set(err, TRP_EINVAL, "submit: %.*s needs a value", (int)length, option);
    return NULL;
}

static int take_long(struct trp_submit_call *c, struct trp_args *a, const char *text,
                     trp_error *err)
{
    const char *name = text + 2, *value = strchr(name, '=');
    size_t length = value ? (size_t)(value - name) : strlen(name);
    if (length >= TRP_SBATCH_NAME)
        return trp_error_set(err, TRP_EINVAL, "submit: unknown option %s",
                             trp_show(text).text);
    if (value)
        value++;
    else if (takes_value(name, length) &&
             !(value = next_word(a, text, length + 2, err)))
        return TRP_EINVAL;
    return add_sbatch(c, name, length, value, err);
}

/* "-N2", "-N 2", "-Hp cpu". */
static int take_letters(struct trp_submit_call *c, struct trp_args *a, const char *text,
                        trp_error *err)
{
    for (const char *p = text + 1; *p; p++) {
        const char *name = of_letter(flags, COUNT(flags), *p), *value = NULL;
        if (!name && (name = of_letter(valued, COUNT(valued), *p)) &&
            !(value = p[1] ? p + 1 : next_word(a, text, strlen(text), err)))
            return TRP_EINVAL;
        if (!name)
            return trp_error_set(err, TRP_EINVAL, "submit: unknown option -%c of %s",
                                 *p, trp_show(text).text);
        int code = add_sbatch(c, name, strcspn(name, "/"), value, err);
        if (code < 0 || value)
            return code;
    }
    return 0;
}

/* The words that were taken are kept as they are, too. */
static int take_sbatch(struct trp_submit_call *c, struct trp_args *a, trp_error *err)
{
    int first = a->at - 1, code;
    const char *text = a->argv[first];
    if (strcmp(text, ":") == 0)
        code = add_sbatch(c, ":", 1, NULL, err);
    else if (text[1] == '-')
        code = take_long(c, a, text, err);
    else
        code = take_letters(c, a, text, err);
    for (int i = first; i < a->at && code == 0; i++) {
        code = trp_strings_add(&c->sbatch_words, a->argv[i]);
        if (code < 0)
            trp_error_set(err, code, "out of memory");
    }
    return code;
}

/* ---- run's own ---- */

static const struct trp_arg *find_own(const char *text)
{
    if (strncmp(text, "--", 2) != 0)
        return NULL;
    return trp_args_find(own, text + 2, strcspn(text + 2, "="));
}

static int pass_on(struct trp_submit_call *c, const struct trp_arg *o,
                   const char *value, trp_error *err)
{
    int code = value ? trp_strings_format(&c->run, "--%s=%s", o->name, value)
                     : trp_strings_format(&c->run, "--%s", o->name);
    return code < 0 ? trp_error_set(err, code, "out of memory") : 0;
}

static int use_own(struct trp_submit_call *c, const struct trp_arg *o,
                   const char *value, trp_error *err)
{
    int code = 0;
    switch (o->what) {
    case PRINT:
        c->print = true;
        return 0;
    case RUN_NAME:
        c->run_name = value;
        return 0;
    case RESUME:
        c->resume = value;
        return 0;
    case RUNS:
        c->runs = value;
        return 0;
    case OTHER:
        break;
    default:
        c->local = c->local || o->what == TRP_SETTING_LOCAL;
        code = trp_settings_take(&c->settings, o->what, value, err);
    }
    return code < 0 ? code : pass_on(c, o, value, err);
}

static int take_own(struct trp_submit_call *c, struct trp_args *a,
                    const struct trp_arg *o, trp_error *err)
{
    const char *text = a->argv[a->at - 1], *value = strchr(text, '=');
    if (value && o->kind == TRP_ARG_FLAG)
        return trp_error_set(err, TRP_EINVAL, "submit: --%s takes no value", o->name);
    if (value)
        value++;
    else if (o->kind == TRP_ARG_VALUE &&
             !(value = next_word(a, text, strlen(text), err)))
        return TRP_EINVAL;
    return use_own(c, o, value, err);
}

/* ---- the whole ---- */

static int check(const struct trp_submit_call *c, trp_error *err)
{
    static const char *const never[] = {"array", "wrap", "dry-run"};
    for (size_t i = 0; i < COUNT(never); i++)
        if (trp_submit_sbatch(c, never[i]))
            return trp_error_set(err, TRP_EINVAL,
                                 "submit: --%s does not go with a run; leave it out",
                                 never[i]);
    if (c->app && c->settings.pipeline)
        return trp_error_set(err, TRP_EINVAL,
                             "submit: both a pipeline file and an application");
    if (c->app && !c->app[0])
        return trp_error_set(err, TRP_EINVAL, "submit: no application behind --");
    if (c->app && c->resume)
        return trp_error_set(err, TRP_EINVAL, "submit: --resume is for pipelines only");
    if (!c->app && !c->settings.pipeline && !c->resume)
        return trp_error_set(err, TRP_EINVAL,
                             "submit: no pipeline file and no application (see troupe "
                             "submit --help)");
    if (c->resume && c->run_name)
        return trp_error_set(err, TRP_EINVAL,
                             "submit: --resume goes on under the run's own name, "
                             "without --run-name");
    return 0;
}

static int take_word(struct trp_submit_call *c, const char *word, trp_error *err)
{
    if (c->settings.pipeline)
        return trp_error_set(err, TRP_EINVAL,
                             "submit: two words that are no options, %s and %s; write "
                             "an option's value behind =, and an application behind --",
                             trp_show(c->settings.pipeline).text, trp_show(word).text);
    c->settings.pipeline = word;
    return 0;
}

static int read_words(int argc, char **argv, trp_error *err)
{
    struct trp_args a = trp_args_of("submit", own, argc, argv);
    while (a.at < a.argc) {
        const char *text = a.argv[a.at++];
        const struct trp_arg *o = find_own(text);
        int code;
        if (strcmp(text, "--") == 0) {
            call.app = argv + a.at;
            break;
        }
        if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0)
            return 1;
        if (o)
            code = take_own(&call, &a, o, err);
        else if ((text[0] == '-' && text[1]) || strcmp(text, ":") == 0)
            code = take_sbatch(&call, &a, err);
        else
            code = take_word(&call, text, err);
        if (code < 0)
            return code;
    }
    return check(&call, err);
}

const struct trp_line trp_line_submit = {
    .command = "submit",
    .synopsis =
        "usage: troupe submit [sbatch options] [options] PIPELINE.yaml\n"
        "       troupe submit [sbatch options] [options] -- APP [ARG...]\n\n"
        "Submits a job that does `troupe run` with what stands here. Options that are\n"
        "not listed below are sbatch's.\n\n",
    .closing =
        "\nWhat the driver's job asks for (cores, memory, time, account, partition)\n"
        "is in driver: of the site file, unless sbatch's options say it. The job's\n"
        "output is troupe-runs/RUN/job-JOBID.out.\n\n"
        "Exit status: 0 submitted; 2 wrong call or file; 3 it can never be, as by\n"
        "Slurm's refusal; 4 Slurm does not answer. With --wait that of the run.\n",
    .table = own,
    .read = read_words,
};

struct trp_submit_call trp_submit_call_take(void)
{
    struct trp_submit_call taken = call;
    call = (struct trp_submit_call){0};
    return taken;
}

void trp_submit_call_free(struct trp_submit_call *c)
{
    trp_strings_free(&c->run);
    trp_strings_free(&c->sbatch_words);
    free(c->sbatch);
    c->sbatch = NULL;
    c->nsbatch = c->sbatch_capacity = 0;
}

const char *trp_submit_sbatch(const struct trp_submit_call *c, const char *name)
{
    const char *value = NULL;
    for (uint32_t i = 0; i < c->nsbatch; i++)
        if (strcmp(c->sbatch[i].name, name) == 0)
            value = c->sbatch[i].value ? c->sbatch[i].value : "";
    return value;
}
