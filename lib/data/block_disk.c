/*
 * Extents are dealt out one behind the other and never filled again: the file becomes
 * longer, but what was freed of it is a hole. (A list of free places would save nothing
 * but the length.)
 */
#include "data/block_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "data/spill.h"

void trp_block_disk_init(struct trp_block_disk *d, int (*folder)(void *context),
                         void *context)
{
    *d = (struct trp_block_disk){.folder = folder, .context = context, .fd = -1};
    pthread_mutex_init(&d->lock, NULL);
}

void trp_block_disk_close(struct trp_block_disk *d)
{
    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
    pthread_mutex_destroy(&d->lock);
}

/* With the lock. */
static int open_file(struct trp_block_disk *d)
{
    int folder, rc = 0;
    if (d->fd >= 0)
        return 0;
    folder = d->folder(d->context);
    if (folder < 0)
        return errno ? errno : EIO;
    d->fd = trp_spill_nameless(folder);
    if (d->fd < 0)
        rc = errno ? errno : EIO;
    close(folder);
    return rc;
}

static int take_extent(struct trp_block_disk *d, size_t size, uint64_t *ret_at)
{
    pthread_mutex_lock(&d->lock);
    int rc = open_file(d);
    if (rc == 0) {
        *ret_at = d->end;
        d->end += size;
        d->live += size;
    }
    pthread_mutex_unlock(&d->lock);
    return rc;
}

int trp_block_disk_write(struct trp_block_disk *d, const void *bytes, size_t size,
                         uint64_t *ret_at)
{
    uint64_t at = 0;
    int rc = take_extent(d, size, &at);
    for (size_t done = 0; rc == 0 && done < size;) {
        ssize_t n =
            pwrite(d->fd, (const char *)bytes + done, size - done, (off_t)(at + done));
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            rc = n == 0 ? ENOSPC : errno;
        if (rc)
            trp_block_disk_free(d, at, size);
    }
    *ret_at = at;
    return rc;
}

bool trp_block_disk_read(struct trp_block_disk *d, uint64_t at, void *bytes,
                         size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(d->fd, (char *)bytes + done, size - done, (off_t)(at + done));
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return false;
    }
    return true;
}

void trp_block_disk_free(struct trp_block_disk *d, uint64_t at, size_t size)
{
    const int hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    pthread_mutex_lock(&d->lock);
    d->live -= size;
    if (d->live == 0 && ftruncate(d->fd, 0) == 0)
        d->end = 0;
    else if (size > 0 && fallocate(d->fd, hole, (off_t)at, (off_t)size) < 0)
        errno = 0; /* it goes with the others */
    pthread_mutex_unlock(&d->lock);
}
