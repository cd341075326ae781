/* xoshiro256** by Blackman and Vigna (public domain), seeded by splitmix64. */
#include "sim/run/random.h"

#include <math.h>

static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = *x += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

struct trp_random trp_random_of(uint64_t seed, enum trp_draw what, uint64_t a,
                                uint64_t b)
{
    struct trp_random r;
    uint64_t x = seed;
    x = splitmix(&x) ^ (uint64_t)what;
    x = splitmix(&x) ^ a;
    x = splitmix(&x) ^ b;
    for (int i = 0; i < 4; i++)
        r.s[i] = splitmix(&x);
    return r;
}

static uint64_t rotate(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

uint64_t trp_random_next(struct trp_random *r)
{
    uint64_t *s = r->s, result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

double trp_random_unit(struct trp_random *r)
{
    return ((double)(trp_random_next(r) >> 12) + 0.5) * 0x1p-52;
}

double trp_random_normal(struct trp_random *r)
{
    double u = trp_random_unit(r), v = trp_random_unit(r);
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}
