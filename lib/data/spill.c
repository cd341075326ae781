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

int trp_spill_nameless(int folder)
{
    int fd = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    bool none =
        errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL;
    return fd < 0 && none ? named_and_unlinked(folder) : fd;
}

int trp_spill_nameless_in(const char *folder, trp_error *err)
{
    int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = at < 0 ? -1 : trp_spill_nameless(at);
    if (fd < 0)
        trp_error_set(err, TRP_ESYSTEM, "%s: shuffle data cannot be written: %m",
                      folder);
    if (at >= 0)
        close(at);
    return fd;
}

static int need_file(struct trp_spill_file *f, trp_error *err)
{
    if (f->fd < 0)
        f->fd = trp_spill_nameless(f->folder);
    return f->fd >= 0
               ? 0
               : trp_error_set(err, TRP_ESYSTEM,
                               "%s: shuffle data cannot be written: %m", f->path);
}

int trp_spill_merge(struct trp_spill_file *f, struct trp_merge *m,
                    const volatile int *killed, struct trp_spill *ret, trp_error *err)
{
    struct trp_parts_writer p = {0};
    struct trp_shuffle_record r;
    int rc = need_file(f, err);
    if (rc == 0)
        rc = trp_parts_writer_open(&p, f->fd, f->path, f->seed, f->compress, err);
    if (rc < 0)
        return rc;
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
    *ret = (struct trp_spill){f->end, p.bytes};
    f->end += p.bytes;
    trp_parts_writer_close(&p);
    return rc;
}

struct trp_stream *trp_spill_stream(const struct trp_spill_file *f,
                                    const struct trp_spill *spill,
                                    struct trp_unpacker *unpacker)
{
    struct trp_bytes_source *source = trp_source_of_file(f->fd, spill->begin);
    return source ? trp_stream_of_parts(source, spill->bytes, f->seed,
                                        TRP_ANY_PARTITION, unpacker)
                  : NULL;
}

void trp_spill_drop(const struct trp_spill_file *f, const struct trp_spill *spill)
{
    if (f->fd >= 0 && spill->bytes > 0)
        fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)spill->begin, (off_t)spill->bytes);
}

void trp_spill_file_close(struct trp_spill_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

uint32_t trp_merge_width(size_t memory)
{
    size_t n = memory / trp_stream_memory(UINT64_MAX);
    return n < 2 ? 2 : n > 512 ? 512 : (uint32_t)n;
}
