/*
 * The small sections of a site file: memory, limits, racks, mpi, nodes, driver.
 */
#include <stdlib.h>
#include <string.h>

#include "conf/racks.h"
#include "conf/site_load.h"
#include "conf/wording.h"

enum { COUNT_MAX = 1000000 };

static void imply(trp_yaml *y, struct trp_site_loading *l, const char *option,
                  const struct trp_yaml_node *value)
{
    char *key = trp_conf_arena_text(&l->arena, option, strlen(option));
    char *text = trp_yaml_text(y, value, option);
    if (!key)
        trp_yaml_no_memory(y);
    else if (text && l->nimplied < TRP_SITE_IMPLIED_OPTIONS)
        l->implied[l->nimplied++] = (struct trp_pair){key, text, value->mark};
}

/* ---- memory: ---- */

static TRP_YAML_READER(read_overhead_factor)
{
    double factor;
    if (trp_yaml_number(y, value, "overhead_factor", 0, 1000, &factor))
        imply(y, context, "executor.memoryOverheadFactor", value);
}

static TRP_YAML_READER(read_overhead_min)
{
    int64_t mib;
    if (trp_yaml_memory(y, value, "overhead_min", &mib))
        imply(y, context, "executor.minMemoryOverhead", value);
}

TRP_YAML_READER(trp_site_read_memory)
{
    TRP_YAML_MAPPING(y, value, "memory", context,
                     TRP_YAML_READ("overhead_factor", read_overhead_factor),
                     TRP_YAML_READ("overhead_min", read_overhead_min));
}

/* ---- limits: ---- */

static TRP_YAML_READER(read_executors)
{
    struct trp_site_loading *l = context;
    trp_yaml_count(y, value, key->text, 1, COUNT_MAX, &l->site.limits.executors);
    l->site.limits.executors_mark = value->mark;
    if (l->site.limits.executors)
        imply(y, l, "alloc.max_executors", value);
}

static TRP_YAML_READER(read_jobs)
{
    trp_site *s = context;
    s->limits.no_jobs =
        trp_yaml_count(y, value, key->text, 0, COUNT_MAX, &s->limits.jobs) &&
        s->limits.jobs == 0;
}

static TRP_YAML_READER(read_deny)
{
    trp_site *s = context;
    s->limits.deny_mark = value->mark;
    s->limits.deny = trp_yaml_texts(y, value, key->text, &s->limits.ndeny);
}

TRP_YAML_READER(trp_site_read_limits)
{
    TRP_YAML_MAPPING(y, value, "limits", context,
                     TRP_YAML_READ("executors", read_executors),
                     TRP_YAML_READ("jobs", read_jobs),
                     TRP_YAML_INTO("time", time, trp_site, limits.time_ns),
                     TRP_YAML_READ("deny", read_deny));
}

bool trp_site_denies(const trp_site *s, const char *name)
{
    for (uint32_t i = 0; i < s->limits.ndeny; i++)
        if (!strcmp(s->limits.deny[i], name))
            return true;
    return false;
}

void trp_site_check_denied(trp_yaml *y, const trp_site *s)
{
    for (uint32_t i = 0; i < s->limits.ndeny; i++) {
        const char *name = s->limits.deny[i];
        struct trp_nearest near = trp_nearest_of(name);
        if (trp_site_resource(s, name))
            continue;
        for (uint32_t k = 0; k < s->nresources; k++)
            trp_nearest_try(&near, s->resources[k].name);
        trp_yaml_wrong(
            y, s->limits.deny_mark, "\"%s\" is denied, but is not under resources:%s",
            trp_show(name).text,
            near.best ? trp_did_you_mean(&near).text : "; remove it from the list");
    }
}

/* ---- racks: ---- */

static TRP_YAML_READER(read_racks_from)
{
    trp_site *s = context;
    const char *from = trp_yaml_word(y, value, key->text);
    s->racks = TRP_SITE_RACKS_SLURM;
    if (from && strcmp(from, "slurm") != 0)
        trp_yaml_wrong(y, value->mark, "racks come from \"%s\"; write slurm",
                       trp_show(from).text);
}

/* A relative path is beside the site file. */
static TRP_YAML_READER(read_racks_file)
{
    trp_site *s = context;
    char *path = trp_yaml_word(y, value, key->text);
    const char *slash = strrchr(s->file, '/');
    s->racks = TRP_SITE_RACKS_FILE;
    s->racks_text = path;
    if (!path || *path == '/' || !slash)
        return;
    size_t folder = (size_t)(slash - s->file) + 1, n = strlen(path);
    char *whole = trp_yaml_alloc(y, folder + n + 1, 1);
    if (!whole)
        return;
    memcpy(whole, s->file, folder);
    memcpy(whole + folder, path, n);
    s->racks_text = whole;
}

static TRP_YAML_READER(read_racks_pattern)
{
    trp_site *s = context;
    trp_error why;
    s->racks = TRP_SITE_RACKS_PATTERN;
    s->racks_text = trp_yaml_word(y, value, key->text);
    if (s->racks_text && trp_racks_check_pattern(s->racks_text, &why) < 0)
        trp_yaml_wrong(y, value->mark, "%s", why.text);
}

TRP_YAML_READER(trp_site_read_racks)
{
    trp_site *s = context;
    s->racks_mark = value->mark;
    bool sound = TRP_YAML_MAPPING(y, value, "racks", context,
                                  TRP_YAML_READ("from", read_racks_from),
                                  TRP_YAML_READ("file", read_racks_file),
                                  TRP_YAML_READ("pattern", read_racks_pattern));
    if (sound && value->count != 1)
        trp_yaml_wrong(y, value->mark,
                       "racks has %u sources; write one of from, file, pattern",
                       value->count);
}

/* ---- mpi:, nodes: ---- */

TRP_YAML_READER(trp_site_read_mpi)
{
    trp_site *s = context;
    s->mpi = trp_site_slurm_word(y, value, key->text);
}

TRP_YAML_READER(trp_site_read_nodes)
{
    trp_site *s = context;
    const char *how = trp_yaml_word(y, value, key->text);
    if (!how)
        return;
    s->exclusive = strcmp(how, "exclusive") == 0;
    if (!s->exclusive && strcmp(how, "shared") != 0)
        trp_yaml_wrong(y, value->mark, "nodes are \"%s\"; write shared or exclusive",
                       trp_show(how).text);
}

/* ---- driver: ---- */

static TRP_YAML_READER(read_driver_memory)
{
    trp_site *s = context;
    if (trp_yaml_memory(y, value, key->text, &s->driver.memory_mib) &&
        s->driver.memory_mib == 0)
        trp_yaml_wrong(y, value->mark, "memory is 0; write more, or leave the key out");
}

TRP_YAML_READER(trp_site_read_driver)
{
    ((trp_site *)context)->driver.mark = key->mark;
    TRP_YAML_MAPPING(
        y, value, "driver", context,
        TRP_YAML_INTO("cores", count, trp_site, driver.cores, .min = 1,
                      .max = COUNT_MAX),
        TRP_YAML_READ("memory", read_driver_memory),
        TRP_YAML_INTO("time", time, trp_site, driver.time_ns,
                      .value_mark = offsetof(trp_site, driver.time_mark)),
        TRP_YAML_INTO("account", slurm_word, trp_site, driver.account),
        TRP_YAML_INTO("partition", slurm_word, trp_site, driver.partition,
                      .value_mark = offsetof(trp_site, driver.partition_mark)));
}
