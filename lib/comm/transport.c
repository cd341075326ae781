/*
 * What the transports share: opening and closing one.
 */
#include "comm/transport.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "comm/mpi.h"

int trp_transport_open(struct trp_transport *t, enum trp_transport_kind kind,
                       trp_error *err)
{
    const int world = t->world; /* trp_channel_world's, or none */
    *t = (struct trp_transport){
        .ops = kind == TRP_TRANSPORT_WORLD ? trp_mpi()->world : trp_mpi()->connect,
        .notice_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .world = world,
        .met_executor = TRP_NONE,
    };
    if (t->notice_fd < 0)
        return trp_error_set(err, TRP_ESYSTEM, "eventfd: %m");
    return 0;
}

bool trp_transport_close(struct trp_transport *t)
{
    bool clean = !t->ops || t->ops->close(t);
    if (t->notice_fd >= 0)
        close(t->notice_fd);
    *t = (struct trp_transport){.notice_fd = -1};
    return clean;
}
