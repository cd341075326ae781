/*
 * What core takes of the options: the default profile's values, the engine's
 * configuration; and the checks that need several options.
 */
#include <assert.h>
#include <string.h>

#include "conf/option_value.h"
#include "conf/scalars.h"
#include "core/base/amount.h"

#define EXCLUDE "excludeOnFailure.enabled"
#define OLD_EXCLUDE "scheduler.executorTaskExcludeOnFailureTime"
#define TIMEOUT "excludeOnFailure.timeout"

/* ---- checks over several options ---- */

static int against(const trp_options *o, const char *key, const char *other,
                   const char *relation, const char *advice, trp_error *err)
{
    enum trp_origin a = trp_options_origin(o, key), b = trp_options_origin(o, other);
    const char *where = trp_options_where(o, a >= b ? key : other);
    return trp_error_set(err, TRP_EINVAL, "%s: %s %s is %s %s %s; %s", where, key,
                         trp_options_text(o, key), relation, other,
                         trp_options_text(o, other), advice);
}

/* Where excludeOnFailure.enabled is not set, the old timeout above 0 says so. */
static bool excludes(const trp_options *o)
{
    if (trp_options_is_set(o, EXCLUDE))
        return trp_options_bool(o, EXCLUDE);
    return *trp_options_text(o, OLD_EXCLUDE) && trp_options_time_ns(o, OLD_EXCLUDE) > 0;
}

bool trp_options_shuffle_safe(const trp_options *o)
{
    return trp_options_bool(o, "shuffle.service.enabled") ||
           trp_options_bool(o, "dynamicAllocation.shuffleTracking.enabled") ||
           (trp_options_bool(o, "decommission.enabled") &&
            trp_options_bool(o, "storage.decommission.shuffleBlocks.enabled"));
}

/* An executor that goes takes its map outputs along, unless they are its host's or it
 * stays while they are needed. A run hands nothing over when it decommissions. */
static int check_outputs(const trp_options *o, trp_error *err)
{
    static const char *const keepers[] = {"shuffle.host_files",
                                          "shuffle.service.enabled",
                                          "dynamicAllocation.shuffleTracking.enabled"};
    const char *last = keepers[0];
    bool kept = !trp_options_bool(o, "dynamicAllocation.enabled");
    for (size_t i = 0; i < 3; i++) {
        kept = kept || trp_options_bool(o, keepers[i]);
        if (trp_options_origin(o, keepers[i]) > trp_options_origin(o, last))
            last = keepers[i];
    }
    if (kept)
        return 0;
    return trp_error_set(err, TRP_EINVAL,
                         "%s: with %s, %s and %s all false an executor that goes takes "
                         "map outputs along that others read; set one of them to true",
                         trp_options_where(o, last), keepers[0], keepers[1],
                         keepers[2]);
}

int trp_options_check(const trp_options *o, trp_error *err)
{
    static const char beat[] = "executor.heartbeatInterval",
                      silence[] = "network.timeout";
    static const char least[] = "dynamicAllocation.minExecutors";
    static const char *const most[] = {"dynamicAllocation.maxExecutors",
                                       "alloc.max_executors"};
    static const char leave[] = "excludeOnFailure.task.maxTaskAttemptsPerNode",
                      limit[] = "task.maxFailures";
    if (trp_options_time_ns(o, beat) > trp_options_time_ns(o, silence))
        return against(o, beat, silence, "above", "make it smaller", err);
    for (size_t i = 0; i < 2; i++) {
        if (*trp_options_text(o, most[i]) &&
            trp_options_int(o, least) > trp_options_int(o, most[i]))
            return against(o, least, most[i], "above", "make it smaller", err);
    }
    if (excludes(o) && trp_options_int(o, leave) >= trp_options_int(o, limit))
        return against(o, leave, limit, "not below", "make it smaller", err);
    if (excludes(o) && !trp_options_is_set(o, TIMEOUT) &&
        *trp_options_text(o, OLD_EXCLUDE) && trp_options_time_ns(o, OLD_EXCLUDE) == 0)
        return against(o, EXCLUDE, OLD_EXCLUDE, "set, but", "set " TIMEOUT " too", err);
    if (trp_options_bool(o, "memory.offHeap.enabled") &&
        trp_options_memory_mib(o, "memory.offHeap.size") == 0)
        return against(o, "memory.offHeap.enabled", "memory.offHeap.size", "set, but",
                       "set the size too", err);
    return check_outputs(o, err);
}

/* ---- what core takes ---- */

/* An option's value as text; of no options: its default. */
static const char *text_of(const trp_options *o, const char *key)
{
    if (o)
        return trp_options_text(o, key);
    const struct trp_option *t = trp_option_table;
    while (strcmp(t->key, key) != 0)
        t++;
    return t->fallback[0] == '=' ? text_of(o, t->fallback + 1) : t->fallback;
}

static bool is_true(const trp_options *o, const char *key)
{
    bool v = false;
    trp_bool_parse(text_of(o, key), &v);
    return v;
}

static void store_member(char *at, uint32_t size, int64_t v)
{
    const uint8_t v1 = (uint8_t)v;
    const uint32_t v4 = (uint32_t)v;
    memcpy(at, size == 1 ? &v1 : size == 4 ? (const void *)&v4 : &v, size);
}

/* Into every member that has an option's value. */
static void fill_members(const trp_options *o, enum trp_option_taker taker, void *ret)
{
    for (const struct trp_option *t = trp_option_table; t->key; t++) {
        if (t->member.taker != taker)
            continue;
        char *at = (char *)ret + t->member.offset;
        int64_t v = t->member.unset;
        double number = 0;
        trp_option_value_read(t, text_of(o, t->key), &v, &number);
        if (t->type == TRP_OPTION_NUMBER)
            memcpy(at, &number, sizeof number);
        else
            store_member(at, t->member.size, v);
    }
}

bool trp_option_member_is_possible(const struct trp_option *t,
                                   const struct trp_engine_config *c)
{
    const char *at = (const char *)c + t->member.offset;
    double number = 0;
    uint32_t v4 = 0;
    int64_t v = 0;
    switch (t->type) {
    case TRP_OPTION_BOOL:
    case TRP_OPTION_CHOICE: /* their form holds them to their words */
        return true;
    case TRP_OPTION_NUMBER:
        memcpy(&number, at, sizeof number);
        return trp_option_is_within(t, number);
    default:
        memcpy(t->member.size == 4 ? (void *)&v4 : &v, at, t->member.size);
        v = t->member.size == 4 ? (int64_t)v4 : v;
        return (v == t->member.unset && (!*t->fallback || t->choices)) ||
               trp_option_is_within(t, (double)v);
    }
}

/* The entry of a resource, made when it is new; trp_options_set bounds their number. */
static struct trp_default_resource *resource_entry(struct trp_profile_defaults *d,
                                                   const char *name)
{
    for (uint32_t i = 0; i < d->nresources; i++) {
        if (!strcmp(d->resources[i].name, name))
            return &d->resources[i];
    }
    assert(d->nresources < TRP_PROFILE_RESOURCES);
    struct trp_default_resource *r = &d->resources[d->nresources++];
    memset(r, 0, sizeof(*r));
    memcpy(r->name, name, strlen(name) + 1);
    return r;
}

static int add_resource(void *context, const struct trp_option_view *v)
{
    struct trp_profile_defaults *d = context;
    char name[TRP_RESOURCE_NAME_MAX];
    if (trp_option_resource(v, "task.resource.*.amount", name))
        trp_amount_parse(v->value, &resource_entry(d, name)->task, NULL);
    else if (trp_option_resource(v, "executor.resource.*.amount", name))
        trp_whole_parse(v->value, &resource_entry(d, name)->executor);
    return 0;
}

void trp_options_profile_defaults(const trp_options *o,
                                  struct trp_profile_defaults *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->kind = TRP_MANAGER_ELASTIC;
    fill_members(o, TRP_TAKER_PROFILES, ret);
    if (!is_true(o, "memory.offHeap.enabled"))
        ret->offheap_mib = 0;
    if (!o)
        return;
    ret->cores_configured = trp_options_is_set(o, "executor.cores");
    trp_options_each(o, add_resource, ret);
}

static int add_cap(void *context, const struct trp_option_view *v)
{
    struct trp_alloc_caps *caps = context;
    if (!trp_option_resource(v, "alloc.max_*", caps->custom[caps->ncustom].name))
        return 0;
    trp_whole_parse(v->value, &caps->custom[caps->ncustom++].most);
    return 0;
}

/* What follows from several options. */
static void combine(const trp_options *o, struct trp_engine_config *ret)
{
    uint32_t instances = (uint32_t)trp_options_int(o, "executor.instances");
    if (instances > ret->initial_executors)
        ret->initial_executors = instances;
    ret->host_files = ret->host_files || ret->shuffle_service;
    ret->exclusion.enabled = excludes(o);
    ret->keep_going = trp_options_bool(o, "run.keep_going");
    if (!trp_options_is_set(o, TIMEOUT) && *trp_options_text(o, OLD_EXCLUDE))
        ret->exclusion.timeout_ns = trp_options_time_ns(o, OLD_EXCLUDE);
    trp_options_each(o, add_cap, &ret->caps);
}

void trp_options_engine_config(const trp_options *o, struct trp_engine_config *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->queue_ahead_ns = 10 * TRP_MS;
    ret->queue_ahead_max = 2048;
    ret->retry_first_ns = 1000 * TRP_MS;
    ret->retry_max_ns = 60000 * TRP_MS;
    ret->max_start_failures = 5;
    fill_members(o, TRP_TAKER_ENGINE, ret);
    const char *ahead = text_of(o, "alloc.look_ahead");
    ret->look_ahead = !strcmp(ahead, "auto")  ? TRP_LOOK_AHEAD_AUTO
                      : !strcmp(ahead, "off") ? TRP_LOOK_AHEAD_OFF
                                              : TRP_LOOK_AHEAD_TIME;
    trp_memory_parse(text_of(o, "driver.maxResultSize"), &ret->max_result_bytes, NULL);
    ret->max_result_bytes <<= 20; /* of MiB */
    if (o)
        combine(o, ret);
}
