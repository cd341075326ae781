/*
 * The findings about Slurm's own settings. Each thing is looked at by a function of its
 * own: it tells what is wrong, or that it is fine.
 */
#include "cluster/slurm/check/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/slurm/check/check_parts.h"
#include "cluster/slurm/helper/mpi_types.h"
#include "core/base/array.h"

#define ELSEWHERE "run troupe check where Slurm's files can be read"

enum { TEXT = 2048 };

static const char *copy(struct trp_slurm_checking *c, const char *text)
{
    const char *it = trp_conf_arena_text(&c->to->arena, text, strlen(text));
    c->to->full |= !it;
    return it;
}

static void add_finding(struct trp_slurm_checking *c, enum trp_slurm_severity severity,
                        const char *where, const char *todo, const char *text)
{
    struct trp_slurm_findings *to = c->to;
    if (!TRP_ARRAY_GROW(to->v, to->n, to->cap)) {
        to->full = true;
        return;
    }
    to->v[to->n++] = (struct trp_slurm_finding){severity, c->about, copy(c, where),
                                                copy(c, text), copy(c, todo)};
    to->errors += severity == TRP_SLURM_ERROR;
    to->warnings += severity == TRP_SLURM_WARNING;
}

void trp_slurm_tell(struct trp_slurm_checking *c, enum trp_slurm_severity severity,
                    const char *where, const char *todo, const char *fmt, ...)
{
    char text[TEXT];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    add_finding(c, severity, where, todo, text);
}

void trp_slurm_about(struct trp_slurm_checking *c, const char *about)
{
    c->about = about;
    c->told = c->to->n;
}

void trp_slurm_is_fine(struct trp_slurm_checking *c, const char *fmt, ...)
{
    char text[TEXT];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (c->told == c->to->n)
        add_finding(c, TRP_SLURM_FINE, "", "", text);
}

/* ---- limits that Slurm keeps ---- */

/* Whether "cli_filter/lua,x" has lua, whichever way it is written. */
static bool has_plugin(const char *list, const char *kind, const char *name)
{
    size_t n = strlen(kind);
    while (*list) {
        size_t size = strcspn(list, ",");
        const char *word = strncmp(list, kind, n) == 0 ? list + n : list;
        if (size == (size_t)(word - list) + strlen(name) &&
            strncmp(word, name, strlen(name)) == 0)
            return true;
        list += size + (list[size] == ',');
    }
    return false;
}

/* `key` of cgroup.conf, which slurmctld read as `value`. */
static void check_constrained(struct trp_slurm_checking *c, const char *what,
                              const char *key, const char *value)
{
    char todo[160];
    if (!has_plugin(c->f->task, "task/", "cgroup")) {
        trp_slurm_tell(c, TRP_SLURM_WARNING, "",
                       "add task/cgroup to TaskPlugin in slurm.conf",
                       "%s: TaskPlugin=%s, without task/cgroup", what,
                       *c->f->task ? c->f->task : "(not set)");
    } else if (!*value) {
        trp_slurm_tell(c, TRP_SLURM_WARNING, "", "look at cgroup.conf",
                       "%s or not, slurmctld does not tell", what);
    } else if (strcmp(value, "yes") != 0) {
        snprintf(todo, sizeof todo,
                 "write %s=yes there and restart slurmctld and slurmd", key);
        trp_slurm_tell(c, TRP_SLURM_WARNING, "cgroup.conf", todo, "%s: %s=%s", what,
                       key, value);
    }
}

static void check_memory(struct trp_slurm_checking *c)
{
    trp_slurm_about(c, "memory");
    if (!c->f->memory_is_handed_out)
        trp_slurm_tell(
            c, TRP_SLURM_WARNING, "",
            "add it in slurm.conf, as in SelectTypeParameters=CR_Core_Memory",
            "memory is not handed out: SelectTypeParameters is without "
            "Memory, so jobs share it unasked");
    check_constrained(c, "memory is not enforced", "ConstrainRAMSpace", c->f->ram);
    trp_slurm_is_fine(c, "memory is handed out and enforced");
}

static void check_devices(struct trp_slurm_checking *c)
{
    trp_slurm_about(c, "devices");
    if (*c->f->gres)
        check_constrained(c, "tasks can open devices of others", "ConstrainDevices",
                          c->f->devices);
    trp_slurm_is_fine(c, *c->f->gres ? "devices are constrained"
                                     : "there are no devices (GresTypes)");
}

/* ---- who is who ---- */

static void check_munge(struct trp_slurm_checking *c)
{
    const char *admission = trp_options_text(c->options, "admission.munge");
    bool wanted = strcmp(admission, "on") == 0;
    trp_slurm_about(c, "munge");
    if (strcmp(admission, "off") == 0) {
        trp_slurm_is_fine(c, "MUNGE is not wanted (admission.munge=off)");
        return;
    }
    if (strcmp(c->f->auth, "auth/munge") != 0)
        trp_slurm_tell(c, TRP_SLURM_WARNING, "",
                       "run munged with one key on all hosts, or set "
                       "admission.munge=off in the site file's options",
                       "Slurm does without MUNGE (AuthType=%s), so hosts may lack it",
                       c->f->auth);
    if (c->f->munge && *c->f->munge)
        trp_slurm_tell(c, wanted ? TRP_SLURM_ERROR : TRP_SLURM_WARNING, "",
                       "start munged, with the key of the other hosts",
                       "MUNGE does not answer on this host (%s)%s", c->f->munge,
                       wanted ? ", and admission.munge is on"
                              : ": runs from here have but their secret");
    trp_slurm_is_fine(c, "MUNGE answers");
}

/* By which gangs find each other, and what static runs and they are built with. */
static void check_mpi(struct trp_slurm_checking *c)
{
    const char *types = c->f->mpi_types;
    char type[TRP_SITE_WORD_MAX + 1];
    trp_error why;
    trp_slurm_about(c, "mpi");
    if (c->site->mpi && *types && !trp_slurm_mpi_has(types, c->site->mpi))
        trp_slurm_tell(c, TRP_SLURM_ERROR, "",
                       "set mpi: in the site file to one of these, or leave it out",
                       "gangs are started by srun --mpi=%s, and srun has %s",
                       c->site->mpi, types);
    else if (trp_slurm_mpi_choose(c->site, types, TRP_LINKED_OPENMPI, type, &why) < 0)
        trp_slurm_tell(c, TRP_SLURM_WARNING, "", "build Slurm with PMIx",
                       "gangs of Open MPI cannot start: srun has no --mpi=pmix, only "
                       "%s",
                       types);
    if (trp_slurm_mpi_choose(c->site, types, TRP_LINKED_NONE, type, &why) < 0)
        return;
    trp_slurm_is_fine(c, "%s on this host; gangs by srun --mpi=%s",
                      *c->f->mpis ? c->f->mpis : "no MPI", type);
}

/* ---- versions ---- */

/* "22.05.8": 0x1605; micro versions do not differ in what programs see. */
static unsigned family_of(const char *version)
{
    unsigned major = 0, minor = 0;
    if (sscanf(version, "%u.%u", &major, &minor) != 2)
        return 0;
    return major << 8 | minor;
}

/* Nodes with another Slurm than the one that Troupe was built for, by version. */
static void check_nodes(struct trp_slurm_checking *c, const char *todo)
{
    const struct trp_slurm_offers *o = &c->f->offers;
    for (uint32_t i = 0; i < o->n; i++) {
        const char *version = o->v[i].version;
        uint32_t nodes = 0, first = 0;
        while (strcmp(o->v[first].version, version) != 0)
            first++;
        if (first < i || !*version || family_of(version) == family_of(c->f->built))
            continue;
        for (uint32_t k = i; k < o->n; k++)
            nodes += strcmp(o->v[k].version, version) == 0 ? o->v[k].nodes : 0;
        trp_slurm_tell(c, TRP_SLURM_WARNING, "", todo,
                       "%u node%s run%s Slurm %s: it does not load a plugin built for "
                       "%s",
                       nodes, nodes == 1 ? "" : "s", nodes == 1 ? "s" : "", version,
                       c->f->built);
    }
}

static void check_version(struct trp_slurm_checking *c)
{
    static const char todo[] = "build Troupe with the headers of this Slurm";
    unsigned built = family_of(c->f->built), is = family_of(c->f->version);
    trp_slurm_about(c, "version");
    if (is < built)
        trp_slurm_tell(c, TRP_SLURM_ERROR, "", todo,
                       "slurmctld is Slurm %s, older than %s, for which Troupe was "
                       "built: it need not understand a newer one",
                       c->f->version, c->f->built);
    if (is > built)
        trp_slurm_tell(c, TRP_SLURM_WARNING, "", todo,
                       "slurmctld is Slurm %s, newer than %s, for which Troupe was "
                       "built",
                       c->f->version, c->f->built);
    check_nodes(c, todo);
    trp_slurm_is_fine(c, "Slurm %s, Troupe was built for %s", c->f->version,
                      c->f->built);
}

/* ---- the plugin and the filter ---- */

/* The file of the plugin. With `required` in plugstack.conf Slurm's commands do not run
 * without it. */
static void check_plugin_file(struct trp_slurm_checking *c)
{
    const struct trp_slurm_plugin *p = &c->f->plugin;
    enum trp_slurm_severity bad = p->required ? TRP_SLURM_ERROR : TRP_SLURM_WARNING;
    const char *so = p->required ? ", and it is required: no job can be started"
                                 : ": there is no --stage-profile";
    const char *where = p->line.path, *path = p->file.path;
    if (p->file.seen == TRP_SLURM_UNSEEN)
        trp_slurm_tell(c, bad, where, "let all users read it",
                       "%s cannot be read (%s)%s", path, p->file.why, so);
    else if (p->file.seen == TRP_SLURM_MISSING)
        trp_slurm_tell(c, bad, where, "install it there, or write its path",
                       "%s is not there%s", path, so);
    else if (p->built == 0)
        trp_slurm_tell(c, bad, where, "install Troupe's", "%s is no SPANK plugin%s",
                       path, so);
    else if (p->built >> 8 != family_of(c->f->version))
        trp_slurm_tell(
            c, bad, where, "build Troupe with the headers of this Slurm",
            "%s was built for Slurm %u.%02u, and Slurm %s does not load it%s", path,
            p->built >> 16, p->built >> 8 & 0xff, c->f->version, so);
}

/* slurmd looks once, when it begins, whether a plugin has something to do before and after
 * jobs; what it reads anew with scontrol reconfigure is not that. */
static void check_job_folders(struct trp_slurm_checking *c)
{
    const struct trp_slurm_plugin *p = &c->f->plugin;
    const struct trp_slurm_offers *o = &c->f->offers;
    const struct trp_slurm_offer *old = NULL;
    for (uint32_t i = 0; i < o->n; i++)
        if (o->v[i].since && (!old || o->v[i].since < old->since))
            old = &o->v[i];
    if (!c->site->scratch || !old || old->since >= p->changed)
        return;
    trp_slurm_tell(c, TRP_SLURM_WARNING, p->line.path, "restart slurmd on the nodes",
                   "slurmd on %s, and maybe on others, began before this file was "
                   "changed: if it did not load the plugin, jobs there get no folder "
                   "(scratch:)",
                   old->oldest);
}

static void check_plugin(struct trp_slurm_checking *c)
{
    const struct trp_slurm_plugin *p = &c->f->plugin;
    char other[512], todo[512];
    snprintf(todo, sizeof todo, "add the line: optional " TRP_SLURM_PLUGIN " site=%s",
             *c->file ? c->file : TRP_SLURM_PLUGIN_SITE);
    trp_slurm_about(c, "plugin");
    if (p->line.seen == TRP_SLURM_UNSEEN)
        trp_slurm_tell(c, TRP_SLURM_WARNING, "", ELSEWHERE,
                       "whether Slurm loads " TRP_SLURM_PLUGIN
                       " cannot be told here: %s: %s",
                       p->line.path, p->line.why);
    else if (p->line.seen == TRP_SLURM_MISSING)
        trp_slurm_tell(c, TRP_SLURM_WARNING, p->line.path, todo,
                       "Slurm does not load " TRP_SLURM_PLUGIN
                       ": there is no --stage-profile");
    if (p->line.seen != TRP_SLURM_THERE)
        return;
    check_plugin_file(c);
    snprintf(other, sizeof other, "write site=%s there, or check that one: --site %s",
             *c->file ? c->file : "FILE", p->site);
    if (!c->trial && strcmp(p->site, c->site->file) != 0)
        trp_slurm_tell(c, TRP_SLURM_WARNING, p->line.path, other,
                       "the plugin reads %s, users' commands %s", p->site,
                       *c->site->file ? c->site->file : "no site file");
    if (c->f->scratch_in && c->site->scratch)
        trp_slurm_tell(c, TRP_SLURM_WARNING, c->site->file,
                       "name a folder above which only root can write, such as "
                       "/var/lib/troupe",
                       "scratch: %s lies in %s, where others than root can write: who "
                       "makes it first on a node leaves jobs there without folders",
                       c->site->scratch, c->f->scratch_in);
    check_job_folders(c);
    trp_slurm_is_fine(c, "%s loads %s", p->line.path, p->file.path);
}

/* What plugin and filter go by is made from the site file, after every change. */
static void check_shapes(struct trp_slurm_checking *c)
{
    const struct trp_slurm_plugin *p = &c->f->plugin;
    char todo[1024];
    trp_slurm_about(c, "shapes");
    if (p->line.seen != TRP_SLURM_THERE)
        return;
    snprintf(todo, sizeof todo, "troupe site-shape --all --site %s --output %s",
             p->site, p->shapes.path);
    if (p->shapes.seen == TRP_SLURM_MISSING)
        trp_slurm_tell(c, TRP_SLURM_WARNING, p->shapes.path, todo,
                       "it is not there: every --stage-profile is refused");
    else if (p->shapes.seen == TRP_SLURM_UNSEEN)
        trp_slurm_tell(c, TRP_SLURM_WARNING, p->shapes.path, "let all users read it",
                       "it cannot be read (%s): every --stage-profile is refused",
                       p->shapes.why);
    else if (p->shapes_are_old)
        trp_slurm_tell(c, TRP_SLURM_WARNING, p->shapes.path, todo,
                       "it is older than %s, of which it was made", p->site);
    trp_slurm_is_fine(c, "%s is as new as %s", p->shapes.path, p->site);
}

static void check_filter(struct trp_slurm_checking *c)
{
    const struct trp_slurm_file *file = &c->f->filter;
    const char *plugins = *c->f->cli_filter ? c->f->cli_filter : "(not set)";
    trp_slurm_about(c, "cli_filter");
    if (!has_plugin(plugins, "cli_filter/", "lua"))
        trp_slurm_tell(
            c, TRP_SLURM_WARNING, "",
            "write CliFilterPlugins=lua in slurm.conf and put "
            "slurm-conf/cli_filter.lua beside it",
            "CliFilterPlugins=%s, without lua: --stage-profile gives jobs no "
            "shape",
            plugins);
    else if (file->seen == TRP_SLURM_UNSEEN)
        trp_slurm_tell(c, TRP_SLURM_WARNING, "", ELSEWHERE,
                       "what cli_filter.lua does cannot be told here: %s: %s",
                       file->path, file->why);
    else if (file->seen == TRP_SLURM_MISSING)
        trp_slurm_tell(
            c, TRP_SLURM_ERROR, file->path, "put slurm-conf/cli_filter.lua there",
            "CliFilterPlugins has lua, and its file is not there: no job can "
            "be submitted");
    else if (!c->f->filter_is_ours)
        trp_slurm_tell(c, TRP_SLURM_WARNING, file->path,
                       "add what slurm-conf/cli_filter.lua does",
                       "nothing of Troupe's is in it: --stage-profile gives jobs no "
                       "shape");
    trp_slurm_is_fine(c, "%s does Troupe's part", file->path);
}

/* ---- racks ---- */

static void check_topology(struct trp_slurm_checking *c)
{
    const trp_site *s = c->site;
    bool own = s->racks == TRP_SITE_RACKS_FILE || s->racks == TRP_SITE_RACKS_PATTERN;
    trp_slurm_about(c, "topology");
    if (!own && c->f->racks == 0 && c->f->no_scontrol)
        trp_slurm_tell(c, TRP_SLURM_WARNING, "",
                       "put Slurm's commands into PATH, also where troupe run is "
                       "called, or write racks: in the site file",
                       "there is no scontrol in PATH, which tells of racks: all nodes "
                       "count as equally near");
    else if (!own && c->f->racks == 0)
        trp_slurm_tell(
            c, TRP_SLURM_WARNING, "",
            "write TopologyPlugin=topology/tree and topology.conf, or racks: "
            "in the site file",
            "no racks are known (TopologyPlugin=%s): all nodes count as "
            "equally near",
            c->f->topology);
    if (own)
        trp_slurm_is_fine(c, "racks are the site file's");
    else
        trp_slurm_is_fine(c, "%u racks from Slurm's topology", c->f->racks);
}

/* ---- all of it ---- */

int trp_slurm_check(const struct trp_slurm_checked *it, const struct trp_slurm_facts *f,
                    struct trp_slurm_findings *ret, trp_error *err)
{
    struct trp_slurm_checking c = {.site = it->site,
                                   .options = it->options,
                                   .trial = it->trial,
                                   .file = it->file ? it->file : it->site->file,
                                   .f = f,
                                   .to = ret};
    memset(ret, 0, sizeof *ret);
    check_version(&c);
    trp_slurm_check_site(&c);
    check_memory(&c);
    check_devices(&c);
    check_munge(&c);
    check_mpi(&c);
    check_plugin(&c);
    check_shapes(&c);
    check_filter(&c);
    check_topology(&c);
    return ret->full ? trp_error_set(err, TRP_ENOMEM, "out of memory for the findings")
                     : 0;
}

void trp_slurm_findings_free(struct trp_slurm_findings *v)
{
    trp_conf_arena_free(&v->arena);
    free(v->v);
    memset(v, 0, sizeof *v);
}
