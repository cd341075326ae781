/*
 * The order of keys: as numbers of 64 bits first, each a key's *prefix*, and only where
 * these are equal by the keys themselves. Internal to lib/data.
 *
 * A prefix is made of a key's first 8 bytes so that it compares as they do. Of keys that
 * are numbers it is all of them. Where it goes down, the prefix is turned over, so that
 * who sorts and merges by prefixes knows nothing of directions. With a comparison of
 * the user's own all prefixes are 0.
 */
#ifndef TRP_DATA_KEY_ORDER_H
#define TRP_DATA_KEY_ORDER_H

#include <endian.h>

#include "data/record.h"

enum { TRP_PREFIX = sizeof(uint64_t) }; /* bytes of a key in it */

/* Of the bytes of a key; a shorter one has zeros behind it. */
static inline uint64_t trp_bytes_prefix(const uint8_t *key, size_t nk)
{
    uint64_t v = 0;
    if (__builtin_expect(nk >= sizeof v, 1)) {
        memcpy(&v, key, sizeof v);
        return be64toh(v);
    }
    for (size_t i = 0; i < nk; i++)
        v |= (uint64_t)key[i] << (56 - 8 * i);
    return v;
}

static inline uint64_t trp_number_prefix(enum trp_shuffle_keys keys, const uint8_t *key,
                                         size_t nk)
{
    const uint64_t sign = UINT64_C(1) << 63;
    uint64_t v = 0;
    double number;
    memcpy(&v, key, nk < sizeof v ? nk : sizeof v);
    if (keys == TRP_KEYS_I64)
        return v ^ sign;
    memcpy(&number, &v, sizeof number);
    if (number != number)
        return UINT64_MAX;
    if (number == 0) /* there are two of them, the same */
        return sign;
    return v & sign ? ~v : v | sign;
}

/* `key`: its bytes from the 8th, 16th, … on, where those before are the same. */
static inline uint64_t trp_key_prefix(const struct trp_shuffle_order *o,
                                      const uint8_t *key, size_t nk)
{
    if (o->compare)
        return 0;
    uint64_t v = o->keys == TRP_KEYS_BYTES ? trp_bytes_prefix(key, nk)
                                           : trp_number_prefix(o->keys, key, nk);
    return o->descending ? ~v : v;
}

/* As memcmp; both keys are the same in their first `skip` bytes. */
static inline int trp_key_compare(const struct trp_shuffle_order *o, const uint8_t *a,
                                  size_t na, const uint8_t *b, size_t nb, size_t skip)
{
    if (o->compare)
        return o->compare(o->context, a, na, b, nb);
    if (o->keys != TRP_KEYS_BYTES) {
        uint64_t x = trp_key_prefix(o, a, na), y = trp_key_prefix(o, b, nb);
        return (x > y) - (x < y);
    }
    size_t n = na < nb ? na : nb;
    int c = n > skip ? memcmp(a + skip, b + skip, n - skip) : 0;
    if (c == 0)
        c = (na > nb) - (na < nb);
    return o->descending ? (c < 0) - (c > 0) : c;
}

#endif
