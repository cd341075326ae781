/*
 * Who gets a file that all hosts read from whom: what executors ask of it, and are
 * answered at once. The tree has no other memory of a host than its location, which other
 * executors may go on to serve.
 */
#include "driver/copy_tree.h"
#include "driver/locations.h"

static void answer(trp_driver *d, const struct trp_executor_record *x,
                   const struct trp_synced *a, const struct trp_buf *message)
{
    struct trp_buf b = {0};
    trp_synced_put(&b, a);
    if (message)
        trp_put_bytes(&b, message->data, message->size);
    trp_driver_send(d, x->id, &b);
}

/* An endpoint of a location; NULL: nobody serves it. */
static const char *endpoint_of(const trp_driver *d, uint32_t location, uint32_t asks)
{
    const struct trp_driver_location *l = &d->locations[location];
    return l->nservers ? trp_record_of(d, l->servers[asks % l->nservers])->endpoint
                       : NULL;
}

/* 1: from *ret_from, "" and TRP_NONE for the run's folder; 0: not now. TRP_ENOMEM. */
static int find_source(trp_driver *d, uint32_t file, uint32_t location,
                       uint32_t *ret_from, const char **ret_endpoint)
{
    *ret_from = TRP_NONE;
    *ret_endpoint = "";
    if (location == TRP_NONE)
        return 1; /* it has no place of its own */
    for (;;) {
        int rc = trp_copy_tree_ask(d->copies, file, location, d->now, ret_from);
        *ret_endpoint = "";
        if (rc <= 0 || *ret_from == TRP_COPY_ROOT)
            return rc;
        *ret_endpoint = endpoint_of(d, *ret_from, location);
        if (*ret_endpoint)
            return 1;
        trp_copy_tree_gone(d->copies, *ret_from);
    }
}

int trp_driver_on_copy(trp_driver *d, struct trp_executor_record *x,
                       const struct trp_sync *s)
{
    static const char later[] = "others are read from by as many as may";
    struct trp_copy_ask ask;
    struct trp_synced a = {.attempt = s->attempt, .epoch = s->epoch};
    struct trp_buf message = {0};
    const char *endpoint;
    uint32_t from;
    int rc = trp_copy_ask_get(s->message, s->size, &ask);
    if (rc < 0)
        return rc;
    if (!d->copies && !(d->copies = trp_copy_tree_new()))
        return TRP_ENOMEM;
    if (ask.has)
        trp_copy_tree_has(d->copies, ask.number, x->location);
    else if (ask.failed)
        trp_copy_tree_failed(d->copies, ask.number, x->location, ask.from);
    rc = ask.has ? 0 : find_source(d, ask.number, x->location, &from, &endpoint);
    if (rc < 0)
        return rc;
    if (rc > 0) {
        a.count = 1;
        trp_copy_from_put(&message, from, endpoint);
    } else if (!ask.has) {
        a.status = TRP_EWAIT;
        a.text = (const uint8_t *)later;
        a.text_size = sizeof later - 1;
    }
    answer(d, x, &a, rc > 0 ? &message : NULL);
    trp_buf_free(&message);
    return 0;
}
