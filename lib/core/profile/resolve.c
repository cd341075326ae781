/*
 * What a profile means: the values it takes over from the default profile, how many
 * tasks an executor runs at once, and what limits them (semantics, section 2).
 *
 * All in whole numbers: how many tasks one unit of a resource holds is the floor of two
 * fixed-point numbers, so 1/k gives k for every k (floating point loses one for some).
 * A product that would overflow is taken as "more than any limit".
 *
 * Which custom resources an executor has is the one thing that differs by how executors
 * come: a full profile says it itself; executors of a task-only profile have none when
 * they are acquired for it, and are those of the default profile when the set of
 * executors is fixed.
 */
#include "core/profile/resolve.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct trp_custom no_resource;

int trp_resolve_refuse(const char *profile, int code, trp_error *err, const char *fmt,
                       ...)
{
    char text[TRP_ERROR_TEXT];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (profile[0] == '\0')
        return trp_error_set(err, code, "%s", text);
    return trp_error_set(err, code, "profile %s: %s", profile, text);
}

/* The profile that says which custom resources executors of `p` have; NULL for none. */
static const struct trp_resource_profile *
executor_side(const struct trp_resolve_rules *rules,
              const struct trp_resource_profile *p)
{
    if (!p->task_only)
        return p;
    return rules->defaults->kind == TRP_MANAGER_ELASTIC ? NULL : rules->base;
}

static const struct trp_custom *custom_of(const struct trp_resource_profile *p,
                                          const char *name)
{
    const struct trp_custom *c = p ? trp_profile_custom(p, name) : NULL;

    return c ? c : &no_resource;
}

/* Tasks that take `task` each out of `units` whole units, INT64_MAX for too many. */
static int64_t tasks_in(int64_t units, trp_amount task)
{
    int64_t tasks;

    if (task > TRP_ONE)
        return units / trp_amount_units(task);
    if (__builtin_mul_overflow(units, trp_amount_per_unit(task), &tasks))
        return INT64_MAX;
    return tasks;
}

/* A part of a unit above one half would leave the rest of the unit to nobody. Executors
 * of a task-only profile are not its own to waste. */
static int check_parts(const struct trp_resource_profile *p, trp_error *err)
{
    char text[32];

    if (p->task_only)
        return TRP_OK;
    for (uint32_t i = 0; i < p->ncustom; i++) {
        trp_amount task = p->custom[i].task;
        if (task > TRP_ONE / 2 && !trp_amount_is_whole(task))
            return trp_resolve_refuse(
                p->name, TRP_EINVAL, err,
                "task %s %s is neither a whole number nor at most 0.5, as a "
                "profile with executors needs it; ask for 0.5 or 1",
                p->custom[i].name, trp_amount_format(task, text, sizeof(text)));
    }
    return TRP_OK;
}

/* Every custom resource of a task must be there on the executor. */
static int check_resources(const struct trp_resolve_rules *rules,
                           const struct trp_resource_profile *p, trp_error *err)
{
    const struct trp_resource_profile *side = executor_side(rules, p);
    char missing[TRP_ERROR_TEXT] = "";
    size_t used = 0;
    char text[32];

    for (uint32_t i = 0; i < p->ncustom; i++) {
        const struct trp_custom *c = &p->custom[i];
        const struct trp_custom *has = custom_of(side, c->name);
        if (!c->on_task)
            continue;
        trp_amount_format(c->task, text, sizeof(text));
        if (!has->on_executor && used < sizeof(missing))
            used += (size_t)snprintf(missing + used, sizeof(missing) - used, "%s%s %s",
                                     used ? ", " : "", c->name, text);
        if (has->on_executor && trp_amount_units(c->task) > has->executor)
            return trp_resolve_refuse(p->name, TRP_EINVAL, err,
                                      "task %s %s above executor %s %" PRId64
                                      "; give executors more of it or tasks less",
                                      c->name, text, c->name, has->executor);
    }
    if (used == 0)
        return TRP_OK;
    if (!p->task_only)
        return trp_resolve_refuse(
            p->name, TRP_EINVAL, err,
            "no executor resource for task resource %s; add it to the executor "
            "section",
            missing);
    if (!side)
        return trp_resolve_refuse(
            p->name, TRP_EINVAL, err,
            "no executor resource for task resource %s: executors of a "
            "task-only profile have no custom resources; add an executor "
            "section with it",
            missing);
    return trp_resolve_refuse(
        p->name, TRP_EINVAL, err,
        "no executor resource for task resource %s: a task-only profile runs "
        "on executors of the default profile, which has none; set "
        "executor.resource.NAME.amount",
        missing);
}

/* A launch carries the addresses of its task, so there is a limit on them. */
static int check_addresses(const struct trp_resource_profile *p, trp_error *err)
{
    int64_t addresses = 0;

    for (uint32_t i = 0; i < p->ncustom; i++)
        addresses += trp_amount_units(p->custom[i].task);
    if (addresses > TRP_TASK_ADDRESSES_MAX)
        return trp_resolve_refuse(p->name, TRP_ELIMIT, err,
                                  "a task takes %" PRId64
                                  " units of custom resources; the most is %d",
                                  addresses, TRP_TASK_ADDRESSES_MAX);
    return TRP_OK;
}

static int count_slots(const struct trp_resolve_rules *rules,
                       struct trp_resource_profile *p, trp_error *err)
{
    const struct trp_resource_profile *side = executor_side(rules, p);

    if (p->task_cpus <= 0)
        return trp_resolve_refuse(p->name, TRP_EINVAL, err,
                                  "task cpus %" PRId64 " must be at least 1",
                                  p->task_cpus);
    if (p->cores < p->task_cpus)
        return trp_resolve_refuse(p->name, TRP_EINVAL, err,
                                  "task cpus %" PRId64 " above executor cores %" PRId64
                                  "; give executors more cores or tasks fewer cpus",
                                  p->task_cpus, p->cores);
    int rc = check_resources(rules, p, err);
    if (rc == 0)
        rc = check_addresses(p, err);
    if (rc < 0)
        return rc;

    int64_t slots = p->cores / p->task_cpus;
    const char *limiting = "cpus";
    for (uint32_t i = 0; i < p->ncustom; i++) {
        const struct trp_custom *c = &p->custom[i];
        if (c->task == 0)
            continue;
        int64_t tasks = tasks_in(custom_of(side, c->name)->executor, c->task);
        if (tasks < slots) { /* on a tie the earlier one limits, cpus first */
            slots = tasks;
            limiting = c->name;
        }
    }
    if (slots > TRP_PROFILE_SLOTS_MAX)
        return trp_resolve_refuse(
            p->name, TRP_ELIMIT, err,
            "%" PRId64 " tasks at once on an executor (limited by %s) are too "
            "many; the most is %d",
            slots, limiting, TRP_PROFILE_SLOTS_MAX);
    p->slots = (uint32_t)slots;
    memcpy(p->limiting, limiting, strlen(limiting) + 1);
    return TRP_OK;
}

static int fill_in(const struct trp_resolve_rules *rules,
                   struct trp_resource_profile *p, trp_error *err)
{
    const struct trp_profile_defaults *d = rules->defaults;
    /* The default profile has all that it does not say from the options. */
    const struct trp_resource_profile *base = rules->base ? rules->base : p;
    const struct trp_builtins *own = &p->executor, *from = &base->executor;

    p->cores = trp_written_or(own->cores, from->cores);
    p->task_cpus = trp_written_or(p->cpus, base->cpus);
    if (p->task_only && d->kind == TRP_MANAGER_ELASTIC && !d->cores_configured &&
        p->cores < p->task_cpus)
        p->cores = p->task_cpus; /* nobody requested small executors */
    p->memory_mib = trp_written_or(own->memory_mib, from->memory_mib);
    p->offheap_mib = trp_written_or(own->offheap_mib, from->offheap_mib);
    if (p->memory_mib < 1)
        return trp_resolve_refuse(p->name, TRP_EINVAL, err,
                                  "executor memory %" PRId64 " must be at least 1 MiB",
                                  p->memory_mib);

    int64_t overhead = (int64_t)(d->overhead_factor * (double)p->memory_mib);
    if (overhead < d->overhead_min_mib)
        overhead = d->overhead_min_mib;
    p->overhead_mib =
        trp_written_or(own->overhead_mib, trp_written_or(from->overhead_mib, overhead));
    p->total_mib =
        p->memory_mib + p->overhead_mib + p->offheap_mib +
        trp_written_or(own->pyspark_mib, trp_written_or(from->pyspark_mib, 0));
    return TRP_OK;
}

int trp_resolve(const struct trp_resolve_rules *rules, struct trp_resource_profile *p,
                trp_error *err)
{
    int rc = check_parts(p, err);

    if (rc == 0)
        rc = fill_in(rules, p, err);
    return rc < 0 ? rc : count_slots(rules, p, err);
}

bool trp_resolve_waste(const struct trp_resolve_rules *rules,
                       const struct trp_resource_profile *p, char *buf, size_t size)
{
    const struct trp_resource_profile *side = executor_side(rules, p);
    char list[TRP_ERROR_TEXT] = "";
    size_t used = 0;

    if (strcmp(p->limiting, "cpus") != 0 && p->task_cpus * p->slots < p->cores)
        used = (size_t)snprintf(list, sizeof(list),
                                "cores %" PRId64 " would take %" PRId64, p->cores,
                                p->cores / p->task_cpus);
    for (uint32_t i = 0; i < p->ncustom; i++) {
        const struct trp_custom *c = &p->custom[i];
        int64_t has = custom_of(side, c->name)->executor;
        if (c->task == 0 || tasks_in(has, c->task) <= p->slots || used >= sizeof(list))
            continue;
        used += (size_t)snprintf(
            list + used, sizeof(list) - used, "%s%s %" PRId64 " would take %" PRId64,
            used ? ", " : "", c->name, has, tasks_in(has, c->task));
    }
    if (used > 0)
        snprintf(buf, size, "%s limits an executor to %" PRIu32 " task%s: %s",
                 p->limiting, p->slots, p->slots == 1 ? "" : "s", list);
    return used > 0;
}
