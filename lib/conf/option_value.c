/*
 * What is written, read by the option's type. Bounds are texts of the same type, so
 * each type is read by one function, and compared as the number it stands for: a double
 * holds every bound and every value near one exactly enough (times up to 3·10^18 ns
 * lose some hundred ns).
 *
 * The values that other parts take (trp_options_profile_defaults, …_engine_config) are
 * made here too, where a text becomes a number.
 */
#include "conf/option_value.h"

#include <assert.h>
#include <string.h>

#include "conf/values.h"
#include "conf/wording.h"
#include "core/base/amount.h"

#define MS_NS INT64_C(1000000)

static bool is_choice(const char *choices, const char *value)
{
    size_t n = strlen(value);
    while (n > 0 && *choices) {
        size_t word = strcspn(choices, "|");
        if (word == n && !memcmp(choices, value, n))
            return true;
        choices += word + (choices[word] == '|');
    }
    return false;
}

static int not_a(const char *value, const char *wanted, trp_error *err)
{
    return trp_error_set(err, TRP_EINVAL, "\"%s\" is not %s; write %s",
                         trp_show(value).text, wanted, wanted);
}

/* Reads a value as a number that can be compared with its bounds. */
static int read_value(const struct trp_option *t, const char *value, double *ret,
                      trp_error *err)
{
    int64_t whole = 0;
    bool truth = false;
    int code = 0;
    *ret = 0;
    switch (t->type) {
    case TRP_OPTION_BOOL:
        if (!trp_bool_parse(value, &truth))
            code = not_a(value, "true or false", err);
        break;
    case TRP_OPTION_INT:
        if (!trp_whole_parse(value, &whole))
            code = not_a(value, "a whole number", err);
        *ret = (double)whole;
        break;
    case TRP_OPTION_NUMBER:
        if (!trp_number_parse(value, ret))
            code = not_a(value, "a decimal number", err);
        break;
    case TRP_OPTION_TIME:
        code = trp_time_parse(value, MS_NS, &whole, err);
        *ret = (double)whole;
        break;
    case TRP_OPTION_MEMORY:
        code = trp_memory_parse(value, &whole, err);
        *ret = (double)whole;
        break;
    case TRP_OPTION_AMOUNT:
        code = trp_amount_parse(value, &whole, err);
        *ret = (double)whole;
        if (code == 0 && whole > TRP_ONE && !trp_amount_is_whole(whole))
            code = trp_error_set(err, TRP_EINVAL,
                                 "%s is neither a whole number nor at most 1; write "
                                 "one of them",
                                 trp_show(value).text);
        break;
    case TRP_OPTION_CHOICE:
        if (!is_choice(t->choices, value))
            code =
                trp_error_set(err, TRP_EINVAL, "\"%s\" is none of its words; write %s",
                              trp_show(value).text, t->choices);
        break;
    case TRP_OPTION_TEXT:
        break;
    }
    return code;
}

int trp_option_value_check(const struct trp_option *t, const char *value,
                           trp_error *err)
{
    double v, bound;
    int code = read_value(t, value, &v, err);
    if (code < 0)
        return code;
    if (t->min && read_value(t, t->min, &bound, NULL) == 0 && v < bound)
        return trp_error_set(err, TRP_EINVAL, "%s is too small; write at least %s",
                             trp_show(value).text, t->min);
    if (t->max && read_value(t, t->max, &bound, NULL) == 0 && v > bound)
        return trp_error_set(err, TRP_EINVAL, "%s is too large; write at most %s",
                             trp_show(value).text, t->max);
    return 0;
}

/* ---- values, which were checked when they were set ---------------------------------
 */

int64_t trp_options_int(const trp_options *o, const char *key)
{
    int64_t v = 0;
    bool whole = trp_whole_parse(trp_options_text(o, key), &v);
    assert(whole);
    return v;
}

int64_t trp_options_time_ns(const trp_options *o, const char *key)
{
    int64_t v = 0;
    int code = trp_time_parse(trp_options_text(o, key), MS_NS, &v, NULL);
    assert(code == 0);
    return v;
}

int64_t trp_options_memory_mib(const trp_options *o, const char *key)
{
    int64_t v = 0;
    const char *text = trp_options_text(o, key);
    if (!*text)
        return -1;
    int code = trp_memory_parse(text, &v, NULL);
    assert(code == 0);
    return v;
}

double trp_options_number(const trp_options *o, const char *key)
{
    double v = 0;
    bool number = trp_number_parse(trp_options_text(o, key), &v);
    assert(number);
    return v;
}

bool trp_options_bool(const trp_options *o, const char *key)
{
    bool v = false;
    bool truth = trp_bool_parse(trp_options_text(o, key), &v);
    assert(truth);
    return v;
}

/* ---- checks over several options ---------------------------------------------------
 */

static int against(const trp_options *o, const char *key, const char *other,
                   const char *relation, const char *advice, trp_error *err)
{
    enum trp_origin a = trp_options_origin(o, key), b = trp_options_origin(o, other);
    const char *where = trp_options_where(o, a >= b ? key : other);
    return trp_error_set(err, TRP_EINVAL, "%s: %s %s is %s %s %s; %s", where, key,
                         trp_options_text(o, key), relation, other,
                         trp_options_text(o, other), advice);
}

int trp_options_check(const trp_options *o, trp_error *err)
{
    static const char beat[] = "executor.heartbeatInterval",
                      silence[] = "network.timeout";
    static const char least[] = "dynamicAllocation.minExecutors";
    static const char *const most[] = {"dynamicAllocation.maxExecutors",
                                       "alloc.max_executors"};
    if (trp_options_time_ns(o, beat) > trp_options_time_ns(o, silence))
        return against(o, beat, silence, "above", "make it smaller", err);
    for (size_t i = 0; i < 2; i++) {
        if (*trp_options_text(o, most[i]) &&
            trp_options_int(o, least) > trp_options_int(o, most[i]))
            return against(o, least, most[i], "above", "make it smaller", err);
    }
    if (trp_options_bool(o, "memory.offHeap.enabled") &&
        trp_options_memory_mib(o, "memory.offHeap.size") == 0)
        return against(o, "memory.offHeap.enabled", "memory.offHeap.size", "set, but",
                       "set the size too", err);
    return 0;
}

/* ---- what core takes ---------------------------------------------------------------
 */

/* The entry of a resource, made when it is new; trp_options_set bounds their number. */
static struct trp_default_resource *resource_entry(struct trp_profile_defaults *d,
                                                   const char *name, size_t n)
{
    for (uint32_t i = 0; i < d->nresources; i++) {
        if (strlen(d->resources[i].name) == n && !memcmp(d->resources[i].name, name, n))
            return &d->resources[i];
    }
    assert(d->nresources < TRP_PROFILE_RESOURCES);
    struct trp_default_resource *r = &d->resources[d->nresources++];
    memset(r, 0, sizeof(*r));
    memcpy(r->name, name, n);
    return r;
}

static int add_resource(void *context, const struct trp_option_view *v)
{
    struct trp_profile_defaults *d = context;
    const char *family = v->option->key;
    size_t prefix = strlen(family) - 1;
    if (family[prefix] != '*')
        return 0;
    size_t name = strlen(v->key) - prefix - strlen(".amount");
    struct trp_default_resource *r = resource_entry(d, v->key + prefix, name);
    if (v->option->type == TRP_OPTION_AMOUNT)
        trp_amount_parse(v->value, &r->task, NULL);
    else
        trp_whole_parse(v->value, &r->executor);
    return 0;
}

void trp_options_profile_defaults(const trp_options *o,
                                  struct trp_profile_defaults *ret)
{
    trp_profile_defaults_init(ret);
    ret->executor_cores = trp_options_int(o, "executor.cores");
    ret->cores_configured = trp_options_is_set(o, "executor.cores");
    ret->task_cpus = trp_options_int(o, "task.cpus");
    ret->memory_mib = trp_options_memory_mib(o, "executor.memory");
    ret->overhead_mib = trp_options_memory_mib(o, "executor.memoryOverhead");
    ret->pyspark_mib = trp_options_memory_mib(o, "executor.pyspark.memory");
    ret->offheap_mib = trp_options_bool(o, "memory.offHeap.enabled")
                           ? trp_options_memory_mib(o, "memory.offHeap.size")
                           : 0;
    ret->overhead_factor = trp_options_number(o, "executor.memoryOverheadFactor");
    ret->overhead_min_mib = trp_options_memory_mib(o, "executor.minMemoryOverhead");
    ret->merge_conflicts =
        trp_options_bool(o, "scheduler.resource.profileMergeConflicts");
    trp_options_each(o, add_resource, ret);
}

/* A limit that may be unset; then the engine's own stays. */
static void take_limit(const trp_options *o, const char *key, uint32_t *ret)
{
    if (*trp_options_text(o, key))
        *ret = (uint32_t)trp_options_int(o, key);
}

void trp_options_engine_config(const trp_options *o, struct trp_engine_config *ret)
{
    const char *reuse = trp_options_text(o, "alloc.reuse");
    trp_engine_config_init(ret);
    ret->locality_wait_ns[TRP_PROCESS_LOCAL] =
        trp_options_time_ns(o, "locality.wait.process");
    ret->locality_wait_ns[TRP_NODE_LOCAL] =
        trp_options_time_ns(o, "locality.wait.node");
    ret->locality_wait_ns[TRP_RACK_LOCAL] =
        trp_options_time_ns(o, "locality.wait.rack");
    ret->max_failures = (uint32_t)trp_options_int(o, "task.maxFailures");
    ret->pack = !strcmp(trp_options_text(o, "task.resource.placement"), "pack");
    ret->reuse = !strcmp(reuse, "fit")     ? TRP_REUSE_FIT
                 : !strcmp(reuse, "never") ? TRP_REUSE_NEVER
                                           : TRP_REUSE_EXACT;
    ret->release_idle = !strcmp(trp_options_text(o, "alloc.release"), "idle");
    ret->idle_timeout_ns =
        trp_options_time_ns(o, "dynamicAllocation.executorIdleTimeout");
    take_limit(o, "dynamicAllocation.minExecutors", &ret->min_executors);
    take_limit(o, "dynamicAllocation.maxExecutors", &ret->max_executors);
    take_limit(o, "alloc.max_executors", &ret->alloc_max_executors);
}
