/*
 * A map output's way to another folder of map outputs, whole or not at all: for hosts
 * that go.
 *
 *     struct trp_output_copy c = {.from = here, .to = there, .killed = &killed};
 *     rc = trp_output_copy(&c, &id, &bytes, &err);
 *
 * Threads: any; each with its own struct.
 */
#ifndef TRP_DATA_OUTPUT_COPY_H
#define TRP_DATA_OUTPUT_COPY_H

#include "data/block_file.h"

struct trp_output_copy {
    int from, to;               /* descriptors of folders */
    const volatile int *killed; /* not 0: give up (TRP_ECANCELLED); NULL: never */
};

/* Copies it; one that is there already is left as it is. What its bytes are is for who
 * reads them to check: here only its footer is. *ret_bytes: of the file. TRP_ENOENT: it
 * is not in `from`; TRP_EPROTO: it is damaged; TRP_ESYSTEM: it could not be written, and
 * nothing is left of it. */
int trp_output_copy(const struct trp_output_copy *c, const struct trp_output_id *id,
                    uint64_t *ret_bytes, trp_error *err);

#endif
