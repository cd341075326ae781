/*
 * The start of a static run: all are there, nobody knows anything. Rank 0 listens, and
 * tells the others its address, the secret and how both sides prove themselves through
 * MPI, which started them and which they trust already. From then on it is as with
 * every executor: the same socket for liveness and ringing, the same proof, the same
 * hello with the build.
 */
#include <stdio.h>

#include "comm/mpi.h"
#include "comm/peer.h"

/* What rank 0 tells. */
struct tidings {
    char address[300]; /* "": rank 0 failed */
    uint8_t secret[TRP_SECRET_SIZE];
    bool munge, mac;
    char why[TRP_ERROR_TEXT]; /* when it failed: the others may end before it has said
                                 so */
};

/* When rank 0 could begin, also a communicator that never meets the application's
 * messages. */
static int broadcast(struct tidings *t, int *ret_world, trp_error *err)
{
    const struct trp_mpi *mpi = trp_mpi();
    if (mpi->bcast(t, sizeof *t) < 0)
        return trp_error_set(err, TRP_ESYSTEM, "MPI_Bcast failed");
    if (t->address[0] && mpi->open_world(ret_world) < 0)
        return trp_error_set(err, TRP_ESYSTEM, "MPI_Comm_dup failed");
    return 0;
}

static int drive(const struct trp_listen_config *config,
                 const struct trp_channel_handler *handler, trp_channel **ret_channel,
                 trp_error *err)
{
    struct tidings t = {0};
    struct trp_listen_config own = *config;
    trp_channel *c = NULL;
    own.transport = TRP_TRANSPORT_WORLD;
    int rc = trp_channel_listen(&own, handler, &c, err);
    if (rc == 0) {
        snprintf(t.address, sizeof t.address, "%s", c->address);
        memcpy(t.secret, config->secret, sizeof t.secret);
        t.munge = config->munge;
        t.mac = config->mac;
    } else {
        snprintf(t.why, sizeof t.why, "%s", err->text);
    }
    int world = 0, told = broadcast(&t, &world, rc == 0 ? err : NULL);
    explicit_bzero(&t, sizeof t);
    if (rc == 0 && told < 0) {
        trp_channel_destroy(c);
    } else if (rc == 0) {
        c->transport.world = world;
        *ret_channel = c;
    }
    return rc < 0 ? rc : told;
}

static int follow(uint32_t executor, const struct trp_listen_config *config,
                  const struct trp_channel_handler *handler, trp_channel **ret_channel,
                  trp_error *err)
{
    struct tidings t;
    int world = 0, rc = broadcast(&t, &world, err);
    if (rc < 0)
        return rc;
    if (t.address[0] == 0)
        return trp_error_set(err, TRP_ESYSTEM,
                             "the driver (rank 0) could not start: %s", t.why);
    const struct trp_call_config call = {
        .transport = TRP_TRANSPORT_WORLD,
        .address = t.address,
        .secret = t.secret,
        .munge = t.munge,
        .mac = t.mac,
        .executor = executor,
        .network_timeout_ns = config->network_timeout_ns,
        .heartbeat_ns = config->heartbeat_ns,
    };
    trp_channel *c;
    rc = trp_channel_call(&call, &c, err);
    explicit_bzero(&t, sizeof t);
    if (rc < 0)
        return rc;
    c->transport.world = world;
    rc = trp_channel_join(c, handler, 0, err);
    if (rc < 0)
        trp_channel_destroy(c);
    else
        *ret_channel = c;
    return rc;
}

static bool begun; /* this process has told, or heard, the tidings */

void trp_channel_world_cancel(const trp_error *why)
{
    struct tidings t = {0};
    snprintf(t.why, sizeof t.why, "%s", why->text);
    if (begun)
        return;
    begun = true;
    broadcast(&t, NULL, NULL);
}

int trp_channel_world(const struct trp_listen_config *config,
                      const struct trp_channel_handler *handler,
                      trp_channel **ret_channel, trp_error *err)
{
    int rc = trp_mpi_begin(false, NULL, err);
    if (rc < 0)
        return rc;
    begun = true;
    int rank = trp_mpi()->rank();
    return rank == 0 ? drive(config, handler, ret_channel, err)
                     : follow((uint32_t)rank - 1, config, handler, ret_channel, err);
}
