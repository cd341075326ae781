/*
 * `troupe plan`: what a pipeline comes to (driver/plan.h), here.
 */
#include <stdio.h>

#include "args.h"
#include "commands.h"
#include "driver/plan.h"
#include "needs.h"
#include "settings.h"

enum option { JSON = 1, SITE, SET, LOCAL, PARAM };
static const struct trp_arg table[] = {
    {"json",  TRP_ARG_FLAG,     JSON },
    {"site",  TRP_ARG_VALUE,    SITE },
    {"set",   TRP_ARG_VALUE,    SET  },
    {"local", TRP_ARG_OPTIONAL, LOCAL},
    {"param", TRP_ARG_VALUE,    PARAM},
    {NULL,    TRP_ARG_FLAG,     0    },
};

static const char usage[] =
    "usage: troupe plan [options] PIPELINE.yaml\n\n"
    "  --json             one JSON document\n"
    "  --site FILE        site file\n"
    "  --set KEY=VALUE    set an option (see troupe config)\n"
    "  --param K=V        value of a param of the pipeline\n"
    "  --local[=CORES]    this machine, with so many cores\n\n"
    "Exit status: 0; 2 wrong call or file; 3 when a stage never fits here.\n";

static int take(int what, const char *value, struct trp_settings_request *q,
                bool *ret_json, trp_error *err)
{
    switch (what) {
    case JSON:
        *ret_json = true;
        return 0;
    case SITE:
        q->site = value;
        return 0;
    case SET:
        return trp_settings_word(q->sets, &q->nsets, "set", value, err);
    case PARAM:
        return trp_settings_word(q->params, &q->nparams, "param", value, err);
    case LOCAL:
        return trp_settings_local(q, value, err);
    case TRP_ARG_WORD:
        if (q->pipeline)
            return trp_error_set(err, TRP_EINVAL, "plan: more than one pipeline file");
        q->pipeline = value;
        return 0;
    default:
        return trp_error_set(err, TRP_EINVAL, "plan: programs have no plan");
    }
}

static int print_plan(const struct trp_settings_request *q, bool json)
{
    struct trp_settings s;
    struct trp_cluster_where where = {0};
    struct trp_carried carried;
    trp_error err;
    int code = trp_settings_load(q, &s, &err);
    if (code == 0)
        code = trp_settings_pools(&s, &err);
    if (code == 0)
        code = trp_settings_where(q, &s, &where, &err);
    if (code == 0)
        trp_settings_warn(&s);
    if (code == 0)
        code = trp_needs_transport(s.options, NULL, &carried, &err);
    if (code == 0)
        code = trp_plan_print(s.pipeline, s.options, s.site, &s.pools, carried.text,
                              &where, json, stdout, &err);
    trp_settings_where_free(&where);
    trp_settings_free(&s);
    int status = trp_launcher_printed(0);
    return code < 0 ? trp_launcher_fail(&err) : status;
}

int trp_launcher_plan(int argc, char **argv)
{
    static struct trp_settings_request q;
    struct trp_args a = trp_args_of("plan", table, argc, argv);
    const char *value;
    bool json = false;
    trp_error err;
    int what;
    while ((what = trp_args_next(&a, &value, &err)) != TRP_ARG_END) {
        if (what == TRP_ARG_HELP) {
            fputs(usage, stdout);
            return trp_launcher_printed(0);
        }
        if (what < 0 || take(what, value, &q, &json, &err) < 0)
            return trp_launcher_fail(&err);
    }
    if (!q.pipeline)
        return trp_launcher_misuse("plan: no pipeline file (see troupe plan --help)");
    return print_plan(&q, json);
}
