/*
 * The records of a task of trp_collect, on their way to the driver: one batch in a
 * message where they are few; else *pieces* in a file (shared_file.h), each a batch behind
 * its size and at a multiple of 8 bytes. So a task holds one piece, whatever its partition
 * has.
 */
#include <stdlib.h>

#include "api/flow.h"

enum { PIECE = 8 << 20 };

static int failed(struct trp_flow *f, int rc)
{
    return trp_flow_fail(f, rc, "out of memory for the records to collect");
}

static int too_large(struct trp_flow *f)
{
    return trp_flow_fail(f, TRP_ELIMIT,
                         "a partition to collect is above %u MiB; use more partitions",
                         TRP_RESULT_MAX >> 20);
}

static int put_piece(struct trp_flow *f, const uint8_t *data, uint32_t size)
{
    static const uint8_t zeros[8];
    const uint64_t n = size;
    trp_error err = {0};
    int rc = 0;
    if (!f->result)
        rc = trp_shared_begin(f->chain->shared, TRP_RESULTS_FOLDER,
                              f->task.info->attempt.n, &f->result, &err);
    if (rc == 0)
        rc = trp_shared_put(f->result, &n, sizeof(n), &err);
    if (rc == 0)
        rc = trp_shared_put(f->result, data, size, &err);
    if (rc == 0)
        rc = trp_shared_put(f->result, zeros, trp_piece_padding(n), &err);
    return rc < 0 ? trp_flow_fail(f, err.code, "%s", err.text) : 0;
}

/* What is held becomes a piece. */
static int put_held(struct trp_flow *f)
{
    const trp_batch b = trp_writer_batch(&f->kept);
    uint8_t *data;
    uint32_t size;
    int rc = trp_batch_encode(&b, &data, &size);
    if (rc < 0)
        return rc == TRP_ELIMIT ? too_large(f) : failed(f, rc);
    trp_writer_clear(&f->kept);
    rc = put_piece(f, data, size);
    free(data);
    return rc;
}

int trp_flow_collect_batch(struct trp_flow *f, const trp_batch *in)
{
    if (trp_writer_add_batch(&f->kept, in) < 0)
        return failed(f, TRP_ENOMEM);
    if (f->kept.values.size + f->kept.keys.size < PIECE)
        return 0;
    if (put_held(f) < 0)
        return -1;
    return trp_shared_size(f->result) > TRP_RESULT_MAX ? too_large(f) : 0;
}

int trp_flow_collect_end(struct trp_flow *f)
{
    struct trp_function_result *ret = f->ret;
    const trp_batch b = trp_writer_batch(&f->kept);
    trp_error err;
    if (!f->result && b.count > 0) {
        int rc = trp_batch_encode(&b, &ret->result, &ret->result_size);
        if (rc < 0)
            return rc == TRP_ELIMIT ? too_large(f) : failed(f, rc);
        ret->bytes_out = ret->result_size;
        if (ret->result_size <= TRP_RESULT_INLINE)
            return 0;
        rc = put_piece(f, ret->result, ret->result_size);
        free(ret->result);
        ret->result = NULL;
        ret->result_size = 0;
        if (rc < 0)
            return rc;
    } else if (b.count > 0 && put_held(f) < 0) {
        return -1;
    }
    if (!f->result)
        return 0;
    ret->file.size = ret->bytes_out = trp_shared_size(f->result);
    int rc = trp_shared_end(f->result, true, &ret->file.hash, &err);
    f->result = NULL;
    ret->in_file = rc == 0;
    return rc < 0 ? trp_flow_fail(f, err.code, "%s", err.text) : 0;
}

bool trp_piece_next(const uint8_t **at, const uint8_t *end, const uint8_t **ret_data,
                    size_t *ret_size)
{
    uint64_t n, left = (uint64_t)(end - *at);
    if (left < sizeof(n))
        return false;
    memcpy(&n, *at, sizeof(n));
    left -= sizeof(n);
    if (n > left || trp_piece_padding(n) > left - n)
        return false;
    *ret_data = *at + sizeof(n);
    *ret_size = n;
    *at += sizeof(n) + n + trp_piece_padding(n);
    return true;
}
