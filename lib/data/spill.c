#include "data/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { LOOK_EVERY = 4096 }; /* records, for who wants it ended */

/* Where the file system has no files without a name, it is taken away again. */
static int named_and_unlinked(int folder)
{
    char name[64];
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, ".spill-%d-%u", (int)getpid(), i);
        int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno == EEXIST)
            continue;
        if (fd >= 0)
            unlinkat(folder, name, 0);
        return fd;
    }
    return -1;
}

int trp_spill_file(int folder, const char *path, int *ret_fd, trp_error *err)
{
    *ret_fd = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (*ret_fd < 0 &&
        (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL))
        *ret_fd = named_and_unlinked(folder);
    return *ret_fd >= 0 ? 0
                        : trp_error_set(err, TRP_ESYSTEM,
                                        "%s: shuffle data cannot be written: %m", path);
}

int trp_spill_merge(struct trp_merge *m, int folder, const char *path, uint64_t seed,
                    int compress, const volatile int *killed, struct trp_spill *ret,
                    trp_error *err)
{
    struct trp_parts_writer p;
    struct trp_shuffle_record r;
    int rc = trp_spill_file(folder, path, &ret->fd, err);
    if (rc < 0)
        return rc;
    rc = trp_parts_writer_open(&p, ret->fd, path, seed, compress, err);
    if (rc < 0) {
        close(ret->fd);
        return rc;
    }
    for (uint64_t n = 0; (rc = trp_merge_next(m, &r, err)) > 0; n++) {
        if (n % LOOK_EVERY == 0 && trp_is_killed(killed))
            rc = trp_error_set(err, TRP_ECANCELLED, "given up");
        else
            rc = trp_parts_put_record(&p, m->partition, &r, err);
        if (rc < 0)
            break;
    }
    if (rc == 0)
        rc = trp_parts_flush(&p, err);
    ret->bytes = p.bytes;
    trp_parts_writer_close(&p);
    if (rc < 0)
        close(ret->fd);
    return rc;
}

struct trp_stream *trp_spill_stream(struct trp_spill *take_spill, uint64_t seed,
                                    struct trp_unpacker *unpacker)
{
    struct trp_bytes_source *source = trp_source_of_file(take_spill->fd, 0);
    take_spill->fd = -1;
    return source ? trp_stream_of_parts(source, take_spill->bytes, seed,
                                        TRP_ANY_PARTITION, unpacker)
                  : NULL;
}

uint32_t trp_merge_width(size_t memory)
{
    size_t n = memory / trp_stream_memory(UINT64_MAX);
    return n < 2 ? 2 : n > 512 ? 512 : (uint32_t)n;
}
