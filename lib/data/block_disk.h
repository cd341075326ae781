/*
 * One file without a name, for blocks that memory has no room for. Internal to
 * lib/data.
 *
 * It has no name, so it goes with its process however that ends, nobody finds it, and
 * it is none the worse for a folder that is removed. Where what is where the caller
 * knows: an *extent* is a place in it. The bytes of a freed extent are given back to the
 * file system where that can make holes; all of them are when none is left.
 *
 * Threads: any.
 */
#ifndef TRP_DATA_BLOCK_DISK_H
#define TRP_DATA_BLOCK_DISK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trp_block_disk {
    /* Opens the folder for the file: a descriptor, which is closed, or -1 with errno. */
    int (*folder)(void *context);
    void *context;
    pthread_mutex_t lock;
    /* ---- `lock` */
    int fd; /* -1: none yet */
    uint64_t end, live;
};

void trp_block_disk_init(struct trp_block_disk *d, int (*folder)(void *context),
                         void *context);
void trp_block_disk_close(struct trp_block_disk *d);

/* Writes bytes to a new extent: 0, or the errno. */
int trp_block_disk_write(struct trp_block_disk *d, const void *bytes, size_t size,
                         uint64_t *ret_at);
/* Reads an extent; false: not all of it could be. */
bool trp_block_disk_read(struct trp_block_disk *d, uint64_t at, void *bytes,
                         size_t size);
void trp_block_disk_free(struct trp_block_disk *d, uint64_t at, size_t size);

#endif
