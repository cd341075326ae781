/*
 * The distance of two names is the number of letters to add, drop, change or swap
 * (optimal string alignment), upper and lower case being the same letter. A name counts
 * as near up to a third of the word's length, so that "gpu" is not taken for "cpus" in
 * a long shot. Names longer than 63 bytes are near to nothing: the tables are on the
 * stack.
 */
#include "core/base/nearest.h"

#include <stdint.h>
#include <string.h>

enum { NEAR_BYTES = 63 };

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

static uint8_t least(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    uint8_t d[NEAR_BYTES + 1][NEAR_BYTES + 1];
    for (size_t i = 0; i <= na; i++)
        d[i][0] = (uint8_t)i;
    for (size_t j = 0; j <= nb; j++)
        d[0][j] = (uint8_t)j;
    for (size_t i = 1; i <= na; i++) {
        for (size_t j = 1; j <= nb; j++) {
            int change = lower(a[i - 1]) != lower(b[j - 1]);
            uint8_t v = (uint8_t)(d[i - 1][j - 1] + change);
            v = least(v, (uint8_t)(d[i - 1][j] + 1));
            v = least(v, (uint8_t)(d[i][j - 1] + 1));
            bool swap = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                        lower(a[i - 2]) == lower(b[j - 1]);
            d[i][j] = swap ? least(v, (uint8_t)(d[i - 2][j - 2] + 1)) : v;
        }
    }
    return d[na][nb];
}

struct trp_nearest trp_nearest_of(const char *word)
{
    return (struct trp_nearest){.word = word, .distance = SIZE_MAX};
}

void trp_nearest_try(struct trp_nearest *n, const char *candidate)
{
    size_t nw = strnlen(n->word, NEAR_BYTES + 1);
    size_t nc = strnlen(candidate, NEAR_BYTES + 1);
    if (nw > NEAR_BYTES || nc > NEAR_BYTES)
        return;
    size_t far = 1 + nw / 3;
    if ((nw > nc ? nw - nc : nc - nw) > far)
        return;
    size_t d = distance(n->word, nw, candidate, nc);
    if (d <= far && d < nw && d < n->distance) {
        n->best = candidate;
        n->distance = d;
    }
}

bool trp_begins(const char *word, const char *whole)
{
    while (*word && lower(*word) == lower(*whole))
        word++, whole++;
    return !*word;
}
