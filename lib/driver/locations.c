/*
 * Locations of map outputs.
 *
 * One is made when the first executor says that its outputs lie there, and stays to the
 * end of the run: executors of the next stage may find it again. Who serves it changes
 * as executors come and go. Readers are told of that by and by, not at once: where a
 * thousand executors come, each would be told a thousand times.
 *
 * A node on which no executor of the next stage comes keeps files that nobody serves.
 * They are made again. The new ones could be orphaned in the same way: once it has
 * happened, executors that come write theirs to the run's folder, which all hosts see.
 */
#include "driver/locations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "driver/copy_tree.h"
#include "driver/freed_datasets.h"
#include "driver/moving.h"
#include "os/clock.h"
#include "os/held.h"
#include "os/private_folder.h"

/* How long changes are gathered: of the first server or the last, and of others. */
#define FIRST_NS INT64_C(5000000)
#define NEWS_NS INT64_C(50000000)

enum {
    TIDY_MS = 2000,
    COMPRESS = 1,  /* zstd's level that keeps up with disks */
    FOR_MOVED = 4, /* executors that are named as servers of what was moved */
};

/* ---- orders ---------------------------------------------------------------------- */

/* Whether there are outputs on its host that it is to serve. A location that was once
 * without a server does not count: executors of one shape come and go there, and outputs
 * that are added to it would be orphaned again. */
static bool has_to_serve(const trp_driver *d, const struct trp_executor_record *x)
{
    for (uint32_t i = 0; x->host && i < d->nlocations; i++) {
        const struct trp_driver_location *l = &d->locations[i];
        if (l->is.ino && !l->unserved && strcmp(l->is.host, x->host) == 0)
            return true;
    }
    return false;
}

/* On the nodes of a batch job the driver knows no folder by its path, but `scratch:` of
 * the site. With an empty path an executor takes a folder of its own. */
void trp_driver_order_files(trp_driver *d, struct trp_executor_record *x)
{
    char own[4200];
    const bool elastic = d->config.mode == TRP_DRIVER_ELASTIC;
    const struct trp_site *site = elastic ? d->config.site : NULL;
    const bool own_disk = elastic && (d->config.where.batch || (site && site->scratch));
    const bool on_node = own_disk && (!d->files_unserved || has_to_serve(d, x));
    struct trp_buf b = {0};
    struct trp_files_order o = {
        .parent = on_node && site && site->scratch ? site->scratch : own,
        .in_run = !on_node,
        .here_only = !d->config.where.batch,
        .opens = !elastic || trp_options_bool(d->options, "shuffle.readHostLocalDisk"),
        .compress = trp_options_bool(d->options, "shuffle.compress") ? COMPRESS : 0,
    };
    if (!d->files)
        return;
    own[0] = '\0';
    if (o.in_run)
        snprintf(own, sizeof own, "%s/state/scratch", d->run_dir);
    o.serves = own_disk || !o.opens;
    trp_files_order_put(&b, &o);
    trp_driver_send(d, x->id, &b);
}

void trp_driver_shares_files(trp_driver *d)
{
    trp_driver_enter(d);
    trp_driver_need_files(d);
    trp_driver_leave(d);
}

void trp_driver_need_files(trp_driver *d)
{
    if (d->files)
        return;
    d->files = true;
    for (uint32_t i = 0; i < d->nrecords; i++)
        if (d->records[i] && d->records[i]->state == TRP_RECORD_UP)
            trp_driver_order_files(d, d->records[i]);
}

/* ---- answers --------------------------------------------------------------------- */

static bool is_same(const struct trp_location *a, const struct trp_location *b)
{
    return a->dev == b->dev && a->ino == b->ino && strcmp(a->folder, b->folder) == 0 &&
           (a->ino == 0 || strcmp(a->host, b->host) == 0);
}

/* The number of a location; takes over its strings. */
static uint32_t number_of(trp_driver *d, struct trp_location *l)
{
    for (uint32_t i = d->nlocations; i-- > 0;)
        if (is_same(&d->locations[i].is, l))
            return i;
    if (!TRP_ARRAY_GROW(d->locations, d->nlocations, d->locations_cap))
        return TRP_NONE;
    uint32_t n = d->nlocations++;
    l->number = n;
    d->locations[n] =
        (struct trp_driver_location){.is = *l, .last = TRP_NONE, .move_due = INT64_MAX};
    l->host = l->folder = NULL;
    return n;
}

/* Whose outputs were moved is served by any. */
void trp_driver_location_changed(trp_driver *d, struct trp_driver_location *l)
{
    int64_t due = d->now + (l->nservers <= 1 ? FIRST_NS : NEWS_NS);
    l->changed = ++d->location_changes;
    for (uint32_t i = 0; i < d->nlocations; i++)
        if (d->locations[i].moved)
            d->locations[i].changed = d->location_changes;
    d->servers_due = trp_earlier(d->servers_due, due);
}

static void note_files(const trp_driver *d, const struct trp_executor_record *x,
                       bool there)
{
    if (d->locations[x->location].is.ino && d->cluster && x->host &&
        d->cluster->ops->batch.files)
        d->cluster->ops->batch.files(d->cluster, x->host, there);
}

static void serve(trp_driver *d, struct trp_executor_record *x, uint32_t number,
                  char *take_endpoint)
{
    struct trp_driver_location *l = &d->locations[number];
    x->location = number;
    note_files(d, x, true);
    if (!*take_endpoint || x->released ||
        !TRP_ARRAY_GROW(l->servers, l->nservers, l->servers_cap)) {
        free(take_endpoint);
        return;
    }
    x->endpoint = take_endpoint;
    l->servers[l->nservers++] = x->id.n;
    trp_driver_location_changed(d, l);
}

uint32_t trp_driver_shared_location(trp_driver *d)
{
    char folder[4300];
    struct trp_location l = {.host = strdup("the run's folder")};
    snprintf(folder, sizeof folder, "%s/state/scratch/shuffle", d->run_dir);
    l.folder = strdup(folder);
    uint32_t number = l.host && l.folder ? number_of(d, &l) : TRP_NONE;
    if (number != TRP_NONE)
        d->locations[number].moved = true;
    trp_location_clear(&l);
    return number;
}

int trp_driver_on_location(trp_driver *d, struct trp_executor_record *x,
                           const uint8_t *data, size_t size)
{
    struct trp_location l;
    char *endpoint;
    int rc = trp_location_get(data, size, &l, &endpoint);
    if (rc < 0)
        return rc;
    uint32_t number = x->location;
    if (!*l.folder && number != TRP_NONE)
        note_files(d, x, false);
    else if (*l.folder && number == TRP_NONE)
        number = number_of(d, &l);
    if (x->location == TRP_NONE && number != TRP_NONE) {
        serve(d, x, number, endpoint);
        trp_driver_drop_outputs(d);
    } else {
        free(endpoint);
    }
    trp_location_clear(&l);
    return 0;
}

void trp_driver_serves_no_more(trp_driver *d, struct trp_executor_record *x)
{
    if (!x->endpoint)
        return;
    struct trp_driver_location *l = &d->locations[x->location];
    for (uint32_t i = 0; i < l->nservers; i++)
        if (l->servers[i] == x->id.n)
            l->servers[i--] = l->servers[--l->nservers];
    free(x->endpoint);
    x->endpoint = NULL;
    l->last = x->id.n;
    trp_driver_location_changed(d, l);
    if (d->attempts > 0)
        trp_driver_awaits(d, x->location);
}

bool trp_driver_unserved(trp_driver *d, const struct trp_location *at)
{
    if (at->ino == 0 || d->locations[at->number].nservers > 0)
        return false;
    d->locations[at->number].unserved = true;
    if (d->files_unserved)
        return true;
    d->files_unserved = true;
    trp_driver_log(
        d, "warning",
        "no executor on %.200s is there to serve the map outputs that lie on it: "
        "executors that start from now on, there and on new hosts, write theirs to the "
        "run's folder",
        at->host);
    return true;
}

/* ---- servers --------------------------------------------------------------------- */

/* Up to FOR_MOVED live executors: any can serve what lies in the run's folder. */
static uint32_t any_servers(const trp_driver *d, const char **ret)
{
    uint32_t n = 0;
    for (uint32_t i = d->nrecords; i-- > 0 && n < FOR_MOVED;) {
        const struct trp_executor_record *x = d->records[i];
        if (x && x->endpoint && !x->going)
            ret[n++] = x->endpoint;
    }
    return n;
}

static void put_servers(const trp_driver *d, const struct trp_driver_location *l,
                        struct trp_buf *b)
{
    const char *endpoints[TRP_ENDPOINTS_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->nservers && n < TRP_ENDPOINTS_MAX; i++)
        endpoints[n++] = trp_record_of(d, l->servers[i])->endpoint;
    if (n == 0 && l->moving)
        endpoints[n++] = "";
    else if (n == 0 && l->moved)
        n = any_servers(d, endpoints);
    trp_servers_add(b, l->is.number, endpoints, n);
}

bool trp_driver_tell_servers(trp_driver *d, struct trp_executor_record *x)
{
    struct trp_buf b = {0};
    if (!x->endpoint || x->servers_known == d->location_changes)
        return true; /* it asks nobody, or knows all */
    trp_servers_begin(&b);
    for (uint32_t i = 0; i < d->nlocations; i++)
        if (d->locations[i].changed > x->servers_known)
            put_servers(d, &d->locations[i], &b);
    bool good = !b.failed;
    if (good)
        x->servers_known = d->location_changes;
    trp_driver_send(d, x->id, &b);
    return good;
}

void trp_driver_tell_readers(trp_driver *d, int64_t now)
{
    if (now < d->servers_due)
        return;
    d->servers_due = INT64_MAX;
    for (uint32_t i = 0; i < d->nrecords; i++) {
        struct trp_executor_record *x = d->records[i];
        if (x && x->reads && x->state == TRP_RECORD_UP)
            trp_driver_tell_servers(d, x);
    }
}

/* ---- outputs --------------------------------------------------------------------- */

/* Outputs of one place mostly come side by side. */
static bool note_place(struct trp_driver_outputs *o, uint32_t location)
{
    for (uint32_t i = o->places.n; i-- > 0;)
        if (o->places.v[i] == location)
            return true;
    return trp_stack_push(&o->places, location);
}

void trp_driver_note_output(trp_driver *d, uint32_t dataset, uint32_t map,
                            trp_attempt_id attempt, const struct trp_executor_record *x,
                            const struct trp_end *end)
{
    uint32_t location = x ? x->location : TRP_NONE;
    if (location == TRP_NONE ||
        !TRP_ARRAY_RESERVE_ZEROED(d->outputs, d->noutputs, (uint64_t)dataset + 1))
        return;
    struct trp_driver_outputs *o = &d->outputs[dataset];
    if (!note_place(o, location))
        return;
    if (TRP_ARRAY_RESERVE_ZEROED(o->v, o->n, (uint64_t)map + 1))
        o->v[map] = (struct trp_driver_output){
            .attempt = attempt.n,
            .bytes = end && end->has_data ? end->data.written_bytes : 0,
            .made_ns = end ? end->duration_ns : 0,
            .location = location + 1};
}

const struct trp_location *trp_driver_location_of(const trp_driver *d, uint32_t dataset,
                                                  uint32_t map, uint64_t attempt)
{
    if (dataset >= d->noutputs || map >= d->outputs[dataset].n)
        return NULL;
    const struct trp_driver_output *o = &d->outputs[dataset].v[map];
    return o->location && o->attempt == attempt ? &d->locations[o->location - 1].is
                                                : NULL;
}

/* ---- the end --------------------------------------------------------------------- */

void trp_driver_remove_files(trp_driver *d)
{
    const struct trp_site *site = d->config.site;
    if (d->config.where.batch || !site || !site->scratch)
        return; /* the cluster does it, or there is nothing */
    const char *owners[] = {trp_held_id(d->run_dir), site->scratch};
    if (d->files)
        trp_private_folders_tidy(owners, 2, TIDY_MS);
    trp_private_folders_sweep_in(site->scratch, d->run_dir);
}

void trp_driver_locations_free(trp_driver *d)
{
    for (uint32_t i = 0; i < d->nlocations; i++) {
        trp_location_clear(&d->locations[i].is);
        free(d->locations[i].servers);
        free(d->locations[i].dropped.v);
    }
    for (uint32_t i = 0; i < d->noutputs; i++) {
        free(d->outputs[i].v);
        free(d->outputs[i].places.v);
    }
    free(d->freeing.v);
    trp_copy_tree_free(d->copies);
    free(d->locations);
    free(d->outputs);
}
