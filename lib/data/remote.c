#include "data/remote.h"

#include <stdlib.h>

#include "os/clock.h"

static int read_remote(struct trp_bytes_source *source, uint8_t *to, size_t n,
                       trp_error *err);

static void free_source(struct trp_bytes_source *source)
{
    trp_remote_free((struct trp_remote *)source);
}

struct trp_remote *trp_remote_open(trp_block_client *client,
                                   const struct trp_data_host *host,
                                   const struct trp_wanted *wanted, uint32_t first,
                                   const volatile int *killed, int64_t *wait_ns)
{
    struct trp_remote *r = (struct trp_remote *)calloc(1, sizeof *r);
    if (r)
        r->buffer = (uint8_t *)malloc(first > 0 ? first : 1);
    if (!r || !r->buffer) {
        free(r);
        return NULL;
    }
    r->source = (struct trp_bytes_source){read_remote, free_source};
    r->client = client;
    r->killed = killed;
    r->wait_ns = wait_ns;
    r->piece = TRP_PART_SIZE;
    r->fetch.host = host;
    r->fetch.wanted = *wanted;
    r->fetch.wanted.offset = 0;
    r->fetch.wanted.size = first;
    r->fetch.to = r->buffer;
    trp_fetch_begin(client, &r->fetch);
    return r;
}

void trp_remote_free(struct trp_remote *r)
{
    if (!r)
        return;
    trp_fetch_end(r->client, &r->fetch);
    free(r->buffer);
    free(r);
}

/* Waits for the piece that is on its way. */
static int await(struct trp_remote *r, trp_error *err)
{
    int64_t begin = trp_clock_ns();
    int rc = trp_fetch_wait(r->client, &r->fetch, r->killed);
    *r->wait_ns += trp_clock_ns() - begin;
    if (rc < 0)
        return trp_error_set(err, rc, "given up");
    trp_fetch_end(r->client, &r->fetch);
    if (r->fetch.result < 0)
        return trp_error_set(err, TRP_ENOENT, "%s", r->fetch.why);
    r->have = r->fetch.bytes;
    r->used = 0;
    r->fetch.wanted.offset += r->fetch.bytes;
    return 0;
}

int trp_remote_size(struct trp_remote *r, uint64_t *ret_size, trp_error *err)
{
    int rc = await(r, err);
    if (rc < 0)
        return rc;
    *ret_size = r->size = r->fetch.size;
    if (r->have < r->fetch.wanted.size && r->have > 0) { /* it had less */
        uint8_t *small = (uint8_t *)realloc(r->buffer, r->have);
        r->buffer = small ? small : r->buffer;
    }
    r->fetch.wanted.size = 0; /* the buffer is not of a piece's size yet */
    return 0;
}

/* What is in the buffer is used up: asks for the next piece, if there is one. */
static int ask_next(struct trp_remote *r, trp_error *err)
{
    if (r->fetch.begun || r->fetch.wanted.offset >= r->size)
        return 0;
    if (r->fetch.wanted.size == 0) {
        uint64_t left = r->size - r->fetch.wanted.offset;
        uint32_t room = left < r->piece ? (uint32_t)left : r->piece;
        free(r->buffer);
        r->buffer = (uint8_t *)malloc(room);
        if (!r->buffer)
            return trp_error_set(err, TRP_ENOMEM, "out of memory");
        r->fetch.wanted.size = room;
        r->fetch.to = r->buffer;
    }
    trp_fetch_begin(r->client, &r->fetch);
    return 0;
}

static int read_remote(struct trp_bytes_source *source, uint8_t *to, size_t n,
                       trp_error *err)
{
    struct trp_remote *r = (struct trp_remote *)source;
    for (;;) {
        uint32_t here = r->have - r->used;
        uint32_t take = n < here ? (uint32_t)n : here;
        memcpy(to, r->buffer + r->used, take);
        r->used += take;
        to += take;
        n -= take;
        int rc = r->used == r->have ? ask_next(r, err) : 0;
        if (rc < 0 || n == 0)
            return rc;
        if (!r->fetch.begun)
            return trp_error_set(err, TRP_EPROTO, "it is cut off");
        rc = await(r, err);
        if (rc < 0)
            return rc;
        if (r->fetch.size != r->size || r->have == 0)
            return trp_error_set(err, TRP_EPROTO, "it has become another one");
    }
}
