/*
 * `troupe site-shape NAME`: a profile of the site as options of srun, sbatch and
 * salloc, one KEY=VALUE a line (a long option without its dashes). `--all`: what
 * cli_filter, job_submit and the SPANK plugin go by.
 */
#include "site_shape.h"

#include <jansson.h>
#include <stdio.h>

#include "args.h"
#include "commands.h"
#include "conf/wording.h"
#include "conf/yaml.h"
#include "events/json_print.h"

static int unknown(const trp_site *s, const char *name, trp_error *err)
{
    struct trp_nearest near = trp_nearest_of(name);
    struct trp_name_list all = {0};
    for (uint32_t i = 0; i < s->nprofiles; i++) {
        trp_nearest_try(&near, s->profiles[i].builder.name);
        trp_name_list_add(&all, s->profiles[i].builder.name);
    }
    if (s->nprofiles == 0)
        return trp_error_set(
            err, TRP_EINVAL, "unknown profile \"%s\"; %s%s has none under profiles:",
            trp_show(name).text, *s->file ? "" : "without a site file ",
            *s->file ? s->file : "the site");
    return trp_error_set(err, TRP_EINVAL, "unknown profile \"%s\"%s%s there are: %s",
                         trp_show(name).text, trp_did_you_mean(&near).text,
                         near.best ? "" : ";", all.text);
}

int trp_launcher_shape(const struct trp_settings *s,
                       const struct trp_profile_section *section,
                       struct trp_launcher_shape *ret, trp_error *err)
{
    struct trp_profile_defaults d;
    trp_profile_id id = {0};
    *ret = (struct trp_launcher_shape){0};
    trp_options_profile_defaults(s->options, &d);
    int code = trp_profiles_new(&d, NULL, &ret->profiles, err);
    if (code == 0)
        code = trp_profiles_add(ret->profiles, &section->builder, &id, err);
    if (code < 0)
        return code;
    ret->profile = trp_profiles_get(ret->profiles, id);
    return trp_site_request_make(s->site, ret->profile, 0, &ret->request, err);
}

void trp_launcher_shape_free(struct trp_launcher_shape *s)
{
    trp_profiles_free(s->profiles);
}

static void print(const char *name, const struct trp_site_request *r, bool json)
{
    struct trp_site_option v[TRP_SITE_REQUEST_OPTIONS];
    uint32_t n = trp_site_request_options(r, TRP_SITE_FOR_SHAPE, v);
    json_t *options = json_object();
    for (uint32_t i = 0; i < n; i++) {
        if (json)
            json_object_set_new(options, v[i].key, json_string(v[i].value));
        else
            printf("%s=%s\n", v[i].key, v[i].value);
    }
    json_t *document = json_pack("{s:s, s:o}", "name", name, "options", options);
    if (json) {
        trp_json_print(document, JSON_INDENT(2), stdout);
    }
    json_decref(document);
}

static int print_one(const struct trp_settings *s, const char *name, bool json,
                     trp_error *err)
{
    struct trp_launcher_shape shape;
    trp_error why;
    const struct trp_profile_section *section =
        trp_profile_section_find(s->site->profiles, s->site->nprofiles, name);
    if (!section)
        return unknown(s->site, name, err);
    int code = trp_launcher_shape(s, section, &shape, &why);
    if (code == 0)
        print(name, &shape.request, json);
    else
        trp_error_at(err, code, s->site->file, section->mark, "%s", why.text);
    trp_launcher_shape_free(&shape);
    return code;
}

/* `name` NULL: all of them. */
static int print_shape(const struct trp_settings_request *q, const char *name,
                       const char *output, bool json)
{
    struct trp_settings s;
    trp_error err;
    int code = trp_settings_load(q, &s, &err);
    if (code == 0) {
        trp_settings_warn(&s);
        code = name ? print_one(&s, name, json, &err)
                    : trp_launcher_shapes(&s, output, &err);
    }
    trp_settings_free(&s);
    return code < 0 ? trp_launcher_fail(&err) : trp_launcher_printed(0);
}

static struct {
    struct trp_settings_request q;
    const char *name, *output;
    bool json, all;
} call;

static int on_argument(struct trp_args *a, int what, const char *value, trp_error *err)
{
    (void)a;
    if (what != TRP_ARG_WORD && what != TRP_ARG_REST)
        return trp_settings_take(&call.q, what, value, err);
    if (call.name || !value)
        return trp_error_set(err, TRP_EINVAL, "site-shape: takes one NAME");
    call.name = value;
    return 0;
}

const struct trp_line trp_line_site_shape = {
    "site-shape",
    "usage: troupe site-shape [options] NAME\n"
    "       troupe site-shape [options] --all\n\n"
    "Prints what the profile NAME of the site file becomes in Slurm, an option a\n"
    "line as KEY=VALUE.\n\n",
    "\nExit status: 0; 2 wrong call or file, unknown name; 3 when the site does not\n"
    "allow it.\n",
    .table = TRP_ARGS(
        TRP_ARGS_FLAG(
            "all", &call.all,
            "all profiles, as cli_filter.lua and the SPANK plugin read\nthem"),
        TRP_ARGS_TEXT("output", &call.output, "FILE",
                      "put them into FILE, which stays as it was when the site\n"
                      "file has an error"),
        TRP_ARGS_JSON(&call.json), TRP_SETTINGS_SITE, TRP_SETTINGS_SET),
    .take = on_argument};

int trp_launcher_site_shape(void)
{
    if (call.all ? call.name || call.json : !call.name || call.output)
        return trp_launcher_misuse(
            call.all      ? "site-shape: --all takes neither a NAME nor --json"
            : call.output ? "site-shape: --output is for --all"
                          : "site-shape: no NAME (see troupe site-shape --help)");
    return print_shape(&call.q, call.name, call.output, call.json);
}
