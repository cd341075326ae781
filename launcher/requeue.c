#include "requeue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/run_spec.h"
#include "events/run_folder.h"
#include "os/held.h"

/* A script may call one pipeline several times. */
static bool same_params(const struct trp_run_spec *s, const struct trp_run_call *c)
{
    const struct trp_settings_request *q = &c->settings;
    bool same = s->nparams == q->nparams;
    for (uint32_t i = 0; i < q->nparams && same; i++) {
        size_t key = strlen(s->params[i].key);
        same = strncmp(q->params[i], s->params[i].key, key) == 0 &&
               q->params[i][key] == '=' &&
               strcmp(q->params[i] + key + 1, s->params[i].value) == 0;
    }
    return same;
}

/* Was it called in this job? */
static bool same_job(const struct trp_run_spec *s, const char *job)
{
    static const char key[] = "SLURM_JOB_ID=";
    for (uint32_t i = 0; i < s->nenviron; i++) {
        if (strncmp(s->environ[i], key, sizeof key - 1) == 0)
            return strcmp(s->environ[i] + sizeof key - 1, job) == 0;
    }
    return false;
}

static bool is_ours(const char *runs, const char *name, const struct trp_run_call *c,
                    const char *job)
{
    char path[4300];
    struct trp_run_spec *s;
    trp_error ignored;
    if (c->run_name && strcmp(name, c->run_name) != 0)
        return false;
    snprintf(path, sizeof path, "%s/%s", runs, name);
    if (trp_run_spec_load(path, &s, &ignored) < 0)
        return false; /* ended before it began, or is no run */
    const char *pipeline = c->settings.pipeline;
    bool same = pipeline ? s->pipeline && strcmp(s->pipeline, pipeline) == 0 &&
                               same_params(s, c)
                         : s->napp && c->run_name;
    same = same && same_job(s, job);
    trp_run_spec_free(s);
    return same;
}

int trp_requeue_settle(struct trp_run_call *c, const char *dir, char **ret_name,
                       trp_error *err)
{
    const char *again = getenv("SLURM_RESTART_COUNT"), *job = getenv("SLURM_JOB_ID");
    struct trp_run_view *runs;
    uint32_t n, i = 0;
    *ret_name = NULL;
    if (!again || strcmp(again, "0") == 0 || !job || c->resume || c->dry_run)
        return 0;
    int code = trp_run_folder_list(dir, &runs, &n, err);
    if (code < 0)
        return code;
    if (n && (code = trp_held_folder(dir, NULL, err)) < 0) {
        trp_run_folder_list_free(runs, n);
        return code;
    }
    while (i < n && !is_ours(dir, runs[i].name, c, job))
        i++;
    if (i < n && (c->app ? asprintf(ret_name, "%s-r%s", runs[i].name, again)
                         : asprintf(ret_name, "%s", runs[i].name)) < 0) {
        *ret_name = NULL;
        code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    if (n)
        trp_held_leave(dir);
    trp_run_folder_list_free(runs, n);
    if (!*ret_name)
        return code;
    fprintf(stderr, "troupe: Slurm has started job %s again: %s run %s\n", job,
            c->app ? "this is" : "going on with", *ret_name);
    c->run_name = c->app ? *ret_name : NULL;
    c->resume = c->app ? NULL : *ret_name;
    c->settings.pipeline = NULL; /* the run has its own copy, and params */
    c->settings.nparams = 0;
    return 0;
}
