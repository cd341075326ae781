/*
 * What a task finds in a step of a profile. Slurm has given it its devices by now, in
 * the site's variable: those numbers are told, not the node's, for they are the ones
 * with which a program can say which device it means (as lib/cluster/slurm does).
 *
 * The task is bound near its devices only where that costs it nothing: when the CPUs it
 * may use and that are near are at least as many as it asked for. Slurm's own binding,
 * or the user's, is left alone, and so is a batch script, which starts other steps.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/slurm/helper/libslurm.h"
#include "plugin/plugin.h"
#include "plugin/shapes.h"

enum { ADDRESSES = 4096 };

/* ---- resources ---- */

/* Those of the resources before it that are told by the same variable come first in it.
 */
static uint32_t before(const struct trp_shape *s, uint32_t which)
{
    const struct trp_shape_resource *r = &s->resources[which];
    uint32_t n = 0;
    for (uint32_t i = 0; i < which; i++) {
        if (strcmp(s->resources[i].variable, r->variable) == 0)
            n += s->resources[i].count;
    }
    return n;
}

static bool is_shared(const struct trp_shape *s, uint32_t which)
{
    for (uint32_t i = 0; i < s->nresources; i++) {
        if (i != which &&
            strcmp(s->resources[i].variable, s->resources[which].variable) == 0)
            return true;
    }
    return false;
}

/* Cuts `list` to `count` words from the word number `first`. */
static void cut(char *list, uint32_t first, uint32_t count)
{
    char *from = list, *to;
    for (uint32_t i = 0; i < first && from; i++) {
        from = strchr(from, ',');
        from = from ? from + 1 : NULL;
    }
    to = from;
    for (uint32_t i = 0; i < count && to; i++) {
        to = strchr(to, ',');
        if (to && i + 1 < count)
            to++;
    }
    if (to)
        *to = '\0';
    memmove(list, from ? from : "", strlen(from ? from : "") + 1);
}

/* "0,1,2" */
static void count_up(char *list, size_t size, uint32_t count)
{
    size_t n = 0;
    *list = '\0';
    for (uint32_t i = 0; i < count && n < size; i++)
        n += (size_t)snprintf(list + n, size - n, "%s%" PRIu32, i ? "," : "", i);
}

/* The user may have asked for other devices than the profile has: then the variable has
 * those. */
static int tell_resource(spank_t sp, const struct trp_shape *s, uint32_t which)
{
    const struct trp_shape_resource *r = &s->resources[which];
    char variable[sizeof "TROUPE_RESOURCE_" + TRP_RESOURCE_NAME_MAX];
    char list[ADDRESSES] = "";
    snprintf(variable, sizeof variable, "TROUPE_RESOURCE_%s", r->name);
    if (!r->gres || !*r->variable)
        count_up(list, sizeof list, r->count);
    else if (spank_getenv(sp, r->variable, list, sizeof list) != ESPANK_SUCCESS)
        *list = '\0';
    else if (is_shared(s, which))
        cut(list, before(s, which), r->count);
    if (*list)
        return (int)spank_setenv(sp, variable, list, 1);
    /* Of the job, perhaps, and not of this step. */
    spank_unsetenv(sp, variable);
    return ESPANK_SUCCESS;
}

/* ---- binding ---- */

static bool is_bound(spank_t sp)
{
    char how[256] = "";
    return spank_getenv(sp, "SLURM_CPU_BIND_TYPE", how, sizeof how) == ESPANK_SUCCESS &&
           *how;
}

static bool is_step(spank_t sp)
{
    uint32_t step = SLURM_BATCH_SCRIPT;
    return spank_get_item(sp, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
           step <= SLURM_MAX_NORMAL_STEP_ID;
}

static int bind_near(spank_t sp, trp_error *err)
{
    char ids[ADDRESSES] = "";
    uint32_t cpus = 0;
    cpu_set_t mine, both;
    if (!is_step(sp) || is_bound(sp) ||
        spank_getenv(sp, "SLURM_STEP_GPUS", ids, sizeof ids) != ESPANK_SUCCESS ||
        !trp_plugin_near("", ids, &both) ||
        sched_getaffinity(0, sizeof mine, &mine) < 0)
        return 0;
    if (spank_get_item(sp, S_STEP_CPUS_PER_TASK, &cpus) != ESPANK_SUCCESS || cpus == 0)
        cpus = 1;
    CPU_AND(&both, &both, &mine);
    if (CPU_EQUAL(&both, &mine) || (uint32_t)CPU_COUNT(&both) < cpus)
        return 0;
    if (sched_setaffinity(0, sizeof both, &both) < 0)
        return trp_error_set(err, TRP_ESYSTEM, "not bound near GPUs %s: %m", ids);
    return 0;
}

/* ---- the whole ---- */

int trp_plugin_step(spank_t sp, const struct trp_plugin *p, trp_error *err)
{
    struct trp_shape s;
    bool gres = false;
    int rc = (int)spank_setenv(sp, "TROUPE_PROFILE", p->profile, 1);
    int code = trp_shapes_find(p->shapes, p->profile, &s, err);
    spank_unsetenv(sp, TRP_PLUGIN_SHAPES); /* it was for who submitted this */
    if (code < 0)
        return code;
    for (uint32_t i = 0; i < s.nresources; i++) {
        int failed = tell_resource(sp, &s, i);
        rc = rc ? rc : failed;
        gres |= s.resources[i].gres;
    }
    if (gres)
        code = bind_near(sp, err);
    if (rc != ESPANK_SUCCESS)
        code = trp_error_set(err, TRP_ESYSTEM, "the task's environment: %s",
                             spank_strerror((spank_err_t)rc));
    return code;
}
