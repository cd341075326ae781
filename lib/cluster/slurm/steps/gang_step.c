/*
 * Gangs in the driver's job: one srun over the nodes where the ledger has placed the
 * ranks, all in one component of the job.
 *
 * Which rank goes where is in a file, a line a rank (Slurm's arbitrary distribution).
 * Devices are the same number on each node of the step; which of them are a rank's own
 * is only known there, so that the rank wrapper is told how to choose
 * (executor/gang.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "cluster/slurm/helper/mpi_types.h"
#include "cluster/slurm/jobs/additional.h"
#include "cluster/slurm/jobs/node_watch.h"
#include "cluster/slurm/steps/executor_state.h"
#include "cluster/slurm/steps/ghosts.h"
#include "executor/spawner.h"
#include "executor/srun_refusal.h"
#include "os/held.h"

static char *hosts_path(const struct trp_slurm *s, const struct trp_slurm_gang *g)
{
    char *path;
    if (asprintf(&path, "%s/state/gang-%llu.hosts", s->command.run_dir,
                 (unsigned long long)g->attempt.n) < 0)
        return NULL;
    return path;
}

static void leave(void *context, void *ticket)
{
    struct trp_slurm *s = context;
    struct trp_slurm_gang *g = ticket;
    struct trp_slurm_kind_jobs *w =
        g->request.state == TRP_SLURM_PLACED ? g->request.kind->context : NULL;
    if (w)
        w->refused[0] = '\0';
    trp_slurm_ledger_leave(s->ledger, &g->request);
    if (!s->closed)
        trp_slurm_pump_soon(s);
}

static void forget(void *context, void *ticket)
{
    char *path = hosts_path(context, ticket);
    if (path)
        trp_held_unlink(path, 0);
    free(path);
    DL_DELETE(((struct trp_slurm *)context)->gang_list,
              (struct trp_slurm_gang *)ticket);
    free(ticket);
}

/* "gpu=*CUDA_VISIBLE_DEVICES:2:1": two of those in the variable for each rank. */
static void describe_devices(void *context, void *ticket, FILE *to)
{
    const struct trp_slurm *s = context;
    const struct trp_slurm_footprint *footprint =
        &((struct trp_slurm_gang *)ticket)->request.footprint;
    for (uint32_t i = 0; i < footprint->nwants; i++) {
        const struct trp_slurm_want *w = &footprint->wants[i];
        const char *variable =
            w->kind == TRP_SLURM_GRES ? trp_site_variable(s->site, w->resource) : NULL;
        fprintf(to, "%s=*%s:%u:%u\n", w->resource, variable ? variable : "", w->count,
                w->each);
    }
}

static int write_hosts(const struct trp_slurm *s, const struct trp_slurm_gang *g,
                       const char *path)
{
    FILE *f = trp_held_fopen(path, "w");
    if (!f)
        return TRP_ESYSTEM;
    for (uint32_t i = 0; i < g->request.nspots; i++) {
        const struct trp_slurm_spot *spot = &g->request.spots[i];
        for (uint32_t k = 0; k < spot->units; k++)
            fprintf(f, "%s\n", s->inventory.nodes[spot->node].name);
    }
    return fclose(f) == 0 ? 0 : TRP_ESYSTEM;
}

static void tell_step(const struct trp_slurm *s, const struct trp_slurm_gang *g)
{
    struct trp_cluster_step step = {.job = trp_slurm_part_of(s, &g->request)->job,
                                    .name = g->name,
                                    .gang = true,
                                    .attempt = g->attempt};
    if (s->handler.batch.step)
        s->handler.batch.step(s->handler.context, &step);
}

static char **launcher(void *context, void *ticket)
{
    struct trp_slurm *s = context;
    const struct trp_slurm_gang *g = ticket;
    char *path = hosts_path(s, g), **argv = NULL;
    char name[4300];
    if (path && write_hosts(s, ticket, path) == 0 &&
        trp_held_name(path, name, sizeof name))
        argv = trp_slurm_gang_argv(s, &g->request, g->name, g->mpi, name);
    free(path);
    trp_slurm_srun_started(s);
    if (argv)
        tell_step(s, ticket);
    return argv;
}

static int64_t start_limit(void *context, void *ticket)
{
    const struct trp_slurm *s = context;
    const struct trp_slurm_request *r = &((struct trp_slurm_gang *)ticket)->request;
    int64_t ms = TRP_SLURM_START_MS;
    for (uint32_t i = 0; i < r->nspots; i++) {
        if (trp_slurm_ledger_standing(s->ledger, r->spots[i].node) != TRP_SLURM_GOOD)
            ms = TRP_SLURM_TRIAL_MS;
    }
    return ms * 1000000;
}

/* srun waits for all nodes of the step: which of them is silent is not known. */
static void start_is_late(struct trp_slurm *s, const struct trp_slurm_gang *g)
{
    trp_slurm_gang_terminate(s, g->attempt);
    for (uint32_t i = 0; i < g->request.nspots; i++)
        trp_slurm_watch_doubt(s, g->request.spots[i].node, TRP_SLURM_SILENT);
}

static bool again(void *context, void *ticket, const char *refusal)
{
    struct trp_slurm *s = context;
    struct trp_slurm_gang *g = ticket;
    bool too_often = trp_srun_refusal(refusal) == TRP_SRUN_TOO_OFTEN;
    if (!*refusal)
        start_is_late(s, g);
    else if (!too_often)
        trp_slurm_ghosts_refused(s, &g->request, refusal);
    trp_slurm_ledger_leave(s->ledger, &g->request);
    g->asked = false;
    if (trp_slurm_ledger_ask(s->ledger, &g->request, NULL) < 0)
        return false;
    trp_slurm_additional_again(s, g->request.kind);
    if (too_often)
        trp_slurm_srun_refused(s);
    trp_slurm_pump_soon(s);
    return true;
}

/* Slurm is asked once; then it is over, or it is not. */
static int lost(void *context, void *ticket, char *text, size_t size)
{
    struct trp_slurm *s = context;
    struct trp_slurm_gang *g = ticket;
    if (s->closed || g->request.state != TRP_SLURM_PLACED)
        return TRP_ENOENT;
    struct trp_slurm_job *j = trp_slurm_job_of(s, &g->request);
    if (j && !j->gone && !g->asked) {
        g->asked = true;
        trp_slurm_additional_doubt(s, j);
        if (j->asking)
            return TRP_EWAIT;
    }
    if (!j || !j->gone)
        return TRP_ENOENT;
    trp_slurm_additional_cause(j, text, size);
    return trp_slurm_additional_status(j) == TRP_ETIME ? TRP_LOSS_TIME_LIMIT
                                                       : TRP_LOSS_DECOMMISSIONED;
}

void trp_slurm_gangs_judge(struct trp_slurm *s, uint32_t part)
{
    struct trp_slurm_gang *g, *next;
    DL_FOREACH_SAFE(s->gang_list, g, next) {
        if (g->asked && g->request.state == TRP_SLURM_PLACED &&
            trp_slurm_node_of(s, &g->request)->part == part)
            trp_gangs_judge(s->gangs, g->attempt);
    }
}

static void count_handle(void *context, bool opened)
{
    struct trp_slurm *s = context;
    if (opened)
        s->handles++;
    else
        trp_slurm_handle_closed(s);
}

/* The ranks' specification and scratch folder are read on every node. */
int trp_slurm_gangs_open(struct trp_slurm *s, trp_error *err)
{
    char scratch[4300];
    snprintf(scratch, sizeof scratch, "%s/state/scratch", s->command.run_dir);
    struct trp_gangs_backend backend = {.context = s,
                                        .leave = leave,
                                        .forget = forget,
                                        .devices = describe_devices,
                                        .launcher = launcher,
                                        .by_srun = true,
                                        .start_limit = start_limit,
                                        .again = again,
                                        .lost = lost,
                                        .handle = count_handle};
    return trp_gangs_open(s->loop, &s->command, scratch, &backend, &s->handler,
                          &s->gangs, err);
}

int trp_slurm_gang_ask(struct trp_slurm *s, const struct trp_gang *g, trp_error *err)
{
    struct trp_slurm_gang *own = calloc(1, sizeof *own);
    if (!own)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    own->request.gang = true;
    own->attempt = g->attempt;
    own->request.units = g->ranks;
    snprintf(own->name, sizeof own->name, "%s:%s:%s.%u", s->command.run_name,
             g->profile->name, g->stage, g->number);
    trp_error why;
    int code = trp_slurm_mpi_choose(
        s->site, s->inventory.mpi_types,
        trp_command_linked_mpi(g->stage_message, g->stage_message_size), own->mpi,
        &why);
    if (code < 0)
        trp_error_set(err, code, "stage %s: %s", g->stage, why.text);
    if (code == 0)
        code =
            trp_slurm_footprint_rank(g->profile, s->site, &own->request.footprint, err);
    if (code == 0)
        code = trp_slurm_ledger_ask(s->ledger, &own->request, err);
    if (code == 0) {
        code = trp_slurm_additional_wanted(s, &own->request, g->profile, g->ranks, err);
        if (code < 0)
            trp_slurm_ledger_leave(s->ledger, &own->request);
    }
    if (code == 0) {
        DL_APPEND(s->gang_list, own);
        code = trp_gangs_add(s->gangs, g, own, err);
        if (code < 0) {
            DL_DELETE(s->gang_list, own);
            trp_slurm_ledger_leave(s->ledger, &own->request);
        }
    }
    if (code < 0)
        free(own);
    else
        trp_slurm_pump_soon(s);
    return code;
}

static bool is_lost(const struct trp_slurm *s, const struct trp_slurm_request *r,
                    uint32_t node)
{
    trp_error err;
    if (r->state == TRP_SLURM_QUEUED) /* else it may be had in an additional job */
        return !s->additional.allowed &&
               trp_slurm_ledger_fit(s->ledger, &r->footprint, r->units, &err) == 0;
    for (uint32_t i = 0; i < r->nspots; i++) {
        if (r->spots[i].node == node)
            return true;
    }
    return false;
}

void trp_slurm_gangs_lost(struct trp_slurm *s, uint32_t node)
{
    struct trp_slurm_gang *g;
    DL_FOREACH(s->gang_list, g) {
        if (is_lost(s, &g->request, node))
            trp_gangs_kill(s->gangs, g->attempt, false);
    }
}

void trp_slurm_gangs_refuse(struct trp_slurm *s, const struct trp_slurm_kind_jobs *w)
{
    struct trp_slurm_gang *g, *next;
    DL_FOREACH_SAFE(s->gang_list, g, next) {
        if (g->request.state == TRP_SLURM_QUEUED && g->request.kind->context == w)
            trp_gangs_refuse(s->gangs, g->attempt, w->never);
    }
}

void trp_slurm_gang_terminate(struct trp_slurm *s, trp_attempt_id attempt)
{
    const struct trp_slurm_gang *g;
    char call[512];
    DL_SEARCH_SCALAR(s->gang_list, g, attempt.n, attempt.n);
    if (!g || g->request.state != TRP_SLURM_PLACED)
        return;
    snprintf(call, sizeof call, "term-step job=%u name=%s",
             trp_slurm_part_of(s, &g->request)->job, g->name);
    trp_slurm_helper_tell(s->helper, call);
}
