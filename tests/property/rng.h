/*
 * Random numbers of the property tests: SplitMix64, the same everywhere for the same
 * seed.
 */
#ifndef TESTS_PROPERTY_RNG_H
#define TESTS_PROPERTY_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = (r->state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* 0 .. n-1; 0 for n == 0. */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
    return n ? (uint32_t)(rng_next(r) % n) : 0;
}

/* low .. high, both included. */
static inline int rng_range(struct rng *r, int low, int high)
{
    return low + (int)rng_below(r, (uint32_t)(high - low + 1));
}

static inline bool rng_one_in(struct rng *r, uint32_t n)
{
    return rng_below(r, n) == 0;
}

/* 0 .. n-1, each as often as its weight says. */
static inline uint32_t rng_weighted(struct rng *r, const uint8_t *weights, uint32_t n)
{
    uint32_t sum = 0, i = 0;
    for (uint32_t k = 0; k < n; k++)
        sum += weights[k];
    for (uint32_t at = rng_below(r, sum); at >= weights[i]; i++)
        at -= weights[i];
    return i;
}

#endif
