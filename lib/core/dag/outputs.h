/*
 * The map-output registry: where the output of each map task of each shuffle lies and
 * how much of it every reducer gets (semantics, section 15). It knows nothing of the
 * engine.
 *
 * Words. A *shuffle* is a dense number of the caller's; *map* and *reduce* are task
 * indices of the two sides. A *place* is an executor on a host; with executor TRP_NONE
 * an output belongs to the host alone (semantics, difference 17) and outlives every
 * executor there; with host TRP_NONE as well it lies where all hosts see it, and
 * outlives them too. The *epoch* grows whenever an output may have gone; readers forget
 * what they know of an older one.
 *
 * Sizes are kept to one byte each, as a power of 1.1 rounded up (at most 10 % too
 * large, never 0 for a block that is not empty); above 2000 reducers as the average of
 * the blocks that are not empty and one bit each for whether it is.
 *
 * Cost: O(1) for one output, O(outputs there) for a place that goes, never a walk over
 * all shuffles; O(maps) for a reducer's preference.
 *
 *     trp_map_outputs_register(o, shuffle, maps, 0, &err);
 *     trp_map_outputs_add(o, shuffle, map, place, attempt, sizes, nsizes);
 *     trp_map_outputs_drop_executor(o, place.executor);
 *     missing = trp_map_outputs_missing(o, shuffle);
 *
 * Threads: one at a time.
 */
#ifndef TRP_CORE_DAG_OUTPUTS_H
#define TRP_CORE_DAG_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/ids.h"

typedef struct trp_map_outputs trp_map_outputs;

struct trp_output_place {
    uint32_t executor; /* TRP_NONE: files of the host */
    uint32_t host;
};

enum {
    TRP_MAP_OUTPUTS_MAPS_MAX = 1 << 24, /* maps of one shuffle */
    TRP_MAP_OUTPUTS_EXACT = 2000, /* more reducers than these: average and bitmap */
    TRP_MAP_OUTPUTS_PREFER_MAX = 1000, /* so many maps or reducers: no preference */
};

/* NULL when out of memory. */
trp_map_outputs *trp_map_outputs_new(void);
void trp_map_outputs_free(trp_map_outputs *o);

/* A shuffle of `maps` map tasks, none of whose outputs are there; `reducers` 0: as many
 * as the outputs have sizes. TRP_EEXIST: registered already; TRP_ELIMIT; TRP_ENOMEM. */
int trp_map_outputs_register(trp_map_outputs *o, uint32_t shuffle, uint32_t maps,
                             uint32_t reducers, trp_error *err);
/* Forgets a shuffle and its outputs; nothing when it is not registered. */
void trp_map_outputs_unregister(trp_map_outputs *o, uint32_t shuffle);
bool trp_map_outputs_known(const trp_map_outputs *o, uint32_t shuffle);
uint32_t trp_map_outputs_maps(const trp_map_outputs *o,
                              uint32_t shuffle); /* unknown: 0 */

/* The output of a map task is at `place`, in place of an earlier one. `id` tells apart
 * the outputs that attempts of the same task made. `sizes` are bytes for each reducer;
 * with `nsizes` 0 they are not known and taken as equal. TRP_ENOENT: no such shuffle or
 * map; TRP_ENOMEM. */
int trp_map_outputs_add(trp_map_outputs *o, uint32_t shuffle, uint32_t map,
                        struct trp_output_place place, uint64_t id,
                        const uint64_t *sizes, uint32_t nsizes);

/* The output `id` of a map task was moved (updateMapOutput), also when its old place
 * has gone already: then it is there again. TRP_ENOENT: not this output any more, or
 * another one has come meanwhile. */
int trp_map_outputs_move(trp_map_outputs *o, uint32_t shuffle, uint32_t map,
                         uint64_t id, struct trp_output_place to);

/* Drops one output if it is at exactly that place; the epoch grows in any case. */
void trp_map_outputs_drop(trp_map_outputs *o, uint32_t shuffle, uint32_t map,
                          struct trp_output_place place);
/* Drops all outputs of a shuffle, or all of an executor or a host in all shuffles; the
 * epoch grows. */
void trp_map_outputs_drop_all(trp_map_outputs *o, uint32_t shuffle);
void trp_map_outputs_drop_executor(trp_map_outputs *o, uint32_t executor);
void trp_map_outputs_drop_host(trp_map_outputs *o, uint32_t host);

uint64_t trp_map_outputs_epoch(const trp_map_outputs *o);
void trp_map_outputs_grow_epoch(trp_map_outputs *o);

/* Map tasks of the shuffle without an output. */
uint32_t trp_map_outputs_missing(const trp_map_outputs *o, uint32_t shuffle);
/* Whether a reader finds all its input: no output is missing. */
bool trp_map_outputs_complete(const trp_map_outputs *o, uint32_t shuffle);
/* Where one output is; false when it is missing. `ret` may be NULL. */
bool trp_map_outputs_place(const trp_map_outputs *o, uint32_t shuffle, uint32_t map,
                           struct trp_output_place *ret);
/* The `id` of one output that is there; 0 when it is missing. */
uint64_t trp_map_outputs_id(const trp_map_outputs *o, uint32_t shuffle, uint32_t map);
/* What `reduce` gets of one output in bytes, as far as it is known; 0 when missing. */
uint64_t trp_map_outputs_size(const trp_map_outputs *o, uint32_t shuffle, uint32_t map,
                              uint32_t reduce);

/* The places that hold at least `share` (0.2) of a reducer's input, in order of host
 * and executor, at most `max` of them into `ret`. Returns how many; 0: no preference,
 * also when the shuffle has TRP_MAP_OUTPUTS_PREFER_MAX maps or reducers or more. */
uint32_t trp_map_outputs_prefer(trp_map_outputs *o, uint32_t shuffle, uint32_t reduce,
                                double share, struct trp_output_place *ret,
                                uint32_t max);

#endif
