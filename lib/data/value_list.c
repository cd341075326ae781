/*
 * A file of parts (parts.h), so that what is read is what was written, and a stream over
 * it for each time that it is read.
 */
#include "data/value_list.h"

#include <stdlib.h>
#include <unistd.h>

#include "data/spill.h"

struct trp_values {
    const char *folder;
    int fd;
    struct trp_parts_writer writer;
    struct trp_unpacker unpacker;
    struct trp_stream *stream; /* NULL: nothing is read yet */
};

int trp_values_open(const char *folder, trp_values **ret, trp_error *err)
{
    trp_values *v = calloc(1, sizeof(*v));
    if (!v)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for values");
    v->folder = folder;
    v->fd = trp_spill_nameless_in(folder, err);
    int rc = v->fd < 0 ? TRP_ESYSTEM
                       : trp_parts_writer_open(&v->writer, v->fd, folder, 0, 0, err);
    if (rc < 0)
        trp_values_free(v);
    else
        *ret = v;
    return rc;
}

int trp_values_put(trp_values *v, const void *value, size_t n, trp_error *err)
{
    const struct trp_shuffle_record r = {.key = "", .value = value, .nv = n};
    return trp_parts_put_record(&v->writer, 0, &r, err);
}

int trp_values_begin(trp_values *v, trp_error *err)
{
    int rc = v->stream ? 0 : trp_parts_flush(&v->writer, err);
    if (rc < 0)
        return rc;
    if (v->stream)
        v->stream->free(v->stream);
    struct trp_bytes_source *source = trp_source_of_file(v->fd, 0);
    v->stream = source ? trp_stream_of_parts(source, v->writer.bytes, 0,
                                             TRP_ANY_PARTITION, &v->unpacker)
                       : NULL;
    return v->stream ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory for values");
}

int trp_values_next(trp_values *v, const void **ret_value, size_t *ret_n,
                    trp_error *err)
{
    int rc = trp_stream_next(v->stream, err);
    if (rc > 0) {
        *ret_value = trp_record_value(&v->stream->record);
        *ret_n = v->stream->record.nv;
    }
    return rc;
}

uint64_t trp_values_bytes(const trp_values *v)
{
    return v->writer.bytes;
}

void trp_values_free(trp_values *v)
{
    if (!v)
        return;
    if (v->stream)
        v->stream->free(v->stream);
    trp_parts_writer_close(&v->writer);
    if (v->fd >= 0)
        close(v->fd);
    free(v);
}
