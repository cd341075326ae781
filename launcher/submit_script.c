/*
 * What the site says stands first and sbatch's own options after it, for of two the
 * last counts. What the user asked for is left out of the former all the same, so that
 * the script reads as what it does.
 *
 * The driver's job has the site's cores and memory only as long as the user asks for no
 * room himself: --mem holds for each node, and 1 GiB of each of 16 nodes is not what
 * `-N 16` means.
 *
 * A job that Slurm starts again (requeue) goes on with its run: a pipeline by --resume,
 * a program from its beginning under a name of its own.
 *
 * An #SBATCH line ends where its value has a line break, and what follows would be an
 * option or a command of its own. So every name and value is looked at where the line is
 * written; words of the command are in quotes, which may hold anything.
 */
#include "submit_script.h"

#include <stdlib.h>
#include <string.h>

#include "conf/site_request.h"
#include "conf/wording.h"
#include "events/run_folder.h"

enum {
    WARN_SECONDS = 120,      /* the end is announced so long before */
    WARN_FROM_SECONDS = 300, /* of jobs that are at least so long */
};

struct script {
    const struct trp_submit_script *s;
    FILE *out;
    bool wrong;                 /* a line cannot be written … */
    char name[TRP_SBATCH_NAME]; /* … of this option … */
    struct trp_shown value;     /* … for its value */
};

/* An argument in an #SBATCH line, where Slurm takes quotes and \ as a shell does. */
static void print_value(const char *value, FILE *out)
{
    if (*value && !strpbrk(value, " \t\"'\\#")) {
        fputs(value, out);
        return;
    }
    fputc('"', out);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            fputc('\\', out);
        fputc(*value, out);
    }
    fputc('"', out);
}

static void directive(struct script *w, const char *name, const char *value)
{
    bool sound = trp_is_in_line(name) && (!value || trp_is_in_line(value));
    if (!sound && !w->wrong) {
        snprintf(w->name, sizeof w->name, "%s", name);
        w->value = trp_show(value ? value : "");
    }
    w->wrong = w->wrong || !sound;
    if (!sound)
        return;
    fprintf(w->out, "#SBATCH --%s", name);
    if (value) {
        fputc('=', w->out);
        print_value(value, w->out);
    }
    fputc('\n', w->out);
}

static bool given(const struct trp_submit_script *s, const char *name)
{
    return trp_submit_sbatch(s->call, name) != NULL;
}

/* Unless the user says it. */
static void own(struct script *w, const char *name, const char *value)
{
    if (!given(w->s, name))
        directive(w, name, value);
}

static bool asks_for_room(const struct trp_submit_script *s)
{
    /* clang-format off */
    static const char *const room[] = {
        "nodes", "ntasks", "cpus-per-task", "mem", "mem-per-cpu", "mem-per-gpu",
        "exclusive", "gres", "gpus", "gpus-per-node", "gpus-per-task",
        "gpus-per-socket", "ntasks-per-node", "ntasks-per-gpu", "mincpus", "nodelist",
        "nodefile", "stage-profile", "tres-per-task", ":"
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof room / sizeof *room; i++)
        if (given(s, room[i]))
            return true;
    return false;
}

/* Of an sbatch --time ("90", "1:30:00", "2-12"); -1: without end, or none. */
static long seconds_of(const char *text)
{
    long v[4] = {0}, days = 0;
    int n = 0;
    char *end;
    const char *dash = strchr(text, '-');
    if (text[0] < '0' || text[0] > '9')
        return -1;
    if (dash) {
        days = strtol(text, &end, 10);
        text = dash + 1;
        if (end != dash)
            return -1;
    }
    do {
        v[n++] = strtol(text, &end, 10);
        text = end + 1;
    } while (*end == ':' && n < 3);
    if (*end)
        return -1;
    if (dash)
        return days * 86400 + v[0] * 3600 + v[1] * 60 + v[2];
    return n == 1   ? v[0] * 60
           : n == 2 ? v[0] * 60 + v[1]
                    : v[0] * 3600 + v[1] * 60 + v[2];
}

/* Of the job; 0 or less: without end, or not known. Slurm's variable wins over what a
 * script says, and the command line over both; that of a job of several components has
 * its options in the script alone. */
static long time_limit(const struct trp_submit_script *s)
{
    const char *call = trp_submit_sbatch(s->call, "time");
    const char *variable = getenv("SBATCH_TIMELIMIT");
    if (variable && (!call || given(s, ":")))
        return seconds_of(variable);
    return call ? seconds_of(call) : (long)(s->site->driver.time_ns / 1000000000);
}

/* Slurm looks every half minute and announces up to a minute early: to a short job that
 * would be at its begin. Troupe knows the end of its job anyway. */
static void print_signal(struct script *w)
{
    const struct trp_submit_script *s = w->s;
    long seconds = time_limit(s);
    char text[32];
    snprintf(text, sizeof text, "B:USR1@%d", WARN_SECONDS);
    if (seconds <= 0 || seconds >= WARN_FROM_SECONDS)
        own(w, "signal", text);
}

static void print_driver(struct script *w)
{
    const struct trp_submit_script *s = w->s;
    const struct trp_site_driver *d = &s->site->driver;
    char text[32];
    if (!asks_for_room(s)) {
        directive(w, "ntasks", "1");
        snprintf(text, sizeof text, "%u", d->cores);
        directive(w, "cpus-per-task", text);
        snprintf(text, sizeof text, "%lldM", (long long)d->memory_mib);
        directive(w, "mem", text);
    }
    if (d->time_ns)
        own(w, "time", trp_slurm_minutes(d->time_ns, text, sizeof text));
    if (given(s, "stage-profile")) /* it has a route of its own */
        return;
    if (d->account)
        own(w, "account", d->account);
    if (d->partition)
        own(w, "partition", d->partition);
}

/* The run, which the job's name need not tell: "troupe weather-20260101T120000-1". */
static void print_comment(struct script *w)
{
    const struct trp_submit_script *s = w->s;
    const char *run = s->resume ? s->resume : s->run;
    char *text = NULL;
    if (asprintf(&text, "troupe %s", run ? run : s->job_name) < 0)
        return;
    own(w, "comment", text);
    free(text);
}

static void print_directives(struct script *w)
{
    const struct trp_submit_script *s = w->s;
    own(w, "job-name", s->job_name);
    print_comment(w);
    print_driver(w);
    print_signal(w);
    if (!given(s, "no-requeue"))
        own(w, "requeue", NULL);
    own(w, "no-kill", NULL);
    own(w, "open-mode", "append");
    if (s->output)
        own(w, "output", s->output);
    for (uint32_t i = 0; i < s->call->nsbatch; i++) {
        const struct trp_sbatch_option *o = &s->call->sbatch[i];
        if (strcmp(o->name, ":") == 0)
            fputs("#SBATCH hetjob\n", w->out);
        else
            directive(w, o->name, o->value);
    }
}

/* exec troupe run HOW="$run" and the rest. */
static void print_exec(const struct trp_submit_script *s, const char *how, FILE *out)
{
    const struct trp_submit_call *c = s->call;
    fputs("exec ", out);
    trp_shell_word_print(s->troupe, out);
    fprintf(out, " run --%s=\"$run\"", how);
    for (size_t i = 0; i < c->run.n; i++) {
        fputc(' ', out);
        trp_shell_word_print(c->run.v[i], out);
    }
    if (c->app) {
        fputs(" --", out);
        for (char **word = c->app; *word; word++) {
            fputc(' ', out);
            trp_shell_word_print(*word, out);
        }
    } else if (c->settings.pipeline) {
        fputc(' ', out);
        trp_shell_word_print(c->settings.pipeline, out);
    }
    fputc('\n', out);
}

static void print_name(const struct trp_submit_script *s, FILE *out)
{
    char clean[64];
    fputs("run=", out);
    if (s->resume || s->run) {
        trp_shell_word_print(s->resume ? s->resume : s->run, out);
    } else {
        trp_run_name_clean(s->job_name, clean, sizeof clean);
        fprintf(out, "%s-$SLURM_JOB_ID", clean);
    }
    fputc('\n', out);
}

int trp_submit_script_print(const struct trp_submit_script *s, FILE *out,
                            trp_error *err)
{
    struct script w = {.s = s, .out = out};
    fputs("#!/bin/sh\n", out);
    print_directives(&w);
    fputc('\n', out);
    print_name(s, out);
    print_exec(s, s->resume ? "resume" : "run-name", out);
    if (w.wrong)
        return trp_error_set(err, TRP_EINVAL,
                             "submit: --%s=%s: a line break or another control "
                             "character cannot be written into a job script; write it "
                             "in one line",
                             w.name, w.value.text);
    return 0;
}
