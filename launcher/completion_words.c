/*
 * A word's kind is what usage texts call it: RUN, STAGE, FILE, KEY=VALUE.
 */
#include "completion_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "commands.h"
#include "driver/pipeline_settings.h"
#include "events/run_folder.h"
#include "settings.h"

enum { KIND = 32 };

struct asked {
    char **words; /* those behind the command's name, without the last one */
    int n;
    const char *last;   /* the beginning of it */
    const char *prefix; /* "--site=" of --site=FI, part of the candidates … */
    int prefix_size;    /* … but not of `last` */
    const struct trp_subcommand *command;
    const struct trp_line *line;
};

static void offer(const struct asked *a, const char *word, const char *end,
                  const char *help)
{
    if (strncmp(word, a->last, strlen(a->last)) == 0)
        printf("%.*s%s%s\t%.*s\n", a->prefix_size, a->prefix, word, end,
               (int)strcspn(help, "\n"), help);
}

/* The value of an option that was written; NULL: it was not. */
static const char *value_of(const struct asked *a, const char *option)
{
    size_t n = strlen(option);
    for (int i = 0; i < a->n; i++) {
        if (strncmp(a->words[i], "--", 2) != 0 ||
            strncmp(a->words[i] + 2, option, n) != 0)
            continue;
        if (a->words[i][n + 2] == '=')
            return a->words[i] + n + 3;
        if (!a->words[i][n + 2] && i + 1 < a->n)
            return a->words[i + 1];
    }
    return NULL;
}

/* Does the word take the next one as its value? */
static const struct trp_arg *open_option(const struct asked *a, const char *word)
{
    const struct trp_arg *o = NULL;
    if (a->line && strncmp(word, "--", 2) == 0)
        o = trp_args_find(a->line->table, word + 2, strlen(word + 2));
    return o && o->kind == TRP_ARG_VALUE ? o : NULL;
}

/* The n-th word that is neither an option nor the value of one; NULL: there are not so
 * many, and *ret_n is how many. */
static const char *plain_word(const struct asked *a, int n, int *ret_n)
{
    *ret_n = 0;
    for (int i = 0; i < a->n; i++) {
        if (open_option(a, a->words[i]))
            i++;
        else if (a->words[i][0] != '-' && (*ret_n)++ == n)
            return a->words[i];
    }
    return NULL;
}

/* ---- kinds of words ---- */

static void offer_runs(const struct asked *a)
{
    char *dir;
    struct trp_run_view *v;
    uint32_t n;
    trp_error err;
    if (trp_runs_dir(value_of(a, "runs-dir"), &dir, &err) < 0)
        return;
    if (trp_run_folder_list(dir, &v, &n, &err) == 0) {
        for (uint32_t i = 0; i < n; i++)
            offer(a, v[i].name, "", v[i].status);
        if (n)
            offer(a, "last", "", "the newest run");
        trp_run_folder_list_free(v, n);
    }
    free(dir);
}

static void offer_keys(const struct asked *a, const char *end)
{
    for (const struct trp_option *o = trp_option_table; o->key; o++)
        if (!strchr(o->key, '*'))
            offer(a, o->key, end, o->help);
}

/* Of the pipeline on the line. */
static bool load(const struct asked *a, struct trp_settings *ret)
{
    static struct trp_settings_request q;
    trp_error err;
    int n;
    q.site = value_of(a, "site");
    q.pipeline = plain_word(a, 0, &n);
    return trp_settings_load(&q, ret, &err) == 0;
}

static void offer_stages_of(const struct asked *a, const trp_pipeline *p)
{
    for (uint32_t i = 0; p && i < p->nstages; i++)
        offer(a, p->stages[i].name, "", "stage");
}

static void offer_stages_of_run(const struct asked *a, const char *run)
{
    char *dir, *path = NULL;
    struct trp_run_spec *spec = NULL;
    trp_pipeline *p = NULL;
    trp_error err;
    if (trp_runs_dir(value_of(a, "runs-dir"), &dir, &err) < 0)
        return;
    if (trp_run_folder_find(dir, run, &path, &err) == 0 &&
        trp_run_spec_load(path, &spec, &err) == 0 &&
        trp_pipeline_stored(spec, &p, &err) == 0)
        offer_stages_of(a, p);
    trp_pipeline_free(p);
    trp_run_spec_free(spec);
    free(path);
    free(dir);
}

/* Of the run that the line names first, or of the pipeline. */
static void offer_stages(const struct asked *a)
{
    int n;
    const char *first = plain_word(a, 0, &n), *run = value_of(a, "resume");
    struct trp_settings s;
    if (strstr(a->command->usage, "RUN [STAGE"))
        run = first;
    if (run) {
        offer_stages_of_run(a, run);
    } else {
        if (load(a, &s))
            offer_stages_of(a, s.pipeline);
        trp_settings_free(&s);
    }
}

static void offer_params(const struct asked *a)
{
    struct trp_settings s;
    if (load(a, &s) && s.pipeline)
        for (uint32_t i = 0; i < s.pipeline->nparams; i++)
            offer(a, s.pipeline->params[i].key, "=", "param");
    trp_settings_free(&s);
}

static void offer_profiles(const struct asked *a)
{
    trp_site *s;
    trp_error err;
    if (trp_site_load(value_of(a, "site"), &s, &err) < 0)
        return;
    for (uint32_t i = 0; i < s->nprofiles; i++)
        offer(a, s->profiles[i].builder.name, "", "profile of the site");
    trp_site_free(s);
}

static void offer_kind(const struct asked *a, const char *kind)
{
    static const char *const files[] = {"FILE", "EVENTS", "DIR",          "FOLDER",
                                        "APP",  "FILE…",  "PIPELINE.yaml"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (strcmp(kind, files[i]) == 0)
            puts(":files");
    if (strcmp(kind, "RUN") == 0)
        offer_runs(a);
    else if (strcmp(kind, "STAGE") == 0)
        offer_stages(a);
    else if (strcmp(kind, "PROFILE") == 0)
        offer_profiles(a);
    else if (strcmp(kind, "KEY") == 0)
        offer_keys(a, "");
    else if (strcmp(kind, "KEY=VALUE") == 0)
        offer_keys(a, "=");
    else if (strcmp(kind, "K=V") == 0)
        offer_params(a);
    else if (kind[0] >= 'a' && kind[0] <= 'z')
        offer(a, kind, "", "");
}

/* "RUN|EVENTS" */
static void offer_kinds(const struct asked *a, const char *kinds)
{
    char kind[KIND];
    for (size_t n; *kinds; kinds += n + (kinds[n] == '|')) {
        n = strcspn(kinds, "|");
        if (n > 0 && n < sizeof kind) {
            snprintf(kind, sizeof kind, "%.*s", (int)n, kinds);
            offer_kind(a, kind);
        }
    }
}

/* ---- places in a line ---- */

static void offer_commands(const struct asked *a)
{
    for (const struct trp_subcommand *c = trp_subcommands; c->name; c++)
        offer(a, c->name, "", c->summary);
}

static void offer_options(const struct asked *a)
{
    char name[64];
    for (const struct trp_arg *o = a->line->table; o->help; o++) {
        if (!o->name)
            continue;
        snprintf(name, sizeof name, "%s%s", trp_args_dashes(o), o->name);
        offer(a, name, "", o->help);
    }
    offer(a, "--help", "", "options of this command");
}

/* What usage calls the n-th word that is no option: "RUN" of "[options] RUN [STAGE]". */
static void offer_word(const struct asked *a, int n)
{
    static const char between[] = " []";
    const char *at = a->command->usage;
    char kinds[2 * KIND];
    for (size_t size; *(at += strspn(at, between)); at += size) {
        size = strcspn(at, between);
        if (strncmp(at, "|", size) == 0) /* another way to call it */
            return;
        bool option = *at == '-' || strncmp(at, "options", size) == 0 ||
                      strncmp(at, "sbatch", size) == 0;
        if (!option && n-- == 0) {
            snprintf(kinds, sizeof kinds, "%.*s", (int)size, at);
            offer_kinds(a, kinds);
            return;
        }
    }
}

static void offer_after_command(struct asked *a)
{
    const char *equals = strchr(a->last, '=');
    const struct trp_arg *o = a->n ? open_option(a, a->words[a->n - 1]) : NULL;
    int nplain;
    for (int i = 0; i < a->n; i++) {
        if (strcmp(a->words[i], "--") == 0) { /* a program and its words */
            puts(":files");
            return;
        }
    }
    if (o && a->last[0] != '-') {
        offer_kinds(a, o->value);
    } else if (strncmp(a->last, "--", 2) == 0 && equals) {
        o = trp_args_find(a->line->table, a->last + 2, (size_t)(equals - a->last) - 2);
        a->prefix = a->last;
        a->prefix_size = (int)(equals - a->last) + 1;
        a->last = equals + 1;
        if (o && o->value)
            offer_kinds(a, o->value);
    } else if (a->last[0] == '-') {
        offer_options(a);
    } else {
        plain_word(a, -1, &nplain);
        offer_word(a, nplain);
    }
}

void trp_completion_words(char **words, int n)
{
    struct asked a = {.last = n ? words[n - 1] : "", .prefix = ""};
    if (n <= 1) {
        offer_commands(&a);
        return;
    }
    a.words = words + 1;
    a.n = n - 2;
    for (a.command = trp_subcommands; a.command->name; a.command++)
        if (strcmp(a.command->name, words[0]) == 0)
            break;
    a.line = a.command->line;
    if (a.line)
        offer_after_command(&a);
}
