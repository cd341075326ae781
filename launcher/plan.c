/*
 * `troupe plan`: what a pipeline comes to (driver/plan_print.h), here: in a job of the batch
 * system in that and its additional jobs, outside in what jobs there could have.
 */
#include <stdio.h>

#include "args.h"
#include "commands.h"
#include "driver/plan_print.h"
#include "needs.h"
#include "run_call.h"
#include "settings.h"

static struct trp_run_call call;
static bool as_json, all;

static const struct trp_arg table[] = {
    TRP_ARGS_FLAG("all", &all, "a row a stage, however many there are"),
    TRP_ARGS_JSON(&as_json),
    TRP_SETTINGS_SITE,
    TRP_SETTINGS_SET,
    TRP_SETTINGS_PARAM,
    TRP_SETTINGS_LOCAL,
    {"resume", TRP_ARG_VALUE, TRP_ARG_TAKEN, "RUN",
      "what of an earlier run would run again, and why", &call.resume},
    TRP_RUN_AS_IT_WAS(TRP_ARG_TAKEN, &call.as_it_was),
    TRP_RUN_HERE(TRP_ARG_TAKEN, &call.here),
    TRP_ARGS_RUNS(&call.runs),
    TRP_ARGS_END,
};

static int on_argument(struct trp_args *a, int what, const char *value, trp_error *err)
{
    (void)a;
    if (what == TRP_ARG_REST)
        return trp_error_set(err, TRP_EINVAL, "plan: programs have no plan");
    if (what != TRP_ARG_WORD)
        return trp_settings_take(&call.settings, what, value, err);
    if (call.settings.pipeline)
        return trp_error_set(err, TRP_EINVAL, "plan: more than one pipeline file");
    call.settings.pipeline = value;
    return 0;
}

const struct trp_line trp_line_plan = {
    "plan",
    "usage: troupe plan [options] PIPELINE.yaml\n"
    "       troupe plan --resume RUN [options] [PIPELINE.yaml]\n\n",
    "\nExit status: 0; 2 wrong call or file; 3 when a stage never fits here.\n", table,
    .take = on_argument};

static int print_plan(const struct trp_settings_request *q, enum trp_plan_form form)
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
        trp_settings_outside(q, NULL, true, &where);
    if (code == 0)
        trp_settings_warn(&s);
    if (code == 0)
        code = trp_needs_transport(s.options, NULL, &carried, &err);
    if (code == 0)
        code = trp_plan_print(s.pipeline, s.options, s.site, &s.pools, carried.text,
                              &where, NULL, form, stdout, &err);
    trp_settings_where_free(&where);
    trp_settings_free(&s);
    int status = trp_launcher_printed(0);
    return code < 0 ? trp_launcher_fail(&err) : status;
}

int trp_launcher_plan(void)
{
    enum trp_plan_form form = as_json ? TRP_PLAN_JSON
                              : all   ? TRP_PLAN_ALL
                                      : TRP_PLAN_TEXT;
    if (call.resume)
        return trp_run_plan(&call, form);
    if (!call.settings.pipeline)
        return trp_launcher_misuse("plan: no pipeline file (see troupe plan --help)");
    return print_plan(&call.settings, form);
}
