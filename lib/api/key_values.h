/*
 * The values of one key on one side of a cogroup: in memory, or, when they are too many
 * for it, all of them in mapped files (data/mapped_values.h). A function sees the same
 * batch in both cases, with a width or with offsets (batch.h).
 *
 *     struct trp_key_values h = {.held = &writer};
 *     while (…)
 *         trp_key_values_add(&h, folder, most, value, n, &err);
 *     trp_key_values_batch(&h, &batch, &err);
 *     trp_key_values_end(&h);
 */
#ifndef TRP_API_KEY_VALUES_H
#define TRP_API_KEY_VALUES_H

#include "api/batch.h"
#include "data/mapped_values.h"

struct trp_key_values {
    trp_writer *held;      /* lent, cleared by who lends it; in it … */
    trp_overflow *values;  /* … unless they are here */
    trp_overflow *offsets; /* of those that have no width; NULL: they have one */
    size_t count;          /* those in files */
    uint32_t width;
};

/* Bytes that the values in a writer take. */
size_t trp_key_values_size(const trp_writer *w);
/* One more, copied. Above `most` bytes in memory they go to files in `folder`, which is
 * borrowed. TRP_ENOMEM, TRP_ESYSTEM. */
int trp_key_values_add(struct trp_key_values *h, const char *folder, size_t most,
                       const void *value, size_t n, trp_error *err);
/* All of them, borrowed until trp_key_values_end. TRP_ESYSTEM. */
int trp_key_values_batch(struct trp_key_values *h, trp_batch *ret, trp_error *err);
/* Bytes that went to files. */
uint64_t trp_key_values_spilled(const struct trp_key_values *h);
void trp_key_values_end(struct trp_key_values *h);

#endif
