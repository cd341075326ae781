/*
 * The start of a static run: all are there, nobody knows anything. Rank 0 listens, and
 * tells the others its address, the secret and how both sides prove themselves through
 * MPI, which started them and which they trust already. From then on it is as with
 * every executor: the same socket for liveness and ringing, the same proof, the same
 * hello with the build.
 */
#include <stdio.h>

#include "comm/peer.h"

/* What rank 0 tells. */
struct tidings {
    char address[300]; /* "": rank 0 failed */
    uint8_t secret[TRP_SECRET_SIZE];
    bool munge, mac;
};

static int tell(MPI_Comm world, struct tidings *t, trp_error *err)
{
    if (MPI_Bcast(t, sizeof *t, MPI_BYTE, 0, world) != MPI_SUCCESS)
        return trp_error_set(err, TRP_ESYSTEM, "MPI_Bcast failed");
    return 0;
}

static int drive(MPI_Comm world, const struct trp_listen_config *config,
                 const struct trp_channel_handler *handler, trp_channel **ret_channel,
                 trp_error *err)
{
    struct tidings t = {0};
    struct trp_listen_config own = *config;
    trp_channel *c = NULL;
    own.transport = TRP_TRANSPORT_WORLD;
    int rc = trp_channel_listen(&own, handler, &c, err);
    if (rc == 0) {
        c->transport.world = world;
        snprintf(t.address, sizeof t.address, "%s", c->address);
        memcpy(t.secret, config->secret, sizeof t.secret);
        t.munge = config->munge;
        t.mac = config->mac;
    }
    int told = tell(world, &t, rc == 0 ? err : NULL);
    explicit_bzero(&t, sizeof t);
    if (rc == 0 && told < 0)
        trp_channel_destroy(c);
    else if (rc == 0)
        *ret_channel = c;
    return rc < 0 ? rc : told;
}

static int follow(MPI_Comm world, uint32_t executor,
                  const struct trp_listen_config *config,
                  const struct trp_channel_handler *handler, trp_channel **ret_channel,
                  trp_error *err)
{
    struct tidings t;
    int rc = tell(world, &t, err);
    if (rc < 0)
        return rc;
    if (t.address[0] == 0)
        return trp_error_set(err, TRP_ESYSTEM, "the driver (rank 0) could not start");
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

void trp_channel_world_cancel(void)
{
    struct tidings t = {0};
    MPI_Comm world;
    if (begun || MPI_Comm_dup(MPI_COMM_WORLD, &world) != MPI_SUCCESS)
        return;
    begun = true;
    tell(world, &t, NULL);
    MPI_Comm_free(&world);
}

int trp_channel_world(const struct trp_listen_config *config,
                      const struct trp_channel_handler *handler,
                      trp_channel **ret_channel, trp_error *err)
{
    MPI_Comm world;
    int rank, rc = trp_transport_init_mpi(MPI_THREAD_SERIALIZED, 0, NULL, err);
    if (rc < 0)
        return rc;
    if (MPI_Comm_dup(MPI_COMM_WORLD, &world) != MPI_SUCCESS)
        return trp_error_set(err, TRP_ESYSTEM, "MPI_Comm_dup failed");
    begun = true;
    MPI_Comm_rank(world, &rank);
    return rank == 0
               ? drive(world, config, handler, ret_channel, err)
               : follow(world, (uint32_t)rank - 1, config, handler, ret_channel, err);
}
