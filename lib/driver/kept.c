/*
 * The engine has the registry of kept partitions; here is what comes from executors, and
 * goes to them.
 *
 * An executor may keep a partition of a dataset that was unpersisted meanwhile: it had
 * its task, or even its stage's description, before. It is told when it says so.
 */
#include "driver/kept.h"

#include "core/base/array.h"
#include "driver/perform.h"
#include "wire/blocks.h"

static bool is_unpersisted(const trp_driver *d, uint32_t dataset)
{
    return dataset < d->nunpersisted && d->unpersisted[dataset];
}

static void tell(trp_driver *d, const struct trp_executor_record *x, uint32_t dataset)
{
    struct trp_buf b = {0};
    trp_unpersist_put(&b, dataset);
    if (b.failed || trp_channel_send(d->channel, x->id.n, b.data, b.size) == TRP_ENOMEM)
        trp_perform_out_of_memory(d);
    trp_buf_free(&b);
}

static void take_state(trp_driver *d, const struct trp_executor_record *x,
                       const struct trp_block_state *s)
{
    struct trp_event ev = {
        .kind = TRP_EVENT_CACHED,
        .cached = {s->dataset, s->partition, x->id, !s->there}
    };
    if (!is_unpersisted(d, s->dataset))
        trp_driver_step(d, &ev);
    else if (s->there)
        tell(d, x, s->dataset);
}

int trp_driver_on_blocks(trp_driver *d, struct trp_executor_record *x,
                         const uint8_t *data, size_t size)
{
    struct trp_view v;
    struct trp_block_state s;
    uint32_t count;
    int rc = trp_blocks_open(data, size, &v, &count);
    while (rc == 0 && (rc = trp_blocks_next(&v, &s)) > 0) {
        if (s.dataset >= d->ndatasets)
            return TRP_EPROTO;
        take_state(d, x, &s);
        rc = 0;
    }
    return rc;
}

int trp_driver_unpersist(trp_driver *d, uint32_t dataset, trp_error *err)
{
    struct trp_event ev = {.kind = TRP_EVENT_DATASET_RELEASED,
                           .released = {.dataset = dataset}};
    trp_driver_enter(d);
    int rc = 0;
    if (!TRP_ARRAY_RESERVE_ZEROED(d->unpersisted, d->unpersisted_room,
                                  (uint64_t)dataset + 1)) {
        rc = trp_error_set(err, TRP_ENOMEM, "out of memory");
    } else if (!is_unpersisted(d, dataset)) {
        d->unpersisted[dataset] = true;
        if (d->nunpersisted <= dataset)
            d->nunpersisted = dataset + 1;
        for (uint32_t i = 0; i < d->nrecords; i++) {
            const struct trp_executor_record *x = d->records[i];
            if (x && x->state & TRP_RECORD_JOINED)
                tell(d, x, dataset);
        }
        trp_driver_step(d, &ev);
    }
    trp_driver_leave(d);
    return rc;
}
