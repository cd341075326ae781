/*
 * A custom resource may have any name, so only one letter too many, too few or wrong makes
 * a slip of a built-in one, or the first three letters of it or more.
 */
#include "core/profile/resource_names.h"

#include <stddef.h>
#include <string.h>

#include "core/base/nearest.h"

/* What is memory stands first. */
static const char *const of_executor[] = {"memory",         "memoryOverhead", "offHeap",
                                          "pyspark.memory", "cores",          NULL};
static const char *const of_task[] = {"cpus", NULL};
enum { MEMORY_NAMES = 4 };

bool trp_resource_is_memory(const char *name)
{
    for (int i = 0; i < MEMORY_NAMES; i++)
        if (!strcmp(name, of_executor[i]))
            return true;
    return false;
}

static bool is_slip(const char *name, const char *word)
{
    struct trp_nearest near = trp_nearest_of(name);
    trp_nearest_try(&near, word);
    return (near.best && near.distance <= 1) ||
           (strlen(name) >= 3 && trp_begins(name, word));
}

static const char *find(const char *const *words, const char *name)
{
    while (*words && strcmp(*words, name) != 0)
        words++;
    return *words;
}

static const char *find_meant(const char *const *words, const char *name)
{
    if (!strcmp(name, "gpus")) /* near to cpus, and not meant so */
        return "gpu";
    while (*words && !is_slip(name, *words))
        words++;
    return *words;
}

int trp_resource_name_check(const char *name, bool executor, trp_error *err)
{
    const char *const *own = executor ? of_executor : of_task;
    const char *const *other = executor ? of_task : of_executor;
    const char *side = executor ? "executor" : "task";
    if (find(own, name))
        return TRP_OK;
    const char *better = find(other, name) ? NULL : find_meant(own, name);
    if (better)
        return trp_error_set(err, TRP_EINVAL, "\"%s\" in %s; did you mean \"%s\"?",
                             name, side, better);
    if (find_meant(other, name))
        return trp_error_set(err, TRP_EINVAL, "\"%s\" in %s; %s", name, side,
                             executor ? "an executor has cores, a task takes cpus"
                                      : "a task takes cpus and custom resources, the "
                                        "rest is its executor's");
    return TRP_OK;
}
