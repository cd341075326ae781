/*
 * A buffer in front of a file of trp_spill_nameless_in, so that 8 bytes may be put at a
 * time. There are no checksums, as there are in map outputs and spills (parts.h): the
 * bytes are used in place, not passed through a reader that could look at them.
 */
#include "data/mapped_values.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/spill.h"
#include "os/whole_file.h"

enum { BUFFER = 256 << 10 };

struct trp_overflow {
    const char *folder;
    int fd;
    uint64_t size;  /* put so far */
    size_t waiting; /* of them in the buffer */
    void *mapping;  /* NULL: none yet */
    uint8_t buffer[BUFFER];
};

int trp_overflow_open(const char *folder, trp_overflow **ret, trp_error *err)
{
    trp_overflow *o = malloc(sizeof(*o));
    if (!o)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for values");
    o->folder = folder;
    o->size = 0;
    o->waiting = 0;
    o->mapping = NULL;
    o->fd = trp_spill_nameless_in(folder, err);
    if (o->fd < 0) {
        free(o);
        return TRP_ESYSTEM;
    }
    *ret = o;
    return 0;
}

static int write_out(trp_overflow *o, const void *bytes, size_t n, trp_error *err)
{
    return trp_file_write(o->fd, bytes, n) == 0
               ? 0
               : trp_error_set(err, TRP_ESYSTEM,
                               "%s: shuffle data cannot be written: %m", o->folder);
}

static int flush(trp_overflow *o, trp_error *err)
{
    int rc = write_out(o, o->buffer, o->waiting, err);
    o->waiting = 0;
    return rc;
}

int trp_overflow_put(trp_overflow *o, const void *bytes, size_t n, trp_error *err)
{
    if (n > BUFFER - o->waiting) {
        int rc = flush(o, err);
        if (rc < 0)
            return rc;
    }
    o->size += n;
    if (n >= BUFFER)
        return write_out(o, bytes, n, err);
    if (n)
        memcpy(o->buffer + o->waiting, bytes, n);
    o->waiting += n;
    return 0;
}

int trp_overflow_map(trp_overflow *o, const uint8_t **ret, trp_error *err)
{
    int rc = flush(o, err);
    if (rc < 0)
        return rc;
    *ret = o->buffer; /* of nothing */
    if (o->size == 0)
        return 0;
    void *p = mmap(NULL, (size_t)o->size, PROT_READ, MAP_SHARED, o->fd, 0);
    if (p == MAP_FAILED)
        return trp_error_set(err, TRP_ESYSTEM, "%llu bytes of %s cannot be mapped: %m",
                             (unsigned long long)o->size, o->folder);
    /* What was read goes first when memory is short. */
    madvise(p, (size_t)o->size, MADV_SEQUENTIAL);
    *ret = o->mapping = p;
    return 0;
}

uint64_t trp_overflow_size(const trp_overflow *o)
{
    return o->size;
}

void trp_overflow_free(trp_overflow *o)
{
    if (!o)
        return;
    if (o->mapping)
        munmap(o->mapping, (size_t)o->size);
    close(o->fd);
    free(o);
}
