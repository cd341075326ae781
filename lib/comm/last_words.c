/*
 * Last words: what is known of an executor's end, said by itself or, when it is dead,
 * by its spawner on the same socket.
 */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/peer.h"

static bool is_size(int64_t mib)
{
    return mib >= 0 && (uint64_t)mib < TRP_LARGEST >> 20;
}

int trp_last_words_take(struct trp_peer *p, struct trp_view *v)
{
    struct trp_last_words w = {.said = true};
    uint8_t reason = trp_get_u8(v);
    w.has_culprit = trp_get_u8(v) != 0;
    w.garbled = trp_get_u8(v) != 0;
    w.signal = (int32_t)trp_get_u32(v);
    w.culprit.n = trp_get_u64(v);
    w.limit_mib = trp_get_s64(v);
    w.peak_mib = trp_get_s64(v);
    const uint8_t *text = trp_get_raw(v, sizeof w.text);
    if (text)
        memcpy(w.text, text, sizeof w.text - 1);
    if (!trp_view_end(v) || !is_size(w.limit_mib) || !is_size(w.peak_mib) ||
        (reason > TRP_LOSS_NEVER_CAME && reason != TRP_LOSS_SPAWNER_DIED &&
         reason != TRP_LOSS_SPAWNER_HUNG && reason != TRP_LOSS_CALLED_EXIT))
        return TRP_EPROTO;
    w.reason = (enum trp_loss)reason;
    p->last_words = w;
    return 0;
}

size_t trp_last_words_frame(const struct trp_last_words_way *w,
                            const struct trp_last_words *last_words, uint8_t *buf,
                            size_t cap)
{
    struct {
        uint8_t reason, has_culprit, garbled;
        uint32_t signal;
        uint64_t culprit, limit_mib, peak_mib;
        char text[TRP_LAST_WORDS_TEXT];
    } __attribute__((packed)) body = {
        .reason = (uint8_t)last_words->reason,
        .has_culprit = last_words->has_culprit,
        .garbled = last_words->garbled,
        .signal = htole32((uint32_t)last_words->signal),
        .culprit = htole64(last_words->culprit.n),
        .limit_mib = htole64((uint64_t)last_words->limit_mib),
        .peak_mib = htole64((uint64_t)last_words->peak_mib),
    };
    memcpy(body.text, last_words->text, sizeof body.text);
    _Static_assert(sizeof body == TRP_LAST_WORDS_SIZE,
                   "as trp_last_words_take reads it");
    return trp_words_frame(w->key, &body, sizeof body, buf, cap);
}

void trp_channel_last_words(trp_channel *c, const struct trp_last_words *last_words)
{
    struct trp_last_words_way w;
    trp_channel_last_words_way(c, &w);
    if (w.fd < 0)
        return;
    trp_link_flush(&c->only->link);
    trp_last_words_say(&w, last_words);
    shutdown(w.fd, SHUT_RDWR);
}

void trp_channel_last_words_way(const trp_channel *c, struct trp_last_words_way *ret)
{
    *ret = (struct trp_last_words_way){.fd = trp_channel_socket(c)};
    _Static_assert(sizeof ret->key == TRP_LAST_WORDS_KEY_SIZE, "one key");
    if (c->only)
        memcpy(ret->key, c->only->link.last_words_key, sizeof ret->key);
}

void trp_last_words_say(const struct trp_last_words_way *w,
                        const struct trp_last_words *last_words)
{
    uint8_t frame[256];
    size_t n = trp_last_words_frame(w, last_words, frame, sizeof frame);
    struct pollfd p = {.fd = w->fd, .events = POLLOUT};
    /* A failure says nothing more than the closing that follows. */
    ssize_t done = poll(&p, 1, 1000) == 1 ? write(w->fd, frame, n) : 0;
    (void)done;
}
