/*
 * The arguments of srun.
 *
 * A step's memory, cores and devices are named in full: what a step does not name it
 * takes from the job, all of it. A device's type is named only where the node has
 * several, since a job that was asked for without types refuses steps with one.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/mpirun.h"
#include "cluster/slurm/shared/slurm_state.h"
#include "cluster/slurm/shared/step_folder.h"
#include "os/held.h"

enum { ARGUMENTS = 40 };

struct arguments {
    char **v;
    size_t n, capacity;
    bool failed;
};

static void open_arguments(struct arguments *w, size_t capacity)
{
    *w = (struct arguments){.v = calloc(capacity + 1, sizeof *w->v),
                            .capacity = capacity};
    w->failed = !w->v;
}

static void add_argument(struct arguments *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_argument(struct arguments *w, const char *format, ...)
{
    va_list args;
    char *word = NULL;
    if (w->failed || w->n == w->capacity) {
        w->failed = true;
        return;
    }
    va_start(args, format);
    int n = vasprintf(&word, format, args);
    va_end(args);
    if (n < 0) {
        w->failed = true;
        return;
    }
    w->v[w->n++] = word;
}

static char **close_arguments(struct arguments *w)
{
    if (!w->failed)
        return w->v;
    trp_argv_free(w->v);
    return NULL;
}

static const struct trp_slurm_part *part_of(const struct trp_slurm *s,
                                            const struct trp_slurm_request *r)
{
    return &s->inventory.parts[s->inventory.nodes[r->spots[0].node].part];
}

/* In a job with --stepmgr srun has a variable that says who makes the job's steps: not
 * who makes those of an additional job. Gangs are started without what is around us. */
static void add_srun(struct arguments *w, const struct trp_slurm *s, uint32_t node)
{
    const char *manager = getenv("SLURM_STEPMGR");
    if (manager)
        add_argument(w, "env");
    if (manager && trp_slurm_additional_of(s, s->inventory.nodes[node].part))
        add_argument(w, "--unset=SLURM_STEPMGR");
    else if (manager)
        add_argument(w, "SLURM_STEPMGR=%s", manager);
    add_argument(w, "srun");
}

static void add_job(struct arguments *w, const struct trp_slurm *s,
                    const struct trp_slurm_request *r)
{
    const struct trp_slurm_part *p = part_of(s, r);
    add_srun(w, s, r->spots[0].node);
    add_argument(w, "--jobid=%u", p->leader);
    if (p->component >= 0)
        add_argument(w, "--het-group=%d", p->component);
    add_argument(w, "--exact");
    add_argument(w, "--no-kill");
    add_argument(w, "--export=ALL");
    add_argument(w, "--chdir=%s", s->command.run_dir);
}

/* "gpu:2" or "gpu:a100:1,gpu:v100:1"; "none". */
static void add_devices(struct arguments *w, const struct trp_slurm *s,
                        const struct trp_slurm_request *r)
{
    const struct trp_slurm_spot *spot = &r->spots[0];
    const struct trp_slurm_node *n = &s->inventory.nodes[spot->node];
    char text[1024] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < n->npools; i++) {
        uint32_t count = 0, kinds = 0;
        for (uint32_t k = 0; k < spot->ntakes; k++) {
            const struct trp_slurm_take *t = &spot->takes[k];
            bool here =
                t->pool == i && r->footprint.wants[t->want].kind == TRP_SLURM_GRES;
            count += here ? t->count : 0;
        }
        for (uint32_t k = 0; k < n->npools; k++)
            kinds += strcmp(n->pools[k].name, n->pools[i].name) == 0;
        if (!count || at >= sizeof text)
            continue;
        const char *type = kinds > 1 ? n->pools[i].type : "";
        at +=
            (size_t)snprintf(text + at, sizeof text - at, "%s%s%s%s:%u", at ? "," : "",
                             n->pools[i].name, *type ? ":" : "", type, count);
    }
    add_argument(w, "--gres=%s", at ? text : "none");
}

/* A discovery script for the step, which runs it where the variable says nothing. */
static void add_script(struct arguments *w, const struct trp_slurm *s,
                       const struct trp_slurm_want *want)
{
    const char *script = trp_site_script(s->site, want->resource);
    const char *variable = want->kind == TRP_SLURM_GRES
                               ? trp_site_variable(s->site, want->resource)
                               : NULL;
    if (script)
        add_argument(w, "%s=%u=%s=%s", want->resource, want->count,
                     variable ? variable : "", script);
}

char **trp_slurm_step_argv(const struct trp_slurm *s, const struct trp_slurm_request *r,
                           const char *name)
{
    struct arguments w;
    char **mpirun = trp_mpirun_argv(s->uri, s->command.argv);
    size_t n = 0;
    while (mpirun && mpirun[n])
        n++;
    open_arguments(&w, ARGUMENTS + 2 * TRP_PROFILE_RESOURCES + n);
    add_job(&w, s, r);
    add_argument(&w, "--nodelist=%s", s->inventory.nodes[r->spots[0].node].name);
    add_argument(&w, "--nodes=1");
    add_argument(&w, "--ntasks=1");
    add_argument(&w, "--cpus-per-task=%llu", (unsigned long long)r->footprint.cores);
    if (s->inventory.memory_enforced)
        add_argument(&w, "--mem=%lld", (long long)r->footprint.memory_mib);
    add_devices(&w, s, r);
    add_argument(&w, "--mpi=none");
    add_argument(&w, "--job-name=%s", name);
    add_argument(&w, "%s", s->rank_program);
    add_argument(&w, "step");
    add_argument(&w,
                 trp_slurm_additional_of(s, s->inventory.nodes[r->spots[0].node].part)
                     ? "additional"
                     : "own");
    for (uint32_t i = 0; i < r->footprint.nwants; i++) {
        const char *variable =
            trp_site_variable(s->site, r->footprint.wants[i].resource);
        if (variable && r->footprint.wants[i].kind == TRP_SLURM_GRES)
            add_argument(&w, "%s", variable);
    }
    for (uint32_t i = 0; i < r->footprint.nwants + r->footprint.nscripted; i++)
        add_script(&w, s, &r->footprint.wants[i]);
    add_argument(&w, "--");
    for (size_t i = 0; i < n; i++)
        add_argument(&w, "%s", mpirun[i]);
    w.failed = w.failed || !mpirun;
    trp_argv_free(mpirun);
    return close_arguments(&w);
}

/* A step that shares what others have: `troupe-rank PART`, which says nothing. */
static void add_beside(struct arguments *w, const struct trp_slurm *s, uint32_t node,
                       const char *part)
{
    const struct trp_slurm_node *n = &s->inventory.nodes[node];
    const struct trp_slurm_part *p = &s->inventory.parts[n->part];
    add_srun(w, s, node);
    add_argument(w, "--jobid=%u", p->leader);
    if (p->component >= 0)
        add_argument(w, "--het-group=%d", p->component);
    add_argument(w, "--overlap");
    add_argument(w, "--export=ALL");
    add_argument(w, "--chdir=%s", s->command.run_dir);
    add_argument(w, "--nodelist=%s", n->name);
    add_argument(w, "--nodes=1");
    add_argument(w, "--ntasks=1");
    add_argument(w, "--cpus-per-task=1");
    if (s->inventory.memory_enforced)
        add_argument(w, "--mem=0"); /* what the job has */
    add_argument(w, "--gres=none");
    add_argument(w, "--mpi=none");
    add_argument(w, "--input=none");
    add_argument(w, "--output=none");
    add_argument(w, "--error=none");
    add_argument(w, "--job-name=%s:%s", s->command.run_name, part);
    add_argument(w, "%s", s->rank_program);
    add_argument(w, "%s", part);
}

char **trp_slurm_guard_argv(const struct trp_slurm *s, uint32_t node)
{
    struct arguments w;
    open_arguments(&w, ARGUMENTS);
    add_beside(&w, s, node, "guard");
    return close_arguments(&w);
}

char **trp_slurm_tidy_argv(const struct trp_slurm *s, uint32_t node,
                           const uint32_t *executors, uint32_t n)
{
    struct arguments w;
    char owner[TRP_PRIVATE_OWNER];
    open_arguments(&w, ARGUMENTS + n + 1);
    add_beside(&w, s, node, "tidy");
    for (uint32_t i = 0; i < n; i++) {
        trp_slurm_step_owner(trp_held_id(s->command.run_dir), executors[i], owner);
        add_argument(&w, "%s", owner);
    }
    if (*s->command.scratch) /* a folder to look in */
        add_argument(&w, "%s", s->command.scratch);
    return close_arguments(&w);
}

char **trp_slurm_gang_argv(const struct trp_slurm *s, const struct trp_slurm_request *r,
                           const char *name, const char *mpi, const char *hosts)
{
    uint64_t cpus = r->footprint.cores ? r->footprint.cores : 1;
    struct arguments w;
    open_arguments(&w, ARGUMENTS);
    add_argument(&w, "env");
    add_argument(&w, "SLURM_HOSTFILE=%s", hosts);
    add_argument(
        &w, "SLURM_PMIX_FENCE=ring"); /* docs/platform.md: the tree lets ranks crash */
    add_job(&w, s, r);
    add_argument(&w, "--distribution=arbitrary");
    add_argument(&w, "--ntasks=%u", r->units);
    add_argument(&w, "--cpus-per-task=%llu", (unsigned long long)cpus);
    if (s->inventory.memory_enforced)
        add_argument(&w, "--mem-per-cpu=%llu",
                     (unsigned long long)((uint64_t)r->footprint.memory_mib / cpus));
    add_devices(&w, s, r);
    add_argument(&w, "--mpi=%s", mpi);
    add_argument(&w, "--kill-on-bad-exit=1");
    add_argument(&w, "--job-name=%s", name);
    return close_arguments(&w);
}
