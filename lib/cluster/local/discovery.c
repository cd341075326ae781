/*
 * Before an executor stands in the ledger's queue its discovery scripts are run, off the
 * loop. What they say is added to the ledger, which hands out addresses as it does those
 * of the site file: no two executors have the same.
 *
 * Teardown: an executor that goes stops its scripts and forgets this; what is left here
 * is freed when the work has come back to the loop.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cluster/local/local_state.h"
#include "cluster/mpirun.h"
#include "executor/discover.h"

struct trp_local_discovery {
    uv_work_t work;
    struct trp_local *local;
    struct trp_local_executor *executor; /* NULL: it has gone */
    int stop;                            /* an eventfd */
    char **env;
    struct trp_discovery of[TRP_PROFILE_RESOURCES];
    char *lists[TRP_PROFILE_RESOURCES];
    uint32_t n;
    int code;
    trp_error err;
};

static const struct trp_site_script *script_of(const struct trp_local *l,
                                               const char *resource)
{
    for (uint32_t i = 0; i < l->nscripts; i++)
        if (strcmp(l->scripts[i].resource, resource) == 0)
            return &l->scripts[i];
    return NULL;
}

bool trp_local_takes_scripts(struct trp_local *l, const struct trp_site *site)
{
    l->scripts = calloc(TRP_PROFILE_RESOURCES, sizeof *l->scripts);
    for (uint32_t i = 0; l->scripts && site && i < site->nscripts; i++) {
        struct trp_site_script *s = &l->scripts[l->nscripts];
        uint32_t k = 0;
        while (k < site->nlocal &&
               strcmp(site->local[k].name, site->scripts[i].resource) != 0)
            k++;
        if (k < site->nlocal)
            continue;
        l->nscripts++;
        s->resource = strdup(site->scripts[i].resource);
        s->path = strdup(site->scripts[i].path);
        if (!s->resource || !s->path)
            return false;
    }
    return l->scripts != NULL;
}

void trp_local_free_scripts(struct trp_local *l)
{
    for (uint32_t i = 0; i < l->nscripts; i++) {
        free(l->scripts[i].resource);
        free(l->scripts[i].path);
    }
    free(l->scripts);
}

static bool is_known(const struct trp_local *l, const char *resource)
{
    uint32_t n;
    const struct trp_resource_addresses *d = trp_machine_ledger_devices(l->ledger, &n);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(d[i].name, resource) == 0)
            return true;
    return false;
}

void trp_local_without_unknown(const struct trp_local *l,
                               struct trp_machine_footprint *footprint)
{
    for (uint32_t i = 0; i < footprint->ndevices;) {
        const char *resource = footprint->devices[i].name;
        if (script_of(l, resource) && !is_known(l, resource))
            footprint->devices[i] = footprint->devices[--footprint->ndevices];
        else
            i++;
    }
}

/* ---- off the loop ---- */

static void run_scripts(uv_work_t *work)
{
    struct trp_local_discovery *d = work->data;
    for (uint32_t i = 0; i < d->n && d->code == 0; i++)
        d->code = trp_discover(&d->of[i], &d->lists[i], &d->err);
}

/* ---- on it ---- */

static void discovery_free(struct trp_local_discovery *d)
{
    for (uint32_t i = 0; i < d->n; i++)
        free(d->lists[i]);
    if (d->stop >= 0)
        close(d->stop);
    trp_argv_free(d->env);
    free(d);
}

/* Adds what the scripts say to the ledger, then asks it. */
static int enter_room(struct trp_local *l, struct trp_local_discovery *d,
                      struct trp_local_executor *e, trp_error *err)
{
    for (uint32_t i = 0; i < d->n; i++) {
        int rc =
            trp_machine_ledger_learn(l->ledger, d->of[i].resource, d->lists[i], err);
        if (rc < 0)
            return rc;
    }
    trp_local_look_again(l);
    return trp_machine_ledger_ask(l->ledger, &e->ticket.request, err);
}

static void on_discovered(uv_work_t *work, int status)
{
    struct trp_local_discovery *d = work->data;
    struct trp_local *l = d->local;
    struct trp_local_executor *e = d->executor;
    (void)status; /* nobody cancels the work itself */
    if (e) {
        e->discovery = NULL;
        if (d->code == 0)
            d->code = enter_room(l, d, e, &d->err);
        if (d->code < 0) {
            trp_local_executor_failed(e, d->code, d->err.text);
        } else {
            e->state = TRP_LOCAL_WAITS;
            trp_local_pump_soon(l);
            l->handler.held(l->handler.context); /* how many fit is known better */
        }
    }
    discovery_free(d);
    trp_local_handle_closed(l);
}

/* The scripts have names by which their leftovers are found, as a task has. */
static int make_environ(struct trp_local_discovery *d, uint32_t id)
{
    char *run = NULL, number[48];
    snprintf(number, sizeof number, "TROUPE_EXECUTOR=%u", id);
    if (asprintf(&run, "TROUPE_RUN_DIR=%s", d->local->command.run_dir) < 0)
        return TRP_ENOMEM;
    const char *more[] = {number, run, NULL};
    d->env = trp_mpirun_environ(environ, NULL, more);
    free(run);
    return d->env ? 0 : TRP_ENOMEM;
}

static struct trp_local_discovery *discovery_new(struct trp_local *l,
                                                 struct trp_local_executor *e)
{
    const struct trp_machine_footprint *footprint = &e->ticket.request.footprint;
    struct trp_local_discovery *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->local = l;
    d->executor = e;
    d->work.data = d;
    d->stop = eventfd(0, EFD_CLOEXEC);
    if (d->stop < 0 || make_environ(d, e->id) < 0) {
        discovery_free(d);
        return NULL;
    }
    for (uint32_t i = 0; i < footprint->ndevices; i++) {
        const struct trp_site_script *s = script_of(l, footprint->devices[i].name);
        if (s)
            d->of[d->n++] =
                (struct trp_discovery){.resource = s->resource,
                                       .script = s->path,
                                       .amount = footprint->devices[i].count,
                                       .env = d->env,
                                       .stop = &d->stop};
    }
    return d;
}

bool trp_local_has_scripted(const struct trp_local *l,
                            const struct trp_machine_footprint *footprint)
{
    for (uint32_t i = 0; i < footprint->ndevices; i++)
        if (script_of(l, footprint->devices[i].name))
            return true;
    return false;
}

int trp_local_discover(struct trp_local_executor *e, trp_error *err)
{
    struct trp_local *l = e->local;
    struct trp_local_discovery *d = discovery_new(l, e);
    int rc = d ? uv_queue_work(l->loop, &d->work, run_scripts, on_discovered) : 0;
    if (!d || rc < 0) {
        if (d)
            discovery_free(d);
        return trp_error_set(err, TRP_ENOMEM, "out of memory, or of descriptors");
    }
    l->handles++;
    e->discovery = d;
    e->state = TRP_LOCAL_DISCOVERS;
    return 0;
}

void trp_local_discovery_stop(struct trp_local_executor *e)
{
    if (!e->discovery)
        return;
    eventfd_write(e->discovery->stop, 1);
    e->discovery->executor = NULL;
    e->discovery = NULL;
}
