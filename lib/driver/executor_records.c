/*
 * The driver's records of its executors: what the engine wants of them. What becomes of
 * them is record_life.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "driver/driver_state.h"
#include "driver/locations.h"
#include "driver/moving.h"

struct trp_executor_record *trp_record_of(const trp_driver *d, uint32_t executor)
{
    return executor < d->nrecords ? d->records[executor] : NULL;
}

static struct trp_executor_record *make_record(trp_driver *d, trp_executor_id id,
                                               trp_profile_id profile)
{
    struct trp_executor_record *x = calloc(1, sizeof(*x));
    if (!x || !TRP_ARRAY_GROW(d->records, id.n, d->records_cap)) {
        free(x);
        return NULL;
    }
    while (d->nrecords <= id.n)
        d->records[d->nrecords++] = NULL;
    x->id = id;
    x->profile = profile;
    x->requested = d->now;
    x->state = TRP_RECORD_COMING;
    x->ended = TRP_LOSS_EXITED;
    x->location = TRP_NONE;
    x->goes_at = INT64_MAX;
    return d->records[id.n] = x;
}

static void free_granted(struct trp_executor_record *x)
{
    for (uint32_t i = 0; i < x->nresources; i++) {
        for (uint32_t k = 0; k < x->resources[i].naddresses; k++)
            free((void *)(uintptr_t)x->resources[i].addresses[k]);
        free((void *)(uintptr_t)x->resources[i].addresses);
        free((void *)(uintptr_t)x->resources[i].name);
    }
    free(x->resources);
    free(x->host);
    free(x->rack);
    x->resources = NULL;
    x->nresources = 0;
    x->host = x->rack = NULL;
}

static bool copy_addresses(struct trp_resource_addresses *to,
                           const struct trp_resource_addresses *from)
{
    const char **v = calloc(from->naddresses ? from->naddresses : 1, sizeof *v);
    to->name = strdup(from->name);
    to->addresses = v;
    for (uint32_t i = 0; v && i < from->naddresses; i++) {
        if (!(v[i] = strdup(from->addresses[i])))
            return false;
        to->naddresses++;
    }
    return v && to->name;
}

bool trp_record_grant(struct trp_executor_record *x, const struct trp_granted *g)
{
    free_granted(x);
    x->host = strdup(g->host);
    x->rack = g->rack ? strdup(g->rack) : NULL;
    x->resources = calloc(g->nresources ? g->nresources : 1, sizeof *x->resources);
    bool copied = x->host && (x->rack || !g->rack) && x->resources;
    for (uint32_t i = 0; copied && i < g->nresources; i++, x->nresources++)
        copied = copy_addresses(&x->resources[i], &g->resources[i]);
    return copied;
}

void trp_record_drop(trp_driver *d, struct trp_executor_record *x)
{
    trp_driver_serves_no_more(d, x);
    d->records[x->id.n] = NULL;
    free_granted(x);
    trp_buf_free(&x->launches);
    free(x->cause);
    free(x->blocks);
    free(x);
}

void trp_record_free(trp_driver *d)
{
    for (uint32_t i = 0; i < d->nrecords; i++)
        if (d->records[i])
            trp_record_drop(d, d->records[i]);
    free(d->records);
}

/* ---- what the engine wants ---- */

void trp_record_refuse(trp_driver *d, trp_executor_id id, enum trp_refusal how,
                       const char *text)
{
    struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_REFUSED,
        .refused = {.executor = id, .how = how, .text = text}
    };
    trp_driver_step(d, &ev);
}

void trp_record_tell(trp_driver *d, trp_executor_id id,
                     void (*tell)(trp_cluster *c, trp_executor_id executor))
{
    const struct trp_executor_record *x = trp_record_of(d, id.n);
    if (x && x->here && !x->released && tell)
        tell(d->cluster, id);
}

void trp_record_start(trp_driver *d, trp_executor_id id, trp_profile_id profile,
                      bool ahead, const char *not_on)
{
    trp_error err = {0};
    struct trp_executor_record *x = make_record(d, id, profile);
    if (!x) {
        trp_record_refuse(d, id, TRP_REFUSED_LATER, "out of memory");
        return;
    }
    x->here = true;
    d->here++;
    trp_event_executor_asked(d->log, id, profile, trp_driver_wall(d, d->now));
    int rc = d->cluster->ops->start(
        d->cluster, id, trp_profiles_get(d->profiles, profile), ahead, not_on, &err);
    if (rc == 0)
        return;
    d->here--;
    trp_event_executor_dropped(d->log, id, trp_driver_wall(d, d->now));
    trp_record_drop(d, x);
    trp_record_refuse(d, id, rc == TRP_ENEVER ? TRP_REFUSED_NEVER : TRP_REFUSED_LATER,
                      err.text);
}

void trp_record_release(trp_driver *d, trp_executor_id id)
{
    struct trp_executor_record *x = trp_record_of(d, id.n);
    if (!x || x->released || trp_driver_holds_back(d, x))
        return;
    x->held_back = false;
    bool joined = x->state & TRP_RECORD_JOINED;
    x->released = true;
    trp_driver_serves_no_more(d, x);
    if (joined) {
        struct trp_buf b = {0};
        /* Nobody of the run comes there after it, when its job ends. */
        trp_shutdown_put(&b, d->over || (x->going && !x->leaving));
        trp_driver_send(d, id, &b);
    }
    if (x->here && d->cluster)
        d->cluster->ops->release(d->cluster, id, joined);
}

void trp_record_relabel(trp_driver *d, trp_executor_id id, trp_profile_id profile)
{
    struct trp_executor_record *x = trp_record_of(d, id.n);
    if (!x)
        return;
    x->profile = profile;
    trp_event_executor_relabelled(d->log, id, trp_profiles_get(d->profiles, profile),
                                  trp_driver_wall(d, d->now));
}

int trp_record_expect(trp_driver *d, trp_executor_id id,
                      const struct trp_granted *granted, trp_error *err)
{
    struct trp_executor_record *x =
        id.n == TRP_NONE ? NULL : make_record(d, id, (trp_profile_id){0});
    if (!x || !trp_record_grant(x, granted))
        return trp_error_set(err, TRP_ENOMEM, "out of memory for an executor");
    return 0;
}

bool trp_record_expected(void *context, uint32_t executor)
{
    const trp_driver *d = context;
    const struct trp_executor_record *x = trp_record_of(d, executor);
    if (executor >= TRP_CLUSTER_GUARDS)
        return d->cluster && d->cluster->ops->batch.guard &&
               d->cluster->ops->batch.guard(d->cluster, executor);
    /* A rank is there whether it is still needed or not, and leaves as all do. */
    return x && x->state == TRP_RECORD_COMING && (!x->released || !d->cluster);
}
