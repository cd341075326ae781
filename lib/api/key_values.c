/*
 * When memory is full, what the writer's columns hold is moved to files as it is, and its
 * memory is given back; from then on each value goes to the files. So a batch of a few
 * values costs no file, and what is in memory beside one is a buffer. The rules for widths
 * and offsets are those of a column (batch.c).
 */
#include "api/key_values.h"

#include <string.h>

size_t trp_key_values_size(const trp_writer *w)
{
    return w->values.size + (w->values.fixed ? 0 : w->count * sizeof(uint64_t));
}

static int put_offset(struct trp_key_values *h, uint64_t offset, trp_error *err)
{
    return trp_overflow_put(h->offsets, &offset, sizeof(offset), err);
}

static int move_out(struct trp_key_values *h, const char *folder, trp_error *err)
{
    const struct trp_column *c = &h->held->values;
    int rc = trp_overflow_open(folder, &h->values, err);
    if (rc == 0)
        rc = trp_overflow_put(h->values, c->data, c->size, err);
    if (rc == 0 && !c->fixed)
        rc = trp_overflow_open(folder, &h->offsets, err);
    if (rc == 0 && !c->fixed)
        rc = trp_overflow_put(h->offsets, c->offsets,
                              (h->held->count + 1) * sizeof(uint64_t), err);
    h->count = h->held->count;
    h->width = c->width;
    trp_writer_free(h->held);
    return rc;
}

/* From one width to an offset for each. */
static int unfix(struct trp_key_values *h, const char *folder, trp_error *err)
{
    int rc = trp_overflow_open(folder, &h->offsets, err);
    for (size_t i = 0; rc == 0 && i <= h->count; i++)
        rc = put_offset(h, (uint64_t)i * h->width, err);
    h->width = 0;
    return rc;
}

static int add_to_files(struct trp_key_values *h, const char *folder, const void *value,
                        size_t n, trp_error *err)
{
    int rc = 0;
    if (!h->offsets && h->count == 0)
        h->width = n <= UINT32_MAX ? (uint32_t)n : 0;
    if (!h->offsets && (n != h->width || n == 0))
        rc = unfix(h, folder, err);
    if (rc == 0)
        rc = trp_overflow_put(h->values, value, n, err);
    if (rc == 0 && h->offsets)
        rc = put_offset(h, trp_overflow_size(h->values), err);
    h->count++;
    return rc;
}

int trp_key_values_add(struct trp_key_values *h, const char *folder, size_t most,
                       const void *value, size_t n, trp_error *err)
{
    int rc = 0;
    if (!h->values && trp_key_values_size(h->held) + n <= most)
        return trp_emit(h->held, NULL, 0, value, n) == 0
                   ? 0
                   : trp_error_set(err, TRP_ENOMEM, "out of memory for a group");
    if (!h->values)
        rc = move_out(h, folder, err);
    return rc < 0 ? rc : add_to_files(h, folder, value, n, err);
}

int trp_key_values_batch(struct trp_key_values *h, trp_batch *ret, trp_error *err)
{
    const uint8_t *offsets = NULL;
    if (!h->values) {
        *ret = trp_writer_batch(h->held);
        return 0;
    }
    *ret = (trp_batch){.count = h->count, .value_width = h->width};
    int rc = trp_overflow_map(h->values, &ret->values, err);
    if (rc == 0 && h->offsets)
        rc = trp_overflow_map(h->offsets, &offsets, err);
    ret->value_offsets = (const uint64_t *)(const void *)offsets;
    return rc;
}

uint64_t trp_key_values_spilled(const struct trp_key_values *h)
{
    return (h->values ? trp_overflow_size(h->values) : 0) +
           (h->offsets ? trp_overflow_size(h->offsets) : 0);
}

void trp_key_values_end(struct trp_key_values *h)
{
    trp_overflow_free(h->values);
    trp_overflow_free(h->offsets);
    h->values = h->offsets = NULL;
}
