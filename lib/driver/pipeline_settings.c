/*
 * Settings of a run, put together in the order in which they may refer to each other:
 * options of site, environment and command line (as `troupe` found them), then the
 * pipeline and its options, then profiles, which depend on all of these.
 *
 * `troupe` has checked all of it before it started anything; what fails here was
 * changed in between, or is a fault of ours, and is told with the same words.
 */
#include "driver/pipeline_settings.h"
#include "os/whole_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* At most one byte more than allowed: the parser then says that it is too large. */
static int read_stored(const char *path, char **ret_text, size_t *ret_size,
                       trp_error *err)
{
    int reason = trp_held_read(path, TRP_PIPELINE_FILE_MAX, ret_text, ret_size);
    if (reason == ENOMEM)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the pipeline");
    return reason ? trp_error_set(err, TRP_ESYSTEM, "cannot read %.600s: %s", path,
                                  strerror(reason))
                  : 0;
}

struct included_reader {
    const char *run_dir;
    uint32_t n; /* files read so far */
};

static int read_included(void *context, const char *file, char **ret_text,
                         size_t *ret_size, trp_error *err)
{
    struct included_reader *r = context;
    char *path;
    (void)file; /* they are stored by their order */
    if (asprintf(&path, "%s/state/include.%u", r->run_dir, r->n++) < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the pipeline");
    int code = read_stored(path, ret_text, ret_size, err);
    free(path);
    return code;
}

int trp_pipeline_stored(const struct trp_run_spec *spec, trp_pipeline **ret,
                        trp_error *err)
{
    const char *shown = spec->pipeline ? spec->pipeline : spec->pipeline_copy;
    struct included_reader reader = {spec->run_dir, 0};
    const struct trp_pipeline_inputs given = {.params = spec->params,
                                              .nparams = spec->nparams,
                                              .read = read_included,
                                              .context = &reader};
    char *text = NULL;
    size_t n = 0;
    if (!spec->pipeline_copy)
        return trp_error_set(err, TRP_EINVAL, "%.600s is the run of a program",
                             spec->run_dir);
    int r = read_stored(spec->pipeline_copy, &text, &n, err);
    if (r == 0)
        r = trp_pipeline_read(shown, text, n, &given, ret, err);
    free(text);
    return r;
}

static int load_options(const struct trp_run_spec *spec,
                        struct trp_pipeline_settings *s, trp_error *err)
{
    int r = trp_options_new(&s->options, err);
    for (uint32_t i = 0; i < spec->noptions && r == 0; i++)
        r = trp_options_set(s->options, spec->options[i].key, spec->options[i].value,
                            spec->options[i].origin, spec->options[i].where, err);
    if (r == 0)
        r = trp_pipeline_options(s->pipeline, s->options, err);
    return r < 0 ? r : trp_options_check(s->options, err);
}

int trp_pipeline_settings_load(const struct trp_run_spec *spec,
                               struct trp_pipeline_settings *ret, trp_error *err)
{
    struct trp_pipeline_settings s = {0};
    int r = trp_pipeline_stored(spec, &s.pipeline, err);
    if (r == 0)
        r = trp_site_load(spec->site && *spec->site ? spec->site : NULL, &s.site, err);
    if (r == 0)
        r = load_options(spec, &s, err);
    if (r == 0)
        r = trp_site_take_scripts(s.site, s.options, spec->cwd, err);
    if (r == 0)
        r = trp_pool_list_make(s.pipeline, s.options, spec->cwd, &s.pools, err);
    if (r == 0) {
        s.ids = calloc((size_t)s.pipeline->nstages + 1, sizeof *s.ids);
        r = s.ids ? trp_pipeline_profiles(s.pipeline, s.options, s.site, &s.profiles,
                                          s.ids, err)
                  : trp_error_set(err, TRP_ENOMEM, "out of memory for the pipeline");
    }
    if (r < 0) {
        trp_pipeline_settings_free(&s);
        return r;
    }
    *ret = s;
    return 0;
}

void trp_pipeline_settings_free(struct trp_pipeline_settings *s)
{
    if (s->profiles)
        trp_profiles_free(s->profiles);
    if (s->options)
        trp_options_free(s->options);
    if (s->site)
        trp_site_free(s->site);
    if (s->pipeline)
        trp_pipeline_free(s->pipeline);
    trp_pool_list_free(&s->pools);
    free(s->ids);
    *s = (struct trp_pipeline_settings){0};
}
