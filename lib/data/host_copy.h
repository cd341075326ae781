/*
 * A host's copy of a file that all hosts of a run read, in its folder of map outputs:
 * whoever needs it first makes it, from the block server of a host that has it or from a
 * file that can be opened, and all executors there use it. It appears whole, and is known
 * by its size and hash.
 *
 *     trp_host_copy_begin(folder, &id, killed, &c, &err);        // 1: it is there
 *     trp_host_copy_fetch(&c, client, "HOST:PORT", killed, &err);   // until one is good
 *     trp_host_copy_end(&c, &err);
 */
#ifndef TRP_DATA_HOST_COPY_H
#define TRP_DATA_HOST_COPY_H

#include "data/block_client.h"

enum {
    TRP_HOST_COPY_NAME = 64,
    TRP_HOST_COPY_MIN = 1 << 20, /* bytes: less is not worth asking for */
};

struct trp_host_copy_id {
    uint32_t number;
    uint64_t size, hash; /* XXH3 of its bytes */
};

/* One that is being made. */
struct trp_host_copy {
    struct trp_host_copy_id id;
    int folder, fd;
    uint8_t *bytes; /* of the file */
    bool good;
};

/* Its name in the folder. */
void trp_host_copy_name(const struct trp_host_copy_id *id,
                        char ret[TRP_HOST_COPY_NAME]);
/* Waits until nobody else on this host makes it. 1: it is there; 0: the caller is to make
 * it, and ends it in any case. TRP_ESYSTEM: no folder, no room; TRP_ECANCELLED. */
int trp_host_copy_begin(const char *folder, const struct trp_host_copy_id *id,
                        const volatile int *killed, struct trp_host_copy *ret,
                        trp_error *err);
/* Takes all of it from a block server. TRP_ENOENT: it has none, or does not answer;
 * TRP_EPROTO: what it gave is something else; TRP_ECANCELLED. */
int trp_host_copy_fetch(struct trp_host_copy *c, trp_block_client *client,
                        const char *endpoint, const volatile int *killed,
                        trp_error *err);
/* The same from a file. TRP_ESYSTEM, TRP_EPROTO. */
int trp_host_copy_read(struct trp_host_copy *c, const char *path, trp_error *err);
/* Gives it its name, when what was taken last is good. TRP_ESYSTEM. */
int trp_host_copy_end(struct trp_host_copy *c, trp_error *err);

#endif
