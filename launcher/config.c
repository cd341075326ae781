/*
 * `troupe config`: the option table with the values that hold, and where they come
 * from.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "commands.h"
#include "conf/table.h"
#include "conf/wording.h"
#include "events/json_print.h"
#include "needs.h"
#include "settings.h"

enum { HELP = 400 };

struct listing {
    const char *key; /* NULL: all */
    bool json;
    uint32_t n;
    json_t *list;
    struct trp_nearest near;
    char carried[TRP_ERROR_TEXT]; /* how messages travel here */
};

static json_t *text_or_null(const char *text)
{
    return text && *text ? json_string(text) : json_null();
}

/* With what is missing for it to do anything. */
static const char *help_of(const struct trp_option_view *v, char *buf, size_t size)
{
    const char *missing = trp_option_missing(v->key);
    snprintf(buf, size, missing ? "%s (does nothing: %s)" : "%s", v->option->help,
             missing);
    return buf;
}

/* The default of what differs for programs and pipelines. */
static const char *fallback_of(const struct trp_option_view *v)
{
    return strcmp(v->key, "task.maxFailures") == 0 ? "1 in pipelines, 4 in programs"
                                                   : v->option->fallback;
}

static const char *value_of(const struct trp_option_view *v)
{
    return v->origin == TRP_ORIGIN_DEFAULT && strcmp(v->key, "task.maxFailures") == 0
               ? fallback_of(v)
               : v->value;
}

/* Whose value says less than what it comes to here. */
static bool is_transport(const struct trp_option_view *v)
{
    return strcmp(v->key, "comm.transport") == 0;
}

static void add_json(struct listing *l, const struct trp_option_view *v)
{
    char help[HELP];
    json_t *entry = json_pack(
        "{s:s, s:o, s:s, s:o, s:o, s:o, s:s}", "key", v->key, "value",
        text_or_null(value_of(v)), "origin", trp_origin_name(v->origin), "default",
        text_or_null(fallback_of(v)), "min", text_or_null(v->option->min), "max",
        text_or_null(v->option->max), "help", help_of(v, help, sizeof help));
    if (is_transport(v))
        json_object_set_new(entry, "here", json_string(l->carried));
    json_array_append_new(l->list, entry);
}

static void add_bounds(const struct trp_option *o, char *text, size_t size)
{
    size_t n = strlen(text);
    if (o->choices)
        n += (size_t)snprintf(text + n, size - n, "; one of %s", o->choices);
    if (o->min && o->max)
        snprintf(text + n, size - n, "; %s to %s", o->min, o->max);
    else if (o->min)
        snprintf(text + n, size - n, "; at least %s", o->min);
    else if (o->max)
        snprintf(text + n, size - n, "; at most %s", o->max);
}

static int print_option(void *context, const struct trp_option_view *v)
{
    struct listing *l = context;
    if (l->key && strcmp(l->key, v->key) != 0) {
        trp_nearest_try(&l->near, v->key);
        return 0;
    }
    l->n++;
    if (l->json) {
        add_json(l, v);
        return 0;
    }
    printf("%s = %s  (%s)\n", v->key, v->value && *v->value ? value_of(v) : "(not set)",
           trp_origin_name(v->origin));
    char help[HELP], text[2 * HELP + TRP_ERROR_TEXT];
    snprintf(text, sizeof text, "%s; default %s", help_of(v, help, sizeof help),
             *v->option->fallback ? fallback_of(v) : "not set");
    add_bounds(v->option, text, sizeof text);
    trp_text_wrap(text, "    ", 4, stdout);
    if (is_transport(v)) {
        snprintf(text, sizeof text, "here: %s", l->carried);
        trp_text_wrap(text, "    ", 4, stdout);
    }
    return 0;
}

/* A family (`executor.resource.R.amount`) has no view while no R of it is set. */
static bool show_family(struct listing *l)
{
    struct trp_option_view v = {.key = l->key,
                                .value = "",
                                .origin = TRP_ORIGIN_DEFAULT,
                                .option = trp_option_find(l->key)};
    if (v.option)
        print_option(l, &v);
    return v.option;
}

static int print_config(const struct trp_settings_request *q, struct listing *l)
{
    struct trp_settings s;
    trp_error err;
    int code = trp_settings_load(q, &s, &err);
    if (code < 0) {
        trp_settings_free(&s);
        return trp_launcher_fail(&err);
    }
    l->near = trp_nearest_of(l->key ? l->key : "");
    l->list = json_array();
    struct trp_carried carried;
    snprintf(l->carried, sizeof l->carried, "%s",
             trp_needs_transport(s.options, NULL, &carried, &err) < 0 ? err.text
                                                                      : carried.text);
    trp_options_each(s.options, print_option, l);
    int status = 0;
    if (l->key && !l->n && !show_family(l))
        status = trp_launcher_misuse(
            "config: unknown option %s%s", trp_show(l->key).text,
            l->near.best ? trp_did_you_mean(&l->near).text
                         : "; see `troupe config` for those there are");
    else if (l->json) {
        trp_json_print(l->key ? json_array_get(l->list, 0) : l->list, 0, stdout);
    }
    json_decref(l->list);
    trp_settings_free(&s);
    return status ? status : trp_launcher_printed(0);
}

static struct {
    struct trp_settings_request q;
    struct listing list;
} call;

static int on_argument(struct trp_args *a, int what, const char *value, trp_error *err)
{
    (void)a;
    if (what == TRP_ARG_REST)
        return trp_error_set(err, TRP_EINVAL, "config: takes no program");
    if (what != TRP_ARG_WORD)
        return trp_settings_take(&call.q, what, value, err);
    if (call.list.key)
        return trp_error_set(err, TRP_EINVAL, "config: more than one KEY");
    call.list.key = value;
    return 0;
}

const struct trp_line trp_line_config = {
    "config", "usage: troupe config [options] [KEY]\n\n",
    "\nAlso read: TROUPE_OPT_<KEY, dots as _>, the site file.\n",
    .table = TRP_ARGS(TRP_ARGS_JSON(&call.list.json),
                      TRP_ARGS_TEXT("pipeline", &call.q.pipeline, "FILE",
                                    "with the options of a pipeline file"),
                      TRP_SETTINGS_SITE, TRP_SETTINGS_SET),
    .take = on_argument};

int trp_launcher_config(void)
{
    return print_config(&call.q, &call.list);
}
