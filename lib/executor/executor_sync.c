/*
 * What a function asks the driver (barrier, allGather, commit): the calling thread
 * hangs a request on the executor's list and waits; the loop sends what is unsent and
 * takes the answers.
 *
 * A call ends when its answer came or when its attempt is told to end. A call on the
 * loop's own thread (a short function) waits as well: the standby thread takes over the
 * loop after 2 to 4 ms and sends it. Epochs are counted by the task: the driver finds
 * out who fell behind. (Copies of files have none: a task may ask for one between two
 * barriers that the others do not.)
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "executor/executor_internal.h"

int trp_sync_call(const struct trp_task_info *info, enum trp_sync_kind kind,
                  const void *message, uint32_t size, uint8_t **ret_reply,
                  size_t *ret_size)
{
    struct trp_function_thread *self = info->sync_context;
    trp_executor *e = self->executor;
    struct trp_sync_wait w = {
        .sync = {.attempt = info->attempt,
                 .epoch = kind == TRP_SYNC_COPY ? UINT32_MAX : self->sync_epoch++,
                 .kind = kind,
                 .message = message,
                 .size = size}
    };
    pthread_mutex_lock(&e->lock);
    LL_PREPEND(e->syncs, &w);
    atomic_fetch_add(&e->syncs_unsent, 1);
    trp_functions_wake(e);
    while (!w.answered && !__atomic_load_n(&self->killed, __ATOMIC_RELAXED))
        pthread_cond_wait(&e->synced, &e->lock);
    LL_DELETE(e->syncs, &w);
    if (!w.sent)
        atomic_fetch_sub(&e->syncs_unsent, 1);
    pthread_mutex_unlock(&e->lock);
    if (!w.answered)
        return TRP_ECANCELLED;
    *ret_reply = w.reply;
    *ret_size = w.reply_size;
    return w.reply ? TRP_OK : TRP_ENOMEM;
}

void trp_syncs_send(trp_executor *e)
{
    struct trp_buf b = {0};
    bool good = true;
    pthread_mutex_lock(&e->lock);
    for (struct trp_sync_wait *w = e->syncs; w; w = w->next) {
        if (w->sent)
            continue;
        w->sent = true;
        atomic_fetch_sub(&e->syncs_unsent, 1);
        trp_buf_clear(&b);
        trp_sync_put(&b, &w->sync);
        good = good && !b.failed &&
               trp_channel_send(e->channel, TRP_DRIVER_PEER, b.data, b.size) >= 0;
    }
    pthread_mutex_unlock(&e->lock);
    trp_buf_free(&b);
    if (!good)
        trp_executor_fail(e, "cannot send to the driver");
}

/* An answer for an attempt that no longer waits is dropped; one to what an attempt that
 * waits has not asked is none. */
bool trp_syncs_answer(trp_executor *e, const uint8_t *message, size_t size)
{
    struct trp_synced s;
    bool good = true;
    if (trp_synced_get(message, size, &s) < 0)
        return false;
    pthread_mutex_lock(&e->lock);
    for (struct trp_sync_wait *w = e->syncs; w; w = w->next) {
        if (w->answered || w->sync.attempt.n != s.attempt.n)
            continue;
        good = w->sync.epoch == s.epoch;
        if (!good)
            continue;
        w->answered = true;
        w->reply_size = size;
        w->reply = malloc(size);
        if (w->reply)
            memcpy(w->reply, message, size);
    }
    pthread_cond_broadcast(&e->synced);
    pthread_mutex_unlock(&e->lock);
    return good;
}
