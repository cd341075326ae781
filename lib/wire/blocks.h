/*
 * What is said of partitions that executors keep. Layouts and codecs; no I/O.
 *
 * executor → driver
 *   BLOCKS     what has become of some, before the ends of the attempts that did it
 * driver → executor
 *   UNPERSIST  nobody needs those of a dataset: they go, and none is kept from now on
 */
#ifndef TRP_WIRE_BLOCKS_H
#define TRP_WIRE_BLOCKS_H

#include <stdbool.h>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/ids.h"

enum { TRP_BLOCK_LEVELS = 3 }; /* memory is 1, disk 2, and both */

struct trp_block_state {
    uint32_t dataset, partition;
    trp_attempt_id attempt; /* that caused it; UINT64_MAX: none did */
    bool there;             /* else it is not kept any more */
    uint8_t level;
    uint64_t memory, disk; /* bytes */
};

/* Begun with how many follow; then as many trp_block_state_put. `problem`: the errno with
 * which the disk refused one, 0: none. */
void trp_blocks_begin(struct trp_buf *b, uint32_t problem, uint32_t count);
void trp_block_state_put(struct trp_buf *b, const struct trp_block_state *s);
/* _open on the whole message, then _next until 0 (end). TRP_EPROTO. */
int trp_blocks_open(const void *p, size_t n, struct trp_view *ret_v,
                    uint32_t *ret_problem, uint32_t *ret_count);
int trp_blocks_next(struct trp_view *v, struct trp_block_state *ret);

#endif
