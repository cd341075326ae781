/*
 * The secret is 32 random bytes, made anew for each start of the run.
 *
 * The specification keeps the options that come from the site, the environment and the
 * command line; the pipeline's own are read from its copy again.
 */
#include "run_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "comm/channel.h"
#include "core/base/array.h"
#include "os/whole_file.h"

static int write_file(const char *run_dir, const char *name, const void *data,
                      size_t size, trp_error *err)
{
    char path[4300];
    snprintf(path, sizeof path, "%s/state/%s", run_dir, name);
    return trp_held_write(path, data, size, true) == 0
               ? 0
               : trp_error_set(err, TRP_ESYSTEM, "cannot write %s: %m", path);
}

static int make_secret(const char *run_dir, trp_error *err)
{
    uint8_t secret[TRP_SECRET_SIZE];
    if (getrandom(secret, sizeof secret, 0) != sizeof secret)
        return trp_error_set(err, TRP_ESYSTEM, "no random bytes: %m");
    return write_file(run_dir, "secret", secret, sizeof secret, err);
}

static bool copy(char **to, const char *from)
{
    *to = from ? strdup(from) : NULL;
    return !from || *to;
}

static bool copy_list(char ***to, uint32_t *ret_n, const char *const *from, uint32_t n)
{
    *to = calloc(n + 1, sizeof **to);
    for (; *to && *ret_n < n; (*ret_n)++) {
        if (!copy(&(*to)[*ret_n], from[*ret_n]))
            return false;
    }
    return *to != NULL;
}

/* Strings of a NULL-terminated list. */
static bool copy_words(char ***to, uint32_t *ret_n, char *const *from)
{
    uint32_t n = 0;
    while (from && from[n])
        n++;
    return copy_list(to, ret_n, (const char *const *)from, n);
}

struct collector {
    struct trp_run_spec *spec;
    uint32_t capacity;
};

static int collect_option(void *context, const struct trp_option_view *v)
{
    struct collector *c = context;
    struct trp_run_spec *s = c->spec;
    if (v->origin == TRP_ORIGIN_DEFAULT || v->origin == TRP_ORIGIN_PIPELINE)
        return 0;
    if (!TRP_ARRAY_GROW(s->options, s->noptions, c->capacity))
        return TRP_ENOMEM;
    struct trp_option_setting *o = &s->options[s->noptions++];
    *o = (struct trp_option_setting){.origin = v->origin};
    return copy(&o->key, v->key) && copy(&o->value, v->value) &&
                   copy(&o->where, trp_origin_name(v->origin))
               ? 0
               : TRP_ENOMEM;
}

static bool copy_params(struct trp_run_spec *s, const struct trp_settings_request *q)
{
    s->params = calloc(q->nparams + 1, sizeof *s->params);
    for (; s->params && s->nparams < q->nparams; s->nparams++) {
        struct trp_pair *p = &s->params[s->nparams];
        const char *equals = strchr(q->params[s->nparams], '=');
        p->key =
            strndup(q->params[s->nparams], (size_t)(equals - q->params[s->nparams]));
        if (!copy(&p->value, equals + 1) || !p->key)
            return false;
    }
    return s->params != NULL;
}

static int fill_spec(const struct trp_run_make *m, struct trp_run_spec *s)
{
    const struct trp_run_call *c = m->call;
    const trp_pipeline *p = m->settings->pipeline;
    struct collector collector = {.spec = s};
    char stored[4300];
    snprintf(stored, sizeof stored, "%s/state/pipeline.yaml", m->folder->path);
    s->local_cores = m->where->local_cores;
    s->share_cores = m->where->share_cores;
    s->batch_job = m->where->job;
    s->quiet = c->quiet;
    s->earlier_runs = m->earlier_runs;
    s->terminal = isatty(2);
    s->as_it_was = c->settings.stored;
    bool good =
        copy(&s->run_name, m->folder->name) && copy(&s->run_dir, m->folder->path) &&
        copy(&s->called_in, m->called_in) && copy(&s->cwd, m->cwd) &&
        copy(&s->app_name, m->app_name) && copy(&s->pipeline, p ? p->file : NULL) &&
        copy(&s->pipeline_copy, p ? stored : NULL) && copy(&s->site, m->site) &&
        copy(&s->ompi_server,
             *m->supervisor->ompi_server ? m->supervisor->ompi_server : NULL) &&
        copy(&s->carried, m->carried) && copy(&s->control, m->supervisor->control) &&
        copy(&s->rank_program, m->rank) &&
        copy(&s->batch_system, m->where->batch ? m->where->batch->name : NULL) &&
        copy(&s->batch_helper, m->where->helper) &&
        copy(&s->batch_answer, m->where->answer) && copy(&s->from, c->from) &&
        copy(&s->until, c->until) && copy_words(&s->app, &s->napp, m->app) &&
        copy_list(&s->force, &s->nforce, c->force, c->nforce) &&
        copy_words(&s->environ, &s->nenviron, environ) &&
        copy_params(s, &c->settings) &&
        trp_options_each(m->settings->options, collect_option, &collector) >= 0;
    return good ? 0 : TRP_ENOMEM;
}

int trp_run_make(const struct trp_run_make *m, trp_error *err)
{
    const struct trp_settings *s = m->settings;
    int code = make_secret(m->folder->path, err);
    if (code == 0 && s->pipeline)
        code = write_file(m->folder->path, "pipeline.yaml", s->text, s->text_size, err);
    for (uint32_t i = 0; i < s->nincluded && code == 0; i++) {
        char name[32];
        snprintf(name, sizeof name, "include.%u", i);
        code = write_file(m->folder->path, name, s->included[i].text,
                          s->included[i].size, err);
    }
    if (code < 0)
        return code;
    struct trp_run_spec *spec = calloc(1, sizeof *spec);
    if (!spec || fill_spec(m, spec) < 0)
        code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    else
        code = trp_run_spec_save(spec, err);
    if (spec)
        trp_run_spec_free(spec);
    return code;
}
