/*
 * Records as they lie in memory and in files: the sizes of key and value, each in as
 * few bytes as it needs (7 bits a byte, low ones first), then key and value. Internal
 * to lib/data.
 */
#ifndef TRP_DATA_RECORD_H
#define TRP_DATA_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "data/shuffle.h"

enum { TRP_RECORD_HEAD_MAX = 10 };

struct trp_record {
    const uint8_t *key; /* the value is behind it */
    uint32_t nk, nv;
};

/* Whether the owner of `killed` (NULL: nobody) wants no more. */
static inline bool trp_is_killed(const volatile int *killed)
{
    return killed && __atomic_load_n(killed, __ATOMIC_RELAXED);
}

static inline const uint8_t *trp_record_value(const struct trp_record *r)
{
    return r->key + r->nk;
}

static inline size_t trp_varint_put(uint8_t *to, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        to[n++] = (uint8_t)(v | 0x80);
    to[n++] = (uint8_t)v;
    return n;
}

/* Behind it; NULL: it is not whole, or above 64 bits. */
static inline const uint8_t *trp_varint_get(const uint8_t *at, const uint8_t *end,
                                            uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
        uint8_t byte = *at++;
        if (shift == 63 && byte > 1)
            return NULL;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret = v;
            return at;
        }
    }
    return NULL;
}

static inline size_t trp_record_head(uint8_t head[TRP_RECORD_HEAD_MAX], uint32_t nk,
                                     uint32_t nv)
{
    size_t n = trp_varint_put(head, nk);
    return n + trp_varint_put(head + n, nv);
}

/* Reads the record at `at`. Behind it; NULL: there is none that is whole. */
static inline const uint8_t *trp_record_get(const uint8_t *at, const uint8_t *end,
                                            struct trp_record *ret)
{
    uint64_t nk, nv;
    if (end - at >= 2 && (at[0] | at[1]) < 0x80) {
        nk = at[0];
        nv = at[1];
        at += 2;
    } else if (!(at = trp_varint_get(at, end, &nk)) ||
               !(at = trp_varint_get(at, end, &nv))) {
        return NULL;
    }
    uint64_t left = (uint64_t)(end - at);
    if (nk > left || nv > left - nk || nk + nv > TRP_SHUFFLE_RECORD_MAX)
        return NULL;
    *ret = (struct trp_record){at, (uint32_t)nk, (uint32_t)nv};
    return at + nk + nv;
}

#endif
