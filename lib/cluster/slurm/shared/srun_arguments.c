/*
 * The arguments of srun.
 *
 * A step's memory, cores and devices are named in full: what a step does not name it
 * takes from the job, all of it. A device's type is named only where the node has
 * several, since a job that was asked for without types refuses steps with one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/mpirun.h"
#include "cluster/slurm/shared/slurm_state.h"
#include "cluster/slurm/shared/step_folder.h"
#include "os/argv.h"
#include "os/held.h"

/* In a job with --stepmgr srun has a variable that says who makes the job's steps: not
 * who makes those of an additional job. Gangs are started without what is around us. */
static void add_srun(struct trp_argv *a, const struct trp_slurm *s, uint32_t node)
{
    const char *manager = getenv("SLURM_STEPMGR");
    if (manager)
        trp_argv_add(a, "env");
    if (manager && trp_slurm_additional_of(s, s->inventory.nodes[node].part))
        trp_argv_add(a, "--unset=SLURM_STEPMGR");
    else if (manager)
        trp_argv_add(a, "SLURM_STEPMGR=%s", manager);
    trp_argv_add(a, "srun");
}

static void add_job(struct trp_argv *a, const struct trp_slurm *s,
                    const struct trp_slurm_request *r)
{
    const struct trp_slurm_part *p = trp_slurm_part_of(s, r);
    add_srun(a, s, r->spots[0].node);
    trp_argv_add(a, "--jobid=%u", p->leader);
    if (p->component >= 0)
        trp_argv_add(a, "--het-group=%d", p->component);
    trp_argv_add(a, "--exact");
    trp_argv_add(a, "--no-kill");
    trp_argv_add(a, "--export=ALL");
    trp_argv_add(a, "--chdir=%s", s->command.run_dir);
}

/* "gpu:2" or "gpu:a100:1,gpu:v100:1"; "none". */
static void add_devices(struct trp_argv *a, const struct trp_slurm *s,
                        const struct trp_slurm_request *r)
{
    const struct trp_slurm_spot *spot = &r->spots[0];
    const struct trp_slurm_node *n = trp_slurm_node_of(s, r);
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
    trp_argv_add(a, "--gres=%s", at ? text : "none");
}

/* A discovery script for the step, which runs it where the variable says nothing. */
static void add_script(struct trp_argv *a, const struct trp_slurm *s,
                       const struct trp_slurm_want *want)
{
    const char *script = trp_site_script(s->site, want->resource);
    const char *variable = want->kind == TRP_SLURM_GRES
                               ? trp_site_variable(s->site, want->resource)
                               : NULL;
    if (script)
        trp_argv_add(a, "%s=%u=%s=%s", want->resource, want->count,
                     variable ? variable : "", script);
}

char **trp_slurm_step_argv(const struct trp_slurm *s, const struct trp_slurm_request *r,
                           const char *name)
{
    struct trp_argv a = {0};
    char **mpirun = trp_mpirun_argv(s->uri, s->command.argv);
    size_t n = 0;
    while (mpirun && mpirun[n])
        n++;
    add_job(&a, s, r);
    trp_argv_add(&a, "--nodelist=%s", trp_slurm_node_of(s, r)->name);
    trp_argv_add(&a, "--nodes=1");
    trp_argv_add(&a, "--ntasks=1");
    trp_argv_add(&a, "--cpus-per-task=%llu", (unsigned long long)r->footprint.cores);
    if (s->inventory.memory_enforced)
        trp_argv_add(&a, "--mem=%lld", (long long)r->footprint.memory_mib);
    add_devices(&a, s, r);
    trp_argv_add(&a, "--mpi=none");
    trp_argv_add(&a, "--job-name=%s", name);
    trp_argv_add(&a, "%s", s->rank_program);
    trp_argv_add(&a, "step");
    trp_argv_add(&a, trp_slurm_job_of(s, r) ? "additional" : "own");
    for (uint32_t i = 0; i < r->footprint.nwants; i++) {
        const char *variable =
            trp_site_variable(s->site, r->footprint.wants[i].resource);
        if (variable && r->footprint.wants[i].kind == TRP_SLURM_GRES)
            trp_argv_add(&a, "%s", variable);
    }
    for (uint32_t i = 0; i < r->footprint.nwants + r->footprint.nscripted; i++)
        add_script(&a, s, &r->footprint.wants[i]);
    trp_argv_add(&a, "--");
    for (size_t i = 0; i < n; i++)
        trp_argv_add(&a, "%s", mpirun[i]);
    a.failed = a.failed || !mpirun;
    trp_argv_free(mpirun);
    return trp_argv_done(&a);
}

/* A step that shares what others have: `troupe-rank PART`, which says nothing, but with
 * `prints`. */
static void add_beside(struct trp_argv *a, const struct trp_slurm *s, uint32_t node,
                       const char *part, bool prints)
{
    const struct trp_slurm_node *n = &s->inventory.nodes[node];
    const struct trp_slurm_part *p = &s->inventory.parts[n->part];
    add_srun(a, s, node);
    trp_argv_add(a, "--jobid=%u", p->leader);
    if (p->component >= 0)
        trp_argv_add(a, "--het-group=%d", p->component);
    trp_argv_add(a, "--overlap");
    trp_argv_add(a, "--export=ALL");
    trp_argv_add(a, "--chdir=%s", s->command.run_dir);
    trp_argv_add(a, "--nodelist=%s", n->name);
    trp_argv_add(a, "--nodes=1");
    trp_argv_add(a, "--ntasks=1");
    trp_argv_add(a, "--cpus-per-task=1");
    if (s->inventory.memory_enforced)
        trp_argv_add(a, "--mem=0"); /* what the job has */
    trp_argv_add(a, "--gres=none");
    trp_argv_add(a, "--mpi=none");
    trp_argv_add(a, "--input=none");
    if (!prints)
        trp_argv_add(a, "--output=none");
    trp_argv_add(a, "--error=none");
    trp_argv_add(a, "--job-name=%s:%s", s->command.run_name, part);
    trp_argv_add(a, "%s", s->rank_program);
    trp_argv_add(a, "%s", part);
}

char **trp_slurm_guard_argv(const struct trp_slurm *s, uint32_t node)
{
    struct trp_argv a = {0};
    add_beside(&a, s, node, "guard", false);
    return trp_argv_done(&a);
}

char **trp_slurm_tidy_argv(const struct trp_slurm *s, uint32_t node,
                           const uint32_t *executors, uint32_t n)
{
    struct trp_argv a = {0};
    char owner[TRP_PRIVATE_OWNER];
    add_beside(&a, s, node, "tidy", false);
    for (uint32_t i = 0; i < n; i++) {
        trp_slurm_step_owner(trp_held_id(s->command.run_dir), executors[i], owner);
        trp_argv_add(&a, "%s", owner);
    }
    if (*s->command.scratch) /* a folder to look in */
        trp_argv_add(&a, "%s", s->command.scratch);
    return trp_argv_done(&a);
}

char **trp_slurm_move_argv(const struct trp_slurm *s, uint32_t node,
                           char *const *outputs)
{
    struct trp_argv a = {0};
    add_beside(&a, s, node, "move", true);
    trp_argv_add(&a, "%s", s->command.run_dir);
    trp_argv_add(&a, "%s", trp_held_id(s->command.run_dir));
    trp_argv_add(&a, "%s", s->command.scratch); /* a folder to look in; "": none */
    for (size_t i = 0; outputs[i]; i++)
        trp_argv_add(&a, "%s", outputs[i]);
    return trp_argv_done(&a);
}

char **trp_slurm_gang_argv(const struct trp_slurm *s, const struct trp_slurm_request *r,
                           const char *name, const char *mpi, const char *hosts)
{
    uint64_t cpus = r->footprint.cores ? r->footprint.cores : 1;
    struct trp_argv a = {0};
    trp_argv_add(&a, "env");
    trp_argv_add(&a, "SLURM_HOSTFILE=%s", hosts);
    trp_argv_add(
        &a, "SLURM_PMIX_FENCE=ring"); /* docs/platform.md: the tree lets ranks crash */
    add_job(&a, s, r);
    trp_argv_add(&a, "--distribution=arbitrary");
    trp_argv_add(&a, "--ntasks=%u", r->units);
    trp_argv_add(&a, "--cpus-per-task=%llu", (unsigned long long)cpus);
    if (s->inventory.memory_enforced)
        trp_argv_add(&a, "--mem-per-cpu=%llu",
                     (unsigned long long)((uint64_t)r->footprint.memory_mib / cpus));
    add_devices(&a, s, r);
    trp_argv_add(&a, "--mpi=%s", mpi);
    trp_argv_add(&a, "--kill-on-bad-exit=1");
    trp_argv_add(&a, "--job-name=%s", name);
    return trp_argv_done(&a);
}
