/*
 * What a channel does when time has passed: heartbeats, silence, admissions that are
 * late.
 */
#include <utlist.h>

#include "comm/peer.h"

static void look_for_silence(trp_channel *c, struct trp_peer *list)
{
    struct trp_peer *p, *next;
    DL_FOREACH_SAFE(list, p, next) {
        int64_t silence = c->now - p->heard_ns;
        bool silent = silence > c->config.heartbeat_ns + TRP_SILENT_NS;
        if (silence > c->config.network_timeout_ns) {
            p->last_words.reason = TRP_LOSS_HEARTBEAT;
            trp_peer_end(p, true);
        } else if (silent != p->is_silent && c->handler.silent &&
                   p->state == TRP_PEER_UP) {
            p->is_silent = silent;
            c->handler.silent(c->handler.context, p->id, silent);
        }
    }
}

/* How often that is looked at. */
static int64_t look_pause(const trp_channel *c)
{
    int64_t pause = c->config.network_timeout_ns / 10;
    return c->handler.silent && pause > TRP_SILENT_NS ? TRP_SILENT_NS : pause;
}

void trp_channel_look_at_time(trp_channel *c)
{
    if (!c->driver && c->only && c->now >= c->beat_due) {
        c->beat_due = c->now + c->config.heartbeat_ns;
        trp_peer_put(c->only, TRP_FRAME_BEAT, NULL, 0);
    }
    if (c->now >= c->look_due) {
        c->look_due = c->now + look_pause(c);
        look_for_silence(c, c->peers);
        look_for_silence(c, c->queue);
    }
    if (c->driver && c->now >= trp_admission_due(c))
        trp_admission_time(c);
}

int64_t trp_channel_next_timer(const trp_channel *c)
{
    int64_t due = INT64_MAX;
    if (c->nleaving > 0)
        return c->now;
    if (c->npeers > 0) /* those in the queue as well */
        due = c->look_due;
    if (!c->driver && c->only && c->beat_due < due)
        due = c->beat_due;
    int64_t admission = c->driver ? trp_admission_due(c) : INT64_MAX;
    return admission < due ? admission : due;
}
