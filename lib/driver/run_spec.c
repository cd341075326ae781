/*
 * The run specification on disk: one JSON document, and beside it the environment of
 * `troupe` as the kernel shows one (NUL-terminated strings), which may be 1 MiB and
 * hold any bytes.
 *
 * JSON has no strings but UTF-8, file names are any bytes: a string that is no UTF-8 is
 * written as {"hex": "…"}. Both files are 0600 and are made under another name first,
 * so that a reader sees them whole or not at all.
 *
 * A field is one line of the table below for saving and for loading alike; lists of
 * structs have a function each way. What is missing or of another type is refused by
 * name: the file is ours, so that means another version wrote it.
 */
#include "driver/run_spec.h"

#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/bytes.h"
#include "core/base/escape.h"
#include "os/strings.h"
#include "os/whole_file.h"

enum { RUN_SPEC_VERSION = 2, RUN_SPEC_FILE_MAX = 64 << 20 };

enum field_kind { TEXT, OPTIONAL_TEXT, NUMBER, FLAG, TEXTS };

static const struct field {
    const char *name;
    enum field_kind kind;
    size_t at, count; /* count: of TEXTS */
} fields[] = {
#define FIELD(name, kind)                                                              \
    {                                                                                  \
#name, kind, offsetof(struct trp_run_spec, name), 0                            \
    }
#define LIST(name, n)                                                                  \
    {                                                                                  \
#name, TEXTS, offsetof(struct trp_run_spec, name),                             \
            offsetof(struct trp_run_spec, n)                                           \
    }
    FIELD(run_name, TEXT),
    FIELD(run_dir, TEXT),
    FIELD(called_in, OPTIONAL_TEXT),
    FIELD(cwd, TEXT),
    FIELD(app_name, TEXT),
    FIELD(pipeline, OPTIONAL_TEXT),
    FIELD(pipeline_copy, OPTIONAL_TEXT),
    FIELD(site, OPTIONAL_TEXT),
    FIELD(ompi_server, OPTIONAL_TEXT),
    FIELD(carried, OPTIONAL_TEXT),
    FIELD(control, OPTIONAL_TEXT),
    FIELD(rank_program, OPTIONAL_TEXT),
    LIST(app, napp),
    FIELD(local_cores, NUMBER),
    FIELD(share_cores, FLAG),
    FIELD(batch_system, OPTIONAL_TEXT),
    FIELD(batch_job, NUMBER),
    FIELD(batch_helper, OPTIONAL_TEXT),
    FIELD(batch_answer, OPTIONAL_TEXT),
    FIELD(earlier_runs, NUMBER),
    FIELD(quiet, FLAG),
    FIELD(terminal, FLAG),
    FIELD(as_it_was, FLAG),
    FIELD(from, OPTIONAL_TEXT),
    FIELD(until, OPTIONAL_TEXT),
    LIST(force, nforce),
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

/* ---- strings ---- */

static json_t *text_put(const char *text)
{
    if (!text)
        return json_null();
    json_t *plain = json_string(text);
    if (plain)
        return plain;
    size_t n = strlen(text);
    char *hex = malloc(2 * n + 1);
    if (!hex)
        return NULL;
    trp_hex_put(text, n, hex);
    json_t *j = json_pack("{s:s}", "hex", hex);
    free(hex);
    return j;
}

/* malloc'ed; NULL: not such a string, or out of memory. */
static char *text_get(const json_t *j)
{
    const char *hex = json_string_value(json_object_get(j, "hex"));
    if (json_is_string(j))
        return strdup(json_string_value(j));
    size_t n = hex ? strlen(hex) : 1;
    char *text = n % 2 == 0 ? malloc(n / 2 + 1) : NULL;
    if (!text)
        return NULL;
    for (size_t i = 0; i < n / 2; i++) {
        int byte = trp_hex_byte(hex + 2 * i);
        if (byte <= 0) {
            free(text);
            return NULL;
        }
        text[i] = (char)byte;
    }
    text[n / 2] = '\0';
    return text;
}

static json_t *texts_put(char *const *v, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < n; i++)
        if (json_array_append_new(list, text_put(v[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static int texts_get(const json_t *list, char ***ret, uint32_t *ret_n)
{
    struct trp_strings s = {0};
    if (!json_is_array(list))
        return -1;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (trp_strings_take(&s, text_get(json_array_get(list, i))) < 0) {
            trp_strings_free(&s);
            return -1;
        }
    *ret = s.v;
    *ret_n = (uint32_t)s.n;
    return 0;
}

/* ---- fields ---- */

static json_t *field_put(const struct field *f, const struct trp_run_spec *s)
{
    const char *at = (const char *)s + f->at;
    const char *count = (const char *)s + f->count;
    switch (f->kind) {
    case NUMBER:
        return json_integer(*(const uint32_t *)(const void *)at);
    case FLAG:
        return json_boolean(*(const bool *)(const void *)at);
    case TEXTS:
        return texts_put(*(char *const *const *)(const void *)at,
                         *(const uint32_t *)(const void *)count);
    default:
        return text_put(*(char *const *)(const void *)at);
    }
}

static int field_get(const struct field *f, const json_t *j, struct trp_run_spec *s)
{
    void *at = (char *)s + f->at;
    void *count = (char *)s + f->count;
    if (f->kind == NUMBER && json_is_integer(j))
        *(uint32_t *)at = (uint32_t)json_integer_value(j);
    else if (f->kind == FLAG && json_is_boolean(j))
        *(bool *)at = json_boolean_value(j);
    else if (f->kind == TEXTS)
        return texts_get(j, at, count);
    else if (f->kind == TEXT || (f->kind == OPTIONAL_TEXT && !json_is_null(j)))
        return (*(char **)at = text_get(j)) ? 0 : -1;
    else if (f->kind != OPTIONAL_TEXT)
        return -1;
    return 0;
}

static json_t *options_put(const struct trp_run_spec *s)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->noptions; i++) {
        const struct trp_option_setting *o = &s->options[i];
        json_t *j = json_pack("{s:o, s:o, s:i, s:o}", "key", text_put(o->key), "value",
                              text_put(o->value), "origin", (int)o->origin, "where",
                              text_put(o->where));
        json_array_append_new(list, j);
    }
    return list;
}

static int options_get(const json_t *list, struct trp_run_spec *s)
{
    size_t n = json_array_size(list);
    s->options = calloc(n + 1, sizeof *s->options);
    if (!json_is_array(list) || !s->options)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const json_t *j = json_array_get(list, i), *where = json_object_get(j, "where");
        const json_t *origin = json_object_get(j, "origin");
        struct trp_option_setting *o = &s->options[s->noptions++];
        o->key = text_get(json_object_get(j, "key"));
        o->value = text_get(json_object_get(j, "value"));
        o->where = json_is_null(where) ? NULL : text_get(where);
        o->origin = (enum trp_origin)json_integer_value(origin);
        if (!o->key || !o->value || !json_is_integer(origin) ||
            json_integer_value(origin) < TRP_ORIGIN_DEFAULT ||
            json_integer_value(origin) > TRP_ORIGIN_COMMAND_LINE)
            return -1;
    }
    return 0;
}

static json_t *params_put(const struct trp_run_spec *s)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->nparams; i++)
        json_array_append_new(list,
                              json_pack("{s:o, s:o}", "key", text_put(s->params[i].key),
                                        "value", text_put(s->params[i].value)));
    return list;
}

static int params_get(const json_t *list, struct trp_run_spec *s)
{
    size_t n = json_array_size(list);
    s->params = calloc(n + 1, sizeof *s->params);
    if (!json_is_array(list) || !s->params)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const json_t *j = json_array_get(list, i);
        struct trp_pair *p = &s->params[s->nparams++];
        p->key = text_get(json_object_get(j, "key"));
        p->value = text_get(json_object_get(j, "value"));
        if (!p->key || !p->value)
            return -1;
    }
    return 0;
}

/* ---- files ---- */

static int disk_error(const char *what, const char *path, trp_error *err)
{
    return trp_error_set(err, TRP_ESYSTEM, "cannot %s %.600s: %m", what, path);
}

/* Puts `n` bytes into RUN_DIR/state/NAME. */
static int save_file(const char *run_dir, const char *name, const char *data, size_t n,
                     trp_error *err)
{
    char path[4200];
    if ((size_t)snprintf(path, sizeof path, "%s/state/%s", run_dir, name) >=
        sizeof path)
        return trp_error_set(err, TRP_ELIMIT, "the run folder's path is too long");
    return trp_held_write(path, data, n, false) == 0 ? 0
                                                     : disk_error("write", path, err);
}

/* The bytes of RUN_DIR/state/NAME and a NUL behind them. */
static int load_file(const char *run_dir, const char *name, char **ret, size_t *ret_n,
                     trp_error *err)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/state/%s", run_dir, name);
    int code = trp_held_read(path, RUN_SPEC_FILE_MAX, ret, ret_n);
    if (code == 0 && *ret_n <= RUN_SPEC_FILE_MAX)
        return 0;
    if (code == 0)
        free(*ret);
    errno = code ? code : EFBIG;
    return disk_error("read", path, err);
}

static int save_environ(const struct trp_run_spec *s, trp_error *err)
{
    struct trp_buf b = {0};
    for (uint32_t i = 0; i < s->nenviron; i++)
        trp_put_raw(&b, s->environ[i], strlen(s->environ[i]) + 1);
    int r = b.failed
                ? trp_error_set(err, TRP_ENOMEM, "out of memory for the environment")
                : save_file(s->run_dir, "environ", (char *)b.data, b.size, err);
    trp_buf_free(&b);
    return r;
}

static int load_environ(const char *run_dir, struct trp_run_spec *s, trp_error *err)
{
    struct trp_strings v = {0};
    char *data;
    size_t n;
    int r = load_file(run_dir, "environ", &data, &n, err);
    if (r < 0)
        return r;
    for (size_t at = 0; at < n && r == 0; at += strlen(data + at) + 1)
        r = trp_strings_add(&v, data + at);
    free(data);
    s->environ = v.v;
    s->nenviron = (uint32_t)v.n;
    return r < 0 ? trp_error_set(err, r, "out of memory for the environment") : 0;
}

/* ---- the whole ---- */

int trp_run_spec_save(const struct trp_run_spec *s, trp_error *err)
{
    json_t *root = json_pack("{s:i}", "version", RUN_SPEC_VERSION);
    int failed = root ? 0 : -1;
    for (size_t i = 0; i < FIELDS && !failed; i++)
        failed = json_object_set_new(root, fields[i].name, field_put(&fields[i], s));
    failed = failed || json_object_set_new(root, "options", options_put(s)) ||
             json_object_set_new(root, "params", params_put(s));
    char *text = failed ? NULL : json_dumps(root, JSON_INDENT(1));
    json_decref(root);
    if (!text)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the run's settings");
    int r = save_file(s->run_dir, "run_spec.json", text, strlen(text), err);
    free(text);
    return r < 0 ? r : save_environ(s, err);
}

static int spec_get(const json_t *root, struct trp_run_spec *s, trp_error *err)
{
    const char *wrong = NULL;
    if (json_integer_value(json_object_get(root, "version")) != RUN_SPEC_VERSION)
        wrong = "version";
    for (size_t i = 0; i < FIELDS && !wrong; i++)
        if (field_get(&fields[i], json_object_get(root, fields[i].name), s) < 0)
            wrong = fields[i].name;
    if (!wrong && options_get(json_object_get(root, "options"), s) < 0)
        wrong = "options";
    if (!wrong && params_get(json_object_get(root, "params"), s) < 0)
        wrong = "params";
    return wrong
               ? trp_error_set(err, TRP_EINVAL,
                               "state/run_spec.json: `%s` is missing or wrong; was it "
                               "written by another version of troupe?",
                               wrong)
               : 0;
}

int trp_run_spec_load(const char *run_dir, struct trp_run_spec **ret, trp_error *err)
{
    char *text = NULL;
    size_t n = 0;
    json_error_t where;
    int r = load_file(run_dir, "run_spec.json", &text, &n, err);
    if (r < 0)
        return r;
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);
    free(text);
    if (!root)
        return trp_error_set(err, TRP_EINVAL, "state/run_spec.json:%d:%d: %s",
                             where.line, where.column, where.text);
    struct trp_run_spec *s = calloc(1, sizeof *s);
    r = s ? spec_get(root, s, err) : trp_error_set(err, TRP_ENOMEM, "out of memory");
    json_decref(root);
    if (r == 0)
        r = load_environ(run_dir, s, err);
    if (r < 0) {
        trp_run_spec_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

static void texts_free(char **v, uint32_t n)
{
    struct trp_strings s = {.v = v, .n = n};
    trp_strings_free(&s);
}

void trp_run_spec_free(struct trp_run_spec *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < FIELDS; i++)
        if (fields[i].kind == TEXT || fields[i].kind == OPTIONAL_TEXT)
            free(*(char **)(void *)((char *)s + fields[i].at));
    for (uint32_t i = 0; i < s->noptions; i++) {
        free(s->options[i].key);
        free(s->options[i].value);
        free(s->options[i].where);
    }
    for (uint32_t i = 0; i < s->nparams; i++) {
        free(s->params[i].key);
        free(s->params[i].value);
    }
    free(s->options);
    free(s->params);
    texts_free(s->app, s->napp);
    texts_free(s->force, s->nforce);
    texts_free(s->environ, s->nenviron);
    free(s);
}

struct trp_cluster_where trp_run_spec_where(const struct trp_run_spec *s)
{
    return (struct trp_cluster_where){.local_cores = s->local_cores,
                                      .share_cores = s->share_cores,
                                      .batch = trp_backend_of(s->batch_system),
                                      .job = s->batch_job,
                                      .helper = s->batch_helper,
                                      .answer = s->batch_answer,
                                      .rank_program = s->rank_program};
}
