/*
 * The pipeline is read once into memory and parsed from there: what was checked is what
 * is stored in the run folder, also when the file is a pipe or changes meanwhile.
 */
#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "conf/option_places.h"
#include "conf/stage_specs.h"
#include "conf/wording.h"
#include "conf/yaml.h"
#include "core/base/array.h"
#include "os/strings.h"
#include "os/whole_file.h"

enum { CORES_MAX = 1 << 16 };

int trp_settings_word(const char **list, uint32_t *n, const char *option,
                      const char *value, trp_error *err)
{
    if (*n == TRP_SETTINGS_WORDS)
        return trp_error_set(err, TRP_EINVAL, "more than %d times --%s",
                             TRP_SETTINGS_WORDS, option);
    list[(*n)++] = value;
    return 0;
}

static int take_local(struct trp_settings_request *q, const char *value, trp_error *err)
{
    q->local = true;
    q->cores = 0;
    if (!value)
        return 0;
    char *end;
    errno = 0;
    unsigned long n = strtoul(value, &end, 10);
    if (errno || *end || value[0] < '0' || value[0] > '9' || n == 0 || n > CORES_MAX)
        return trp_error_set(err, TRP_EINVAL,
                             "--local=%s: not a number of cores from 1 to %d",
                             trp_show(value).text, CORES_MAX);
    q->cores = (uint32_t)n;
    return 0;
}

int trp_settings_take(struct trp_settings_request *q, int what, const char *value,
                      trp_error *err)
{
    switch (what) {
    case TRP_SETTING_SITE:
        q->site = value;
        return 0;
    case TRP_SETTING_SET:
        return trp_settings_word(q->sets, &q->nsets, "set", value, err);
    case TRP_SETTING_PARAM:
        return trp_settings_word(q->params, &q->nparams, "param", value, err);
    case TRP_SETTING_LOCAL:
        return take_local(q, value, err);
    default:
        return what;
    }
}

/* At most one byte more than allowed: the parser then says that it is too large. */
static int read_file(const char *file, char **ret_text, size_t *ret_size,
                     trp_error *err)
{
    int reason = trp_held_read(file, TRP_PIPELINE_FILE_MAX, ret_text, ret_size);
    if (reason == ENOMEM)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    return reason ? trp_error_set(err, TRP_EINVAL, "%s: cannot be read: %s", file,
                                  strerror(reason))
                  : 0;
}

/* What a pipeline names is a file: a FIFO would be waited for. */
static int read_regular(const char *file, char **ret_text, size_t *ret_size,
                        trp_error *err)
{
    int fd = trp_file_open_regular(file);
    if (fd < 0)
        return trp_error_set(err, TRP_EINVAL, "%s: cannot be read: %s", file,
                             errno == ENOTSUP ? "it is not a regular file"
                                              : strerror(errno));
    int reason = trp_file_read(fd, TRP_PIPELINE_FILE_MAX, ret_text, ret_size);
    close(fd);
    return reason ? trp_error_set(err, reason == ENOMEM ? TRP_ENOMEM : TRP_EINVAL,
                                  "%s: cannot be read: %s", file, strerror(reason))
                  : 0;
}

/* "K=V": the key into `key` and the value. */
static int split(const char *option, const char *word, char *key, size_t size,
                 const char **ret_value, trp_error *err)
{
    const char *equals = strchr(word, '=');
    if (!equals || equals == word || (size_t)(equals - word) >= size)
        return trp_error_set(err, TRP_EINVAL, "--%s %s: not of the form KEY=VALUE",
                             option, trp_show(word).text);
    memcpy(key, word, (size_t)(equals - word));
    key[equals - word] = '\0';
    *ret_value = equals + 1;
    return 0;
}

static int load_options(const struct trp_settings_request *q, struct trp_settings *s,
                        trp_error *err)
{
    char key[256] = "";
    const char *value = NULL;
    int code = trp_options_new(&s->options, err);
    if (code == 0)
        code = trp_options_from_places(s->options, s->site, s->pipeline, err);
    for (uint32_t i = 0; i < q->nsets && code == 0; i++) {
        code = split("set", q->sets[i], key, sizeof key, &value, err);
        if (code == 0)
            code = trp_options_set(s->options, key, value, TRP_ORIGIN_COMMAND_LINE,
                                   "--set", err);
    }
    if (code == 0)
        code = trp_options_check(s->options, err);
    return code < 0 ? code : trp_site_options_check(s->site, s->options, err);
}

static int read_params(const struct trp_settings_request *q, struct trp_pair *params,
                       trp_error *err)
{
    char key[256] = "";
    const char *value = NULL;
    int code = 0;
    for (uint32_t i = 0; i < q->nparams && code == 0; i++) {
        code = split("param", q->params[i], key, sizeof key, &value, err);
        if (code < 0)
            break;
        params[i] = (struct trp_pair){.key = strdup(key), .value = strdup(value)};
        if (!params[i].key || !params[i].value)
            code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    return code;
}

/* Included files as the pipeline itself: read once, kept for the run folder. A stored
 * pipeline has its own beside it, by their order. */
struct included_reader {
    const struct trp_settings_request *q;
    struct trp_settings *s;
};

static int read_included(void *context, const char *file, char **ret_text,
                         size_t *ret_size, trp_error *err)
{
    struct included_reader *r = context;
    struct trp_settings *s = r->s;
    char *path = NULL;
    if (r->q->stored) {
        if (asprintf(&path, "%.*s/include.%u",
                     (int)(strrchr(r->q->pipeline, '/') - r->q->pipeline),
                     r->q->pipeline, s->nincluded) < 0)
            path = NULL;
    } else {
        path = r->q->cwd ? trp_path_join(r->q->cwd, file) : strdup(file);
    }
    if (!path || !TRP_ARRAY_GROW(s->included, s->nincluded, s->included_capacity)) {
        free(path);
        return trp_error_set(err, TRP_ENOMEM, "%s: out of memory", file);
    }
    int code = r->q->stored ? read_file(path, ret_text, ret_size, err)
                            : read_regular(path, ret_text, ret_size, err);
    free(path);
    if (code < 0)
        return code;
    char *copy = malloc(*ret_size + 1);
    if (!copy) {
        free(*ret_text);
        return trp_error_set(err, TRP_ENOMEM, "%s: out of memory", file);
    }
    memcpy(copy, *ret_text, *ret_size);
    s->included[s->nincluded++] = (struct trp_included_text){copy, *ret_size};
    return 0;
}

static void say_wrong(void *context, const char *text)
{
    trp_error e;
    (void)context;
    trp_error_set(&e, TRP_EINVAL, "%s", text);
    trp_launcher_fail(&e);
}

static int load_pipeline(const struct trp_settings_request *q, struct trp_settings *s,
                         trp_error *err)
{
    struct trp_pair *params = calloc((size_t)q->nparams + 1, sizeof *params);
    struct included_reader reader = {q, s};
    const struct trp_pipeline_inputs in = {.params = params,
                                           .nparams = q->nparams,
                                           .read = read_included,
                                           .tell = say_wrong,
                                           .context = &reader};
    int code = params ? read_params(q, params, err)
                      : trp_error_set(err, TRP_ENOMEM, "out of memory");
    if (code == 0)
        code = read_file(q->pipeline, &s->text, &s->text_size, err);
    if (code == 0)
        code = trp_pipeline_read(q->shown ? q->shown : q->pipeline, s->text,
                                 s->text_size, &in, &s->pipeline, err);
    for (uint32_t i = 0; params && i < q->nparams; i++) {
        free(params[i].key);
        free(params[i].value);
    }
    free(params);
    return code;
}

/* Of the pipeline that is the context. */
static void say_warning(void *context, struct trp_mark at, const char *text)
{
    const trp_pipeline *p = context;
    trp_error line;
    trp_error_at(&line, 0, p->file, at, "warning: %s", text);
    fprintf(stderr, "troupe: %s\n", line.text);
}

int trp_settings_load(const struct trp_settings_request *q, struct trp_settings *ret,
                      trp_error *err)
{
    memset(ret, 0, sizeof *ret);
    int code = trp_site_load_told(q->site, say_wrong, NULL, &ret->site, err);
    if (code == 0 && q->pipeline)
        code = load_pipeline(q, ret, err);
    ret->listener = (struct trp_pipeline_listener){say_warning, ret->pipeline};
    if (code == 0 && ret->pipeline)
        ret->pipeline->listener = &ret->listener;
    if (code == 0)
        code = load_options(q, ret, err);
    return code < 0 ? code : trp_site_take_scripts(ret->site, ret->options, NULL, err);
}

int trp_settings_pools(struct trp_settings *s, trp_error *err)
{
    return trp_pool_list_make(s->pipeline, s->options, NULL, &s->pools, err);
}

static int warn_missing(void *context, const struct trp_option_view *v)
{
    const trp_options *o = context;
    const char *why = trp_option_missing(v->key);
    if (why && v->origin != TRP_ORIGIN_DEFAULT)
        fprintf(stderr, "troupe: %s: warning: %s does nothing: %s\n",
                trp_options_where(o, v->key), v->key, why);
    return 0;
}

static void warn_names(const struct trp_settings *s)
{
    const struct trp_pipeline_warning *w = s->pipeline ? s->pipeline->warnings : NULL;
    for (; w; w = w->next)
        say_warning(s->pipeline, w->mark, w->text);
}

/* What is never tried again need not be kept from it. */
static void warn_retries(const struct trp_settings *s)
{
    for (uint32_t i = 0; s->pipeline && i < s->pipeline->nstages; i++) {
        const struct trp_pipeline_stage *v = &s->pipeline->stages[i];
        if (v->spec.nnot_on && trp_stage_tries(v, s->options) == 1)
            fprintf(stderr,
                    "troupe: %s:%u:%u: warning: stage %s: not_on without max_failures "
                    "above 1 does nothing: a command is tried once\n",
                    trp_mark_file(s->pipeline->file, v->mark), v->mark.line,
                    v->mark.column, v->name);
    }
}

void trp_settings_missing(const struct trp_settings *s)
{
    warn_names(s);
    warn_retries(s);
    if (s->options)
        trp_options_each(s->options, warn_missing, s->options);
}

void trp_settings_warn(const struct trp_settings *s)
{
    trp_settings_missing(s);
    for (uint32_t i = 0; s->site && i < s->site->nwarnings; i++) {
        const struct trp_site_warning *w = &s->site->warnings[i];
        fprintf(stderr, "troupe: %s:%u:%u: warning: %s\n", s->site->file, w->mark.line,
                w->mark.column, w->text);
    }
}

void trp_settings_free(struct trp_settings *s)
{
    trp_pool_list_free(&s->pools);
    trp_pipeline_free(s->pipeline);
    trp_options_free(s->options);
    trp_site_free(s->site);
    free(s->text);
    for (uint32_t i = 0; i < s->nincluded; i++)
        free(s->included[i].text);
    free(s->included);
    memset(s, 0, sizeof *s);
}
