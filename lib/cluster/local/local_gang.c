/*
 * Gangs on this machine: with the room of all their ranks, started by mpirun.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cluster/gangs.h"
#include "cluster/local/local_state.h"
#include "cluster/mpirun.h"
#include "executor/spawner.h"

static void leave(void *context, void *ticket)
{
    struct trp_local *l = context;
    struct trp_local_gang *g = ticket;
    trp_local_leave(l, &g->ticket.request);
    if (!l->closed)
        trp_local_pump_soon(l);
}

static void forget(void *context, void *ticket)
{
    struct trp_local_gang *g = ticket;
    (void)context;
    trp_argv_free(g->launcher);
    free(g);
}

static char **launcher(void *context, void *ticket)
{
    struct trp_local_gang *g = ticket;
    char **argv = g->launcher;
    (void)context;
    g->launcher = NULL; /* a gang of this machine is served once */
    return argv;
}

/* "gpu=0,1\n…": the share's devices, for TROUPE_RESOURCE_<name>. */
static void describe_devices(void *context, void *ticket, FILE *to)
{
    const struct trp_request *r = &((struct trp_local_gang *)ticket)->ticket.request;
    (void)context;
    for (uint32_t i = 0; i < r->footprint.ndevices; i++) {
        fprintf(to, "%s=", r->devices[i].name);
        for (uint32_t k = 0; k < r->devices[i].naddresses; k++)
            fprintf(to, "%s%s", k ? "," : "", r->devices[i].addresses[k]);
        fputc('\n', to);
    }
}

static void count_handle(void *context, bool opened)
{
    struct trp_local *l = context;
    if (opened)
        l->handles++;
    else
        trp_local_handle_closed(l);
}

int trp_local_gangs_open(struct trp_local *l, trp_error *err)
{
    struct trp_gangs_backend backend = {.context = l,
                                        .leave = leave,
                                        .forget = forget,
                                        .devices = describe_devices,
                                        .launcher = launcher,
                                        .handle = count_handle};
    return trp_gangs_open(l->loop, &l->command, l->command.scratch, &backend,
                          &l->handler, &l->gangs, err);
}

int trp_local_gang_ask(struct trp_local *l, const struct trp_gang *g, trp_error *err)
{
    struct trp_local_gang *own = calloc(1, sizeof *own);
    if (!own)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    own->ticket.is_gang = true;
    own->attempt = g->attempt;
    trp_machine_footprint_make(g->profile, g->ranks, &own->ticket.request.footprint);
    trp_error why;
    int code = trp_mpirun_gang_argv(
        trp_command_linked_mpi(g->stage_message, g->stage_message_size), g->ranks,
        &own->launcher, &why);
    if (code < 0)
        trp_error_set(err, code, "stage %s: %s", g->stage, why.text);
    if (code == 0)
        code = trp_machine_ledger_ask(l->ledger, &own->ticket.request, err);
    if (code == 0) {
        code = trp_gangs_add(l->gangs, g, own, err);
        if (code < 0)
            trp_local_leave(l, &own->ticket.request);
    }
    if (code < 0)
        forget(l, own);
    else
        trp_local_pump_soon(l);
    return code;
}
