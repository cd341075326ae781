/*
 * Driver: who is refused, and what is told of it.
 *
 * Strangers can connect as often as they like, so what they make the driver write is
 * limited: TRP_REFUSALS lines in a window of a minute that begins with the first of
 * them, and one line at its end that counts the others. Who knows the run's secret is
 * always told of, so that no scanner hides him.
 */
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

#include "comm/peer.h"

void trp_admission_tell_rest(trp_channel *c)
{
    char line[80];
    uint32_t hidden = c->refusals_hidden;
    c->refusals = c->refusals_hidden = 0;
    c->refusals_until = 0;
    if (hidden == 0 || !c->handler.refused)
        return;
    snprintf(line, sizeof line, "%u more connections were refused", hidden);
    c->handler.refused(c->handler.context, TRP_NONE, false, line);
}

void trp_admission_tell(trp_channel *c, bool stranger, uint32_t executor,
                        bool fatal_build, const char *text)
{
    if (!c->handler.refused || c->closing)
        return;
    if (stranger) {
        if (c->refusals_until && c->now >= c->refusals_until)
            trp_admission_tell_rest(c);
        if (!c->refusals_until)
            c->refusals_until = c->now + TRP_REFUSALS_NS;
        if (c->refusals == TRP_REFUSALS) {
            c->refusals_hidden++;
            return;
        }
        c->refusals++;
    }
    c->handler.refused(c->handler.context, executor, fatal_build, text);
}

/* "… (from 10.0.0.1:4711)", or of who came by the other socket "… (from this host)" */
static void add_origin(const struct trp_peer *p, char *text, size_t size)
{
    struct sockaddr_storage a = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof a;
    static const char mapped[] = "::ffff:"; /* IPv4 on a socket for both */
    char host[64], port[16];                /* numbers only */
    size_t at = strlen(text);
    if (getpeername(p->link.fd, (struct sockaddr *)&a, &n) != 0)
        return;
    if (a.ss_family == AF_UNIX) {
        snprintf(text + at, size - at, " (from this host)");
        return;
    }
    if (getnameinfo((struct sockaddr *)&a, n, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    size_t skip = strncmp(host, mapped, sizeof mapped - 1) == 0 ? sizeof mapped - 1 : 0;
    snprintf(text + at, size - at, " (from %s:%s)", host + skip, port);
}

void trp_admission_refuse(struct trp_peer *p, bool fatal_build, const char *text)
{
    struct trp_buf b = {0};
    char line[900];
    trp_put_u8(&b, fatal_build);
    trp_put_text(&b, text);
    if (!b.failed && p->link.in_at > 0) /* it spoke our tongue */
        trp_link_put(&p->link, TRP_FRAME_REFUSED, b.data, b.size);
    trp_buf_free(&b);
    snprintf(line, sizeof line, "%s", text);
    add_origin(p, line, sizeof line);
    trp_channel *c = p->channel;
    bool stranger = p->state == TRP_PEER_PROVING;
    uint32_t executor = p->hello.executor;
    trp_peer_end(p, false);
    trp_admission_tell(c, stranger, executor, fatal_build, line);
}
